"""Statistics of a dataset, and the paper's table beside them."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch_geometric.data import Data

from gstarx.datasets import GraphDataset, Statistics
from gstarx.datasets.paper import TABLE_5, UnlikeThePaperWarning, warn_if_unlike_the_paper


def graph(nodes: int, *edges: tuple[int, int], width: int = 10) -> Data:
    return Data(
        x=torch.ones(nodes, width),
        edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).T,
        y=torch.tensor([0]),
    )


def test_statistics() -> None:
    both_ways = graph(3, (0, 1), (1, 0), (1, 2), (2, 1))
    one_way_and_a_loop = graph(2, (1, 0), (1, 1))
    dataset = GraphDataset("some", (both_ways, one_way_and_a_loop, graph(1)), 4, {})
    assert dataset.statistics() == Statistics(
        graphs=3, mean_nodes=2, mean_edges=2, mean_undirected_edges=4 / 3, features=10, classes=4
    )
    with pytest.raises(ValueError, match="'none' holds no graphs"):
        GraphDataset("none", (), 2, {}).statistics()


def test_facts_have_defaults() -> None:
    dataset = GraphDataset("some", (graph(2),), 2, {})
    assert (dataset.source, dataset.license, dataset.description) == ("", "", "")
    assert dataset.unreadable == ()
    assert dataset.class_names == ()


def test_the_table_of_the_paper() -> None:
    row = TABLE_5["bace"]
    assert (row.graphs, row.test_graphs, row.nodes, row.edges) == (1_513, 152, 34.01, 73.72)
    assert [TABLE_5[name].classes for name in TABLE_5] == [2, 2, 2, 2, 3, 2]


def test_a_warning_where_numbers_differ() -> None:
    fine = GraphDataset("ba_2motifs", (graph(25),) * 1_000, 2, {})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert warn_if_unlike_the_paper(fine) is fine
    for graphs, classes, message in (
        ((graph(25),) * 999, 2, r"999 graphs \(the paper has 1,000\)"),
        ((graph(25, width=9),) * 1_000, 2, r"9 features \(the paper has 10\)"),
        ((graph(25),) * 1_000, 3, r"3 classes \(the paper has 2\)"),
        ((graph(24),) * 1_000, 2, r"24.00 nodes on average \(the paper has 25\)"),
    ):
        other = GraphDataset("ba_2motifs", graphs, classes, {})
        with pytest.warns(UnlikeThePaperWarning, match=f"not the paper's: {message}$"):
            assert warn_if_unlike_the_paper(other) is other
