"""Who may look, and what a browser may do with what it gets."""

from __future__ import annotations

import hmac
from collections.abc import Awaitable, Callable, MutableMapping
from http.cookies import CookieError, SimpleCookie
from typing import Any
from urllib.parse import parse_qs

Scope = MutableMapping[str, Any]
App = Callable[[Scope, Callable[..., Awaitable[Any]], Callable[..., Awaitable[None]]], Awaitable[None]]

COOKIE = "pdcl-watch"
LOOPBACK = ("127.0.0.1", "localhost", "::1")
# plotly.js makes one empty <style> and fills it rule by rule: this is the hash of nothing at all.
EMPTY = "sha256-47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
HEADERS = {
    "content-security-policy": (
        f"default-src 'none'; script-src 'self'; style-src 'self' '{EMPTY}'; img-src 'self' data: blob:; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cache-control": "no-store",
}


class Guard:
    """Lets requests through to `app` that may pass, and gives every answer its headers.

    Without a token the page is for this machine alone: a request must name it as its host, so that no web site can
    reach it through a name of its own (DNS rebinding). With a token, `/?token=…` hands out a cookie once.
    """

    def __init__(self, app: App, token: str | None) -> None:
        self.app, self.token = app, token

    async def __call__(self, scope: Scope, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        if self.token is None:
            if _host(headers.get("host", "")) not in LOOPBACK:
                return await _answer(send, 403, "This page is for 127.0.0.1 alone.")
        elif self._in_url(scope) and scope["path"] == "/":
            return await self._welcome(send)
        elif not self._known(headers):
            return await _answer(send, 401, "Open the address with its token, as `pdcl watch` printed it.")
        return await self.app(scope, receive, _with_headers(send))

    def _in_url(self, scope: Scope) -> bool:
        given = parse_qs(scope.get("query_string", b"").decode("latin-1")).get("token", [])
        return len(given) == 1 and self._same(given[0])

    def _known(self, headers: dict[str, str]) -> bool:
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and self._same(bearer):
            return True
        try:
            cookie = SimpleCookie(headers.get("cookie", "")).get(COOKIE)
        except CookieError:
            return False
        return cookie is not None and self._same(cookie.value)

    def _same(self, given: str) -> bool:
        assert self.token is not None
        return hmac.compare_digest(given.encode(), self.token.encode())

    async def _welcome(self, send: Any) -> None:
        """The token leaves the address bar, and with it the history."""
        cookie = f"{COOKIE}={self.token}; HttpOnly; SameSite=Strict; Path=/"
        await _answer(send, 303, "", {"location": "/", "set-cookie": cookie})


def is_loopback(host: str) -> bool:
    return host in LOOPBACK


def _host(header: str) -> str:
    """The name in a Host header, without its port."""
    return header[1:].partition("]")[0] if header.startswith("[") else header.rpartition(":")[0] or header


def _with_headers(send: Any) -> Any:
    async def sending(message: MutableMapping[str, Any]) -> None:
        if message["type"] == "http.response.start":
            message["headers"] = [*message.get("headers", []), *_encoded(HEADERS)]
        await send(message)

    return sending


async def _answer(send: Any, status: int, text: str, more: dict[str, str] | None = None) -> None:
    headers = _encoded({**HEADERS, "content-type": "text/plain; charset=utf-8", **(more or {})})
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": text.encode()})


def _encoded(headers: dict[str, str]) -> list[tuple[bytes, bytes]]:
    return [(name.encode(), value.encode()) for name, value in headers.items()]
