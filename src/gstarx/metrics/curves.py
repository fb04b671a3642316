"""Metrics as a function of sparsity."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data, HeteroData

from gstarx._internal.arguments import taken_by
from gstarx.gnn import Model
from gstarx.metrics.faithfulness import METRICS, Faithfulness, average, evaluate_many
from gstarx.metrics.reference import Reference
from gstarx.metrics.selection import SPARSITIES, as_scores, select_nodes


@dataclass(frozen=True)
class FidelityCurve:
    """The metrics at every sparsity, each the mean over the graphs.

    Attributes
    ----------
    sparsities
        The requested sparsities, ascending. Those achieved are ``curve["sparsity"]``.
    points
        The means at each of them.
    graphs
        For every sparsity the metrics of every graph.
    """

    sparsities: tuple[float, ...]
    points: tuple[Faithfulness, ...]
    graphs: tuple[tuple[Faithfulness, ...], ...]

    def __getitem__(self, metric: str) -> NDArray[np.float64]:
        """The means of one metric, by its name."""
        if metric not in METRICS:
            valid = ", ".join(map(repr, METRICS))
            raise KeyError(f"metric must be one of {valid} (got {metric!r})")
        return np.array([getattr(point, metric) for point in self.points])

    def area(self, metric: str = "harmonic_fidelity") -> float:
        """The mean height of a metric over the range of sparsities (trapezoids)."""
        values = self[metric]
        if len(values) == 1:
            return float(values[0])
        span = self.sparsities[-1] - self.sparsities[0]
        heights = (values[1:] + values[:-1]) / 2
        return float(heights @ np.diff(self.sparsities) / span)

    def best(self, metric: str = "harmonic_fidelity") -> tuple[float, float]:
        """The sparsity at which a mean is highest, and that mean: the paper's headline number."""
        values = self[metric]
        place = int(np.argmax(values))
        return self.sparsities[place], float(values[place])


def fidelity_curve(
    model: Model,
    data: Data | Iterable[Data],
    scores: Any,
    *,
    sparsities: Sequence[float] = SPARSITIES,
    positive_only: bool = False,
    target: int | Sequence[int | None] | None = None,
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
) -> FidelityCurve:
    """The metrics of scores at many sparsities, for one graph or averaged over many.

    Parameters
    ----------
    model
        Any PyG model or callable.
    data
        One graph, or many.
    scores
        The scores of its nodes, or a list of scores with an entry for every graph; of a
        heterogeneous graph by type, or all of them one after the other.
    sparsities
        The sparsities; by default the paper's eight.
    positive_only
        The rule of :func:`select_nodes`.
    target, removal,
    mode, task_level, return_type, index, node_type, num_hops, batch_nodes, keywords, reference
        As for :func:`gstarx.metrics.evaluate_many`.
    """
    if not len(sparsities):
        raise ValueError("sparsities must name at least one (got none)")
    single = isinstance(data, Data | HeteroData)
    graphs = [data] if isinstance(data, Data | HeteroData) else list(data)
    listed = [scores] if single else list(scores)
    if len(graphs) != len(listed):
        raise ValueError(
            f"scores must have an entry for each of {len(graphs)} graphs (got {len(listed)})"
        )
    if not graphs:
        raise ValueError("data must be at least one graph (got none)")
    levels = tuple(sorted({float(level) for level in sparsities}))
    selections = []
    for graph, node_scores in zip(graphs, listed, strict=True):
        if isinstance(graph, HeteroData) and isinstance(node_scores, Mapping):
            by_type = [as_scores(node_scores[name]) for name in graph.node_types]
            node_scores = np.concatenate(by_type)
        checked = as_scores(node_scores, int(graph.num_nodes or 0))
        selections.append(
            [select_nodes(checked, level, positive_only=positive_only) for level in levels]
        )
    evaluated = evaluate_many(**taken_by(evaluate_many, locals()))
    by_level = tuple(tuple(column) for column in zip(*evaluated, strict=True))
    return FidelityCurve(levels, tuple(average(column) for column in by_level), by_level)
