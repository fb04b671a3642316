"""A model may write into its inputs: nobody's data changes, and neither do the numbers."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch_geometric.data import Batch, Data, HeteroData
from torch_geometric.nn import SAGEConv, global_mean_pool

from gstarx import (
    GameOptions,
    GNNGame,
    Passes,
    expected_output,
    explain,
    explain_many,
    explain_nodes,
    metrics,
)
from gstarx.explainers import create
from gstarx.gnn import ModelTask
from gstarx.players import Features
from tests.pairs import in_turn

FEATURES, CLASSES, NODES, WIDE = 3, 2, 8, 80


class Net(nn.Module):
    """A network that changes all of its inputs in place, or works with copies of them."""

    def __init__(self, in_place: bool, features: int = FEATURES) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.conv, self.head = SAGEConv(features, 8), nn.Linear(8, CLASSES)
        self.in_place = in_place
        self.eval()

    def own(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return inputs if self.in_place else tuple(value.clone() for value in inputs)

    def hidden(self, x: Tensor, edge_index: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
        x, edge_index, weight, shift = self.own(x, edge_index, weight, shift)
        x -= 0.5
        weight *= 2
        shift += 1
        hidden = self.conv(x, edge_index).relu_()
        source, target = edge_index.clone()
        sent = torch.zeros_like(hidden).index_add_(0, target, weight[:, None] * hidden[source])
        if not torch.is_grad_enabled():
            edge_index.zero_()
        return (hidden + sent).tanh() + shift.mean()


class Graph(Net):
    def forward(
        self, x: Tensor, edge_index: Tensor, weight: Tensor, shift: Tensor, batch: Tensor
    ) -> Tensor:
        hidden = self.hidden(x, edge_index, weight, shift)
        out: Tensor = self.head(global_mean_pool(hidden, batch))
        return out


class WithData(Net):
    def forward(self, data: Data) -> Tensor:
        hidden = self.hidden(data.x, data.edge_index, data.weight, data.shift)
        out: Tensor = self.head(global_mean_pool(hidden, data.batch))
        return out


class Node(Net):
    def forward(self, x: Tensor, edge_index: Tensor, weight: Tensor, shift: Tensor) -> Tensor:
        out: Tensor = self.head(self.hidden(x, edge_index, weight, shift))
        return out


def data(features: int = FEATURES) -> Data:
    draw = torch.Generator().manual_seed(0)
    at = torch.arange(NODES - 1)
    ends = torch.stack([at, at + 1])
    return Data(
        x=torch.randn(NODES, features, generator=draw),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        weight=torch.rand(2 * NODES - 2, generator=draw),
        shift=torch.rand(1, 2, generator=draw),
    )


def numbers(made: Any) -> list[Tensor]:
    """All tensors in what came out."""
    if isinstance(made, Tensor):
        return [made]
    if isinstance(made, list | tuple):
        return [tensor for part in made for tensor in numbers(part)]
    if hasattr(made, "inverse_fidelity"):
        return [torch.tensor([made.fidelity, made.inverse_fidelity])]
    found = [made.prediction]
    found += [made.scores] if made.scores is not None else [torch.tensor(s) for s in made.sets]
    return found


def assert_not_written(
    use: Callable[[Any, Data], Any], kind: type[Net], features: int = FEATURES
) -> None:
    """What is made of a graph is the same for both kinds of models, and the graph stays."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mine = data(features)
        found, expected = (
            use(kind(True, features), mine),
            use(kind(False, features), data(features)),
        )
    for name, value in data(features):
        assert torch.equal(mine[name], value), name
    for one, other in zip(numbers(found), numbers(expected), strict=True):
        assert torch.equal(one, other)


GAMES: list[dict[str, Any]] = [
    {"value": "shapley"},
    {"value": "shapley", "passes": Passes(share=False)},
    {"value": "shapley", "passes": Passes(batch_nodes=1)},
    {"value": "hn"},
    {"game": GameOptions(removal="split")},
    {"game": GameOptions(removal="zero_filling"), "value": "myerson"},
    {"players": "edges", "value": "shapley"},
    {"players": "features", "value": "shapley"},
]
OF_GRAPHS: list[dict[str, Any]] = [
    {"baseline": "singletons"},
    {"game": GameOptions(removal=lambda graph, inside: graph), "value": "myerson"},
]
RAW: dict[str, Any] = {"payoff": "raw", "target": 0}


@pytest.mark.parametrize(
    ("options", "kind", "features"),
    in_turn([*GAMES, *OF_GRAPHS], [Graph, WithData], [FEATURES, WIDE]),
)
def test_games_of_graphs(kind: type[Net], options: dict[str, Any], features: int) -> None:
    if options.get("players") == "features" and features == WIDE:
        options = {**options, "players": Features(groups={"many": range(4, WIDE)})}
    assert_not_written(lambda m, d: explain(m, d, **RAW, **options), kind, features)


@pytest.mark.parametrize(("options", "features"), in_turn(GAMES, [WIDE, FEATURES]))
def test_games_of_nodes(options: dict[str, Any], features: int) -> None:
    if options.get("players") == "features" and features == WIDE:
        options = {**options, "players": Features(groups={"many": range(4, WIDE)})}
    task: dict[str, Any] = {"task": "node", "index": 3}
    assert_not_written(lambda m, d: explain(m, d, **task, **RAW, **options), Node, features)


EXPLAINERS: list[tuple[str, dict[str, Any]]] = [
    ("leave_one_out", {}),
    ("subgraphx", {}),
    ("graphsvx", {}),
    ("random", {}),
    ("gnnexplainer", {"epochs": 5}),
    ("gradcam", {}),
    ("cam", {}),
    ("gradient_x_input", {}),
    ("integrated_gradients", {}),
    ("smoothgrad", {}),
    ("pgexplainer", {"epochs": 2}),
    ("orphicx", {"epochs": 2}),
]


def explained(name: str, options: dict[str, Any], model: Any, graph: Data, **task: Any) -> Any:
    explainer = create(name, **options)
    if explainer.requires_training:
        # of one graph, and of several in one batch
        explainer.fit(model, [graph, graph], seed=0, **task)  # type: ignore[attr-defined]
    index = {"index": 3} if task else {}
    return explainer.explain(model, graph, seed=0, target=0, **task, **index)


@pytest.mark.parametrize(("case", "kind"), in_turn(EXPLAINERS, [Graph, WithData]))
def test_explainers_of_graphs(case: tuple[str, dict[str, Any]], kind: type[Net]) -> None:
    name, options = case
    assert_not_written(lambda m, d: explained(name, options, m, d), kind)


@pytest.mark.parametrize(
    ("name", "options"), [pair for pair in EXPLAINERS if pair[0] not in ("cam", "orphicx")][::2]
)
def test_explainers_of_nodes(name: str, options: dict[str, Any]) -> None:
    assert_not_written(lambda m, d: explained(name, options, m, d, task="node"), Node)


def of_a_loader(model: Any, graph: Data) -> Tensor:
    """The expected output over a batch that the user holds."""
    batch = Batch.from_data_list([graph, graph])
    before = batch.clone()
    found = expected_output(model, [batch])
    for name, value in before:
        assert torch.equal(batch[name], value), name
    return found


@pytest.mark.parametrize(
    ("use", "kind"),
    in_turn(
        [
            of_a_loader,
            lambda m, d: expected_output(m, [d, d]),
            lambda m, d: metrics.evaluate(m, d, [1, 2]),
            lambda m, d: explain_many(m, [d, d], progress=False, **RAW),
            lambda m, d: ModelTask().output(m, d),
            lambda m, d: torch.from_numpy(GNNGame(m, d, **RAW)(torch.eye(NODES).bool().numpy())),
        ],
        [Graph, WithData],
    ),
)
def test_other_uses(use: Callable[[Any, Data], Any], kind: type[Net]) -> None:
    assert_not_written(use, kind)


def test_many_nodes() -> None:
    nodes = [2, 3, 4]
    assert_not_written(lambda m, d: explain_nodes(m, d, nodes, progress=False, **RAW), Node)


def test_heterogeneous_graphs() -> None:
    class Typed(nn.Module):
        def __init__(self, in_place: bool) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.head, self.in_place = nn.Linear(FEATURES, CLASSES), in_place

        def forward(self, x_dict: Any, edge_index_dict: Any, shift: Tensor) -> Tensor:
            x = x_dict["a"] if self.in_place else x_dict["a"].clone()
            shift = shift if self.in_place else shift.clone()
            x -= 0.5
            shift += 1
            source, target = edge_index_dict["b", "to", "a"]
            x = x.index_add(0, target, x_dict["b"][source])
            out: Tensor = self.head(x.tanh()).sum(dim=0, keepdim=True) * shift.mean()
            return out

    def made() -> HeteroData:
        graph = HeteroData(shift=torch.full((1, 2), 0.25))
        graph["a"].x = torch.arange(9.0).reshape(3, 3) / 9
        graph["b"].x = torch.ones(2, 3)
        graph["b", "to", "a"].edge_index = torch.tensor([[0, 1, 1], [0, 1, 2]])
        return graph

    mine = made()
    found = explain(Typed(True), mine, **RAW)
    expected = explain(Typed(False), made(), **RAW)
    assert torch.equal(found.scores, expected.scores)
    assert torch.equal(mine.shift, made().shift)
    assert torch.equal(mine["a"].x, made()["a"].x)
