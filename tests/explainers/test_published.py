"""The paper's configuration and its published weights, on its MUTAG molecules."""

from __future__ import annotations

from dataclasses import asdict
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data
from torch_geometric.utils import subgraph, to_networkx

from gstarx import GameOptions, GStarX, Subgraphs, expected_output, explain
from gstarx.graphs import CommunicationGraph
from gstarx.values import subgraph_sampling
from gstarx_bench.models import load_published_checkpoint
from tests.gnn.one_by_one import graph as messy_graph
from tests.shared import ba_shapes, checkpoint, mutag, mutag_gcn

Coalition = tuple[int, ...]


class Direct:
    """Worths by definition: cut out, call the model, take the baseline off."""

    def __init__(self, data: Data, baseline: torch.Tensor) -> None:
        self.model, self.data = mutag_gcn(), data
        self.net = to_networkx(data, to_undirected=True)
        with torch.no_grad():
            self.target = int(self.model(data.x, data.edge_index).argmax())
        self.baseline = float(baseline[self.target])
        self.known: dict[Coalition, float] = {}

    def worth(self, nodes: Coalition) -> float:
        if nodes not in self.known:
            inside = torch.tensor(nodes)
            edges, _ = subgraph(
                inside, self.data.edge_index, relabel_nodes=True, num_nodes=self.data.num_nodes
            )
            with torch.no_grad():
                p = self.model(self.data.x[inside], edges).softmax(1)[0, self.target]
            self.known[nodes] = float(p) - self.baseline
        return self.known[nodes]

    def parts(self, nodes: Coalition) -> list[Coalition]:
        found = nx.connected_components(self.net.subgraph(nodes))
        return [tuple(sorted(part)) for part in found]

    def neighbors(self, nodes: Coalition, within: Coalition) -> set[int]:
        around = {other for node in nodes for other in self.net[node]}
        return (around & set(within)) - set(nodes)

    def dense(self, within: Coalition, tau: float) -> dict[int, float]:
        """Algorithm 2: the matrix H of equation 16 over all coalitions, squared seven times."""
        every = [S for size in range(1, len(within) + 1) for S in combinations(within, size)]
        at = {S: row for row, S in enumerate(every)}
        H, connected = np.zeros((len(every), len(every))), []
        for row, S in enumerate(every):
            if len(self.parts(S)) > 1:
                continue
            connected.append(S)
            H[row, row] = 1.0
            for j in self.neighbors(S, within):
                H[row, at[tuple(sorted((*S, j)))]] += tau
                H[row, row] -= tau
                H[row, at[(j,)]] -= tau
        for row, S in enumerate(every):
            if len(parts := self.parts(S)) > 1:
                H[row] = sum(H[at[part]] for part in parts)
        # the worth of a disconnected coalition does not enter: let it be anything
        v = np.random.default_rng(0).normal(size=len(every))
        for S in connected:
            v[at[S]] = self.worth(S)
        for _ in range(7):
            squared = H @ H
            done = np.linalg.norm(squared - H) <= 1e-3
            H = squared
            if done:
                break
        return {node: float(H[at[(node,)]] @ v) for node in within}

    def stepped(self, within: Coalition, tau: float) -> dict[int, float]:
        """The same without a matrix: 128 associated games one after the other (equation 6)."""
        v = {
            S: self.worth(S)
            for size in range(1, len(within) + 1)
            for S in combinations(within, size)
            if len(self.parts(S)) == 1
        }
        joins = {S: [(tuple(sorted((*S, j))), (j,)) for j in self.neighbors(S, within)] for S in v}
        for _ in range(128):
            v = {
                S: v[S] + tau * sum(v[larger] - v[S] - v[single] for larger, single in joins[S])
                for S in v
            }
        return {node: v[(node,)] for node in within}


def averaged(
    subsets: list[NDArray[np.int64]], solve: Any, num_nodes: int, tau: float
) -> NDArray[np.float64]:
    """Algorithm 3: the mean over the subsets that a node is in."""
    shares: dict[int, list[float]] = {node: [] for node in range(num_nodes)}
    for nodes in subsets:
        for node, share in solve(tuple(nodes.tolist()), tau).items():
            shares[node].append(share)
    return np.array([np.mean(shares[node]) for node in range(num_nodes)])


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[NDArray[np.int64]]:
    """The subsets that are drawn, as they are drawn."""
    subsets: list[NDArray[np.int64]] = []
    draw = subgraph_sampling._draw

    def remembering(*args: Any) -> Any:
        subsets[:] = draw(*args)
        return subsets

    monkeypatch.setattr(subgraph_sampling, "_draw", remembering)
    return subsets


def as_published(model: Any, data: Data, **options: Any) -> Any:
    algorithm = GStarX.as_published(**options)
    chosen = {"value": algorithm.value, **algorithm.game_options, "seed": algorithm.seed}
    return explain(model, data, **chosen)


@pytest.mark.parametrize("position", [1, 9, 17])
def test_as_published_is_its_definition(position: int, drawn: list[NDArray[np.int64]]) -> None:
    test = mutag().split("test")
    model, data = mutag_gcn(), test[position]
    baseline = expected_output(model, test)
    found = as_published(model, data, baseline=baseline, seed=3)
    assert len(drawn) >= data.num_nodes > 10
    assert {len(nodes) for nodes in drawn} == {10}
    direct = Direct(data, baseline)
    expected = averaged(drawn, direct.stepped, data.num_nodes, 0.01)
    np.testing.assert_allclose(found.node_mask[:, 0].numpy(), expected, atol=1e-6)
    assert found.estimator == "subgraphs"
    assert not found.exact
    assert not found.converged
    assert found.payoff == "norm_prob"
    assert found.baseline_source == "given"
    # only connected coalitions went through the model, each once, and the whole molecule
    assert found.evaluations == len(set(direct.known) | {tuple(range(data.num_nodes))})


def test_as_published_is_algorithm_2_with_its_matrix(drawn: list[NDArray[np.int64]]) -> None:
    test = mutag().split("test")
    data = min((data for data in test if data.num_nodes > 10), key=lambda data: data.num_nodes)
    baseline = expected_output(mutag_gcn(), test)
    found = as_published(
        mutag_gcn(), data, baseline=baseline, seed=0, value=Subgraphs(num_samples=1)
    )
    direct = Direct(data, baseline)
    expected = averaged(drawn, direct.dense, data.num_nodes, 0.01)
    np.testing.assert_allclose(found.node_mask[:, 0].numpy(), expected, atol=1e-6)
    stepped = averaged(drawn, direct.stepped, data.num_nodes, 0.01)
    np.testing.assert_allclose(stepped, expected, atol=1e-9)


def test_as_published_needs_a_baseline() -> None:
    with pytest.raises(ValueError, match="needs a baseline"):
        GStarX.as_published()
    with pytest.raises(ValueError, match=r"needs a baseline, .*=expected_output"):
        GStarX.as_published(baseline=None)


def test_as_published_is_this_configuration() -> None:
    published = GStarX.as_published(baseline=[0.4, 0.6], seed=7)
    assert asdict(published.value) == {
        "value": "hn",
        "estimator": "auto",
        "max_sample_size": 10,
        "num_samples": None,
        "sampling": "random",
        "inner": "iterated",
        "tau": 0.01,
        "superadditive": False,
    }
    assert published.budgeted.budget is None
    assert published.game_options["payoff"] == "norm_prob"
    assert published.game_options["game"] == GameOptions(removal="remove")
    assert published.game_options["baseline"] == [0.4, 0.6]
    assert published.seed == 7
    changed = GStarX.as_published(baseline=0.5, value=Subgraphs(max_sample_size=4), progress=True)
    assert changed.value == Subgraphs(max_sample_size=4)
    assert changed.progress


@pytest.mark.parametrize("position", range(0, 20, 4))
def test_scores_sum_to_the_worth_of_each_component(position: int) -> None:
    test = mutag().split("test")
    assert len(test) == 20
    model, data = mutag_gcn(), test[position]
    coalitions = CommunicationGraph.from_edge_index(data.edge_index).count_connected_coalitions()
    found = explain(model, data, baseline=expected_output(model, test), budget=coalitions)
    assert found.exact
    assert found.estimator == "exact"
    assert found.evaluations == coalitions
    with torch.no_grad():
        p = model(data.x, data.edge_index).softmax(1)[0].max().item()
    assert found.node_mask.sum().item() == pytest.approx(found.worth.item(), abs=1e-5)
    assert found.worth.item() == pytest.approx(p - found.baseline[0], abs=1e-5)
    assert found.component_worth.item() == pytest.approx(found.worth.item(), abs=1e-12)
    assert found.residual < 1e-5


def test_both_worths_of_a_disconnected_molecule() -> None:
    test = mutag().split("test")
    model = mutag_gcn()
    one, two = test[5], test[8]
    both = Data(
        x=torch.cat([one.x, two.x]),
        edge_index=torch.cat([one.edge_index, two.edge_index + one.num_nodes], dim=1),
    )
    how = {"value": "hn", "baseline": "uniform", "target": 1, "budget": 100_000}
    found = explain(model, both, **how)
    parts = [explain(model, data, **how) for data in (one, two)]
    n = one.num_nodes
    for part, scores in zip(parts, (found.node_mask[:n], found.node_mask[n:]), strict=True):
        assert scores.sum().item() == pytest.approx(part.worth.item(), abs=1e-5)
        torch.testing.assert_close(scores, part.node_mask, atol=1e-5, rtol=0)
    total = sum(part.worth.item() for part in parts)
    assert found.component_worth.item() == pytest.approx(total, abs=1e-6)
    with torch.no_grad():
        p = model(both.x, both.edge_index).softmax(1)[0, 1].item()
    assert found.worth.item() == pytest.approx(p - 0.5, abs=1e-6)
    assert found.worth.item() != pytest.approx(total, abs=1e-2)


def test_a_node_of_ba_shapes_is_explained_by_its_house() -> None:
    data = ba_shapes()
    model = load_published_checkpoint(checkpoint("ba_shapes/gcn_3l_best.pth"))
    with torch.no_grad():
        correct = model(data.x, data.edge_index).argmax(dim=1) == data.y
    assert correct.double().mean() > 0.98
    found = explain(model, data, index=512, task="node")
    assert found.exact
    assert len(found.players) < 20 < data.num_nodes
    assert found.node_mask.shape == (700, 1)
    # nodes 510 to 514 are its house, and the rest of the graph is not even looked at
    assert set(found.node_mask[:, 0].topk(4).indices.tolist()) <= {510, 511, 512, 513, 514}
    assert found.node_mask.sum().item() == pytest.approx(found.worth.item(), abs=1e-5)


def test_shapley_shares_the_worth_of_the_whole() -> None:
    data = messy_graph("messy")
    found = explain(lambda x, edge_index: x[:, :3].sum(dim=0), data, value="shapley")
    assert found.node_mask.sum().item() == pytest.approx(found.worth.item(), abs=1e-5)
