"""Connections on which a request never comes to its end."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

#: Seconds that a request may take to arrive, from the connection or its first byte on.
PATIENCE = 20.0


class Impatient(H11Protocol):
    """HTTP that hangs up on half a request.

    Otherwise somebody without a token could hold all connections that the system allows, by
    requests that are begun and never ended.
    """

    _deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        self._wait()

    def data_received(self, data: bytes) -> None:
        """Go on waiting where this is not the end of a request."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._wait()
        else:
            self._arrived()

    def connection_lost(self, exc: Exception | None) -> None:
        """Wait no more."""
        self._arrived()
        super().connection_lost(exc)

    def _wait(self) -> None:
        # bytes that trickle in do not buy more time
        if self._deadline is None:
            self._deadline = self.loop.call_later(PATIENCE, self.transport.close)

    def _arrived(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None
