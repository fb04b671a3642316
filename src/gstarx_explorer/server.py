"""The HTTP server: which requests are accepted, how long connections may be idle, start and end."""

from __future__ import annotations

import asyncio
import errno
import hmac
import ipaddress
import logging
import socket
from collections.abc import Callable
from types import FrameType
from typing import Any
from urllib.parse import parse_qs, quote, unquote, urlsplit

import h11
import uvicorn
from fastapi import FastAPI
from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from gstarx_explorer.messages import Refused
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
_WRITES = frozenset({"POST", "PUT", "PATCH", "DELETE"})
_LOCAL = frozenset({"localhost", "127.0.0.1", "::1"})
#: Hosts that stand for all addresses of this machine.
_ALL_ADDRESSES = ("", "0.0.0.0", "::")
#: Seconds that connections have to end after Ctrl-C, and that one without requests stays open.
_SHUTDOWN_SECONDS, _KEEP_ALIVE_SECONDS = 2, 15
#: Seconds that a request may take to arrive, counted from the connection or its first byte, and
#: that a client may go without reading any of the response.
CONNECTION_TIMEOUT = 20.0
#: Bytes of the headers of a request.
_HEADER_BYTES = 16 << 10
#: Connections that may wait to be accepted.
_BACKLOG = 512
#: Connections that are accepted at once. They and the next ones are open before the connections
#: that they replace are closed.
_ACCEPTED_AT_ONCE = 16
#: Files that are open regardless of the number of connections, and those of each worker.
_FILES, _FILES_PER_WORKER = 48 + 4 * _ACCEPTED_AT_ONCE, 16


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
        started, received = False, 0

        async def guarded_send(message: Message) -> None:
            nonlocal started
            started = True
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(_HEADERS)
                if message["status"] in (401, 403):
                    headers["Connection"] = "close"  # the client is unknown
                if scope["path"].startswith("/api/"):
                    headers["Cache-Control"] = "no-store"
            await send(message)

        async def limited_receive() -> Message:
            nonlocal received
            message = await receive()
            received += len(message.get("body", b""))
            if received > self._body:
                raise HTTPException(413)  # more than was announced
            return message

        try:
            refusal = self._refusal(scope, Headers(scope=scope))
            await (refusal or self._app)(scope, limited_receive, guarded_send)
        except Exception:
            _log.exception("a request failed: %s %r", scope["method"], scope["path"])
            if started:
                raise
            problem = Refused("failed", "an unexpected error occurred on the server")
            await error_response(problem, 500)(scope, receive, guarded_send)

    def _refusal(self, scope: Scope, headers: Headers) -> Response | None:
        if not self._is_ours(headers.get("host", "")):
            text = "unknown host name: start the server with --name to allow it"
            return error_response(Refused("forbidden", text))
        if (response := self._check_token(scope, headers)) is not None:
            return response
        if scope["method"] in _WRITES and not _is_own_page(headers):
            text = "requests from other sites are not allowed"
            return error_response(Refused("forbidden", text))
        if scope["method"] == "POST":
            length = headers.get("content-length", "0")
            if not (length.isascii() and length.isdigit()) or int(length[:12]) > self._body:
                text = f"a request may have {self._body:,} bytes"
                return error_response(Refused("too_large", text))
        return None

    def _is_ours(self, host: str) -> bool:
        # Starlette's TrustedHostMiddleware cannot accept any IP address but few names
        try:
            parts = urlsplit(f"//{host}")
            name = (parts.hostname or "").lower()
            if parts.netloc != host or parts.username is not None or parts.port == 0:
                return False  # more than a name and a port
            # unlike a name, an IP address cannot be made to point to this machine
            return name in self._names or (self._any_address and bool(ipaddress.ip_address(name)))
        except ValueError:
            return False

    def _check_token(self, scope: Scope, headers: Headers) -> Response | None:
        """A response if the token is missing, or if the address has it; None if it is valid."""
        if self._token is None:
            return None
        # the cookies of a host are shared by its ports
        cookie = f"gstarx-{(scope.get('server') or ('', 0))[1]}"
        given = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0].encode()
        if scope["path"] == "/" and scope["method"] == "GET" and self._matches(given):
            response = RedirectResponse("/", 303)
            # quoted: cookies allow neither spaces nor letters beyond ASCII
            quoted = quote(self._token, safe="")
            response.set_cookie(cookie, quoted, httponly=True, samesite="strict")
            return response
        scheme, _, bearer = headers.get("authorization", "").partition(" ")
        # the raw bytes, which are UTF-8 if somebody typed the token
        if scheme.lower() == "bearer" and self._matches(bearer.strip().encode("latin-1")):
            return None
        if self._matches(unquote(Request(scope).cookies.get(cookie, "")).encode()):
            return None
        text = "open the address that the server printed, or send its token as a bearer token"
        if not scope["path"].startswith("/api/"):
            return PlainTextResponse(text + "\n", 401, {"WWW-Authenticate": "Bearer"})
        return error_response(Refused("unauthorized", text))

    def _matches(self, given: bytes) -> bool:
        assert self._token is not None
        return hmac.compare_digest(given, self._token.encode())


def error_response(problem: Refused, status: int | None = None) -> JSONResponse:
    """The response of a request that is refused."""
    status, headers = status or problem.status, {}
    if status in (429, 503):
        headers["Retry-After"] = "2"
    if status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": problem.as_dict()}, status, headers)


def _is_own_page(headers: Headers) -> bool:
    """Whether a write comes from our page, or from a program other than a browser."""
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        return False
    origin = headers.get("origin")
    try:
        return origin is None or urlsplit(origin).netloc.lower() == headers.get("host", "").lower()
    except ValueError:
        return False


class IdleProtocol(H11Protocol):
    """HTTP that closes incomplete requests, and the idlest of too many connections.

    Otherwise, a client without a token could hold all connections that the system allows, with
    requests that are never completed or without any request. uvicorn's ``limit_concurrency`` counts
    idle connections and refuses every new one; here, one too many replaces one that is idle.
    """

    _request_timer: asyncio.TimerHandle | None = None
    _response_timer: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        limit, self.limit_concurrency = self.limit_concurrency, None
        self._idle_since = self.loop.time()
        self._start_request_timer()
        if limit is not None and len(self.connections) > limit:
            idle = [
                other
                for other in self.connections
                if isinstance(other, IdleProtocol) and other is not self and not other._is_busy
            ]
            # preferably one that has not sent a request
            order = [(one._request_timer is None, one._idle_since) for one in idle]
            (idle[order.index(min(order))] if idle else self)._abort()

    def data_received(self, data: bytes) -> None:
        """Keep waiting unless this completes a request; bytes that trickle in are no reason to."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._start_request_timer()
        elif self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def on_response_complete(self) -> None:
        """Be idle from now on."""
        self._idle_since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for the client to read the response."""
        super().pause_writing()
        if self._response_timer is None:
            self._response_timer = self.loop.call_later(CONNECTION_TIMEOUT, self._abort)

    def resume_writing(self) -> None:
        """Continue: the client has read what was written."""
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        for timer in (self._request_timer, self._response_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    @property
    def _is_busy(self) -> bool:
        """Whether a complete request is being answered."""
        cycle = self.cycle
        return self._request_timer is None and bool(cycle) and not cycle.response_complete

    def _abort(self) -> None:
        # at once: more connections may come before connection_lost is called
        self.connections.discard(self)
        self.transport.abort()

    def _start_request_timer(self) -> None:
        if self._request_timer is None:
            self._request_timer = self.loop.call_later(CONNECTION_TIMEOUT, self.transport.close)


class ModelRefused(ValueError):
    """A requested model cannot be used."""


def listening_socket(host: str, port: int) -> socket.socket:
    """A listening socket, or an OSError that says what prevents it."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with an explicit protocol, asyncio sends small responses at once; otherwise they wait 40 ms
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        text = f"cannot listen on {host} port {port}: {error.strerror}"
        if error.errno == errno.EADDRINUSE:
            text = f"port {port} is taken: choose another with --port, or 0 for any free port"
        raise OSError(text) from error
    return listening


def address(settings: Settings, port: int) -> str:
    """The address to open in a browser.

    >>> address(Settings(host="192.168.1.5", token="a&b secret"), 80)
    'http://192.168.1.5:80/?token=a%26b%20secret'
    """
    # the host name may resolve to an address other than the one that the server listens on
    host = socket.gethostname() if settings.host in _ALL_ADDRESSES else settings.host
    shown = f"[{host}]" if ":" in host else host
    token = f"?token={quote(settings.token, safe='')}" if settings.token is not None else ""
    return f"http://{shown}:{port}/{token}"


def serve(settings: Settings, started: Callable[[str], None] = lambda _: None) -> None:
    """Serve until interrupted; ``started`` is called with the address.

    A required model is loaded and asked once before that.

    Raises
    ------
    ModelRefused
        If a required model cannot be used.
    ValueError
        If other machines can connect and no token is set.
    OSError
        If it cannot listen on the address.
    """
    if settings.token is None and not is_loopback(settings.host):
        raise ValueError(f"other machines can connect to {settings.host}: set a token")
    listening = listening_socket(settings.host, settings.port)
    required = any(model.required for model in settings.models)

    def announce() -> None:
        started(address(settings, listening.getsockname()[1]))

    try:
        if not required:
            announce()
        from gstarx_explorer.app import create_app  # which imports this module

        app = create_app(settings)
        create_server(app, settings, listening, announce if required else None).run([listening])
        if app.state.service.refused is not None:
            raise ModelRefused(app.state.service.refused)
    finally:
        listening.close()


def create_server(
    app: FastAPI,
    settings: Settings,
    listening: socket.socket,
    loaded: Callable[[], None] | None = None,
) -> uvicorn.Server:
    """The uvicorn server that answers the connections to a socket.

    With ``loaded``, it calls that when the models are loaded, and ends if one of them is refused.
    """

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if self.should_exit:
                return  # shutting down takes a moment, and Ctrl-C was pressed again
            app.state.service.job_queue.close()  # open event streams would delay the exit
            super().handle_exit(sig, frame)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            listening.listen(_BACKLOG)  # uvicorn's backlog is what it accepts at once
            if loaded is not None:
                self._checking = asyncio.create_task(self._check(loaded))

        async def _check(self, loaded: Callable[[], None]) -> None:
            await app.state.service.loaded.wait()
            if app.state.service.refused is None:
                loaded()
            else:
                self.should_exit = True

    return Server(
        uvicorn.Config(
            app,
            http=IdleProtocol,
            ws="none",
            loop="asyncio",
            log_level="error",  # strangers can cause as many warnings as they like
            access_log=False,
            server_header=False,
            backlog=_ACCEPTED_AT_ONCE,
            h11_max_incomplete_event_size=_HEADER_BYTES,
            limit_concurrency=_max_connections(settings),
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
        )
    )


def _max_connections(settings: Settings) -> int:
    """The connections of the settings, or fewer if the system does not allow enough open files."""
    connections = settings.limits.connections
    try:
        import resource
    except ImportError:  # not on Windows
        return connections
    other = _FILES + _FILES_PER_WORKER * (settings.workers + 1)
    soft_limit, hard_limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    needed = connections + other
    if hard_limit != resource.RLIM_INFINITY:
        needed = min(needed, hard_limit)
    if soft_limit != resource.RLIM_INFINITY and soft_limit < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard_limit))
    return max(1, min(connections, needed - other))
