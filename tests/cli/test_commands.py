"""The command line reads well, suggests, and ends with a path and the next command."""

import subprocess
import sys

import pytest

from pdcl.cli import OF_THE_LAB, VERBS, main


def call(*words, code=0):
    done = subprocess.run([sys.executable, "-m", "pdcl", *words], capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout, done.stderr


def test_help_names_every_command(capsys):
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(verb in text for verb in VERBS)


def test_every_command_has_a_file_and_its_own_help(capsys):
    import importlib

    for verb in VERBS:
        room = "pdcl.lab.cli" if verb in OF_THE_LAB else "pdcl.cli"
        assert callable(importlib.import_module(f"{room}.{verb}").main)


def test_a_misspelt_command_suggests(capsys):
    assert main(["runn"]) == 64
    assert "Did you mean 'pdcl run'" in capsys.readouterr().err


def test_list_shows_streams_and_methods(capsys):
    assert main(["list"]) == 0
    text = capsys.readouterr().out
    assert all(word in text for word in ("digits", "mnist", "pdcl-s", "er-ring", "primal-dual"))


def test_the_help_of_a_method_shows_the_streams_values():
    text, _ = call("run", "digits", "pdcl", "--help")
    assert "--dual-lr" in text
    assert "η_d" in text
    assert "(default: mlp:100-100)" in text.replace("\n", " ") or "mlp:100-100" in text
    assert "--restart" not in text


def test_a_misspelt_option_suggests():
    _, error = call("run", "digits", "er", "--repaly", "3", code=1)
    assert "--replay" in error


def test_a_run_ends_with_its_path_and_the_next_command(tmp_path):
    out = str(tmp_path / "runs")
    text, _ = call("run", "digits", "er", "--epochs", "1", "--memory", "30", "--seeds", "2", "--out", out)
    lines = text.strip().splitlines()
    assert lines[-1] == f"next: pdcl results {out}"
    assert out in lines[-2]
    text, _ = call("run", "digits", "er", "--epochs", "1", "--memory", "30", "--seed", "1", "--out", out)
    assert "not run again" in text


def test_seed_and_seeds_exclude_each_other():
    _, error = call("run", "digits", "er", "--seed", "1", "--seeds", "2", code=1)
    assert "not both" in error


@pytest.mark.parametrize("words", [["run"], ["run", "digits"], ["list", "more"]])
def test_too_few_or_too_many_words_show_the_usage(words, capsys):
    assert main(words) == 2
    assert "usage" in capsys.readouterr().out


def test_stream_options_may_follow_one_flag_or_one_each():
    from pdcl.cli.run import gathered

    words = ["--stream-option", "a=1", "b=2", "--epochs", "3", "--stream-option=c=4", "--stream-option", "d=5"]
    assert gathered(words) == ["--epochs", "3", "--stream-option", "a=1", "b=2", "c=4", "d=5"]
    assert gathered(["--epochs", "3"]) == ["--epochs", "3"]


def test_stream_options_are_parsed_as_numbers_where_they_are():
    from pdcl.cli.run import stream_options
    from pdcl.errors import UsageError

    assert stream_options(("order_seed=3", "name=x"), "d") == {"data": "d", "order_seed": 3, "name": "x"}
    with pytest.raises(UsageError, match="NAME=VALUE"):
        stream_options(("order_seed",), None)


def test_version(capsys):
    import pdcl

    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"pdcl {pdcl.__version__}\n"
