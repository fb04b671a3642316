"""Node and link tasks: who plays, what stays in any case, and what the worths are."""

from __future__ import annotations

from collections import UserList
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric import nn as pyg
from torch_geometric.data import Data
from torch_geometric.nn import (
    APPNP,
    GATConv,
    GCNConv,
    GINEConv,
    GraphNorm,
    SAGEConv,
    SGConv,
    TAGConv,
)
from torch_geometric.utils import k_hop_subgraph

from gstarx import CommunicationGraph, GameOptions, GNNGame, Passes, Task, explain
from gstarx.gnn.k_hop import grow_hops, watch_propagation
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES
from tests.gnn.one_by_one import EDGES, averaged, coalitions, graph, removed, split
from tests.pairs import in_turn, pairwise

NODE: dict[str, Any] = {"task": "node"}
RAW: dict[str, Any] = {"payoff": "raw", "target": "all", "baseline": 0.0}


class Weighted(nn.Module):
    """A node classifier with attributes of edges, and a third thing of no particular size."""

    def __init__(self) -> None:
        super().__init__()
        self.first = GINEConv(nn.Linear(FEATURES, 8), edge_dim=3)
        self.second = GCNConv(8, CLASSES)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, edge_weight: Tensor, gains: Tensor
    ) -> Tensor:
        assert gains.shape == (3,)
        hidden = self.first(x, edge_index, edge_attr).relu()
        return self.second(hidden, edge_index, edge_weight) * gains


class DataNode(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = GCN(FEATURES, 8, CLASSES, readout=None)

    def forward(self, data: Data) -> Tensor:
        assert data.num_nodes == len(data.x)
        return self.net(data.x, data.edge_index)


class Unmarked(nn.Module):
    """A node classifier with GraphNorm, which is told of no batch."""

    def __init__(self, *, batched: bool = False) -> None:
        super().__init__()
        self.conv, self.norm = GCNConv(FEATURES, CLASSES), GraphNorm(CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.norm(self.conv(x, edge_index))


class Marked(Unmarked):
    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return self.norm(self.conv(x, edge_index), batch)


def _call_weighted(model: Any, d: Data) -> Tensor:
    return model(d.x, d.edge_index, d.edge_attr, d.edge_weight, d.gains)


def _call(model: Any, d: Data) -> Tensor:
    return model(d.x, d.edge_index)


def _call_gcn(model: Any, d: Data) -> Tensor:
    return model(d.x, d.edge_index, edge_weight=d.edge_weight)


NODE_MODELS = {
    "gcn": (lambda: GCN(FEATURES, 8, CLASSES, num_layers=2, readout=None), _call_gcn),
    "edge attributes": (Weighted, _call_weighted),
    "data": (DataNode, lambda m, d: m(d)),
    "graph norm, no batch": (Unmarked, _call),
    "graph norm, batch": (Marked, _call),
    "function": (lambda: lambda x, edge_index: x[:, :3] + len(edge_index), _call),
}


def build(name: str) -> Any:
    torch.manual_seed(1)
    return NODE_MODELS[name][0]()


def node_graph(shape: str) -> Data:
    data = graph(shape)
    data.gains = torch.tensor([0.5, 1.0, 2.0])
    del data.u
    return data


def at_target(
    name: str,
    model: Any,
    data: Data,
    target: int,
    rows: NDArray[np.bool_],
    *,
    removal: str = "remove",
) -> NDArray[np.float64]:
    """Outputs at the target, one coalition at a time: always there, its edges only when inside."""
    call, found = NODE_MODELS[name][1], []
    for row in rows:
        inside = torch.from_numpy(row.copy())
        anchored = inside.clone()
        anchored[target] = True
        if removal == "remove":
            part = removed(data, inside, present=anchored)
            at = int(anchored[:target].sum())
        elif removal == "split":
            part, at = split(data, inside), target
        else:
            free = torch.ones_like(inside)
            free[target] = inside[target]
            part, at = split(data, free), target
            fill = data.x.mean(dim=0) if removal == "averaged" else torch.zeros(FEATURES)
            part.x = torch.where(anchored[:, None], data.x, fill)
        with torch.no_grad():
            found.append(call(model, part)[at])
    return torch.stack(found).double().numpy()


@pytest.mark.filterwarnings("ignore:the model mixes the graphs of a batch")
@pytest.mark.parametrize(
    ("name", "shape", "removal", "num_hops"),
    pairwise(
        NODE_MODELS,
        ["messy", "as many nodes as edges", "ring"],
        ["remove", "split", "zero_filling", "averaged"],
        [None, 1, 9],
    ),
)
def test_worths_are_the_outputs_at_the_target(
    name: str, shape: str, removal: str, num_hops: int | None
) -> None:
    model, data, target = build(name), node_graph(shape), 2
    option: Any = averaged if removal == "averaged" else removal
    game = GNNGame(
        model,
        data,
        index=target,
        game=GameOptions(removal=option, num_hops=num_hops),
        passes=Passes(batch_nodes=40),
        **NODE,
        **RAW,
    )
    rows = coalitions(game.n, at_most=20)
    # whoever does not play is always there
    present = np.ones((len(rows), data.num_nodes), dtype=bool)
    present[:, game.nodes] = rows
    alone = at_target(name, model, data, target, present, removal=removal)
    np.testing.assert_allclose(game(rows), alone, atol=1e-6)


def test_the_target_is_there_without_its_edges() -> None:
    seen: list[tuple[int, list[list[int]]]] = []

    def model(x: Tensor, edge_index: Tensor) -> Tensor:
        seen.append((len(x), edge_index.t().tolist()))
        return x[:, :3]

    game = GNNGame(
        model,
        graph("ring"),
        index=2,
        game=GameOptions(num_hops=3),
        passes=Passes(batch_nodes=1),
        **NODE,
        **RAW,
    )
    assert game.nodes.tolist() == [0, 1, 2, 3, 4, 5]
    seen.clear()
    game(np.array([[False, True, False, True, False, False]]))  # 1 and 3, the neighbors of 2
    assert seen.pop() == (3, [])
    game(np.array([[False, True, True, False, False, False]]))
    assert seen.pop() == (2, [[0, 1], [1, 0]])


@pytest.mark.parametrize("mode", ["regression", None])
def test_the_default_baseline_is_the_isolated_target(mode: str | None) -> None:
    torch.manual_seed(0)
    outputs, target = (1, None) if mode else (CLASSES, 1)
    model, data = GCN(FEATURES, 8, outputs, readout=None), graph("messy")
    del data.edge_weight, data.bond_length_of_edge
    game = GNNGame(model, data, index=2, target=target, task=Task(mode, "node"))
    with torch.no_grad():
        alone = model(data.x[2:3], torch.zeros(2, 0, dtype=torch.long))[0]
        whole = model(data.x, data.edge_index)[2]
    if outputs > 1:
        alone, whole = alone.softmax(0)[[1]], whole.softmax(0)[[1]]
    assert game.payoff.baseline == pytest.approx(alone.tolist(), abs=1e-6)
    assert game.payoff.baseline_source == "isolated target"
    everybody = np.ones((1, game.n), dtype=bool)
    assert game(everybody) == pytest.approx((whole - alone).tolist(), abs=1e-5)
    only_others = np.zeros((1, game.n), dtype=bool)
    only_others[0, game.nodes != 2] = True
    assert game(only_others) == pytest.approx([0.0], abs=1e-6)


def test_other_payoffs_have_no_baseline() -> None:
    model = GCN(FEATURES, 8, CLASSES, readout=None)
    for payoff in ("prob", "log_prob", lambda outputs: outputs[:, 0]):
        game = GNNGame(model, graph("ring"), index=0, payoff=payoff, **NODE)
        assert game.payoff.baseline == (0.0,)
        assert game.payoff.baseline_source == "none"


# -- who plays -------------------------------------------------------------------------------------


def chain(n: int) -> Data:
    ends = torch.arange(n - 1)
    torch.manual_seed(0)
    return Data(
        x=torch.randn(n, FEATURES),
        edge_index=torch.stack([torch.cat([ends, ends + 1]), torch.cat([ends + 1, ends])]),
    )


@pytest.mark.parametrize("num_hops", [0, 1, 2, 3])
def test_explicit_hops(num_hops: int) -> None:
    data = graph("wide")
    model = GCN(FEATURES, 8, CLASSES, readout=None)
    game = GNNGame(model, data, index=5, game=GameOptions(num_hops=num_hops), **NODE)
    nodes, *_ = k_hop_subgraph(5, num_hops, data.edge_index, num_nodes=70)
    assert game.nodes.tolist() == nodes.tolist()
    assert game.graph.num_nodes == len(nodes)
    # a function does not show which way its messages go
    both = torch.cat([data.edge_index, data.edge_index.flip(0)], dim=1)
    around, *_ = k_hop_subgraph(5, num_hops, both, num_nodes=70)
    unknown = GNNGame(
        lambda x, edge_index: x, data, index=5, game=GameOptions(num_hops=num_hops), **NODE
    )
    assert unknown.nodes.tolist() == around.tolist()
    assert num_hops == 0 or len(around) > len(nodes)


def test_more_hops_than_there_are_give_the_component() -> None:
    game = GNNGame(
        GCN(FEATURES, 8, CLASSES, readout=None),
        graph("messy"),
        index=3,
        game=GameOptions(num_hops=50),
        **NODE,
    )
    assert game.nodes.tolist() == [0, 1, 2, 3, 4]


def test_players_are_the_receptive_field_and_the_outside_stays() -> None:
    data = chain(40)
    torch.manual_seed(0)
    model = GCN(FEATURES, 8, CLASSES, num_layers=2, readout=None)
    game = GNNGame(model, data, index=20, **NODE)
    assert game.nodes.tolist() == list(range(18, 23))
    # a normalized layer needs the degrees one hop further out, where nobody plays
    assert game.data.num_nodes == 7
    summed = GCN(FEATURES, 8, CLASSES, num_layers=2, normalize=False, readout=None)
    other = GNNGame(summed, data, index=20, **NODE)
    assert other.nodes.tolist() == list(range(18, 23))
    assert other.data.num_nodes == 5
    with torch.no_grad():
        whole = model(data.x, data.edge_index)[20]
    torch.testing.assert_close(game.prediction, whole)
    game = GNNGame(model, data, index=20, **NODE, **RAW)
    np.testing.assert_allclose(game(np.ones((1, game.n), bool))[0], whole.numpy(), atol=1e-5)


def test_a_layer_used_twice_is_found_out_by_the_prediction() -> None:
    class Repeating(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(FEATURES, FEATURES)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            for _ in range(3):
                x = self.conv(x, edge_index)
            return x

    torch.manual_seed(0)
    game = GNNGame(Repeating(), chain(40), index=20, **NODE)
    assert game.nodes.tolist() == list(range(17, 24))


def test_a_field_that_the_layers_do_not_show_is_found_by_changing_features() -> None:
    def spread(x: Tensor, edge_index: Tensor) -> Tensor:
        for _ in range(4):
            x = x.index_add(0, edge_index[1], x[edge_index[0]])
        return x[:, :3]

    game = GNNGame(spread, chain(40), index=20, **NODE)
    assert game.nodes.tolist() == list(range(16, 25))


class Against(nn.Module):
    """Layers that send messages one way, and sums that are taken the other way."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(FEATURES, FEATURES)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        x = x.index_add(0, edge_index[0], x[edge_index[1]])
        return self.conv(x, edge_index)


def test_messages_against_the_layers_are_found_by_changing_features() -> None:
    data = chain(40)
    data.edge_index = data.edge_index[:, data.edge_index[0] < data.edge_index[1]]
    torch.manual_seed(0)
    game = GNNGame(Against(), data, index=20, **NODE)
    assert {19, 20, 21} <= set(game.nodes.tolist()) <= set(range(18, 23))


def test_all_nodes_play_where_all_of_them_matter() -> None:
    data = chain(12)
    data.edge_index = data.edge_index[:, (data.edge_index != 8).all(dim=0)]
    with pytest.warns(UserWarning, match="mixes"):
        found = explain(
            lambda x, edge_index: x[:, :3] - x[:, :3].mean(dim=0), data, index=4, budget=500, **NODE
        )
    assert found.players.tolist() == list(range(12))


class Looking(nn.Module):
    """A layer on features and something that ``forward`` computes from the whole graph."""

    def __init__(self, look: Callable[[Tensor, Tensor], Tensor], conv: Any = SAGEConv) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.look, self.conv = look, conv(FEATURES, CLASSES)
        self.double().eval()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.conv(x + self.look(x, edge_index), edge_index)


def degrees(x: Tensor, edge_index: Tensor) -> Tensor:
    return x.new_zeros(len(x)).index_add(0, edge_index[1], x.new_ones(edge_index.shape[1]))[:, None]


def page_rank(x: Tensor, edge_index: Tensor) -> Tensor:
    source, target = edge_index
    degree = degrees(x, edge_index).clamp(min=1)
    rank = torch.full_like(degree, 1 / len(x))
    for _ in range(30):
        rank = 0.15 / len(x) + 0.85 * torch.zeros_like(rank).index_add(
            0, target, (rank / degree)[source]
        )
    return rank * 12


LOOKS: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "PageRank": page_rank,
    "degree": degrees,
    "mean over all nodes": lambda x, edge_index: x.mean(dim=0),
    "number of nodes": lambda x, edge_index: x.new_tensor(len(x)) / 12,
    "number of edges": lambda x, edge_index: x.new_tensor(edge_index.shape[1]) / 24,
    "largest degree": lambda x, edge_index: degrees(x, edge_index) / degrees(x, edge_index).max(),
}


def branching() -> Data:
    """A chain with a star in the middle of it, far from both of its ends."""
    data = chain(14)
    rays = torch.tensor([[7, 7, 7], [14, 15, 16]])
    data.edge_index = torch.cat([data.edge_index, rays, rays.flip(0)], dim=1)
    data.x = torch.cat([data.x, data.x[:3]]).double()
    return data


@pytest.mark.parametrize(
    ("look", "conv", "removal"), in_turn(LOOKS, [SAGEConv, GATConv], ["remove", "split"], each=2)
)
def test_whoever_changes_the_output_by_leaving_plays(look: str, conv: Any, removal: str) -> None:
    data, model, target = branching(), Looking(LOOKS[look], conv), 2
    game = GNNGame(model, data, index=target, game=GameOptions(removal=removal), **NODE, **RAW)
    with torch.no_grad():
        whole = model(data.x, data.edge_index)[target]
        for node in set(range(data.num_nodes)) - set(game.nodes.tolist()):
            kept = torch.arange(data.num_nodes) != node
            part = removed(data, kept) if removal == "remove" else split(data, kept)
            at = target - int(removal == "remove" and node < target)
            assert (model(part.x, part.edge_index)[at] - whole).abs().max() < 1e-6
    if look == "degree":
        assert game.nodes.tolist() == [0, 1, 2, 3, 4]
    elif look != "largest degree" and (removal == "remove" or look != "number of nodes"):
        assert game.n == data.num_nodes


def test_neighbors_that_a_gcn_counts_play_if_they_matter_otherwise() -> None:
    """All nodes are within a hop of those whose messages arrive: taking them away shows nothing."""
    data = branching()
    kept = torch.arange(6, 13)
    data = removed(data, torch.isin(torch.arange(data.num_nodes), torch.cat([kept, kept[-3:] + 4])))
    looking = GNNGame(Looking(page_rank, GCNConv), data, index=0, **NODE, **RAW)
    assert looking.n == data.num_nodes
    for conv in (GCNConv, TAGConv, GATConv):
        counting = GNNGame(Looking(degrees, conv), data, index=0, **NODE, **RAW)
        assert counting.n < data.num_nodes


class LargestKind(nn.Module):
    """A layer, and the largest embedding of all nodes, which every one of a kind can replace."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.kinds, self.conv, self.head = nn.Embedding(2, 6), SAGEConv(6, 6), nn.Linear(6, 1)
        self.double().eval()

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        hidden = self.kinds(x[:, 0])
        largest = pyg.global_max_pool(hidden, batch)[batch]
        found: Tensor = self.head(self.conv(hidden, edge_index).tanh() + largest)
        return found


@pytest.mark.parametrize("players", ["nodes", "edges"])
def test_whoever_matters_only_where_others_are_absent_plays(players: str) -> None:
    """Both kinds are next to the target, so that nobody farther away matters to the prediction."""
    path = torch.tensor([0, 4, 5, 6, 7, 8, 9, 1, 2, 3])
    edges = torch.stack([path[:-1], path[1:]])
    kinds = torch.tensor([0, 1, 0, 1, 1, 0, 1, 0, 1, 0])[:, None]
    data = Data(x=kinds, edge_index=torch.cat([edges, edges.flip(0)], dim=1))
    if players == "nodes":
        game = GNNGame(LargestKind(), data, index=0, task=Task("regression", "node"))
        assert game.nodes.tolist() == list(range(10))
        return
    # without edges, all that is left of the model's messages is the largest degree
    looking = Looking(lambda x, edge_index: degrees(x, edge_index).amax().clamp(max=2) * x)
    data.x = torch.ones(10, FEATURES, dtype=torch.double)
    game = GNNGame(looking, data, players="edges", **NODE, index=4)
    assert game.n == 9


@pytest.mark.parametrize("layer", [GCNConv, SAGEConv, GATConv, TAGConv])
def test_layers_of_pyg_are_played_by_their_receptive_field(layer: Any) -> None:
    """Degrees of its outermost nodes, which a GCN looks at, are no reason to play."""
    torch.manual_seed(0)
    hops = 2 * (3 if layer is TAGConv else 1)
    model = pyg.Sequential(
        "x, edge_index",
        [(layer(FEATURES, 4), "x, edge_index -> x"), (layer(4, 3), "x, edge_index -> x")],
    ).double()
    data = branching()
    for communication in (None, CommunicationGraph(17, [(0, 1)])):  # with a part cut out, without
        game = GNNGame(model, data, index=1, game=GameOptions(communication=communication), **NODE)
        nodes, *_ = k_hop_subgraph(1, hops, data.edge_index, num_nodes=17)
        assert game.nodes.tolist() == nodes.tolist()


def test_an_own_layer_that_scales_by_degrees_is_played_one_hop_further() -> None:
    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(FEATURES, CLASSES, normalize=False)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x / degrees(x, edge_index).clamp(min=1).sqrt(), edge_index)

    game = GNNGame(Scaled().double(), branching(), index=2, **NODE)
    assert game.nodes.tolist() == [0, 1, 2, 3, 4]


def test_edges_far_away_play_where_they_are_counted() -> None:
    data, model = branching(), Looking(LOOKS["number of edges"])
    game = GNNGame(model, data, index=2, players="edges", **NODE)
    assert game.n == data.edge_index.shape[1] // 2


def test_given_hops_are_not_checked() -> None:
    data = chain(12)
    hops = GameOptions(num_hops=1)
    game = GNNGame(lambda x, edge_index: x[:, :3] + len(x), data, index=4, game=hops, **NODE, **RAW)
    assert game.nodes.tolist() == [3, 4, 5]
    assert game.data.num_nodes == 12
    with pytest.warns(UserWarning, match="mixes"):
        worths = game(np.eye(3, dtype=bool))
    # the target is there in any case
    expected = data.x[4, :3].numpy() + np.array([[11.0], [10.0], [11.0]])
    np.testing.assert_allclose(worths, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("model", "calls"),
    [
        (lambda: GCN(FEATURES, 4, 2, num_layers=5, readout=None), 5),
        (lambda: TAGConv(FEATURES, 2, K=3), 3),
        (lambda: SGConv(FEATURES, 2, K=4, cached=True), 4),
        (lambda: nn.Sequential(), 0),
    ],
)
def test_messages_are_counted_as_they_propagate(model: Any, calls: int) -> None:
    network, data = model(), graph("ring")
    if not calls:
        network = lambda x, edge_index: x  # noqa: E731
    with watch_propagation(network) as seen, torch.no_grad():
        network(data.x, data.edge_index)
    assert (seen.calls, seen.hops) == (calls, max(1, calls))
    assert seen.flow == ("source_to_target" if calls else "both")
    with torch.no_grad():
        network(data.x, data.edge_index)
    assert seen.calls == calls  # the layers have no hooks any more


def test_a_layer_that_propagates_several_times_sees_that_far() -> None:
    class Spreading(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.spread = APPNP(K=3, alpha=0.1)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.spread(x, edge_index)

    game = GNNGame(Spreading(), chain(40), index=20, **NODE)
    assert game.nodes.tolist() == list(range(17, 24))


def test_hops_follow_edges_both_ways() -> None:
    edges = np.array([[0, 2, 2, 5, 6], [1, 1, 3, 5, 0]])
    found = [np.flatnonzero(h).tolist() for h in grow_hops(edges, 7, np.array([0]))]
    assert found == [[0], [0, 1, 6], [0, 1, 2, 6], [0, 1, 2, 3, 6]]
    assert [h.sum() for h in grow_hops(edges, 7, np.array([5]))] == [1]
    assert [h.sum() for h in grow_hops(edges, 7, np.array([0, 4]))] == [2, 4, 5, 6]


def test_an_isolated_node_plays_alone() -> None:
    data = graph("messy")
    torch.manual_seed(0)
    model = GCN(FEATURES, 8, CLASSES, readout=None)
    found = explain(model, data, index=5, **NODE)
    assert found.players.tolist() == [5]
    assert found.node_mask.shape == (7, 1)
    assert found.node_mask.abs().sum() == 0  # alone it is its own baseline


def test_directed_edges_are_the_models_and_the_game_has_none() -> None:
    # messages run 0 -> 1 -> 2 -> 3 only, so that nothing reaches node 0
    data = Data(x=torch.randn(4, FEATURES), edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]))
    torch.manual_seed(0)
    model = GCN(FEATURES, 8, CLASSES, num_layers=3, normalize=False, readout=None)
    for hops in (GameOptions(), GameOptions(num_hops=3)):
        game = GNNGame(model, data, index=3, game=hops, **NODE)
        assert game.graph.edges.tolist() == [[0, 1], [1, 2], [2, 3]]
        last = explain(model, data, index=3, game=hops, **NODE).node_mask
        assert last.abs().min() > 1e-6
        first = explain(model, data, index=0, game=hops, **NODE)
        assert first.players.tolist() == [0]  # nobody else can reach it
        assert first.node_mask.abs().max() < 1e-6


def test_a_field_keeps_its_meaning_in_a_part_of_the_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    """What belongs to nodes is decided on the whole graph: a part's sizes may coincide."""
    # its own code reads edges, and small graphs would be left whole
    monkeypatch.setattr("gstarx.gnn.own_code._SMALL", 0)

    class Scaled(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = GCNConv(FEATURES, 3)

        def forward(
            self, x: Tensor, edge_index: Tensor, strengths: Tensor, mixing: Tensor
        ) -> Tensor:
            assert mixing.shape == (3, 3)
            return self.conv(x, edge_index, strengths) @ mixing

    data = chain(30)
    data.strengths = torch.rand(58) + 0.5
    data.mixing = torch.rand(3, 3)
    torch.manual_seed(0)
    model = Scaled()
    with torch.no_grad():
        whole = model(data.x, data.edge_index, data.strengths, data.mixing)
    for num_hops in (0, 1, 2):
        # one hop: three nodes; at the end of the chain, two nodes and two edges
        for index in (0, 15):
            game = GNNGame(
                model, data, index=index, game=GameOptions(num_hops=num_hops), **NODE, **RAW
            )
            assert game.data.num_nodes < 10
            found = game(np.ones((1, game.n), bool))[0]
            np.testing.assert_allclose(found, whole[index].numpy(), atol=1e-6)


def test_node_ids_in_fields_follow_the_part_of_the_graph() -> None:
    def model(x: Tensor, edge_index: Tensor, root_index: Tensor, pair_index: Tensor) -> Tensor:
        out = x[:, :3].clone()
        out[root_index] += 10
        return out.index_add(0, pair_index[0], 100 * x[pair_index[1], :3])

    data = chain(30)
    data.root_index = torch.tensor(14)
    data.pair_index = torch.tensor([[15, 2, 15], [16, 15, 12]])
    game = GNNGame(model, data, index=15, game=GameOptions(num_hops=2), **NODE, **RAW)
    assert game.nodes.tolist() == [13, 14, 15, 16, 17]
    rows = np.array([[True] * 5, [True, True, True, False, False], [False] * 4 + [True]])
    expected = data.x[15, :3] + 100 * data.x[12, :3]
    expected = expected + torch.stack([100 * data.x[16, :3], *torch.zeros(2, 3)])
    np.testing.assert_allclose(game(rows), expected.numpy(), rtol=1e-6)
    root = GNNGame(model, data, index=14, game=GameOptions(num_hops=0), **NODE, **RAW)
    np.testing.assert_allclose(root(np.ones((1, 1), bool)), [data.x[14, :3].numpy() + 10])


@pytest.mark.parametrize("given", [{}, {"num_nodes": 40}])
def test_a_declared_number_of_nodes_is_not_carried_into_the_part(given: dict[str, int]) -> None:
    data = Data(x=chain(40).x, edge_index=chain(40).edge_index, **given)
    found = explain(DataNode(), data, index=20, **NODE)
    assert found.num_nodes == 40


# -- large graphs ----------------------------------------------------------------------------------


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.net = GCN(FEATURES, 8, CLASSES, num_layers=2, readout=None)
        self.nodes: UserList[int] = UserList()  # a list would be put back

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        self.nodes.append(len(x))
        return self.net(x, edge_index)


def test_a_node_of_a_large_graph_costs_its_surroundings() -> None:
    data, index = chain(10_000), 7_000
    torch.manual_seed(0)
    model = Counting()
    found = explain(model, data, index=index, passes=Passes(batch_nodes=100), **NODE)
    # the prediction itself, and that of a node without edges; everything else is found out on the
    # part around the node
    assert sum(nodes > 9_000 for nodes in model.nodes) == 2
    assert max(model.nodes[4:]) <= 100
    assert found.players.tolist() == list(range(6_998, 7_003))
    assert found.node_mask.shape == (10_000, 1)
    outside = torch.ones(10_000, dtype=torch.bool)
    outside[found.players] = False
    assert not found.node_mask[outside].any()
    assert found.node_mask[found.players].all()
    assert found.exact
    assert found.evaluations == 5 * 6 // 2


@pytest.mark.parametrize("num_hops", [None, 1])
def test_a_removal_of_ones_own_is_given_the_whole_graph(num_hops: int | None) -> None:
    data, seen = chain(12), set()
    data.x = torch.arange(12.0)[:, None] * torch.ones(1, FEATURES)
    torch.manual_seed(0)
    model = SAGEConv(FEATURES, CLASSES)

    def mean_filling(given: Data, kept: Tensor) -> Data:
        seen.add(given.num_nodes)
        return averaged(given, kept)

    options = GameOptions(removal=mean_filling, num_hops=num_hops)
    game = GNNGame(model, data, index=1, game=options, **NODE, **RAW)
    assert game.nodes.tolist() == [0, 1, 2]
    worths = game(np.array([[False, True, True], [True, True, False]]))
    for worth, absent in zip(worths, (0, 2), strict=True):
        x = data.x.clone()
        x[absent] = 5.5
        with torch.no_grad():
            expected = model(x, data.edge_index)[1]
        np.testing.assert_allclose(worth, expected, atol=1e-5)
    assert seen == {12}


# -- links -----------------------------------------------------------------------------------------


class Links(nn.Module):
    """Scores of pairs of nodes."""

    def __init__(self) -> None:
        super().__init__()
        self.net = GCN(FEATURES, 8, 8, num_layers=2, readout=None)

    def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
        hidden = self.net(x, edge_index)
        return 5 * (hidden[edge_label_index[0]] * hidden[edge_label_index[1]]).sum(dim=-1) - 4


class DataLinks(Links):
    def forward(self, data: Data) -> Tensor:  # type: ignore[override]
        return super().forward(data.x, data.edge_index, data.edge_label_index)


@pytest.mark.parametrize("removal", ["remove", "split"])
@pytest.mark.parametrize("kind", [Links, DataLinks])
def test_the_worth_of_a_link(kind: type[Links], removal: str) -> None:
    torch.manual_seed(0)
    model, data = kind(), graph("messy")
    data.edge_label_index = torch.tensor([[0, 4, 1], [2, 6, 3]])
    game = GNNGame(
        model,
        data,
        index=2,
        payoff="raw",
        target=1,
        baseline=0.0,
        task=Task("binary", "edge"),
        game=GameOptions(removal=removal, num_hops=9),
    )
    assert game.nodes.tolist() == [0, 1, 2, 3, 4]
    part = removed(data, torch.arange(7) < 5)
    ends = torch.tensor([False, True, False, True, False])
    rows, expected = coalitions(5, at_most=20), []
    for row in rows:
        inside = torch.from_numpy(row.copy())
        cut = removed(part, inside, present=ends) if removal == "remove" else split(part, inside)
        present = inside | ends if removal == "remove" else torch.ones(5, dtype=torch.bool)
        at = torch.stack([present[:1].sum(), present[:3].sum()])[:, None]
        with torch.no_grad():
            expected.append(Links.forward(model, cut.x, cut.edge_index, at).item())
    np.testing.assert_allclose(game(rows), expected, atol=1e-6)


def test_explaining_a_link() -> None:
    torch.manual_seed(0)
    data = chain(30)
    data.edge_label_index = torch.tensor([[3, 10], [20, 12]])
    options: dict[str, Any] = {"task": Task("binary", "edge"), "target": 1}
    found = explain(Links(), data, index=1, **options)
    assert set(found.players.tolist()) == set(range(8, 15))
    assert found.baseline_source == "isolated target"
    assert found.node_mask.sum().item() == pytest.approx(found.worth.item(), abs=1e-5)
    far = explain(Links(), data, index=torch.tensor(0), game=GameOptions(num_hops=1), **options)
    assert far.players.tolist() == [2, 3, 4, 19, 20, 21]
    assert far.worth.shape == far.component_worth.shape == (1,)


def test_shapes_in_these_tests_are_what_they_say() -> None:
    n, edges = EDGES["as many nodes as edges"]
    assert n == len(edges)
    assert node_graph("messy").gains.shape == (3,)


class Centered(nn.Module):
    """Looks at the mean of all nodes, so that no part of a graph is enough for it."""

    def __init__(self) -> None:
        super().__init__()
        self.conv = SAGEConv(FEATURES, CLASSES)

    def forward(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        h = self.conv(x, edge_index).tanh()
        return h - pyg.global_mean_pool(h, batch)[batch]


@pytest.mark.parametrize("index", [3, 4, 5])
def test_edges_that_bring_their_nodes_leave_the_target_where_it_is(index: int) -> None:
    """Node 2 has no edge, and takes no part."""
    torch.manual_seed(1)
    model = Centered().eval()
    ends = torch.tensor([[0, 1, 3, 4, 5, 4], [1, 0, 4, 3, 4, 5]])
    data = Data(x=torch.randn(6, FEATURES), edge_index=ends)
    options: dict[str, Any] = {"players": "edges", "value": "position", "payoff": "raw"}
    made = explain(model, data, index=index, task="node", **options)
    there = [0, 1, 3, 4, 5]
    part = data.subgraph(torch.tensor(there))
    with torch.no_grad():
        whole = model(data.x, data.edge_index, torch.zeros(6, dtype=torch.long))
        alone = model(part.x, part.edge_index, torch.zeros(5, dtype=torch.long))
    expected = alone[there.index(index)]
    assert made.explained == [int(expected.argmax())]
    assert float(made.worth) + made.baseline[0] == pytest.approx(float(expected.max()), abs=1e-6)
    assert torch.allclose(made.prediction, whole, atol=1e-6)


@pytest.mark.parametrize("players", ["nodes", "edges"])
@pytest.mark.parametrize("value", ["myerson", "hn"])
def test_the_ends_of_a_distant_link_communicate(players: str, value: str) -> None:
    """What is around one matters only together with what is around the other."""

    class Product(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = SAGEConv(1, 1, aggr="sum")
            for weight in self.conv.parameters():
                nn.init.ones_(weight)

        def forward(self, x: Tensor, edge_index: Tensor, edge_label_index: Tensor) -> Tensor:
            first, second = self.conv(x, edge_index).view(-1)[edge_label_index]
            return first * second

    at = torch.arange(9)
    ends = torch.cat([torch.stack([at, at + 1]), torch.stack([at + 1, at])], dim=1)
    data = Data(x=torch.ones(10, 1), edge_index=ends, edge_label_index=torch.tensor([[0], [9]]))
    made = explain(
        Product(),
        data,
        index=0,
        value=value,
        players=players,
        task=Task("regression", "edge"),
    )
    assert float(made.worth) > 1
    assert float(made.scores.sum()) == pytest.approx(float(made.worth))
    assert float(made.scores.min()) > 0
