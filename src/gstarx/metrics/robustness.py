"""Robustness: to partial deletion, renumbered nodes, other seeds and shuffled weights."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import nn
from torch_geometric.data import Data

from gstarx.gnn import Model, roles_of
from gstarx.metrics.faithfulness import NodesLike, as_parts, losses
from gstarx.metrics.probabilities import PartTask, part_probabilities
from gstarx.metrics.reference import Reference
from gstarx.metrics.selection import as_scores

#: A function from a graph to a score per node.
Explain = Callable[[Data], ArrayLike]


@dataclass(frozen=True)
class RobustFidelity:
    """Fidelities under random partial deletion, with their standard errors.

    Attributes
    ----------
    fidelity, inverse_fidelity
        Means over the random deletions.
    fidelity_std_error, inverse_fidelity_std_error
        Standard errors of these means.
    """

    fidelity: float
    inverse_fidelity: float
    fidelity_std_error: float
    inverse_fidelity_std_error: float


def robust_fidelity(
    model: Model,
    data: Data,
    nodes: NodesLike,
    *,
    delete_inside: float = 0.1,
    delete_outside: float = 0.9,
    samples: int = 50,
    seed: int | np.random.Generator | None = None,
    target: int | None = None,
    removal: Any = "remove",
    mode: str = "multiclass_classification",
    task_level: str = "graph",
    return_type: str = "raw",
    index: int | None = None,
    node_type: str | None = None,
    num_hops: int | None = None,
    batch_nodes: int | None = None,
    keywords: Sequence[str] | None = None,
    reference: Reference | None = None,
) -> RobustFidelity:
    """Fidelity under random partial deletion, which stays closer to graphs the model has seen.

    For the fidelity, every selected node is deleted with probability ``delete_inside``; for the
    inverse fidelity, every other node with probability ``delete_outside`` (Zheng et al., "Towards
    Robust Fidelity for Evaluating Explainability of Graph Neural Networks", ICLR 2024, there for
    edges). If both probabilities are 1, these are the plain fidelities.

    Parameters
    ----------
    model, data, nodes, target, removal,
    mode, task_level, return_type, index, node_type, num_hops, batch_nodes, keywords, reference
        As for :func:`gstarx.metrics.evaluate`.
    delete_inside, delete_outside
        Probabilities of deletion, in [0, 1].
    samples
        Random deletions of each kind.
    seed
        The same seed gives the same numbers.
    """
    for name, chance in (("delete_inside", delete_inside), ("delete_outside", delete_outside)):
        if not 0 <= chance <= 1:
            raise ValueError(f"{name} must lie in [0, 1] (got {chance!r})")
    if samples < 1:
        raise ValueError(f"samples must be at least 1 (got {samples!r})")
    generator = np.random.default_rng(seed)
    (inside,) = as_parts(data, [nodes])
    shape = (samples, len(inside))
    without = ~(inside & (generator.random(shape) < delete_inside))
    alone = inside | (generator.random(shape) >= delete_outside)
    task = PartTask.among(locals())
    parts = np.concatenate([without, alone])
    (probabilities,) = part_probabilities(model, [data], [parts], [target], task)
    target_class = probabilities.target
    lost = probabilities.whole[target_class] - probabilities.parts[:, target_class]
    one, other = np.split(losses(lost, probabilities.signed_range), 2)
    return RobustFidelity(
        float(one.mean()), float(other.mean()), _std_error(one), _std_error(other)
    )


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
    one, other = (_ranks(as_scores(column)) for column in (first, second))
    if len(one) != len(other) or not len(one):
        raise ValueError(
            f"columns must be equally long and not empty (got {len(one)} and {len(other)})"
        )
    one, other = one - one.mean(), other - other.mean()
    scale = float(np.sqrt((one**2).sum() * (other**2).sum()))
    if scale == 0:
        return 1.0 if not one.any() and not other.any() else 0.0
    return float((one * other).sum() / scale)


def _ranks(values: NDArray[np.float64]) -> NDArray[np.float64]:
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(count) - (count - 1) / 2)[place]
    return ranks


def _stability(runs: list[NDArray[np.float64]]) -> Stability:
    if len(runs) < 2:
        raise ValueError(f"at least two runs are needed to compare (got {len(runs)})")
    table = np.array(runs)
    pairs = [rank_correlation(one, other) for one, other in combinations(runs, 2)]
    largest = float((table.max(axis=0) - table.min(axis=0)).max(initial=0.0))
    return Stability(largest, float(np.mean(pairs)), len(runs))


def _std_error(values: NDArray[np.float64]) -> float:
    return float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else float("nan")
