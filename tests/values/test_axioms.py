"""The table of axioms: who has which property, and who has not."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gstarx.games import Game, TableGame, random_game, unanimity_game
from gstarx.graphs import CommunicationGraph
from gstarx.values import (
    Allocation,
    axioms,
    coalition_weights,
    hn_value,
    myerson_value,
    shapley_value,
)
from tests.oracles import as_networkx, as_sets
from tests.strategies import REAL, connected_graphs, graph_games, graphs
from tests.values.definitions import Numbers, path, restricted_table, ring, tree


def shapley(v: Game, graph: CommunicationGraph) -> Allocation:
    return shapley_value(v, graph.num_nodes)


def by_number(v: Game, graph: CommunicationGraph) -> Allocation:
    """No value at all: node ``i`` gets ``i``."""
    return Allocation.exactly(np.arange(float(graph.num_nodes)), 0, 0.0)


def by_square(v: Game, graph: CommunicationGraph) -> Allocation:
    """A value that is not linear: everybody gets the square of its own worth."""
    return Allocation.exactly(v(np.eye(graph.num_nodes, dtype=bool)) ** 2, 0, 0.0)


def by_sign(v: Game, graph: CommunicationGraph) -> Allocation:
    """A value that jumps: everybody gets the sign of its own worth."""
    return Allocation.exactly(np.sign(v(np.eye(graph.num_nodes, dtype=bool))), 0, 0.0)


GRAPH_VALUES = (hn_value, myerson_value)
VALUES = (hn_value, myerson_value, shapley)
columns = st.sampled_from([None, 2])


# component efficiency


@settings(max_examples=30)
@given(columns, st.data())
def test_hn_and_myerson_are_efficient_on_components(q: int | None, data: st.DataObject) -> None:
    game, graph = data.draw(graph_games(min_nodes=1, max_nodes=6, q=q, elements=REAL))
    for value in GRAPH_VALUES:
        assert axioms.component_efficiency(value, game, graph) < 1e-9


@settings(max_examples=20)
@given(graph_games(max_nodes=6, connected=True))
def test_shapley_is_efficient_on_connected_graphs(
    drawn: tuple[TableGame, CommunicationGraph],
) -> None:
    assert axioms.component_efficiency(shapley, *drawn) < 1e-10


def test_shapley_is_not_efficient_on_components() -> None:
    halves = CommunicationGraph(4, [(0, 1), (2, 3)])
    assert axioms.component_efficiency(shapley, random_game(4, seed=0), halves) > 0.1
    assert axioms.component_efficiency(by_number, random_game(4, seed=0), halves) > 0.1


# symmetry


@st.composite
def symmetric_games(draw: st.DrawFn) -> tuple[Game, CommunicationGraph]:
    """A graph on which two nodes can be swapped, and a game that does not notice."""
    graph = draw(graphs(min_nodes=2, max_nodes=6))
    n = graph.num_nodes
    i, j = draw(st.permutations(range(n)))[:2]
    swap = np.arange(n)
    swap[[i, j]] = j, i
    both = CommunicationGraph(n, np.concatenate([graph.edges, swap[graph.edges]]))
    game = random_game(n, seed=draw(st.integers(0, 2**32)))
    return (lambda coalitions: game(coalitions) + game(coalitions[:, swap])), both


@settings(max_examples=30)
@given(symmetric_games())
def test_players_that_can_be_swapped_get_the_same(drawn: tuple[Game, CommunicationGraph]) -> None:
    game, graph = drawn
    for value in VALUES:
        assert axioms.symmetry(value, game, graph) < 1e-10
    assert axioms.symmetry(by_number, game, graph) >= 1


def test_a_swap_that_changes_a_disconnected_coalition_is_no_symmetry() -> None:
    # 0 and 2 earn something if they could meet, 1 and 2 do not: Shapley may tell 0 from 1
    apart = CommunicationGraph(3)
    table = np.zeros(8)
    table[0b101] = 1.0
    assert np.ptp(shapley(TableGame(3, table), apart).values) > 0.1
    for value in VALUES:
        assert axioms.symmetry(value, TableGame(3, table), apart) < 1e-12


def test_players_with_other_neighbors_need_not_get_the_same() -> None:
    # the game is symmetric, the graph is not: nothing to complain about
    game = unanimity_game(3, [0, 1, 2])
    assert axioms.symmetry(hn_value, game, path(3)) < 1e-12
    values = hn_value(game, path(3)).values
    assert abs(values[0] - values[1]) > 0.2


def test_players_with_other_worths_need_not_get_the_same() -> None:
    assert axioms.symmetry(by_number, random_game(3, seed=0), ring(3)) == 0


# additivity, inessential game, continuity


@settings(max_examples=25)
@given(columns, graphs(max_nodes=6), st.integers(0, 2**32))
def test_values_are_additive(q: int | None, graph: CommunicationGraph, seed: int) -> None:
    v = random_game(graph.num_nodes, seed=seed, q=q)
    w = random_game(graph.num_nodes, seed=seed + 1, q=q)
    for value in VALUES:
        assert axioms.additivity(value, v, w, graph) < 1e-10


def test_a_square_is_not_additive() -> None:
    v, w = random_game(3, seed=0), random_game(3, seed=1)
    assert axioms.additivity(by_square, v, w, path(3)) > 0.1


@settings(max_examples=25)
@given(columns, graphs(max_nodes=6), st.integers(0, 2**32))
def test_where_cooperation_adds_nothing(
    q: int | None, graph: CommunicationGraph, seed: int
) -> None:
    shape = graph.num_nodes if q is None else (graph.num_nodes, q)
    own = np.random.default_rng(seed).normal(size=shape)
    if graph.num_nodes:
        for value in VALUES:
            assert axioms.inessential_game(value, own, graph) < 1e-10


def test_numbers_are_no_inessential_value() -> None:
    assert axioms.inessential_game(by_number, [5.0, 5.0], path(2)) == 5.0


@settings(max_examples=25)
@given(columns, graphs(min_nodes=1, max_nodes=6), st.sampled_from([1e-2, 1e-4, 1e-6]))
def test_small_changes_stay_small(q: int | None, graph: CommunicationGraph, scale: float) -> None:
    game = random_game(graph.num_nodes, seed=3, q=q)
    for value, name in ((hn_value, "hn"), (myerson_value, "myerson")):
        moved = axioms.continuity(value, game, graph, scale=scale, seed=1)
        most = np.abs(coalition_weights(graph, value=name)).sum(axis=1).max()
        assert 0 < moved <= most + 1e-6
        whole = axioms.continuity(value, game, graph, scale=1.0, seed=1)
        assert moved == pytest.approx(whole, rel=1e-6)
    assert axioms.continuity(shapley, game, graph, scale=scale) < 2


def test_a_jump_is_not_continuous() -> None:
    def nothing(coalitions: np.ndarray) -> Numbers:
        return np.zeros(len(coalitions))

    assert axioms.continuity(by_sign, nothing, path(3), scale=1e-6) == pytest.approx(1e6)


# associated consistency


@settings(max_examples=25)
@given(columns, st.floats(0.01, 1), st.data())
def test_hn_is_consistent(q: int | None, tau: float, data: st.DataObject) -> None:
    game, graph = data.draw(graph_games(min_nodes=1, max_nodes=6, q=q, elements=REAL))
    assert axioms.associated_consistency(hn_value, game, graph, tau=tau) < 1e-8


@pytest.mark.parametrize("graph", [path(3), ring(4), tree(6, seed=1)])
def test_myerson_and_shapley_are_not(graph: CommunicationGraph) -> None:
    game = random_game(graph.num_nodes, seed=2)
    for value in (myerson_value, shapley):
        assert axioms.associated_consistency(value, game, graph, tau=0.5) > 1e-4


@pytest.mark.parametrize("n", [2, 3, 5])
def test_all_are_consistent_where_everybody_talks(n: int) -> None:
    for value in VALUES:
        game = random_game(n, seed=1)
        assert axioms.associated_consistency(value, game, CommunicationGraph.complete(n)) < 1e-12


# fairness


@settings(max_examples=25)
@given(columns, st.data())
def test_myerson_is_fair_and_shapley_idly_so(q: int | None, data: st.DataObject) -> None:
    game, graph = data.draw(graph_games(max_nodes=6, q=q, elements=REAL))
    assert axioms.fairness(myerson_value, game, graph) < 1e-9
    assert axioms.fairness(shapley, game, graph) == 0


@pytest.mark.parametrize("graph", [path(3), ring(4), tree(6, seed=1)])
def test_hn_is_not_fair(graph: CommunicationGraph) -> None:
    assert axioms.fairness(hn_value, random_game(graph.num_nodes, seed=2), graph) > 1e-2


def test_cutting_an_edge_of_the_path_costs_the_middle_more() -> None:
    # everybody together: HN gives 1/4, 1/2, 1/4, and nothing once an edge is cut
    game = unanimity_game(3, [0, 1, 2])
    assert axioms.fairness(hn_value, game, path(3)) == pytest.approx(1 / 4)


# null players


@st.composite
def null_games(draw: st.DrawFn, graph: CommunicationGraph) -> tuple[TableGame, int]:
    """A game in whose restriction to the graph one player adds nothing, and that player."""
    n = graph.num_nodes
    i = draw(st.integers(0, n - 1))
    table = np.random.default_rng(draw(st.integers(0, 2**32))).uniform(-1, 1, 2**n)
    table[0] = 0.0
    return TableGame(n, made_null(table, graph, i)), i


def made_null(table: Numbers, graph: CommunicationGraph, i: int) -> Numbers:
    """The same worths without ``i``, and with ``i`` what is left without it."""
    masks = np.arange(len(table))
    without = restricted_table(np.where(masks >> i & 1, 0.0, table), graph)
    return np.where(masks >> i & 1, without[masks & ~(1 << i)], table)


@settings(max_examples=40)
@given(st.data())
def test_myerson_gives_null_players_nothing(data: st.DataObject) -> None:
    graph = data.draw(graphs(min_nodes=1, max_nodes=6))
    game, i = data.draw(null_games(graph))
    assert axioms.null_player(myerson_value, game, graph) < 1e-10
    assert abs(myerson_value(game, graph).values[i]) < 1e-10


@settings(max_examples=40)
@given(st.data())
def test_hn_gives_them_nothing_on_trees_and_complete_graphs(data: st.DataObject) -> None:
    n = data.draw(st.integers(1, 6))
    graph = data.draw(
        st.sampled_from(
            [tree(n, seed=data.draw(st.integers(0, 99))), CommunicationGraph.complete(n)]
        )
    )
    game, i = data.draw(null_games(graph))
    assert axioms.null_player(hn_value, game, graph) < 1e-10
    assert abs(hn_value(game, graph).values[i]) < 1e-10


def test_hn_pays_a_null_player_on_the_ring_of_four() -> None:
    table = np.random.default_rng(0).uniform(-1, 1, 16)
    table[0] = 0.0
    game = TableGame(4, made_null(table, ring(4), 2))
    found = axioms.null_player(hn_value, game, ring(4))
    assert found == pytest.approx(abs(hn_value(game, ring(4)).values[2]))
    assert found > 1e-2
    assert axioms.null_player(myerson_value, game, ring(4)) < 1e-12


def test_shapley_pays_a_player_that_is_null_on_the_graph() -> None:
    # 2 would add something to 0, but they cannot talk
    graph = CommunicationGraph(3, [(0, 1)])
    assert axioms.null_player(shapley, unanimity_game(3, [0, 2]), graph) > 0.1


def test_nobody_is_null() -> None:
    assert axioms.null_player(by_number, random_game(4, seed=0), path(4)) == 0


# all graphs with three to six nodes


def small_graphs() -> Iterator[CommunicationGraph]:
    """The connected graphs with 3 to 6 nodes, one of each kind."""
    for graph in nx.graph_atlas_g():
        if 3 <= len(graph) <= 6 and nx.is_connected(graph):
            yield CommunicationGraph.from_networkx(graph)


def pays_null_players(graph: CommunicationGraph, weights: Numbers) -> bool:
    """Whether some game has a null player that gets something.

    Worths of coalitions without ``i`` are free, those with ``i`` follow. So ``i`` is paid in no
    game exactly if every free worth adds nought to its value, directly and by what follows.
    """
    coalitions = graph.connected_coalitions()
    row = {nodes: r for r, nodes in enumerate(as_sets(coalitions))}
    for i in range(graph.num_nodes):
        effect = weights[i].copy()
        inside = coalitions[:, i]
        rest = coalitions[inside].copy()
        rest[:, i] = False
        for weight, labels in zip(weights[i, inside], graph.component_labels(rest), strict=True):
            for root in np.unique(labels[labels >= 0]):
                effect[row[frozenset(np.flatnonzero(labels == root).tolist())]] += weight
        if np.abs(effect[~inside]).max() > 1e-9:
            return True
    return False


def weighs_strangers(graph: CommunicationGraph, weights: Numbers) -> bool:
    """Whether a coalition counts in the value of a node that is neither in it nor next to it."""
    coalitions = graph.connected_coalitions()
    stranger = ~coalitions & ~graph.boundary(coalitions)
    return bool(np.abs(weights[stranger.T]).max(initial=0.0) > 1e-9)


def is_tree(graph: CommunicationGraph) -> bool:
    return len(graph.edges) == graph.num_nodes - 1


def is_complete(graph: CommunicationGraph) -> bool:
    return len(graph.edges) == graph.num_nodes * (graph.num_nodes - 1) // 2


def blocks_are_complete(graph: CommunicationGraph) -> bool:
    other = as_networkx(graph)
    return all(
        other.has_edge(i, j)
        for block in nx.biconnected_components(other)
        for i, j in combinations(block, 2)
    )


def test_how_many_small_graphs_pay_null_players() -> None:
    every = list(small_graphs())
    paying = [graph for graph in every if pays_null_players(graph, coalition_weights(graph))]
    assert len(every) == 141
    assert len(paying) == 104
    assert not any(is_tree(graph) or is_complete(graph) for graph in paying)
    # the others are those whose biconnected parts are all complete
    assert [graph for graph in every if not blocks_are_complete(graph)] == paying


def test_on_how_many_small_graphs_strangers_count() -> None:
    every = list(small_graphs())
    counting = [graph for graph in every if weighs_strangers(graph, coalition_weights(graph))]
    assert len(counting) == 61
    assert not any(map(is_tree, counting))


def test_myerson_does_neither_on_any() -> None:
    for graph in small_graphs():
        weights = coalition_weights(graph, value="myerson")
        assert not pays_null_players(graph, weights)
        assert not weighs_strangers(graph, weights)


@settings(max_examples=30)
@given(connected_graphs(min_nodes=3, max_nodes=6), st.integers(0, 2**32), st.data())
def test_the_linear_argument_agrees_with_games(
    graph: CommunicationGraph, seed: int, data: st.DataObject
) -> None:
    table = np.random.default_rng(seed).uniform(-1, 1, 2**graph.num_nodes)
    table[0] = 0.0
    paid = max(
        abs(hn_value(TableGame(graph.num_nodes, made_null(table, graph, i)), graph).values[i])
        for i in range(graph.num_nodes)
    )
    # a random game that pays nobody where some game pays somebody has probability nought
    assert (paid > 1e-9) == pays_null_players(graph, coalition_weights(graph))


# bad input


@pytest.mark.parametrize("axiom", [axioms.symmetry, axioms.null_player])
def test_too_many_players_for_all_coalitions(axiom: Any) -> None:
    message = r"looks at all coalitions and takes at most 16 players \(got 17\)"
    with pytest.raises(ValueError, match=message):
        axiom(hn_value, random_game(17, seed=0), path(17))


def test_a_graph_without_nodes_violates_nothing() -> None:
    game = random_game(0, seed=0)
    nobody = CommunicationGraph(0)
    for value in GRAPH_VALUES:
        assert axioms.component_efficiency(value, game, nobody) == 0
        assert axioms.symmetry(value, game, nobody) == 0
        assert axioms.additivity(value, game, game, nobody) == 0
        assert axioms.continuity(value, game, nobody) == 0
        assert axioms.associated_consistency(value, game, nobody) == 0
        assert axioms.fairness(value, game, nobody) == 0
        assert axioms.null_player(value, game, nobody) == 0
