"""Progress bars: of notebooks in notebooks, of text elsewhere."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

with warnings.catch_warnings():
    # a notebook without ipywidgets shows bars of text, which needs no warning
    warnings.simplefilter("ignore")
    from tqdm.auto import tqdm

from gstarx._internal.arguments import as_flag

__all__ = ["GrowingBar", "check_progress", "hide_bars", "no_bars", "tqdm"]

#: Seconds after which work that nobody asked to follow shows a bar.
_PATIENCE = 2.0
_IN_NOTEBOOK = any(base.__module__ == "tqdm.notebook" for base in tqdm.__mro__)
_hidden: ContextVar[bool] = ContextVar("gstarx_hidden_bars", default=False)


def check_progress(progress: Any) -> bool | None:
    """A value for ``progress``, or an error that lists the valid ones."""
    return None if progress is None else as_flag(progress, name="progress")


def hide_bars() -> None:
    """Show no bar from now on that was not asked for by ``True``."""
    _hidden.set(True)


@contextmanager
def no_bars() -> Iterator[None]:
    """Show no bar inside this block that was not asked for by ``True``."""
    token = _hidden.set(True)
    try:
        yield
    finally:
        _hidden.reset(token)


class GrowingBar:
    """A bar over work whose amount becomes known little by little.

    Parameters
    ----------
    show
        ``True``, ``False``, or ``None`` for a bar that appears after two seconds, if somebody is
        there to see it: on a terminal or in a notebook, and not beside another bar.
    description, unit
        What is counted.
    """

    def __init__(self, show: bool | None, description: str, unit: str) -> None:
        self._show, self._description, self._unit = show, description, unit
        self._bar: Any = None
        self._total = self._done = 0

    def expect(self, total: int) -> None:
        """Say that there will be at most so many steps in all."""
        self._total = max(self._total, total)

    def begin(self, steps: int) -> None:
        """Say that so many steps come now."""
        self._total = max(self._total, self._done + steps)
        if self._bar is None and self._wanted():
            late = self._show is None
            self._bar = tqdm(
                total=self._total,
                desc=self._description,
                unit=self._unit,
                delay=_PATIENCE if late else 0,
                leave=not late,
            )
        if self._bar is not None:
            self._bar.total = self._total

    def update(self, steps: int) -> None:
        """Say that so many steps are done."""
        self._done += steps
        if self._bar is not None:
            self._bar.update(steps)

    def close(self) -> None:
        """Say that nothing more comes."""
        if self._bar is not None:
            self._bar.total = self._done
            self._bar.close()
            self._bar = None

    def _wanted(self) -> bool:
        if self._show is not None:
            return self._show
        return not _hidden.get() and (sys.stderr.isatty() or _IN_NOTEBOOK)
