"""Only messages that count are passed over states, and what comes out is what always came out."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn.conv.gcn_conv import gcn_norm

from gstarx import GameOptions, GNNGame, Passes
from gstarx.gnn import needed_messages
from gstarx.gnn.needed_messages import _normalized
from gstarx.gnn.shared_rows import GatheredRows, SharedRows
from gstarx.players import Edges
from tests.pairs import in_turn

WIDTH, CLASSES, NODES = 5, 3, 40


def graph(seed: int = 0, *, loops: bool = False, wide: bool = False) -> Data:
    """Two hubs and a random rest, one way."""
    rng = np.random.default_rng(seed)
    ends = rng.integers(NODES, size=(2, 60))
    ends = ends[:, ends[0] != ends[1]]
    hub = np.stack([np.arange(2, 22), np.full(20, 1)])
    ends = np.concatenate([ends, hub, [[1, 3, 4], [0, 0, 0]]], axis=1)
    if loops:
        ends = np.concatenate([ends, [[0, 1, 5], [0, 1, 5]]], axis=1)
    ends = np.unique(ends, axis=1)
    x = torch.from_numpy(rng.normal(size=(NODES, 80 if wide else WIDTH))).float()
    return Data(x=x, edge_index=torch.from_numpy(ends))


class Stacked(nn.Module):
    """Layers one after the other."""

    def __init__(self, layer: Any, depth: int = 2, width: int = WIDTH) -> None:
        super().__init__()
        sizes = [width, *[6] * (depth - 1), CLASSES]
        self.layers = nn.ModuleList(map(layer, sizes[:-1], sizes[1:]))

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for layer in self.layers[:-1]:
            x = layer(x, edge_index).relu()
        return self.layers[-1](x, edge_index)


class Weighted(Stacked):
    """Layers that take a weight of every edge."""

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:  # type: ignore[override]
        for layer in self.layers:
            x = layer(x, edge_index, edge_weight).tanh()
        return x


class Branches(nn.Module):
    """Two branches of two layers, so that the third call of a layer is again a first round."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.two = Stacked(pyg.GCNConv), Stacked(pyg.SAGEConv)
        self.near = pyg.GraphConv(WIDTH, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.one(x, edge_index) + self.two(x, edge_index) + self.near(x, edge_index)


class Numpy(pyg.MessagePassing):
    """A layer of one's own whose messages leave torch."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__(aggr="mean")
        self.lin = nn.Linear(width, out)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.propagate(edge_index, x=self.lin(x))

    def message(self, x_j: Tensor) -> Tensor:
        return torch.from_numpy(np.tanh(x_j.numpy()))


class Paired(pyg.MessagePassing):
    """Messages with rows of edges inside a pair of arguments."""

    def __init__(self, width: int, out: int) -> None:
        super().__init__(aggr="sum")
        self.lin = nn.Linear(width, out)

    def forward(self, x: Tensor, edge_index: Tensor, edge_weight: Tensor) -> Tensor:
        return self.propagate(edge_index, x=self.lin(x), shares=[edge_weight / 2])

    def message(self, x_j: Tensor, shares: list[Tensor]) -> Tensor:
        return x_j * shares[0][:, None]


NETWORKS: dict[str, Any] = {
    "GCN": lambda: Stacked(pyg.GCNConv),
    "GCN of three layers": lambda: Stacked(pyg.GCNConv, 3),
    "GCN without loops": lambda: Stacked(lambda a, b: pyg.GCNConv(a, b, add_self_loops=False)),
    "GCN improved": lambda: Stacked(lambda a, b: pyg.GCNConv(a, b, improved=True)),
    "GCN not normalized": lambda: Stacked(lambda a, b: pyg.GCNConv(a, b, normalize=False)),
    "GCN cached": lambda: Stacked(lambda a, b: pyg.GCNConv(a, b, cached=True)),
    "SAGE": lambda: Stacked(pyg.SAGEConv),
    "SAGE max": lambda: Stacked(lambda a, b: pyg.SAGEConv(a, b, aggr="max")),
    "GIN": lambda: Stacked(lambda a, b: pyg.GINConv(nn.Linear(a, b))),
    "GAT": lambda: Stacked(pyg.GATConv),
    "GATv2": lambda: Stacked(lambda a, b: pyg.GATv2Conv(a, b, heads=2, concat=False)),
    "transformer": lambda: Stacked(pyg.TransformerConv),
    "graph convolution": lambda: Stacked(pyg.GraphConv),
    "TAG": lambda: Stacked(lambda a, b: pyg.TAGConv(a, b, K=2)),
    "SG": lambda: Stacked(lambda a, b: pyg.SGConv(a, b, K=2), 2),
    "cluster": lambda: Stacked(pyg.ClusterGCNConv),
    "general": lambda: Stacked(pyg.GeneralConv),
    "branches": Branches,
    "own": lambda: Stacked(Numpy),
    "pairs": lambda: Weighted(Paired),
}
OPTIONS: dict[str, Any] = {"task": "node", "index": 0, "payoff": "raw", "target": "all"}
EACH_WAY = Edges(directed=True)


def worths(model: nn.Module, data: Data, *, share: Any, **options: Any) -> Any:
    game = GNNGame(model, data, passes=Passes(share=share), **OPTIONS, **options)
    rows = np.random.default_rng(1).random((600, game.n)) < 0.5
    found = game(rows)
    if share:
        assert game.sharing.used
    return found


@pytest.mark.parametrize(
    ("name", "players", "loops"), in_turn(NETWORKS, [EACH_WAY, "nodes"], [False, True])
)
def test_worths_are_those_of_the_ordinary_path(name: str, players: Any, loops: bool) -> None:
    torch.manual_seed(0)
    model, data = NETWORKS[name]().eval(), graph(loops=loops)
    if isinstance(model, Weighted):
        data.edge_weight = torch.arange(data.edge_index.shape[1]) % 3 + 0.5
    shared = worths(model, data, share=True, players=players)
    plain = worths(model, data, share=False, players=players)
    np.testing.assert_allclose(shared, plain, atol=2e-5 * np.ptp(plain))


@pytest.mark.parametrize("double", [False, True])
def test_wide_features_of_both_precisions(double: bool) -> None:
    torch.manual_seed(0)
    model, data = Stacked(pyg.GCNConv, width=80).eval(), graph(wide=True)
    if double:
        model, data.x = model.double(), data.x.double()
    options = {"players": EACH_WAY, "game": GameOptions(computation_graph="gnnshap")}
    shared = worths(model, data, share=True, **options)
    plain = worths(model, data, share=False, **options)
    np.testing.assert_allclose(shared, plain, atol=(1e-12 if double else 2e-5) * np.ptp(plain))


def messages(model: nn.Module, data: Data, **options: Any) -> Counter[int]:
    """How many messages every layer passes for 600 coalitions."""
    # counted afterwards: a hook that asks for a number would be code that looks at several rows
    seen: list[tuple[int, Tensor]] = []
    for at, layer in enumerate(model.layers):
        layer.register_message_forward_hook(
            lambda module, inputs, output, at=at: seen.append((at, output))
        )
    worths(model, data, **options)
    counts: Counter[int] = Counter()
    for at, output in seen:
        counts[at] += len(output)
    return counts


@pytest.mark.parametrize("layer", [pyg.GCNConv, pyg.SAGEConv, pyg.GATConv])
def test_the_last_layer_passes_messages_to_the_target_node_only(
    layer: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    model = Stacked(layer).eval()
    seen = messages(model, graph(), share=True, players=EACH_WAY)
    assert seen[1] < 0.6 * seen[0]
    monkeypatch.setattr(needed_messages, "_LEAST_SAVED", 2.0)
    torch.manual_seed(0)
    everything = messages(Stacked(layer).eval(), graph(), share=True, players=EACH_WAY)
    assert everything[0] == everything[1] == seen[0]


def test_layers_are_left_as_they_were() -> None:
    torch.manual_seed(0)
    model, data = Stacked(lambda a, b: pyg.GCNConv(a, b, cached=True)).eval(), graph()
    with torch.no_grad():
        before = model(data.x, data.edge_index)
    kept = [layer._cached_edge_index for layer in model.layers]
    worths(model, data, share=True, players=EACH_WAY)
    for layer, known in zip(model.layers, kept, strict=True):
        assert layer._cached_edge_index is known
        assert not layer._propagate_forward_pre_hooks
        assert not layer._forward_pre_hooks
    with torch.no_grad():
        torch.testing.assert_close(model(data.x, data.edge_index), before)


@settings(max_examples=40)
@given(st.integers(1, 9), st.integers(0, 30), st.booleans(), st.booleans(), st.integers(0, 2**32))
def test_normalized_edges_are_those_of_pyg(
    nodes: int, edges: int, loops: bool, double: bool, seed: int
) -> None:
    ends = torch.from_numpy(np.random.default_rng(seed).integers(nodes, size=(2, edges)))
    dtype = torch.float64 if double else torch.float32
    found, weights = _normalized(ends, nodes, dtype, loops)
    expected = gcn_norm(ends, None, nodes, add_self_loops=loops, dtype=dtype)
    torch.testing.assert_close(found, expected[0])
    torch.testing.assert_close(weights, expected[1])


def test_edges_to_no_node_are_refused() -> None:
    with pytest.raises(IndexError, match=r"nodes 0\.\.2 \(got 3\)"):
        _normalized(torch.tensor([[0], [3]]), 3, torch.float32, True)


@pytest.mark.parametrize(("double", "weighted"), [(False, True), (True, False)])
def test_messages_are_added_up_where_they_arrive(weighted: bool, double: bool) -> None:
    rng = np.random.default_rng(0)
    rows = torch.from_numpy(rng.normal(size=(6, 4)))
    rows = rows if double else rows.float()
    source, target = torch.from_numpy(rng.integers(6, size=(2, 25)))
    weights = torch.from_numpy(rng.normal(size=(25, 1))).to(rows)
    with torch.no_grad():
        late = GatheredRows.all_of(rows).index_select(0, source)
        late = weights * late if weighted else late
        into = late.new_zeros(7, 4)
        into.scatter_add_(0, target[:, None].expand_as(late), late)
        assert late._rows is None  # nothing was gathered
    plain = rows[source] * weights if weighted else rows[source]
    expected = torch.zeros(7, 4, dtype=rows.dtype).index_add_(0, target, plain)
    torch.testing.assert_close(into, expected)
    torch.testing.assert_close(late.gathered, plain)


def test_rows_with_weights_are_ordinary_for_any_other_operation() -> None:
    rows, weights = torch.randn(5, 3), torch.tensor([[-1.0], [2.0], [0.5]])
    index = torch.tensor([4, 0, 4])
    with torch.no_grad():
        late = GatheredRows(SharedRows(rows), index) * weights
        assert late._rows is None
        torch.testing.assert_close(late.relu(), (rows[index] * weights).relu())
        late = GatheredRows(SharedRows(rows), index) * weights
        torch.testing.assert_close((late * weights).sum(0), (rows[index] * weights**2).sum(0))


def test_an_index_beyond_the_rows_is_an_error() -> None:
    late = GatheredRows.all_of(torch.ones(2, 3))
    index = torch.tensor([[0], [5]]).expand(2, 3)
    with torch.no_grad(), pytest.raises(IndexError, match="5 is out of bounds for 4 rows"):
        torch.zeros(4, 3).scatter_add_(0, index, late)


@pytest.mark.parametrize("depth", [2, 3, 5])
def test_more_layers_than_it_takes_to_hear_of_everybody(depth: int) -> None:
    torch.manual_seed(0)
    model = Stacked(pyg.GCNConv, depth).eval()
    data = Data(x=torch.randn(2, WIDTH), edge_index=torch.tensor([[1, 0], [0, 1]]))
    options = {**OPTIONS, "players": EACH_WAY}
    rows = np.array([[1, 1], [1, 0], [0, 1]], dtype=np.bool_)
    shared = GNNGame(model, data, passes=Passes(share=True), **options)(rows)
    plain = GNNGame(model, data, passes=Passes(share=False), **options)(rows)
    np.testing.assert_allclose(shared, plain, atol=1e-6)
