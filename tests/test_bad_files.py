"""Files from anywhere, and the words around them: refused in one line, before memory or work is given to them."""

from __future__ import annotations

import contextlib
import io
import os
import struct
import subprocess
import sys
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import pdcl
from pdcl.cli import main
from pdcl.errors import PdclError
from pdcl.storage.vault import Vault

X = np.random.default_rng(0).normal(size=(40, 5)).astype(np.float32)
Y = np.arange(40) % 2
HEAD = '[study]\nname = "a"\nstreams = ["digits"]\nmethods = ["er"]\nmemory = [20]\nseeds = 1\n'


def npy(shape: Any, kind: Any = "<f4", data: bytes = b"") -> bytes:
    """An array file that says what it is told to say."""
    head = repr({"descr": kind, "fortran_order": False, "shape": shape}).encode()
    head += b" " * (-(11 + len(head)) % 64) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + data


def _saved(array: Any) -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, array)
    return buffer.getvalue()


XS, YS = _saved(X + 1), _saved(Y)

# What x.npy of samples.npz is, and what the line names.
ARRAYS: dict[str, tuple[bytes, str]] = {
    "10**12 rows": (npy((10**12, 5)), "20,000,000,000,000 bytes"),
    "a negative number of rows": (npy((-1, 5)), "shape"),
    "objects": (npy((40,), "|O", b"x" * 40), "Python objects"),
    "cut": (XS[:-50], "750"),
    "no array": (b"garbage", "can't be read"),
    "a header of brackets": (b"\x93NUMPY\x01\x00" + struct.pack("<H", 60000) + b"(" * 60000, "can't be read"),
    "a header of code": (b"\x93NUMPY\x01\x00" + struct.pack("<H", 30) + b"__import__('os').system('id')\n", "can't be"),
    "an unknown version": (b"\x93NUMPY\x09\x00" + b"x" * 100, "can't be read"),
    "records": (npy((40,), [("a", "<f4")], b"\0" * 160), "records"),
    "complex": (npy((40, 5), "<c8", b"\0" * 1600), "complex"),
    "texts": (npy((40, 1), "<U4", b"\0" * 640), "texts"),
    "bytes": (npy((40, 5), "|u1", b"\0" * 200), "uint8"),
    "no rows": (npy((0, 5)), "y has 40 rows"),
    "too wide": (npy((40, 9), data=b"\0" * 1440), "9"),
    "NaN": (npy((40, 5), data=np.full((40, 5), np.nan, "<f4").tobytes()), "NaN"),
    "texts of 10**8 letters": (npy((40,), "<U100000000"), "16,000,000,000 bytes"),
}

DOORS = ["gate MODEL --max-error 0.5 --audit", "update MODEL --name n --audit NEW --max-drop 0.5 --data"]

STUDIES: dict[str, tuple[bytes | str, str]] = {
    "arrays 50,000 deep": ("a = " + "[" * 50000 + "]" * 50000, "nested too deeply"),
    "tables 3,000 deep": ("a = " + "{b = " * 3000 + "1" + "}" * 3000, "nested too deeply"),
    "5,000 digits": (HEAD.replace("= 1\n", "= " + "9" * 5000), "not TOML"),
    "not UTF-8": (b'[study]\nname = "\xff"\n', "not UTF-8"),
    "a zero byte": (HEAD + "\0", "not TOML"),
    "2·10**9 seeds": (HEAD.replace("= 1\n", "= 2000000000\n"), "seeds = 2000000000"),
    "10**9 combinations": (
        HEAD
        + "[grid]\n"
        + "".join(f"{k} = {list(range(1, 200))}\n" for k in ("lr", "replay", "weight_decay", "epochs")),
        "runs",
    ),
    "a seed below 0": (HEAD.replace("= 1\n", "= [-1]\n"), "seeds=-1"),
    "a seed of 2**70": (HEAD.replace("= 1\n", f"= [{2**70}]\n"), "seeds="),
    "seeds a date": (HEAD.replace("= 1\n", "= 1979-05-27\n"), "seeds"),
    "seeds true": (HEAD.replace("= 1\n", "= true\n"), "seeds"),
    "a name that leaves its place": (HEAD.replace('"a"', '"../../x"'), "name = '../../x'"),
    "an empty name": (HEAD.replace('"a"', '""'), "name = ''"),
    "a name with control characters": (HEAD.replace('"a"', '"a\\u001b[2J"'), "name = 'a\\x1b"),
    "memory a table": (HEAD.replace("[20]", "{a = 1}"), "memory"),
    "study a number": ("study = 5\n", "[study] must be a table"),
    "variants a number": ("variants = 5\n" + HEAD, "[variants]"),
    "parts a number": ("parts = 5\n", "[parts]"),
    "tune a number": ("tune = 5\n" + HEAD, "[tune]"),
    "candidates that are none": (HEAD + "[tune]\nbudget = 2\ncandidates = {er = [5]}\n", "candidates"),
    "a grid without lists": (HEAD + "[grid]\nlr = 0.1\n", "lr = 0.1"),
    "an unknown option": (HEAD + "[options]\nbanana = 1\n", "banana"),
    "a plug-in that isn't there": (HEAD.replace("memory = [20]", 'plugins = ["no.py"]'), "no.py"),
    "50,000 names": ('[study]\nname = "a"\nmethods = ["er"]\nstreams = [' + '"digits",' * 50000 + "]\n", "twice"),
    "nothing": ("", "'name'"),
}

# Words of a command: MODEL, DATA and the files below are put in; exit code; what is named.
WORDS: list[tuple[str, int, str]] = [
    *(
        (f"run digits er --memory 20 --out NEW --network {name}", 1, named)
        for name, named in [
            ("os:system", "TypeError"), ("os:getcwd", "built a str"), ("sys:exit", "SystemExit"),
            ("nomodule:f", "nomodule"), ("own:takes", "TypeError"), ("own:fails", "RuntimeError"),
            ("own:leaves", "SystemExit"), ("own:value", "int"), ("own:none", "NoneType"),
            ("wrong:f", "wrong"), ("raises:f", "raises"),
            (":f", ":f"), ("os:", "'os'"),
            ("mlp:1000000000", "bytes of memory"), ("resnet18:100000000", "resnet18"), ("linear:5", "linear"),
            ("mlp:0", "mlp:0"), ("banana", "banana"),
        ]
    ),
    ("gate MODEL --audit DATA --max-error 0.5 --network os:system", 3, "TypeError"),
    ("gate MODEL --audit DATA --max-error 0.5 --network sys:exit", 3, "SystemExit"),
    ("gate MODEL --audit DATA --max-error 0.5 --network own:leaves", 3, "SystemExit"),
    ("gate MODEL --audit DATA --plan --max-error 7", 3, "7"),
    ("gate MODEL --audit FIFO --max-error 0.5", 3, "no ordinary file"),
    ("gate MODEL --audit DIRECTORY --max-error 0.5", 3, "samples.npz"),
    ("gate MODEL --audit NOZIP --max-error 0.5", 3, "can't be read"),
    ("gate MODEL --audit EMPTY --max-error 0.5", 3, "can't be read"),
    ("gate MODEL --audit HALF --max-error 0.5", 3, "can't be read"),
    ("gate MODEL --audit BOMB --max-error 0.5", 3, "would unpack to"),
    ("gate MODEL --audit TWICE --max-error 0.5", 3, "two arrays called 'x'"),
    ("gate MODEL --audit EXTRA --max-error 0.5", 3, "'note.txt', which is no array"),
    ("gate MODEL --audit NOTHING --max-error 0.5", 3, "lacks x and y"),
    ("gate MODEL --audit LOOP --max-error 0.5", 3, "LOOP"),
    ("gate MODEL --audit DATA --max-error 0.5 --looks 99999999", 3, "looks=99999999"),
    ("gate --verify FIFO", 3, "FIFO"),
    ("update MODEL --data BOMB --name n --audit NEW --max-drop 0.5", 3, "would unpack to"),
    ("update MODEL --data FIFO --name n --audit NEW --max-drop 0.5", 3, "no ordinary file"),
    ("update MODEL --data DATA --name 0 --audit NEW --max-drop 0.5", 3, "'0'"),
    ("update MODEL --data DATA --name n --audit NEW --max-drop 0.5 --audit-budget 0", 3, "audit_budget=0"),
    ("forget MODEL --samples BOMB", 1, "would unpack to"),
    ("forget MODEL --samples FIFO", 1, "FIFO"),
    ("forget MODEL --samples HALF", 1, "HALF"),
    ("forget MODEL --group a=1 --audit MISSING", 1, "no directory"),
    ("forget MODEL --group a=1 --evidence MISSING", 1, "no directory"),
    ("study FIFO --dry-run", 1, "FIFO"),
    ("study DATA --dry-run", 1, "not UTF-8"),
    *(
        (f"run digits er --memory 20 --out NEW {words}", 1, named)
        for words, named in [
            ("--seed 18446744073709551616", "seed=18446744073709551616"), ("--plugin wrong.py", "SyntaxError"),
            ("--plugin raises.py", "ValueError"), ("--plugin no.py", "no.py"), ("--plugin DATA", "not a Python file"),
            ("--batch 99999999999999999999999", "batch="), ("--accumulate 0", "accumulate"),
            ("--clip-norm nan", "clip"), ("--scheduler cosine:nan", "cosine:nan"),
            ("--checkpoint-every -5s", "-5s"), ("--preset banana", "banana"),
            ("--stream-option x", "NAME=VALUE"), ("--stream-option noise=nan", "noise"),
            ("--stream-option classes_per_task=1.5", "classes_per_task=1.5"),
            ("--stream-option order_seed=-1", "order_seed=-1"), ("--stream-option held_out=a", "'a'"),
            ("--stream-option held_out=0.1 held_out_seed=-1", "seed=-1"),
            ("--stream-option derive_seed=-1 noise=0.1", "derive_seed=-1"),
            ("--stream-option noise=" + "[" * 3000, "noise"), ("--stream-option noise=" + "9" * 5000, "noise"),
            ("--stream-option per_class=" + "[" * 50000, "nested too deeply"),
        ]
    ),
    ("results LOOP", 1, "LOOP"),
    ("unpack NOZIP --out NEW", 1, "NOZIP"),
    ("resume FIFO", 1, "FIFO"),
    ("rollback FIFO", 1, "FIFO"),
    ("prices DATA", 1, "DATA"),
    ("tolerance banana", 1, "banana"),
    ("watch MISSING", 1, "MISSING"),
]  # fmt: skip


@pytest.fixture(scope="module")
def learned() -> Any:
    learner = pdcl.PDCL("linear", memory=10, lr=0.01, device="cpu")
    learner.learn(X, Y, epochs=1)
    return learner


@pytest.fixture(scope="module")
def place(learned: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    where = tmp_path_factory.mktemp("files")
    learned.save(where / "MODEL")
    np.savez(where / "DATA.npz", x=X + 1, y=Y)
    (where / "NOZIP.npz").write_bytes(b"hello")
    (where / "EMPTY.npz").write_bytes(b"")
    (where / "HALF.npz").write_bytes((where / "DATA.npz").read_bytes()[:400])
    (where / "DIRECTORY.npz").mkdir()
    os.mkfifo(where / "FIFO.npz")
    (where / "LOOP.npz").symlink_to(where / "LOOP.npz")
    _zip(where / "NOTHING.npz")
    _zip(where / "EXTRA.npz", ("x.npy", XS), ("y.npy", YS), ("note.txt", b"hi"))
    with warnings.catch_warnings(action="ignore"):
        _zip(where / "TWICE.npz", ("x.npy", XS), ("x.npy", XS), ("y.npy", YS))
    _write_bomb(where / "BOMB.npz")
    own = "def takes(a): pass\ndef fails(): raise RuntimeError('a\\nb')\ndef leaves(): raise SystemExit(0)\n"
    (where / "own.py").write_text(own + "def none(): pass\nvalue = 3\n")
    (where / "wrong.py").write_text("def f(:\n")
    (where / "raises.py").write_text("raise ValueError('no')\n")
    return where


def _zip(path: Path, *entries: tuple[str, bytes]) -> None:
    with zipfile.ZipFile(path, "w") as held:
        for name, content in entries:
            held.writestr(name, content)


def _write_bomb(path: Path) -> None:
    """Two kilobytes that unpack to two gigabytes, by what the list of contents says."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as held:
        held.writestr("x.npy", npy((100_000_000, 5)) + bytes(10**6))
        held.writestr("y.npy", YS)
        held.getinfo("x.npy").file_size = len(npy((100_000_000, 5))) + 2 * 10**9


def _one_line(words: list[str], code: int, named: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(place)
    heard, before = io.StringIO(), _files(place)
    with contextlib.redirect_stderr(heard):
        assert main(words) == code, heard.getvalue()
    lines = [line for line in heard.getvalue().splitlines() if not line.startswith("auto:")]
    assert len(lines) == 1, lines
    assert lines[0].startswith(f"pdcl {words[0]}: ")
    assert named in lines[0]
    assert _files(place) == before


def _files(place: Path) -> dict[str, tuple[int, int]]:
    ours = ("__pycache__", ".update", ".lock")
    stats = {str(path): path.lstat() for path in place.rglob("*") if not path.is_dir() and not {*ours} & {*path.parts}}
    return {name: (stat.st_size, stat.st_mtime_ns) for name, stat in stats.items()}


@pytest.mark.parametrize(("words", "code", "named"), [pytest.param(*row, id=row[0][:90]) for row in WORDS])
def test_a_command_refuses_it(words: str, code: int, named: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = {path.stem: path.name for path in place.glob("*.npz")}
    _one_line([files.get(word, word) for word in words.split(" ")], code, named, place, monkeypatch)


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.parametrize("case", ARRAYS)
def test_an_array_is_no_more_than_its_file_holds(
    case: str, door: str, place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    content, named = ARRAYS[case]
    _zip(place / "case.npz", ("x.npy", content), ("y.npy", YS))
    _one_line([*door.split(), "case.npz"], 3, named, place, monkeypatch)


@pytest.mark.parametrize("case", STUDIES)
def test_a_study_is_counted_before_it_is_listed(case: str, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    content, named = STUDIES[case]
    (place / "case.toml").write_bytes(content if isinstance(content, bytes) else content.encode())
    _one_line(["study", "case.toml", "--dry-run"], 1, named, place, monkeypatch)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_not_loaded(value: float, learned: Any, tmp_path: Path) -> None:
    """Such a model would give class 0 for everything; save refuses it, so it is made by hand."""
    path = learned.save(tmp_path / "model")
    weights = learned.model.state_dict()["head.weight"]
    kept = weights.clone()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(type(learned), "check_finite", lambda self: None)
        weights[0, 0] = value
        learned.save(path)
        weights.copy_(kept)
    for act in (pdcl.load, lambda place: pdcl.gate(place, (X + 1, Y), max_error=0.5)):
        with pytest.raises(PdclError, match=r"head\.weight holds NaN or infinite") as found:
            act(path)
        assert "\n" not in str(found.value)
    assert Vault(path, "model").exists()


def test_arrays_as_large_as_they_say_are_read(tmp_path: Path, learned: Any) -> None:
    """Zeros that are stored uncompressed are no bomb, and neither are small ones."""
    for write in (np.savez, np.savez_compressed):
        write(tmp_path / "a.npz", x=np.zeros((4000, 5), np.float32), y=np.zeros(4000, np.int64))
        verdict = pdcl.gate(learned, tmp_path / "a.npz", max_error=0.9, ledger=tmp_path / f"{write.__name__}.jsonl")
        assert verdict.rows


HELP = ["--help", "gate --help", "forget --help", "list"]


@pytest.mark.parametrize("words", HELP)
def test_a_reader_who_leaves_is_no_error(words: str) -> None:
    """`pdcl gate --help | head`: 141, as a shell expects it, and not one of the gate's answers."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        ended = subprocess.run(
            [sys.executable, "-m", "pdcl", *words.split()], stdout=writing, stderr=subprocess.PIPE, check=False
        )
    finally:
        os.close(writing)
    assert (ended.returncode, ended.stderr) == (141, b"")


def test_torch_is_as_it_was() -> None:
    """A network's size is checked on the meta device: the default device stays."""
    with contextlib.suppress(PdclError):
        pdcl.PDCL("mlp:1000000000", memory=9).learn(X, Y)
    assert torch.zeros(1).device.type == "cpu"
