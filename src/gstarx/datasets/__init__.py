"""The graphs of the paper: `load(name)` reads them from your copy, or lets PyG download them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from gstarx.datasets.collection import GraphDataset
from gstarx.datasets.molecules import load_mutag

__all__ = ["GraphDataset", "load", "names"]

_LOADERS: dict[str, Callable[[Path], GraphDataset]] = {"mutag": load_mutag}


def names() -> tuple[str, ...]:
    """The datasets that :func:`load` knows.

    >>> names()
    ('mutag',)
    """
    return tuple(_LOADERS)


def load(name: str, root: str | os.PathLike[str] | None = None) -> GraphDataset:
    """Load a dataset by name.

    Parameters
    ----------
    name
        One of :func:`names`.
    root
        The directory that holds the data; by default the environment variable ``GSTARX_DATA``, or
        ``~/.cache/gstarx``. What is missing there is downloaded where PyG knows how.
    """
    if name not in _LOADERS:
        valid = ", ".join(map(repr, _LOADERS))
        raise ValueError(f"name must be one of {valid} (got {name!r})")
    if root is None:
        root = os.environ.get("GSTARX_DATA") or Path.home() / ".cache" / "gstarx"
    return _LOADERS[name](Path(root))
