"""Comparison of explainers on the same graphs, and of runs of one explainer: its robustness."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import combinations

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch_geometric.data import Data

from gstarx.gnn import roles_of
from gstarx.metrics.ground_truth import ranks_of
from gstarx.metrics.selection import as_scores

#: A function from a graph to a score per node.
Explain = Callable[[Data], ArrayLike]
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


@dataclass(frozen=True)
class Stability:
    """How much the scores of one graph vary between runs.

    Attributes
    ----------
    largest
        Largest difference of a node's score between two runs.
    correlation
        Mean rank correlation between two runs, 1 if all agree on the order.
    runs
        Number of runs.
    """

    largest: float
    correlation: float
    runs: int


def relabeling_stability(
    explain: Explain,
    data: Data,
    *,
    repeats: int = 5,
    seed: int | np.random.Generator | None = None,
) -> Stability:
    """How stable scores are when the nodes are renumbered, which should not change them.

    Parameters
    ----------
    explain
        From a graph to a score per node, seeded if it draws anything.
    data
        The graph.
    repeats
        Random numberings to try, in addition to the original one.
    seed
        Of the numberings.
    """
    generator = np.random.default_rng(seed)
    count = int(data.num_nodes or 0)
    runs = [as_scores(explain(data), count)]
    for _ in range(repeats):
        order = generator.permutation(count)
        scores = np.empty(count)
        scores[order] = as_scores(explain(renumbered(data, order)), count)
        runs.append(scores)
    return _stability(runs)


def seed_stability(
    explain: Callable[[Data, int], ArrayLike], data: Data, seeds: Iterable[int] = range(5)
) -> Stability:
    """How much scores depend on the seed: ``explain(data, seed)`` for each seed."""
    count = int(data.num_nodes or 0)
    return _stability([as_scores(explain(data, seed), count) for seed in seeds])


def renumbered(data: Data, order: NDArray[np.int64]) -> Data:
    """The same graph with its nodes in another order: new node ``i`` is old node ``order[i]``."""
    place = np.empty(len(order), dtype=np.int64)
    place[order] = np.arange(len(order))
    moved = copy.copy(data)
    taken, there = torch.from_numpy(np.asarray(order)), torch.from_numpy(place)
    roles = roles_of(data) | {"edge_index": "ids"}
    if "edge_label_index" in data:
        roles["edge_label_index"] = "ids"
    for key, role in roles.items():
        if role == "ids":
            moved[key] = there.to(data[key].device)[data[key]]
        elif role == "node":
            moved[key] = data[key][taken.to(data[key].device)]
    return moved


def randomization_check(
    explain: Callable[[nn.Module, Data], ArrayLike],
    model: nn.Module,
    data: Data,
    *,
    repeats: int = 3,
    seed: int = 0,
) -> float:
    """Rank correlation of scores with those of the same network with shuffled weights.

    The scores of an explainer must depend on what the model has learned (Adebayo et al., "Sanity
    Checks for Saliency Maps", NeurIPS 2018). A correlation near 1 means that they depend on the
    graph only; it need not be 0, because a random network sees the same graph.

    Parameters
    ----------
    explain
        From a model and a graph to a score per node.
    model
        The model; a copy of it is shuffled.
    data
        The graph.
    repeats
        Number of shuffles to average over.
    seed
        Of the shuffles.
    """
    if repeats < 1:
        raise ValueError(f"repeats must be at least 1 (got {repeats!r})")
    count = int(data.num_nodes or 0)
    real = as_scores(explain(model, data), count)
    generator = torch.Generator().manual_seed(seed)
    correlations = []
    for _ in range(repeats):
        shuffled = copy.deepcopy(model)
        with torch.no_grad():
            for parameter in shuffled.parameters():
                flat = parameter.reshape(-1)
                order = torch.randperm(flat.numel(), generator=generator).to(flat.device)
                parameter.copy_(flat[order].reshape(parameter.shape))
        correlations.append(rank_correlation(real, as_scores(explain(shuffled, data), count)))
    return float(np.mean(correlations))


def rank_correlation(first: ArrayLike, second: ArrayLike) -> float:
    """Spearman's rank correlation; ties get their mean rank. 1 for two constant columns, else 0.

    >>> round(rank_correlation([1, 2, 3], [10, 30, 20]), 6)
    0.5
    """
    one, other = (ranks_of(as_scores(column)) for column in (first, second))
    if len(one) != len(other) or not len(one):
        raise ValueError(
            f"columns must be equally long and not empty (got {len(one)} and {len(other)})"
        )
    one, other = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((one**2).sum() * (other**2).sum()))
    if scale == 0:
        return 1.0 if not one.any() and not other.any() else 0.0
    return float((one * other).sum() / scale)


def _stability(runs: list[NDArray[np.float64]]) -> Stability:
    if len(runs) < 2:
        raise ValueError(f"at least two runs are needed to compare (got {len(runs)})")
    table = np.array(runs)
    pairs = [rank_correlation(one, other) for one, other in combinations(runs, 2)]
    largest = float((table.max(axis=0) - table.min(axis=0)).max(initial=0.0))
    return Stability(largest, float(np.mean(pairs)), len(runs))
