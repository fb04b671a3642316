"""Packages that only some parts need, imported where they are used."""

from __future__ import annotations

from importlib import import_module
from typing import Any


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
        import_module(package)
    except ModuleNotFoundError as error:
        if error.name != package:
            raise
        raise ImportError(
            f"this needs {package}: pip install 'gstarx[{extra}]'", name=package
        ) from error
    return import_module(module)
