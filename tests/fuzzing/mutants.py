"""Mutants: one file of a run, a model, an audit set or evidence changed, by chance or by somebody who means harm.

Bytes are cut, flipped, inserted, repeated or replaced; values of JSON are replaced by odd ones, removed or repeated.
Half of the mutants are signed again, so that checksums don't keep readers from reading on.
"""

from __future__ import annotations

import hashlib
import json
import random
from pathlib import Path
from typing import Any

from pdcl.records.checksum import sealed

ODD: list[Any] = [
    None, True, -1, 0, 1, 2**31, 2**63, 10**30, 10**400, -(10**400), 0.5, -0.0, 1e308, float("nan"), float("inf"), "",
    "0", "nan", "../../etc/passwd", "<img src=x onerror=alert(1)>", "\ud800", "\x00", "a" * 5000, [], {}, [[]], [None],
    {"a": None}, [[1], [1, 2]], ["a"] * 50, {"": {}}, "os:system", "digits", "mlp:99999999",
]  # fmt: skip
TEXTS = (
    b"-1",
    b"1e400",
    b"99999999999999999999",
    b"null",
    b"[]",
    b"NaN",
    b'"',
    b"{",
    b"\xff\xfe",
    b"\n\n",
    b"[" * 3000,
)


def mutated(content: bytes, name: str, chance: random.Random) -> bytes:
    """Another content for the file of this name."""
    if name.endswith((".json", ".jsonl")) and chance.random() < 0.6:
        return _other_json(content, name.endswith("l"), chance)
    return _other_bytes(content, chance)


def _other_bytes(content: bytes, chance: random.Random) -> bytes:
    place = chance.randrange(len(content) + 1)
    kind = chance.randrange(8)
    if kind == 0:
        return content[:place]
    if kind == 1 and place < len(content):
        return content[:place] + bytes([content[place] ^ 1 << chance.randrange(8)]) + content[place + 1 :]
    if kind == 2:
        return chance.randbytes(chance.randrange(200))
    if kind == 3:
        return content[:place] + chance.randbytes(chance.randrange(1, 20)) + content[place:]
    if kind == 4:
        return content[:place] + content[place // 2 :]
    if kind == 5:
        return content[place:]
    return content[:place] + chance.choice(TEXTS) + content[place + chance.randrange(3) :]


def _other_json(content: bytes, lines: bool, chance: random.Random) -> bytes:
    try:
        if not lines:
            return _dumped(_changed(json.loads(content), chance))
        parts = content.splitlines()
        row = chance.randrange(len(parts))
        parts[row] = _dumped(_changed(json.loads(parts[row]), chance))
        if chance.random() < 0.2:
            chance.shuffle(parts)
        return b"\n".join(parts) + b"\n"
    except (ValueError, IndexError, RecursionError):
        return _other_bytes(content, chance)


def _dumped(value: Any) -> bytes:
    return json.dumps(value).encode("utf-8", "surrogatepass")


def _changed(value: Any, chance: random.Random) -> Any:
    """The same with one value, somewhere, replaced, removed or repeated."""
    steps, here = [], value
    while isinstance(here, dict | list) and here and (not steps or chance.random() < 0.75):
        key = chance.choice(list(here)) if isinstance(here, dict) else chance.randrange(len(here))
        steps.append((here, key))
        here = here[key]
    if not steps:
        return chance.choice(ODD)
    holder, key = steps[-1]
    kind = chance.randrange(6)
    if kind == 0:
        del holder[key]
    elif kind == 1 and isinstance(holder, list):
        holder.insert(key, holder[key])
    elif kind == 2 and isinstance(here, int | float) and not isinstance(here, bool):
        holder[key] = chance.choice([-here, here * 1e6, here + 1, here / 3, str(here)])
    else:
        holder[key] = chance.choice(ODD)
    return value


def signed_again(path: Path) -> None:
    """Make manifest or checksum agree with a changed file, as somebody who means harm would."""
    if path.name == "result.json":
        _sealed_again(path)
    manifest = path.parent / "manifest.json"
    if path != manifest and manifest.is_file():
        _listed_again(path, manifest)


def _sealed_again(path: Path) -> None:
    try:
        content = json.loads(path.read_bytes())
        content.pop("sha256", None)
        path.write_bytes(sealed(json.dumps(content)))
    except (ValueError, AttributeError, RecursionError):
        return


def _listed_again(path: Path, manifest: Path) -> None:
    content, listed = path.read_bytes(), json.loads(manifest.read_bytes())
    digest = hashlib.sha256(content).hexdigest()
    if path.name in listed.get("parts", {}):
        listed["parts"][path.name] = {"sha256": digest, "bytes": len(content)}
    elif path.name in listed:
        listed[path.name] = digest
    manifest.write_text(json.dumps(listed))
