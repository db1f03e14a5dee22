"""The live page as an ASGI application: a handful of addresses, all of them read-only."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from pdcl.lab.reports.live.access import Guard
from pdcl.lab.reports.live.following import Directory
from pdcl.records.writing import dumps
from pdcl.reports import page

EVERY = 0.5
HEARTBEAT = 15.0
TYPES = {"css": "text/css; charset=utf-8", "js": "text/javascript; charset=utf-8"}


def make_app(directory: Path, token: str | None = None) -> Guard:
    """Everything below `directory`, for users on this machine or with the token."""
    runs = Directory(directory)
    routes = [
        Route("/", lambda request: Response(_document(runs.root.name), media_type="text/html; charset=utf-8")),
        Route("/static/{name:path}", _static),
        Route("/api/run/{key}", _detail),
        Route("/api/map/{key}", _map),
        Route("/api/runs", _list),
        Route("/events", _events),
    ]
    app = Starlette(routes=routes, lifespan=_reading)
    app.state.runs, app.state.closing = runs, False
    return Guard(app, token)


@contextlib.asynccontextmanager
async def _reading(app: Starlette) -> AsyncIterator[None]:
    """A thread of its own reads files, so that no slow disk holds up an answer."""
    stop = threading.Event()

    def read() -> None:
        while not stop.is_set():
            # Each run's faults are shown in its row; what is left (a directory that went away) may pass.
            with contextlib.suppress(Exception):
                app.state.runs.refresh()
            stop.wait(EVERY)

    thread = threading.Thread(target=read, name="pdcl-watch", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        await run_in_threadpool(thread.join, 5.0)


def _document(name: str) -> str:
    from html import escape

    styles = "".join(f'<link rel="stylesheet" href="static/{each}">\n' for each in (*page.STYLES, "watch.css"))
    # The policy forbids styles in the page, and we draw no maps.
    holders = "".join(f'<template id="{each}"></template>\n' for each in page.unused_styles())
    scripts = "".join(f'<script defer src="static/{each}"></script>\n' for each in page.WATCH)
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{escape(name)} · pdcl watch</title>
<link rel="icon" href="data:,">
{styles}{scripts}</head>
<body data-directory="{escape(name)}">
<a class="skip" href="#main">Skip to the runs</a>
{holders}<div id="app"></div>
</body>
</html>
"""


async def _static(request: Request) -> Response:
    """Files of the package by name: what isn't on the list doesn't exist."""
    name = request.path_params["name"]
    if name == "plotly.min.js":
        return Response(await run_in_threadpool(page.plotly), media_type=TYPES["js"])
    if name in (*page.STYLES, *page.WATCH, "watch.css"):
        return Response(page.static(name), media_type=TYPES[name.rpartition(".")[2]])
    return Response("There is no such file.", 404)


def _json(value: Any, status: int = 200) -> Response:
    return Response(dumps(value), status, media_type="application/json")


async def _list(request: Request) -> Response:
    version, rows, ids = request.app.state.runs.changes(0)
    return _json({"version": version, "rows": rows, "ids": ids})


async def _detail(request: Request) -> Response:
    found = await run_in_threadpool(request.app.state.runs.detail, request.path_params["key"])
    return _json({"problem": "There is no such run."}, 404) if found is None else _json(found)


async def _map(request: Request) -> Response:
    return _json(await run_in_threadpool(request.app.state.runs.chart, request.path_params["key"]))


async def _events(request: Request) -> Response:
    return StreamingResponse(_news(request), media_type="text/event-stream")


async def _news(request: Request) -> AsyncIterator[str]:
    """Rows that changed, as they change; first all of them. A page that comes back simply gets all again."""
    seen, quiet, first = 0, 0.0, True
    while not (request.app.state.closing or await request.is_disconnected()):
        version, rows, ids = request.app.state.runs.changes(seen)
        if rows or first or version != seen:
            seen, quiet, first = version, 0.0, False
            yield f"retry: 1000\ndata: {dumps({'rows': rows, 'ids': ids})}\n\n"
        elif (quiet := quiet + EVERY) >= HEARTBEAT:
            quiet = 0.0
            yield ": still here\n\n"
        await asyncio.sleep(EVERY)
