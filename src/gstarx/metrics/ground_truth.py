"""Agreement of scores and selections with the true nodes, if a ground truth is known.

The truth is a planted motif or the group that determines the label. A model may be right for other
reasons, so these metrics measure model and explainer together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gstarx.metrics.selection import as_mask, as_scores


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
