"""Connections that hold a place and do nothing with it."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

#: Seconds that a request may take to arrive, from the connection or its first byte on, and that
#: nothing of an answer may be taken.
PATIENCE = 20.0


class Impatient(H11Protocol):
    """HTTP that hangs up on half a request, and on the idlest of too many connections.

    Otherwise somebody without a token could hold all connections that the system allows, by
    requests that are begun and never ended or by none at all. There are as many connections as the
    setting ``limit_concurrency`` says; one more takes the place of one that waits.
    """

    _deadline: asyncio.TimerHandle | None = None
    _stuck: asyncio.TimerHandle | None = None
    _since = 0.0

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        # we make room; uvicorn would answer nobody, whoever they are
        most, self.limit_concurrency = self.limit_concurrency, None
        self._since = self.loop.time()
        self._wait()
        if most is not None and len(self.connections) > most:
            self._make_room()

    def data_received(self, data: bytes) -> None:
        """Go on waiting where this is not the end of a request."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._arrived()

    def on_response_complete(self) -> None:
        """Be idle from now on."""
        self._since = self.loop.time()
        super().on_response_complete()

    def pause_writing(self) -> None:
        """Wait for somebody to take what is written."""
        super().pause_writing()
        if self._stuck is None:
            self._stuck = self.loop.call_later(PATIENCE, self._hang_up)

    def resume_writing(self) -> None:
        """It is taken."""
        self._taken()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._arrived()
        self._taken()
        super().connection_lost(exc)

    def _make_room(self) -> None:
        """Hang up on the connection that waits longest: first for a request, then for another."""
        waiting = [
            other
            for other in self.connections
            if isinstance(other, Impatient) and other is not self and not other._is_at_work
        ]
        first = min(waiting, key=lambda one: (one._deadline is None, one._since), default=self)
        first._hang_up()

    @property
    def _is_at_work(self) -> bool:
        """Whether a whole request is being answered."""
        asked: RequestResponseCycle | None = self.cycle
        return self._deadline is None and asked is not None and not asked.response_complete

    def _hang_up(self) -> None:
        self.connections.discard(self)  # many may come before we hear that it is lost
        self.transport.abort()

    def _wait(self) -> None:
        # bytes that trickle in do not buy more time
        if self._deadline is None:
            self._deadline = self.loop.call_later(PATIENCE, self.transport.close)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _taken(self) -> None:
        if self._stuck is not None:
            self._stuck.cancel()
            self._stuck = None
