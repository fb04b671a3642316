"""Worths of coalitions, the efficiency gap, and budgets of evaluations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, Worths, evaluate_masks
from gstarx.graphs import CoalitionLattice, Masks, distinct_rows, pack

#: Coalitions are listed, and their weights exact, up to this many times the budget ...
_LISTED_PER_EVALUATION = 25
#: ... and this many weights in all (coalitions times nodes).
_LISTED_CELLS = 1 << 24


def worths_of(v: Game, lattice: CoalitionLattice) -> Worths:
    """The worth of every coalition of the lattice, (k,) or (k, q)."""
    return evaluate_masks(v, lattice.masks, lattice.num_nodes)


def in_columns(worths: Worths) -> Worths:
    """Worths as a contiguous matrix (k, q), one column for a single game."""
    return np.ascontiguousarray(worths if worths.ndim == 2 else worths[:, None])


def component_gap(values: NDArray[np.float64], worths: Worths, lattice: CoalitionLattice) -> float:
    """Largest gap between the sum of values over a component and the component's worth."""
    shares = lattice.coalitions(lattice.tops).astype(np.float64) @ values
    return float(np.abs(shares - worths[lattice.tops]).max(initial=0.0))


@dataclass(frozen=True)
class WorthLists:
    """The worths of several lists of coalitions."""

    #: One matrix (k, q) for each list.
    worths: tuple[Worths, ...]
    #: The shape of a worth: () for one game, (q,) for q games at once.
    shape: tuple[int, ...]
    #: Number of distinct coalitions that were evaluated.
    evaluations: int

    @property
    def span(self) -> NDArray[np.float64]:
        """Largest minus smallest worth (q,), including that of the empty coalition."""
        return worth_span(np.concatenate(self.worths))


def evaluate_once(v: Game, lists: Sequence[Masks], num_players: int) -> WorthLists:
    """Worths of packed coalitions, each distinct one evaluated once; the empty one is worth 0."""
    masks = np.concatenate(lists)
    nonempty = np.flatnonzero(masks.any(axis=1))
    first, where = distinct_rows(masks[nonempty])
    evaluated = evaluate_masks(v, masks[nonempty[first]], num_players)
    columns = in_columns(evaluated)
    worths = np.zeros((len(masks), columns.shape[1]))
    worths[nonempty] = columns[where]
    parts = np.split(worths, np.cumsum([len(part) for part in lists[:-1]]))
    return WorthLists(tuple(parts), evaluated.shape[1:], len(first))


def worth_span(worths: Worths) -> NDArray[np.float64]:
    """Largest minus smallest of worths (k, q) and the empty coalition's 0, for every game.

    >>> worth_span(np.array([[1.0, -2.0], [3.0, -1.0]]))
    array([3., 2.])
    """
    span: NDArray[np.float64] = worths.max(axis=0, initial=0.0) - worths.min(axis=0, initial=0.0)
    return span


def everybody(num_players: int) -> Masks:
    """The coalition of all players, packed: (1, words)."""
    return pack(np.ones((1, num_players), dtype=np.bool_))


def without(masks: Masks, num_players: int) -> Masks:
    """All players who are not in each of the packed coalitions."""
    return everybody(num_players) & ~masks


def check_budget(budget: int, num_nodes: int) -> int:
    """The budget as an integer that is at least the number of players; raises otherwise."""
    if isinstance(budget, bool) or not isinstance(budget, int | np.integer):
        raise TypeError(f"budget must be an integer (got {budget!r})")
    if budget < num_nodes:
        raise ValueError(
            f"budget must be at least the number of nodes, {num_nodes}: every node has to be seen "
            f"(got {budget})"
        )
    return int(budget)


def listing_limit(budget: int, num_nodes: int) -> int:
    """The most coalitions that a sampler lists, instead of drawing them without a list."""
    return min(_LISTED_PER_EVALUATION * budget, _LISTED_CELLS // max(1, num_nodes))
