"""Explanations whose players are groups, edges or features."""

from __future__ import annotations

from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data
from torch_geometric.explain import Explainer, characterization_score, fidelity, unfaithfulness

from gstarx import (
    CommunicationGraph,
    GNNGame,
    GStarX,
    Myerson,
    Position,
    explain,
    explain_many,
    explain_nodes,
)
from gstarx.explainers.explaining import FailedExplanation
from gstarx.games import TableGame
from gstarx.models import GCN
from gstarx.players import Edges, Features, Groups, brics
from gstarx.values import position_value
from tests.gnn.by_definition import (
    SQUARE,
    probability,
    small_graph,
    table,
    value_of,
    with_nodes,
)
from tests.gnn.test_player_kinds import Network
from tests.pairs import for_each
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

UNDIRECTED = sorted((min(e), max(e)) for e in SQUARE)
SETS = [[0, 1, 2], [3], [4]]
QUOTIENT = CommunicationGraph(3, [(0, 1), (1, 2)])


def score_when_only(model: Any, data: Data, group: int, shown: list[int], value: str) -> float:
    """The score of a group when only some of its nodes show: a game of its own."""
    sets = [shown if at == group else nodes for at, nodes in enumerate(SETS)]

    def worth(inside: list[int]) -> float:
        nodes = [node for i in inside for node in sets[i]]
        return probability(model, 1, with_nodes(data, nodes)) if nodes else 1 / 3

    game = table(worth, 3, 1 / 3)
    return float(value_of(game, QUOTIENT, value)[group])


@pytest.mark.parametrize("value", ["hn", "myerson", "shapley", "banzhaf"])
def test_nodes_share_the_score_of_their_group_by_all_orders(value: str) -> None:
    model, data = Network(), small_graph()
    explained = explain(model, data, players=SETS, value=value, target=1, baseline="uniform")
    expected = np.zeros(5)
    for group, nodes in enumerate(SETS):
        for order in permutations(nodes):
            for at, node in enumerate(order):
                gained = [
                    score_when_only(model, data, group, list(order[:count]), value)
                    for count in (at, at + 1)
                ]
                expected[node] += (gained[1] - gained[0]) / factorial(len(nodes))
        left = score_when_only(model, data, group, [], value)
        assert explained.group_remainder[group] == pytest.approx(left, abs=1e-9)
        total = explained.node_scores[nodes].sum() + explained.group_remainder[group]
        assert total == pytest.approx(float(explained.scores[group]), abs=1e-9)
    np.testing.assert_allclose(explained.node_scores, expected, atol=1e-9)
    empty = np.abs(explained.group_remainder.numpy()).max()
    # a value that ignores the structure gives an emptied group nothing
    assert (empty < 1e-9) == (value in ("shapley", "banzhaf"))


def test_scores_inside_groups_are_left_out_where_they_cost_too_much() -> None:
    model, data = Network(), small_graph()
    explained = explain(model, data, players=SETS, budget=20)
    assert explained.node_scores is None
    assert explained.group_remainder is None
    assert explained.scores.shape == (3,)


def test_several_targets_share_inside_groups_as_one_at_a_time_does() -> None:
    model, data = Network(), small_graph()
    together = explain(model, data, target="all", players=Groups(SETS, rest="present"))
    for target in range(3):
        alone = explain(model, data, target=target, players=Groups(SETS, rest="present"))
        one = together.for_target(target)
        np.testing.assert_allclose(one.node_scores, alone.node_scores, atol=1e-12)
        np.testing.assert_allclose(one.group_remainder, alone.group_remainder, atol=1e-12)


def test_the_position_value_of_a_network_by_its_definition() -> None:
    model, data = Network(), small_graph()
    explained = explain(model, data, players="edges", value="position", target=1)

    def worth(nodes: list[int], kept: list[int]) -> float:
        edges = [UNDIRECTED[i] for i in kept]
        part = with_nodes(data, nodes)
        place = {node: at for at, node in enumerate(sorted(nodes))}
        wanted = {(place[a], place[b]) for e in edges for a, b in (e, e[::-1])}
        columns = part.edge_index.t().tolist()
        mask = torch.tensor([a == b or (a, b) in wanted for a, b in columns], dtype=torch.bool)
        part.edge_index, part.edge_attr = part.edge_index[:, mask], part.edge_attr[mask]
        return probability(model, 1, part) - 1 / 3

    singles = np.array([worth([node], []) for node in range(5)])

    def beyond(kept: list[int]) -> float:
        nodes = sorted({node for i in kept for node in UNDIRECTED[i]})
        return worth(nodes, kept) - singles[nodes].sum()

    lines = CommunicationGraph.line_graph(UNDIRECTED)
    expected = value_of(table(beyond, 5, 0.0), lines, "myerson")
    np.testing.assert_allclose(explained.scores, expected, atol=1e-9)
    halves = singles.copy()
    for (a, b), share in zip(UNDIRECTED, expected, strict=True):
        halves[[a, b]] += share / 2
    np.testing.assert_allclose(explained.node_scores, halves, atol=1e-9)
    assert float(explained.node_scores.sum()) == pytest.approx(float(explained.worth[0]))


def test_the_position_value_of_a_tree_is_that_of_the_game_on_its_nodes() -> None:
    """Without cycles, the edges between touched nodes are the edges that touch them."""
    model, data = Network(), small_graph(loop=False)
    keep = [at for at, e in enumerate(data.edge_index.t().tolist()) if set(e) != {0, 3}]
    data.edge_index, data.edge_attr = data.edge_index[:, keep], data.edge_attr[keep]
    explained = explain(model, data, players="edges", value="position", target=1, baseline=0.1)
    worths = [0.0]
    worths += [
        probability(model, 1, with_nodes(data, [i for i in range(5) if mask >> i & 1])) - 0.1
        for mask in range(1, 32)
    ]
    by_nodes = position_value(
        TableGame(5, np.array(worths)), CommunicationGraph.from_edge_index(data.edge_index, 5)
    )
    np.testing.assert_allclose(explained.scores, by_nodes.links, atol=1e-9)
    np.testing.assert_allclose(explained.node_scores, by_nodes.values, atol=1e-9)


@for_each(
    ("players", "message"),
    [("nodes", "pass players='edges'"), (Edges(directed=True), "got directed edges")],
)
def test_the_position_value_is_for_undirected_edges(players: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        explain(Network(), small_graph(), value="position", players=players)


def linked(data: Data, kept: list[tuple[int, int]], always: list[int]) -> tuple[Data, list[int]]:
    """Some links and self-loops, with the nodes that links touch and those that always stay."""
    nodes = sorted({*always, *(node for link in kept for node in link)})
    part = with_nodes(data, nodes)
    wanted = {(nodes.index(a), nodes.index(b)) for e in kept for a, b in (e, e[::-1])}
    columns = part.edge_index.t().tolist()
    mask = torch.tensor([a == b or (a, b) in wanted for a, b in columns], dtype=torch.bool)
    part.edge_index, part.edge_attr = part.edge_index[:, mask], part.edge_attr[mask]
    return part, nodes


@for_each("index", range(5))
def test_the_position_value_of_a_node_by_its_definition(index: int) -> None:
    """Whoever is explained is always there; alone it is worth nothing."""
    model, data = Network(graph_level=False), small_graph()
    where: dict[str, Any] = {"task": "node", "index": index}
    explained = explain(model, data, players="edges", value="position", target=1, **where)

    def worth(kept: list[int]) -> float:
        part, nodes = linked(data, [UNDIRECTED[i] for i in kept], [index])
        return probability(model, 1, part, nodes.index(index))

    game = table(worth, 5, worth([]))
    expected = value_of(game, CommunicationGraph.line_graph(UNDIRECTED), "myerson")
    scores = dict(zip(map(tuple, explained.player_edges.tolist()), explained.scores, strict=True))
    found = [float(scores.get(link, 0.0)) for link in UNDIRECTED]
    np.testing.assert_allclose(found, expected, atol=1e-9)
    halves = np.zeros(5)
    for (a, b), share in zip(UNDIRECTED, expected, strict=True):
        halves[[a, b]] += share / 2
    np.testing.assert_allclose(explained.node_scores, halves, atol=1e-9)
    assert float(explained.node_scores.sum()) == pytest.approx(float(explained.worth[0]))
    by_many = explain_nodes(
        model, data, [index], players="edges", value="position", target=1, progress=False
    )[0]
    np.testing.assert_allclose(by_many.scores, explained.scores, atol=1e-9)
    with pytest.raises(ValueError, match="no other is accepted"):
        explain(model, data, players="edges", value="position", baseline=0.2, **where)


def test_the_position_value_of_a_pair_by_its_definition() -> None:
    class Pairs(Network):
        def forward(self, x: Any, edge_index: Any, edge_attr: Any, edge_label_index: Any) -> Any:
            rows = super().forward(x, edge_index, edge_attr)
            return rows[edge_label_index[0]] * rows[edge_label_index[1]]

    model, data = Pairs(graph_level=False), small_graph()
    data.edge_label_index = torch.tensor([[0], [4]])
    explained = explain(
        model, data, players="edges", value="position", target=1, index=0, task="edge"
    )

    def worth(kept: list[int]) -> float:
        part, nodes = linked(data, [UNDIRECTED[i] for i in kept], [0, 4])
        pair = torch.tensor([[nodes.index(0)], [nodes.index(4)]])
        with torch.no_grad():
            out = model(part.x, part.edge_index, part.edge_attr, pair)
        return float(out[0].softmax(-1)[1])

    game = table(worth, 5, worth([]))
    expected = value_of(game, CommunicationGraph.line_graph(UNDIRECTED), "myerson")
    np.testing.assert_allclose(explained.scores, expected, atol=1e-9)


@pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")
def test_estimates_of_the_position_value_of_a_node_agree_with_the_exact_one() -> None:
    torch.manual_seed(1)
    ends = torch.tensor([(i, (i + 1) % 9) for i in range(9)] + [(0, 4), (2, 7)]).t()
    data = Data(x=torch.randn(9, 4), edge_index=torch.cat([ends, ends.flip(0)], 1))
    model = GCN(4, 8, 3, readout=None)
    how: dict[str, Any] = {"players": "edges", "task": "node", "index": 0, "target": 1}
    exact = explain(model, data, value=Position(estimator="exact"), **how)
    sampled = explain(model, data, value=Position(estimator="sampled"), **how, budget=300, seed=0)
    assert exact.exact
    assert not sampled.exact
    errors = sampled.std_errors.numpy()
    apart = (sampled.scores - exact.scores).abs().numpy()
    assert (apart <= 4.5 * errors + 1e-9).all()
    assert 0 < errors.max() < float(exact.scores.abs().max())


@pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")
@pytest.mark.parametrize("value", ["hn", "myerson", "shapley", "banzhaf", "position"])
def test_estimates_of_edges_have_error_bars_and_follow_the_seed(value: str) -> None:
    torch.manual_seed(0)
    n = 14
    ends = torch.tensor([(i, (i + 1) % n) for i in range(n)] + [(0, 5), (3, 9)]).t()
    edge_index = torch.cat([ends, ends.flip(0)], dim=1)
    data = Data(
        x=torch.randn(n, 4).double(),
        edge_index=edge_index,
        edge_attr=torch.randn(edge_index.shape[1], 3).double(),
    )
    model = Network()
    options: dict[str, Any] = {"players": "edges", "value": value, "target": 1}
    sampled = explain(model, data, **options, budget=400, seed=1)
    assert sampled.exact is False
    assert sampled.std_errors.max() > 0
    again = explain(model, data, **options, budget=400, seed=1)
    np.testing.assert_array_equal(sampled.scores, again.scores)
    # each direction has the score of its edge
    mask = sampled.edge_mask
    assert mask.shape == (edge_index.shape[1],)
    torch.testing.assert_close(mask[: len(mask) // 2], mask[len(mask) // 2 :])


def pyg_explainer(players: Any, masks: dict[str, Any], **options: Any) -> Explainer:
    return Explainer(
        Network().float(),
        algorithm=GStarX(players=players, **options),
        explanation_type="model",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "graph",
            "return_type": "raw",
        },
        **masks,
    )


MASKS = {
    "edges": {"edge_mask_type": "object"},
    "features": {"node_mask_type": "common_attributes"},
    "groups": {"node_mask_type": "object"},
}


@pytest.mark.parametrize("kind", MASKS)
def test_pyg_takes_the_masks_and_measures_them(kind: str) -> None:
    data = small_graph()
    players = {"groups": SETS}.get(kind, kind)
    explainer = pyg_explainer(players, MASKS[kind])
    explanation = explainer(data.x.float(), data.edge_index, edge_attr=data.edge_attr.float())
    assert explanation.validate()
    name, shape = {
        "edges": ("edge_mask", (11,)),
        "features": ("node_mask", (1, 4)),
        "groups": ("node_mask", (5, 1)),
    }[kind]
    assert explanation[name].shape == shape
    positive, negative = map(torch.tensor, fidelity(explainer, explanation))
    assert 0 <= characterization_score(positive, negative, 0.5, 0.5) <= 1
    assert 0 <= unfaithfulness(explainer, explanation) <= 1


@for_each(
    ("players", "masks"),
    [
        ("edges", {"node_mask_type": "object"}),
        ("edges", {"node_mask_type": "object", "edge_mask_type": "object"}),
        ("features", {"node_mask_type": "object"}),
        ("features", {"node_mask_type": "attributes"}),
        ("nodes", {"node_mask_type": "common_attributes"}),
    ],
)
def test_masks_that_players_do_not_have_are_refused(players: str, masks: Any) -> None:
    with pytest.raises(ValueError, match="does not support"):
        pyg_explainer(players, masks)


def test_tables_and_graphs_name_the_players() -> None:
    model, data = Network(), small_graph()
    edges = explain(model, data, players="edges")
    frame = edges.to_frame()
    assert list(frame.columns) == ["source", "target", "score", "std_error"]
    assert frame.score.is_monotonic_decreasing
    graph = edges.to_networkx()
    for (a, b), score in zip(edges.player_edges.tolist(), edges.scores.tolist(), strict=True):
        assert graph.edges[a, b]["score"] == pytest.approx(score, abs=1e-6)
    directed = explain(model, data, budget=100, players=Edges(directed=True))
    assert directed.to_networkx().is_directed()
    groups = explain(model, data, players=Groups(SETS, names=["head", "mid", "tail"]))
    assert set(groups.to_frame().group) == {"head", "mid", "tail"}
    assert groups.to_networkx().nodes[1]["group"] == "head"
    assert "head" in groups._repr_html_() or "tail" in groups._repr_html_()
    features = explain(model, data, players=Features(groups={"a": [0, 1]}))
    assert set(features.to_frame().feature) == {"a", "2", "3"}
    for one in (edges, directed, groups, features):
        plain = one.to_dict()
        assert plain["player_kind"] == one.player_kind
        assert len(plain["scores"]) == len(one.players)
        best = one.top(2)
        assert set(best) == set(one.select(size=2))
        assert len(one.select(size=2, rule="connected")) == 2
        assert set(one.select(rule="gap")) <= set(range(len(one.players)))


def test_means_of_ends_are_never_scores_of_edges() -> None:
    model, data = Network(), small_graph()
    edges = explain(model, data, players="edges").score_edges()
    assert edges.edge_mask[0] == edges.scores[UNDIRECTED.index((0, 1))].float()
    several = explain(model, data, players="edges", target="all").score_edges()
    assert torch.equal(several.edge_scores[0], several.scores[UNDIRECTED.index((0, 1))])
    with pytest.raises(ValueError, match="these players are features"):
        explain(model, data, players="features").score_edges()
    groups = explain(model, data, players=SETS).score_edges()
    assert groups.edge_mask.shape == (11,)


def test_makers_are_applied_to_every_graph() -> None:
    from gstarx.datasets import smiles_graph
    from gstarx.models import GCN

    graphs = [smiles_graph(s) for s in ("CCOC(=O)c1ccccc1", "CCN", "c1ccccc1CC")]
    model = GCN(graphs[0].num_features, 8, 2)
    by_function = explain_many(model, graphs, players=brics, progress=False)
    by_name = explain_many(model, graphs, players="brics", progress=False)
    for one, other, graph in zip(by_function, by_name, graphs, strict=True):
        assert not isinstance(one, FailedExplanation)
        assert one.player_names == list(brics(graph).names)
        torch.testing.assert_close(one.scores, other.scores)
    alone = explain(model, graphs[0], players=brics(graphs[0]))
    torch.testing.assert_close(alone.scores, by_function[0].scores)


def test_a_graph_without_edges_costs_the_others_nothing() -> None:
    from gstarx.models import GCN

    lonely = Data(x=torch.rand(1, 4), edge_index=torch.zeros(2, 0, dtype=torch.long))
    pair = Data(x=torch.rand(2, 4), edge_index=torch.tensor([[0, 1], [1, 0]]))
    found = explain_many(
        GCN(4, 8, 2), [lonely, pair], players="edges", progress=False, on_error="record"
    )
    assert isinstance(found[0], FailedExplanation)
    assert "no edges" in str(found[0].error)
    assert not isinstance(found[1], FailedExplanation)
    assert found[1].scores.shape == (1,)


def test_the_model_stays_as_it_was() -> None:
    model, data = Network().train(), small_graph()
    before = {name: value.clone() for name, value in model.state_dict().items()}
    for players in ("edges", "features", SETS):
        explain(model, data, players=players)
    assert model.training
    for name, value in model.state_dict().items():
        assert torch.equal(value, before[name])


def test_two_sided_values_and_a_baseline_of_single_players_for_groups_and_edges() -> None:
    model, data = Network(), small_graph()
    alone = explain(
        model, data, players=[[i] for i in range(5)], target=1, value=Myerson(two_sided=True)
    )
    by_node = explain(model, data, target=1, value=Myerson(two_sided=True))
    np.testing.assert_allclose(alone.scores, by_node.scores, atol=1e-12)
    centered = explain(model, data, players=SETS, baseline="singletons", target=1)
    nodes = [probability(model, 1, with_nodes(data, nodes)) for nodes in SETS]
    assert centered.baseline[0] == pytest.approx(np.mean(nodes))
    total = centered.node_scores.sum() + centered.group_remainder.sum()
    assert float(total) == pytest.approx(float(centered.scores.sum()))
    edges = explain(model, data, players="edges", target=1, value=Myerson(two_sided=True))
    assert float(edges.scores.sum()) == pytest.approx(float(edges.worth[0]))
    with pytest.raises(ValueError, match="no other is accepted"):
        explain(model, data, players="edges", baseline="singletons")


def test_the_position_value_takes_the_baseline_of_single_nodes() -> None:
    model, data = Network(), small_graph()
    options: dict[str, Any] = {"players": "edges", "value": "position", "target": 1}
    centered = explain(model, data, **options, baseline="singletons")
    singles = [probability(model, 1, with_nodes(data, [node])) for node in range(5)]
    known = explain(model, data, **options, baseline=float(np.mean(singles)))
    np.testing.assert_allclose(centered.scores, known.scores, atol=1e-12)
    np.testing.assert_allclose(centered.node_scores, known.node_scores, atol=1e-12)
    assert centered.baseline == pytest.approx(known.baseline)


def test_the_position_value_keeps_the_prediction_of_nodes_that_no_edge_touches() -> None:
    data = Data(
        x=torch.eye(3)[[0, 1, 2, 0, 1]], edge_index=torch.tensor([[0, 1, 2, 3], [1, 0, 3, 2]])
    )
    torch.manual_seed(0)
    network = GCN(3, 8, 2).eval()
    explanation = explain(network, data, players="edges", value="position")
    assert torch.allclose(explanation.prediction, network(data.x, data.edge_index).detach())
    worths = GNNGame(network, data, target=int(explanation.explained[0]))(np.eye(5, dtype=bool))
    assert float(explanation.node_scores[4]) == pytest.approx(worths[4], abs=1e-6)
