"""Help texts are whole sentences of the docstrings, for every option of every method."""

import shutil
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
    "verb",
    [
        "run digits pdcl",
        "study",
        "tolerance",
        "whatif",
        "data list",
        "data fetch",
        "figures",
        "paper",
        "unpack",
        "results",
        "demo",
        "gate",
        "update",
        "forget",
        "rollback",
        "prices",
        "report",
        "watch",
    ],
)
def test_help_shows_types_and_defaults_as_people_write_them(verb):
    words = [sys.executable, "-m", "pdcl", *verb.split(), "--help"]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert "{None}" not in said
    assert "default: )" not in said
    assert "default: True" not in said
    assert "default: False" not in said
    # Once in the usage, once as an option; not in its own help.
    assert said.count("--no-samples") <= 2
    assert "default: None" not in " ".join(said.replace("│", " ").split())


@pytest.fixture(scope="module")
def bash(tmp_path_factory):
    """What bash completes after `source`, for the words of a line so far."""
    script = tmp_path_factory.mktemp("bash") / "pdcl.bash"
    made = subprocess.run(
        [sys.executable, "-m", "pdcl", "completion", "bash"], capture_output=True, text=True, check=True
    )
    script.write_text(made.stdout)

    def complete(*words):
        line = f"source {script}; COMP_WORDS=({' '.join(map(repr, words))}); COMP_CWORD={len(words) - 1}; _pdcl"
        asked = ["bash", "-c", f'{line}; printf "%s\\n" "${{COMPREPLY[@]}}"']
        return subprocess.run(asked, capture_output=True, text=True, check=True).stdout.split()

    return complete


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes_commands_names_and_options(bash):
    assert bash("pdcl", "ro") == ["rollback"]
    assert bash("pdcl", "run", "dig") == ["digits"]
    assert "pdcl-s" in bash("pdcl", "run", "digits", "pdcl")
    assert bash("pdcl", "run", "digits", "pdcl", "--tol") == ["--tolerance"]
    assert bash("pdcl", "update", "model", "--max-d") == ["--max-drop"]
    assert "--dry-run" in bash("pdcl", "study", "--")
    assert bash("pdcl", "data", "f") == ["fetch"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_get_the_same_words(shell):
    from pdcl.cli import VERBS

    words = [sys.executable, "-m", "pdcl", "completion", shell]
    said = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    assert all(verb in said for verb in VERBS)
    assert "max-drop" in said
    if shutil.which(shell):
        subprocess.run([shell, "-n", "/dev/stdin"], input=said, text=True, check=True)


def test_a_shell_that_is_unknown_is_named(capsys):
    from pdcl.cli import main

    assert main(["completion", "tcsh"]) == 1
    assert "'tcsh' is no shell" in capsys.readouterr().err


def test_a_stray_word_after_the_plugin_is_named(tmp_path):
    (tmp_path / "mine.py").write_text("")
    words = [sys.executable, "-m", "pdcl", "run", "digits", "pdcl", "--plugin", str(tmp_path / "mine.py"), "stray.py"]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "stray.py" in done.stdout + done.stderr
    assert (done.stdout + done.stderr).count("--help") == 1
