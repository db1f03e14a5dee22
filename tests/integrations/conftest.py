"""Tests against other people's libraries.

Each file starts with `pytest.importorskip`, so that `make test` passes without them. `make test-integrations` installs
them and sets PDCL_INTEGRATIONS: there a skipped test is a failed one.
"""

from __future__ import annotations

import os
from collections.abc import Generator
from typing import Any

import pytest

HERE_ALL_RUN = os.environ.get("PDCL_INTEGRATIONS", "") not in ("", "0")
# Nothing may be fetched: models are made from their configurations.
os.environ.setdefault("HF_HUB_OFFLINE", "1")


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    return _no_skip((yield))


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, Any, Any]:
    return _no_skip((yield))


def _no_skip(report: Any) -> Any:
    if HERE_ALL_RUN and report.outcome == "skipped":
        report.outcome = "failed"
        report.longrepr = f"skipped, though PDCL_INTEGRATIONS says that every library is here: {report.longrepr}"
    return report
