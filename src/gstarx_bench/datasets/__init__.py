"""The datasets of the paper, benchmarks with known truths, and tables of your own molecules."""

from __future__ import annotations

from gstarx.datasets import GraphDataset, from_graphs, load, load_source, names
from gstarx_bench.datasets.attribution import ELEMENTS as ELEMENTS
from gstarx_bench.datasets.attribution import TruthData, load_attribution, save_attribution
from gstarx_bench.datasets.attribution_rules import attribution_task, contribution_task
from gstarx_bench.datasets.graph_files import GRAPH_FILES as GRAPH_FILES
from gstarx_bench.datasets.molecule_tables import from_table
from gstarx_bench.datasets.papers import bibliographies, bibliography, planted_reasons
from gstarx_bench.datasets.planted import CounterfactualCheck, check_counterfactuals, planted
from gstarx_bench.datasets.raw_files import archive as archive
from gstarx_bench.datasets.tables import open_table as open_table
from gstarx_bench.datasets.tables import present_columns as present_columns

__all__ = [
    "CounterfactualCheck",
    "GraphDataset",
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
]
