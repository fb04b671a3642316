"""The demo, ``python -m gstarx.demo``; the same as ``gstarx demo``."""

from __future__ import annotations

from collections.abc import Sequence

from gstarx.cli import main as command

__all__ = ["main"]


def main(arguments: Sequence[str] = ()) -> int:
    """Explain two networks with GStarX and two other methods, and write a page for a browser.

    Parameters
    ----------
    arguments
        Options of ``gstarx demo``.

    Returns
    -------
    int
        The exit code, 0 when the page is there.
    """
    return command(["demo", *arguments])
