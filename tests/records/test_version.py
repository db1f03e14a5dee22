"""A record names the commit it was made by, or says why not."""

import pytest

from pdcl.storage import version


@pytest.fixture
def git(tmp_path, monkeypatch):
    """Puts a script in git's place, in a checkout of its own."""
    module = tmp_path / "src" / "pdcl" / "storage" / "version.py"
    module.parent.mkdir(parents=True)
    (tmp_path / ".git").mkdir()
    monkeypatch.setattr(version, "__file__", str(module))
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    def says(script: str) -> None:
        (tmp_path / "git").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "git").chmod(0o755)

    version.own_commit.cache_clear()
    yield says
    version.own_commit.cache_clear()


def test_the_commit_is_what_git_says(git):
    git("echo 0123456789ab-dirty")
    assert version.own_commit() == "0123456789ab-dirty"


def test_a_git_that_is_too_slow_is_named(git, monkeypatch):
    monkeypatch.setattr(version, "PATIENCE", 0.2)
    git("exec sleep 30")
    assert version.own_commit() == "unknown: git took over 0.2 seconds"


def test_a_git_that_fails_names_nothing(git):
    git("exit 128")
    assert version.own_commit() == ""
