"""Datasets of graphs with splits: those of the paper, and your own molecules and sentences."""

from __future__ import annotations

import inspect
import os
from pathlib import Path
from typing import Any

from gstarx.datasets.dataset import GraphDataset, Statistics
from gstarx.datasets.dataset import label_of as label_of
from gstarx.datasets.dataset import title_of as title_of
from gstarx.datasets.molecules import from_csv
from gstarx.datasets.raw_files import archive as archive
from gstarx.datasets.smiles import smiles_graph
from gstarx.datasets.smiles_tables import read_text as read_text
from gstarx.datasets.smiles_tables import table_rows as table_rows
from gstarx.registry import DATASETS, resolve

__all__ = ["GraphDataset", "Statistics", "from_csv", "load", "names", "smiles_graph"]


def names() -> tuple[str, ...]:
    """The datasets that :func:`load` knows.

    >>> names()
    ('mutag', 'bbbp', 'bace', 'ba_2motifs', ..., 'motifs', 'nitro')
    """
    return tuple(DATASETS)


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
    if name not in DATASETS:
        valid = ", ".join(map(repr, DATASETS))
        raise ValueError(f"name must be one of {valid} (got {name!r})")
    loader = resolve(DATASETS[name].home)
    known = [option for option in inspect.signature(loader).parameters if option != "root"]
    for option in options:
        if option not in known:
            valid = ", ".join(map(repr, known)) or "none"
            raise TypeError(f"options of {name!r}: {valid} (got {option!r})")
    if root is None:
        root = os.environ.get("GSTARX_DATA") or Path.home() / ".cache" / "gstarx"
    dataset: GraphDataset = loader(Path(root), **options)
    return dataset
