"""The textbook games, against their definitions on sets."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstarx.games import (
    additive_game,
    airport_game,
    evaluate,
    glove_game,
    random_game,
    unanimity_game,
    voting_game,
)
from tests.oracles import Nodes, as_integer, as_rows, subsets
from tests.pairs import for_each
from tests.strategies import WHOLE

sizes = st.integers(1, 6)


def check(game: Any, n: int, definition: Callable[[Nodes], Any]) -> None:
    """Compare a game with its definition on every coalition, the empty one too."""
    sets = list(subsets(range(n)))
    worths = evaluate(game, as_rows(sets, n))
    np.testing.assert_array_equal(worths, [definition(nodes) for nodes in sets])


@st.composite
def players(draw: st.DrawFn, min_size: int = 0) -> tuple[int, set[int]]:
    n = draw(sizes)
    return n, draw(st.sets(st.integers(0, n - 1), min_size=min_size))


def numbers(elements: st.SearchStrategy[float] = WHOLE) -> st.SearchStrategy[list[float]]:
    return st.lists(elements, min_size=1, max_size=6)


@given(players(min_size=1))
def test_unanimity(drawn: tuple[int, set[int]]) -> None:
    n, carrier = drawn
    check(unanimity_game(n, carrier), n, lambda nodes: float(carrier <= nodes))


@given(players())
def test_glove(drawn: tuple[int, set[int]]) -> None:
    n, left = drawn
    check(glove_game(n, left), n, lambda nodes: min(len(nodes & left), len(nodes - left)))


@given(numbers(st.floats(0, 100)))
def test_airport(costs: list[float]) -> None:
    check(airport_game(costs), len(costs), lambda s: max((costs[i] for i in s), default=0.0))


@given(numbers(), WHOLE)
def test_voting(weights: list[float], quota: float) -> None:
    check(
        voting_game(weights, quota),
        len(weights),
        lambda nodes: float(sum(weights[i] for i in nodes) >= quota),
    )


def test_a_vote_is_won_at_equality() -> None:
    game = voting_game([50, 49, 1], quota=51)
    assert game(as_rows([{0, 2}, {1, 2}, {0}], 3)).tolist() == [1.0, 0.0, 0.0]


@given(numbers())
def test_additive(worths: list[float]) -> None:
    check(additive_game(worths), len(worths), lambda nodes: sum(worths[i] for i in nodes))


@given(numbers())
def test_several_additive_games_at_once(worths: list[float]) -> None:
    check(
        additive_game([[worth, 1.0] for worth in worths]),
        len(worths),
        lambda nodes: [sum(worths[i] for i in nodes), len(nodes)],
    )


# random worths


def split_mix(state: int) -> int:
    """One output of SplitMix64 in Python integers."""
    z = (state + 0x9E3779B97F4A7C15) % 2**64
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) % 2**64
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) % 2**64
    return z ^ (z >> 31)


def random_worth(nodes: Nodes, n: int, seed: int, column: int = 0) -> float:
    key = split_mix((seed * 0x10001 + column) % 2**64)
    mask = as_integer(nodes)
    for word in range(max(1, -(-n // 64))):
        key = split_mix(key ^ (mask >> (64 * word)) % 2**64)
    return (key >> 11) / 2**52 - 1


@given(st.integers(0, 200), st.integers(-(2**65), 2**65), st.data())
def test_random_worths_are_the_same_everywhere(n: int, seed: int, data: st.DataObject) -> None:
    node = st.integers(0, max(0, n - 1))
    sets = data.draw(st.lists(st.frozensets(node, max_size=n), max_size=5))
    rows = as_rows(sets, n)
    expected = [random_worth(nodes, n, seed) for nodes in sets]
    assert random_game(n, seed=seed)(rows).tolist() == expected
    columns = random_game(n, seed=seed, q=2)(rows)
    assert columns.tolist() == [[random_worth(s, n, seed, c) for c in range(2)] for s in sets]


def test_random_worths_are_spread_evenly() -> None:
    rows = as_rows(subsets(range(14)), 14)
    worths = random_game(14, seed=5, q=2)(rows)
    assert worths.min() >= -1.0
    assert worths.max() < 1.0
    assert len(np.unique(worths)) == worths.size
    spread = 1 / np.sqrt(3 * len(rows))
    assert np.abs(worths.mean(axis=0)).max() < 5 * spread
    np.testing.assert_allclose(worths.var(axis=0), 1 / 3, rtol=0.05)
    assert abs(np.corrcoef(worths.T)[0, 1]) < 5 / np.sqrt(len(rows))
    # no trace of who is in a coalition
    assert np.abs(np.corrcoef(rows.T, worths[:, 0])[-1, :-1]).max() < 5 / np.sqrt(len(rows))


def test_seeds_give_different_games() -> None:
    rows = as_rows(subsets(range(5)), 5)
    worths = {random_game(5, seed=seed)(rows).tobytes() for seed in range(20)}
    assert len(worths) == 20


# what they refuse


@for_each(
    ("make", "error", "message"),
    [
        (lambda: unanimity_game(3, []), ValueError, r"carrier must name at least one player"),
        (lambda: unanimity_game(3, [3]), ValueError, r"carrier must lie in 0\.\.2 \(got \[3\]\)"),
        (lambda: unanimity_game(3, [1, 1]), ValueError, r"carrier must not repeat a node"),
        (lambda: unanimity_game(-2, [0]), ValueError, r"n must be at least 0 \(got -2\)"),
        (lambda: glove_game(3, [-1]), ValueError, r"left must lie in 0\.\.2 \(got \[-1\]\)"),
        (lambda: glove_game(-2, []), ValueError, r"n must be at least 0 \(got -2\)"),
        (lambda: glove_game(2.5, []), TypeError, r"n must be an integer \(got 2\.5\)"),
        (
            lambda: airport_game([1, -2]),
            ValueError,
            r"costs must be a list of numbers not below 0 \(got \[1, -2\]\)",
        ),
        (lambda: airport_game([[1]]), ValueError, r"costs must be a list of numbers"),
        (lambda: airport_game(3), ValueError, r"costs must be a list of numbers"),
        (
            lambda: airport_game([1, np.inf]),
            ValueError,
            r"costs must be finite \(got \[1, inf\]\)",
        ),
        (lambda: voting_game([np.nan], 1), ValueError, r"weights must be finite \(got \[nan\]\)"),
        (
            lambda: voting_game([[1, 2]], 1),
            ValueError,
            r"weights must be a list of numbers \(got \[\[1, 2\]\]\)",
        ),
        (lambda: additive_game([0, np.nan]), ValueError, r"worths must be finite \(got \[0, nan"),
        (
            lambda: additive_game(np.zeros((1, 2, 3))),
            ValueError,
            r"worths must have shape \(n,\) or \(n, q\) \(got \(1, 2, 3\)\)",
        ),
        (lambda: random_game(-1, seed=0), ValueError, r"n must be at least 0 \(got -1\)"),
        (lambda: random_game(2, seed=0, q=0), ValueError, r"q must be None or at least 1 \(got 0"),
        (lambda: random_game(2, seed=0, q=-1), ValueError, r"q must be at least 0 \(got -1\)"),
    ],
)
def test_bad_games(make: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        make()


@for_each(
    "game",
    [
        unanimity_game(3, [0]),
        glove_game(3, [0]),
        airport_game([1, 2, 3]),
        voting_game([1, 2, 3], 4),
        additive_game([1, 2, 3]),
        random_game(3, seed=0),
    ],
)
@for_each("width", [1, 2, 4])
def test_coalitions_of_other_players(game: Any, width: int) -> None:
    message = rf"coalitions must have shape \(3,\) or \(k, 3\) \(got \(2, {width}\)\)"
    with pytest.raises(ValueError, match=message):
        game(np.ones((2, width), dtype=np.bool_))
