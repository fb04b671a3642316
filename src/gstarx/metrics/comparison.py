"""Paired comparison of two explainers on the same graphs, with a confidence interval."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

_RESAMPLES_TOGETHER = 1 << 22


@dataclass(frozen=True)
class Difference:
    """The paired difference between two explainers.

    Attributes
    ----------
    mean
        Mean difference, first minus second.
    low, high
        Bootstrap interval of the mean.
    confidence
        The confidence of that interval.
    p_value
        Two-sided p-value: how often resampled means fall on the other side of zero.
    count
        Number of graphs.
    """

    mean: float
    low: float
    high: float
    confidence: float
    p_value: float
    count: int

    def __str__(self) -> str:
        return f"{self.mean:+.4f} [{self.low:+.4f}, {self.high:+.4f}] over {self.count} graphs"


def paired_bootstrap(
    first: ArrayLike,
    second: ArrayLike,
    *,
    confidence: float = 0.95,
    resamples: int = 10_000,
    seed: int | np.random.Generator | None = None,
) -> Difference:
    """Compare two explainers on the same graphs by resampling the graphs.

    Parameters
    ----------
    first, second
        A number per graph from each of them, in the same order.
    confidence
        Of the percentile interval.
    resamples
        Number of bootstrap resamples of the graphs, with replacement.
    seed
        An integer or a numpy generator; the same seed gives the same interval.

    Examples
    --------
    >>> print(paired_bootstrap([0.7, 0.8, 0.6], [0.5, 0.6, 0.5], seed=0))
    +0.1667 [+0.1000, +0.2000] over 3 graphs
    """
    one, other = _column(first, "first"), _column(second, "second")
    if len(one) != len(other):
        raise ValueError(
            "first and second must have a number for each of the same graphs "
            f"(got {len(one)} and {len(other)})"
        )
    if not 0 < confidence < 1:
        raise ValueError(f"confidence must lie between 0 and 1 (got {confidence!r})")
    if resamples < 1:
        raise ValueError(f"resamples must be at least 1 (got {resamples!r})")
    differences = one - other
    means = _resampled_means(differences, resamples, np.random.default_rng(seed))
    low, high = np.quantile(means, [(1 - confidence) / 2, (1 + confidence) / 2])
    # one is added to each side, so that no finite number of resamples gives certainty
    below, above = ((means <= 0).sum() + 1, (means >= 0).sum() + 1)
    p_value = min(1.0, 2 * min(below, above) / (resamples + 1))
    return Difference(
        float(differences.mean()), float(low), float(high), confidence, float(p_value), len(one)
    )


def share_of_gap(value: float, random: float, best: float) -> float:
    """The share of the gap between a random selection and the best one that a value closes.

    >>> share_of_gap(0.6, random=0.5, best=0.7)
    0.5
    """
    if not best > random:
        raise ValueError(f"best must be above random (got {best!r} and {random!r})")
    return round((value - random) / (best - random), 12)


def _resampled_means(
    numbers: NDArray[np.float64], resamples: int, generator: np.random.Generator
) -> NDArray[np.float64]:
    rows = max(1, _RESAMPLES_TOGETHER // len(numbers))
    means = []
    for done in range(0, resamples, rows):
        drawn = generator.integers(len(numbers), size=(min(rows, resamples - done), len(numbers)))
        means.append(numbers[drawn].mean(axis=1))
    return np.concatenate(means)


def _column(numbers: ArrayLike, name: str) -> NDArray[np.float64]:
    column = np.asarray(numbers, dtype=np.float64)
    if column.ndim != 1 or not len(column):
        raise ValueError(f"{name} must be a number per graph, shape (k,) (got {column.shape})")
    if not np.isfinite(column).all():
        raise ValueError(f"{name} must be finite (got {column[~np.isfinite(column)][0]})")
    return column
