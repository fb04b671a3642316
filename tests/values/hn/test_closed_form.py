"""The HN value in closed form, against its definition and against what is known of it."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gstarx.games import TableGame, additive_game, random_game
from gstarx.graphs import CoalitionLattice, CommunicationGraph, TooManyCoalitions
from gstarx.values import coalition_weights, hn_value, hn_value_iterated
from gstarx.values.hn import closed_form
from gstarx.values.hn.closed_form import growth_sums, growth_weights, hn_weights
from tests.oracles import as_sets, connected_sets
from tests.pairs import for_each
from tests.strategies import REAL, connected_graphs, graph_games, graphs, wide_graphs
from tests.values.definitions import (
    Counting,
    associated_matrix,
    molecule,
    own_worths,
    path,
    relabeled,
    renamed,
    ring,
    smooth_game,
    squared_until_settled,
)

columns = st.sampled_from([None, 1, 3])


# worked examples


@for_each(
    ("coalition", "weights"),
    [
        ({0, 1, 2}, [1 / 4, 1 / 2, 1 / 4]),
        ({0}, [1 / 2, -1 / 2, 0]),
        ({1}, [-1 / 4, 1 / 2, -1 / 4]),
        ({2}, [0, -1 / 2, 1 / 2]),
        ({0, 1}, [1 / 4, 0, -1 / 4]),
        ({1, 2}, [-1 / 4, 0, 1 / 4]),
        ({0, 2}, [0, 0, 0]),
    ],
)
def test_what_a_coalition_weighs_on_the_path_of_three(
    coalition: set[int], weights: list[float]
) -> None:
    table = np.zeros(8)
    table[sum(1 << i for i in coalition)] = 1.0
    result = hn_value(TableGame(3, table), path(3))
    np.testing.assert_allclose(result.values, weights, rtol=0, atol=1e-15)


def test_marginal_contributions_of_figure_1a() -> None:
    # the paper's node 1 is our node 0; it joins {}, {1}, {2} and {1, 2}
    game = random_game(3, seed=7)

    def marginal(before: list[bool]) -> float:
        joined = [True, *before[1:]]
        worth = game(np.array([joined]))[0]
        return float(worth - (game(np.array([before]))[0] if any(before) else 0.0))

    alone = marginal([False, False, False])
    with_1 = marginal([False, True, False])
    with_both = marginal([False, True, True])
    found = hn_value(game, path(3)).values[0]
    assert found == pytest.approx(alone / 2 + with_1 / 4 + 0 + with_both / 4, abs=1e-15)


def test_a_node_counts_for_the_opposite_one_on_the_ring_of_four() -> None:
    weights = coalition_weights(ring(4))
    sets = as_sets(ring(4).connected_coalitions())
    assert weights[2, sets.index(frozenset({0}))] == pytest.approx(1 / 12, abs=1e-15)


def test_a_pair_shares_the_surplus_equally() -> None:
    result = hn_value(TableGame(2, [0, 1, 2, 7]), path(2))
    np.testing.assert_allclose(result.values, [3, 4], rtol=0, atol=1e-14)


# the definition


@settings(max_examples=60)
@given(connected_graphs(min_nodes=2, max_nodes=7), st.integers(0, 2**32), columns)
def test_it_is_the_limit_of_the_dense_matrix_of_definition_4_2(
    graph: CommunicationGraph, seed: int, q: int | None
) -> None:
    n = graph.num_nodes
    game = TableGame(n, np.random.default_rng(seed).uniform(-1, 1, (2**n, *([q] if q else []))))
    limit, settled = squared_until_settled(
        associated_matrix(graph, 1 / n), tol=1e-9, max_squarings=30
    )
    assert settled
    np.testing.assert_allclose(
        hn_value(game, graph).values, own_worths(limit, game), rtol=0, atol=1e-10
    )


@settings(max_examples=60)
@given(connected_graphs(min_nodes=2, max_nodes=9), st.integers(0, 2**32), columns)
def test_it_equals_the_iteration_run_to_convergence(
    graph: CommunicationGraph, seed: int, q: int | None
) -> None:
    game = random_game(graph.num_nodes, seed=seed, q=q)
    found = hn_value(game, graph)
    limit = hn_value_iterated(game, graph, tau=1 / graph.num_nodes, max_squarings=40, tol=1e-9)
    assert limit.converged
    np.testing.assert_allclose(found.values, limit.values, rtol=0, atol=1e-10)


@settings(max_examples=40)
@given(connected_graphs(min_nodes=2, max_nodes=7))
def test_growth_weights_are_the_chances_of_random_growth(graph: CommunicationGraph) -> None:
    lattice = CoalitionLattice.of(graph)
    sets = as_sets(lattice.coalitions())
    row = {nodes: r for r, nodes in enumerate(sets)}
    boundary = [set(np.flatnonzero(b).tolist()) for b in graph.boundary(lattice.coalitions())]
    weights = growth_weights(lattice)
    for k in range(graph.num_nodes):
        chance: dict[frozenset[int], float] = defaultdict(float)
        chance[frozenset({k})] = 1.0
        for nodes in sets:
            for j in boundary[row[nodes]]:
                chance[nodes | {j}] += chance[nodes] / len(boundary[row[nodes]])
        expected = [
            graph.degrees[k] * chance[nodes] / len(boundary[row[nodes]])
            if boundary[row[nodes]]
            else 0.0
            for nodes in sets
        ]
        np.testing.assert_allclose(weights[:, k], expected, rtol=0, atol=1e-14)


@settings(max_examples=40)
@given(graphs(min_nodes=1, max_nodes=7), st.sampled_from([1, 2]))
def test_the_sums_of_the_linear_system(graph: CommunicationGraph, q: int) -> None:
    lattice = CoalitionLattice.of(graph)
    worths = random_game(graph.num_nodes, seed=0, q=q)(lattice.coalitions())
    weights = growth_weights(lattice)
    matrix, sums = growth_sums(lattice, worths)
    np.testing.assert_allclose(matrix, weights.T @ lattice.coalitions(), rtol=0, atol=1e-12)
    np.testing.assert_allclose(sums, weights.T @ worths, rtol=0, atol=1e-12)


@pytest.mark.parametrize("cells", [1, 3, 10])
def test_columns_in_blocks_give_the_same_bits(cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    graph = molecule(12, seed=1)
    game = random_game(12, seed=0, q=4)
    whole = hn_value(game, graph).values
    widest = int(np.diff(CoalitionLattice.of(graph).starts).max())
    monkeypatch.setattr(closed_form, "_LEVEL_BYTES", 16 * widest * cells)
    np.testing.assert_array_equal(hn_value(game, graph).values, whole)


# what it is known to do


@settings(max_examples=60)
@given(columns, st.data())
def test_components_share_their_own_worth(q: int | None, data: st.DataObject) -> None:
    game, graph = data.draw(graph_games(max_nodes=5, q=q, elements=REAL))
    result = hn_value(game, graph)
    assert result.values.shape == (
        graph.num_nodes,
        *(game.worths.shape[1:] if graph.num_nodes else ()),
    )
    assert result.exact
    assert result.converged
    assert result.residual < 1e-10
    assert not result.std_error.any()
    assert result.std_error.shape == result.values.shape
    for component in graph.components:
        worth = game.worths[sum(1 << i for i in component)]
        np.testing.assert_allclose(
            result.values[list(component)].sum(axis=0), worth, rtol=0, atol=1e-10
        )


@settings(max_examples=40)
@given(graphs(max_nodes=7), st.integers(0, 2**32), columns)
def test_components_are_games_of_their_own(
    graph: CommunicationGraph, seed: int, q: int | None
) -> None:
    game = random_game(graph.num_nodes, seed=seed, q=q)
    values = hn_value(game, graph).values
    for component in graph.components:
        nodes = list(component)

        def inside(coalitions: NDArray[np.bool_], nodes: list[int] = nodes) -> Any:
            whole = np.zeros((len(coalitions), graph.num_nodes), dtype=np.bool_)
            whole[:, nodes] = coalitions
            return game(whole)

        alone = hn_value(inside, graph.subgraph(nodes)).values
        np.testing.assert_allclose(values[nodes], alone, rtol=0, atol=1e-12)


@settings(max_examples=40)
@given(graphs(min_nodes=1, max_nodes=7), st.integers(0, 2**32), st.data())
def test_names_of_nodes_do_not_matter(
    graph: CommunicationGraph, seed: int, data: st.DataObject
) -> None:
    label = data.draw(st.permutations(range(graph.num_nodes)))
    game = random_game(graph.num_nodes, seed=seed)
    other = hn_value(renamed(game, label), relabeled(graph, label)).values
    np.testing.assert_allclose(other[label], hn_value(game, graph).values, rtol=0, atol=1e-11)


@settings(max_examples=40)
@given(graphs(max_nodes=7), st.integers(0, 2**32), st.floats(-3, 3), st.floats(-3, 3))
def test_it_is_linear(graph: CommunicationGraph, seed: int, a: float, b: float) -> None:
    v = random_game(graph.num_nodes, seed=seed)
    w = random_game(graph.num_nodes, seed=seed + 1)
    mixed = hn_value(lambda c: a * v(c) + b * w(c), graph).values
    apart = a * hn_value(v, graph).values + b * hn_value(w, graph).values
    np.testing.assert_allclose(mixed, apart, rtol=0, atol=1e-11)


@settings(max_examples=40)
@given(graphs(max_nodes=7), st.data())
def test_additive_games_keep_what_they_have(graph: CommunicationGraph, data: st.DataObject) -> None:
    n = graph.num_nodes
    own = np.array(data.draw(st.lists(REAL, min_size=n, max_size=n)))
    np.testing.assert_allclose(hn_value(additive_game(own), graph).values, own, rtol=0, atol=1e-9)


@settings(max_examples=30)
@given(graphs(min_nodes=1, max_nodes=6), st.integers(1, 4))
def test_several_games_at_once_are_each_game_alone(graph: CommunicationGraph, q: int) -> None:
    game = random_game(graph.num_nodes, seed=5, q=q)
    together = hn_value(game, graph).values
    for column in range(q):
        alone = hn_value(lambda c, column=column: game(c)[:, column], graph).values
        np.testing.assert_allclose(together[:, column], alone, rtol=0, atol=1e-12)


@settings(max_examples=40)
@given(graphs(max_nodes=7))
def test_every_connected_coalition_is_evaluated_once(graph: CommunicationGraph) -> None:
    counting = Counting(random_game(graph.num_nodes, seed=0))
    result = hn_value(counting, graph)
    expected = connected_sets(graph)
    assert counting.distinct == result.evaluations == len(expected)
    asked = {frozenset(np.flatnonzero(np.frombuffer(row, np.bool_))) for row in counting.asked}
    assert asked == set(expected)


def test_an_isolated_node_gets_its_own_worth() -> None:
    game = TableGame(3, [0, 1, 2, 4, 8, 16, 32, 64])
    values = hn_value(game, CommunicationGraph(3, [(0, 2)])).values
    np.testing.assert_allclose(values, [1 + (16 - 9) / 2, 2, 8 + (16 - 9) / 2], rtol=0, atol=1e-14)


def test_one_node_and_no_node() -> None:
    assert hn_value(TableGame(1, [0, 5]), CommunicationGraph(1)).values.tolist() == [5.0]
    nobody = hn_value(TableGame(0, [0]), CommunicationGraph(0))
    assert nobody.values.shape == (0,)
    assert (nobody.evaluations, nobody.residual, nobody.exact) == (0, 0.0, True)


# many nodes


@settings(max_examples=30)
@given(wide_graphs(max_nodes=5, max_width=140), st.integers(0, 2**32))
def test_a_graph_of_many_words(
    drawn: tuple[CommunicationGraph, CommunicationGraph, list[int]], seed: int
) -> None:
    small, wide, places = drawn
    game = random_game(wide.num_nodes, seed=seed)

    def inside(coalitions: NDArray[np.bool_]) -> Any:
        whole = np.zeros((len(coalitions), wide.num_nodes), dtype=np.bool_)
        whole[:, places] = coalitions
        return game(whole)

    values = hn_value(game, wide).values
    np.testing.assert_allclose(values[places], hn_value(inside, small).values, rtol=0, atol=1e-11)
    others = np.setdiff1d(np.arange(wide.num_nodes), places)
    np.testing.assert_array_equal(values[others], game(np.eye(wide.num_nodes, dtype=bool))[others])


def test_a_path_of_two_hundred_nodes_is_exact() -> None:
    game = random_game(200, seed=0, q=2)
    result = hn_value(game, path(200))
    assert result.evaluations == 20_100
    assert result.exact
    assert result.residual < 1e-9
    back = list(range(199, -1, -1))
    other = hn_value(renamed(game, back), relabeled(path(200), back)).values
    np.testing.assert_allclose(other[back], result.values, rtol=0, atol=1e-9)


def test_seventy_nodes_under_other_names() -> None:
    # a ring with a tail, so that coalitions straddle the words of their bitmask
    graph = CommunicationGraph(
        70, [*[(i, (i + 1) % 60) for i in range(60)], *[(i, i + 1) for i in range(59, 69)]]
    )
    label = np.random.default_rng(0).permutation(70).tolist()
    game = random_game(70, seed=4)
    values = hn_value(game, graph)
    other = hn_value(renamed(game, label), relabeled(graph, label))
    assert other.evaluations == values.evaluations
    assert max(values.residual, other.residual) < 1e-9
    np.testing.assert_allclose(other.values[label], values.values, rtol=0, atol=1e-9)


def test_many_coalitions_are_shared_out_without_a_remainder() -> None:
    graph = molecule(26, seed=5, chords=4)
    assert 100_000 < graph.count_connected_coalitions() < 400_000
    result = hn_value(smooth_game(26), graph)
    assert result.residual < 1e-8
    np.testing.assert_allclose(
        result.values.sum(), smooth_game(26)(np.ones((1, 26), bool)), rtol=0, atol=1e-8
    )


# the weights themselves


@settings(max_examples=40)
@given(graphs(max_nodes=7))
def test_weights_times_worths(graph: CommunicationGraph) -> None:
    lattice = CoalitionLattice.of(graph)
    game = random_game(graph.num_nodes, seed=2)
    weights = hn_weights(lattice, graph)
    assert weights.shape == (len(lattice), graph.num_nodes)
    found = weights.T @ game(lattice.coalitions())
    np.testing.assert_allclose(found, hn_value(game, graph).values, rtol=0, atol=1e-11)


# bad input


def test_too_many_coalitions_name_the_sampler() -> None:
    message = (
        r"the graph has at least [1-4],\d\d\d connected coalitions and the limit is 1,000: "
        r"raise max_coalitions, or estimate with hn_value_growth_sampled"
    )
    with pytest.raises(TooManyCoalitions, match=message) as caught:
        hn_value(random_game(12, seed=0), CommunicationGraph.complete(12), max_coalitions=1000)
    assert caught.value.at_least > caught.value.limit == 1000
    assert caught.value.__cause__ is None


def test_as_many_coalitions_as_allowed_are_enough() -> None:
    game = random_game(3, seed=0)
    assert hn_value(game, path(3), max_coalitions=6).evaluations == 6
    with pytest.raises(TooManyCoalitions, match="the limit is 5"):
        hn_value(game, path(3), max_coalitions=5)
