"""Datasets of graphs with splits: those of the paper, and your own molecules and sentences."""

from __future__ import annotations

from gstarx.datasets.attribution import ELEMENTS as ELEMENTS
from gstarx.datasets.attribution import TruthData, load_attribution, save_attribution
from gstarx.datasets.attribution_rules import attribution_task, contribution_task
from gstarx.datasets.dataset import GraphDataset, Statistics
from gstarx.datasets.dataset import label_of as label_of
from gstarx.datasets.dataset import title_of as title_of
from gstarx.datasets.graph_files import GRAPH_FILES as GRAPH_FILES
from gstarx.datasets.molecule_tables import from_table
from gstarx.datasets.molecules import MOLECULE_FEATURES as MOLECULE_FEATURES
from gstarx.datasets.molecules import graph_or_reason as graph_or_reason
from gstarx.datasets.molecules import largest_part as largest_part
from gstarx.datasets.molecules import smiles_graph
from gstarx.datasets.papers import bibliographies, bibliography, planted_reasons
from gstarx.datasets.planted import CounterfactualCheck, check_counterfactuals, planted
from gstarx.datasets.raw_files import archive as archive
from gstarx.datasets.sources import from_graphs, load, load_source, names
from gstarx.datasets.tables import UnreadableRow as UnreadableRow
from gstarx.datasets.tables import open_table as open_table
from gstarx.datasets.tables import present_columns as present_columns

__all__ = [
    "CounterfactualCheck",
    "GraphDataset",
    "Statistics",
    "TruthData",
    "attribution_task",
    "bibliographies",
    "bibliography",
    "check_counterfactuals",
    "contribution_task",
    "from_graphs",
    "from_table",
    "load",
    "load_attribution",
    "load_source",
    "names",
    "planted",
    "planted_reasons",
    "save_attribution",
    "smiles_graph",
]
