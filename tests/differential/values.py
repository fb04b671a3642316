"""Values of cooperative games by their definitions, with coalitions as the bits of integers."""

from __future__ import annotations

from collections.abc import Callable, Collection
from math import factorial

import numpy as np
from numpy.typing import NDArray

Numbers = NDArray[np.float64]
#: From a coalition, a bit for every player, to its worth for every target.
Worth = Callable[[int], Numbers]
Links = Collection[tuple[int, int]]


def members(mask: int) -> list[int]:
    """The players of a coalition."""
    return [at for at in range(mask.bit_length()) if mask >> at & 1]


def neighbors(n: int, links: Links) -> list[int]:
    """The neighbors of every player."""
    near = [0] * n
    for i, j in links:
        near[i] |= 1 << j
        near[j] |= 1 << i
    return near


def component(mask: int, near: list[int]) -> int:
    """The connected part of a coalition that has its first player."""
    reached, front = 0, mask & -mask
    while front:
        reached |= front
        around = 0
        for player in members(front):
            around |= near[player]
        front = around & mask & ~reached
    return reached


def boundary(mask: int, near: list[int]) -> list[int]:
    """The neighbors of a coalition that are not in it."""
    around = 0
    for player in members(mask):
        around |= near[player]
    return members(around & ~mask)


def connected(near: list[int], at_most: float = float("inf")) -> list[int]:
    """All connected coalitions, or more than ``at_most`` of them: each one and a neighbor."""
    front = found = {1 << i for i in range(len(near))}
    while front and len(found) <= at_most:
        front = {mask | 1 << j for mask in front for j in boundary(mask, near)}
        found = found | front
    return sorted(found)


def shapley(worth: Worth, n: int) -> Numbers:
    """The Shapley value: marginal contributions, weighted by the size of the coalition."""
    weight = [factorial(size) * factorial(n - size - 1) / factorial(n) for size in range(n)]
    return _of_marginals(worth, n, np.array(weight))


def banzhaf(worth: Worth, n: int, presence: float) -> Numbers:
    """The mean marginal contribution to a random coalition of the others."""
    chance = [presence**size * (1 - presence) ** (n - 1 - size) for size in range(n)]
    return _of_marginals(worth, n, np.array(chance))


def _of_marginals(worth: Worth, n: int, weight: Numbers) -> Numbers:
    """Sums of marginal contributions, with a weight for every size of the coalition joined."""
    table = np.array([np.zeros_like(worth(0)), *(worth(mask) for mask in range(1, 2**n))])
    masks = np.arange(2**n)
    sizes = np.array([mask.bit_count() for mask in range(2**n)])
    values = np.zeros((n, *table.shape[1:]))
    for i in range(n):
        without = masks[(masks >> i & 1) == 0]
        marginal = table[without | 1 << i] - table[without]
        values[i] = (weight[sizes[without]][:, None] * marginal).sum(axis=0)
    return values


def myerson(worth: Worth, n: int, links: Links) -> Numbers:
    """The Shapley value of the restricted game: components earn on their own."""
    near, nothing = neighbors(n, links), np.zeros_like(worth(0))
    restricted = {0: nothing}
    for mask in range(1, 2**n):
        first = component(mask, near)
        restricted[mask] = worth(first) + restricted[mask ^ first]
    return shapley(restricted.__getitem__, n)


def hn(worth: Worth, n: int, links: Links) -> Numbers:
    """What single players are worth in the limit of the associated games (Definition 4.2).

    The step from a game to its associated game is a matrix over connected coalitions, which is
    squared until nothing changes.
    """
    near = neighbors(n, links)
    place = {mask: row for row, mask in enumerate(connected(near))}
    step, tau = np.eye(len(place)), 1.0 / max(n, 1)
    for mask, row in place.items():
        for j in boundary(mask, near):
            step[row, place[mask | 1 << j]] += tau
            step[row, row] -= tau
            step[row, place[1 << j]] -= tau
    for _ in range(40):
        squared = step @ step
        change, step = np.abs(squared - step).max(initial=0.0), squared
        if change < 1e-10:  # squared once more it would be 1e-20
            break
    else:
        raise ArithmeticError("the associated games do not converge")
    worths = np.array([worth(mask) for mask in place]).reshape(len(place), len(worth(0)))
    return np.asarray((step @ worths)[[place[1 << i] for i in range(n)]])


def two_sided(worth: Worth, n: int) -> Worth:
    """Half of what a coalition is worth and half of what is lost without it."""
    everybody = 2**n - 1

    def both(mask: int) -> Numbers:
        if not mask:
            return worth(0)
        lost = worth(everybody) - (worth(everybody ^ mask) if mask != everybody else 0.0)
        return (worth(mask) + lost) / 2

    return both
