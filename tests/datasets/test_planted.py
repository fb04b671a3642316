"""Planted truths: what is planted decides the label, and a pair differs there alone."""

from __future__ import annotations

from typing import Any

import networkx as nx
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.utils import scatter, to_networkx

from gstarx_bench.datasets import check_counterfactuals, planted
from gstarx_bench.datasets.planted import RULES
from tests.pairs import for_each

pytest.importorskip("rdkit")

SYNTHETIC = ("motif", "motif_pair", "edge", "feature")
HOUSE = nx.Graph([(0, 1), (1, 2), (2, 3), (3, 0), (0, 4), (1, 4)])


def undirected(graph: Any) -> nx.Graph:
    return to_networkx(graph, to_undirected=True)


@for_each("kind", [*RULES, *SYNTHETIC])
def test_pairs_have_opposite_labels_and_stay_in_one_split(kind: str) -> None:
    dataset = planted(kind, size=60)
    sides = {at: side for side, part in dataset.split_indices.items() for at in part}
    assert sorted(sides) == list(range(len(dataset)))
    pairs: dict[int, list[int]] = {}
    for at, graph in enumerate(dataset):
        if int(graph.pair) >= 0:
            pairs.setdefault(int(graph.pair), []).append(at)
    assert len(pairs) >= 5
    for one, other in pairs.values():
        assert (int(dataset[one].y), int(dataset[other].y)) == (1, 0)
        assert sides[one] == sides[other]
        assert dataset[one].num_nodes == dataset[other].num_nodes
    for graph in dataset:
        assert graph.truths.any() == bool(graph.y)
        assert torch.equal(graph.truths.any(dim=0), graph.truth)
        if "edge_truth" in graph:
            ends = graph.edge_index[:, graph.edge_truth]
            assert graph.truth[ends].all()
            # a group may be a single atom
            assert not graph.edge_truth.any() or bool(graph.y)
            assert graph.edge_truth.any() or not bool(graph.y) or kind == "or"


def test_the_same_seed_gives_the_same_graphs() -> None:
    for kind in (
        *RULES,
        *SYNTHETIC,
    ):
        one, again, other = (planted(kind, size=40, seed=seed) for seed in (1, 1, 2))
        assert one.digest == again.digest
        if kind in SYNTHETIC:
            assert one.digest != other.digest


def test_a_house_is_planted_and_its_counterfactual_has_none() -> None:
    for graph in planted("motif", size=20):
        whole = undirected(graph)
        cycles = sorted(map(len, nx.minimum_cycle_basis(whole)))
        assert cycles == ([3, 4] if int(graph.y) else [5])
        assert nx.is_connected(whole)
        if int(graph.y):
            inside = whole.subgraph(graph.truth.nonzero().flatten().tolist())
            assert nx.is_isomorphic(inside, HOUSE)


def test_both_motifs_are_planted_and_one_edge_is_missing_from_the_counterfactual() -> None:
    dataset = planted("motif_pair", size=20)
    for one, other in zip(dataset[::2], dataset[1::2], strict=True):
        assert one.num_edges == other.num_edges + 2
        assert int(one.truth.sum()) == 9
        assert int(one.edge_truth.sum()) == 24


def test_an_edge_between_red_and_blue_decides() -> None:
    for graph in planted("edge", size=60):
        red, blue = (int(graph.x[:, color].argmax()) for color in (0, 1))
        assert undirected(graph).has_edge(red, blue) == bool(graph.y)
        if int(graph.y):
            assert graph.truth.nonzero().flatten().tolist() == sorted([red, blue])
            assert int(graph.edge_truth.sum()) == 2


def test_two_features_of_one_node_decide() -> None:
    dataset = planted("feature", size=30)
    for one, other in zip(dataset[::2], dataset[1::2], strict=True):
        both = one.x[:, :2].all(dim=1)
        assert torch.equal(both, one.truth)
        assert int(both.sum()) == 1
        assert not other.x[:, :2].all(dim=1).any()
        assert torch.equal(one.edge_index, other.edge_index)
        assert torch.equal(one.x.sum(dim=0), other.x.sum(dim=0))
        assert one.feature_truth.nonzero().tolist() == [[int(both.nonzero()), k] for k in (0, 1)]


def test_the_rule_and_the_molecules_may_be_the_users() -> None:
    smiles = [f"{'C' * n}{end}" for n in range(1, 12) for end in ("Br", "I")]
    dataset = planted("group", smiles=[*smiles, "C("], rule="CBr", size=30)
    assert [int(graph.y) for graph in dataset if int(graph.pair) < 0] == [0] * 11
    assert [row.text for row in dataset.unreadable] == ["C("]
    bonds = {int(graph.edge_truth.sum()) for graph in dataset if int(graph.y)}
    assert bonds == {2}
    with pytest.raises(ValueError, match=r"need both classes.*\(got 11, with the classes \[0\]\)"):
        planted("group", smiles=[f"{'C' * n}I" for n in range(1, 12)], rule="CBr")


def test_bad_requests_are_named() -> None:
    for options, message in (
        ({"kind": "star"}, r"kind must be one of 'ring', 'group'.*\(got 'star'\)"),
        ({"kind": "motif", "size": 3}, r"size must be at least 10.*\(got 3\)"),
        ({"kind": "motif", "rule": "C"}, "'motif' is synthetic: it takes neither smiles nor rule"),
    ):
        with pytest.raises(ValueError, match=message):
            planted(**options)


class Honest(nn.Module):
    """Knows the rule: is there a node with both features?"""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        both = (x[:, 0] * x[:, 1])[:, None]
        z = scatter(both, batch, dim=0, reduce="sum") - 0.5
        return torch.cat([-z, z], dim=1)


class Cheating(nn.Module):
    """Counts the second feature, which pairs have equally often."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        z = scatter(x[:, 1:2], batch, dim=0, reduce="sum") - 3.5
        return torch.cat([-z, z], dim=1)


class OneLogit(Honest):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return super().forward(x, edge_index, batch)[:, 1:]


def test_a_network_that_cheats_fails_on_pairs() -> None:
    graphs = planted("feature", size=40)
    good = check_counterfactuals(Honest(), graphs)
    assert (good.pairs, good.right, good.wrong, good.share) == (40, 40, (), 1.0)
    bad = check_counterfactuals(Cheating(), graphs)
    assert (bad.right, bad.share, bad.wrong) == (0, 0.0, tuple(range(40)))
    single = check_counterfactuals(OneLogit(), graphs, mode="binary_classification")
    assert single.share == 1.0


def test_without_pairs_there_is_nothing_to_check() -> None:
    graphs = planted("feature", size=10)
    with pytest.raises(ValueError, match=r"no counterfactual pairs.*\(got 10 graphs"):
        check_counterfactuals(Honest(), graphs[::2])
