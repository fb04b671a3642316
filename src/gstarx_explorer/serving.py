"""Runs the server on a port until it is interrupted with Ctrl-C."""

from __future__ import annotations

import asyncio
import errno
import socket
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import quote

from gstarx_explorer.settings import Settings, is_loopback

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

#: Seconds that connections have to end after Ctrl-C.
_SHUTDOWN_SECONDS = 2
#: Hosts that stand for all addresses of this machine.
_ALL_ADDRESSES = ("", "0.0.0.0", "::")
#: Seconds for which a connection without requests stays open.
_KEEP_ALIVE_SECONDS = 15
#: Connections that may wait to be accepted.
_BACKLOG = 512
#: Connections that are accepted at once. They and the next ones are open before the connections
#: that they replace are closed.
_ACCEPTED_AT_ONCE = 16
#: Files that are open regardless of the number of connections, and those of each worker.
_FILES, _FILES_PER_WORKER = 48 + 4 * _ACCEPTED_AT_ONCE, 4


class PortTaken(OSError):
    """Another program listens on the port."""


class ModelRefused(ValueError):
    """A requested model cannot be used."""


def listening_socket(host: str, port: int) -> socket.socket:
    """A listening socket, or an error that says what prevents it.

    Raises
    ------
    PortTaken
        If another program listens on the port.
    OSError
        If this machine has no such address, or the port needs special permissions.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with an explicit protocol, asyncio sends small responses at once; otherwise they wait 40 ms
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen(_BACKLOG)
    except OSError as error:
        listening.close()
        if error.errno == errno.EADDRINUSE:
            text = f"port {port} is taken: choose another with --port, or 0 for any free port"
            raise PortTaken(text) from error
        raise OSError(f"cannot listen on {host} port {port}: {error.strerror}") from error
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
        # imported only now: the address is printed first, and connections wait in the meantime
        from gstarx_explorer.app import create_app
        from gstarx_explorer.middleware import counted_repeats

        app = create_app(settings)
        server = create_server(app, settings, listening, announce if required else None)
        with counted_repeats():
            server.run([listening])
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
    import uvicorn

    from gstarx_explorer.middleware import TimeoutProtocol

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

    config = uvicorn.Config(
        app,
        http=TimeoutProtocol,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=_ACCEPTED_AT_ONCE,
        limit_concurrency=_max_connections(settings),
        timeout_keep_alive=_KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=_SHUTDOWN_SECONDS,
    )
    return Server(config)


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
