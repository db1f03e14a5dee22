"""Evidence: complete, unchanged, and enough to recompute the verdict from."""

import json

import numpy as np
import pytest
import torch

import pdcl
from pdcl.errors import StateError, UsageError
from pdcl.release.criteria import Asked
from pdcl.release.evidence import BadEvidence, verify
from pdcl.release.gate import Case
from pdcl.streams.audits import as_audit


@pytest.fixture
def folder(oracle, audit, tmp_path):
    made = audit([200, 200, 200], [0, 60, 3], patient=np.repeat(np.arange(120), 5))
    options = {"max_error": 0.1, "by": "class", "groups": "patient", "ledger": tmp_path / "l.jsonl"}
    pdcl.gate(oracle, made, evidence=tmp_path / "evidence", **options)
    return tmp_path / "evidence"


def test_a_folder_holds_all_that_the_verdict_rests_on(folder):
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "verdict.json", "verdict.md", "junit.xml", "outcomes.npz", "ledger.jsonl", "lineage.json", "samples.npz",
        "manifest.json",
    }  # fmt: skip
    verdict = json.loads((folder / "verdict.json").read_text())
    assert len(verdict["question"]["model"]) == len(verdict["question"]["audit"]) == 64
    assert {"pdcl", "torch", "numpy", "scipy", "python"} <= verdict["versions"].keys()
    assert all(row["method"] for row in verdict["rows"])


def test_verifying_recomputes_the_same_verdict(folder, oracle, audit):
    assert verify(folder)["verdict"] == "FAIL"
    made = as_audit(audit([200, 200, 200], [0, 60, 3], patient=np.repeat(np.arange(120), 5)))
    asked = Asked.from_json(json.loads((folder / "verdict.json").read_text())["question"])
    assert verify(folder, Case.of(oracle, made, asked))["verdict"] == "FAIL"


@pytest.mark.parametrize("name", ["verdict.json", "outcomes.npz", "ledger.jsonl", "samples.npz"])
def test_a_changed_file_is_noticed(folder, name):
    path = folder / name
    path.write_bytes(path.read_bytes() + b" ")
    with pytest.raises(BadEvidence, match=name):
        verify(folder)


def test_a_missing_file_is_noticed(folder):
    (folder / "outcomes.npz").unlink()
    with pytest.raises(StateError, match="missing"):
        verify(folder)


def test_a_verdict_that_its_outcomes_do_not_support_is_noticed(folder):
    """Someone who also mends the manifest still needs outcomes that give this verdict."""
    import hashlib

    verdict = (folder / "verdict.json").read_text().replace('"FAIL"', '"PASS"')
    (folder / "verdict.json").write_text(verdict)
    manifest = json.loads((folder / "manifest.json").read_text())
    manifest["verdict.json"] = hashlib.sha256(verdict.encode()).hexdigest()
    (folder / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(BadEvidence, match="the outcomes give FAIL"):
        verify(folder)


def test_another_model_or_audit_set_is_noticed(folder, oracle, audit):
    asked = Asked.from_json(json.loads((folder / "verdict.json").read_text())["question"])
    other = as_audit(audit([200, 200, 200], [0, 0, 0], patient=np.repeat(np.arange(120), 5)))
    with pytest.raises(BadEvidence, match="audit set is another"):
        verify(folder, Case.of(oracle, other, asked))
    with torch.no_grad():
        oracle.model.bias += 1
    with pytest.raises(BadEvidence, match="model is another"):
        verify(folder, Case.of(oracle, other, asked))


def test_without_samples_no_content_and_no_name_of_a_patient_is_kept(oracle, audit, tmp_path):
    patients = np.repeat([f"Patient-{i:03d}" for i in range(60)], 5)
    made = audit([100, 100, 100], [0, 0, 0], patient=patients)
    place = tmp_path / "evidence"
    pdcl.gate(oracle, made, max_error=0.2, groups="patient", ledger=tmp_path / "l", evidence=place, samples=False)
    assert not (place / "samples.npz").exists()
    assert verify(place)["verdict"] == "PASS"
    content = [path.read_bytes() for path in place.iterdir()]
    with np.load(place / "outcomes.npz") as held:
        content += [held[name].tobytes() for name in held.files]
    assert not any(b"Patient-0" in each or "Patient-0".encode("utf-32-le") in each for each in content)


def test_evidence_is_never_overwritten(folder, oracle, audit, tmp_path):
    with pytest.raises(UsageError, match="never overwritten"):
        pdcl.gate(oracle, audit([9, 9, 9], [0, 0, 0]), max_error=0.1, evidence=folder, ledger=tmp_path / "other")
    assert not (tmp_path / "other").exists()
