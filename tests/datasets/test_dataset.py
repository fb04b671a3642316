"""A dataset as PyG and as the package use it; its statistics, and the paper's table beside them."""

from __future__ import annotations

import copy
import pickle
import warnings
from collections.abc import Sequence

import numpy as np
import pytest
import torch
from torch_geometric.data import Data, InMemoryDataset
from torch_geometric.loader import DataLoader

from gstarx.datasets import GraphDataset, Statistics, load
from gstarx.datasets.dataset import UnreadableRow
from gstarx_bench.datasets.raw_files import TABLE_5, UnlikeThePaperWarning, warn_if_unlike_the_paper


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


def uneven() -> GraphDataset:
    """Six graphs, some with fields of their own."""
    graphs = [graph(n, *[(i, i + 1) for i in range(n - 1)]) for n in range(1, 7)]
    for place, each in enumerate(graphs):
        each.y, each.words = torch.tensor([place % 2]), ["word"] * each.num_nodes
        each.smiles = "C" * each.num_nodes
    graphs[4].truth = torch.tensor([True, False, False, False, True])
    return GraphDataset(
        "uneven",
        graphs,
        2,
        {"train": [5, 0, 3], "val": [1], "test": [2, 4]},
        source="here",
        license="CC0",
        description="paths",
        unreadable=(UnreadableRow(7, "?"),),
        class_names=("even", "odd"),
    )


def same(one: Data, other: Data) -> bool:
    """Whether all fields are equal."""
    return one.keys() == other.keys() and all(
        torch.equal(value, other[key]) if isinstance(value, torch.Tensor) else value == other[key]
        for key, value in one
    )


def test_it_is_a_pyg_dataset() -> None:
    dataset = uneven()
    assert isinstance(dataset, InMemoryDataset)
    assert isinstance(dataset, Sequence)
    assert (dataset.num_features, dataset.num_classes, len(dataset)) == (10, 2, 6)
    # what PyG reads first it may drop from its cache
    assert dataset[0] is dataset.graphs[0] is next(iter(dataset))
    assert dataset.y.tolist() == [0, 1, 0, 1, 0, 1]
    assert dataset.smiles == ["C" * n for n in range(1, 7)]
    assert dataset.edge_index.max() == 20
    assert dataset[:4].data.x.shape == (10, 10)
    with pytest.raises(AttributeError, match="truth"):
        dataset.truth  # noqa: B018  (not every graph has one)
    with pytest.raises(AttributeError, match="setter"):
        dataset.data = dataset[0]
    assert dataset.get_summary().num_graphs == 6


def test_a_loader_takes_it() -> None:
    dataset = load("nitro")[:10]
    first, second = DataLoader(dataset, batch_size=5)
    assert first.x.equal(torch.cat([g.x for g in dataset[:5]]))
    assert second.smiles == [g.smiles for g in dataset[5:]]
    assert second.atoms == [g.atoms for g in dataset[5:]]
    assert second.y.tolist() == [int(g.y) for g in dataset[5:]]


def test_a_selection_is_a_dataset_with_its_part_of_the_splits() -> None:
    for index in (
        slice(3, None),
        slice(None, None, -2),
        slice(None, 0.5),
        [4, 1],
        (-1, 0, -1),
        torch.tensor([2, 5]),
        np.array([5, 2]),
        torch.tensor([True, False, False, True, False, True]),
        np.array([False, True, True, False, False, False]),
        [True, False, False, False, False, True],
        [],
    ):
        dataset = uneven()
        if isinstance(index, slice):
            stop = 3 if index.stop == 0.5 else index.stop
            expected = list(range(6))[index.start : stop : index.step]
        else:
            expected = np.arange(6)[np.asarray(index, dtype=None if len(index) else int)].tolist()
        chosen = dataset[index]
        assert isinstance(chosen, GraphDataset)
        assert [g.num_nodes - 1 for g in chosen] == expected
        assert all(g is dataset.graphs[i] for g, i in zip(chosen.graphs, expected, strict=True))
        for name in ("train", "val", "test"):
            there = [i for i in dataset.split_indices[name] for _ in range(expected.count(i))]
            assert [g.num_nodes - 1 for g in chosen.split(name)] == there
            assert len(set(chosen.split_indices[name])) == len(there)
        for fact in ("name", "num_classes", "source", "license", "description", "unreadable"):
            assert getattr(chosen, fact) == getattr(dataset, fact)
        assert chosen.class_names == dataset.class_names
        again = GraphDataset("again", [dataset.graphs[i] for i in expected], 2, {})
        assert (chosen.digest, chosen.digest == dataset.digest) == (again.digest, False)


def test_selecting_twice_and_shuffling() -> None:
    dataset = uneven()
    assert dataset[:].split_indices == dataset.split_indices
    assert dataset[2:][1:].split_indices == {"train": [2, 0], "val": [], "test": [1]}
    shuffled, order = dataset.shuffle(return_perm=True)
    assert [g.num_nodes - 1 for g in shuffled] == order.tolist()
    assert [g.num_nodes for g in shuffled.split("train")] == [6, 1, 4]


def test_what_is_no_index_is_refused() -> None:
    dataset = uneven()
    for mask in (torch.ones(5, dtype=torch.bool), np.ones(7, dtype=bool), [True]):
        with pytest.raises(IndexError, match="each of 6 graphs"):
            dataset[mask]
    for index in ("train", 1.5, torch.tensor([0.5])):
        with pytest.raises(IndexError, match="valid indices"):
            dataset[index]
    for index in (6, -7, [6]):
        with pytest.raises(IndexError, match="out of range"):
            dataset[index]


def test_a_transform_applies_to_everything_that_is_read() -> None:
    dataset = uneven()
    plain = dataset.digest

    def double(data: Data) -> Data:
        data.x = 2 * data.x
        return data

    dataset.transform = double
    for _ in range(2):  # nothing is doubled twice
        assert dataset[1].x.max() == dataset.graphs[1].x.max() == 2
        assert dataset.split("val")[0].x.max() == dataset[1:3][0].x.max() == dataset.x.max() == 2
    assert dataset.digest != plain
    dataset.transform = None
    assert dataset.digest == plain


def test_copies_are_equal_and_apart() -> None:
    dataset = uneven()
    digest = dataset.digest
    for twin in (
        copy.deepcopy(dataset),
        pickle.loads(pickle.dumps(dataset)),
        dataset.copy(),
        dataset.replace(),
        dataset.to("cpu"),
    ):
        assert repr(twin) == repr(dataset)
        assert all(same(one, other) for one, other in zip(twin, dataset, strict=True))
        assert twin.split_indices == dataset.split_indices
        assert (twin.unreadable, twin.class_names) == (dataset.unreadable, dataset.class_names)
        assert twin.digest == digest
    apart = dataset.copy([4])
    assert same(apart[0], dataset[4])
    apart[0].x += 1
    assert dataset[4].x.max() == 1


def test_digests_are_what_they_were() -> None:
    expected = "0d99aa6587a95f21fd1a95cf214b8f0bf0394e6449748308f0e460ae2944ff62"
    assert load("nitro").digest == expected
    expected = "d46724c71bd85fc630ff1c84efa86c85126b7488d9869cb66dbcbd1557c9ee4d"
    assert load("motifs", size=20).digest == expected


def test_a_digest_says_what_it_needs() -> None:
    unlabeled = graph(1)
    del unlabeled.y
    known = GraphDataset("mutag", [graph(1), unlabeled], 2, {})
    with pytest.raises(ValueError, match="graph 1 has no y"):
        known.digest  # noqa: B018
    own = GraphDataset("own", [graph(1), unlabeled], 2, {})
    featureless = GraphDataset("own", [Data(edge_index=graph(1).edge_index)], 2, {})
    assert len(own.digest) == 64
    with pytest.raises(ValueError, match="graph 0 has no x"):
        featureless.digest  # noqa: B018


def test_every_tensor_of_ones_own_graphs_counts() -> None:
    def digest(weight: float) -> str:
        weighted = graph(2, (0, 1))
        weighted.edge_attr = torch.full((weighted.num_edges, 1), weight)
        return GraphDataset("own", [weighted], 2, {}).digest

    assert digest(1.0) == digest(1.0) != digest(2.0)
