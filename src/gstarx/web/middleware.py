"""Strict JSON, connections that time out, and a log that stays small."""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol, RequestResponseCycle

_DEEPEST = 20
#: Seconds that a request may take to arrive, from the connection or its first byte on, and that
#: nothing of an answer may be taken.
PATIENCE = 20.0
#: Seconds for which a message is not said again.
_PAUSE = 60.0
#: Messages that are told apart.
_KNOWN = 500
#: Whoever speaks in the server's process.
_LOGGERS = ("gstarx.web", "uvicorn.error", "asyncio")


def strict_json(text: bytes) -> Any:
    """Parse JSON in UTF-8; duplicate names, NaN and infinities are errors.

    Raises
    ------
    json.JSONDecodeError
        When it is anything else.

    Examples
    --------
    >>> strict_json(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> strict_json(b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    json.decoder.JSONDecodeError: NaN is no number of JSON: line 1 column 1 (char 0)
    """
    try:
        decoded = text.decode("utf-8")
        if _depth(decoded) > _DEEPEST:
            raise ValueError(f"it is nested deeper than {_DEEPEST}")
        return json.loads(decoded, parse_constant=_no_constant, object_pairs_hook=_distinct)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from error


def _depth(text: str) -> int:
    """At least how deep brackets are nested; those inside strings count, which does no harm."""
    deepest = depth = 0
    for letter in text:
        if letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth = max(0, depth - 1)
    return deepest


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found


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


class Counted(logging.Filter):
    """Lets a message pass once a minute, with how often it was left out before.

    Messages are the same that differ in numbers, names and addresses only: their template and the
    place of their error say which they are.
    """

    def __init__(self) -> None:
        super().__init__()
        self._told: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether it is to be said."""
        key, now = _kind(record), time.monotonic()
        told, left_out = self._told.get(key, (now - _PAUSE, 0))
        if now - told < _PAUSE:
            self._told[key] = (told, left_out + 1)
            return False
        if left_out:
            record.msg, record.args = f"{record.getMessage()} ({left_out:,} more before)", ()
        if len(self._told) >= _KNOWN:
            self._told.clear()
        self._told[key] = (now, 0)
        return True

    def rest(self) -> Iterator[str]:
        """What was left out and not counted aloud yet."""
        for (_, words, *_), (_, left_out) in self._told.items():
            if left_out:
                yield f"{left_out:,} more: {words}"


@contextmanager
def repeats_counted() -> Iterator[None]:
    """Inside, whatever the server's process logs goes through :class:`Counted`."""
    counted = Counted()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(counted)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(counted)
        for words in counted.rest():
            loggers[0].warning("%s", words)


def _kind(record: logging.LogRecord) -> tuple[object, ...]:
    error = record.exc_info[1] if record.exc_info else None
    place = error.__traceback__ if error is not None else None
    while place is not None and place.tb_next is not None:
        place = place.tb_next
    where = (place.tb_frame.f_code.co_filename, place.tb_lineno) if place is not None else None
    # asyncio has everything in its template; the first line says what it is about
    return record.name, str(record.msg).partition("\n")[0], type(error), where
