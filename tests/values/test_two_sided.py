"""Duality: which values see both sides of a game, and those that are made to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import TableGame, dual, self_dual
from gstarx.graphs import Coalitions, CommunicationGraph
from gstarx.values import banzhaf_value, hn_value, myerson_value, shapley_value
from tests.strategies import REAL, connected_graphs, graph_games, table_games
from tests.values.definitions import Numbers, path, ring

GRAPH_VALUES = (hn_value, myerson_value)


def constant_game(coalitions: Coalitions) -> Numbers:
    """Everybody who is not nobody is worth 1."""
    return np.ones(len(coalitions))


# which values are self-dual


@settings(max_examples=30)
@given(st.integers(1, 6), st.sampled_from([None, 2]), st.data())
def test_shapley_and_banzhaf_are_self_dual(n: int, q: int | None, data: st.DataObject) -> None:
    game = data.draw(table_games(n, q=q, elements=REAL))
    for value in (shapley_value, banzhaf_value):
        expected = value(game, n).values
        for other in (dual(game), self_dual(game)):
            np.testing.assert_allclose(value(other, n).values, expected, rtol=0, atol=1e-9)


def test_a_banzhaf_value_with_another_presence_is_that_of_the_absence_in_the_dual() -> None:
    game = TableGame(3, np.arange(8.0) ** 2)
    one = banzhaf_value(game, 3, presence=0.2).values
    np.testing.assert_allclose(one, banzhaf_value(dual(game), 3, presence=0.8).values)
    assert not np.allclose(one, banzhaf_value(dual(game), 3, presence=0.2).values)


@pytest.mark.parametrize("value", GRAPH_VALUES)
def test_hn_and_myerson_are_not_self_dual(value: Any) -> None:
    # only both ends together earn anything, and only with the middle can they meet
    game = TableGame(3, [0, 0, 0, 0, 0, 1, 0, 1])
    one, other = value(game, path(3)).values, value(dual(game), path(3)).values
    assert one[1] > 0.3
    assert abs(one - other).max() > 0.3


# the constant game


@given(connected_graphs(max_nodes=8))
def test_the_constant_game_on_trees_is_a_picture_of_the_degrees(graph: CommunicationGraph) -> None:
    spanning = _spanning_tree(graph)
    expected = 1 - spanning.degrees / 2
    for value in GRAPH_VALUES:
        values = value(constant_game, spanning).values
        np.testing.assert_allclose(values, expected, rtol=0, atol=1e-10)


def test_the_constant_game_is_shared_equally_where_all_nodes_are_alike() -> None:
    for n in (3, 6):
        everybody = CommunicationGraph(n, [(i, j) for i in range(n) for j in range(i)])
        for value in GRAPH_VALUES:
            for graph in (ring(n), everybody):
                values = value(constant_game, graph).values
                np.testing.assert_allclose(values, np.full(n, 1 / n), rtol=0, atol=1e-12)


def test_shapley_shares_the_constant_game_equally_whatever_the_graph() -> None:
    np.testing.assert_allclose(shapley_value(constant_game, 4).values, np.full(4, 0.25))
    np.testing.assert_allclose(banzhaf_value(constant_game, 4).values, np.full(4, 0.125))


@settings(max_examples=30)
@given(st.floats(-3, 3), st.data())
def test_a_constant_is_taken_off_by_linearity(constant: float, data: st.DataObject) -> None:
    game, graph = data.draw(graph_games(min_nodes=1, max_nodes=6, elements=REAL))
    for value in GRAPH_VALUES:
        for side in (lambda v: v, self_dual):
            shifted = value(side(lambda c: game(c) - constant), graph).values
            one = value(side(constant_game), graph).values
            expected = value(side(game), graph).values - constant * one
            np.testing.assert_allclose(shifted, expected, rtol=0, atol=1e-8)


def test_the_self_dual_part_of_the_constant_game() -> None:
    worths = self_dual(constant_game)(np.array([[1, 0, 0], [1, 0, 1], [1, 1, 1]], dtype=bool))
    assert worths.tolist() == [0.5, 0.5, 1.0]


def _spanning_tree(graph: CommunicationGraph) -> CommunicationGraph:
    """Edges of a connected graph that reach every node once."""
    reached, edges = {0}, []
    while len(reached) < graph.num_nodes:
        i, j = next((i, j) for i, j in graph.edges.tolist() if (i in reached) != (j in reached))
        edges.append((i, j))
        reached |= {i, j}
    return CommunicationGraph(graph.num_nodes, edges)
