"""The command line interface ``gstarx``; every command calls the other packages.

Heavy modules are imported only when a command needs them, so help and completion are fast.
"""

from __future__ import annotations

from collections.abc import Sequence

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
    from gstarx.cli.console import any_text, complete_output

    code: object = 0
    with any_text(), complete_output() as incomplete:
        try:
            app(args=None if arguments is None else list(arguments), prog_name="gstarx")
        except SystemExit as end:
            code = end.code
    return 1 if incomplete else code if isinstance(code, int) else int(code is not None)
