"""A JSON object that carries its own checksum: its last key, `sha256`, is that of the text without this key."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

from pdcl.errors import RecordError

KEY = "sha256"
_SEAL = re.compile(rb', "sha256": "([0-9a-f]{64})"\}\n\Z')
_LONGEST = 90


def sealed(text: str) -> bytes:
    """The bytes of a file: a JSON object (not empty) with its checksum as the last key.

    >>> sealed('{"a": 1}')[:27]
    b'{"a": 1, "sha256": "f9d8602'
    """
    body = text.encode()
    return body[:-1] + b', "%s": "%s"}\n' % (KEY.encode(), hashlib.sha256(body).hexdigest().encode())


def is_sealed(content: bytes, path: str | Path) -> bool:
    """Whether a file carries a checksum; files of older versions don't. RecordError where it isn't that of the rest."""
    seal = _SEAL.search(content, max(0, len(content) - _LONGEST))
    if seal is None and f'"{KEY}"'.encode() not in content:
        return False
    if seal is None or hashlib.sha256(content[: seal.start()] + b"}").hexdigest().encode() != seal[1]:
        raise RecordError(f"{path} was changed since it was written: its sha256 is another", path)
    return True
