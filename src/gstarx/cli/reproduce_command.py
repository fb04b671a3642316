"""``gstarx reproduce``: the paper's tables and figures."""

from __future__ import annotations

from typing import Any

import typer

from gstarx.cli.options import examples

EXAMPLES = examples("gstarx reproduce --help-all", "gstarx reproduce tables")

#: What follows the command is understood by the experiments, not here.
PASSED_ON: dict[str, Any] = {
    "context_settings": {"allow_extra_args": True, "ignore_unknown_options": True}
}


def reproduce(ctx: typer.Context) -> None:
    """Make the paper's tables and figures again; [b]--help-all[/b] lists them.

    The same as [b]python -m gstarx.experiments[/b].
    """
    from gstarx.experiments.__main__ import main

    arguments = ["--help" if given == "--help-all" else given for given in ctx.args]
    try:
        code = main(arguments or ["--help"])
    except SystemExit as end:  # argparse answers for itself
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    if code:
        raise typer.Exit(code)
