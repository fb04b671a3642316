"""Is the explanation true: the paper's fidelities (section 5.1 and Appendix A.3).

One evaluator for every method: the model, the graph, the nodes and the way of removing nodes are
arguments, and nothing is taken from the explainer.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from gstarx.gnn import Model, check_data
from gstarx.metrics.probabilities import Parts, PartTask, part_probabilities
from gstarx.metrics.selection import as_mask

#: One set of nodes: ids, or a boolean mask.
NodesLike = ArrayLike


@dataclass(frozen=True)
class Faithfulness:
    """How true a set of nodes is to the model's prediction; each field is the metric of its name.

    Attributes
    ----------
    fidelity
        What the prediction loses without the nodes (necessary); higher is better.
    inverse_fidelity
        What it loses with nothing but them (sufficient); lower is better.
    sparsity
        The share of nodes left out; higher is better at equal fidelity.
    normalized_fidelity, normalized_inverse_fidelity
        Fidelity times sparsity, inverse fidelity times one less sparsity.
    harmonic_fidelity
        Both in one number between 0 and 1. Doing nothing scores about 0.5.
    """

    fidelity: float
    inverse_fidelity: float
    sparsity: float
    normalized_fidelity: float
    normalized_inverse_fidelity: float
    harmonic_fidelity: float

    @classmethod
    def of(cls, whole: float, without: float, alone: float, sparsity: float) -> Faithfulness:
        """From the probabilities of the whole graph, of what is left, and of the nodes alone.

        >>> Faithfulness.of(whole=0.9, without=0.3, alone=0.8, sparsity=0.75).harmonic_fidelity
        0.583...
        """
        return cls(*(float(m) for m in metrics_of(whole, without, alone, sparsity)))


METRICS = tuple(field.name for field in fields(Faithfulness))


def metrics_of(whole: Any, without: Any, alone: Any, sparsity: Any) -> tuple[Any, ...]:
    """All metrics, in the order of :data:`METRICS`, from numbers or equally long arrays."""
    fidelity, inverse = whole - without, whole - alone
    necessary, sufficient = fidelity * sparsity, inverse * (1 - sparsity)
    harmonic = harmonic_mean_of(necessary, sufficient)
    return fidelity, inverse, sparsity, necessary, sufficient, harmonic


def harmonic_mean_of(necessary: Any, sufficient: Any) -> Any:
    """The paper's H-fidelity from its normalized fidelity and inverse fidelity, both in [-1, 1].

    The harmonic mean of ``(1 + necessary) / 2`` and ``(1 - sufficient) / 2``.

    >>> harmonic_mean_of(0.0, 0.0), harmonic_mean_of(1.0, -1.0), harmonic_mean_of(-1.0, 0.3)
    (0.5, 1.0, 0.0)
    """
    up, down = 1 + np.asarray(necessary), 1 - np.asarray(sufficient)
    total = up + down
    # where both are at their worst there is nothing to divide by, and nothing to divide
    found = up * down / np.where(total > 0, total, 1.0)
    return float(found) if found.ndim == 0 else found


def evaluate(
    model: Model,
    data: Data,
    nodes: NodesLike,
    *,
    target: int | None = None,
    removal: Any = "remove",
    mode: str = "multiclass_classification",
    task_level: str = "graph",
    return_type: str = "raw",
    index: int | None = None,
    num_hops: int | None = None,
    batch_nodes: int | None = None,
    keywords: Sequence[str] | None = None,
) -> Faithfulness:
    """All metrics of a set of nodes.

    Parameters
    ----------
    model
        Any PyG model or callable, as for :class:`gstarx.GNNGame`; left exactly as it was.
    data
        One graph.
    nodes
        Node ids, or a boolean mask over the nodes.
    target
        The class in question; by default the predicted one.
    removal
        What it means that a node is not there: ``"remove"``, ``"split"``, ``"zero_filling"``, or a
        function. One and the same for all explainers that are compared.
    mode, task_level, return_type, keywords
        What the model does, as for :func:`gstarx.explain`.
    index, num_hops
        For node and edge tasks, where the nodes around the target are what can be selected and
        sparsity is the share of them.
    batch_nodes
        Nodes per forward pass.

    Notes
    -----
    As published, nothing at all has probability 0: without nodes the inverse fidelity is the whole
    probability, and with all of them the fidelity is.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.nn import global_mean_pool
    >>> def model(x, edge_index, batch):  # the mean feature is the chance of class 1
    ...     chance = global_mean_pool(x, batch)
    ...     return torch.cat([1 - chance, chance], 1).log()
    >>> data = Data(x=torch.tensor([[1.0], [0.5]]), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> found = evaluate(model, data, [0])
    >>> round(found.fidelity, 6), round(found.inverse_fidelity, 6), found.sparsity
    (0.25, -0.25, 0.5)
    """
    task = PartTask(
        mode, task_level, return_type, None, index, keywords, removal, num_hops, batch_nodes
    )
    return _evaluated(model, [data], [[nodes]], [target], task)[0][0]


def evaluate_many(
    model: Model,
    graphs: Iterable[Data],
    selections: Iterable[Any],
    *,
    target: int | Sequence[int | None] | None = None,
    removal: Any = "remove",
    mode: str = "multiclass_classification",
    task_level: str = "graph",
    return_type: str = "raw",
    index: int | None = None,
    num_hops: int | None = None,
    batch_nodes: int | None = None,
    keywords: Sequence[str] | None = None,
) -> list[Any]:
    """All metrics of many sets of nodes of many graphs, in few forward passes.

    Parameters
    ----------
    model, removal, mode, task_level, return_type, index, num_hops, batch_nodes, keywords
        As for :func:`evaluate`.
    graphs
        The graphs.
    selections
        For every graph a set of nodes, or a list of sets (one for every sparsity, say).
    target
        The class in question for all graphs, or one for each; by default the predicted one.

    Returns
    -------
    list
        For every graph a :class:`Faithfulness`, or a list of them where it had a list of sets.
    """
    listed, chosen = list(graphs), list(selections)
    if len(listed) != len(chosen):
        raise ValueError(
            f"selections must have an entry for each of {len(listed)} graphs (got {len(chosen)})"
        )
    targets = _one_for_each(target, len(listed))
    several = [_are_sets(entry) for entry in chosen]
    sets = [list(e) if many else [e] for e, many in zip(chosen, several, strict=True)]
    task = PartTask(
        mode, task_level, return_type, None, index, keywords, removal, num_hops, batch_nodes
    )
    found = _evaluated(model, listed, sets, targets, task)
    return [own if many else own[0] for own, many in zip(found, several, strict=True)]


def average(results: Iterable[Faithfulness]) -> Faithfulness:
    """The mean of every metric over graphs: of their own values, as the paper averages.

    >>> average([Faithfulness.of(1.0, 0.0, 1.0, 0.5), Faithfulness.of(1.0, 1.0, 1.0, 0.5)]).fidelity
    0.5
    """
    rows = [astuple(result) for result in results]
    if not rows:
        raise ValueError("there is nothing to average: got no results")
    return Faithfulness(*(float(mean) for mean in np.mean(rows, axis=0)))


def sparsity(data: Data, nodes: NodesLike) -> float:
    """The share of nodes left out: ``1 - |S| / |V|`` (section 5.1).

    >>> sparsity(Data(num_nodes=4), [2])
    0.75
    """
    count = int(data.num_nodes or 0)
    return 1 - int(as_mask(nodes, count).sum()) / max(count, 1)


def harmonic_fidelity(
    model: Model,
    data: Data,
    nodes: NodesLike,
    *,
    target: int | None = None,
    removal: Any = "remove",
    mode: str = "multiclass_classification",
    task_level: str = "graph",
    return_type: str = "raw",
    index: int | None = None,
    num_hops: int | None = None,
    batch_nodes: int | None = None,
    keywords: Sequence[str] | None = None,
) -> float:
    """Both fidelities, weighed by sparsity, in one number between 0 and 1 (Appendix A.3)."""
    return evaluate(
        model,
        data,
        nodes,
        target=target,
        removal=removal,
        mode=mode,
        task_level=task_level,
        return_type=return_type,
        index=index,
        num_hops=num_hops,
        batch_nodes=batch_nodes,
        keywords=keywords,
    ).harmonic_fidelity


def as_parts(data: Data, sets: Sequence[NodesLike]) -> NDArray[np.bool_]:
    """Sets of nodes of a graph, which is checked first, as boolean rows (k, n)."""
    count = int(check_data(data).num_nodes or 0)
    return np.array([as_mask(nodes, count) for nodes in sets]).reshape(len(sets), count)


def judged(found: Parts, inside: NDArray[np.bool_]) -> list[Faithfulness]:
    """The metrics of boolean sets (k, n), whose parts are first all sets, then all complements."""
    kept = inside[:, found.players]
    whole = found.whole[found.target]
    alone, without = found.parts[: len(kept), found.target], found.parts[len(kept) :, found.target]
    shares = 1 - kept.sum(axis=1) / max(kept.shape[1], 1)
    rows = np.stack(metrics_of(whole, without, alone, shares), axis=1)
    return [Faithfulness(*row) for row in rows.tolist()]


def _evaluated(
    model: Model,
    graphs: list[Data],
    sets: list[list[NodesLike]],
    targets: Sequence[int | None],
    task: PartTask,
) -> list[list[Faithfulness]]:
    inside = [as_parts(data, own) for data, own in zip(graphs, sets, strict=True)]
    both = [np.concatenate([rows, ~rows]) for rows in inside]
    found = part_probabilities(model, graphs, both, targets, task)
    return [judged(parts, rows) for parts, rows in zip(found, inside, strict=True)]


def _one_for_each(target: Any, count: int) -> list[Any]:
    # not isinstance(target, int): it may be a number of numpy or torch
    targets = [target] * count if np.ndim(target) == 0 else list(target)
    if len(targets) != count:
        raise ValueError(
            f"target must be a class or one for each of {count} graphs (got {len(targets)})"
        )
    return targets


def _are_sets(entry: Any) -> bool:
    """Whether an entry is a list of sets of nodes, rather than one set."""
    if not isinstance(entry, list | tuple) or not entry:
        return False
    return all(np.ndim(item) == 1 or isinstance(item, set | frozenset) for item in entry)
