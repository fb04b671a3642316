"""Estimating a weighted sum over very many coalitions from a few of them.

Every value here is linear: ``phi = sum over T of weights(T) v(T)``. If the weights are known and
the worths are expensive, survey sampling applies:

1. draw coalitions with probability proportional to the norm of their weights, those that would get
   a probability above one with certainty (systematic sampling, which also spreads the sample over
   similar coalitions);
2. fit a surrogate to the worths that were drawn, sum the surrogate over *all* coalitions, and
   correct by the weighted residuals of the drawn ones (the difference estimator of Särndal,
   Swensson and Wretman, "Model Assisted Survey Sampling", 1992). A bad surrogate costs accuracy,
   never consistency: for one fixed in advance the estimate is unbiased, and fitting it to the same
   draws adds a bias that vanishes as they become many.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, Worths, evaluate_masks
from gstarx.graphs import CommunicationGraph, Masks, unpack
from gstarx.values.surrogate import Features, FittedSurrogate, Surrogate
from gstarx.values.worths import in_columns, worth_span

#: Weights copied at once (8 MB).
_CELLS = 1 << 20
#: Student's distribution with fewer degrees of freedom has no variance.
_LEAST_FREEDOM = 3


@dataclass(frozen=True)
class Weights:
    """Weights (k, n) of coalitions, stored only for the nodes of their own component."""

    num_nodes: int
    #: Nodes (c,) and weights (j, c) of successive rows; all other weights of these rows are zero.
    blocks: tuple[tuple[NDArray[np.int64], NDArray[np.float64]], ...]

    @classmethod
    def of(cls, weights: NDArray[np.float64]) -> Weights:
        """Weights that are kept for all nodes."""
        n = weights.shape[1]
        return cls(n, ((np.arange(n), weights),))

    @property
    def norms(self) -> NDArray[np.float64]:
        """The norm of every row, (k,)."""
        return np.concatenate(
            [np.sqrt(np.einsum("ij,ij->i", weights, weights)) for _, weights in self.blocks]
        )

    def rows(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """The weights of some rows, in order, for all nodes."""
        out = np.zeros((len(rows), self.num_nodes))
        begin = 0
        for nodes, weights in self.blocks:
            first, last = np.searchsorted(rows, (begin, begin + len(weights)))
            out[first:last, nodes] = weights[rows[first:last] - begin]
            begin += len(weights)
        return out

    def total(self, rows: NDArray[np.int64], numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The weights of some rows, in order, transposed times numbers (rows, q)."""
        total = np.zeros((self.num_nodes, numbers.shape[1]))
        begin = 0
        for nodes, weights in self.blocks:
            first, last = np.searchsorted(rows, (begin, begin + len(weights)))
            step = max(1, _CELLS // max(1, len(nodes)))
            for at in range(int(first), int(last), step):
                chunk = slice(at, min(at + step, int(last)))
                total[nodes] += weights[rows[chunk] - begin].T @ numbers[chunk]
            begin += len(weights)
        return total


@dataclass(frozen=True)
class WeightedSum:
    """An estimate of ``sum over T of weights(T) v(T)``."""

    #: (n, q)
    values: NDArray[np.float64]
    #: Variance of ``values`` due to drawing coalitions, (n, q).
    variance: NDArray[np.float64]
    surrogate: Surrogate
    #: Worths of the rows in ``certain``, in their own shape: (c,) or (c, q).
    certain_worths: Worths
    evaluations: int
    #: Largest minus smallest of the evaluated worths, (q,).
    span: NDArray[np.float64]


def estimate_sum(
    v: Game,
    masks: Masks,
    weights: NDArray[np.float64] | Weights,
    graph: CommunicationGraph,
    *,
    budget: int,
    certain: NDArray[np.int64],
    generator: np.random.Generator,
    times: NDArray[np.float64] | None = None,
    values_of: Callable[[Features], NDArray[np.float64]] | None = None,
) -> WeightedSum:
    """Estimate ``weights.T @ v`` from at most ``budget`` evaluated coalitions.

    Parameters
    ----------
    v
        The game.
    masks
        Distinct packed coalitions (k, words).
    weights
        Their weights, (k, n).
    graph
        Supplies the patterns the surrogate looks for.
    budget
        Coalitions to evaluate, at least ``len(certain)``.
    certain
        Rows that are evaluated whatever their weight.
    generator
        Source of randomness.
    times
        If the coalitions are themselves a random draw from very many: how often each was drawn,
        (k,); infinite for those whose weights are exact, which is the default for all.
    values_of
        The sums (n, width) over all coalitions of their features; by default over ``masks``.
    """
    table = weights if isinstance(weights, Weights) else Weights.of(weights)
    norms = table.norms
    chance = inclusion_chances(norms, budget, certain)
    drawn = systematic_sample(chance, generator)
    evaluated = evaluate_masks(v, masks[drawn], graph.num_nodes)
    worths = in_columns(evaluated)
    kept, odds = chance[drawn], 1.0 / chance[drawn]
    # two random choices: whether a row is evaluated, and whether it was drawn at all
    left = 1.0 - kept if times is None else 1.0 - kept + kept / times[drawn]
    # coalitions whose residuals get the largest factors are fitted best
    importance = norms[drawn] ** 2 * (left + 1e-2 * kept) * odds**2
    features = Features.choose(graph, len(drawn))
    fitted = Surrogate.fit(features, masks[drawn], worths, importance)
    if values_of is None:
        of_features = np.zeros((graph.num_nodes, features.width))
        for block, design in features.blocks(masks):
            of_features += table.total(np.arange(len(masks))[block], design)
    else:
        of_features = values_of(features)
    values = of_features @ fitted.coefficients
    values += table.total(drawn, fitted.residuals * odds[:, None])
    variance = _variance(table, drawn, odds, left, fitted, of_features)
    # a single draw says nothing about its own spread, unless there was nothing else to draw
    if (left > 0).sum() < 2 and len(drawn) < len(masks):
        variance[:] = np.nan
    place = np.searchsorted(drawn, certain)
    return WeightedSum(values, variance, fitted, evaluated[place], len(drawn), worth_span(worths))


def _variance(
    table: Weights,
    drawn: NDArray[np.int64],
    odds: NDArray[np.float64],
    left: NDArray[np.float64],
    fitted: FittedSurrogate,
    of_features: NDArray[np.float64],
) -> NDArray[np.float64]:
    """The variance (n, q) of the estimate, from residuals and the weights that worths end up with.

    A drawn worth counts directly, by its weight over its chance, and through the fit, which takes
    back much of that if there are many features for the draws. Squared residuals are divided by
    what the fit leaves of their variance. Student's distribution has as many degrees of freedom as
    Satterthwaite's rule gives a variance that is summed from these squares (Bell and McCaffrey,
    "Bias reduction in standard errors for linear regression with multi-stage samples", 2002).

    Where they are fewer than three, the fit leaves next to nothing to estimate a variance from.
    Leave-one-out residuals and the direct weights alone then give one that is too large.
    """
    n, games = len(of_features), fitted.residuals.shape[1]
    direct = np.zeros_like(of_features)
    for block, design in fitted.design.blocks():
        direct += table.total(drawn[block], design * odds[block, None])
    # through the fit, draws make up for what they miss of the features
    steps = fitted.inverse @ (of_features - direct).T
    squares = fitted.residuals**2 / fitted.remaining[:, None]
    left_out = fitted.residuals / np.maximum(1.0 - fitted.leverage, 1e-6)[:, None]
    variance, cautious = np.zeros((2, n, games))
    # the variance of the weights alone, and half the variance of that, for residuals around one
    mean, spread = np.zeros((2, n, 1))
    for block, design in fitted.design.blocks():
        weights = table.rows(drawn[block]) * odds[block, None]
        cautious += (weights**2).T @ (left_out[block] ** 2 * left[block, None])
        weights += fitted.weight[block] * (design @ steps)
        shares = left[block, None] * weights**2
        variance += shares.T @ squares[block]
        mean[:, 0] += shares.sum(axis=0)
        spread[:, 0] += (shares**2).T @ (1.0 / fitted.remaining[block])
    freedom = mean**2 / np.where(spread > 0, spread, 1.0)
    draws = max(2, int((left > 0).sum()))
    cautious *= draws / (draws - 1) * small_sample_factor(draws) ** 2
    widened = variance * student_factor(np.maximum(freedom, 1.0)) ** 2
    return np.where(freedom < _LEAST_FREEDOM, cautious, widened)


def certain_rows(
    masks: Masks, tops: NDArray[np.int64], num_nodes: int, budget: int
) -> NDArray[np.int64]:
    """Rows that are always evaluated: whole components, for efficiency, and single nodes.

    Together they determine every additive game. A budget too small for all of them leaves out one
    node of every component, which the others determine.
    """
    singles = np.flatnonzero(np.bitwise_count(masks).sum(axis=1) == 1)
    certain = np.union1d(tops, singles)
    if len(certain) > budget:
        components, alone = unpack(masks[tops], num_nodes), unpack(masks[singles], num_nodes)
        component = np.argmax(components[:, np.argmax(alone, axis=1)], axis=0)
        _, first = np.unique(component, return_index=True)
        certain = np.setdiff1d(certain, np.setdiff1d(singles[first], tops))
    return certain


def small_sample_factor(draws: int) -> float:
    """The factor that widens a standard error estimated from few draws, for correct coverage.

    The ratio of the quantiles of Student's and the normal distribution at two standard errors
    (the Cornish-Fisher expansion in Abramowitz and Stegun, 26.7.5); ``nan`` for a single draw.

    >>> round(small_sample_factor(11), 2), small_sample_factor(10_000) < 1.001
    (1.14, True)
    """
    return float(student_factor(np.array(draws - 1.0))) if draws > 1 else float("nan")


def student_factor(freedom: NDArray[np.float64]) -> NDArray[np.float64]:
    """The same for a variance with so many degrees of freedom."""
    return 1.0 + 1.25 / freedom + 1.53 / freedom**2


def inclusion_chances(
    size: NDArray[np.float64], budget: int, certain: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Chances proportional to ``size``, none above one, that sum to ``budget``.

    >>> inclusion_chances(np.array([4.0, 1.0, 1.0]), 2, np.array([], dtype=int))
    array([1. , 0.5, 0.5])
    """
    surely = np.zeros(len(size), dtype=np.bool_)
    surely[certain] = True
    # no chance may be 0, or the estimate would be biased
    size = np.maximum(size, 1e-9 * size.max(initial=0.0) + 1e-300)
    while True:
        rest = ~surely
        chance = size * ((budget - surely.sum()) / max(size[rest].sum(), 1e-300))
        # within rounding of one is one
        grown = rest & (chance >= 1.0 - 1e-12)
        if not grown.any():
            return np.where(surely, 1.0, np.minimum(chance, 1.0))
        surely |= grown


def systematic_sample(
    chance: NDArray[np.float64], generator: np.random.Generator
) -> NDArray[np.int64]:
    """Draw rows with the given chances, as many as they sum to, spread evenly over the order."""
    # certain rows are not left to rounding
    open_rows = np.flatnonzero(chance < 1.0)
    steps = np.cumsum(chance[open_rows])
    start = generator.random()
    total = float(steps[-1]) if len(steps) else 0.0
    crossed = np.floor(steps + start)
    # a sum that should be an integer is made one, so that the size of the sample is certain
    if total > 0 and abs(total - round(total)) < 1e-6 * max(1.0, total):
        crossed = np.floor(steps * (round(total) / total) + start)
        crossed[-1] = round(total)
        np.minimum(crossed, round(total), out=crossed)
    drawn = open_rows[np.diff(crossed, prepend=0.0) > 0]
    return np.union1d(np.flatnonzero(chance >= 1.0), drawn)
