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
from gstarx.values.surrogate import Features, Surrogate
from gstarx.values.worths import in_columns, worth_span

#: Weights copied at once (8 MB).
_CELLS = 1 << 20


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

    def total(
        self, rows: NDArray[np.int64], numbers: NDArray[np.float64], *, power: int = 1
    ) -> NDArray[np.float64]:
        """Powers of the weights of some rows, in order, transposed times numbers (rows, q)."""
        total = np.zeros((self.num_nodes, numbers.shape[1]))
        begin = 0
        for nodes, weights in self.blocks:
            first, last = np.searchsorted(rows, (begin, begin + len(weights)))
            step = max(1, _CELLS // max(1, len(nodes)))
            for at in range(int(first), int(last), step):
                chunk = slice(at, min(at + step, int(last)))
                total[nodes] += (weights[rows[chunk] - begin] ** power).T @ numbers[chunk]
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
    value_of: Callable[[Surrogate], NDArray[np.float64]] | None = None,
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
    value_of
        The sum (n, q) over all coalitions of a surrogate's worths; by default over ``masks``.
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
    surrogate = Surrogate.fit(features, masks[drawn], worths, importance)
    if value_of is None:
        values = table.total(np.arange(len(masks)), surrogate.predict(masks))
    else:
        values = value_of(surrogate)
    residual = worths - surrogate.predict(masks[drawn])
    values = values + table.total(drawn, residual * odds[:, None])
    spread = table.total(drawn, surrogate.left_out**2 * (left * odds**2)[:, None], power=2)
    open_rows = int((left > 0).sum())
    # a single draw says nothing about its own spread, unless there was nothing else to draw
    known = open_rows > 1 or len(drawn) == len(masks)
    widened = small_sample_factor(max(2, open_rows)) ** 2 if known else np.nan
    variance = spread * (open_rows / max(1, open_rows - 1)) * widened
    place = np.searchsorted(drawn, certain)
    return WeightedSum(
        values, variance, surrogate, evaluated[place], len(drawn), worth_span(worths)
    )


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
    if draws < 2:
        return float("nan")
    freedom = draws - 1
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
