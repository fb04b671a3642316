"""Restriction to a graph and the superadditive cover, against their definitions."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from gstarx.games import (
    TableGame,
    dual,
    random_game,
    restricted_game,
    self_dual,
    superadditive_cover,
    unanimity_game,
)
from gstarx.graphs import CommunicationGraph
from tests.oracles import as_integer, as_rows, as_sets, partitions, parts, subsets
from tests.strategies import coalition_matrices, graph_games, graphs, table_games, worth_tables

columns = st.sampled_from([None, 1, 3])
PATH = CommunicationGraph(3, [(0, 1), (1, 2)])


class Recorder:
    """A game that remembers what it was asked for."""

    def __init__(self, game: Any) -> None:
        self.game = game
        self.calls: list[NDArray[np.bool_]] = []

    def __call__(self, coalitions: NDArray[np.bool_]) -> Any:
        self.calls.append(coalitions)
        return self.game(coalitions)


# the restricted game


@given(columns, st.data())
def test_a_coalition_is_worth_the_sum_of_its_parts(q: int | None, data: st.DataObject) -> None:
    game, graph = data.draw(graph_games(q=q))
    coalitions = data.draw(coalition_matrices(graph.num_nodes))
    found = restricted_game(game, graph)(coalitions)
    assert found.shape == (len(coalitions), *game.worths.shape[1:])
    for worth, coalition in zip(found, as_sets(coalitions), strict=True):
        pieces = [game.worths[as_integer(part)] for part in parts(graph, coalition)]
        np.testing.assert_array_equal(worth, sum(pieces, np.zeros(game.worths.shape[1:])))


@given(st.data())
def test_only_connected_coalitions_are_asked_for_each_once(data: st.DataObject) -> None:
    graph = data.draw(graphs(max_nodes=6))
    coalitions = data.draw(coalition_matrices(graph.num_nodes))
    recorder = Recorder(random_game(graph.num_nodes, seed=0))
    restricted = restricted_game(recorder, graph)
    assert recorder.calls == []
    restricted(coalitions)
    (asked,) = recorder.calls
    needed = {part for nodes in as_sets(coalitions) for part in parts(graph, nodes)}
    assert asked.dtype == np.bool_
    assert len(asked) == len(needed)
    assert set(as_sets(asked)) == needed


def test_restricted_to_a_graph_of_many_words() -> None:
    path = CommunicationGraph(150, [(i, i + 1) for i in range(149)])
    game = random_game(150, seed=3)
    with_gaps = np.ones((2, 150), dtype=np.bool_)
    with_gaps[0, [60, 64, 128]] = False
    pieces = [range(60), range(61, 64), range(65, 128), range(129, 150)]
    expected = [game(as_rows(pieces, 150)).sum(), game(with_gaps[1:])[0]]
    np.testing.assert_allclose(restricted_game(game, path)(with_gaps), expected, rtol=1e-15)


@given(graphs(max_nodes=6))
def test_restricting_twice_changes_nothing(graph: CommunicationGraph) -> None:
    everything = as_rows(subsets(range(graph.num_nodes)), graph.num_nodes)
    once = restricted_game(random_game(graph.num_nodes, seed=1), graph)
    np.testing.assert_array_equal(restricted_game(once, graph)(everything), once(everything))


def test_one_coalition_may_come_as_a_vector() -> None:
    game = restricted_game(unanimity_game(3, [0]), PATH)
    assert game(np.array([True, False, True])).tolist() == [1.0]


@pytest.mark.parametrize(
    ("coalitions", "error", "message"),
    [
        (np.ones((1, 2), bool), ValueError, r"coalitions must have shape \(3,\) or \(k, 3\)"),
        (np.ones((1, 3), int), TypeError, r"coalitions must be boolean \(got dtype int\d+\)"),
    ],
)
def test_bad_coalitions(coalitions: NDArray[Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        restricted_game(unanimity_game(3, [0]), PATH)(coalitions)


def test_worths_of_a_restricted_game_are_checked() -> None:
    game = restricted_game(lambda c: np.where(c.all(axis=1), np.nan, 0.0), PATH)
    assert game(as_rows([{0, 2}], 3)).tolist() == [0.0]
    with pytest.raises(ValueError, match=r"worths must be finite \(got nan for coalition \{0, 1"):
        game(as_rows([{0, 1, 2}], 3))


# the superadditive cover


@settings(max_examples=50)
@given(st.integers(0, 6), columns, st.data())
def test_a_coalition_is_worth_its_best_partition(
    n: int, q: int | None, data: st.DataObject
) -> None:
    table = data.draw(worth_tables(n, q=q))
    cover = superadditive_cover(TableGame(n, table), n)
    assert cover.n == n
    if n:
        assert cover.worths.shape == table.shape
    for nodes in subsets(range(n)):
        if nodes:
            options = [
                np.sum([table[as_integer(part)] for part in partition], axis=0)
                for partition in partitions(sorted(nodes))
            ]
            np.testing.assert_array_equal(cover.worths[as_integer(nodes)], np.max(options, axis=0))


@given(st.integers(0, 5).flatmap(lambda n: table_games(n)))
def test_the_cover_is_superadditive_above_the_game_and_its_own_cover(game: TableGame) -> None:
    cover = superadditive_cover(game, game.n)
    assert (cover.worths >= game.worths).all()
    for whole in range(1, 2**game.n):
        for part in range(1, whole):
            if part & whole == part:
                assert cover.worths[whole] >= cover.worths[part] + cover.worths[whole ^ part]
    np.testing.assert_array_equal(superadditive_cover(cover, game.n).worths, cover.worths)


def test_the_game_is_asked_once_for_every_coalition_and_never_for_nobody() -> None:
    recorder = Recorder(random_game(5, seed=0))
    superadditive_cover(recorder, 5)
    (asked,) = recorder.calls
    assert len(asked) == 31
    assert set(as_sets(asked)) == set(subsets(range(5))) - {frozenset()}


def test_a_cover_leaves_the_game_alone() -> None:
    game = TableGame(2, [0, 3, 4, 5])
    superadditive_cover(game, 2)
    assert game.worths.tolist() == [0.0, 3.0, 4.0, 5.0]


def test_fourteen_players_are_covered_and_no_more() -> None:
    pairs = superadditive_cover(lambda c: (c.sum(axis=1) == 2).astype(float), 14)
    np.testing.assert_array_equal(
        pairs.worths, [bin(mask).count("1") // 2 for mask in range(2**14)]
    )
    message = r"a superadditive cover costs 3\^n steps and takes at most 14 players \(got n=15\)"
    with pytest.raises(ValueError, match=message):
        superadditive_cover(unanimity_game(15, [0]), 15)


@pytest.mark.parametrize(
    ("n", "error", "message"),
    [
        (-1, ValueError, r"n must be at least 0 \(got -1\)"),
        (3.0, TypeError, r"n must be an integer \(got 3\.0\)"),
    ],
)
def test_a_bad_number_of_players(n: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        superadditive_cover(unanimity_game(3, [0]), n)


def test_worths_under_a_cover_are_checked() -> None:
    with pytest.raises(ValueError, match=r"worths must be finite \(got inf for coalition \{0, 1"):
        superadditive_cover(lambda c: np.where(c.all(axis=1), np.inf, 0.0), 2)
    with pytest.raises(TypeError, match=r"a game must be a callable"):
        superadditive_cover([0, 1, 2, 3], 2)  # type: ignore[arg-type]


# the dual and the self-dual part


@given(st.integers(0, 6), columns, st.data())
def test_the_dual_and_the_self_dual_part_by_definition(
    n: int, q: int | None, data: st.DataObject
) -> None:
    table = data.draw(worth_tables(n, q=q))
    game = TableGame(n, table)
    everything = as_rows(subsets(range(n)), n)
    masks = np.array([as_integer(nodes) for nodes in subsets(range(n))])
    others = table[2**n - 1 - masks]
    if n:
        np.testing.assert_array_equal(dual(game)(everything), table[-1] - others)
        expected = (table[masks] + table[-1] - others) / 2
        np.testing.assert_array_equal(self_dual(game)(everything), expected)
        np.testing.assert_array_equal(dual(dual(game))(everything), table[masks])
        np.testing.assert_array_equal(dual(self_dual(game))(everything), expected)
        np.testing.assert_array_equal(self_dual(dual(game))(everything), expected)


@given(st.integers(1, 6), st.data())
def test_the_empty_coalition_is_never_asked_for_and_no_other_twice(
    n: int, data: st.DataObject
) -> None:
    coalitions = data.draw(coalition_matrices(n))
    recorder = Recorder(random_game(n, seed=0))
    self_dual(recorder)(coalitions)
    (asked,) = recorder.calls
    needed = {frozenset(range(n)), *as_sets(coalitions), *as_sets(~coalitions)} - {frozenset()}
    assert len(asked) == len(needed)
    assert set(as_sets(asked)) == needed


def test_a_dual_game_of_many_words_and_bad_input() -> None:
    game = random_game(150, seed=3)
    some = np.zeros((1, 150), dtype=np.bool_)
    some[0, [3, 64, 149]] = True
    everybody = np.ones((1, 150), dtype=np.bool_)
    np.testing.assert_array_equal(dual(game)(some), game(everybody) - game(~some))
    assert dual(game)(some[0]).shape == (1,)
    with pytest.raises(TypeError, match=r"coalitions must be boolean \(got dtype int"):
        self_dual(game)(some.astype(np.int64))
    with pytest.raises(ValueError, match=r"worths must be finite \(got nan for coalition \{1\}"):
        dual(lambda c: np.where(c.all(axis=1), 0.0, np.nan))(as_rows([{0}], 2))
    with pytest.raises(TypeError, match=r"a game must be a callable"):
        dual([0, 1])(as_rows([{0}], 2))  # type: ignore[arg-type]
