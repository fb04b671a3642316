"""The paper's statistics of its datasets, and a warning if a copy differs."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

from gstarx.datasets.dataset import GraphDataset


class UnlikeThePaperWarning(UserWarning):
    """A dataset is readable, but differs from the paper's."""


@dataclass(frozen=True)
class PaperRow:
    """A row of the paper's Table 5.

    Attributes
    ----------
    graphs, test_graphs
        Number of graphs, in all and for testing.
    nodes
        Mean number of nodes.
    edges
        Mean number of edges: directed for BACE and Twitter, undirected for the others.
    features, classes
        Features of a node, classes of graphs.
    """

    graphs: int
    test_graphs: int
    nodes: float
    edges: float
    features: int
    classes: int


#: The paper's Table 5.
TABLE_5 = {
    "mutag": PaperRow(188, 20, 17.93, 19.79, 7, 2),
    "bace": PaperRow(1513, 152, 34.01, 73.72, 9, 2),
    "bbbp": PaperRow(2039, 200, 24.06, 25.95, 9, 2),
    "graph_sst2": PaperRow(70042, 1821, 9.20, 10.19, 768, 2),
    "twitter": PaperRow(6940, 692, 21.10, 40.20, 768, 3),
    "ba_2motifs": PaperRow(1000, 100, 25, 25.48, 10, 2),
}

# The printed mean of BACE differs from that of its 1,513 molecules in the second digit.
_NODES_TOLERANCE = 0.1


def warn_if_unlike_the_paper(dataset: GraphDataset) -> GraphDataset:
    """Return the dataset, with a warning if its numbers are not those of Table 5.

    It compares the numbers of graphs, features and classes, and the mean number of nodes.
    Different graphs mean a different random split, so the paper's figures cannot be expected.
    """
    row = TABLE_5[dataset.name]
    statistics = dataset.statistics()
    differences = [
        f"{getattr(statistics, what):,} {what} (the paper has {getattr(row, what):,})"
        for what in ("graphs", "features", "classes")
        if getattr(statistics, what) != getattr(row, what)
    ]
    # sentences are trees, with one edge fewer than nodes: their row has the two columns swapped
    nodes = row.edges if dataset.name == "graph_sst2" else row.nodes
    if abs(statistics.mean_nodes - nodes) > _NODES_TOLERANCE:
        differences.append(f"{statistics.mean_nodes:.2f} nodes on average (the paper has {nodes})")
    if differences:
        warnings.warn(
            f"this {dataset.name} is not the paper's: {', '.join(differences)}",
            UnlikeThePaperWarning,
            stacklevel=3,
        )
    return dataset
