"""What is imported where it is used: packages that only some parts need, and a user's own code."""

from __future__ import annotations

import importlib
import inspect
import sys
from pathlib import Path
from typing import Any

from gstarx._internal.messages import in_one_line, quoted, unknown


def require(module: str, *, extra: str) -> Any:
    """Import a module of an optional dependency, or say how to install it.

    Parameters
    ----------
    module
        Dotted name of the module, as in ``"rdkit.Chem"``.
    extra
        The extra of this package that installs it.

    Returns
    -------
    module
        What ``importlib.import_module`` returns.

    Raises
    ------
    ImportError
        When the package is not installed. A package that is installed and fails to import raises
        its own error.

    Examples
    --------
    >>> require("json", extra="none").dumps([1])
    '[1]'
    >>> require("no_such_package.part", extra="molecules")
    Traceback (most recent call last):
    ...
    ImportError: this needs no_such_package: pip install 'gstarx[molecules]'
    """
    package = module.partition(".")[0]
    try:
        importlib.import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(
            f"this needs {package}: pip install 'gstarx[{extra}]'", name=package
        ) from error
    return importlib.import_module(module)


class FactoryError(ValueError):
    """A factory cannot be imported, or fails."""


def call_factory(reference: str, option: str) -> Any:
    """Import ``module:factory`` and call it.

    The working directory counts as a place to import from, as for ``python -m``.

    Parameters
    ----------
    reference
        ``module:factory``.
    option
        The option that named it, for messages.

    Raises
    ------
    FactoryError
        If there is no such function, it needs arguments, or it fails.

    Examples
    --------
    >>> call_factory("builtins:dict", "--model")
    {}
    >>> call_factory("json:dumps", "--model")
    Traceback (most recent call last):
    ...
    gstarx._internal.imports.FactoryError: --model json:dumps: the factory must need no...
    """
    module_name, _, attribute = reference.partition(":")
    working_directory = str(Path.cwd())
    if working_directory not in sys.path:
        sys.path.insert(0, working_directory)
    try:
        factory: Any = importlib.import_module(module_name)
    except Exception as error:
        raise FactoryError(
            f"{option} {reference}: importing {module_name!r} failed: {in_one_line(error)}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(factory, part):
            names = [name for name in dir(factory) if not name.startswith("_")]
            message = unknown(f"name in {module_name!r}", part, names[:30])
            raise FactoryError(f"{option} {reference}: {message}")
        factory = getattr(factory, part)
    if not callable(factory):
        raise FactoryError(f"{option} {reference}: it must be a function (got {quoted(factory)})")
    if needed := _required(factory):
        raise FactoryError(
            f"{option} {reference}: the factory must need no arguments (it needs "
            f"{', '.join(needed)}): wrap it in a function that supplies them"
        )
    try:
        return factory()
    except Exception as error:
        raise FactoryError(
            f"{option} {reference}: the factory failed: {in_one_line(error)}"
        ) from error


def _required(factory: Any) -> list[str]:
    """Names of the arguments without which the factory cannot be called."""
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # a builtin without a signature
        return []
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [
        parameter.name
        for parameter in parameters
        if parameter.default is parameter.empty and parameter.kind not in optional
    ]
