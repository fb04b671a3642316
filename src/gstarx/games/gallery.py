"""Textbook games, for examples, tests and teaching."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import ArrayLike

from gstarx.games.protocol import Game, Worths
from gstarx.graphs import Coalitions, as_coalitions, as_nodes, as_size, pack


def unanimity_game(n: int, carrier: Iterable[int]) -> Game:
    """Worth 1 for every coalition that contains all of ``carrier``, else 0.

    >>> unanimity_game(3, [0, 2])(np.array([[1, 0, 1], [1, 1, 0]], dtype=bool))
    array([1., 0.])
    """
    n = as_size(n, name="n")
    needed = as_nodes(list(carrier), n, name="carrier")
    if not len(needed):
        raise ValueError("carrier must name at least one player (got none)")

    def worth(coalitions: Coalitions) -> Worths:
        members = as_coalitions(coalitions, n, name="coalitions")
        return np.asarray(members[:, needed].all(axis=1), dtype=np.float64)

    return worth


def glove_game(n: int, left: Iterable[int]) -> Game:
    """Players in ``left`` own a left glove, the others a right one; worth is the number of pairs.

    >>> glove_game(3, [0])(np.array([[1, 1, 1], [0, 1, 1]], dtype=bool))
    array([1., 0.])
    """
    n = as_size(n, name="n")
    is_left = np.zeros(n, dtype=np.bool_)
    is_left[as_nodes(list(left), n, name="left")] = True

    def worth(coalitions: Coalitions) -> Worths:
        members = as_coalitions(coalitions, n, name="coalitions")
        lefts = members[:, is_left].sum(axis=1)
        pairs = np.minimum(lefts, members[:, ~is_left].sum(axis=1))
        return np.asarray(pairs, dtype=np.float64)

    return worth


def airport_game(costs: ArrayLike) -> Game:
    """A runway must be long enough for the most demanding member: worth is the largest cost.

    >>> airport_game([1, 2, 5])(np.array([[1, 1, 0], [1, 0, 1]], dtype=bool))
    array([2., 5.])
    """
    cost = _finite(costs, name="costs")
    if cost.ndim != 1 or (cost < 0).any():
        raise ValueError(f"costs must be a list of numbers not below 0 (got {costs!r})")

    def worth(coalitions: Coalitions) -> Worths:
        members = as_coalitions(coalitions, len(cost), name="coalitions")
        return np.asarray(np.where(members, cost, 0.0).max(axis=1, initial=0.0))

    return worth


def voting_game(weights: ArrayLike, quota: float) -> Game:
    """Weighted voting: worth 1 for every coalition whose weights reach ``quota``, else 0.

    >>> voting_game([3, 2, 1], quota=4)(np.array([[1, 0, 1], [0, 1, 1]], dtype=bool))
    array([1., 0.])
    """
    weight = _finite(weights, name="weights")
    if weight.ndim != 1:
        raise ValueError(f"weights must be a list of numbers (got {weights!r})")

    def worth(coalitions: Coalitions) -> Worths:
        members = as_coalitions(coalitions, len(weight), name="coalitions")
        # summed exactly where weights are integers, so that the quota is met at equality
        return (members @ weight >= quota).astype(np.float64)

    return worth


def additive_game(worths: ArrayLike) -> Game:
    """Every player brings its own worth (n,), or (n, q), and cooperation adds nothing.

    >>> additive_game([1, 2, 4])(np.array([[1, 0, 1]], dtype=bool))
    array([5.])
    """
    player_worths = _finite(worths, name="worths")
    if player_worths.ndim not in (1, 2):
        raise ValueError(f"worths must have shape (n,) or (n, q) (got {player_worths.shape})")

    def worth(coalitions: Coalitions) -> Worths:
        members = as_coalitions(coalitions, len(player_worths), name="coalitions")
        return members.astype(np.float64) @ player_worths

    return worth


def random_game(n: int, *, seed: int, q: int | None = None) -> Game:
    """Independent uniform worths in [-1, 1), any number of players, no table.

    The worth of a coalition is a hash of its bitmask and ``seed``: the same on every call, in every
    order, on every machine.

    >>> game = random_game(100, seed=0)
    >>> everyone = np.ones((1, 100), dtype=bool)
    >>> bool(game(everyone) == game(everyone))
    True
    """
    n = as_size(n, name="n")
    if q is not None and as_size(q, name="q") == 0:
        raise ValueError("q must be None or at least 1 (got 0)")

    def worth(coalitions: Coalitions) -> Worths:
        masks = pack(as_coalitions(coalitions, n, name="coalitions"))
        columns = []
        for column in range(1 if q is None else q):
            start = (int(seed) * 0x10001 + column) % 2**64
            key = _mix(np.full(len(masks), start, dtype=np.uint64))
            for word in masks.T:
                key = _mix(key ^ word)
            columns.append((key >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0)
        return columns[0] if q is None else np.stack(columns, axis=1)

    return worth


def _finite(numbers: ArrayLike, *, name: str) -> Worths:
    values = np.asarray(numbers, dtype=np.float64)
    if not np.isfinite(values).all():
        raise ValueError(f"{name} must be finite (got {numbers!r})")
    return values


def _mix(
    key: np.ndarray[tuple[int, ...], np.dtype[np.uint64]],
) -> np.ndarray[tuple[int, ...], np.dtype[np.uint64]]:
    """The finalizer of SplitMix64 (Steele, Lea, Flood 2014), which scatters 64 bits."""
    key = key + np.uint64(0x9E3779B97F4A7C15)
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))
