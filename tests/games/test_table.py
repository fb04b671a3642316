"""Games whose worths are written down, as an array or as a mapping."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gstarx.games import TableGame, evaluate
from gstarx.graphs import CommunicationGraph
from tests.oracles import as_integer, as_rows, as_sets, subsets
from tests.pairs import for_each
from tests.strategies import coalition_matrices, table_games, worth_tables

columns = st.sampled_from([None, 1, 3])


# an array indexed by bitmask


@given(st.integers(0, 6), columns, st.data())
def test_worths_by_bitmask(n: int, q: int | None, data: st.DataObject) -> None:
    table = data.draw(worth_tables(n, q=q))
    coalitions = data.draw(coalition_matrices(n))
    worths = TableGame(n, table)(coalitions)
    assert worths.dtype == np.float64
    assert worths.shape == (len(coalitions), *table.shape[1:])
    for worth, nodes in zip(worths, as_sets(coalitions), strict=True):
        np.testing.assert_array_equal(worth, table[as_integer(nodes)])


@given(st.integers(0, 5), columns, st.data())
def test_a_mapping_says_the_same(n: int, q: int | None, data: st.DataObject) -> None:
    table = data.draw(worth_tables(n, q=q))
    mapping = {nodes: table[as_integer(nodes)] for nodes in subsets(range(n))}
    if not data.draw(st.booleans(), label="with the empty coalition") and n:
        del mapping[frozenset()]
    coalitions = data.draw(coalition_matrices(n))
    worths = TableGame(n, mapping)(coalitions)
    np.testing.assert_array_equal(worths, TableGame(n, table)(coalitions), strict=True)


def test_one_coalition_may_come_as_a_vector() -> None:
    assert TableGame(2, [0, 1, 2, 5])(np.array([False, True])).tolist() == [2.0]
    assert TableGame(2, {frozenset({1}): 2})(np.array([False, True])).tolist() == [2.0]


@pytest.mark.parametrize("entry", [7.0, np.nan, np.inf])
def test_the_empty_coalition_is_worth_nothing_whatever_its_entry_says(entry: float) -> None:
    nobody = np.zeros((1, 2), dtype=np.bool_)
    assert TableGame(2, [entry, 1, 2, 5])(nobody).tolist() == [0.0]
    assert TableGame(2, {frozenset(): entry, frozenset({0}): 1})(nobody).tolist() == [0.0]
    assert TableGame(2, {frozenset({0}): 1})(nobody).tolist() == [0.0]
    assert TableGame(2, {frozenset({0}): [1, 2]})(nobody).tolist() == [[0.0, 0.0]]
    assert TableGame(0, [entry])(np.zeros((1, 0), dtype=np.bool_)).tolist() == [0.0]
    assert TableGame(0, {})(np.zeros((1, 0), dtype=np.bool_)).tolist() == [0.0]


def test_the_callers_worths_are_neither_kept_nor_changed() -> None:
    worths = np.array([9.0, 1.0, 2.0, 5.0])
    game = TableGame(2, worths)
    assert worths[0] == 9.0
    worths[:] = 0.0
    assert game.worths.tolist() == [0.0, 1.0, 2.0, 5.0]


@given(st.integers(0, 5).flatmap(lambda n: table_games(n)))
def test_worths_of_an_array_are_at_hand(game: TableGame) -> None:
    everything = as_rows(subsets(range(game.n)), game.n)
    index = [as_integer(nodes) for nodes in subsets(range(game.n))]
    np.testing.assert_array_equal(game.worths[index], game(everything))


def test_representation() -> None:
    assert repr(TableGame(2, np.zeros(4))) == "TableGame(n=2)"
    assert repr(TableGame(2, np.zeros((4, 3)))) == "TableGame(n=2, q=3)"
    assert repr(TableGame(80, {frozenset({79}): [1, 2]})) == "TableGame(n=80, q=2)"


# a mapping from sets, of any number of players


def test_a_mapping_on_a_path_of_200_players() -> None:
    path = CommunicationGraph(200, [(i, i + 1) for i in range(199)])
    coalitions = path.connected_coalitions()
    worths = np.random.default_rng(0).standard_normal((len(coalitions), 2))
    game = TableGame(200, dict(zip(as_sets(coalitions), worths, strict=True)))
    shuffled = np.random.default_rng(1).permutation(len(coalitions))
    np.testing.assert_array_equal(evaluate(game, coalitions[shuffled]), worths[shuffled])


def test_players_in_different_words_are_distinguished() -> None:
    game = TableGame(130, {frozenset({0}): 1, frozenset({64}): 2, frozenset({0, 128}): 3})
    assert game(as_rows([{64}, {0, 128}, {0}, set()], 130)).tolist() == [2.0, 3.0, 1.0, 0.0]


def test_a_coalition_without_a_worth() -> None:
    game = TableGame(3, {frozenset({0}): 1.0, frozenset({0, 1}): 2.0})
    with pytest.raises(ValueError, match=r"the table has no worth for coalition \{1, 2\}$"):
        game(as_rows([{0}, {1, 2}, {2}], 3))


def test_sets_of_players_of_any_kind() -> None:
    game = TableGame(3, {(2, 0): 1, range(2): 2, (np.int64(1),): 3})
    assert game(as_rows([{0, 2}, {0, 1}, {1}], 3)).tolist() == [1.0, 2.0, 3.0]


@for_each(
    ("worths", "error", "message"),
    [
        ({frozenset({0, 2}): 1}, ValueError, r"players must lie in 0\.\.1 \(got \[0, 2\]\)"),
        ({frozenset({-1}): 1}, ValueError, r"players must lie in 0\.\.1 \(got \[-1\]\)"),
        ({frozenset({0.5}): 1}, TypeError, r"players must be a list of node ids \(got \[0\.5\]\)"),
        ({"ab": 1}, TypeError, r"players must be a list of node ids \(got \['a', 'b'\]\)"),
        ({(0, 0): 1}, ValueError, r"players must not repeat a node \(got \[0, 0\]\)"),
        ({3: 1}, TypeError, r"a coalition must be a set of players \(got 3\)"),
        (
            {(0, 1): 1, frozenset({0, 1}): 2},
            ValueError,
            r"coalition \{0, 1\} has more than one worth",
        ),
        (
            {frozenset({0}): 1.0, frozenset({0, 1}): np.nan},
            ValueError,
            r"worths must be finite \(got nan for coalition \{0, 1\}\)",
        ),
        (
            {frozenset({1}): [1.0, np.inf]},
            ValueError,
            r"worths must be finite \(got \[ *1\. +inf\] for coalition \{1\}\)",
        ),
        (
            {frozenset({0}): 1, frozenset({1}): [1, 2]},
            TypeError,
            r"worths must be one number or q numbers for every coalition \(got: .+\)",
        ),
        (
            {frozenset({0}): [1, 2, 3], frozenset({1}): [1, 2]},
            TypeError,
            r"worths must be one number or q numbers for every coalition \(got: .+\)",
        ),
        (
            {frozenset({0}): "much"},
            TypeError,
            r"worths must be one number or q numbers for every coalition \(got: .*much.*\)",
        ),
        (
            {frozenset({0}): [[1, 2]]},
            ValueError,
            r"worths must be one number or q numbers for every coalition \(got \(1, 2\)\)",
        ),
    ],
)
def test_a_bad_mapping(worths: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TableGame(2, worths)


# what both forms refuse


@for_each("worths", [np.zeros(4), {frozenset({0}): 1.0}])
@for_each(
    ("n", "error", "message"),
    [
        (-1, ValueError, r"n must be at least 0 \(got -1\)"),
        (2.0, TypeError, r"n must be an integer \(got 2\.0\)"),
        (True, TypeError, r"n must be an integer \(got True\)"),
        ("2", TypeError, r"n must be an integer \(got '2'\)"),
    ],
)
def test_a_bad_number_of_players(n: Any, worths: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TableGame(n, worths)


def test_an_array_has_room_for_few_players() -> None:
    message = r"an array of worths holds at most 26 players, a mapping any number \(got n=27\)"
    with pytest.raises(ValueError, match=message):
        TableGame(27, np.zeros(1))
    with pytest.raises(ValueError, match=r"worths of 26 players must have shape \(67108864,\)"):
        TableGame(26, np.zeros(1))


@for_each(
    ("worths", "error", "message"),
    [
        (
            [0, 1, 2],
            ValueError,
            r"worths of 2 players must have shape \(4,\) or \(4, q\), indexed by bitmask "
            r"\(got \(3,\)\)",
        ),
        (np.zeros(5), ValueError, r"worths of 2 players must have shape .* \(got \(5,\)\)"),
        (np.zeros((2, 4)), ValueError, r"worths of 2 players .* \(got \(2, 4\)\)"),
        (np.zeros((4, 1, 1)), ValueError, r"worths of 2 players .* \(got \(4, 1, 1\)\)"),
        (1.0, ValueError, r"worths of 2 players .* \(got \(\)\)"),
        (
            [0, 1, np.nan, np.inf],
            ValueError,
            r"worths must be finite \(got nan for coalition \{1\}\)",
        ),
        (
            [[0, 0], [1, 1], [2, 2], [3, -np.inf]],
            ValueError,
            r"worths must be finite \(got \[ *3\. -inf\] for coalition \{0, 1\}\)",
        ),
        (
            [0, 1, "b", 3],
            TypeError,
            r"worths must be one number or q numbers for every coalition \(got: .+\)",
        ),
        (
            [0, [1], 2, 3],
            TypeError,
            r"worths must be one number or q numbers for every coalition \(got: .+\)",
        ),
    ],
)
def test_a_bad_array(worths: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        TableGame(2, worths)


@for_each("game", [TableGame(2, np.zeros(4)), TableGame(2, {frozenset({0}): 1.0})])
@for_each(
    ("coalitions", "error", "message"),
    [
        (np.ones((1, 3), bool), ValueError, r"coalitions must have shape \(2,\) or \(k, 2\)"),
        (np.ones((1, 2), int), TypeError, r"coalitions must be boolean \(got dtype int\d+\)"),
    ],
)
def test_bad_coalitions(
    game: TableGame, coalitions: NDArray[Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        game(coalitions)
