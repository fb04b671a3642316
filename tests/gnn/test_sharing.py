"""Worths from shared embeddings are those of the model, or are not given out."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool
from torch_geometric.utils import degree, to_undirected

from gstarx import (
    GameOptions,
    GNNGame,
    Judge,
    Passes,
    Subgraphs,
    explain,
    explain_many,
    explainers,
)
from gstarx.explainers import graph_generator
from gstarx.gnn import BatchMixing, Sharing
from gstarx.models import GAT, GCN, GIN
from gstarx.players import Edges, Groups
from tests.gnn import one_by_one
from tests.pairs import in_turn

FEATURES, CLASSES = 4, 3
#: Two rings, linked, with two nodes hanging on.
EDGES = [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (5, 6), (6, 7), (7, 8), (8, 9), (9, 10)]
EDGES += [(10, 6), (2, 11), (9, 12)]
RAW: dict[str, Any] = {"payoff": "raw", "target": "all"}


def graph(*, seed: int = 0, distinct: bool = False, dtype: torch.dtype = torch.float32) -> Data:
    """A molecule-like graph, whose nodes and edges are of few kinds unless they are distinct."""
    draw = torch.Generator().manual_seed(seed)
    ends = torch.tensor(EDGES).t()
    both = torch.cat([ends, ends.flip(0)], dim=1)
    kinds = torch.randint(FEATURES, (13,), generator=draw)
    x = torch.randn(13, FEATURES, generator=draw) if distinct else torch.eye(FEATURES)[kinds]
    bonds = torch.randint(3, (both.shape[1],), generator=draw)
    return Data(
        x=x.to(dtype),
        edge_index=both,
        edge_attr=torch.eye(3)[bonds].to(dtype),
        edge_weight=(0.5 + bonds).to(dtype),
    )


def built(model: nn.Module, *, seed: int = 0) -> Any:
    """The model with weights by seed, none of them zero."""
    torch.manual_seed(seed)
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model.eval()


class Layers(nn.Module):
    """Layers with activations, a readout, a head; a step of one's own in between."""

    def __init__(self, *layers: nn.Module, pool: Any = global_mean_pool, width: int = 8) -> None:
        super().__init__()
        self.first = nn.Linear(FEATURES, 8)
        self.layers = nn.ModuleList(layers or [pyg.GCNConv(8, 8), pyg.SAGEConv(8, 8)])
        self.head = nn.Linear(width, CLASSES)
        self.pool = pool

    def between(self, hidden: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return hidden

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        hidden = self.first(x).tanh()
        for layer in self.layers:
            hidden = layer(hidden, edge_index).tanh()
            hidden = self.between(hidden, edge_index, batch)
        return self.head(self.pool(hidden, batch))


def both_ways(
    model: Any, data: Data, rows: Any = None, *, share: Any = "auto", **options: Any
) -> tuple[Any, Any, GNNGame]:
    """Worths with sharing where it is worth it, and without; the game of the first."""
    game = GNNGame(model, data, passes=Passes(share=share), **RAW, **options)
    plain = GNNGame(model, data, passes=Passes(share=False), **RAW, **options)
    rows = game.graph.connected_coalitions() if rows is None else rows
    return game(rows), plain(rows), game


def assert_same(shared: NDArray[Any], plain: NDArray[Any], share: float = 1e-5) -> None:
    assert np.ptp(plain, axis=0).max() > 1e-4
    assert np.abs(shared - plain).max() <= share * np.ptp(plain, axis=0).max()


# -- what is shared --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("network", "readout"), [(GCN, "mean"), (GIN, "max"), (GAT, "sum"), (GCN, "max")]
)
def test_networks_of_the_paper(network: Any, readout: str) -> None:
    model = built(network(FEATURES, 8, CLASSES, readout=readout))
    shared, plain, game = both_ways(model, graph())
    assert_same(shared, plain)
    assert game.sharing.used
    assert game.sharing.reason == ""
    assert game.sharing.nodes > 2 * game.sharing.states > 0
    assert game.check.comparisons >= 32


@pytest.mark.parametrize("network", [GCN, GIN])
def test_double_precision_and_distinct_nodes(network: Any) -> None:
    model = built(network(FEATURES, 8, CLASSES)).double()
    shared, plain, game = both_ways(model, graph(distinct=True, dtype=torch.float64))
    assert game.sharing.used
    assert_same(shared, plain, 1e-10)


def test_blocks_give_the_same_worths_whatever_else_is_evaluated() -> None:
    model, data = built(GCN(FEATURES, 8, CLASSES)), graph()
    small = GNNGame(model, data, passes=Passes(batch_nodes=40, share=True), **RAW)
    rows = small.graph.connected_coalitions()
    expected = GNNGame(model, data, passes=Passes(share=False), **RAW)(rows)
    assert_same(small(rows), expected, 1e-6)
    assert small._scores.shared._blocks > 3
    again = GNNGame(model, data, passes=Passes(share=True), **RAW)
    order = np.random.default_rng(0).permutation(len(rows))
    for part in np.array_split(order, 7):
        assert_same(again(rows[part]), expected[part], 1e-6)
    np.testing.assert_array_equal(again(rows)[order], np.concatenate([again(rows[order])]))
    assert again.evaluations == small.evaluations == len(rows)


class Weighted(nn.Module):
    """Degrees are sums of weights; the attributes of edges count too."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = pyg.GCNConv(FEATURES, 8), pyg.GATConv(8, 8, edge_dim=3)
        self.head = nn.Linear(8, CLASSES)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_weight: Tensor, edge_attr: Tensor, batch: Tensor
    ) -> Tensor:
        hidden = self.first(x, edge_index, edge_weight).tanh()
        return self.head(global_add_pool(self.second(hidden, edge_index, edge_attr), batch))


class Bonded(nn.Module):
    """No layer looks at degrees, so that attributes count for nothing but messages."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = pyg.GINEConv(nn.Linear(FEATURES, 8), edge_dim=3)
        self.head = nn.Linear(8, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor) -> Tensor:
        return self.head(global_add_pool(self.layer(x, edge_index, edge_attr).tanh(), batch))


@pytest.mark.parametrize(
    ("make", "removal"),
    in_turn(
        [Weighted, Bonded, lambda: GIN(FEATURES, 8, CLASSES), Layers],
        ["remove", "split", "zero_filling"],
    ),
)
def test_edge_fields_and_every_removal(make: Any, removal: str) -> None:
    data = graph(seed=1)
    rows = np.random.default_rng(0).random((600, 13)) < 0.6
    shared, plain, game = both_ways(built(make()), data, rows, game=GameOptions(removal=removal))
    assert_same(shared, plain)
    assert game.sharing.used


#: Who plays besides nodes: edges, each way or both, and groups that are connected or not.
OTHER_PLAYERS: dict[str, dict[str, Any]] = {
    "edges": {"players": "edges"},
    "directions": {"players": Edges(directed=True)},
    "groups": {"players": [{0, 1}, {2, 11}, {3, 7}]},
    "groups, others present": {"players": Groups([{at} for at in range(12)], rest="present")},
}


@pytest.mark.parametrize(("players", "make"), in_turn(sorted(OTHER_PLAYERS), [GCN, GIN, GAT]))
def test_other_players_than_nodes(players: str, make: Any) -> None:
    model, data = built(make(FEATURES, 8, CLASSES)).double(), graph(dtype=torch.float64)
    options = OTHER_PLAYERS[players]
    n = GNNGame(model, data, **RAW, **options).n
    rows = np.random.default_rng(0).random((600, n)) < 0.6
    shared, plain, game = both_ways(model, data, rows, **options)
    assert_same(shared, plain, 1e-10)
    assert game.sharing.used
    assert game.sharing.nodes > 2 * game.sharing.states > 0


@pytest.mark.parametrize("flow", ["source_to_target", "target_to_source"])
def test_directed_edges_either_way(flow: str) -> None:
    data = graph()
    data.edge_index = data.edge_index[:, :17]
    del data.edge_attr, data.edge_weight
    layers = [pyg.SAGEConv(8, 8, flow=flow), pyg.GraphConv(8, 8, flow=flow)]
    rows = np.random.default_rng(0).random((800, 13)) < 0.6
    shared, plain, game = both_ways(built(Layers(*layers)), data, rows)
    assert_same(shared, plain)
    assert game.sharing.used


@pytest.mark.parametrize("messy", [False, True])
@pytest.mark.parametrize("level", ["node", "edge"])
def test_outputs_at_nodes_and_pairs(level: str, messy: bool) -> None:
    class Pairs(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.net = GCN(FEATURES, 8, CLASSES, readout=None)

        def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
            found = self.net(x, edge_index)
            return found[edge_label_index[0]] * found[edge_label_index[1]].sigmoid()

    model = built(Pairs() if level == "edge" else GCN(FEATURES, 8, CLASSES, readout=None))
    data = graph(distinct=messy)
    if messy:
        loops = torch.tensor([[3, 5, 5, 9, 9], [3, 6, 6, 9, 10]])
        data.edge_index = torch.cat([data.edge_index[:, :20], loops], dim=1)
    del data.edge_attr, data.edge_weight
    data.edge_label_index = torch.tensor([[5, 2], [9, 6]])
    options: dict[str, Any] = {"task": level, "index": 1 if level == "edge" else 5}
    game = GNNGame(model, data, **RAW, **options)
    rows = np.random.default_rng(0).random((1_200, game.n)) < 0.6
    shared, plain, game = both_ways(model, data, rows, **options, share=True)
    assert_same(shared, plain)
    assert game.sharing.used
    # what is far from the target counts only as far as its messages reach
    assert game.sharing.nodes > 2 * game.sharing.states


def test_more_rounds_than_hops_from_the_target() -> None:
    # a wheel: all nodes are next to the target, and messages go around it inside a coalition
    ring = torch.arange(1, 10)
    ends = torch.stack([torch.cat([ring, ring]), torch.cat([ring.roll(1), torch.zeros_like(ring)])])
    data = Data(x=torch.eye(FEATURES)[torch.arange(10) % 2], edge_index=ends)
    data.edge_index = torch.cat([ends, ends.flip(0)], dim=1)
    layers = nn.ModuleList([pyg.SAGEConv(FEATURES, FEATURES) for _ in range(5)])

    def model(x: Tensor, edge_index: Tensor) -> Tensor:
        for layer in layers:
            x = 2 * layer(x, edge_index).tanh()
        return x

    rows = np.random.default_rng(0).random((500, 10)) < 0.5
    shared, plain, game = both_ways(model, data, rows, task="node", index=0, share=True)
    assert_same(shared, plain)
    assert game.sharing.used


def test_nodes_that_always_stay() -> None:
    model = built(GCN(FEATURES, 8, CLASSES, readout=None))
    options: dict[str, Any] = {"task": "node", "index": 5, "game": GameOptions(num_hops=2)}
    rows = np.random.default_rng(0).random((600, 8)) < 0.6
    shared, plain, game = both_ways(model, graph(), rows, **options, share=True)
    assert game.n == 8 < 13
    assert game.sharing.used
    assert_same(shared, plain)


def test_more_nodes_than_a_word_has_bits() -> None:
    ends = torch.tensor([(i, i + 1) for i in range(79)] + [(i, i + 6) for i in range(0, 70, 9)]).t()
    data = Data(x=torch.eye(4)[torch.arange(80) % 4], edge_index=torch.cat([ends, ends.flip(0)], 1))
    starts = np.random.default_rng(0).integers(0, 60, size=300)
    rows = np.abs(np.arange(80) - starts[:, None] - 10) < 10
    shared, plain, game = both_ways(built(GCN(4, 8, CLASSES)), data, rows, share=True)
    assert game.sharing.used
    assert_same(shared, plain)


def test_aggregations_that_need_all_rows() -> None:
    aggr = pyg.aggr
    for pool, width in (
        (aggr.Set2Set(8, 2), 16),
        (aggr.MedianAggregation(), 8),
        (aggr.AttentionalAggregation(nn.Linear(8, 1)), 8),
        (aggr.MultiAggregation(["mean", "max", "min", "std"]), 32),
    ):
        shared, plain, game = both_ways(built(Layers(pool=pool, width=width)), graph())
        assert game.sharing.used, (pool, game.sharing)
        assert_same(shared, plain)
        assert all(not module._forward_pre_hooks for module in game.model.modules())


# -- what falls back -------------------------------------------------------------------------------


class Normed(Layers):
    def __init__(self, norm: nn.Module) -> None:
        super().__init__(pool=global_max_pool)
        self.norm = norm

    def between(self, hidden: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return self.norm(hidden, batch)


class VirtualNode(Layers):
    def between(self, hidden: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return hidden + global_add_pool(hidden, batch)[batch]


class Attention(Layers):
    """Every node attends to all nodes of its graph."""

    def between(self, hidden: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        scores = (hidden @ hidden.t()).masked_fill(batch[:, None] != batch, -torch.inf)
        return scores.softmax(dim=1) @ hidden


class Selecting(Layers):
    def __init__(self, pooling: nn.Module) -> None:
        super().__init__()
        self.pooling = pooling

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        hidden, *_, batch, _, _ = self.pooling(self.first(x), edge_index, batch=batch)[:6]
        return self.head(global_mean_pool(hidden, batch))


class FromPositions(Layers):
    """Draws its own edges between nodes that lie close."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        near = (torch.cdist(x, x) < 2) & (batch[:, None] == batch)
        return super().forward(x, near.nonzero().t(), batch)


class HiddenRound(Layers):
    """One more round of messages than its layers show."""

    def between(self, hidden: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return hidden.index_add(0, edge_index[1], hidden[edge_index[0]]).tanh()


class OutDegrees(Layers):
    def between(self, hidden: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return hidden * degree(edge_index[0], len(hidden))[:, None]


class Undirected(Layers):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        return super().forward(x, to_undirected(edge_index, num_nodes=len(x)), batch)


class Dense(Layers):
    """Multiplies by the adjacency matrix of the whole batch, edges counted once."""

    def between(self, hidden: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        matrix = hidden.new_zeros(len(hidden), len(hidden))
        matrix[edge_index[0], edge_index[1]] = 1
        return (matrix @ hidden).tanh()


class Padded(Layers):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        from torch_geometric.utils import to_dense_batch

        dense, mask = to_dense_batch(self.first(x), batch)
        return self.head(dense.sum(dim=1) / mask.sum(dim=1, keepdim=True))


class Pointers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = GCN(FEATURES, 8, CLASSES)

    def forward(self, data: Data) -> Tensor:
        found = self.net(data.x, data.edge_index, data.batch)
        return found + 0.1 * data.ptr.diff()[:, None]


class Caught(Layers):
    """What is refused is caught, and something else is done instead."""

    def __init__(self, use: Any) -> None:
        super().__init__(pyg.GCNConv(8, 8))
        self.use = use

    def between(self, hidden: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        with suppress(Exception):
            self.use(edge_index, batch)
        return hidden


class PassedEnds(pyg.MessagePassing):  # type: ignore[misc]
    """Messages that are given the ends of all edges under another name."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        found: Tensor = self.propagate(edge_index, x=x, ends=[edge_index[0]])
        return found

    def message(self, x_j: Tensor, ends: list[Tensor]) -> Tensor:
        # so many edges leave no node: only the refusal shows
        return x_j * (1 + (torch.bincount(ends[0]) > 10**6)[ends[0]])[:, None]


class Doubling(pyg.MessagePassing):  # type: ignore[misc]
    """A layer of one's own that reads nothing but messages."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        found: Tensor = self.propagate(edge_index, x=x)
        return 2 * found


class EdgeByEdge(pyg.MessagePassing):  # type: ignore[misc]
    """Returns its messages as they are, from which all nodes learn how many edges there are."""

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        rows: Tensor = self.propagate(edge_index, x=x)
        return x * (1 + (len(rows) > 10**6))

    def message(self, x_i: Tensor, x_j: Tensor) -> Tensor:
        return x_i * x_j

    def aggregate(self, inputs: Tensor, index: Tensor) -> Tensor:
        return inputs


def hooked(layer: Any, register: str, read: Callable[[Any], Tensor]) -> Any:
    """A layer with a function of the user's own that is given all its inputs."""

    def after(layer: Any, inputs: Any, output: Tensor) -> Tensor:
        # so many edges leave no node: only the refusal shows
        return (
            output * (1 + (torch.bincount(read(inputs)[0], minlength=len(output)) > 10**6))[:, None]
        )

    getattr(layer, register)(after)
    return layer


MORE = "depends on more than the messages"
READS = "reads edges outside of its message passing"
BATCH = "uses batch for more than a readout"
FALLING_BACK: dict[str, tuple[Any, str]] = {
    "GraphNorm": (lambda: Normed(pyg.GraphNorm(8)), BATCH),
    "PairNorm": (lambda: Normed(pyg.PairNorm()), BATCH),
    "LayerNorm over the graph": (lambda: Normed(pyg.LayerNorm(8)), BATCH),
    "InstanceNorm": (lambda: Normed(pyg.InstanceNorm(8)), BATCH),
    "GraphSizeNorm": (lambda: Normed(pyg.GraphSizeNorm()), BATCH),
    "a virtual node": (VirtualNode, BATCH),
    "global attention": (Attention, BATCH),
    "TopKPooling": (lambda: Selecting(pyg.TopKPooling(8)), BATCH),
    "edges from positions": (FromPositions, BATCH),
    "a hidden round": (HiddenRound, READS),
    "degrees of sources": (OutDegrees, READS),
    "to_undirected": (Undirected, READS),
    "a dense adjacency": (Dense, READS),
    "ChebConv": (lambda: Layers(pyg.ChebConv(8, 8, 3)), READS),
    "DirGNNConv": (lambda: Layers(pyg.DirGNNConv(pyg.SAGEConv(8, 8))), READS),
    "flows of both kinds": (
        lambda: Layers(pyg.SAGEConv(8, 8), pyg.SAGEConv(8, 8, flow="target_to_source")),
        "both ways",
    ),
    "padding": (Padded, BATCH),
    "ptr": (Pointers, BATCH),
    "a caught look at edges": (lambda: Caught(lambda edges, _: edges.size(1)), READS),
    "edges as a list, caught": (lambda: Caught(lambda edges, _: edges.tolist()), READS),
    "a caught use of batch": (lambda: Caught(lambda _, batch: batch + 1), BATCH),
    "batch as a list, caught": (lambda: Caught(lambda _, batch: batch.tolist()), BATCH),
    "ends as an argument of messages": (lambda: Layers(PassedEnds()), READS),
    "messages edge by edge": (lambda: Layers(EdgeByEdge()), READS),
    "a hook after a layer": (
        lambda: Layers(hooked(pyg.SAGEConv(8, 8), "register_forward_hook", lambda given: given[1])),
        READS,
    ),
    "a hook after the messages of a layer": (
        lambda: Layers(
            hooked(Doubling(), "register_propagate_forward_hook", lambda given: given[0])
        ),
        READS,
    ),
}


@pytest.mark.parametrize("name", FALLING_BACK)
def test_models_that_must_not_share(name: str) -> None:
    make, reason = FALLING_BACK[name]
    model = built(make())
    data = Data(x=graph(distinct=True).x, edge_index=graph().edge_index)
    shared, plain, game = both_ways(model, data)
    assert not game.sharing.used
    assert reason in game.sharing.reason
    assert (game.sharing.nodes, game.sharing.states) == (0, 0)
    assert_same(shared, plain, 1e-6)
    # everything again for a second question, and no second attempt
    assert_same(game(~np.eye(13, dtype=bool)), GNNGame(model, data, **RAW)(~np.eye(13, dtype=bool)))
    with pytest.raises(ValueError, match="share=True: coalitions cannot share embeddings: "):
        GNNGame(model, data, passes=Passes(share=True), **RAW)(game.graph.connected_coalitions())


def test_what_is_known_without_running_the_model() -> None:
    data, model = graph(), built(GCN(FEATURES, 8, CLASSES))
    named = one_by_one.graph("ring")

    def alone(x: Tensor, edge_index: Tensor) -> Tensor:
        return model(x, edge_index)

    def pairs(x: Tensor, edge_index: Tensor, batch: Tensor, pair_index: Tensor) -> Tensor:
        return model(x, edge_index, batch)

    for arguments, options, reason in (
        ((alone, data), {}, "does not take batch"),
        ((model, data), {"passes": Passes(batch_nodes=1)}, "batch_nodes=1"),
        ((model, data), {"game": GameOptions(removal=lambda d, inside: d)}, "removal of your own"),
        ((pairs, named), {}, "names nodes"),
        (
            (torch.compile(model, backend="eager"), data),
            {"lazy": True},
            "compiled by torch.compile",
        ),
        (
            (model, Data(x=torch.ones(5_000, FEATURES), edge_index=data.edge_index)),
            {},
            "4,096 nodes",
        ),
        ((model, data), {"passes": Passes(share=False)}, "share=False"),
    ):
        game = GNNGame(*arguments, **options)
        assert reason in game.sharing.reason
        assert not game.sharing.used
        if "share=False" not in reason:
            passes = replace(options.pop("passes", Passes()), share=True)
            with pytest.raises(ValueError, match="share=True: coalitions cannot share"):
                GNNGame(*arguments, passes=passes, **options)


def test_where_it_is_not_worth_it() -> None:
    model, data = built(GCN(FEATURES, 8, CLASSES)), graph()
    few = ~np.eye(13, dtype=bool)
    game = GNNGame(model, data, **RAW)
    expected = game(few)
    assert game.sharing == Sharing(reason="there are few coalitions")
    forced = GNNGame(model, data, passes=Passes(share=True), **RAW)
    assert_same(forced(few), expected)
    assert forced.sharing.used
    everybody = torch.combinations(torch.arange(13)).t()
    dense = Data(
        x=torch.randn(13, FEATURES), edge_index=torch.cat([everybody, everybody.flip(0)], 1)
    )
    rows = np.random.default_rng(0).random((700, 13)) < 0.5
    shared, plain, game = both_ways(model, dense, rows)
    assert "little is shared" in game.sharing.reason
    assert_same(shared, plain, 1e-6)


class InTriangles(nn.Module):
    """Nodes in triangles get an embedding of their own, which few coalitions show."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (5, 16, 16, 16)
        self.layers = nn.ModuleList(map(pyg.SAGEConv, sizes[:-1], sizes[1:]))
        self.extra, self.head = nn.Parameter(torch.randn(16)), nn.Linear(16, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        near = x.new_zeros(len(x), len(x))
        near[edge_index[0], edge_index[1]] = 1
        inside = (((near @ near) * near).sum(1) > 0)[:, None]
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        return self.head(global_add_pool(x + 2 * inside * self.extra, batch))


class OneRoundMore(nn.Module):
    """Layers, and one round of messages by hand."""

    def __init__(self) -> None:
        super().__init__()
        sizes = (3, 16, 16, 16)
        self.layers = nn.ModuleList(map(pyg.SAGEConv, sizes[:-1], sizes[1:]))
        self.head = nn.Linear(16, 2)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        for layer in self.layers:
            x = layer(x, edge_index).relu()
        heard = torch.zeros_like(x).index_add(0, edge_index[1], x[edge_index[0]])
        return self.head(global_mean_pool(x + heard, batch))


@pytest.mark.filterwarnings("ignore:the outputs for all evaluated parts of the graph")
@pytest.mark.parametrize("value", ["shapley", "banzhaf"])
def test_what_edges_say_besides_messages_is_not_shared(value: str) -> None:
    ends = torch.tensor(
        [[1, 2, 3, 4, 5, 6, 7, 8, 9, 7, 7, 5], [0, 1, 0, 0, 1, 2, 3, 3, 0, 2, 8, 9]]
    )
    path = torch.stack([torch.arange(12), torch.arange(1, 13)])
    for seed in range(3):
        torch.manual_seed(seed)
        kinds = torch.eye(3)[torch.randint(3, (13,))]
        for model, x, edges in (
            (InTriangles(), torch.randn(10, 5), ends),
            (OneRoundMore(), kinds, path),
        ):
            data = Data(x=x, edge_index=torch.cat([edges, edges.flip(0)], dim=1))
            # small batches: one of the models makes a dense matrix of each
            found, plain = (
                explain(model, data, value=value, target=1, passes=passes)
                for passes in (Passes(batch_nodes=500), Passes(batch_nodes=500, share=False))
            )
            assert READS in found.sharing.reason
            largest = float(plain.scores.abs().max())
            torch.testing.assert_close(found.scores, plain.scores, rtol=0, atol=1e-5 * largest)


class Loops(nn.Module):
    """Two convolutions, which add the self-loops that are missing."""

    def __init__(self, make: Any = pyg.GCNConv) -> None:
        super().__init__()
        self.one, self.two, self.head = make(FEATURES, 8), make(8, 8), nn.Linear(8, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        hidden = self.two(self.one(x, edge_index).relu(), edge_index).relu()
        return self.head(global_mean_pool(hidden, batch))


@pytest.mark.parametrize("make", [pyg.GCNConv, pyg.GATConv, pyg.DNAConv, pyg.TAGConv])
def test_self_loops_of_some_nodes_are_part_of_the_state(make: Any) -> None:
    if make is pyg.DNAConv:
        make = lambda width, out: pyg.Sequential(  # noqa: E731
            "x, edge_index",
            [
                (nn.Linear(width, out), "x -> x"),
                (lambda x: x[:, None], "x -> x"),
                (pyg.DNAConv(out), "x, edge_index -> x"),
            ],
        )
    ring = torch.arange(13)
    ends = torch.stack([ring, (ring + 1) % 13])
    for seed in range(3):
        torch.manual_seed(seed)
        loops = torch.tensor([[0, 4, 4], [0, 4, 4]])
        data = Data(
            x=torch.eye(FEATURES, dtype=torch.float64)[torch.randint(0, 2, (13,))],
            edge_index=torch.cat([ends, ends.flip(0), loops], dim=1),
        )
        rows = np.random.default_rng(0).random((2_000, 13)) < 0.5
        shared, plain, game = both_ways(built(Loops(make), seed=seed).double(), data, rows)
        assert game.sharing.used
        assert_same(shared, plain, 1e-10)


class Declared(nn.Module):
    """Two rounds of messages by hand, of which it owns up to some."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self.message_rounds = rounds

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        for _ in range(2):
            x = x.index_add(0, edge_index[1], x[edge_index[0]]).tanh()
        return x


class Leaking(nn.Module):
    """A little of the mean over all nodes, whichever graph they belong to."""

    def __init__(self, share: float) -> None:
        super().__init__()
        self.share, self.conv = share, pyg.SAGEConv(8, 8)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index) + self.share * x.mean(dim=0)


class Positioned(nn.Module):
    """The place of a node among all others."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = pyg.SAGEConv(8, 8)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x, edge_index) + 1e-3 * torch.arange(len(x))[:, None].sin()


class Identified(nn.Module):
    """Messages of one-hot vectors write down who is next to whom, and so who is in a triangle."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.sums = pyg.SAGEConv(8, 8), pyg.SimpleConv()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        near = self.sums(torch.eye(len(x), dtype=x.dtype), edge_index)
        return self.conv(x, edge_index) + ((near @ near) * near).sum(dim=1, keepdim=True)


@pytest.mark.parametrize(
    ("make", "shares", "double"),
    [
        (Identified, False, False),
        (lambda: pyg.ARMAConv(8, 8, num_stacks=2), True, True),
        (lambda: Declared(2), True, False),
        (lambda: Declared(1), False, True),
        (lambda: Leaking(0.0), True, True),
        (lambda: Leaking(0.0), True, False),
        (lambda: Leaking(1e-3), False, False),
        (lambda: Leaking(1e-3), False, True),
        (Positioned, False, False),
    ],
)
def test_changes_far_away_are_noticed(make: Any, shares: bool, double: bool) -> None:
    model, data = built(Layers(make())), graph()
    if double:
        model, data = model.double(), graph(dtype=torch.float64)
    del data.edge_attr, data.edge_weight
    for _ in range(5):  # not in every one of them a model is disturbed
        game = GNNGame(model, data, passes=Passes(check=False), **RAW)
        game(np.random.default_rng(0).random((600, 13)) < 0.6)
        assert game.sharing.used == shares, game.sharing
        assert shares or MORE in game.sharing.reason


class Deepening(Layers):
    """As many rounds of messages as the graph has nodes, up to three."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        hidden = self.first(x)
        for _ in range(3 if len(x) == 13 else 2):
            hidden = self.layers[1](hidden, edge_index).tanh()
        return self.head(self.pool(hidden, batch))


def test_rounds_that_depend_on_the_graph_are_not_shared() -> None:
    data = Data(x=graph(distinct=True).x, edge_index=graph().edge_index)
    game = GNNGame(built(Deepening()), data, **RAW)
    with pytest.warns(UserWarning, match="mixes"):
        game(np.random.default_rng(0).random((600, 13)) < 0.6)
    assert "passes messages 2 times over one graph and 3 times" in game.sharing.reason


def test_few_coalitions_are_all_compared() -> None:
    game = GNNGame(built(Layers()), graph(), passes=Passes(share=True), **RAW)
    game(np.random.default_rng(0).random((100, 13)) < 0.6)
    assert game.check.comparisons >= 100
    assert game.sharing.used


# -- what goes wrong later -------------------------------------------------------------------------


class Late(Layers):
    """A layer that is random, or looks at the size of what it is given, from some call on."""

    def __init__(self, calls: int, *, drawn: bool) -> None:
        super().__init__()
        # an attribute would be put back after every pass
        self.calls, self.drawn = SimpleNamespace(left=calls), drawn

    def between(self, hidden: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        self.calls.left -= 1
        if self.calls.left > 0:
            return hidden
        if self.drawn:
            return hidden + 0.1 * torch.randn_like(hidden)
        return hidden * (1 + len(hidden) / 1000)


def test_a_global_operation_that_shows_late_is_recomputed() -> None:
    model, data = built(Late(12, drawn=False)), graph()
    game = GNNGame(copy.deepcopy(model), data, passes=Passes(batch_nodes=40), **RAW)
    rows = game.graph.connected_coalitions()
    # the ordinary path meets the operation as well, and turns to one coalition at a time
    with pytest.warns(UserWarning, match="mixes the graphs"):
        found = game(rows)
    assert not game.sharing.used
    assert MORE in game.sharing.reason
    model.calls.left = 0
    np.testing.assert_allclose(
        found, GNNGame(model, data, passes=Passes(batch_nodes=1), **RAW)(rows), atol=1e-6
    )
    assert game.evaluations == len(rows)


def test_randomness_that_shows_late_is_refused() -> None:
    game = GNNGame(built(Late(12, drawn=True)), graph(), passes=Passes(batch_nodes=40), **RAW)
    with pytest.raises(ValueError, match="different outputs for the same graph"):
        game(game.graph.connected_coalitions())
    assert not game.sharing.used


def test_worths_that_were_given_out_are_taken_back_by_an_error() -> None:
    game = GNNGame(built(Layers()), graph(), passes=Passes(batch_nodes=40), **RAW)
    rows = np.random.default_rng(0).random((1_500, 13)) < 0.6
    expected = GNNGame(game.model, graph(), passes=Passes(share=False), **RAW)(rows)
    assert_same(game(rows[:700]), expected[:700])
    assert game.sharing.used
    game._scores.shared._bits = np.uint64(1)  # from now on states are taken for each other
    with pytest.raises(BatchMixing, match="only after some worths had been given out"):
        game(rows)
    assert game.evaluations == 0
    assert not game.sharing.used
    assert_same(game(rows), expected, 1e-6)


@pytest.mark.parametrize("bits", [0, 1, 3, 7])
def test_states_that_are_taken_for_each_other_are_found_out(bits: int) -> None:
    game = GNNGame(built(GIN(FEATURES, 8, CLASSES)), graph(), **RAW)
    game._scores.shared._bits = np.uint64(bits)
    rows = game.graph.connected_coalitions()
    assert_same(
        game(rows), GNNGame(game.model, graph(), passes=Passes(share=False), **RAW)(rows), 1e-6
    )
    assert not game.sharing.used
    assert game.sharing.reason


class Undefined(Layers):
    """Not a number for graphs without node 0, which alone has the first feature."""

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        found = super().forward(x, edge_index, batch)
        has = global_max_pool(x[:, :1].double(), batch) > 0.5
        return found.masked_fill(~has, float("nan"))


def test_outputs_that_are_not_numbers() -> None:
    data, model = graph(), built(Undefined())
    data.x = torch.eye(FEATURES)[[0, *[1, 2, 3] * 4]]
    rows = GNNGame(model, data, **RAW).graph.connected_coalitions()
    for share in (False, "auto"):
        game = GNNGame(model, data, passes=Passes(share=share), **RAW)
        with pytest.raises(
            ValueError, match=r"gives a worth of \[nan, nan, nan\]; GameOptions\(fallback="
        ):
            game(rows)
    shared, plain, game = both_ways(model, data, rows, game=GameOptions(fallback=-1.0))
    assert game.sharing.used
    assert (plain == -1).all(axis=1).sum() > 50
    assert_same(shared, plain)


@pytest.mark.parametrize("readout", ["sum", "max", "mean"])
def test_a_node_that_is_not_a_number(readout: str) -> None:
    data, model = graph(distinct=True), built(GCN(FEATURES, 8, CLASSES, readout=readout))
    data.x[4] = float("nan")
    rows = GNNGame(model, data, **RAW, lazy=True).graph.connected_coalitions()
    options = GameOptions(fallback=0.25)
    shared, plain, game = both_ways(model, data, rows[:-1], game=options, lazy=True)
    assert game.sharing.used
    assert 0 < (plain == 0.25).all(axis=1).sum() < len(rows) - 1
    assert_same(shared, plain)


def test_an_interrupt_keeps_what_was_evaluated() -> None:
    class Interrupted(Layers):
        calls = 0

        def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
            Interrupted.calls += 1  # not of the model, which is put back
            if Interrupted.calls == 40:
                raise KeyboardInterrupt
            return super().forward(x, edge_index, batch)

    model, data = built(Interrupted()), graph()
    game = GNNGame(model, data, passes=Passes(batch_nodes=20, share=True), **RAW)
    rows = game.graph.connected_coalitions()
    with pytest.raises(KeyboardInterrupt):
        game(rows)
    assert 0 < game.evaluations < len(rows)
    assert not model.training
    found = game(rows)
    assert game.sharing.used
    assert_same(found, GNNGame(model, data, passes=Passes(share=False), **RAW)(rows))


# -- callers ---------------------------------------------------------------------------------------


def test_explanations_say_what_was_shared() -> None:
    model, data = built(GCN(FEATURES, 8, CLASSES)), graph()
    found = explain(model, data)
    assert isinstance(found.sharing, Sharing)
    assert found.sharing.used
    plain = explain(model, data, passes=Passes(share=False))
    assert plain.sharing == Sharing(reason="share=False")
    torch.testing.assert_close(found.scores, plain.scores, atol=1e-6, rtol=0)
    recorded = json.loads(json.dumps(found.to_dict()))["sharing"]
    assert recorded == found.sharing.as_dict()
    assert recorded["nodes"] > recorded["states"] > 0
    (many,) = explain_many(model, [data], progress=False, passes=Passes(share=True))
    assert many.sharing == found.sharing


@pytest.mark.filterwarnings("ignore:the outputs for all evaluated parts of the graph")
def test_a_share_of_the_methods_that_play_the_game() -> None:
    model, data = built(GCN(FEATURES, 8, CLASSES)), graph()
    for name, options in (
        ("shapley", {"budget": 2_000}),
        ("banzhaf", {"budget": 2_000}),
        ("myerson", {}),
        ("leave_one_out", {}),
        ("single_node", {}),
        ("local_shapley", {}),
        ("graphsvx", {"num_samples": 2_000}),
        ("subgraphx", {"rollouts": 3}),
        ("gstarx", {"estimator": "subgraphs", "max_sample_size": 7}),
    ):
        shared = explainers.create(name, share=True, **options).explain(model, data, seed=0)
        plain = explainers.create(name, share=False, **options).explain(model, data, seed=0)
        assert shared.sharing.used, name
        assert plain.sharing.reason == "share=False"
        if shared.scores is not None:
            torch.testing.assert_close(shared.scores, plain.scores, atol=1e-5, rtol=0)
        else:
            assert [one.tolist() for one in shared.sets] == [one.tolist() for one in plain.sets]


def test_several_targets_share() -> None:
    model, data = built(GIN(FEATURES, 8, CLASSES)), graph()
    shared = explain(model, data, target="all", value="myerson")
    plain = explain(model, data, target="all", value="myerson", passes=Passes(share=False))
    assert shared.sharing.used
    assert shared.scores.shape == (13, CLASSES)
    torch.testing.assert_close(shared.scores, plain.scores, atol=1e-6, rtol=0)


def test_the_best_selection_shares() -> None:
    model, data = built(GIN(FEATURES, 8, CLASSES)), graph()
    through = []
    hook = model.register_forward_pre_hook(lambda _, inputs: through.append(len(inputs[0])))
    best = Judge(model).best(data, 4)
    hook.remove()
    # a part with its complement has 13 nodes
    assert sum(through) < 13 * best.evaluations / 2 / 2

    def alone(x: Tensor, edge_index: Tensor) -> Tensor:
        return model(x, edge_index)

    plain = Judge(alone).best(data, 4)
    assert best.optimal
    assert (best.nodes.tolist(), best.evaluations) == (plain.nodes.tolist(), plain.evaluations)
    assert best.evaluation.harmonic_fidelity == pytest.approx(
        plain.evaluation.harmonic_fidelity, abs=1e-6
    )


def test_a_wrong_option_is_refused_before_anything_is_computed() -> None:
    for name in ("gstarx", "shapley", "subgraphx", "graphsvx", "leave_one_out", "local_shapley"):
        with pytest.raises(ValueError, match=r"share must be 'auto', True or False \(got 'no'\)"):
            explainers.create(name, share="no")


def test_parts_of_many_graphs_share() -> None:
    model, graphs = built(GIN(FEATURES, 8, CLASSES)), [graph(seed=seed % 4) for seed in range(16)]
    for data in graphs:
        del data.edge_weight
    value = Subgraphs(value="myerson", max_sample_size=8)
    options: dict[str, Any] = {"value": value, "seed": 0}
    many = explain_many(model, graphs, progress=False, **options)
    plain = explain_many(model, graphs, progress=False, passes=Passes(share=False), **options)
    apart = [
        explain(
            model, data, passes=Passes(share=False), **{**options, "seed": graph_generator(0, at)}
        )
        for at, data in enumerate(graphs)
    ]
    for shared, one, alone in zip(many, plain, apart, strict=True):
        assert shared.sharing.used
        assert shared.sharing.nodes > 2 * shared.sharing.states
        assert one.sharing.reason == "share=False"
        torch.testing.assert_close(shared.scores, one.scores, atol=1e-6, rtol=0)
        torch.testing.assert_close(shared.scores, alone.scores, atol=1e-6, rtol=0)
    mixing = built(Normed(pyg.GraphNorm(8)))
    mixing.layers = nn.ModuleList([pyg.SAGEConv(8, 8)])
    for shared in explain_many(mixing, graphs, progress=False, **options):
        assert BATCH in shared.sharing.reason
    split = explain_many(
        model, graphs, progress=False, game=GameOptions(removal="split"), **options
    )
    assert "share with 'remove'" in split[0].sharing.reason


# -- any network -----------------------------------------------------------------------------------


class ByHand(nn.Module):
    """A round of messages by hand, weighted by what the edges say of triangles or degrees."""

    def __init__(self, weights: str) -> None:
        super().__init__()
        self.weights = weights

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        ends = x.new_zeros(len(x), len(x))
        ends[edge_index[0], edge_index[1]] = 1
        of_edges = {
            "ones": x.new_ones(edge_index.shape[1]),
            "triangles": (ends @ ends)[edge_index[0], edge_index[1]],
            "degrees": degree(edge_index[0], len(x))[edge_index[0]].to(x),
        }[self.weights]
        return x.index_add(0, edge_index[1], x[edge_index[0]] * of_edges[:, None])


LAYERS: dict[str, Any] = {
    "by hand": lambda: ByHand("ones"),
    "triangles": lambda: ByHand("triangles"),
    "degrees": lambda: ByHand("degrees"),
    "gcn, cached": lambda: pyg.GCNConv(8, 8, cached=True),
    "gcn": lambda: pyg.GCNConv(8, 8),
    "gcn, no loops": lambda: pyg.GCNConv(8, 8, add_self_loops=False),
    "gin": lambda: pyg.GINConv(nn.Linear(8, 8), train_eps=True),
    "sage": lambda: pyg.SAGEConv(8, 8, normalize=True),
    "gat": lambda: pyg.GATConv(8, 4, heads=2),
    "graph": lambda: pyg.GraphConv(8, 8, aggr="max"),
    "appnp": lambda: pyg.APPNP(2, 0.2),
    "tag": lambda: pyg.TAGConv(8, 8, 2),
    "cheb": lambda: pyg.ChebConv(8, 8, 2),
    "edge": lambda: pyg.EdgeConv(nn.Linear(16, 8)),
    "transformer": lambda: pyg.TransformerConv(8, 8),
    "cluster": lambda: pyg.ClusterGCNConv(8, 8),
}


@st.composite
def cases(draw: st.DrawFn) -> tuple[Any, Data, NDArray[np.bool_], str]:
    """A network of some layers, a graph with loops and repeated edges, coalitions, a removal."""
    n = draw(st.integers(2, 8))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), max_size=16))
    if draw(st.booleans()):
        edges += [(b, a) for a, b in edges]
    kinds = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    layers = draw(st.lists(st.sampled_from(sorted(LAYERS)), min_size=0, max_size=3))
    pool = draw(st.sampled_from([global_mean_pool, global_add_pool, global_max_pool]))
    model = built(Layers(*[LAYERS[name]() for name in layers], pool=pool))
    ends = torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t()
    data = Data(x=torch.eye(FEATURES, dtype=torch.float64)[kinds], edge_index=ends)
    masks = draw(st.lists(st.integers(1, 2**n - 1), min_size=1, max_size=40))
    rows = np.array([[mask >> i & 1 for i in range(n)] for mask in masks], dtype=np.bool_)
    removal = draw(st.sampled_from(["remove", "split", "zero_filling"]))
    return model.double(), data, rows, removal


@settings(max_examples=40)
@given(cases())
def test_any_network_gives_the_numbers_of_single_coalitions(
    case: tuple[Any, Data, NDArray[np.bool_], str],
) -> None:
    model, data, rows, removal = case
    take = one_by_one.REMOVALS[removal]
    # what a cached layer keeps of a graph would be another graph's here
    plainly = copy.deepcopy(model)
    for layer in plainly.layers:
        layer.cached = False
    with torch.no_grad():
        expected = []
        for row in rows:
            part = take(data, torch.from_numpy(row.copy()))
            zeros = torch.zeros(len(part.x), dtype=torch.long)
            expected.append(plainly(part.x, part.edge_index, zeros)[0].numpy())
    # small blocks, so that states are met in several of them
    game = GNNGame(
        model,
        data,
        game=GameOptions(removal=removal),
        passes=Passes(batch_nodes=2, share=True),
        **RAW,
    )
    try:
        found = game(rows)
    except ValueError as error:
        assert "cannot share" in str(error)  # noqa: PT017
        found = GNNGame(model, data, game=GameOptions(removal=removal), **RAW)(rows)
    np.testing.assert_allclose(found, np.array(expected), atol=1e-9)
