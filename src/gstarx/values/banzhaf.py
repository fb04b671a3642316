"""The Banzhaf value, and with another presence of the others its binomial kin.

It knows no graph either, but it is what fidelity asks for: over all sets of nodes, the sums of
Banzhaf values fit the difference between the worth of a set and that of all the others best.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.games.protocol import Game, Worths, evaluate_masks
from gstarx.graphs.bitmasks import Coalitions, pack, unpack
from gstarx.graphs.communication import TooManyCoalitions
from gstarx.graphs.index import distinct_rows
from gstarx.values.allocation import Allocation
from gstarx.values.budget import check_budget
from gstarx.values.coalition_sampling import small_sample_factor
from gstarx.values.worths import in_columns


def banzhaf_value(
    v: Game, n: int, *, presence: float = 0.5, max_coalitions: int = 2_000_000
) -> Allocation:
    """The exact Banzhaf value: what a player adds to a random coalition of the others.

    ``phi_i = E[v(S + i) - v(S)]``, where every other player is in ``S`` with probability
    ``presence``, independently. With one half all coalitions count alike: that is the value of
    Banzhaf, and the least-squares fit of ``v(S) - v(N - S)`` by ``sum of phi over S less sum of phi
    over N - S`` over all ``S``. For games without interactions of three players and more it equals
    the Shapley value. It is not efficient: ``residual`` says by how much.

    Parameters
    ----------
    v
        The game; asked once for every non-empty coalition, connected or not.
    n
        Number of players.
    presence
        Probability that another player is there, between 0 and 1.
    max_coalitions
        Refuse games with more coalitions than this.

    Examples
    --------
    >>> from gstarx.games import unanimity_game
    >>> banzhaf_value(unanimity_game(3, [0, 1, 2]), 3).values
    array([0.25, 0.25, 0.25])
    """
    if n < 0:
        raise ValueError(f"n must be at least 0 (got {n})")
    check_presence(presence)
    if 2**n - 1 > max_coalitions:
        raise TooManyCoalitions(
            2**n - 1, max_coalitions, "raise max_coalitions, or estimate with banzhaf_value_sampled"
        )
    masks = np.arange(1, 2**n, dtype=np.uint64)[:, None]
    worths = evaluate_masks(v, masks, n)
    columns = in_columns(worths)
    members = unpack(masks, n).astype(np.float64)
    sizes = members.sum(axis=1)
    # of a coalition and one player's choice: what the others' choices weigh, and its sign
    inside = presence ** (sizes - 1) * (1 - presence) ** (n - sizes)
    outside = presence**sizes * (1 - presence) ** np.maximum(n - 1 - sizes, 0)
    values = members.T @ (columns * inside[:, None])
    values -= (1 - members).T @ (columns * outside[:, None])
    gap = float(np.abs(values.sum(axis=0) - columns[-1:]).max(initial=0.0))
    return Allocation.exactly(values.reshape(n, *worths.shape[1:]), len(masks), gap)


def banzhaf_value_sampled(
    v: Game,
    n: int,
    *,
    budget: int,
    presence: float = 0.5,
    seed: int | np.random.Generator | None = None,
) -> Allocation:
    """Estimate the Banzhaf value of ``n`` players from at most ``budget`` distinct coalitions.

    Coalitions are drawn as the definition says, and values are the coefficients of a regression on
    who was there. With a presence of one half every coalition is paired with all the others, which
    takes out interactions of two players (and of every even number) altogether.

    Parameters
    ----------
    v
        The game.
    n
        Number of players.
    budget
        The most distinct coalitions to evaluate, at least the number of players; the whole is one
        of them. A budget that covers all coalitions gives the exact value.
    presence
        As for :func:`banzhaf_value`.
    seed
        An integer or a numpy generator; the same seed gives the same numbers.

    Returns
    -------
    Allocation
        With standard errors that allow for residuals of any spread; ``nan`` where the budget is too
        small to tell, below about twice (in pairs four times) the number of players.

    Examples
    --------
    >>> from gstarx.games import airport_game
    >>> costs = [1, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 8]
    >>> estimate = banzhaf_value_sampled(airport_game(costs), 12, budget=2000, seed=0)
    >>> exact = banzhaf_value(airport_game(costs), 12)
    >>> bool((abs(estimate.values - exact.values) < 5 * estimate.std_error + 1e-9).all())
    True
    """
    budget = check_budget(budget, n)
    check_presence(presence)
    if n < 63 and 2**n - 1 <= budget:
        return banzhaf_value(v, n, presence=presence, max_coalitions=budget)
    generator = np.random.default_rng(seed)
    everybody = np.ones((1, n), dtype=np.bool_)
    if presence == 0.5:
        drawn = generator.random((max(1, (budget - 1) // 2), n)) < 0.5
        asked = np.concatenate([drawn, ~drawn, everybody])
    else:
        drawn = generator.random((max(1, budget - 1), n)) < presence
        asked = np.concatenate([drawn, everybody])
    columns, shape, evaluations = _worths(v, asked)
    whole = columns[-1]
    there = drawn.astype(np.float64)
    if presence == 0.5:
        design = 2.0 * there - 1.0
        answer = columns[: len(drawn)] - columns[len(drawn) : -1]
    else:
        design = np.concatenate([there - presence, np.ones((len(drawn), 1))], axis=1)
        answer = columns[:-1]
    found, variance = _regression(design, answer)
    values = found[:n]
    gap = float(np.abs(values.sum(axis=0) - whole).max(initial=0.0))
    return Allocation(
        values.reshape(n, *shape),
        np.sqrt(variance[:n]).reshape(n, *shape),
        False,
        evaluations,
        gap,
    )


def check_presence(presence: float) -> None:
    """Refuse what is no probability, or leaves no choice."""
    if not 0 < presence < 1:
        raise ValueError(f"presence must lie between 0 and 1, both excluded (got {presence!r})")


def _worths(v: Game, asked: Coalitions) -> tuple[Worths, tuple[int, ...], int]:
    """Worths (k, q) of coalitions, each distinct one asked for once, the empty one worth nothing.

    With them the shape of a worth, and how many were asked for.
    """
    masks = pack(asked)
    some = asked.any(axis=1)
    first, where = distinct_rows(masks[some])
    worths = evaluate_masks(v, masks[some][first], asked.shape[1])
    found = in_columns(worths)
    columns = np.zeros((len(asked), found.shape[1]))
    columns[some] = found[where]
    return columns, worths.shape[1:], len(first)


def _regression(
    design: NDArray[np.float64], answer: NDArray[np.float64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least-squares coefficients (k, q), and their variances for residuals of any spread.

    Residuals are those of a fit without the row itself, so that a close fit does not flatter.
    """
    rows, unknowns = design.shape
    inverse = np.linalg.pinv(design.T @ design, hermitian=True)
    found = inverse @ (design.T @ answer)
    if rows < 2 * unknowns:
        return found, np.full_like(found, np.nan)
    influence = design @ inverse
    leverage = np.minimum((influence * design).sum(axis=1), 1 - 1e-9)
    residual = (answer - design @ found) / (1 - leverage)[:, None]
    variance = (influence**2).T @ residual**2
    return found, variance * small_sample_factor(rows - unknowns) ** 2
