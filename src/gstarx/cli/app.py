"""All commands in one place, and what happens when one of them fails."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib import import_module
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from gstarx._internal.messages import escaped, shortened
from gstarx._version import __version__
from gstarx.cli import explain_command
from gstarx.cli.console import CommandError, note, of_stdout, out, print_json, table
from gstarx.cli.options import examples, help_of, with_options
from gstarx.registry import commands, resolve

#: Packages whose versions can change a number or a picture.
_PACKAGES = ("torch", "torch_geometric", "numpy", "numba", "rdkit", "spacy", "transformers", "ray")


class _Commands(TyperGroup):
    """Commands whose errors are reported in one line."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command; an error ends it without a traceback."""
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except typer.TyperException as error:
            error.message = escaped(shortened(error.message))
            raise
        except Exception as error:
            if of_stdout(error) or ctx.params.get("traceback"):
                raise
            note(f"error: {shortened(_message(error))}")
            code = error.exit_code if isinstance(error, CommandError) else 1
            raise typer.Exit(code) from error


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    help="Explain the predictions of graph neural networks, and evaluate the explanations.",
    epilog=examples(
        "gstarx demo",
        "gstarx explain nitro 15",
        'gstarx explain --smiles "CC(=O)Nc1ccc([N+](=O)[O-])cc1" --draw molecule.svg',
        "gstarx compare nitro --split test --limit 10 -e gstarx,subgraphx,random",
    ),
)


def version(as_json: bool = False) -> None:
    """The versions of GStarX and of the packages it depends on."""
    versions: dict[str, str | None] = {
        "gstarx": __version__,
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            versions[package] = version_of(package)
        except PackageNotFoundError:
            versions[package] = None
    if as_json:
        print_json(versions)
        return
    shown = table("", "", left=2)
    shown.show_header = False
    for name, number in versions.items():
        shown.add_row(name, number or "not installed")
    out().print(shown)


def _add(name: str, command: Callable[..., None], epilog: str) -> None:
    app.command(name, help=help_of(command), epilog=epilog)(with_options(command))


_add("explain", explain_command.explain, explain_command.EXAMPLES)
_add("version", version, examples("gstarx version", "gstarx version --json"))
for _name, _home in commands().items():
    _command = resolve(_home)
    if isinstance(_command, typer.Typer):
        app.add_typer(_command, name=_name)
    else:
        _add(_name, _command, import_module(_home.partition(":")[0]).EXAMPLES)


@app.callback()
def _settings(
    ctx: typer.Context,
    settings: Annotated[
        Path | None,
        typer.Option(
            help="A settings file; by default gstarx.toml, if it exists.", show_default=False
        ),
    ] = None,
    traceback: Annotated[
        bool, typer.Option("--traceback", help="Show where in the code an error occurred.")
    ] = False,
) -> None:
    """Read the settings, which become the defaults of the options with the same names."""
    if settings is None and not Path("gstarx.toml").is_file():
        return
    from gstarx.cli.methods import read_settings

    loaded = read_settings(settings)
    ctx.obj = loaded
    ctx.default_map = _defaults_of(ctx.command, loaded.defaults())


def _defaults_of(command: Any, defaults: dict[str, Any]) -> dict[str, Any]:
    """The defaults of a command, or for a group those of each of its commands by name."""
    subcommands = getattr(command, "commands", None)
    if subcommands is not None:
        return {name: _defaults_of(each, defaults) for name, each in subcommands.items()}
    parameters = {parameter.name: parameter for parameter in command.params}
    return {
        # where a command takes several explainers, the settings name one of the list
        name: [value] if name == "explainer" and parameters[name].multiple else value
        for name, value in defaults.items()
        if name in parameters
    }


def _message(error: Exception) -> str:
    """The message of an error, with its class where the error was not expected."""
    if type(error).__name__ == "ValidationError" and hasattr(error, "errors"):
        from gstarx.cli.methods import first_problem

        return first_problem(error)  # type: ignore[arg-type]
    message = "\n".join([str(error), *getattr(error, "__notes__", ())])
    expected = isinstance(error, CommandError | OSError | ValueError | ImportError)
    if str(error) and (expected or type(error).__module__.startswith("gstarx")):
        return message
    return f"{type(error).__name__}: {message}; for the traceback use gstarx --traceback ..."
