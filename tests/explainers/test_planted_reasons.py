"""Networks on made heterogeneous graphs: the planted reasons get the highest scores."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import HeteroData
from torch_geometric.nn import HANConv, HGTConv, SAGEConv, to_hetero

from gstarx import GameOptions, explain
from gstarx.datasets import from_graphs
from gstarx.explainers import create
from gstarx_bench.datasets import bibliographies, bibliography, planted_reasons
from gstarx_bench.summary import summarize


class Plain(nn.Module):
    """Two layers and a class, to be made a network of types."""

    def __init__(self) -> None:
        super().__init__()
        self.first = SAGEConv((-1, -1), 16, aggr="max")
        self.second = SAGEConv((-1, -1), 16, aggr="max")
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.head(self.second(self.first(x, edge_index).relu(), edge_index).relu())


class Typed(nn.Module):
    """One layer that takes dictionaries, and a class for papers."""

    def __init__(self, layer: Any, data: HeteroData) -> None:
        super().__init__()
        widths = {name: data[name].num_features for name in data.node_types}
        self.layer = layer(widths, 16, data.metadata(), heads=2)
        self.head = nn.Linear(16, 2)

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        return self.head(self.layer(x_dict, edge_index_dict)["paper"].relu())


def trained(model: nn.Module, data: HeteroData, epochs: int = 80) -> nn.Module:
    paper = data["paper"]

    def outputs() -> Tensor:
        found = model(data.x_dict, data.edge_index_dict)
        return found["paper"] if isinstance(found, dict) else found

    outputs()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    for _ in range(epochs):
        optimizer.zero_grad()
        nn.functional.cross_entropy(
            outputs()[paper.train_mask], paper.y[paper.train_mask]
        ).backward()
        optimizer.step()
    return model.eval()


def depends_on_reason(model: nn.Module, data: HeteroData, paper: int) -> bool:
    """Whether the network takes a paper for theory with its reason, and not without it."""
    kept = {name: torch.ones(data[name].num_nodes, dtype=torch.bool) for name in data.node_types}
    for name, node in planted_reasons(data, paper):
        kept[name][node] = False
    classes = []
    for graph in (data, data.subgraph(kept)):
        with torch.no_grad():
            output = model(graph.x_dict, graph.edge_index_dict)
        papers = output["paper"] if isinstance(output, dict) else output
        classes.append(int(papers[paper].argmax()))
    return classes == [1, 0]


def found_reasons(model: nn.Module, data: HeteroData, most: int, **options: Any) -> list[bool]:
    """Whether the reason is first among the nodes around a paper, where the network needs it."""
    theory = data["paper"].test_mask & (data["paper"].y == 1)
    papers = [p for p in theory.nonzero()[:, 0].tolist() if depends_on_reason(model, data, p)]
    found = []
    for paper in papers[:most]:
        made = explain(
            model,
            data,
            index=paper,
            seed=0,
            task={"task_level": "node", "node_type": "paper"},
            **options,
        )
        best = [node for node in made.top(3) if node != ("paper", paper)]
        found.append(best[0] in planted_reasons(data, paper))
    return found


def test_a_transformed_network_is_explained_by_the_planted_reasons() -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        data = bibliography(papers=150)
        model = trained(to_hetero(Plain(), data.metadata()), data)
    found = found_reasons(model, data, 8, value="banzhaf", budget=1_000)
    assert len(found) == 8
    assert sum(found) >= 7


@pytest.mark.slow
@pytest.mark.parametrize("layer", [HGTConv, HANConv])
def test_transformers_and_attention_are_explained_by_the_planted_reasons(layer: Any) -> None:
    with torch.random.fork_rng():
        torch.manual_seed(0)
        data = bibliography(papers=120)
        model = trained(Typed(layer, data), data, epochs=200)
    options = {"value": "shapley", "budget": 400, "game": GameOptions(num_hops=1)}
    if layer is HANConv:
        with pytest.warns(UserWarning, match="mixes"):
            found = found_reasons(model, data, 3, **options)
    else:
        found = found_reasons(model, data, 6, **options)
    assert len(found) >= 2
    assert sum(found) >= 0.6 * len(found)


def test_a_summary_is_by_type() -> None:
    graphs = from_graphs(bibliographies(count=6))

    def model(x_dict: Any, edge_index_dict: Any) -> Tensor:
        theory = x_dict["author"][:, 0].sum() + x_dict["venue"][:, 0].sum()
        return torch.stack([-theory, theory])[None]

    made = [create("leave_one_out").explain(model, graph) for graph in graphs]
    summary = summarize(graphs, made)
    assert {row.name for row in summary} == {"author", "paper", "venue"}
