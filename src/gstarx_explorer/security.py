"""Access control: which requests are accepted, and what browsers may do with the responses."""

from __future__ import annotations

import hmac
import ipaddress
import logging
import socket
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from gstarx_explorer.messages import Problem
from gstarx_explorer.settings import Settings, is_loopback

_log = logging.getLogger("gstarx_explorer")
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}
#: Statuses after which a connection is closed: the client is unknown.
_CLOSING = frozenset({401, 403})
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


class Guard:
    """Middleware that checks every request before the routes see it.

    A page of another site can make a browser send requests to this server, and even read the
    responses if its own host name resolves to this machine (DNS rebinding). Therefore, the host
    name of a request must be one of ours, and writes must come from our own page. If other
    machines can connect, a token is required as well.
    """

    def __init__(self, app: ASGIApp, *, settings: Settings) -> None:
        self._app = app
        self._token = settings.token
        self._body = settings.limits.body
        self._any_address = not is_loopback(settings.host)
        self._names = {name.lower() for name in (*_LOCAL, settings.host, *settings.names)}
        if self._any_address:
            self._names |= {socket.gethostname().lower(), socket.getfqdn().lower()}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what is not allowed, and pass on the rest."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        refusal = self._refusal(scope, headers)
        if refusal is not None:
            await refusal(scope, receive, self._with_headers(scope, send))
            return
        started = False

        async def watched_send(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, self._limited(receive), self._with_headers(scope, watched_send))
        except Exception:
            _log.exception("a request failed: %s %r", scope["method"], scope["path"])
            if started:
                raise
            problem = Problem("failed", "an unexpected error occurred on the server")
            failure = JSONResponse({"error": problem.as_dict()}, 500)
            await failure(scope, receive, self._with_headers(scope, send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._is_ours(headers.get("host", "")):
            text = "unknown host name: start the server with --name to allow it"
            return _refusal(Problem("forbidden", text))
        if (response := self._check_token(scope, headers)) is not None:
            return response
        if scope["method"] in _WRITES and not _is_own_page(headers):
            return _refusal(Problem("forbidden", "requests from other sites are not allowed"))
        if scope["method"] == "POST":
            length = headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit()) or int(length[:12]) > self._body:
                return _refusal(Problem("too_large", f"a request may have {self._body:,} bytes"))
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            parts = urlsplit(f"//{host}")
            name = (parts.hostname or "").lower()
            valid = parts.netloc == host and parts.username is None and parts.port != 0
        except ValueError:
            return False
        if not valid:
            return False  # more than a name and a port
        if name in self._names:
            return True
        # unlike a name, an IP address cannot be made to point to this machine
        return self._any_address and _is_address(name)

    def _cookie(self, scope: Scope) -> str:
        """The name of the cookie; a host's cookies are shared by its ports, so it has the port."""
        port = (scope.get("server") or ("", 0))[1]
        return f"gstarx-{port}"

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """A response if the token is missing, or if the address has it; None if it is valid."""
        if self._token is None:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0].encode()
        if scope["path"] == "/" and scope["method"] == "GET" and self._matches(given):
            response = RedirectResponse("/", 303)
            # quoted: cookies allow neither spaces nor letters beyond ASCII
            quoted = quote(self._token, safe="")
            response.set_cookie(self._cookie(scope), quoted, httponly=True, samesite="strict")
            return response
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        # the raw bytes, which are UTF-8 if somebody typed the token
        if scheme.lower() == "bearer" and self._matches(bearer.strip().encode("latin-1")):
            return None
        if self._matches(unquote(Request(scope).cookies.get(self._cookie(scope), "")).encode()):
            return None
        text = "open the address that the server printed, or send its token as a bearer token"
        if not scope["path"].startswith("/api/"):
            return PlainTextResponse(text + "\n", 401, {"WWW-Authenticate": "Bearer"})
        return _refusal(Problem("unauthorized", text), {"WWW-Authenticate": "Bearer"})

    def _matches(self, given: bytes) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given, self._token.encode())

    def _limited(self, receive: Receive) -> Receive:
        received = 0

        async def limited() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self._body:
                    raise HTTPException(413)  # more than was announced
            return message

        return limited

    def _with_headers(self, scope: Scope, send: Send) -> Send:
        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if message["status"] in _CLOSING:
                    headers["Connection"] = "close"
                if scope["path"].startswith("/api/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        return send_with_headers


def _is_own_page(headers: Headers) -> bool:
    """Whether a write comes from our page, or from a program other than a browser."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    if origin is None:
        return True
    try:
        return urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _refusal(problem: Problem, headers: dict[str, Any] | None = None) -> Response:
    return JSONResponse({"error": problem.as_dict()}, problem.status, headers)
