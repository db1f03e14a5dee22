"""One HTML file with everything in it: styles, scripts, plotly and the data, and nothing from anywhere else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

from pdcl.records.writing import dumps

STYLES = ("theme.css", "layout.css", "cards.css", "print.css")
SCRIPTS = (
    "base.js",
    "theme.js",
    "palette.js",
    "card.js",
    "charts/matrix.js",
    "charts/time.js",
    "charts/memory.js",
    "charts/samples.js",
    "charts/overview.js",
    "charts/promises.js",
    "config.js",
    "run.js",
)
REPORT = (*SCRIPTS, "results.js", "picker.js", "report.js")
LIFE = ("base.js", "theme.js", "palette.js", "card.js", "charts/promises.js", "charts/life.js", "sliders.js", "life.js")
WATCH = (*SCRIPTS, "list.js", "watch.js")
# A page that is a file has no header: the same rules go into the document.
POLICY = (
    "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; img-src data: blob:; "
    "base-uri 'none'; form-action 'none'"
)


@cache
def static(name: str) -> str:
    return files("pdcl.reports").joinpath("static", name).read_text(encoding="utf-8")


@cache
def plotly() -> str:
    """plotly.js 4.1.1, the cartesian build (npm: plotly.js-cartesian-dist-min; MIT): a third of the whole library."""
    return files("pdcl.reports").joinpath("vendor", "plotly-cartesian.min.js").read_text(encoding="utf-8")


@cache
def unused_styles() -> tuple[str, ...]:
    """Ids of style sheets that plotly.js adds for maps unless an element of that id is there."""
    return tuple(dict.fromkeys(re.findall(r'getElementById\("([0-9a-f]{64})"\)', plotly())))


def embedded(value: Any) -> str:
    """JSON that can stand inside a <script>: no character in it means anything to an HTML parser."""
    text = dumps(value)
    for sign in "<>&\u2028\u2029":
        text = text.replace(sign, f"\\u{ord(sign):04x}")
    return text


def page(title: str, data: Any, scripts: Sequence[str] = REPORT) -> str:
    """The report as one document."""
    styles = "\n".join(static(name) for name in STYLES)
    code = "\n".join(f"<script>\n{static(name)}</script>" for name in scripts)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{escape(POLICY)}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="generator" content="pdcl">
<title>{escape(title)}</title>
<link rel="icon" href="data:,">
<style>
{styles}
</style>
</head>
<body>
<a class="skip" href="#main">Skip to the results</a>
<div id="app"></div>
<noscript>This report draws its charts with JavaScript, which is switched off here.</noscript>
<script type="application/json" id="data">{embedded(data)}</script>
<script>{plotly()}</script>
{code}
</body>
</html>
"""
