"""`pdcl.images`: a folder per class becomes samples that are learned, evaluated and, if damaged, named."""

from pathlib import Path

import numpy as np
import pytest

import pdcl
from pdcl.errors import UsageError
from pdcl.streams.checks import BadData

Image = pytest.importorskip("PIL.Image", reason="reading images needs Pillow")


@pytest.fixture(scope="module")
def photos(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Red and blue pictures, wider than high, with a file that is no image and one in grey."""
    place = tmp_path_factory.mktemp("photos")
    for name, colour in (("blue", (0, 0, 200)), ("red", (200, 0, 0))):
        (place / name).mkdir()
        for k in range(20):
            Image.new("RGB", (20, 10), tuple(min(255, c + k) for c in colour)).save(place / name / f"{k:02d}.png")
    (place / "red" / "notes.txt").write_text("no image")
    (place / "red" / ".hidden.png").write_bytes(b"no image")
    Image.new("L", (8, 8), 30).save(place / "blue" / "grey.jpg")
    return place


def test_pixels_are_those_of_the_file_and_labels_those_of_the_folder(photos: Path) -> None:
    read = pdcl.images(photos, size=(4, 6))
    assert (len(read), {*read.targets}) == (41, {"blue", "red"})
    x, y = read[len(read) - 1]
    assert (x.shape, x.dtype, y) == ((3, 4, 6), np.uint8, "red")
    assert x.reshape(3, -1).T.tolist() == [[219, 19, 19]] * 24
    assert pdcl.images(photos, size=4, channels=1)[0][0].shape == (1, 4, 4)


def test_they_are_learned_and_predicted(photos: Path) -> None:
    read = pdcl.images(photos, size=4)
    learner = pdcl.PDCL("mlp:16", memory=20, seed=0)
    learner.learn(read, name="2026-11", epochs=60)
    assert learner.evaluate(read) > 0.9
    assert [*learner.predict(np.stack([read[40][0], read[0][0]]))] == ["red", "blue"]
    assert pdcl.split(read, classes_per_task=1).spec.shape == (3, 4, 4)


def test_a_damaged_file_is_named(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "cat").mkdir()
    (tmp_path / "cat" / "half.png").write_bytes((photos / "red" / "00.png").read_bytes()[:40])
    with pytest.raises(BadData, match=r"half\.png is no image that can be read"):
        pdcl.images(tmp_path)[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [({"size": 0}, "size=0"), ({"size": (3, 4, 5)}, "size="), ({"channels": 2}, "channels=2")],
)
def test_bad_options_are_named(photos: Path, options: dict, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        pdcl.images(photos, **options)


def test_a_folder_without_classes_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadData, match="no image in a folder of its own"):
        pdcl.images(tmp_path)
    with pytest.raises(BadData, match="is no folder"):
        pdcl.images(tmp_path / "gone")
