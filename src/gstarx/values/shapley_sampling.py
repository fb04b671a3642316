"""The Shapley value of many players, from coalitions drawn by size together with complements.

Every coalition ``T`` of ``t < n`` players gives ``v(T) / t`` to its members and takes
``v(T) / (n - t)`` from the others, averaged over the coalitions of one size and summed over sizes.
What ``T`` gives, its complement ``N - T`` takes, so that only ``d(T) = v(T) - v(N - T)`` matters:
pairs are drawn, and interactions of two players cancel. Whatever is drawn, values sum to ``v(N)``.

Budgets too small for that are spent on a few random orders of arrival.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game
from gstarx.graphs import WORD, CommunicationGraph, Masks, compiled, words_for
from gstarx.values.allocation import Allocation, warn_if_noisy, warn_if_unknown, within_range
from gstarx.values.coalition_sampling import small_sample_factor
from gstarx.values.cross_fitting import Membership, corrected, cross_fit, fold_of
from gstarx.values.permutation_sampling import mean_of_units, sampled_from_list
from gstarx.values.shapley import shapley_value
from gstarx.values.worths import (
    WorthLists,
    check_budget,
    evaluate_once,
    everybody,
    listing_limit,
    without,
)

_ONE = np.uint64(1)
#: Random numbers drawn at once (8 MB).
_CELLS = 1 << 20


def shapley_value_sampled(
    v: Game, n: int, *, budget: int, seed: int | np.random.Generator | None = None
) -> Allocation:
    """Estimate the Shapley value of ``n`` players from at most ``budget`` distinct coalitions.

    If all coalitions can be listed, those to evaluate are drawn in proportion to their weights.
    Otherwise they are drawn by size, each with its complement, and a regression on membership
    removes most of the variance: see :mod:`gstarx.values.cross_fitting`. Below two and a half
    evaluations per player, only marginal contributions in random orders are used. In all cases
    additive games are exact, and the values sum to ``v(N)``.

    Parameters
    ----------
    v
        The game.
    n
        Number of players.
    budget
        The most distinct coalitions to evaluate, at least the number of players; the grand
        coalition is one of them. A budget that covers all coalitions gives the exact value.
    seed
        An integer or a numpy generator; the same seed gives the same numbers.

    Returns
    -------
    Allocation
        With standard errors, which are ``nan`` when the budget allowed a single order of arrival,
        or hardly more than single players if coalitions are listed. No value exceeds the range of
        the evaluated worths, as no true one does.

    Warns
    -----
    PrecisionWarning
        When standard errors are unknown or large, or a value had to be clipped to that range.

    Examples
    --------
    >>> from gstarx.games import airport_game
    >>> costs = [1, 1, 2, 3, 3, 4, 5, 6, 6, 7, 8, 8]
    >>> estimate = shapley_value_sampled(airport_game(costs), 12, budget=800, seed=0)
    >>> bool(abs(estimate.values.sum() - 8) < 1e-9)
    True
    """
    budget = check_budget(budget, n)
    if 2**n - 1 <= budget:
        return shapley_value(v, n, max_coalitions=budget)
    generator = np.random.default_rng(seed)
    if 2**n - 1 <= listing_limit(budget, n):
        allocation, span = sampled_from_list(v, CommunicationGraph.complete(n), budget, generator)
        known_from = n + 3
    else:
        plan = _Plan.within(budget, n)
        sampled = _sampled_from_pairs if plan.draws > 1 else _sampled_from_orders
        allocation, span = sampled(v, plan, generator)
        known_from = 2 * n - 1
    values, std_error = allocation.values.reshape(n, -1), allocation.std_error.reshape(n, -1)
    values = within_range(
        values,
        std_error,
        span,
        value="shapley",
        evaluations=allocation.evaluations,
        total=values.sum(axis=0),
    )
    warn_if_unknown(std_error, value="shapley", budget=known_from)
    warn_if_noisy(values, std_error, value="shapley", evaluations=allocation.evaluations)
    return replace(allocation, values=values.reshape(allocation.values.shape))


@dataclass(frozen=True)
class _Plan:
    """Which coalitions to evaluate, each with its complement."""

    n: int
    #: The number of orders of arrival that fit the budget.
    orders: int
    #: All coalitions of fewer players than this are evaluated.
    smallest: int
    #: How many coalitions of at least that size, and at most half of the players, are drawn; zero
    #: if the budget is better spent on orders.
    draws: int

    @classmethod
    def within(cls, budget: int, n: int) -> _Plan:
        """All single players, all of further sizes if they fit their share, the rest drawn."""
        left = (budget - 1) // 2 - n
        plan = cls(n, (budget - 1) // (n - 1), 2, left if 2 * budget >= 5 * n else 0)
        while 2 * plan.smallest < n:
            every = math.comb(n, plan.smallest)
            if every > plan.draws * plan.chances[0]:
                break
            plan = replace(plan, smallest=plan.smallest + 1, draws=plan.draws - every)
        return plan

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Sizes of the coalitions that are drawn."""
        return np.arange(self.smallest, self.n // 2 + 1)

    @property
    def chances(self) -> NDArray[np.float64]:
        """How often to draw each size: in proportion to its share of the standard deviation."""
        chance = counted(self.sizes, self.n) / np.sqrt(self.sizes * (self.n - self.sizes))
        shares: NDArray[np.float64] = chance / chance.sum()
        return shares

    def listed(self) -> tuple[Masks, NDArray[np.int64]]:
        """All coalitions of fewer players than the smallest that are drawn, and their sizes."""
        by_size = [subsets(self.n, size) for size in range(self.smallest)]
        sizes = np.repeat(np.arange(self.smallest), [len(masks) for masks in by_size])
        # the first one is empty
        return np.concatenate(by_size)[1:], sizes[1:]

    def drawn(self, generator: np.random.Generator) -> tuple[Masks, NDArray[np.int64]]:
        """Random coalitions in random order, and their sizes, each as often as its chance says."""
        steps = np.concatenate([[0.0], np.cumsum(self.chances)]) * self.draws
        steps[-1] = self.draws
        times = np.diff(np.floor(steps + generator.random())).astype(np.int64)
        sizes = generator.permutation(np.repeat(self.sizes, times))
        masks = np.zeros((len(sizes), words_for(self.n)), dtype=np.uint64)
        rows = max(1, _CELLS // self.n)
        for first in range(0, len(sizes), rows):
            block = slice(first, first + rows)
            _fill(self.n, sizes[block], generator.random(sizes[block].sum()), masks[block])
        return masks, sizes


def counted(sizes: NDArray[np.int64], n: int) -> NDArray[np.float64]:
    """The weight of a pair of coalitions: one half if both have half of the players, else one."""
    return np.where(2 * sizes == n, 0.5, 1.0)


def subsets(n: int, size: int) -> Masks:
    """All coalitions of a size, packed.

    >>> subsets(3, 2)
    array([[3],
           [5],
           [6]], dtype=uint64)
    """
    members = np.array(list(combinations(range(n), size)), dtype=np.int64)
    masks = np.zeros((len(members), words_for(n)), dtype=np.uint64)
    rows = np.arange(len(members))
    for player in members.T:
        masks[rows, player // WORD] |= _ONE << (player % WORD).astype(np.uint64)
    return masks


@compiled
def _fill(n, sizes, random, masks):  # type: ignore[no-untyped-def]
    """Draw coalitions of given sizes into empty masks, one random number for each member."""
    players = np.arange(n)
    at = 0
    for row in range(len(sizes)):
        for place in range(sizes[row]):
            other = place + np.int64(random[at] * (n - place))
            at += 1
            player = players[other]
            players[other] = players[place]
            players[place] = player
            masks[row, player // WORD] |= _ONE << np.uint64(player % WORD)


def _sampled_from_orders(
    v: Game, plan: _Plan, generator: np.random.Generator
) -> tuple[Allocation, NDArray[np.float64]]:
    """The estimate from marginal contributions, and the span of the evaluated worths."""
    n = plan.n
    singles = subsets(n, 1)
    orders = [generator.permutation(n) for _ in range(plan.orders)]
    evaluated = evaluate_once(v, [np.bitwise_or.accumulate(singles[order]) for order in orders], n)
    added = np.empty((plan.orders, n, evaluated.worths[0].shape[1]))
    for one, order, worths in zip(added, orders, evaluated.worths, strict=True):
        one[order] = np.diff(worths, axis=0, prepend=0.0)
    values, std_error = mean_of_units(added)
    return _allocation(values, std_error, evaluated, evaluated.worths[0][-1])


def _sampled_from_pairs(
    v: Game, plan: _Plan, generator: np.random.Generator
) -> tuple[Allocation, NDArray[np.float64]]:
    """The estimate from coalitions and their complements, and the span of the evaluated worths."""
    n = plan.n
    listed, drawn = plan.listed(), plan.drawn(generator)
    masks, sizes = (np.concatenate(both) for both in zip(listed, drawn, strict=True))
    evaluated = evaluate_once(v, [masks, without(masks, n), everybody(n)], n)
    worths, others, grand_worth = evaluated.worths
    answers = worths - others
    # what single players add, to nobody and to all the others
    alone = (answers[:n] + grand_worth) / 2
    values, variance = _cross_fitted(plan, _regressors(masks, sizes, n), sizes, answers, alone)
    # every term sums to zero over the players
    std_error = np.sqrt(variance) * small_sample_factor(plan.draws)
    return _allocation(values + grand_worth / n, std_error, evaluated, grand_worth[0])


def _allocation(
    values: NDArray[np.float64],
    std_error: NDArray[np.float64],
    evaluated: WorthLists,
    grand_worth: NDArray[np.float64],
) -> tuple[Allocation, NDArray[np.float64]]:
    gap = float(np.abs(values.sum(axis=0) - grand_worth).max(initial=0.0))
    shape = (len(values), *evaluated.shape)
    allocation = Allocation(
        values.reshape(shape), std_error.reshape(shape), False, evaluated.evaluations, gap
    )
    return allocation, evaluated.span


def _regressors(masks: Masks, sizes: NDArray[np.int64], n: int) -> Membership:
    """The regressors for differences of worths: membership and size.

    Players count as such, for networks that sum, and by their share of a coalition, for networks
    that average. Odd functions of the size remove what all players of a coalition have in common;
    their values are 0.
    """
    size = sizes.astype(np.float64)
    lean = 2 * size / n - 1
    by_size = np.stack([lean, lean**3, 1 / size - 1 / (n - size)], axis=1)
    return Membership(masks, n, size / n, _scales(size, n), math.sqrt(n) * by_size)


def _scales(size: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """The scales of a member for sums and for averages, relative to the complement."""
    return np.stack([np.full_like(size, 2.0), n**2 / (2 * size * (n - size))], axis=1)


def _cross_fitted(
    plan: _Plan,
    rows: Membership,
    sizes: NDArray[np.int64],
    answers: NDArray[np.float64],
    alone: NDArray[np.float64],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values (n, q) that sum to zero, and their variance, from listed and drawn pairs."""
    n, certain = plan.n, len(sizes) - plan.draws
    fold = fold_of(plan.draws, players=n)
    held = np.zeros((len(sizes), fold.max() + 1))
    held[np.arange(certain, len(sizes)), fold] = 1.0
    start = np.zeros((rows.width, answers.shape[1]))
    start[:n] = alone
    # counted from one half instead of from its share, every player has a part in the lean
    start[2 * n] = alone.sum(axis=0) / math.sqrt(n)
    fit = cross_fit(rows, answers, 1.0 - held, held, start=start)
    base = _surrogate_values(fit.coefficients[: 2 * n], n)
    # a unit of worth gives 1 / t to every member and takes 1 / (n - t) from the others
    worth = n / (sizes * (n - sizes))
    each = np.array([math.comb(n, size) for size in range(plan.smallest)], dtype=np.float64)
    sure = (worth[:certain] / each[sizes[:certain]])[:, None, None] * fit.residuals[:certain]
    base += rows[:certain].shares(sure)
    left = sizes[certain:]
    weights = worth[certain:] * counted(left, n) / plan.chances[left - plan.smallest]
    return corrected(rows[certain:], weights, fit.residuals[certain:], base)


def _surrogate_values(coefficients: NDArray[np.float64], n: int) -> NDArray[np.float64]:
    """Shapley values that sum to zero of games with such differences: (n, folds, q)."""
    sizes = np.arange(1, n // 2 + 1)
    share = counted(sizes, n) @ _scales(sizes.astype(np.float64), n) / (n - 1)
    by_scale = coefficients.reshape(2, n, *coefficients.shape[1:])
    values = np.tensordot(share, by_scale, axes=1)
    values -= values.mean(axis=0)
    return values
