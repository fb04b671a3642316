"""Listening on a port until somebody presses Ctrl-C."""

from __future__ import annotations

import errno
import socket
from collections.abc import Callable
from types import FrameType
from typing import TYPE_CHECKING
from urllib.parse import quote

from gstarx.web.security import is_loopback
from gstarx.web.settings import Settings

if TYPE_CHECKING:
    import uvicorn
    from fastapi import FastAPI

#: Seconds that connections have to end after Ctrl-C.
_GRACE = 2
#: Hosts that stand for all addresses of this machine.
_EVERYWHERE = ("", "0.0.0.0", "::")
#: Seconds for which a connection without requests stays open.
_KEPT_OPEN = 15
#: Connections that may wait to be taken.
_WAITING = 512
#: Connections that are taken at once. They and the next ones are there before those are gone that
#: have to make room for them.
_AT_ONCE = 16
#: Files that are open whatever the number of connections, and those of each worker.
_FILES, _FILES_OF_WORKER = 48 + 4 * _AT_ONCE, 4


class PortTaken(OSError):
    """Another program listens there."""


def listening_socket(host: str, port: int) -> socket.socket:
    """A socket that listens, or an error that says what is in the way.

    Raises
    ------
    PortTaken
        When another program listens there.
    OSError
        When this machine has no such address, or the port is not for everybody.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # with the protocol named, asyncio sends small answers at once; else each waits 40 ms
    found = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((host, port))
        found.listen(_WAITING)
    except OSError as error:
        found.close()
        if error.errno == errno.EADDRINUSE:
            text = f"port {port} is taken: choose another by --port, or 0 for any that is free"
            raise PortTaken(text) from error
        raise OSError(f"cannot listen on {host} port {port}: {error.strerror}") from error
    return found


def address(settings: Settings, port: int) -> str:
    """What to type into a browser.

    >>> address(Settings(host="192.168.1.5", token="a&b secret"), 80)
    'http://192.168.1.5:80/?token=a%26b%20secret'
    """
    # only where it listens on all addresses: another one of the name's could lead elsewhere
    host = socket.gethostname() if settings.host in _EVERYWHERE else settings.host
    shown = f"[{host}]" if ":" in host else host
    token = f"?token={quote(settings.token, safe='')}" if settings.token is not None else ""
    return f"http://{shown}:{port}/{token}"


def serve(settings: Settings, started: Callable[[str], None] = lambda _: None) -> None:
    """Serve until interrupted; ``started`` is told the address.

    Raises
    ------
    ValueError
        When others can connect and no token is set.
    OSError
        When it cannot listen there.
    """
    if settings.token is None and not is_loopback(settings.host):
        raise ValueError(f"{settings.host} can be reached by others: a token is needed")
    listening = listening_socket(settings.host, settings.port)
    try:
        started(address(settings, listening.getsockname()[1]))
        _run(settings, listening)
    finally:
        listening.close()


def _run(settings: Settings, listening: socket.socket) -> None:
    # only now: the address is printed, and connections wait in line meanwhile
    from gstarx.web.app import create_app
    from gstarx.web.middleware import repeats_counted

    server = server_of(create_app(settings), settings, listening)
    with repeats_counted():
        server.run([listening])


def server_of(app: FastAPI, settings: Settings, listening: socket.socket) -> uvicorn.Server:
    """What answers the connections that come to a socket."""
    import uvicorn

    from gstarx.web.middleware import Impatient

    class Server(uvicorn.Server):
        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if self.should_exit:
                return  # it takes a moment, and somebody presses Ctrl-C again
            app.state.service.book.close()  # who listens to a job would keep us waiting
            super().handle_exit(sig, frame)

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            listening.listen(_WAITING)  # uvicorn lets only as many wait as are taken at once

    config = uvicorn.Config(
        app,
        http=Impatient,
        ws="none",
        loop="asyncio",
        log_level="warning",
        access_log=False,
        server_header=False,
        backlog=_AT_ONCE,
        limit_concurrency=_most_connections(settings),
        timeout_keep_alive=_KEPT_OPEN,
        timeout_graceful_shutdown=_GRACE,
    )
    return Server(config)


def _most_connections(settings: Settings) -> int:
    """As many connections as the settings say, or fewer where the system has no files for them."""
    most = settings.limits.connections
    try:
        import resource
    except ImportError:  # not on Windows
        return most
    other = _FILES + _FILES_OF_WORKER * (settings.workers + 1)
    files, limit = resource.getrlimit(resource.RLIMIT_NOFILE)
    enough = most + other if limit == resource.RLIM_INFINITY else min(most + other, limit)
    if files != resource.RLIM_INFINITY and files < enough:
        resource.setrlimit(resource.RLIMIT_NOFILE, (enough, limit))
    return max(1, min(most, enough - other))
