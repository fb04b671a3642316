"""Agreement of scores and selections with the true nodes, if a ground truth is known.

The truth is a planted motif or the group that determines the label. A model may be right for other
reasons, so these metrics measure model and explainer together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gstarx.metrics.selection import as_mask, as_scores, edge_player_scores


def auroc(scores: ArrayLike, truth: Any) -> float:
    """Probability that a true node scores higher than another one; ties count half.

    Parameters
    ----------
    scores
        A score per node.
    truth
        The true nodes: a boolean mask, or node ids.

    Raises
    ------
    ValueError
        When all nodes are true or none is.

    Examples
    --------
    >>> auroc([0.9, 0.1, 0.8, 0.1], [0, 1])
    0.625
    """
    values = as_scores(scores)
    inside = as_mask(truth, len(values))
    positives = int(inside.sum())
    negatives = len(values) - positives
    if not positives or not negatives:
        raise ValueError(
            f"truth must hold some but not all of the {len(values)} nodes (got {positives})"
        )
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    # the mean rank of equal scores
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    above = ranks[inside].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


def edge_auroc(
    edge_mask: ArrayLike, edge_index: Any, truth: Any, *, directed: bool = False
) -> float:
    """Probability that a true edge scores higher than another one; ties count half.

    Parameters
    ----------
    edge_mask
        A score per column of ``edge_index``, (E,), as PyG's explainers return it.
    edge_index
        The edges, (2, E). Both directions of an edge are averaged and count once, unless
        ``directed``; self-loops do not count.
    truth
        The true edges: a boolean mask (E,), of which either direction is enough; or the true nodes
        as ids, which make an edge between two of them true.
    directed
        Whether each direction counts on its own.

    Examples
    --------
    >>> edge_index = [[0, 1, 1, 2, 2, 3], [1, 0, 2, 1, 3, 2]]
    >>> edge_auroc([0.9, 0.9, 0.5, 0.5, 0.1, 0.1], edge_index, [0, 1])
    1.0
    """
    scores, edges = edge_player_scores(edge_mask, edge_index, directed=directed)
    marked = np.asarray(truth.detach().cpu() if hasattr(truth, "detach") else truth)
    count = int(edges.max(initial=-1)) + 1
    if marked.dtype == np.bool_ and marked.shape == np.shape(edge_mask):
        touched, _ = edge_player_scores(marked.astype(np.float64), edge_index, directed=directed)
        return auroc(scores, touched > 0)
    inside = as_mask(sorted({int(n) for n in marked.reshape(-1) if n < count}), max(count, 1))
    return auroc(scores, inside[edges].all(axis=1))


def precision_at_k(scores: ArrayLike, truth: Any, k: int | None = None) -> float:
    """Share of true nodes among the ``k`` best ones; ``k`` is by default the number of true nodes.

    >>> precision_at_k([0.9, 0.1, 0.8, 0.1], [0, 1])
    0.5
    """
    values = as_scores(scores)
    inside = as_mask(truth, len(values))
    size = int(inside.sum()) if k is None else k
    if not 1 <= size <= len(values):
        raise ValueError(f"k must lie in 1..{len(values)} (got {size})")
    return float(inside[np.argsort(-values, kind="stable")[:size]].mean())


def precision(nodes: Any, truth: Any, num_nodes: int) -> float:
    """Share of the selected nodes that are true; 0 for an empty selection."""
    selected, inside = as_mask(nodes, num_nodes), as_mask(truth, num_nodes)
    return float((selected & inside).sum() / max(1, selected.sum()))


def recall(nodes: Any, truth: Any, num_nodes: int) -> float:
    """Share of the true nodes that are selected.

    >>> recall([0, 1], [1, 2, 3], num_nodes=5)
    0.3333...
    """
    selected, inside = as_mask(nodes, num_nodes), as_mask(truth, num_nodes)
    if not inside.any():
        raise ValueError("truth must hold at least one node (got none)")
    return float((selected & inside).sum() / inside.sum())


def iou(nodes: Any, truth: Any, num_nodes: int) -> float:
    """Nodes both selected and true, as a share of those either selected or true.

    >>> iou([0, 1], [1, 2, 3], num_nodes=5)
    0.25
    """
    selected, inside = as_mask(nodes, num_nodes), as_mask(truth, num_nodes)
    either = int((selected | inside).sum())
    if not either:
        raise ValueError("nodes and truth must not both be empty")
    return float((selected & inside).sum() / either)
