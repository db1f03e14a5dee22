"""Help texts are whole sentences of the docstrings, for every option of every method."""

import subprocess
import sys
from dataclasses import fields

import pytest

from pdcl.cli.form import NOT_OFFERED, explained
from pdcl.methods.catalog import methods


@pytest.mark.parametrize("name", methods())
def test_every_option_of_a_method_has_its_whole_help(name):
    kind = methods()[name].load()
    helps = explained(kind)
    for each in fields(kind):
        if each.init and each.name not in NOT_OFFERED:
            text = helps[each.name]
            assert text.count("(") == text.count(")"), f"{name} --{each.name}: {text}"
            assert not text.endswith((",", ";", " on", " a", " from", " multiple")), f"{name} --{each.name}: {text}"
    if "witness" in helps:
        assert helps["witness"].endswith(("while that is five a task)", "at most a tenth)"))


def test_a_reader_that_has_seen_enough_is_no_error():
    """`pdcl forget --help | head -0`: the pipe is closed before anything is written."""
    words = [sys.executable, "-m", "pdcl", "forget", "--help"]
    running = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    running.stdout.close()
    said = running.stderr.read().decode()
    assert (running.wait(120), said) == (141, "")


@pytest.mark.parametrize(
    "verb", ["run digits pdcl", "gate", "update", "forget", "rollback", "prices", "report", "watch"]
)
def test_help_shows_types_and_defaults_as_people_write_them(verb):
    words = [sys.executable, "-m", "pdcl", *verb.split(), "--help"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "{None}" not in said
    assert "default: None" not in " ".join(said.replace("│", " ").split())
