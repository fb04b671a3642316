"""Stopping what a worker does from another thread, in the middle of it."""

from __future__ import annotations

import _thread
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Stopped(BaseException):
    """Somebody wants no more of this; not an Exception, so that nothing on the way swallows it."""


class OutOfTime(BaseException):
    """The time for this part is over."""


class Interrupter:
    """Interrupts the main thread, as Ctrl-C does, where it says that it may be.

    The handler of SIGINT has to be :meth:`rung`.
    """

    def __init__(self) -> None:
        self._at: int | None = None
        self._unwanted: int | None = None
        self._part: object | None = None
        self._over: object | None = None

    def stop(self, number: int) -> None:
        """Stop the work of that number, wherever it is; from any thread."""
        self._unwanted = number
        _thread.interrupt_main(signal.SIGINT)

    def rung(self, *_: Any) -> None:
        """Raise in the main thread if it is at something that is not wanted any more."""
        if self._at is not None and self._unwanted == self._at:
            self._unwanted = None
            raise Stopped
        if self._part is not None and self._over is self._part:
            self._over = None
            raise OutOfTime

    @contextmanager
    def heard_by(self, number: int) -> Iterator[None]:
        """Inside, :meth:`stop` with this number raises :class:`Stopped`."""
        try:
            self._at = number
            self.rung()  # it may have come before us
            yield
        finally:
            self._at = None

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Inside, :class:`OutOfTime` is raised after so many seconds; caught here."""
        part = object()
        timer = threading.Timer(seconds, self._end, args=(part,))
        timer.daemon = True
        try:
            self._part = part
            timer.start()
            yield
        except OutOfTime:
            pass
        finally:
            self._part = None
            timer.cancel()

    def _end(self, part: object) -> None:
        self._over = part
        _thread.interrupt_main(signal.SIGINT)
