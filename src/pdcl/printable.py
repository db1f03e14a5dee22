"""Names that people and strangers choose, as text that is safe to print.

A name may hold anything: it comes from data, and from models that others made. Whatever is shown, on a terminal, in an
error, in a page or file for people, passes `printable`; what is stored and compared stays as it is.
"""

from __future__ import annotations

import json
import re
from typing import Any

# Control characters (C0, DEL, C1), which move the cursor, clear the screen and break XML; line and paragraph
# separators; characters that reorder or hide what stands beside them; lone surrogates and what XML can't hold.
_UNSAFE = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\ufffe\uffff\U000e0000-\U000e007f"
)
_ANY = re.compile(f"[{_UNSAFE}]")
_ANY_OR_BREAK = re.compile(f"[{_UNSAFE}\t\n]")


def printable(text: Any, lines: bool = False) -> str:
    r"""The text with unsafe characters written as Python writes them, such as \x1b. lines: keep tabs and line breaks.

    >>> printable("2026\x1b[2J")
    '2026\\x1b[2J'
    >>> printable("ordinary – naïve 日本語 🦉")
    'ordinary – naïve 日本語 🦉'
    """
    return (_ANY if lines else _ANY_OR_BREAK).sub(lambda found: _escaped(found[0]), str(text))


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii")


def for_markdown(text: Any) -> str:
    r"""Text inside Markdown that stays text: no HTML, no link, no column of a table.

    >>> for_markdown("<img src=x> | `a` [b](c)")
    '&lt;img src=x&gt; &#124; \\`a\\` \\[b\\](c)'
    """
    safe = printable(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("|", "&#124;")
    return re.sub(r"([\\`*\[\]])", r"\\\1", safe)


def for_json(text: str) -> str:
    r"""JSON with unsafe characters in its strings as JSON writes them, such as \u202e; it reads back the same."""
    return _ANY.sub(lambda found: json.dumps(found[0])[1:-1], text)


def counted(number: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "task"), counted(1200, "task"), counted(2, "class", "classes")
    ('1 task', '1,200 tasks', '2 classes')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


def say(*words: Any, **options: Any) -> None:
    """`print`, of text that only shows."""
    print(*(printable(word, lines=True) for word in words), **options)
