"""Metrics of every kind of player: to remove means what it means in the game."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
import pytest
import torch

from gstarx import GNNGame, Judge, explain, metrics
from gstarx.players import Edges, Features, Groups
from tests.gnn.by_definition import (
    SQUARE,
    probability,
    small_graph,
    with_columns,
    with_edges,
    with_nodes,
)
from tests.gnn.test_player_kinds import Network

UNDIRECTED = sorted((min(e), max(e)) for e in SQUARE)
SETS = [[0, 1, 2], [3], [4]]


def parts_by_hand(kind: str, model: Any, data: Any) -> Any:
    """What the model says of a set of players, from one call."""
    if kind == "edges":
        return lambda chosen: probability(
            model, 1, with_edges(data, [UNDIRECTED[i] for i in chosen])
        )
    if kind == "features":
        none = torch.zeros_like(data.x)
        return lambda chosen: probability(model, 1, with_columns(data, chosen, none))

    def of_groups(chosen: list[int]) -> float:
        nodes = [node for i in chosen for node in SETS[i]]
        return probability(model, 1, with_nodes(data, nodes)) if nodes else 0.0

    return of_groups


PLAYERS: dict[str, tuple[Any, int]] = {"edges": ("edges", 5), "features": ("features", 4)}
PLAYERS["groups"] = (SETS, 3)


def test_fidelity_by_hand_for_every_selection() -> None:
    for kind in PLAYERS:
        model, data = Network(), small_graph()
        players, count = PLAYERS[kind]
        part = parts_by_hand(kind, model, data)
        everybody = list(range(count))
        full_graph = part(everybody)
        for size in range(count + 1):
            for chosen in combinations(everybody, size):
                found = metrics.evaluate(model, data, list(chosen), players=players, target=1)
                rest = [i for i in everybody if i not in chosen]
                expected = metrics.Faithfulness.of(
                    full_graph, part(rest), part(list(chosen)), 1 - size / count
                )
                for name in metrics.METRICS:
                    assert getattr(found, name) == pytest.approx(getattr(expected, name), abs=1e-9)


def test_groups_are_judged_as_the_nodes_that_they_are() -> None:
    model, data = Network(), small_graph()
    by_group = metrics.evaluate(model, data, [0, 2], players=SETS, target=1)
    by_node = metrics.evaluate(model, data, [0, 1, 2, 4], target=1)
    assert by_group.fidelity == pytest.approx(by_node.fidelity, abs=1e-12)
    assert by_group.inverse_fidelity == pytest.approx(by_node.inverse_fidelity, abs=1e-12)
    assert by_group.sparsity == pytest.approx(1 / 3)
    assert by_node.sparsity == pytest.approx(1 / 5)


def test_many_graphs_and_directions() -> None:
    model, data = Network(), small_graph()
    kind = Edges(directed=True)
    many = Judge(model, players=kind).many([data, data], [[[0, 1], [2]], [0]], target=1)
    assert many[0][0] == metrics.evaluate(model, data, [0, 1], players=kind, target=1)
    assert many[1] == metrics.evaluate(model, data, [0], players=kind, target=1)
    assert many[0][0].sparsity == pytest.approx(0.8)


@pytest.mark.parametrize("kind", PLAYERS)
def test_the_best_selection_is_the_best_of_all(kind: str) -> None:
    model, data = Network(), small_graph()
    players, count = PLAYERS[kind]
    every = [
        metrics.evaluate(model, data, list(chosen), players=players, target=1).harmonic_fidelity
        for size in range(3)
        for chosen in combinations(range(count), size)
    ]
    best = Judge(model, players=players).best(data, 2, target=1)
    assert best.optimal
    assert best.evaluation.harmonic_fidelity == pytest.approx(max(every), abs=1e-9)
    again = metrics.evaluate(model, data, best.nodes, players=players, target=1)
    assert again.harmonic_fidelity == pytest.approx(max(every), abs=1e-9)
    in_turn = dict(Judge(model, players=players).best_of_sizes(data, [1, 2], target=1))
    assert in_turn[2].evaluation.harmonic_fidelity == pytest.approx(max(every), abs=1e-9)
    refined = Judge(model, players=players).refine(data, [0, 1], target=1)
    assert refined.after.harmonic_fidelity >= refined.before.harmonic_fidelity
    searched = Judge(model, players=players).best(data, 2, target=1, exhaustive_up_to=0, seed=0)
    assert searched.evaluation.harmonic_fidelity <= max(every) + 1e-12


def test_random_selections_are_the_mean_over_all_in_the_limit() -> None:
    model, data = Network(), small_graph()
    every = metrics.average(
        metrics.evaluate(model, data, list(chosen), players="edges", target=1)
        for chosen in combinations(range(5), 2)
    )
    drawn = Judge(model, players="edges").random(data, 2, target=1, count=2000, seed=0)
    assert drawn.fidelity == pytest.approx(every.fidelity, abs=0.01)
    assert drawn.sparsity == pytest.approx(0.6)
    same = Judge(model, players="edges").random(data, 2, target=1, count=5, seed=3)
    assert same == Judge(model, players="edges").random(data, 2, target=1, count=5, seed=3)
    with pytest.raises(ValueError, match=r"0\.\.5"):
        Judge(model, players="edges").random(data, 6)


def test_edges_around_a_node_are_numbered_as_they_are_explained() -> None:
    model, data = Network(graph_level=False), small_graph(loop=False)
    of_edges: dict[str, Any] = {"players": "edges", "target": 1, "task": "node", "index": 4}
    explained = explain(model, data, **of_edges)
    chosen = explained.select(size=1)
    found = metrics.evaluate(model, data, chosen, **of_edges)
    edge = tuple(explained.player_edges[chosen[0]].tolist())
    rest = [e for e in UNDIRECTED if e != edge]
    without = probability(model, 1, with_edges(data, rest), 4)
    assert found.fidelity == pytest.approx(probability(model, 1, data, 4) - without, abs=1e-9)


def test_regression_takes_what_is_left_without_players() -> None:
    model, data = Network(), small_graph()

    def regression(x: Any, edge_index: Any, edge_attr: Any, batch: Any = None) -> Any:
        return model(x, edge_index, edge_attr, batch)[:, :1]

    game = GNNGame(regression, data, players="edges", task="regression")
    (nothing,) = game.payoff.baseline
    reference = metrics.Reference(range=10.0, mean=nothing - 5)
    found = metrics.evaluate(
        regression, data, [], players="edges", reference=reference, task="regression"
    )
    full_graph = float(game.prediction[0])
    assert found.inverse_fidelity == pytest.approx((full_graph - nothing) / 10, abs=1e-6)


def test_an_edge_mask_of_another_explainer_becomes_scores_of_players() -> None:
    data = small_graph()
    mask = torch.arange(11.0)
    scores, edges = metrics.edge_player_scores(mask, data.edge_index)
    assert [tuple(pair) for pair in edges.tolist()] == UNDIRECTED
    columns = data.edge_index.t().tolist()
    for (a, b), score in zip(edges.tolist(), scores, strict=True):
        there, back = columns.index([a, b]), columns.index([b, a])
        assert score == (there + back) / 2
    directed, pairs = metrics.edge_player_scores(mask, data.edge_index, directed=True)
    assert len(directed) == len(pairs) == 10
    with pytest.raises(ValueError, match="one number for each column"):
        metrics.edge_player_scores(mask[:3], data.edge_index)


def test_the_auroc_of_edges_counts_every_edge_once() -> None:
    data = small_graph()
    truth = [0, 1, 2]  # edges 0-1 and 1-2
    mask = torch.zeros(11)
    columns = data.edge_index.t().tolist()
    mask[columns.index([0, 1])] = mask[columns.index([1, 0])] = 1.0
    mask[columns.index([2, 2])] = 9.0  # a self-loop is no edge between nodes
    # 0-1 beats all three others, 1-2 ties with them
    assert metrics.edge_auroc(mask, data.edge_index, truth) == pytest.approx((3 + 1.5) / 6)
    marked = torch.tensor([sorted(e) in ([0, 1], [1, 2]) for e in columns])
    assert metrics.edge_auroc(mask, data.edge_index, marked) == pytest.approx((3 + 1.5) / 6)
    with pytest.raises(ValueError, match="some but not all"):
        metrics.edge_auroc(mask, data.edge_index, [0, 4])


def test_what_cannot_be_judged_is_refused() -> None:
    for options, message in (
        ({"nodes": [5], "players": "edges"}, r"0\.\.4"),
        ({"nodes": [0], "players": [[0], [0, 1]]}, "overlap"),
        ({"nodes": [0], "players": "bonds"}, "no kind of players"),
        ({"nodes": [0], "players": "edges", "removal": "split"}, "removal says"),
    ):
        with pytest.raises(ValueError, match=message):
            metrics.evaluate(Network(), small_graph(), **options)


def test_kinds_with_options_are_taken() -> None:
    model, data = Network(), small_graph()
    kind = Features(groups={"ends": [0, 3]}, reference="mean")
    assert metrics.evaluate(model, data, [0], players=kind).sparsity == pytest.approx(2 / 3)
    rest = Groups(SETS[:2], rest="present")
    nothing = metrics.evaluate(model, data, [], players=rest, target=1)
    alone = probability(model, 1, with_nodes(data, [4]))
    expected = probability(model, 1, data) - alone
    assert nothing.inverse_fidelity == pytest.approx(expected, abs=1e-9)
    assert np.isclose(nothing.fidelity, 0)
