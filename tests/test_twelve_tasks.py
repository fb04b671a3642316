"""Twelve tasks as a new user writes them, each in a few lines, with numbers known by hand."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Data, HeteroData
from torch_geometric.explain import Explainer
from torch_geometric.nn import global_add_pool

import gstarx
from gstarx import explain
from gstarx.datasets import smiles_graph
from gstarx.games import Game
from gstarx.graphs import CommunicationGraph
from gstarx.players import Edges, Nodes
from gstarx.testing import check_value

WEIGHTS = torch.tensor([[1.0], [2.0], [4.0]])
PATH = Data(x=WEIGHTS, edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
RING = Data(
    x=torch.arange(1.0, 13.0)[:, None],
    edge_index=torch.stack([torch.arange(12), torch.arange(1, 13) % 12]),
)
CITES = ("paper", "cites", "paper")
PAPERS = HeteroData()
PAPERS["paper"].x, PAPERS["author"].x = WEIGHTS, torch.tensor([[8.0], [16.0]])
PAPERS[CITES].edge_index = torch.tensor([[0, 2], [1, 1]])
PAPERS["author", "writes", "paper"].edge_index = torch.tensor([[0, 1, 1], [0, 1, 2]])


class Total(nn.Module):
    """The sum of all features of a graph."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return global_add_pool(x, batch)


class Chance(nn.Module):
    """Two classes; the chance of the second is a tenth of the total."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        chance = global_add_pool(x, batch) / 10
        return torch.cat([1 - chance, chance], dim=1).log()


def of_nodes(x: Tensor, edge_index: Tensor) -> Tensor:
    """Two classes of every node, the second by a tenth of its own weight and its neighbors'."""
    total = x.index_add(0, edge_index[1], x[edge_index[0]]) / 10
    return torch.cat([torch.zeros_like(total), total], dim=1)


def of_papers(x_dict: dict[str, Tensor], edge_index_dict: dict[Any, Tensor]) -> Tensor:
    """The weights of all papers and authors, and of papers once more for every citation."""
    cited = x_dict["paper"][edge_index_dict[CITES][0]].sum()
    return (x_dict["paper"].sum() + x_dict["author"].sum() + cited).reshape(1, 1)


def sigmoid(number: float) -> float:
    return float(torch.tensor(number).sigmoid())


@dataclass(frozen=True, kw_only=True)
class Egalitarian(gstarx.values.Value):
    """The Shapley value, a share of which everybody gets alike."""

    name = "egalitarian"
    alike: float = 0.5

    def count(self, graph: CommunicationGraph, limit: int) -> int:
        return int(2**graph.num_nodes - 1)

    def exact(
        self, game: Game, graph: CommunicationGraph, *, max_coalitions: int
    ) -> gstarx.Allocation:
        found = gstarx.shapley_value(game, graph.num_nodes, max_coalitions=max_coalitions)
        mean = found.values.mean(axis=0, keepdims=True)
        return replace(found, values=self.alike * mean + (1 - self.alike) * found.values)


def test_01_a_node_of_my_own_classifier() -> None:
    found = explain(of_nodes, PATH, target=1, index=1, task="node")
    assert float(found.scores.sum()) == pytest.approx(sigmoid(0.7) - sigmoid(0.2))
    assert found.scores[2] > found.scores[0] > 0


def test_02_a_regression() -> None:
    found = explain(Total(), PATH, task="regression", baseline=0.0)
    assert found.scores.tolist() == pytest.approx([1, 2, 4])


def test_03_fragments_of_a_molecule() -> None:
    data = smiles_graph("CCOC(=O)c1ccccc1")
    data.x = torch.ones(len(data.x), 1)
    found = explain(Total(), data, players="brics", task="regression", baseline=0.0)
    assert found.scores.tolist() == pytest.approx([2, 1, 2, 6])  # atoms


def test_04_edges_of_one_type() -> None:
    def by_citations(x: Tensor, edge_index: Tensor) -> Tensor:
        return of_papers(PAPERS.x_dict, {CITES: edge_index})

    data = Data(x=WEIGHTS, edge_index=PAPERS[CITES].edge_index)
    found = explain(by_citations, data, players=Edges(directed=True), task="regression")
    assert found.scores.tolist() == pytest.approx([1, 4])


def test_05_as_published() -> None:
    graphs = [Data(x=1e-9 * WEIGHTS, edge_index=PATH.edge_index)]
    baseline = gstarx.expected_output(Chance(), graphs)
    found = gstarx.GStarX.as_published(baseline=baseline, seed=0).explain(Chance(), PATH, target=1)
    assert (found.estimator, found.payoff) == ("subgraphs", "norm_prob")
    assert found.scores.tolist() == pytest.approx([0.1, 0.2, 0.4], abs=1e-6)


def test_06_sampled_with_a_budget_and_a_seed() -> None:
    value, squared = gstarx.Shapley(estimator="sampled"), lambda out: out[:, 0] ** 2
    how: dict[str, Any] = {"payoff": squared, "baseline": 0.0, "task": "regression"}
    found = explain(Total(), RING, value=value, budget=300, seed=0, **how)
    apart = (found.scores - 78 * RING.x[:, 0]).abs()  # 78 is the total
    assert (apart <= 4 * found.std_errors + 1e-6).all()
    assert found.evaluations <= 300


def test_07_players_of_some_types() -> None:
    found = explain(of_papers, PAPERS, players=Nodes(types=["author"]), task="regression")
    assert found.players == [("author", 0), ("author", 1)]
    assert found.scores.tolist() == pytest.approx([8, 16])


def test_08_one_class_rather_than_another() -> None:
    found = explain(Chance(), PATH, payoff=gstarx.Contrast(1, 0), baseline=0.0)
    other = explain(Chance(), PATH, payoff=gstarx.Contrast(0, 1), baseline=0.0)
    assert float(found.scores.sum()) == pytest.approx(0.7 - 0.3)
    assert torch.allclose(other.scores, -found.scores)


def test_09_many_graphs_by_several_processes() -> None:
    graphs = [Data(x=n * WEIGHTS, edge_index=PATH.edge_index) for n in (1, 2, 3)]
    many = gstarx.explain_many(Total(), graphs, task="regression", baseline=0.0, workers=2)
    for n, found in zip((1, 2, 3), many, strict=True):
        assert found.scores.tolist() == pytest.approx([n, 2 * n, 4 * n])


def test_10_inside_pygs_explainer() -> None:
    task = {"mode": "regression", "task_level": "graph"}
    algorithm, masks = gstarx.GStarX(baseline=0.0), {"node_mask_type": "object"}
    explainer = Explainer(Total(), algorithm, "model", model_config=task, **masks)
    found = explainer(PATH.x, PATH.edge_index)
    assert found.node_mask[:, 0].tolist() == pytest.approx([1, 2, 4])


def test_11_a_value_of_my_own() -> None:
    check_value(Egalitarian())
    value = Egalitarian(alike=0.25)
    found = explain(Total(), PATH, value=value, task="regression", baseline=0.0)
    expected = 0.25 * 7 / 3 + 0.75 * np.array([1, 2, 4])
    assert (found.value, found.scores.tolist()) == ("egalitarian", pytest.approx(expected))


def test_12_a_payoff_of_my_own() -> None:
    def squared(outputs: Tensor) -> Tensor:
        return outputs[:, 0] ** 2

    how: dict[str, Any] = {"payoff": squared, "baseline": 0.0, "task": "regression"}
    found = explain(Total(), PATH, value="shapley", **how)
    assert found.scores.tolist() == pytest.approx([7, 14, 28])
