"""The action's own steps, run by bash as a pipeline would, on logs of three fates."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def step() -> str:
    text = (ROOT / "action.yml").read_text(encoding="utf-8")
    lines = text.split("      run: |\n")[1].splitlines()
    return "\n".join(line[8:] for line in lines)


def write(path, wrong):
    path.write_text("\n".join(json.dumps({"id": k, "task": "math", "score": int(k not in wrong)}) for k in range(600)))


@pytest.mark.parametrize(
    ("wrong", "limits", "verdict", "code"),
    [
        (range(60), "math:+5pt", "PASS", 0),
        (range(160), "math:+5pt", "FAIL", 1),
        (range(90), "math:+5pt", "UNDECIDED", 2),
        (range(60), "math:+5", "", None),
    ],
)
def test_the_action_tells_its_verdict_in_output_summary_evidence_and_exit_code(wrong, limits, verdict, code, tmp_path):
    write(tmp_path / "old.jsonl", range(60))
    write(tmp_path / "new.jsonl", wrong)
    places = {"GITHUB_OUTPUT": "output", "GITHUB_STEP_SUMMARY": "summary", "EVIDENCE": "evidence"}
    given = {"BEFORE": "old.jsonl", "AFTER": "new.jsonl", "LIMITS": limits, "OPTIONS": ""}
    environment = os.environ | given | {name: str(tmp_path / place) for name, place in places.items()}
    environment["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{environment['PATH']}"
    call = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step()]
    done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == code if code is not None else done.returncode > 2, done.stdout + done.stderr
    assert (tmp_path / "output").read_text() == f"verdict={verdict}\n"
    if verdict:
        assert verdict in (tmp_path / "summary").read_text()
        assert (tmp_path / "evidence" / "junit.xml").exists()


def test_every_field_that_the_page_for_auditors_names_is_in_the_evidence(tmp_path):
    import pdcl

    write(tmp_path / "old.jsonl", range(60))
    write(tmp_path / "new.jsonl", range(60))
    pdcl.compare(tmp_path / "old.jsonl", tmp_path / "new.jsonl", "math:+5pt", evidence=tmp_path / "evidence")
    fields = json.loads((tmp_path / "evidence" / "release.json").read_text())
    page = (ROOT / "docs/audits.md").read_text(encoding="utf-8").split("| asked for |")[1]
    named = set(re.findall(r"`([a-z_]+)`", page)) - {"change"}
    assert named <= set(fields), named - set(fields)
    assert "plan_sha256" in fields["protocol"]
    for file in re.findall(r"`([a-z.]+\.(?:json|jsonl|npz))`", page):
        assert (tmp_path / "evidence" / file).exists(), file


def test_a_name_in_a_log_is_no_command_to_the_runner(tmp_path):
    rows = [{"id": k, "task": "::error::owned", "score": 1} for k in range(600)]
    for name in ("old", "new"):
        (tmp_path / f"{name}.jsonl").write_text("\n".join(json.dumps(row | {"of": name}) for row in rows))
    given = {"BEFORE": "old.jsonl", "AFTER": "new.jsonl", "LIMITS": "*:+5pt", "OPTIONS": "", "EVIDENCE": "evidence"}
    places = {name: str(tmp_path / name) for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    call = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step()]
    environment = os.environ | given | places | {"PATH": path}
    done = subprocess.run(call, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    told = done.stdout.splitlines()
    at = [number for number, line in enumerate(told) if line.startswith("::")]
    assert (told[at[0]].partition("s::")[0], told[at[-1]][2:-2]) == ("::stop-command", told[at[0]].rpartition("::")[2])
    assert len(at) > 2, "the name stands at the beginning of a line, between the two"
