"""Growth weights grown size by size, with and without thinning."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from gstarx.graphs import CoalitionLattice, CommunicationGraph
from gstarx.graphs.bitmasks import unpack
from gstarx.graphs.index import find_rows
from gstarx.values import hn_value
from gstarx.values.hn.closed_form import growth_weights, value_weights
from gstarx.values.hn.growth_front import growth_front
from tests.strategies import connected_graphs
from tests.values.definitions import Numbers, molecule, ring, smooth_game

EVERYTHING = 10**9


def check_equal_to_the_list(graph: CommunicationGraph, width: int) -> None:
    """The front holds every connected coalition once, with the weights of the closed form."""
    masks, weights = growth_front(graph, width, np.random.default_rng(0))
    lattice = CoalitionLattice.of(graph)
    rows = find_rows(lattice.masks, masks)
    assert sorted(rows) == list(range(len(lattice)))
    expected = growth_weights(lattice)[rows]
    if graph.num_nodes == 1:
        expected[0] = 1.0  # a node on its own has nowhere to grow, and its weight is never used
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-13)


@settings(max_examples=50)
@given(connected_graphs(max_nodes=8))
def test_nothing_thinned_is_exact(graph: CommunicationGraph) -> None:
    check_equal_to_the_list(graph, EVERYTHING)


def test_the_widest_size_decides_whether_anything_is_thinned() -> None:
    graph = molecule(12, seed=4)
    widest = int(np.diff(CoalitionLattice.of(graph).starts).max())
    check_equal_to_the_list(graph, widest)
    assert len(growth_front(graph, widest - 1, np.random.default_rng(0))[0]) < len(
        CoalitionLattice.of(graph)
    )


def test_a_ring_of_many_words_is_exact() -> None:
    check_equal_to_the_list(ring(130), 130)


@pytest.mark.parametrize("width", [5, 20, 60])
def test_a_thinned_front_is_no_wider_than_asked_for(width: int) -> None:
    graph = molecule(14, seed=2, chords=4)
    masks, weights = growth_front(graph, width, np.random.default_rng(1))
    members = unpack(masks, 14)
    sizes = members.sum(axis=1)
    assert (np.diff(sizes) >= 0).all()
    counts = np.bincount(sizes, minlength=15)
    assert counts[1] == 14
    assert counts[14] == 1
    assert (counts[2:14] <= width).all()
    assert (counts[2:14] >= 1).all()
    assert len(np.unique(masks, axis=0)) == len(masks)
    assert (find_rows(CoalitionLattice.of(graph).masks, masks) >= 0).all()
    assert weights.shape == (len(masks), 14)
    assert np.isfinite(weights).all()
    assert members[-1].all()
    assert not weights[-1].any()


def test_the_same_generator_gives_the_same_front() -> None:
    graph = molecule(14, seed=2, chords=4)
    one, other, third = (growth_front(graph, 20, np.random.default_rng(s)) for s in (3, 3, 4))
    np.testing.assert_array_equal(one[0], other[0])
    np.testing.assert_array_equal(one[1], other[1])
    assert not np.array_equal(one[0], third[0])


def values_of_a_front(graph: CommunicationGraph, width: int, seed: int, game: object) -> Numbers:
    masks, weights = growth_front(graph, width, np.random.default_rng(seed))
    members = unpack(masks, graph.num_nodes)
    last = np.array([len(masks) - 1])
    value = value_weights(weights, members, graph.degrees, last)
    return np.asarray(value.T @ game(members))  # type: ignore[operator]


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_additive_games_are_exact_however_thin(seed: int) -> None:
    graph = molecule(14, seed=2, chords=4)
    own = np.random.default_rng(seed).normal(size=14)
    found = values_of_a_front(graph, 20, seed, lambda members: members @ own)
    np.testing.assert_allclose(found, own, rtol=0, atol=1e-8)


def test_thinned_fronts_average_to_the_value() -> None:
    graph = molecule(16, seed=3, chords=4)
    widest = int(np.diff(CoalitionLattice.of(graph).starts).max())
    game = smooth_game(16, seed=1)
    exact = hn_value(game, graph).values
    found = np.array([values_of_a_front(graph, widest // 4, seed, game) for seed in range(100)])
    spread = np.sqrt(((found - exact) ** 2).mean())
    drift = np.sqrt(((found.mean(axis=0) - exact) ** 2).mean())
    assert spread > 0
    # a front has some bias left; averaging must still remove most of what one front misses
    assert drift < 0.6 * spread
    assert spread < 0.5 * exact.std()


def test_wider_fronts_are_closer() -> None:
    graph = molecule(16, seed=3, chords=4)
    game = smooth_game(16, seed=1)
    exact = hn_value(game, graph).values
    errors = [
        np.mean([(values_of_a_front(graph, width, s, game) - exact) ** 2 for s in range(20)])
        for width in (20, 100, 400)
    ]
    assert errors[0] > errors[1] > errors[2]
