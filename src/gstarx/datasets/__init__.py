"""Datasets of graphs with splits: by name, and made of graphs of your own."""

from __future__ import annotations

from gstarx.datasets.dataset import GraphDataset, Statistics
from gstarx.datasets.dataset import UnreadableRow as UnreadableRow
from gstarx.datasets.dataset import label_of as label_of
from gstarx.datasets.dataset import random_split_indices as random_split_indices
from gstarx.datasets.dataset import split_molecules as split_molecules
from gstarx.datasets.dataset import title_of as title_of
from gstarx.datasets.molecules import MOLECULE_FEATURES as MOLECULE_FEATURES
from gstarx.datasets.molecules import MUTAG_ATOMS as MUTAG_ATOMS
from gstarx.datasets.molecules import graph_or_reason as graph_or_reason
from gstarx.datasets.molecules import largest_part as largest_part
from gstarx.datasets.molecules import smiles_graph
from gstarx.datasets.sources import TABLES as TABLES
from gstarx.datasets.sources import from_graphs, load, load_source, names

__all__ = [
    "GraphDataset",
    "Statistics",
    "from_graphs",
    "load",
    "load_source",
    "names",
    "smiles_graph",
]
