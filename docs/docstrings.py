"""Part of the site's build: docstrings as Markdown. Examples become code, and lines `name: text` become a list."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

EXAMPLE = re.compile(r"(?:^>>> .*\n?(?:^(?!>>> )\S.*\n?|^\.\.\. .*\n?)*)+", re.MULTILINE)
OPTION = re.compile(r"^(\w+): (.+(?:\n {4}\S.*)*)$", re.MULTILINE)


class Docstrings(Extension):
    def on_object(self, *, obj: Object, **_: Any) -> None:
        if obj.docstring:
            obj.docstring.value = as_markdown(obj.docstring.value)


def as_markdown(text: str) -> str:
    text = EXAMPLE.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
    blocks = text.split("\n\n")
    return "\n\n".join(_listed(block) if OPTION.match(block) else block for block in blocks)


def _listed(block: str) -> str:
    return OPTION.sub(lambda found: f"- `{found[1]}`: {' '.join(found[2].split())}", block)
