"""Budgets of samplers: evaluations, and memory for listing coalitions."""

from __future__ import annotations

import numpy as np

#: Coalitions are listed, and their weights exact, up to this many times the budget ...
_LISTED_PER_EVALUATION = 25
#: ... and this many weights in all (coalitions times nodes).
_LISTED_CELLS = 1 << 24


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
