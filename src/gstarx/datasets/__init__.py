"""Datasets of graphs with splits: those of the paper, and your own molecules and sentences."""

from __future__ import annotations

from gstarx.datasets.dataset import GraphDataset, Statistics
from gstarx.datasets.dataset import label_of as label_of
from gstarx.datasets.dataset import title_of as title_of
from gstarx.datasets.graph_files import GRAPH_FILES as GRAPH_FILES
from gstarx.datasets.molecule_tables import from_table
from gstarx.datasets.molecules import MOLECULE_FEATURES as MOLECULE_FEATURES
from gstarx.datasets.molecules import graph_or_reason as graph_or_reason
from gstarx.datasets.molecules import largest_part as largest_part
from gstarx.datasets.molecules import smiles_graph
from gstarx.datasets.raw_files import archive as archive
from gstarx.datasets.sources import from_graphs, load, load_source, names
from gstarx.datasets.tables import UnreadableRow as UnreadableRow
from gstarx.datasets.tables import present_columns as present_columns

__all__ = [
    "GraphDataset",
    "Statistics",
    "from_graphs",
    "from_table",
    "load",
    "load_source",
    "names",
    "smiles_graph",
]
