"""Strict JSON, timeouts of connections, and a log that does not repeat itself."""

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

_MAX_DEPTH = 20
#: Seconds that a request may take to arrive, counted from the connection or its first byte, and
#: that a client may go without reading any of the response.
CONNECTION_TIMEOUT = 20.0
#: Seconds for which a message is not logged again.
_REPEAT_SECONDS = 60.0
#: Different messages that are remembered.
_MAX_MESSAGES = 500
#: The loggers of the server's process.
_LOGGERS = ("gstarx_explorer", "uvicorn.error", "asyncio")


def strict_json(text: bytes) -> Any:
    """Parse JSON in UTF-8; duplicate names, NaN and infinity are errors.

    Raises
    ------
    json.JSONDecodeError
        If the text is anything else.

    Examples
    --------
    >>> strict_json(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> strict_json(b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    json.decoder.JSONDecodeError: NaN is not valid JSON: line 1 column 1 (char 0)
    """
    try:
        decoded = text.decode("utf-8")
        if _depth(decoded) > _MAX_DEPTH:
            raise ValueError(f"it is nested deeper than {_MAX_DEPTH}")
        return json.loads(decoded, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from error


def _depth(text: str) -> int:
    """An upper bound on the nesting of brackets; those inside strings count too."""
    deepest = depth = 0
    for letter in text:
        if letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth = max(0, depth - 1)
    return deepest


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("an object has a name twice")
    return content


class TimeoutProtocol(H11Protocol):
    """HTTP that closes incomplete requests, and the idlest of too many connections.

    Otherwise, a client without a token could hold all connections that the system allows, with
    requests that are never completed or without any request. There are at most as many
    connections as ``limit_concurrency``; one more replaces one that is idle.
    """

    _request_timer: asyncio.TimerHandle | None = None
    _response_timer: asyncio.TimerHandle | None = None
    _idle_since = 0.0

    def connection_made(self, transport: Any) -> None:
        """Wait for the first request."""
        super().connection_made(transport)
        # we close the idlest connection; uvicorn would refuse every new one
        limit, self.limit_concurrency = self.limit_concurrency, None
        self._idle_since = self.loop.time()
        self._start_request_timer()
        if limit is not None and len(self.connections) > limit:
            self._close_idlest()

    def data_received(self, data: bytes) -> None:
        """Keep waiting unless this completes a request."""
        super().data_received(data)
        if self.conn.their_state in (h11.IDLE, h11.SEND_BODY):
            self._start_request_timer()
        else:
            self._cancel_request_timer()

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
        self._cancel_response_timer()
        super().resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Cancel the timers."""
        self._cancel_request_timer()
        self._cancel_response_timer()
        super().connection_lost(exc)

    def _close_idlest(self) -> None:
        """Close the longest idle connection, preferably one that has not sent a request."""
        idle = [
            other
            for other in self.connections
            if isinstance(other, TimeoutProtocol) and other is not self and not other._is_busy
        ]
        idlest = min(
            idle, key=lambda one: (one._request_timer is None, one._idle_since), default=self
        )
        idlest._abort()

    @property
    def _is_busy(self) -> bool:
        """Whether a complete request is being answered."""
        cycle: RequestResponseCycle | None = self.cycle
        return self._request_timer is None and cycle is not None and not cycle.response_complete

    def _abort(self) -> None:
        # at once: more connections may come before connection_lost is called
        self.connections.discard(self)
        self.transport.abort()

    def _start_request_timer(self) -> None:
        # bytes that trickle in do not extend the timeout
        if self._request_timer is None:
            self._request_timer = self.loop.call_later(CONNECTION_TIMEOUT, self.transport.close)

    def _cancel_request_timer(self) -> None:
        if self._request_timer is not None:
            self._request_timer.cancel()
            self._request_timer = None

    def _cancel_response_timer(self) -> None:
        if self._response_timer is not None:
            self._response_timer.cancel()
            self._response_timer = None


class RepeatFilter(logging.Filter):
    """Logs a message at most once a minute, with the number of repeats since then.

    Messages that differ only in numbers, names and addresses count as repeats: they are compared
    by their template and the place of their error.
    """

    def __init__(self) -> None:
        super().__init__()
        #: By message, when it was last logged, and its repeats since then.
        self._repeats: dict[tuple[object, ...], tuple[float, int]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the record."""
        key, now = _message_key(record), time.monotonic()
        last_logged, repeats = self._repeats.get(key, (now - _REPEAT_SECONDS, 0))
        if now - last_logged < _REPEAT_SECONDS:
            self._repeats[key] = (last_logged, repeats + 1)
            return False
        if repeats:
            record.msg, record.args = f"{record.getMessage()} ({repeats:,} more before)", ()
        if len(self._repeats) >= _MAX_MESSAGES:
            self._repeats.clear()
        self._repeats[key] = (now, 0)
        return True

    def unreported(self) -> Iterator[str]:
        """Repeats that have not been logged yet."""
        for (_, message, *_), (_, repeats) in self._repeats.items():
            if repeats:
                yield f"{repeats:,} more: {message}"


@contextmanager
def counted_repeats() -> Iterator[None]:
    """Inside the block, everything that the server logs passes a :class:`RepeatFilter`."""
    repeat_filter = RepeatFilter()
    loggers = [logging.getLogger(name) for name in _LOGGERS]
    for logger in loggers:
        logger.addFilter(repeat_filter)
    try:
        yield
    finally:
        for logger in loggers:
            logger.removeFilter(repeat_filter)
        for message in repeat_filter.unreported():
            loggers[0].warning("%s", message)


def _message_key(record: logging.LogRecord) -> tuple[object, ...]:
    error = record.exc_info[1] if record.exc_info else None
    frame = error.__traceback__ if error is not None else None
    while frame is not None and frame.tb_next is not None:
        frame = frame.tb_next
    place = (frame.tb_frame.f_code.co_filename, frame.tb_lineno) if frame is not None else None
    # asyncio puts everything into the template; its first line is the message
    return record.name, str(record.msg).partition("\n")[0], type(error), place
