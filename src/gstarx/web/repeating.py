"""A log that stays small: what is said over and over is counted."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager

#: Seconds for which a message is not said again.
_PAUSE = 60.0
#: Messages that are told apart.
_KNOWN = 500
#: Whoever speaks in the server's process.
_LOGGERS = ("gstarx.web", "uvicorn.error", "asyncio")


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
