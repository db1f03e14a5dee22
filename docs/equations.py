"""Part of the site's build: a paragraph between `$$` becomes MathML, which browsers draw without a script."""

from __future__ import annotations

import re
from typing import Any

from latex2mathml.converter import convert

EQUATION = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.MULTILINE | re.DOTALL)


def on_page_markdown(markdown: str, **_: Any) -> str:
    return EQUATION.sub(lambda found: f"<div class='equation'>{convert(found[1], display='block')}</div>", markdown)
