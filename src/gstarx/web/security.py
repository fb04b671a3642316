"""Who may ask, from where, and what browsers may do with the answer."""

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

from gstarx.web.messages import Problem
from gstarx.web.settings import Settings

_log = logging.getLogger("gstarx.web")
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
#: Answers after which a connection is closed: it is nobody's whom we know.
_LAST_WORDS = frozenset({401, 403})
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Stands before all routes.

    A page of another site can make a browser send requests here, and by a name of its own that
    leads to this machine even read the answers (DNS rebinding). So the name by which we are asked
    must be ours, and writes must come from our own page. Where others can reach us, a token is
    asked for as well.
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
        """Answer what is not allowed, and pass on the rest."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        answer = self._refusal(scope, headers)
        if answer is not None:
            await answer(scope, receive, self._dressed(scope, send))
            return
        started = False

        async def watched(message: Message) -> None:
            nonlocal started
            started = True
            await send(message)

        try:
            await self._app(scope, self._limited(receive), self._dressed(scope, watched))
        except Exception:
            _log.exception("a request failed: %s %r", scope["method"], scope["path"])
            if started:
                raise
            problem = Problem("failed", "something unexpected happened on the server")
            failure = JSONResponse({"error": problem.as_dict()}, 500)
            await failure(scope, receive, self._dressed(scope, send))

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._is_ours(headers.get("host", "")):
            text = "this server is not called so: start it with --name to allow that"
            return _refusal(Problem("forbidden", text))
        if (answer := self._without_token(scope, headers)) is not None:
            return answer
        if scope["method"] in _WRITES and not _is_own_page(headers):
            return _refusal(Problem("forbidden", "requests of other sites are not answered"))
        if scope["method"] == "POST":
            kind = headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind != "application/json":
                return _refusal(Problem("not_json", "the content type must be application/json"))
            length = headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit()) or int(length[:12]) > self._body:
                return _refusal(Problem("too_large", f"a request may have {self._body:,} bytes"))
        return None

    def _is_ours(self, host: str) -> bool:
        try:
            found = urlsplit(f"//{host}")
            name = (found.hostname or "").lower()
            plain = found.netloc == host and found.username is None and found.port != 0
        except ValueError:
            return False
        if not plain:
            return False  # more than a name and a port
        if name in self._names:
            return True
        # an address is no name that somebody could have pointed at us
        return self._any_address and _is_address(name)

    def _cookie(self, scope: Scope) -> str:
        """Cookies are for all ports of a machine: each server has its own."""
        port = (scope.get("server") or ("", 0))[1]
        return f"gstarx-{port}"

    def _without_token(self, scope: Scope, headers: Headers) -> Response | None:
        """What to answer where the token is missing, or has just been brought."""
        if self._token is None:
            return None
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0].encode()
        if scope["path"] == "/" and scope["method"] == "GET" and self._matches(given):
            answer = RedirectResponse("/", 303)
            # quoted: cookies take neither spaces nor letters beyond ASCII
            quoted = quote(self._token, safe="")
            answer.set_cookie(self._cookie(scope), quoted, httponly=True, samesite="strict")
            return answer
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        # the bytes as they came, which are UTF-8 where somebody types them
        if scheme.lower() == "bearer" and self._matches(bearer.strip().encode("latin-1")):
            return None
        if self._matches(unquote(Request(scope).cookies.get(self._cookie(scope), "")).encode()):
            return None
        text = "open the address with the token that the server printed, or send it as a bearer"
        if not scope["path"].startswith("/api/"):
            return PlainTextResponse(text + "\n", 401, {"WWW-Authenticate": "Bearer"})
        return _refusal(Problem("unauthorised", text), {"WWW-Authenticate": "Bearer"})

    def _matches(self, given: bytes) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given, self._token.encode())

    def _limited(self, receive: Receive) -> Receive:
        taken = 0

        async def limited() -> Message:
            nonlocal taken
            message = await receive()
            if message["type"] == "http.request":
                taken += len(message.get("body", b""))
                if taken > self._body:
                    raise HTTPException(413)  # more than was announced
            return message

        return limited

    def _dressed(self, scope: Scope, send: Send) -> Send:
        async def dressed(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers[name] = value
                if message["status"] in _LAST_WORDS:
                    headers["Connection"] = "close"
                if scope["path"].startswith("/api/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        return dressed


def _is_own_page(headers: Headers) -> bool:
    """Whether a write comes from our page, or from a program that is no browser."""
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
