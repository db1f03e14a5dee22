"""Pictures, sound and text that are made of Debian packages: three more sets for `elsewhere.py`.

    apt-get update && apt-get install espeak-ng fonts-urw-base35 fonts-adf-gillius …   (FONTS below has all names)

letters: A to J in some 400 fonts, 28×28 grey, turned by up to 25°, shifted, with noise; the test has fonts of other
    packages than training.
words: ten words of the radio alphabet, spoken by espeak-ng in 7 accents, with other voices in the test; 1 s at 8 kHz,
    with noise.
sections: the section of a package (20 of them) by its description, 1,024 hashed words; one package of each source.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
import wave
from pathlib import Path
from typing import Any

import numpy as np

FONTS = """
urw-base35 liberation2 dejavu-core freefont-ttf lato roboto-unhinted open-sans cantarell comfortaa crosextra-caladea
crosextra-carlito linuxlibertine ebgaramond junicode sil-gentium sil-charis sil-andika quicksand inconsolata hack
firacode jetbrains-mono oxygen play rufscript dancingscript lobster lobstertwo beteckna breip isabella jura kristi
levien-typoscript oldstandard cabin tomsontalks yanone-kaffeesatz vollkorn adf-accanthis adf-baskervald adf-berenis
adf-gillius adf-ikarius adf-irianis adf-libris adf-mekanus adf-oldania adf-romande adf-switzera adf-tribun
adf-universalis adf-verana ocr-b monofur mononoki averia-sans-gwf averia-serif-gwf
"""
LETTERS = "ABCDEFGHIJ"
WORDS = ["alpha", "bravo", "charlie", "delta", "echo", "foxtrot", "golf", "hotel", "india", "juliet"]
ACCENTS = ["en-gb", "en-us", "en-gb-scotland", "en-gb-x-gbclan", "en-gb-x-rp", "en-gb-x-gbcwmd", "en-029"]
VOICES = [*(f"m{n}" for n in range(1, 9)), *(f"f{n}" for n in range(1, 6)), "croak", "whisper"]
RATE, SPOKEN = 8000, 260
SECTIONS = """
admin editors electronics games gnome gnu-r graphics haskell java kde lisp mail math net perl php science sound text web
"""
PER_SECTION, TEST_PACKAGES, HASHED = 200, 50, 1024


def letters() -> tuple[Any, Any, Any]:
    from PIL import Image, ImageDraw, ImageFont

    random = np.random.default_rng(0)

    def drawn(file: str, letter: str) -> Any:
        font = ImageFont.truetype(file, 22)
        left, top, right, bottom = font.getbbox(letter)
        image = Image.new("L", (28, 28))
        across, down = random.uniform(-3, 3, 2)
        place = (14 + across - (left + right) / 2, 14 + down - (top + bottom) / 2)
        ImageDraw.Draw(image).text(place, letter, fill=255, font=font)
        turned = np.asarray(image.rotate(random.uniform(-25, 25), Image.Resampling.BILINEAR), dtype=float)
        return (turned + 40 * random.standard_normal((28, 28))).clip(0, 255).astype("uint8")

    def is_script(file: str) -> bool:
        """A font of signs draws nothing, or the same box for every letter."""
        font = ImageFont.truetype(file, 22)
        return len({bytes(font.getmask(letter)) for letter in LETTERS}) == len(LETTERS)

    train: list[tuple[Any, str]] = []
    test: list[tuple[Any, str]] = []
    for number, name in enumerate(sorted(FONTS.split())):
        listed = subprocess.run(["dpkg", "-L", f"fonts-{name}"], capture_output=True, text=True, check=True).stdout
        for file in sorted(line for line in listed.splitlines() if re.search(r"\.(ttf|otf)$", line)):
            if is_script(file):
                (test if number % 4 == 0 else train).extend((drawn(file, letter), letter) for letter in LETTERS)
    (x, y), own = ((np.stack([i for i, _ in part]), np.array([c for _, c in part])) for part in (train, test))
    return x[:, None], y, (own[0][:, None], own[1])


def words() -> tuple[Any, Any, Any]:
    random = np.random.default_rng(0)
    x, y = np.zeros((SPOKEN * len(WORDS), 1, RATE), dtype="float32"), np.repeat(WORDS, SPOKEN)
    voices = np.tile(np.arange(SPOKEN) % len(VOICES), len(WORDS))
    with tempfile.TemporaryDirectory() as place:
        for row, word in enumerate(y):
            voice = f"{random.choice(ACCENTS)}+{VOICES[voices[row]]}"
            pace, pitch = random.integers(120, 220), random.integers(20, 80)
            x[row, 0] = _spoken(word, voice, pace, pitch, Path(place) / "word.wav", random)
    test = voices % 4 == 3
    return x[~test], y[~test], (x[test], y[test])


def _spoken(word: str, voice: str, pace: int, pitch: int, file: Path, random: Any) -> Any:
    from scipy.signal import resample_poly

    order = ["espeak-ng", "-v", voice, "-s", str(pace), "-p", str(pitch), "-w", str(file), word]
    subprocess.run(order, check=True, capture_output=True)
    with wave.open(str(file)) as sound:
        signal = np.frombuffer(sound.readframes(sound.getnframes()), dtype="<i2") / 2.0**15
        signal = resample_poly(signal, RATE, sound.getframerate())[:RATE]
    start = random.integers(0, RATE - len(signal) + 1)
    found = 0.02 * random.standard_normal(RATE)
    found[start : start + len(signal)] += signal
    return found


def sections() -> tuple[Any, Any, Any]:
    from sklearn.feature_extraction.text import HashingVectorizer

    listed = subprocess.run(["apt-cache", "dumpavail"], capture_output=True, text=True, check=True).stdout
    texts: dict[str, list[str]] = {name: [] for name in SECTIONS.split()}
    sources = set()
    for entry in listed.split("\n\n"):
        fields = dict(re.findall(r"^([A-Z][\w-]*): ?(.*(?:\n .*)*)", entry, re.MULTILINE))
        source = fields.get("Source", fields.get("Package", "")).partition(" ")[0]
        if fields.get("Section") in texts and source not in sources:
            sources.add(source)
            texts[fields["Section"]].append(fields["Description"])
    random = np.random.default_rng(0)
    chosen = {name: random.permutation(np.array(found, dtype=object))[:PER_SECTION] for name, found in texts.items()}
    hashing = HashingVectorizer(n_features=HASHED, alternate_sign=False, stop_words="english")
    x = np.concatenate([hashing.transform(found).toarray() for found in chosen.values()]).astype("float32")
    y = np.concatenate([[name] * len(found) for name, found in chosen.items()])
    test = np.concatenate([np.arange(len(found)) < TEST_PACKAGES for found in chosen.values()])
    return x[~test], y[~test], (x[test], y[test])
