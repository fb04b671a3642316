"""The game of one node of a large graph is that of the whole graph, at the cost of its part."""

from __future__ import annotations

import itertools
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

from gstarx import GameOptions, GNNGame, Passes, explain, explain_nodes
from gstarx.datasets import load
from gstarx.explainers import FailedExplanation, graph_generator
from gstarx.gnn import local_part
from gstarx.gnn.model_task import ModelTask
from gstarx.players import Edges
from gstarx.values import shapley_value, shapley_value_sampled
from tests.pairs import in_turn
from tests.shared import DATA

NODE: dict[str, Any] = {"task": "node"}
EDGES: dict[str, Any] = {**NODE, "players": Edges(directed=True)}


class Net(nn.Module):
    """Two layers at every node."""

    def __init__(self, first: Any, second: Any) -> None:
        super().__init__()
        self.convs = nn.ModuleList([first, second])

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.convs[1](self.convs[0](x, edge_index).relu(), edge_index)


NETWORKS: dict[str, Any] = {
    "gcn": lambda: Net(pyg.GCNConv(5, 8), pyg.GCNConv(8, 3)),
    "gat": lambda: Net(pyg.GATConv(5, 4, heads=2), pyg.GATConv(8, 3)),
    "sage": lambda: Net(pyg.SAGEConv(5, 8), pyg.SAGEConv(8, 3)),
    "mixed": lambda: Net(pyg.GCNConv(5, 8), pyg.GINConv(nn.Linear(8, 3))),
    "backwards": lambda: Net(
        pyg.SAGEConv(5, 8, flow="target_to_source"), pyg.GraphConv(8, 3, flow="target_to_source")
    ),
}


def built(name: str, seed: int = 0) -> Any:
    torch.manual_seed(seed)
    return NETWORKS[name]().eval()


def graph(seed: int = 0, nodes: int = 40, links: int = 55, *, directed: bool = False) -> Data:
    """A sparse random graph; the last node is isolated."""
    draw = torch.Generator().manual_seed(seed)
    ends = torch.randint(nodes - 1, (2, links), generator=draw)
    ends = ends[:, ends[0] != ends[1]]
    both = ends if directed else torch.cat([ends, ends.flip(0)], dim=1)
    return Data(x=torch.randn(nodes, 5, generator=draw), edge_index=both.unique(dim=1))


def rows(players: int, count: int = 200, seed: int = 0) -> NDArray[np.bool_]:
    return np.random.default_rng(seed).random((count, players)) < 0.6


def probability(model: Any, x: Tensor, edge_index: Tensor, node: int, target: int) -> float:
    with torch.no_grad():
        return float(model(x, edge_index)[node].double().softmax(dim=0)[target])


def reach(data: Data, node: int, hops: int, *, backwards: bool = False) -> set[int]:
    """Nodes whose messages reach a node, by a walk along edges one at a time."""
    reached = {node}
    for _ in range(hops):
        pairs = data.edge_index.flip(0) if backwards else data.edge_index
        reached = reached | {a for a, b in pairs.t().tolist() if b in reached}
    return reached


@pytest.mark.parametrize(("name", "share"), in_turn(NETWORKS, ["auto", True, False]))
def test_edges_of_the_exact_game_are_taken_from_the_whole_graph(name: str, share: Any) -> None:
    model, data = built(name), graph()
    game = GNNGame(
        model,
        data,
        game=GameOptions(num_hops=2),
        passes=Passes(share=share),
        **EDGES,
        index=3,
        payoff="prob",
    )
    (target,), base = game.payoff.columns, game.payoff.baseline[0]
    coalitions = rows(game.n)
    coalitions[0] = True
    worths = game(coalitions)
    for coalition, worth in zip(coalitions[:25], worths[:25], strict=True):
        gone = {tuple(pair) for pair in game.players.edges[~coalition].tolist()}
        kept = torch.tensor([tuple(pair) not in gone for pair in data.edge_index.t().tolist()])
        expected = probability(model, data.x, data.edge_index[:, kept], 3, target)
        assert worth + base == pytest.approx(expected, abs=2e-6)
    whole = probability(model, data.x, data.edge_index, 3, target)
    assert worths[0] + base == pytest.approx(whole, abs=2e-6)
    if share is True:
        assert game.sharing.used


@pytest.mark.parametrize("name", NETWORKS)
def test_the_game_of_gnnshap_by_its_definition(name: str) -> None:
    model, data = built(name), graph(1)
    backwards = name == "backwards"
    near = reach(data, 5, 1, backwards=backwards)
    players = [(a, b) for a, b in data.edge_index.t().tolist() if (a if backwards else b) in near]
    nodes = sorted({5, *itertools.chain.from_iterable(players)})
    place = {node: at for at, node in enumerate(nodes)}
    with torch.no_grad():
        target = int(model(data.x, data.edge_index)[5].argmax())
    game = GNNGame(
        model, data, game=GameOptions(computation_graph="gnnshap"), **EDGES, index=5, payoff="prob"
    )
    assert [tuple(pair) for pair in game.players.edges.tolist()] == sorted(players)
    assert game.payoff.columns == (target,)
    coalitions = rows(game.n, 40)
    worths = game(coalitions)

    def value(kept: list[tuple[int, int]]) -> float:
        ends = torch.tensor([[place[a], place[b]] for a, b in kept], dtype=torch.long)
        return probability(model, data.x[nodes], ends.reshape(-1, 2).t(), place[5], target)

    for coalition, worth in zip(coalitions, worths, strict=True):
        kept = [pair for pair, inside in zip(sorted(players), coalition, strict=True) if inside]
        assert worth == pytest.approx(value(kept) - value([]), abs=2e-6)


@st.composite
def edge_games(draw: st.DrawFn) -> tuple[Any, Data, NDArray[np.bool_], bool]:
    """A network, a graph with loops and repeated edges, coalitions of its edges."""
    n = draw(st.integers(2, 6))
    node = st.integers(0, n - 1)
    edges = draw(st.lists(st.tuples(node, node), min_size=1, max_size=10))
    edges = [*edges, (0, 1)]
    pool = draw(st.booleans())
    makers = [lambda: pyg.GCNConv(3, 3), lambda: pyg.SAGEConv(3, 3), lambda: pyg.GATConv(3, 3)]
    chosen = draw(st.lists(st.sampled_from(makers), min_size=1, max_size=3))
    torch.manual_seed(draw(st.integers(0, 99)))
    layers = nn.ModuleList([make() for make in chosen]).double()

    def model(x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        for layer in layers:
            x = layer(x, edge_index).tanh()
        return pyg.global_add_pool(x, batch) if pool else x

    kinds = draw(st.lists(st.integers(0, 2), min_size=n, max_size=n))
    ends = torch.tensor(edges).t()
    data = Data(x=torch.eye(3, dtype=torch.float64)[kinds], edge_index=ends)
    masks = draw(st.lists(st.integers(0, 2**11 - 1), min_size=1, max_size=30))
    bits = np.array([[mask >> i & 1 for i in range(11)] for mask in masks], dtype=np.bool_)
    return model, data, bits, pool


@settings(max_examples=40)
@given(edge_games())
def test_coalitions_of_edges_share_the_numbers_of_single_ones(case: Any) -> None:
    model, data, bits, pool = case
    options: dict[str, Any] = {} if pool else {"task": "node", "index": 0}
    options |= {"players": Edges(directed=True), "payoff": "raw", "target": "all"}
    try:
        game = GNNGame(model, data, passes=Passes(batch_nodes=2, share=True), **options)
    except ValueError as error:
        assert "there are no players" in str(error)  # noqa: PT017
        return
    plain = GNNGame(model, data, passes=Passes(share=False), **options)
    coalitions = bits[:, : game.n]
    np.testing.assert_allclose(game(coalitions), plain(coalitions), atol=1e-9)


def test_players_have_the_numbers_of_the_whole_graph() -> None:
    model, data = built("gcn"), graph()
    found = explain(
        model,
        data,
        game=GameOptions(computation_graph="gnnshap"),
        **EDGES,
        index=3,
        value="shapley",
    )
    pairs = data.edge_index.t().tolist()
    for pair, score in zip(found.player_edges.tolist(), found.scores.tolist(), strict=True):
        assert found.edge_mask[pairs.index(pair)] == pytest.approx(score)
    assert (found.edge_mask != 0).sum() == len(found.scores)
    assert found.prediction.shape == (40, 3)
    of_nodes = explain(model, data, **NODE, index=3, value="shapley", budget=500, seed=0)
    assert set(of_nodes.players.tolist()) == reach(data, 3, 2)
    assert of_nodes.node_scores.shape == (40,)


@pytest.mark.parametrize("players", ["nodes", Edges(directed=True)])
@pytest.mark.parametrize("name", ["gcn", "gat"])
def test_the_part_of_a_node_gives_what_the_whole_graph_gives(
    name: str, players: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, data = built(name), graph(2)
    options = {**NODE, "index": 7, "players": players}
    local = GNNGame(model, data, **options)
    monkeypatch.setattr(local_part, "surroundings", lambda *_: None)
    whole = GNNGame(model, data, **options)
    assert np.array_equal(local.players.player_of, whole.players.player_of)
    assert np.array_equal(local.graph.edges, whole.graph.edges)
    coalitions = rows(local.n, 60)
    np.testing.assert_allclose(local(coalitions), whole(coalitions), atol=2e-6)


def test_a_model_that_looks_at_all_nodes_is_not_cut() -> None:
    class Global(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv = pyg.GCNConv(5, 3)

        def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
            return self.conv(x - x.mean(dim=0), edge_index)

    torch.manual_seed(0)
    game = GNNGame(Global().eval(), graph(), **NODE, index=3)
    assert game.n == 40


def test_many_nodes_are_explained_as_one_by_one() -> None:
    model, data = built("gcn"), graph()
    gnnshap = GameOptions(computation_graph="gnnshap")
    every: list[dict[str, Any]] = [
        {"value": "shapley", "budget": 300},
        {"value": "shapley", "budget": 300, "players": Edges(directed=True)},
        {"value": "banzhaf", "players": "edges", "game": gnnshap, "budget": 200},
    ]
    for options in every:
        nodes = [3, 17, 5]
        many = explain_nodes(model, data, nodes, **options, seed=4, progress=False)
        for node, found in zip(nodes, many, strict=True):
            seed = graph_generator(4, node)
            alone = explain(model, data, **NODE, index=node, **options, seed=seed)
            assert found.index == node
            torch.testing.assert_close(found.scores, alone.scores, atol=1e-6, rtol=0)
            assert torch.equal(found.players, alone.players)
            torch.testing.assert_close(found.prediction, alone.prediction)
    mask = torch.zeros(40, dtype=torch.bool)
    mask[[5, 17]] = True
    (five, seventeen) = explain_nodes(model, data, mask, value="shapley", budget=300, seed=4)
    assert (five.index, seventeen.index) == (5, 17)
    assert explain_nodes(model, data, []) == []


def test_the_model_runs_on_the_whole_graph_once_and_without_a_node() -> None:
    model, data = built("sage"), graph(nodes=600, links=640)
    sizes: list[int] = []
    model.register_forward_pre_hook(lambda _, inputs: sizes.append(len(inputs[0])))
    explain_nodes(
        model,
        data,
        [3, 5, 8],
        value="shapley",
        budget=100,
        passes=Passes(batch_nodes=60, share=False),
    )
    assert sum(size == 600 for size in sizes) == 2


def test_models_that_treat_small_graphs_differently_get_the_whole_graph() -> None:
    conv, data = built("sage"), graph(nodes=60, links=70)

    def guarded(x: Tensor, edge_index: Tensor) -> Tensor:
        found = conv(x, edge_index)
        return found if len(x) > 20 else 0 * found

    task = ModelTask(task_level="node")
    assert local_part.WholeGraph.of(conv, data, task).divisible
    assert not local_part.WholeGraph.of(guarded, data, task).divisible


def test_bad_nodes_are_refused_and_recorded() -> None:
    model, data = built("gcn"), graph()
    for wrong in ([40], [-1], [3, 99]):
        with pytest.raises(ValueError, match=r"nodes must lie in 0..39 \(got "):
            explain_nodes(model, data, wrong)
    with pytest.raises(TypeError, match="nodes must be a list of integers"):
        explain_nodes(model, data, [0.5])
    with pytest.raises(
        ValueError, match=r"a mask of nodes must have 40 entries \(got shape \(3,\)"
    ):
        explain_nodes(model, data, np.ones(3, bool))
    for kind in ("exact", "gnnshap"):
        options: dict[str, Any] = {
            "players": "edges",
            "game": GameOptions(computation_graph=kind),
        }
        with pytest.raises(ValueError, match="no edge brings a message to node 39"):
            explain(model, data, **NODE, index=39, **options)
        done = explain_nodes(
            model, data, [39, 3], **options, value="shapley", budget=200, on_error="record"
        )
        assert isinstance(done[0], FailedExplanation)
        assert done[0].position == 39
        assert done[1].scores.abs().sum() > 0
    alone = explain(model, data, **NODE, index=39)
    assert alone.players.tolist() == [39]
    with pytest.raises(ValueError, match="on_error must be"):
        explain_nodes(model, data, [1], on_error="stop")


def test_a_node_that_nobody_sends_to_and_loops_of_the_data() -> None:
    model = built("gcn")
    data = graph(3, directed=True)
    heard = set(data.edge_index[1].tolist())
    silent = next(node for node in range(39) if node not in heard)
    with pytest.raises(ValueError, match=f"no edge brings a message to node {silent}"):
        explain(model, data, **EDGES, index=silent)
    looped = data.clone()
    loops = torch.arange(40).repeat(2, 1)
    looped.edge_index = torch.cat([data.edge_index, loops], dim=1)
    node = int(data.edge_index[1, 0])
    game = GNNGame(
        model, looped, game=GameOptions(computation_graph="gnnshap"), **EDGES, index=node
    )
    assert (game.players.edges[:, 0] != game.players.edges[:, 1]).all()


def bush(fans: tuple[int, ...]) -> Data:
    """A tree: every node has as many children as its level says, and one more tree beside it."""
    ends, first, last = [], 0, 1
    for fan in fans:
        for parent in range(first, last):
            children = range(last + (parent - first) * fan, last + (parent - first + 1) * fan)
            ends += [(parent, child) for child in children]
        first, last = last, last + (last - first) * fan
    both = torch.tensor([*ends, (last, last + 1)]).T
    draw = torch.Generator().manual_seed(0)
    x = torch.randn(last + 2, 5, generator=draw)
    return Data(x=x, edge_index=torch.cat([both, both.flip(0)], dim=1))


@pytest.mark.parametrize("name", ["gcn", "mixed"])
def test_a_large_part_around_a_node_shares_embeddings(name: str) -> None:
    # degrees reach into the last level, which no message comes from
    model, data = built(name), bush((12, 6, 60))
    assert data.num_nodes > 4096
    states = []
    for hops, players in ((None, 85), (1, 13)):
        game = GNNGame(
            model, data, game=GameOptions(num_hops=hops), passes=Passes(share=True), **NODE, index=0
        )
        assert game.n == players
        asked = rows(players, 100)
        plain = GNNGame(
            model,
            data,
            game=GameOptions(num_hops=hops),
            passes=Passes(share=False),
            **NODE,
            index=0,
        )
        np.testing.assert_allclose(game(asked), plain(asked), atol=1e-6)
        assert game.sharing.used
        assert game.sharing.nodes > 100 * 4320
        states.append(game.sharing.states)
    assert states[0] < 100 * 85
    # with fewer players there are fewer states, though all nodes are always there
    assert states[1] < states[0] / 2
    automatic = explain(model, data, **NODE, index=0, value="shapley", budget=500, seed=0)
    assert automatic.sharing.used


def test_fewer_hops_than_layers() -> None:
    model, data = built("gcn"), graph()
    for kind in ("exact", "gnnshap"):
        game = GNNGame(
            model, data, game=GameOptions(num_hops=1, computation_graph=kind), **EDGES, index=3
        )
        assert (game.players.edges[:, 1] == 3).all()
    whole = probability(model, data.x, data.edge_index, 3, game.payoff.columns[0])
    exact = GNNGame(model, data, game=GameOptions(num_hops=1), **EDGES, index=3, payoff="prob")
    everybody = exact(np.ones((1, exact.n), dtype=bool))[0]
    assert everybody + exact.payoff.baseline[0] == pytest.approx(whole, abs=1e-6)


def test_more_players_than_the_budget_are_refused_with_what_helps() -> None:
    model, data = built("gcn"), graph()
    for players in ("nodes", "edges"):
        with pytest.raises(
            ValueError, match=r"at least the number of players.*\(got 2\).*num_hops=1"
        ):
            explain(model, data, **NODE, index=3, players=players, value="shapley", budget=2)


def test_what_a_computation_graph_is_for() -> None:
    model, data = built("gcn"), graph()
    with pytest.raises(ValueError, match=r"is for task='node' \(got task='graph'\)"):
        GNNGame(model, data, game=GameOptions(computation_graph="gnnshap"))
    with pytest.raises(ValueError, match=r"players='nodes' and players='edges' \(got groups\)"):
        GNNGame(
            model,
            data,
            game=GameOptions(computation_graph="gnnshap"),
            **NODE,
            index=3,
            players=[[1, 2], [3, 4]],
        )
    with pytest.raises(ValueError, match="a removal of your own is given the whole graph"):
        GNNGame(
            *(model, data),
            game=GameOptions(removal=lambda d, kept: d, computation_graph="gnnshap"),
            **NODE,
            index=3,
        )


# -- the published networks ------------------------------------------------------------------------

CITATION = DATA / "citation"
needs_cora = pytest.mark.skipif(
    not (CITATION / "cora_gcn.safetensors").is_file(), reason="needs Cora and its weights"
)


def published(name: str) -> tuple[Any, Data]:
    from safetensors.torch import load_file

    gat = name == "cora_gat"
    layers = (
        (pyg.GATConv(1433, 16, heads=8), pyg.GATConv(128, 7))
        if gat
        else (pyg.GCNConv(1433, 16), pyg.GCNConv(16, 7))
    )
    model = Net(*layers)
    model.load_state_dict(load_file(CITATION / f"{name}.safetensors"))
    return model.eval(), load("cora", DATA)[0]


CHECKED = {
    (37, None): (12, 5, 0.405471, 0.590855, {(1190, 37): 0.407795, (60, 37): -0.258746}),
    (1792, 6): (14, 6, 0.063628, 0.377936, {(2485, 1792): 0.190988, (581, 1792): 0.165764}),
    (1792, None): (14, 5, None, 0.282873, {(581, 1792): -0.071398}),
    (1796, None): (16, 4, 0.055100, 0.276346, {(1795, 1796): 0.202983, (1794, 1796): 0.109857}),
}


@needs_cora
@pytest.mark.parametrize("share", ["auto", False])
def test_published_numbers_of_gnnshap_on_cora(share: Any) -> None:
    model, data = published("cora_gcn")
    for (node, target), (players, column, nobody, everybody, strongest) in CHECKED.items():
        game = GNNGame(
            *(model, data),
            game=GameOptions(computation_graph="gnnshap"),
            passes=Passes(share=share),
            **EDGES,
            index=node,
            target=target,
            payoff="prob",
        )
        assert game.n == players
        assert game.payoff.columns == (column,)
        base = game.payoff.baseline[0]
        assert nobody is None or base == pytest.approx(nobody, abs=1e-6)
        values = shapley_value(game, game.n).values
        assert base + values.sum() == pytest.approx(everybody, abs=1e-6)
        edges = [tuple(pair) for pair in game.players.edges.tolist()]
        for pair, score in strongest.items():
            assert values[edges.index(pair)] == pytest.approx(score, abs=1e-6)


@needs_cora
def test_published_numbers_of_gat_on_cora() -> None:
    model, data = published("cora_gat")
    game = GNNGame(
        model, data, game=GameOptions(computation_graph="gnnshap"), **EDGES, index=37, payoff="prob"
    )
    values = shapley_value(game, game.n).values
    assert game.payoff.baseline[0] == pytest.approx(0.624935, abs=1e-6)
    assert game.payoff.baseline[0] + values.sum() == pytest.approx(0.578398, abs=1e-6)
    edges = [tuple(pair) for pair in game.players.edges.tolist()]
    assert values[edges.index((1190, 37))] == pytest.approx(0.289715, abs=1e-6)


@needs_cora
def test_a_node_with_190_players_within_its_error() -> None:
    model, data = published("cora_gcn")
    game = GNNGame(
        model,
        data,
        game=GameOptions(computation_graph="gnnshap"),
        **EDGES,
        index=1708,
        payoff="prob",
    )
    found = shapley_value_sampled(game, game.n, budget=4_000, seed=0)
    edges = [tuple(pair) for pair in game.players.edges.tolist()]
    for pair, score in {(2313, 1708): 0.1244, (1857, 1708): 0.0976, (467, 1708): -0.0808}.items():
        at = edges.index(pair)
        assert abs(found.values[at] - score) < 4 * found.std_error[at] + 0.0006
        assert found.std_error[at] < 0.01
