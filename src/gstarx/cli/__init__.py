"""The command line interface ``gstarx``; every command calls the other packages.

Heavy modules are imported only when a command needs them, so help and completion are fast.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command.

    Parameters
    ----------
    arguments
        What follows ``gstarx`` on the command line; by default the arguments of this process.

    Returns
    -------
    int
        0 on success, 1 when something failed, 2 when the command was not understood, 130 after
        Ctrl-C.

    Examples
    --------
    >>> main(["version"])
    gstarx ...
    0
    """
    from gstarx.cli.app import app

    formatted, warnings.formatwarning = warnings.formatwarning, _in_words
    try:
        app(args=None if arguments is None else list(arguments), prog_name="gstarx")
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    finally:
        warnings.formatwarning = formatted
    return 0


def _in_words(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> str:
    """A warning without the line of code that it came from."""
    return f"warning: {message}\n"
