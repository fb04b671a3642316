"""The Banzhaf value and, for other probabilities of presence, the binomial semivalues.

It ignores the graph, like the Shapley value, but matches fidelity: over all sets of nodes, sums of
Banzhaf values are the best fit of the difference between the worths of a set and its complement.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from gstarx.games import Game, evaluate_masks
from gstarx.graphs import Masks, TooManyCoalitions, pack, unpack
from gstarx.values.allocation import Allocation, warn_if_noisy, warn_if_unknown, within_range
from gstarx.values.coalition_sampling import small_sample_factor
from gstarx.values.cross_fitting import Membership, corrected, cross_fit, fold_of
from gstarx.values.worths import check_budget, evaluate_once, everybody, in_columns, without

#: With more players, the same coalition is practically never drawn twice.
_FEW_PLAYERS = 40
#: Random numbers drawn at once (8 MB).
_CELLS = 1 << 20


def banzhaf_value(
    v: Game, n: int, *, presence: float = 0.5, max_coalitions: int = 2_000_000
) -> Allocation:
    """The exact Banzhaf value: what a player adds to a random coalition of the others.

    ``phi_i = E[v(S + i) - v(S)]``, where every other player is in ``S`` with probability
    ``presence``, independently. With one half all coalitions have equal weight: that is the Banzhaf
    value, and the least-squares fit of ``v(S) - v(N - S)`` by ``sum of phi over S minus sum of phi
    over N - S`` over all ``S``. For games without interactions of three or more players it equals
    the Shapley value. It is not efficient: ``residual`` is the gap.

    Parameters
    ----------
    v
        The game; evaluated once on every non-empty coalition, connected or not.
    n
        Number of players.
    presence
        Probability that another player is present, between 0 and 1.
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
            2**n - 1,
            max_coalitions,
            "raise max_coalitions, or estimate with banzhaf_value_sampled",
            connected=False,
        )
    masks = np.arange(1, 2**n, dtype=np.uint64)[:, None]
    worths = evaluate_masks(v, masks, n)
    columns = in_columns(worths)
    members = unpack(masks, n).astype(np.float64)
    sizes = members.sum(axis=1)
    # the probability of the other players' choices, with the player in and out of the coalition
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

    Coalitions are drawn as in the definition, and a regression on membership removes most of the
    variance: see :mod:`gstarx.values.cross_fitting`. With a presence of one half every coalition
    is paired with its complement, which removes interactions of two players (and of every even
    number) completely.

    Parameters
    ----------
    v
        The game.
    n
        Number of players.
    budget
        The most distinct coalitions to evaluate, at least the number of players; the grand
        coalition is one of them. A budget that covers all coalitions gives the exact value.
    presence
        As for :func:`banzhaf_value`.
    seed
        An integer or a numpy generator; the same seed gives the same numbers.

    Returns
    -------
    Allocation
        With standard errors, which are ``nan`` when a single coalition or pair could be drawn. No
        value exceeds the range of the worths that were seen, as no true one does.

    Warns
    -----
    PrecisionWarning
        When standard errors are unknown or large, or a value had to be clipped to that range.

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
    # besides the grand coalition, a pair is two more
    paired = presence == 0.5 and budget > 2
    draws = max(1, (budget - 1) // 2 if paired else budget - 1)
    drawn = _draw(draws, n, presence, np.random.default_rng(seed), paired=paired)
    seen = evaluate_once(v, [drawn, without(drawn, n) if paired else drawn[:0], everybody(n)], n)
    if paired:
        rows = Membership.of(drawn, n, center=0.5, scale=2.0)
        answers = seen.worths[0] - seen.worths[1]
        weight = 2.0
    else:
        rows = replace(
            Membership.of(drawn, n, center=presence, scale=1.0), extras=np.ones((draws, 1))
        )
        answers = seen.worths[0]
        weight = 1.0 / (presence * (1.0 - presence))
    fold = fold_of(draws, players=n)
    held = (fold[:, None] == np.unique(fold)).astype(np.float64)
    fit = cross_fit(rows, answers, 1.0 - held, held)
    values, variance = corrected(
        rows,
        np.full(draws, weight),
        fit.residuals,
        fit.coefficients[:n],
        population=2 ** (n - 1) if paired and n <= _FEW_PLAYERS else None,
    )
    std_error = np.sqrt(variance) * small_sample_factor(draws)
    values = within_range(
        values, std_error, seen.span, value="banzhaf", evaluations=seen.evaluations
    )
    warn_if_unknown(std_error, value="banzhaf", budget=5 if paired else 3)
    warn_if_noisy(values, std_error, value="banzhaf", evaluations=seen.evaluations)
    gap = float(np.abs(values.sum(axis=0) - seen.worths[-1]).max(initial=0.0))
    shape = (n, *seen.shape)
    return Allocation(values.reshape(shape), std_error.reshape(shape), False, seen.evaluations, gap)


def check_presence(presence: Any) -> None:
    """Raise unless it is a probability strictly between 0 and 1."""
    if not isinstance(presence, int | float | np.floating) or not 0 < presence < 1:
        raise ValueError(f"presence must lie between 0 and 1, both excluded (got {presence!r})")


def _draw(
    draws: int, n: int, presence: float, generator: np.random.Generator, *, paired: bool
) -> Masks:
    """Packed coalitions in which every player is present with the same probability.

    Pairs are drawn without replacement if there are few players.
    """
    if paired and n <= _FEW_PLAYERS:
        # of each pair the coalition without the last player
        drawn = generator.choice(2 ** (n - 1), draws, replace=False)
        return drawn.astype(np.uint64)[:, None]
    rows = max(1, _CELLS // max(1, n))
    return np.concatenate(
        [
            pack(generator.random((min(rows, draws - first), n)) < presence)
            for first in range(0, draws, rows)
        ]
    )
