"""`pdcl gate` as CI sees it: real processes, whose exit codes mean what they say."""

import json
import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import pdcl
from pdcl.cli import main

RUN = [sys.executable, "-c", "import sys; from pdcl.cli import main; sys.exit(main())"]


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A saved model of two well separated classes, an audit set that it masters and one that it doesn't."""
    path = tmp_path_factory.mktemp("gate")
    generator = np.random.default_rng(0)
    y = generator.integers(0, 2, 1210)
    x = (generator.normal(0, 0.5, (1210, 4)) + 4 * y[:, None]).astype(np.float32)
    learner = pdcl.PDCL("mlp:8", memory=20, seed=0, device="cpu")
    learner.learn(x[:200], y[:200], name="jan", epochs=3)
    learner.save(path / "model")
    for name, labels, rows in (("good", y, slice(200, 700)), ("bad", 1 - y, slice(700, 1200))):
        (path / name).mkdir()
        np.savez(path / name / "samples.npz", x=x[rows], y=labels[rows], task=np.full(500, "jan"))
    (path / "few").mkdir()
    np.savez(path / "few" / "samples.npz", x=x[1200:], y=y[1200:])
    (path / "leaky").mkdir()
    np.savez(path / "leaky" / "samples.npz", x=x[100:300], y=y[100:300])
    return path


def gate(place, *words, **options):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [*RUN, "gate", *words], cwd=place, capture_output=True, text=True, env=environment, check=False, **options
    )


def test_verdicts_are_0_1_and_2_and_evidence_verifies(place):
    passed = gate(place, "model", "--audit", "good", "--max-error", "0.05", "--evidence", "ev", "--no-samples")
    assert passed.returncode == 0, passed.stderr
    assert "PASS: look 1 of 1, at 95 % confidence" in passed.stdout
    verified = gate(place, "model", "--audit", "good", "--verify", "ev")
    assert (verified.returncode, "all agrees" in verified.stdout) == (0, True), verified.stderr
    failed = gate(place, "model", "--audit", "bad", "--max-error", "0.05", "--format", "json")
    assert failed.returncode == 1, failed.stderr
    assert json.loads(failed.stdout)["verdict"] == "FAIL"
    undecided = gate(place, "model", "--audit", "few", "--max-error", "0.05", "--format", "junit")
    assert undecided.returncode == 2, undecided.stderr
    assert undecided.stdout.startswith("<?xml")


def test_a_wrong_option_is_3_and_help_0(place):
    done = gate(place, "model", "--audit", "good", "--max-error", "lots")
    assert done.returncode == 3
    assert "Traceback" not in done.stderr
    assert gate(place, "--help").returncode == 0


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (["--nonsense"], ""),
        (["model", "--audit", "good"], "say what the limit is on"),
        (["model", "--audit", "nowhere", "--max-error", "0.1"], "neither a directory"),
        (["nowhere", "--audit", "good", "--max-error", "0.1"], "nowhere"),
        (["model", "--audit", "leaky", "--max-error", "0.1"], "were trained on"),
        (["model", "--max-error", "0.1"], "--audit is missing"),
        (["--audit", "good", "--max-error", "0.1"], "MODEL is missing"),
        (["model", "--audit", "good", "--max-error", "0.1", "--limit", "jan"], "GROUP=VALUE"),
        (["model", "--audit", "good", "--max-error", "0.1", "--network", "no.such:thing"], "PACKAGE.MODULE"),
        (["--verify", "nowhere"], "missing"),
    ],
)
def test_no_mistake_looks_like_a_verdict(place, words, text, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert main(["gate", *words]) == 3
    assert text in capsys.readouterr().err


def test_a_defect_is_4_and_a_misspelt_command_64(place):
    script = (
        "import sys, pdcl.release.gate as g; from pdcl.cli import main\n"
        "def broken(*a, **k): raise RuntimeError('a defect')\n"
        "g.gate = broken\n"
        "code = main(['gate', 'model', '--audit', 'good', '--max-error', '0.1'])\n"
        "sys.exit(code if main(['gat']) == 64 else 99)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=place, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "a defect" in done.stderr


def test_an_interrupt_in_the_midst_of_judging_is_130(place):
    script = (
        "import sys, time, pdcl.release.gate as g; from pdcl.cli import main\n"
        "def slow(*a, **k): print('judging', flush=True); time.sleep(60)\n"
        "g.gate = slow\n"
        "sys.exit(main(['gate', 'model', '--audit', 'good', '--max-error', '0.1']))"
    )
    words = [sys.executable, "-c", script]
    with subprocess.Popen(words, cwd=place, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "judging\n"
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "interrupted" in said


def test_planning_takes_no_look(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    assert main(["gate", "--audit", "few", "--max-error", "0.05", "--plan"]) == 0
    text = "10 samples can certify an error rate of 25.89 % or more; 5 % needs 59, 49 more"
    assert text in capsys.readouterr().out
