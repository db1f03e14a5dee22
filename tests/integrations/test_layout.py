"""A library that is missing where all of them should be is an error, not a skipped test."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

SKIP = 'pytest.importorskip("no_such_library")'


@pytest.mark.parametrize(("promised", "outcome"), [("1", {"1 failed", "1 error"}), ("", {"2 skipped"})])
def test_a_skip_fails_exactly_where_every_library_is_promised(promised, outcome, tmp_path):
    (tmp_path / "conftest.py").write_bytes((Path(__file__).parent / "conftest.py").read_bytes())
    (tmp_path / "test_file.py").write_text(f"import pytest\n{SKIP}\ndef test(): pass\n", encoding="utf-8")
    (tmp_path / "test_inside.py").write_text(f"import pytest\ndef test(): {SKIP}\n", encoding="utf-8")
    call = [sys.executable, "-m", "pytest", "-q", "--continue-on-collection-errors", "--rootdir", str(tmp_path)]
    surroundings = {**os.environ, "PDCL_INTEGRATIONS": promised, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(call, cwd=tmp_path, env=surroundings, capture_output=True, text=True, check=False)
    assert set(done.stdout.splitlines()[-1].split(" in ")[0].split(", ")) == outcome
    assert bool(done.returncode) == bool(promised)
