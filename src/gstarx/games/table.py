"""A game given by a table of its worths."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gstarx.games.protocol import Worths, coalition_phrase
from gstarx.graphs import Coalitions, as_coalitions, as_nodes, as_size, pack, unpack

#: An array of worths has 2^n rows; beyond this many players it would not fit in memory.
MAX_PLAYERS = 26


class TableGame:
    """A game given by a table of its worths.

    Parameters
    ----------
    n
        Number of players.
    worths
        Either an array (2^n,) or (2^n, q) indexed by bitmask, bit ``i`` for player ``i``, for up to
        26 players; or a mapping from sets of players to worths, for any number of players, which
        need not be complete: evaluating a coalition that is not in it is an error. The worth of
        the empty coalition is 0 by definition, whatever its entry.

    Examples
    --------
    >>> game = TableGame(2, [0, 1, 2, 5])
    >>> game(np.array([[True, False], [True, True]]))
    array([1., 5.])
    >>> TableGame(2, {frozenset({0}): 1, frozenset({0, 1}): 5})(np.array([[True, True]]))
    array([5.])
    """

    def __init__(self, n: int, worths: ArrayLike | Mapping[frozenset[int], ArrayLike]) -> None:
        self.n = as_size(n, name="n")
        #: Row of every packed coalition in ``worths``; ``None`` where rows are bitmasks.
        self.rows: dict[bytes, int] | None = None
        if isinstance(worths, Mapping):
            self.rows, self.worths = _from_mapping(worths, self.n)
        else:
            self.worths = _from_array(worths, self.n)

    def __call__(self, coalitions: Coalitions) -> Worths:
        """Worths of boolean coalitions (k, n)."""
        members = as_coalitions(coalitions, self.n, name="coalitions")
        masks = pack(members)
        if self.rows is None:
            return self.worths[masks[:, 0].astype(np.int64)]
        rows = [self.rows.get(mask.tobytes(), -1) for mask in masks]
        if -1 in rows:
            missing = coalition_phrase(members[rows.index(-1)])
            raise ValueError(f"the table has no worth for {missing}")
        return self.worths[np.array(rows, dtype=np.int64)]

    def __repr__(self) -> str:
        games = "" if self.worths.ndim == 1 else f", q={self.worths.shape[1]}"
        return f"TableGame(n={self.n}{games})"


def _from_array(worths: ArrayLike, n: int) -> Worths:
    """Worths (2^n,) or (2^n, q) indexed by bitmask, checked."""
    if n > MAX_PLAYERS:
        raise ValueError(
            f"an array of worths holds at most {MAX_PLAYERS} players, a mapping any number "
            f"(got n={n})"
        )
    table = _as_numbers(worths)
    if table.ndim not in (1, 2) or len(table) != 2**n:
        raise ValueError(
            f"worths of {n} players must have shape ({2**n},) or ({2**n}, q), "
            f"indexed by bitmask (got {table.shape})"
        )
    table[0] = 0.0
    _check_finite(table, lambda row: unpack(np.array([[row]], dtype=np.uint64), n)[0])
    return table


def _from_mapping(
    worths: Mapping[frozenset[int], ArrayLike], n: int
) -> tuple[dict[bytes, int], Worths]:
    """The row of every packed coalition, and the rows: row 0 is the empty coalition."""
    values = _as_numbers(list(worths.values()))
    if values.ndim not in (1, 2):
        raise ValueError(
            f"worths must be one number or q numbers for every coalition (got {values.shape[1:]})"
        )
    members = np.zeros((len(worths) + 1, n), dtype=np.bool_)
    for row, players in enumerate(worths, start=1):
        if not isinstance(players, Collection):
            raise TypeError(f"a coalition must be a set of players (got {players!r})")
        members[row, as_nodes(list(players), n, name="players")] = True
    table = np.concatenate([np.zeros((1, *values.shape[1:])), values])
    table[~members.any(axis=1)] = 0.0
    _check_finite(table, lambda row: members[row])
    rows: dict[bytes, int] = {}
    for row, mask in enumerate(pack(members)):
        if rows.setdefault(mask.tobytes(), row) != row and members[row].any():
            raise ValueError(f"{coalition_phrase(members[row])} has more than one worth")
    return rows, table


def _as_numbers(worths: Any) -> Worths:
    try:
        return np.array(worths, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"worths must be one number or q numbers for every coalition (got: {error})"
        ) from error


def _check_finite(table: Worths, coalition_of: Callable[[int], Coalitions]) -> None:
    bad = np.flatnonzero(~np.isfinite(table).all(axis=tuple(range(1, table.ndim))))
    if len(bad):
        raise ValueError(
            f"worths must be finite (got {table[bad[0]]} for "
            f"{coalition_phrase(coalition_of(bad[0]))})"
        )
