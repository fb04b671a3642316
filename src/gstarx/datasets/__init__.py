"""Datasets of graphs with splits: those of the paper, and your own molecules and sentences."""

from __future__ import annotations

import inspect
import os
from importlib import import_module
from pathlib import Path
from typing import Any

from gstarx.datasets.dataset import GraphDataset, Statistics
from gstarx.datasets.molecules import from_csv
from gstarx.datasets.smiles import smiles_graph

__all__ = ["GraphDataset", "Statistics", "from_csv", "load", "names", "smiles_graph"]

#: Module of this folder and function that loads a dataset; imported when it is asked for.
_LOADERS = {
    "mutag": ("mutag", "load_mutag"),
    "bbbp": ("molecules", "load_bbbp"),
    "bace": ("molecules", "load_bace"),
    "ba_2motifs": ("synthetic", "load_ba_2motifs"),
    "ba_shapes": ("synthetic", "load_ba_shapes"),
    "graph_sst2": ("sentigraph", "load_graph_sst2"),
    "twitter": ("sentigraph", "load_twitter"),
    "sst2": ("text", "load_sst2"),
    "tweets": ("text", "load_tweets"),
    "motifs": ("motifs", "load_motifs"),
    "nitro": ("nitro", "load_nitro"),
}


def names() -> tuple[str, ...]:
    """The datasets that :func:`load` knows.

    >>> names()
    ('mutag', 'bbbp', 'bace', 'ba_2motifs', ..., 'motifs', 'nitro')
    """
    return tuple(_LOADERS)


def load(name: str, root: str | os.PathLike[str] | None = None, **options: Any) -> GraphDataset:
    """Load a dataset by name.

    Parameters
    ----------
    name
        One of :func:`names`. ``"motifs"`` and ``"nitro"`` come with the package.
    root
        The directory that holds the data; by default the environment variable ``GSTARX_DATA``, or
        ``~/.cache/gstarx``. What is missing there is downloaded where PyG knows how.
    **options
        Options of the dataset, such as ``split="scaffold"`` for ``"bbbp"`` and ``"bace"``.

    Examples
    --------
    >>> dataset = load("nitro")
    >>> dataset
    GraphDataset('nitro', 500 graphs, 2 classes)
    >>> dataset[0].smiles
    'C1CCCN1Cc1cccc([N+](=O)[O-])c1'
    """
    if name not in _LOADERS:
        valid = ", ".join(map(repr, _LOADERS))
        raise ValueError(f"name must be one of {valid} (got {name!r})")
    module, function = _LOADERS[name]
    loader = getattr(import_module(f"gstarx.datasets.{module}"), function)
    known = [option for option in inspect.signature(loader).parameters if option != "root"]
    for option in options:
        if option not in known:
            valid = ", ".join(map(repr, known)) or "none"
            raise TypeError(f"options of {name!r}: {valid} (got {option!r})")
    if root is None:
        root = os.environ.get("GSTARX_DATA") or Path.home() / ".cache" / "gstarx"
    dataset: GraphDataset = loader(Path(root), **options)
    return dataset
