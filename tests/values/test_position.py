"""The position value is that of its definition, on trees and on graphs with cycles."""

from __future__ import annotations

from itertools import permutations
from math import factorial
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

from gstarx.games import TableGame, additive_game, airport_game, random_game, unanimity_game
from gstarx.graphs import CommunicationGraph, TooManyCoalitions
from gstarx.values import myerson_value, position_value, position_value_sampled
from tests.oracles import as_integer, parts
from tests.strategies import graphs
from tests.values.definitions import molecule, path, ring, smooth_game


def by_definition(game: Any, graph: CommunicationGraph) -> tuple[np.ndarray, np.ndarray]:
    """Shapley value of the link game over all orders of links; halves of it, and singles."""
    n, edges = graph.num_nodes, graph.edges.tolist()
    table = np.concatenate([[0.0], game(np.array([as_bits(m, n) for m in range(1, 2**n)]))])
    singles = table[1 << np.arange(n)]

    def together(links: frozenset[int]) -> float:
        linked = CommunicationGraph(n, [edges[i] for i in links])
        nodes = frozenset(range(n))
        return float(sum(table[as_integer(part)] for part in parts(linked, nodes)) - singles.sum())

    shares = np.zeros(len(edges))
    for order in permutations(range(len(edges))):
        for at, link in enumerate(order):
            shares[link] += together(frozenset(order[: at + 1])) - together(frozenset(order[:at]))
    shares /= factorial(len(edges))
    values = singles.copy()
    for (a, b), share in zip(edges, shares, strict=True):
        values[[a, b]] += share / 2
    return values, shares


def as_bits(mask: int, n: int) -> list[bool]:
    return [bool(mask >> i & 1) for i in range(n)]


@settings(max_examples=40, deadline=None)
@given(graphs(min_nodes=1, max_nodes=5).filter(lambda graph: len(graph.edges) <= 5))
def test_it_is_half_of_the_shapley_value_of_links(graph: CommunicationGraph) -> None:
    game = random_game(graph.num_nodes, seed=3)
    values, shares = by_definition(game, graph)
    allocation = position_value(game, graph)
    np.testing.assert_allclose(allocation.values, values, atol=1e-9)
    assert allocation.links is not None
    np.testing.assert_allclose(allocation.links, shares, atol=1e-9)
    assert allocation.exact
    assert allocation.residual < 1e-9


def test_the_constant_game_on_a_tree_gives_one_less_half_the_degree() -> None:
    tree = CommunicationGraph(6, [(0, 1), (1, 2), (1, 3), (3, 4), (3, 5)])
    constant = TableGame(6, np.array([0.0, *np.ones(63)]))
    np.testing.assert_allclose(position_value(constant, tree).values, 1 - tree.degrees / 2)


def test_links_of_a_runway_split_what_they_save() -> None:
    # v(S) is the largest cost: joined, two neighbors save the smaller of both
    allocation = position_value(airport_game([1.0, 2.0, 5.0]), path(3))
    # r({01}) = 2 - 3 = -1, r({12}) = 5 - 7 = -2, r(both) = 5 - 8 = -3: both links get their own
    assert allocation.links == pytest.approx([-1.0, -2.0])
    assert allocation.values == pytest.approx([0.5, 0.5, 4.0])


def test_it_differs_from_the_myerson_value_for_a_center() -> None:
    star = CommunicationGraph(3, [(0, 1), (0, 2)])
    game = unanimity_game(3, [1, 2])
    assert position_value(game, star).values == pytest.approx([0.5, 0.25, 0.25])
    assert myerson_value(game, star).values == pytest.approx([1 / 3] * 3)


def test_an_additive_game_gives_links_nothing() -> None:
    allocation = position_value(additive_game([1.0, -2.0, 3.0, 0.5]), ring(4))
    np.testing.assert_allclose(allocation.links, np.zeros(4), atol=1e-12)
    np.testing.assert_allclose(allocation.values, [1.0, -2.0, 3.0, 0.5], atol=1e-12)


def test_several_games_are_those_of_one_at_a_time() -> None:
    graph, game = molecule(6, seed=1), smooth_game(6, q=3)
    together = position_value(game, graph)
    for column in range(3):
        alone = position_value(lambda s, c=column: game(s)[:, c], graph)
        np.testing.assert_allclose(together.values[:, column], alone.values, atol=1e-12)


@pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")
def test_estimates_lie_within_their_errors() -> None:
    graph, game = molecule(14, seed=2, chords=3), smooth_game(14)
    exact = position_value(game, graph)
    deviations = []
    for seed in range(8):
        estimate = position_value_sampled(game, graph, budget=300, seed=seed)
        assert not estimate.exact
        assert estimate.links is not None
        assert estimate.link_error is not None
        assert estimate.residual < 1e-9
        deviations.append((estimate.links - exact.links) / estimate.link_error)
        assert (np.abs(estimate.values - exact.values) <= 5 * estimate.std_error).all()
    assert np.sqrt(np.mean(np.square(deviations))) < 2.5
    again = position_value_sampled(game, graph, budget=300, seed=7)
    np.testing.assert_array_equal(again.values, estimate.values)


def test_too_many_links_are_refused() -> None:
    with pytest.raises(TooManyCoalitions):
        position_value(smooth_game(12), ring(12), max_coalitions=50)


def test_without_edges_everybody_gets_their_own() -> None:
    game = additive_game([1.0, 2.0])
    assert position_value(game, CommunicationGraph(2)).values.tolist() == [1.0, 2.0]
    assert position_value(game, CommunicationGraph(0)).values.shape == (0,)
