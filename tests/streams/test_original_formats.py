"""The archives as distributed, in miniature: what the benchmarks read from them."""

from __future__ import annotations

import gzip
import io
import tarfile
import wave
import zipfile
from pathlib import Path

import numpy as np
import pytest

from pdcl.lab.benchmarks import mnist, speech, tiny_imagenet
from pdcl.lab.benchmarks.raw.archive import Located, WrongFile
from pdcl.lab.benchmarks.raw.sources import TINY_IMAGENET

image = pytest.importorskip("PIL.Image", reason="reading JPEGs needs Pillow")


def wav(signal: np.ndarray, rate: int = 16000) -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as out:
        out.setnchannels(1)
        out.setsampwidth(2)
        out.setframerate(rate)
        out.writeframes(signal.astype("<i2").tobytes())
    return stream.getvalue()


def tone(frequency: float, seconds: float = 1.0) -> np.ndarray:
    return 10_000 * np.sin(2 * np.pi * frequency * np.arange(int(16000 * seconds)) / 16000)


def test_resampling_keeps_what_8_khz_can_carry_and_nothing_else() -> None:
    kept = np.abs(np.fft.rfft(speech.at_8khz(wav(tone(440))).astype(float)))
    assert int(kept.argmax()) == 440
    loud, aliased = speech.at_8khz(wav(tone(1000))), speech.at_8khz(wav(tone(7000)))
    assert loud.dtype == np.int16
    assert np.std(loud[100:-100]) == pytest.approx(10_000 / 2**0.5, rel=0.01)
    assert np.std(aliased[100:-100].astype(float)) < 0.01 * np.std(loud.astype(float))


def test_short_clips_end_in_zeros_and_long_ones_are_cut() -> None:
    short = speech.at_8khz(wav(tone(500, 0.5)))
    assert short.shape == (8000,)
    assert short[:4000].any()
    assert not short[4000:].any()
    assert speech.at_8khz(wav(tone(500, 1.5))).shape == (8000,)


def test_another_rate_is_refused() -> None:
    with pytest.raises(WrongFile, match="16 kHz mono"):
        speech.at_8khz(wav(tone(500), rate=22050))


PEOPLE = ("ann", "bob", "eve")
LISTED = {"validation": "bob", "testing": "eve"}


def test_the_distributed_speech_archive_is_divided_by_its_lists(tmp_path: Path) -> None:
    names = [f"{word}/{who}_nohash_{k}.wav" for word in [*speech.WORDS, "bed"] for who in PEOPLE for k in range(2)]
    pitch = {word: 300 + 10 * i for i, word in enumerate([*speech.WORDS, "bed"])}
    clips = {name: wav(tone(pitch[name.partition("/")[0]])) for name in names}
    lists = {f"{kind}_list.txt": [name for name in names if who in name] for kind, who in LISTED.items()}
    files = clips | {name: "\n".join(names).encode() for name, names in lists.items()}
    path = tmp_path / "speech.tar.gz"
    with tarfile.open(path, "w:gz") as archive:
        for name, content in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    arrays = speech.read_wavs(path)
    for split in speech.SPLITS:
        assert arrays[f"{split}_x"].shape == (20, 1, 8000)
        assert np.bincount(arrays[f"{split}_y"]).tolist() == [2] * 10
        assert len(np.unique(arrays[f"{split}_groups"])) == 1
    assert len({arrays[f"{split}_groups"][0] for split in speech.SPLITS}) == 3
    down = arrays["train_x"][arrays["train_y"] == speech.WORDS.index("down"), 0]
    assert np.abs(np.fft.rfft(down[0].astype(float))).argmax() == pitch["down"]


def jpeg(value: int, mode: str = "RGB") -> bytes:
    stream = io.BytesIO()
    image.new(mode, (64, 64), value if mode == "L" else (value, value, value)).save(stream, "JPEG")
    return stream.getvalue()


@pytest.mark.parametrize("size", [64, 32])
def test_the_distributed_images_are_cut_to_the_first_forty_classes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(tiny_imagenet, "COUNTS", {"train": 3, "test": 2})
    wnids = [f"n{k:08d}" for k in np.random.default_rng(0).permutation(45)]
    annotations = "".join(f"val_{i}.JPEG\t{wnid}\t0\t0\t9\t9\n" for i, wnid in enumerate(wnids * 2))
    path = tmp_path / "tiny-imagenet-200.zip"
    with zipfile.ZipFile(path, "w") as archive:
        root = "tiny-imagenet-200/"
        archive.writestr(root + "wnids.txt", "\n".join(wnids))
        archive.writestr(root + "words.txt", "".join(f"{w}\tthing {w}, other\n" for w in [*wnids, "n99999999"]))
        archive.writestr(root + "val/val_annotations.txt", annotations)
        archive.writestr(root + "test/images/test_0.JPEG", jpeg(0))
        for i, wnid in enumerate(wnids * 2):
            archive.writestr(f"{root}val/images/val_{i}.JPEG", jpeg(2 * int(wnid[1:])))
        for wnid in wnids:
            archive.writestr(f"{root}train/{wnid}/{wnid}_boxes.txt", "")
            for k in (10, 9, 1):
                grey = "L" if k == 1 else "RGB"
                archive.writestr(f"{root}train/{wnid}/images/{wnid}_{k}.JPEG", jpeg(2 * int(wnid[1:]) + k, grey))
    arrays = tiny_imagenet.read(Located(TINY_IMAGENET, "original", (path,)), size)
    assert arrays["train_x"].shape == (120, 3, size, size)
    assert arrays["test_x"].shape == (80, 3, size, size)
    assert arrays["names"].tolist() == [f"thing n{k:08d}" for k in range(40)]
    expected = [2 * int(y) + k for y, k in zip(arrays["train_y"], [1, 9, 10] * 40, strict=True)]
    assert np.abs(arrays["train_x"].mean((1, 2, 3)) - expected).max() < 1.5
    assert np.abs(arrays["test_x"].mean((1, 2, 3)) - 2.0 * arrays["test_y"]).max() < 1.5


def test_missing_images_are_noticed(tmp_path: Path) -> None:
    path = tmp_path / "tiny.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("tiny-imagenet-200/wnids.txt", "n1")
    with pytest.raises(WrongFile, match=r"lacks .*words\.txt"):
        tiny_imagenet.read(Located(TINY_IMAGENET, "original", (path,)))


def test_halving_is_the_rounded_mean_of_four_pixels() -> None:
    pixels = np.random.default_rng(0).integers(0, 256, (3, 64, 64)).astype(np.uint8)
    mean = pixels.astype(float).reshape(3, 32, 2, 32, 2).mean((2, 4))
    assert np.abs(tiny_imagenet.halved(pixels) - mean).max() <= 0.5


def test_idx_files_carry_their_shape(tmp_path: Path) -> None:
    values = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    header = b"\x00\x00\x08\x03" + np.array([2, 3, 4], dtype=">u4").tobytes()
    (tmp_path / "good.gz").write_bytes(gzip.compress(header + values.tobytes()))
    assert np.array_equal(mnist.read_idx(tmp_path / "good.gz"), values)
    (tmp_path / "bad.gz").write_bytes(gzip.compress(b"GIF89a"))
    with pytest.raises(WrongFile, match="no idx file"):
        mnist.read_idx(tmp_path / "bad.gz")
