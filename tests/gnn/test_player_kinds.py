"""Groups, edges and features as players: every value is that of its definition."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import GATConv, GCNConv, GINEConv, GraphNorm, global_mean_pool

from gstarx import CommunicationGraph, GameOptions, GNNGame, Passes, explain
from gstarx.explainers import create
from gstarx.metrics import edge_player_scores, evaluate
from gstarx.players import Edges, Features, Groups, reference_rows
from gstarx.values import shapley_value
from tests.gnn.by_definition import (
    SQUARE,
    line_graph,
    probability,
    small_graph,
    table,
    value_of,
    with_columns,
    with_columns_of_edges,
    with_edges,
    with_nodes,
)
from tests.gnn.one_by_one import coalitions
from tests.pairs import for_each, in_turn
from tests.shared import UNTRAINED
from tests.values.definitions import shapley_by_orders

pytestmark = UNTRAINED

VALUES = ("hn", "myerson", "shapley", "banzhaf")
UNDIRECTED = sorted((min(e), max(e)) for e in SQUARE)
NODE: dict[str, Any] = {"task": "node", "index": 0}


class Network(nn.Module):
    """Two layers on nodes and edges, for graphs or nodes, in double precision."""

    def __init__(self, kind: str = "gine", *, graph_level: bool = True) -> None:
        super().__init__()
        torch.manual_seed(3)
        self.first, self.second = (self._layer(kind, width) for width in (4, 8))
        self.head, self.graph_level, self.kind = nn.Linear(8, 3), graph_level, kind
        self.double().eval()

    def _layer(self, kind: str, width: int) -> nn.Module:
        if kind == "gine":
            return GINEConv(nn.Sequential(nn.Linear(width, 8), nn.Tanh()), edge_dim=3)
        return GCNConv(width, 8) if kind == "gcn" else GATConv(width, 8)

    def forward(
        self, x: Tensor, edge_index: Tensor, edge_attr: Tensor, batch: Tensor | None = None
    ) -> Tensor:
        more = (edge_attr,) if self.kind == "gine" else ()
        hidden = self.first(x, edge_index, *more).tanh()
        hidden = self.second(hidden, edge_index, *more).tanh()
        return self.head(global_mean_pool(hidden, batch) if self.graph_level else hidden) * 4


def assert_values(game: Any, graph: CommunicationGraph, explained: Any, value: str) -> None:
    expected = value_of(game, graph, value)
    assert np.abs(expected).max() > 1e-4  # something to agree on
    np.testing.assert_allclose(explained.scores.numpy(), expected, atol=1e-9)


@pytest.mark.parametrize(("value", "kind"), in_turn(VALUES, ["gine", "gcn", "gat"], each=2))
def test_undirected_edges_by_all_subsets_of_them(kind: str, value: str) -> None:
    model, data = Network(kind), small_graph()
    explained = explain(model, data, players="edges", value=value, target=1)
    assert [tuple(pair) for pair in explained.player_edges.tolist()] == UNDIRECTED
    game = table(
        lambda inside: probability(model, 1, with_edges(data, [UNDIRECTED[i] for i in inside])),
        5,
        probability(model, 1, with_edges(data, [])),
    )
    assert_values(game, line_graph(UNDIRECTED), explained, value)


@pytest.mark.parametrize("value", VALUES)
def test_directions_of_edges_by_all_subsets_of_them(value: str) -> None:
    model = Network("gat")
    data = small_graph(loop=False)
    data.edge_index = torch.tensor([(0, 1), (1, 0), (1, 2), (2, 3), (0, 3), (4, 3)]).t()
    data.edge_attr = data.edge_attr[:6]
    edges = sorted(map(tuple, data.edge_index.t().tolist()))
    explained = explain(model, data, value=value, target=1, players=Edges(directed=True))
    assert [tuple(pair) for pair in explained.player_edges.tolist()] == edges

    def worth(inside: list[int]) -> float:
        return probability(model, 1, with_edges(data, [edges[i] for i in inside], directed=True))

    assert_values(table(worth, 6, worth([])), line_graph(edges), explained, value)


@pytest.mark.parametrize(("value", "kind"), in_turn(VALUES, ["gine", "gcn"]))
def test_edges_around_a_node_by_all_subsets_of_all_edges(kind: str, value: str) -> None:
    """Edges that do not play are those that change nothing, so they get nothing."""
    model, data = Network(kind, graph_level=False), small_graph(loop=False)
    explained = explain(model, data, players="edges", value=value, target=1, **NODE)
    played = [tuple(pair) for pair in explained.player_edges.tolist()]

    def worth(inside: list[int]) -> float:
        return probability(model, 1, with_edges(data, [UNDIRECTED[i] for i in inside]), 0)

    game = table(worth, 5, worth([]))
    everyone = np.zeros(5)
    for pair, score in zip(played, explained.scores.tolist(), strict=True):
        everyone[UNDIRECTED.index(pair)] = score
    if value == "hn" and len(played) < 5:
        # a player without influence still gets something under HN: compare among those who play
        graph = line_graph(played)
        game = table(
            lambda inside: probability(model, 1, with_edges(data, [played[i] for i in inside]), 0),
            len(played),
            worth([]),
        )
        assert_values(game, graph, explained, value)
    else:
        np.testing.assert_allclose(
            everyone, value_of(game, line_graph(UNDIRECTED), value), atol=1e-9
        )


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("rest", ["players", "present"])
def test_groups_by_all_subsets_of_them(rest: str, value: str) -> None:
    model, data = Network(), small_graph()
    sets = [[0, 1], [3]]
    baseline = "uniform" if rest == "players" else None
    how: dict[str, Any] = {"value": value, "baseline": baseline, "target": 1}
    explained = explain(model, data, players=Groups(sets, rest=rest), **how)
    groups = [*sets, [2], [4]] if rest == "players" else sets
    always = [] if rest == "players" else [2, 4]

    def worth(inside: list[int]) -> float:
        nodes = [node for i in inside for node in groups[i]]
        return probability(model, 1, with_nodes(data, [*nodes, *always]))

    joined = [(0, 1), (0, 2), (1, 2), (1, 3)] if rest == "players" else [(0, 1)]
    game = table(worth, len(groups), 1 / 3 if rest == "players" else worth([]))
    assert explained.groups == groups
    assert_values(game, CommunicationGraph(len(groups), joined), explained, value)


@pytest.mark.parametrize(
    ("reference", "value"), in_turn(["zero", "mean", "row", "rows"], VALUES, each=2)
)
def test_features_by_all_subsets_of_them(reference: str, value: str) -> None:
    model, data = Network(), small_graph()
    known = {"row": torch.arange(4.0), "rows": small_graph(seed=5).x}.get(reference, reference)
    spec = Features(reference=known, draws=7)
    explained = explain(model, data, players=spec, value=value, target=1)
    if reference == "rows":
        drawn = np.random.default_rng(0).integers(5, size=(7, 5))
        replaced = [known[torch.from_numpy(rows)] for rows in drawn]
    else:
        row = {"zero": torch.zeros(4), "mean": data.x.mean(0)}.get(reference, known)
        replaced = [row.double().expand(5, 4)]

    def worth(inside: list[int]) -> float:
        return float(
            np.mean([probability(model, 1, with_columns(data, inside, rows)) for rows in replaced])
        )

    game = table(worth, 4, worth([]))
    assert_values(game, CommunicationGraph.complete(4), explained, value)


@pytest.mark.parametrize("field", ["x", "edge_attr"])
@pytest.mark.parametrize("reference", ["mean", "rows"])
def test_features_around_a_node_are_replaced_by_those_of_the_whole_graph(
    reference: str, field: str
) -> None:
    ends = torch.stack([torch.arange(11), torch.arange(1, 12)])
    draw = torch.Generator().manual_seed(0)
    data = Data(
        x=torch.randn(12, 4, generator=draw, dtype=torch.float64),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        edge_attr=torch.randn(22, 3, generator=draw, dtype=torch.float64),
    )
    model, own = Network(graph_level=False), data[field]
    # no part has the mean of all, but for the first column
    own += torch.arange(float(len(own)), dtype=torch.float64)[:, None] / 8
    own[:, 0] = 1
    known = own.flip(0) if reference == "rows" else "mean"
    explained = explain(model, data, **NODE, players=Features(None, known, 3, field), target=1)
    replaced = [own.mean(dim=0).expand(own.shape)]
    if reference == "rows":
        drawn = np.random.default_rng(0).integers(len(own), size=(3, len(own)))
        replaced = [known[torch.from_numpy(rows)] for rows in drawn]

    def worth(inside: list[int]) -> float:
        graphs = [with_columns(data, inside, rows, field) for rows in replaced]
        return float(np.mean([probability(model, 1, graph, 0) for graph in graphs]))

    columns = own.shape[1]
    game = table(worth, columns, worth([]))
    assert_values(game, CommunicationGraph.complete(columns), explained, "hn")


def test_groups_of_columns_are_there_together_and_may_have_a_structure() -> None:
    model, data = Network(), small_graph()
    path = CommunicationGraph(3, [(0, 1), (1, 2)])
    explained = explain(
        model,
        data,
        target=1,
        value="hn",
        game=GameOptions(communication=path),
        players=Features(groups={"ends": [0, 3]}),
    )
    columns = [[0, 3], [1], [2]]

    def worth(inside: list[int]) -> float:
        kept = [column for i in inside for column in columns[i]]
        return probability(model, 1, with_columns(data, kept, torch.zeros(5, 4).double()))

    assert explained.player_names == ["ends", "1", "2"]
    game = table(worth, 3, worth([]))
    assert_values(game, path, explained, "hn")
    mask = explained.node_mask
    assert mask.shape == (1, 4)
    assert mask[0, 0] == mask[0, 3] == explained.scores[0].float()
    complete = explain(model, data, target=1, players=Features(groups={"ends": [0, 3]}))
    assert not np.allclose(complete.scores, explained.scores, atol=1e-6)


def test_features_of_edges_by_all_subsets_of_them() -> None:
    model, data = Network(), small_graph()
    explained = explain(model, data, players="edge_features", target=1)

    def worth(inside: list[int]) -> float:
        none = torch.zeros_like(data.edge_attr)
        return probability(model, 1, with_columns(data, inside, none, "edge_attr"))

    game = table(worth, 3, worth([]))
    assert_values(game, CommunicationGraph.complete(3), explained, "hn")
    assert explained.get("node_mask") is None


def test_hn_of_features_is_shapley_where_all_communicate() -> None:
    model, data = Network(), small_graph()
    by_value = [explain(model, data, players="features", value=v).scores for v in VALUES[:3]]
    np.testing.assert_allclose(by_value[0], by_value[2], atol=1e-9)
    np.testing.assert_allclose(by_value[1], by_value[2], atol=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_batches_of_edge_coalitions_are_one_by_one_on_any_graph(data: st.DataObject) -> None:
    n = data.draw(st.integers(2, 6))
    pairs = [(a, b) for a in range(n) for b in range(n)]
    drawn = data.draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=12))
    directed = data.draw(st.booleans())
    if not any(a != b for a, b in drawn):
        drawn.append((0, 1))
    listed = drawn if directed else [*drawn, *((b, a) for a, b in drawn)]
    graph = Data(
        x=torch.randn(n, 4, dtype=torch.float64),
        edge_index=torch.tensor(listed).t(),
        edge_attr=torch.randn(len(listed), 3, dtype=torch.float64),
    )
    model = Network()
    room = data.draw(st.integers(1, 40))
    kind = Edges(directed=directed)
    game = GNNGame(
        model, graph, players=kind, target=1, payoff="prob", passes=Passes(batch_nodes=room)
    )
    edges = game.players.edges.tolist()
    # every column for itself, or all columns between two nodes
    columns = [
        at for at in sorted(range(len(listed)), key=listed.__getitem__) if len({*listed[at]}) > 1
    ]
    rows = coalitions(game.n, at_most=10)
    (nothing,) = game.payoff.baseline
    for row, worth in zip(rows, game(rows), strict=True):
        kept = [tuple(edges[i]) for i in np.flatnonzero(row)]
        part = with_edges(graph, kept)
        if directed:
            part = with_columns_of_edges(graph, [columns[i] for i in np.flatnonzero(row)])
        alone = probability(model, 1, part)
        assert worth + nothing == pytest.approx(alone, abs=1e-9)


@settings(max_examples=20, deadline=None)
@given(st.lists(st.integers(-1, 3), min_size=5, max_size=5).filter(lambda x: max(x) >= 0))
def test_groups_are_unions_of_their_nodes_whatever_they_are(labels: list[int]) -> None:
    model, data = Network(), small_graph()
    players = GNNGame(model, data, payoff="prob", target=1)
    for rest in ("players", "present"):
        game = GNNGame(
            model, data, payoff="prob", target=1, players=Groups.from_labels(labels, rest=rest)
        )
        rows = coalitions(game.n, at_most=6)
        owner = game.players.player_of
        nodes = np.where(owner >= 0, rows[:, owner], True)
        # nodes that are always there are worth nothing of their own
        (nothing,) = game.payoff.baseline
        np.testing.assert_allclose(game(rows) + nothing, players(nodes), atol=1e-12)


def test_singleton_groups_are_nodes() -> None:
    model, data = Network(), small_graph()
    by_node = explain(model, data, target=1)
    by_group = explain(model, data, players=[[i] for i in range(5)], target=1)
    np.testing.assert_allclose(by_group.scores, by_node.scores, atol=1e-12)
    np.testing.assert_allclose(by_group.node_mask, by_node.node_mask, atol=1e-7)


@pytest.mark.parametrize("players", ["edges", [[0, 1], [2, 3]]])
def test_the_part_of_a_large_graph_that_decides_is_enough(players: Any) -> None:
    n = 400
    ends = torch.stack([torch.arange(n - 1), torch.arange(1, n)])
    torch.manual_seed(0)
    data = Data(x=torch.randn(n, 4).double(), edge_index=torch.cat([ends, ends.flip(0)], 1))
    model = nn.Module.__new__(_OnChain)
    _OnChain.__init__(model)
    game = GNNGame(model, data, players=players, index=1, target=0, task="node")
    assert game.data.num_nodes < 12
    assert game.n < 8
    whole = GNNGame(
        model, data, players=players, index=1, target=0, task="node", game=GameOptions(num_hops=n)
    )
    rows = np.ones((game.n, whole.n), dtype=bool)
    rows[np.arange(game.n), np.arange(game.n)] = False
    left, right = game(rows[:, : game.n]), whole(rows)
    np.testing.assert_allclose(left, right, atol=1e-9)


class _OnChain(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.first, self.second = GCNConv(4, 8).double(), GCNConv(8, 3).double()

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        return self.second(self.first(x, edge_index).tanh(), edge_index)


def test_several_targets_and_payoffs_are_those_of_one_at_a_time() -> None:
    model, data = Network(), small_graph()
    for players in ("edges", "features", [0, 0, 1, 1, 2]):
        together = explain(model, data, players=players, target="all")
        for target in range(3):
            alone = explain(model, data, players=players, target=target)
            np.testing.assert_allclose(together.scores[:, target], alone.scores, atol=1e-12)
            one = together.for_target(target)
            for mask in ("node_mask", "edge_mask"):
                assert (one.get(mask) is None) == (alone.get(mask) is None)
                if one.get(mask) is not None:
                    torch.testing.assert_close(one[mask], alone[mask])


@for_each(
    ("options", "message"),
    [
        ({"players": [[0, 1], [1, 2]]}, "node 1 is in groups '0' and '1'"),
        ({"players": {"head": [0], "tail": []}}, "group 'tail' has no nodes"),
        ({"players": [[0, 9]]}, r"nodes in 0\.\.4 \(got 9 in group '0'\)"),
        ({"players": [[0, 1.5]]}, r"integers \(got 1\.5 in group 0\)"),
        ({"players": []}, "at least one group"),
        ({"players": "atoms"}, "there is no kind of players 'atoms'"),
        ({"players": 3}, "players must be a name"),
        ({"players": [0, 0, 1]}, "a label for each of 5 nodes"),
        ({"players": "edges", "baseline": 0.5}, "no other is accepted"),
        ({"players": "features", "baseline": [0.1, 0.2, 0.7]}, "no other is accepted"),
        (
            {"players": "edges", "game": GameOptions(removal="split")},
            "removal says how nodes are taken away",
        ),
        ({"players": Features({"a": [4]})}, "names column 4"),
        ({"players": Features({"a": []})}, "'a' has no columns"),
        ({"players": Features({"a": [0], "b": [0]})}, "in 'a' and 'b'"),
        ({"players": Features(reference=torch.zeros(3))}, "must have 4 columns"),
        ({"players": Features(reference=torch.zeros(0, 4))}, "at least one row"),
        (
            {"players": "edges", "game": GameOptions(communication=CommunicationGraph(2))},
            "graph of the 5 players",
        ),
    ],
)
def test_what_cannot_be_played_is_refused(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ValueError, TypeError), match=message):
        explain(Network(), small_graph(), **options)


def test_an_edge_with_one_direction_is_refused_unless_directions_play() -> None:
    model, data = Network("gat"), small_graph(loop=False)
    data.edge_index = data.edge_index[:, :-1]
    with pytest.raises(ValueError, match=r"only one direction of the edge between 3 and 4.*dire"):
        explain(model, data, players="edges")
    assert explain(model, data, players=Edges(directed=True)).scores.shape == (9,)


def test_a_graph_without_edges_has_no_edge_players() -> None:
    data = small_graph()
    data.edge_index, data.edge_attr = torch.tensor([[2], [2]]), data.edge_attr[:1]
    with pytest.raises(ValueError, match="no edges between nodes"):
        explain(Network(), data, players="edges")


@pytest.mark.parametrize("labels", [[0, 1, 1], [0] * 9])
def test_labels_are_one_for_each_node(labels: list[int]) -> None:
    with pytest.raises(ValueError, match=f"label for each of 5 nodes .got {len(labels)} labels"):
        GNNGame(Network(), small_graph(), players=labels)
    of_a_node = GNNGame(Network(graph_level=False), small_graph(), players=[0, 0, 1, 1, 2], **NODE)
    assert of_a_node.players.kind == "groups"


def test_labels_are_groups_in_order_of_their_first_node() -> None:
    groups = Groups.from_labels(["b", "a", None, "b", -1])
    assert groups.sets == ((0, 3), (1,))
    assert groups.names == ("b", "a")
    assert Groups.from_labels(torch.tensor([1, 0, -1, 1])).sets == ((0, 3), (1,))


# -- parallel edges --------------------------------------------------------------------------------


def parallel_graph() -> Data:
    """Two edges from 0 to 1 and back whose attributes differ, and a loop."""
    data = small_graph()
    more = torch.tensor([[0, 1], [1, 0]])
    draw = torch.Generator().manual_seed(9)
    data.edge_index = torch.cat([data.edge_index, more], dim=1)
    attributes = torch.randn(2, 3, generator=draw, dtype=torch.float64)
    data.edge_attr = torch.cat([data.edge_attr, attributes])
    return data


@pytest.mark.parametrize("task", [{}, {**NODE, "game": GameOptions(num_hops=4)}])
@pytest.mark.parametrize("share", ["auto", False])
def test_parallel_edges_are_players_of_their_own(task: dict[str, Any], share: Any) -> None:
    model, data = Network(graph_level=not task), parallel_graph()
    explained = explain(
        *(model, data),
        passes=Passes(share=share),
        players=Edges(directed=True),
        **task,
        value="shapley",
        target=1,
    )
    pairs = [tuple(pair) for pair in data.edge_index.t().tolist()]
    columns = [at for at in sorted(range(13), key=pairs.__getitem__) if at != 10]  # not the loop
    assert explained.player_edges.tolist() == [list(pairs[at]) for at in columns]

    def worth(inside: list[int]) -> float:
        return probability(
            model, 1, with_columns_of_edges(data, [columns[i] for i in inside]), task.get("index")
        )

    game = table(worth, 12, worth([]))
    np.testing.assert_allclose(explained.scores, shapley_value(game, 12).values, atol=1e-9)
    assert explained.scores[0] != pytest.approx(float(explained.scores[1]), abs=1e-4)
    for player, column in enumerate(columns):
        assert explained.edge_mask[column] == pytest.approx(float(explained.scores[player]))
    assert explained.edge_mask[10] == 0


def test_parallel_edges_are_told_apart() -> None:
    model, data = Network(), parallel_graph()
    explained = explain(model, data, value="shapley", players=Edges(directed=True))
    names = [explained.name_of(player) for player in range(12)]
    assert names[:3] == ["0 to 1", "0 to 1 (2)", "0 to 3"]
    assert len(set(names)) == 12
    frame = explained.to_frame().set_index("column")
    edges = explained.to_networkx().edges(data="score")
    assert len(edges) == 13
    plain = explained.to_dict()
    columns = [column for (column,) in plain["player_units"]]
    for player, column in enumerate(columns):
        assert data.edge_index[:, column].tolist() == plain["player_edges"][player]
        assert frame.loc[column, "score"] == explained.scores[player]
        ends = (*plain["player_edges"][player], pytest.approx(plain["scores"][player]))
        assert any(ends == edge for edge in edges)
    picture = explained.draw(sparsity=0.5).svg
    assert picture.count("0 to 1 (2)") >= 1
    assert explained.select(size=5, rule="connected").tolist() == sorted(
        explained.select(size=5, rule="connected").tolist()
    )
    kept = evaluate(model, data, explained.select(size=4), players=Edges(directed=True))
    assert np.isfinite(kept.fidelity)
    mask = torch.arange(13.0)
    scores, ends = edge_player_scores(mask, data.edge_index, directed=True)
    assert scores.tolist() == [float(column) for column in columns]
    assert ends.tolist() == plain["player_edges"]
    learned = create("gnnexplainer", epochs=2, players=Edges(directed=True))
    found = learned.explain(model.float(), _single(data), seed=0)
    assert found.player_edges.tolist() == plain["player_edges"]
    torch.testing.assert_close(found.edge_mask[columns], found.scores.float())


def _single(data: Data) -> Data:
    return data.clone().apply(lambda t: t.float() if t.is_floating_point() else t)


def test_parallel_edges_are_one_undirected_player() -> None:
    model, data = Network(), parallel_graph()
    explained = explain(model, data, players="edges", value="shapley", target=1)
    assert explained.player_edges.tolist() == [list(pair) for pair in UNDIRECTED]
    game = GNNGame(model, data, players="edges", target=1, payoff="prob")
    without = np.ones((1, 5), dtype=bool)
    without[0, 0] = False
    alone = probability(model, 1, with_edges(data, UNDIRECTED[1:]))
    assert game(without)[0] + game.payoff.baseline[0] == pytest.approx(alone, abs=1e-9)
    position = explain(model, data, value="position", players="edges", target=1)
    assert position.scores.shape == (5,)


class MixesRows(nn.Module):
    """A norm over all rows that it is given, or no ``batch`` at all."""

    def __init__(self, *, batched: bool) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.conv, self.norm, self.head = GCNConv(4, 8), GraphNorm(8), nn.Linear(8, 3)
        self.batched = batched
        self.double().eval()

    def run(self, x: Tensor, edge_index: Tensor, batch: Tensor | None) -> Tensor:
        hidden = self.conv(x, edge_index)
        hidden = self.norm(hidden).relu() if self.batched else hidden.relu()
        return self.head(global_mean_pool(hidden, batch))


@pytest.mark.parametrize("batched", [True, False])
def test_draws_of_a_reference_are_evaluated_one_at_a_time(batched: bool) -> None:
    network, data = MixesRows(batched=batched), small_graph()
    rows = torch.randn(4, 4, generator=torch.Generator().manual_seed(1), dtype=torch.float64) * 3

    def with_batch(x: Tensor, edge_index: Tensor, batch: Tensor | None = None) -> Tensor:
        return network.run(x, edge_index, batch)

    def without(x: Tensor, edge_index: Tensor) -> Tensor:
        return network.run(x, edge_index, None)

    options: dict[str, Any] = {"players": Features(reference=rows), "payoff": "raw"}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "the model mixes")
        found = explain(
            with_batch if batched else without, data, value="shapley", target=1, **options
        )
    drawn = reference_rows(Features(reference=rows), data)

    def worth(inside: Any) -> float:
        kept = torch.from_numpy(np.asarray(inside))
        with torch.no_grad():
            graphs = [torch.where(kept, data.x, draw) for draw in drawn]
            outputs = [network.run(x, data.edge_index, None)[0, 1] for x in graphs]
        return float(sum(outputs)) / len(outputs)

    table = np.array([worth([code >> i & 1 == 1 for i in range(4)]) for code in range(16)])
    expected = shapley_by_orders(table - table[0], 4)
    np.testing.assert_allclose(found.scores.numpy(), expected, atol=1e-9)
