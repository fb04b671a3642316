"""The Shapley value, which ignores the graph (equation 2 of the paper)."""

from __future__ import annotations

import math

import numpy as np

from gstarx.games import Game, evaluate_masks
from gstarx.graphs import TooManyCoalitions, unpack
from gstarx.values.allocation import Allocation
from gstarx.values.worths import in_columns


def shapley_value(v: Game, n: int, *, max_coalitions: int = 2_000_000) -> Allocation:
    """The exact Shapley value over all ``2^n - 1`` coalitions of ``n`` players.

    ``phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! (v(S + i) - v(S))``.

    Parameters
    ----------
    v
        The game; evaluated once on every non-empty coalition, connected or not.
    n
        Number of players.
    max_coalitions
        Refuse games with more coalitions than this.

    Examples
    --------
    >>> from gstarx.games import glove_game
    >>> shapley_value(glove_game(3, left=[0]), 3).values
    array([0.66666667, 0.16666667, 0.16666667])
    """
    if n < 0:
        raise ValueError(f"n must be at least 0 (got {n})")
    if 2**n - 1 > max_coalitions:
        raise TooManyCoalitions(
            2**n - 1,
            max_coalitions,
            "raise max_coalitions, or estimate with shapley_value_sampled",
            connected=False,
        )
    masks = np.arange(1, 2**n, dtype=np.uint64)[:, None]
    worths = evaluate_masks(v, masks, n)
    columns = in_columns(worths)
    inside = np.array([0.0] + [1 / (s * math.comb(n, s)) for s in range(1, n + 1)])
    outside = np.array([0.0] + [1 / ((n - s) * math.comb(n, s)) for s in range(1, n)] + [0.0])
    members = unpack(masks, n).astype(np.float64)
    sizes = members.sum(axis=1).astype(np.int64)
    values = members.T @ (columns * (inside + outside)[sizes, None])
    values -= (columns * outside[sizes, None]).sum(axis=0)
    gap = float(np.abs(values.sum(axis=0) - columns[-1:]).max(initial=0.0))
    return Allocation.exactly(values.reshape(n, *worths.shape[1:]), len(masks), gap)
