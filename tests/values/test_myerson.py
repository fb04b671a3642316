"""The Myerson value, against the Shapley value of the restricted game and the myerson package."""

from __future__ import annotations

from math import factorial as f

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from myerson import MyersonCalculator
from numpy.typing import NDArray

from gstarx.games import (
    TableGame,
    additive_game,
    random_game,
    restricted_game,
    unanimity_game,
)
from gstarx.graphs import CoalitionLattice, CommunicationGraph, TooManyCoalitions
from gstarx.values import myerson_value, shapley_value
from gstarx.values.myerson import component_chance, myerson_weights
from tests.oracles import as_integer, as_networkx, as_sets
from tests.pairs import for_each
from tests.strategies import REAL, connected_graphs, graph_games, graphs, wide_graphs
from tests.values.definitions import (
    Counting,
    molecule,
    path,
    relabeled,
    renamed,
    restricted_table,
    shapley_by_orders,
)

columns = st.sampled_from([None, 1, 3])


# worked examples


@for_each(
    ("coalition", "weight"),
    [({0}, 1 / 2), ({0, 1}, 1 / 6), ({0, 2}, 0), ({0, 1, 2}, 1 / 3)],
)
def test_marginal_contributions_of_an_end_of_the_path(coalition: set[int], weight: float) -> None:
    table = np.zeros(8)
    table[as_integer(coalition)] = 1.0
    found = myerson_value(TableGame(3, table), path(3)).values[0]
    assert found == pytest.approx(weight, abs=1e-15)


def test_a_bridge_is_paid_like_the_ends_it_joins() -> None:
    values = myerson_value(unanimity_game(3, [0, 2]), path(3)).values
    np.testing.assert_allclose(values, 1 / 3)
    values = myerson_value(unanimity_game(4, [0, 2]), path(4)).values
    np.testing.assert_allclose(values, [1 / 3, 1 / 3, 1 / 3, 0], rtol=0, atol=1e-15)


def test_ends_that_cannot_meet_get_nothing() -> None:
    graph = CommunicationGraph(4, [(0, 1), (2, 3)])
    np.testing.assert_array_equal(myerson_value(unanimity_game(4, [0, 2]), graph).values, 0)


# the definition


@settings(max_examples=40)
@given(columns, st.data())
def test_it_is_the_shapley_value_of_the_restricted_game(q: int | None, data: st.DataObject) -> None:
    game, graph = data.draw(graph_games(min_nodes=1, max_nodes=5, q=q, elements=REAL))
    found = myerson_value(game, graph)
    expected = shapley_by_orders(restricted_table(game.worths, graph), graph.num_nodes)
    np.testing.assert_allclose(found.values, expected, rtol=0, atol=1e-10)
    ours = shapley_value(restricted_game(game, graph), graph.num_nodes)
    np.testing.assert_allclose(found.values, ours.values, rtol=0, atol=1e-10)
    assert found.exact
    assert not found.std_error.any()
    assert found.residual < 1e-10


@settings(max_examples=25)
@given(graphs(min_nodes=2, max_nodes=6), st.integers(0, 2**32))
def test_it_agrees_with_the_myerson_package(graph: CommunicationGraph, seed: int) -> None:
    table = np.random.default_rng(seed).uniform(-1, 1, 2**graph.num_nodes)
    table[0] = 0.0
    theirs = MyersonCalculator(
        graph=as_networkx(graph),
        coalition_function=lambda coalition, _: float(table[as_integer(coalition)]),
    ).calculate_all_myerson_values()
    expected = [theirs[node] for node in range(graph.num_nodes)]
    ours = myerson_value(TableGame(graph.num_nodes, table), graph).values
    np.testing.assert_allclose(ours, expected, rtol=0, atol=1e-9)


def test_it_agrees_with_the_myerson_package_on_ten_nodes() -> None:
    graph = molecule(10, seed=0)
    game = random_game(10, seed=1)
    everything = np.array([[mask >> i & 1 for i in range(10)] for mask in range(1024)], dtype=bool)
    table = np.where(everything.any(axis=1), game(everything), 0.0)
    theirs = MyersonCalculator(
        graph=as_networkx(graph),
        coalition_function=lambda coalition, _: float(table[as_integer(coalition)]),
    ).calculate_all_myerson_values()
    expected = [theirs[node] for node in range(10)]
    np.testing.assert_allclose(myerson_value(game, graph).values, expected, rtol=0, atol=1e-9)


@settings(max_examples=40)
@given(graphs(max_nodes=7))
def test_weights_are_those_of_the_two_sided_formula(graph: CommunicationGraph) -> None:
    lattice = CoalitionLattice.of(graph)
    weights = myerson_weights(lattice)
    border = graph.boundary(lattice.coalitions())
    for row, nodes in enumerate(as_sets(lattice.coalitions())):
        t, b = len(nodes), int(border[row].sum())
        for i in range(graph.num_nodes):
            expected = 0.0
            if i in nodes:
                expected = f(t - 1) * f(b) / f(t + b)
            elif border[row, i]:
                expected = -f(t) * f(b - 1) / f(t + b)
            assert weights[row, i] == pytest.approx(expected, abs=1e-14)


def test_the_chance_of_large_coalitions_does_not_overflow() -> None:
    chance = component_chance(np.array([1, 100, 150]), np.array([150, 100, 0]))
    np.testing.assert_allclose(chance[[0, 2]], [1 / 151, 1.0], rtol=1e-12)
    assert 0 < chance[1] < 1e-50


# what it is known to do


@settings(max_examples=40)
@given(graphs(max_nodes=7), st.integers(0, 2**32), columns)
def test_components_are_games_of_their_own(
    graph: CommunicationGraph, seed: int, q: int | None
) -> None:
    game = random_game(graph.num_nodes, seed=seed, q=q)
    result = myerson_value(game, graph)
    assert result.residual < 1e-11
    for component in graph.components:
        nodes = list(component)

        def inside(coalitions: NDArray[np.bool_], nodes: list[int] = nodes) -> object:
            whole = np.zeros((len(coalitions), graph.num_nodes), dtype=np.bool_)
            whole[:, nodes] = coalitions
            return game(whole)

        alone = myerson_value(inside, graph.subgraph(nodes)).values
        np.testing.assert_allclose(result.values[nodes], alone, rtol=0, atol=1e-12)
        worth = inside(np.ones((1, len(nodes)), dtype=bool))[0]  # type: ignore[index]
        np.testing.assert_allclose(result.values[nodes].sum(axis=0), worth, rtol=0, atol=1e-11)


@settings(max_examples=30)
@given(graphs(min_nodes=1, max_nodes=7), st.integers(0, 2**32), st.data())
def test_names_of_nodes_do_not_matter(
    graph: CommunicationGraph, seed: int, data: st.DataObject
) -> None:
    label = data.draw(st.permutations(range(graph.num_nodes)))
    game = random_game(graph.num_nodes, seed=seed)
    other = myerson_value(renamed(game, label), relabeled(graph, label)).values
    np.testing.assert_allclose(other[label], myerson_value(game, graph).values, rtol=0, atol=1e-12)


@settings(max_examples=30)
@given(graphs(max_nodes=7), st.integers(0, 2**32), st.floats(-3, 3), st.floats(-3, 3))
def test_it_is_linear(graph: CommunicationGraph, seed: int, a: float, b: float) -> None:
    v, w = random_game(graph.num_nodes, seed=seed), random_game(graph.num_nodes, seed=seed + 1)
    mixed = myerson_value(lambda c: a * v(c) + b * w(c), graph).values
    apart = a * myerson_value(v, graph).values + b * myerson_value(w, graph).values
    np.testing.assert_allclose(mixed, apart, rtol=0, atol=1e-11)


@settings(max_examples=30)
@given(graphs(max_nodes=7), st.data())
def test_additive_games_keep_what_they_have(graph: CommunicationGraph, data: st.DataObject) -> None:
    n = graph.num_nodes
    own = np.array(data.draw(st.lists(REAL, min_size=n, max_size=n)))
    np.testing.assert_allclose(
        myerson_value(additive_game(own), graph).values, own, rtol=0, atol=1e-9
    )


@settings(max_examples=30)
@given(connected_graphs(max_nodes=7))
def test_every_connected_coalition_is_evaluated_once(graph: CommunicationGraph) -> None:
    counting = Counting(random_game(graph.num_nodes, seed=0))
    result = myerson_value(counting, graph)
    assert result.evaluations == counting.distinct == graph.count_connected_coalitions()


@settings(max_examples=20)
@given(wide_graphs(max_nodes=5, max_width=140), st.integers(0, 2**32))
def test_a_graph_of_many_words(
    drawn: tuple[CommunicationGraph, CommunicationGraph, list[int]], seed: int
) -> None:
    small, wide, places = drawn
    game = random_game(wide.num_nodes, seed=seed)

    def inside(coalitions: NDArray[np.bool_]) -> object:
        whole = np.zeros((len(coalitions), wide.num_nodes), dtype=np.bool_)
        whole[:, places] = coalitions
        return game(whole)

    values = myerson_value(game, wide).values
    np.testing.assert_allclose(
        values[places], myerson_value(inside, small).values, rtol=0, atol=1e-12
    )
    others = np.setdiff1d(np.arange(wide.num_nodes), places)
    np.testing.assert_array_equal(values[others], game(np.eye(wide.num_nodes, dtype=bool))[others])


def test_a_path_of_two_hundred_nodes_is_exact() -> None:
    result = myerson_value(random_game(200, seed=0), path(200))
    assert result.evaluations == 20_100
    assert result.residual < 1e-9


def test_no_node() -> None:
    assert myerson_value(TableGame(0, [0]), CommunicationGraph(0)).values.shape == (0,)


# bad input


def test_too_many_coalitions_name_the_sampler() -> None:
    message = r"the limit is 100: raise max_coalitions, or estimate with myerson_value_sampled"
    with pytest.raises(TooManyCoalitions, match=message):
        myerson_value(random_game(9, seed=0), CommunicationGraph.complete(9), max_coalitions=100)
