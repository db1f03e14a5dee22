"""Options that derive a stream go the way of all stream options: into config, name, resume, studies, command line."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from pdcl.cli import main
from pdcl.errors import RecordError
from pdcl.lab.reports.command import command
from pdcl.lab.studies.expansion import expand
from pdcl.lab.studies.parsing import parse
from pdcl.lab.studies.worker import Streams
from pdcl.records.reading import read_config
from pdcl.running.rebuild import described
from pdcl.running.run import run
from pdcl.streams import load

DERIVED = {"domains": 2, "permuted": True, "per_class": 10, "noise": 0.2, "derive_seed": 3}


def test_a_record_names_them_and_brings_the_same_stream_back(tmp_path: Path) -> None:
    stream = load("digits", **DERIVED)
    path = run(stream, "finetune", out=tmp_path, epochs=1).path
    assert path is not None
    assert read_config(path)["stream_options"].items() >= DERIVED.items()
    _, again, _ = described(path)
    assert again.fingerprint == stream.fingerprint


def test_other_options_are_another_run(tmp_path: Path) -> None:
    streams = [
        load("digits"),
        load("digits", noise=0.2),
        load("digits", noise=0.3),
        load("digits", noise=0.2, derive_seed=1),
    ]
    paths = [run(stream, "finetune", out=tmp_path, epochs=1).path for stream in streams]
    assert len(set(paths)) == len(streams)


def test_a_record_whose_options_were_altered_is_not_resumed(tmp_path: Path) -> None:
    path = run(load("digits", **DERIVED), "finetune", out=tmp_path, epochs=1).path
    assert path is not None
    config = json.loads((path / "config.json").read_text())
    config["stream_options"]["derive_seed"] = 4
    (path / "config.json").write_text(json.dumps(config))
    with pytest.raises(RecordError, match="begun with other data"):
        described(path)


def test_the_command_line_takes_them_and_the_report_repeats_them(tmp_path: Path) -> None:
    words = [word for name, value in DERIVED.items() for word in ("--stream-option", f"{name}={json.dumps(value)}")]
    assert main(["run", "digits", "finetune", "--epochs", "1", "--out", str(tmp_path / "a"), *words]) == 0
    (path,) = (tmp_path / "a").glob("digits-*")
    again = shlex.split(command(read_config(path)))[1:]
    assert main([*again, "--out", str(tmp_path / "b")]) == 0
    (other,) = (tmp_path / "b").glob("digits-*")
    assert other.name == path.name
    assert read_config(other)["data"] == read_config(path)["data"]


def test_a_study_takes_them_and_tunes_on_data_that_was_held_out_first() -> None:
    study = parse(
        {
            "study": {"name": "s", "streams": ["digits"], "methods": ["finetune"], "seeds": 1},
            "streams": {"digits": {"stream_options": DERIVED}},
        }
    )
    (spec,) = expand(study)
    streams = Streams()
    assert streams.get(spec).fingerprint == load("digits", **DERIVED).fingerprint
    tuned = streams.get(replace(spec, held_out=0.1))
    assert tuned.fingerprint == load("digits", held_out=0.1, **DERIVED).fingerprint
