"""Did it find what is known to matter: scores and selections against true nodes.

Only where a ground truth exists: the motif that was planted, the group that the label follows
from. A model may decide by something else and be right, so this measures model and explainer
together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from gstarx.metrics.selection import as_mask, as_scores


def auroc(scores: ArrayLike, truth: Any) -> float:
    """Chance that a true node scores higher than another one; ties count half.

    Parameters
    ----------
    scores
        A score per node.
    truth
        The true nodes: a boolean mask, or node ids.

    Raises
    ------
    ValueError
        When all nodes are true or none is: there is nothing to tell apart.

    Examples
    --------
    >>> auroc([0.9, 0.1, 0.8, 0.1], [0, 1])
    0.625
    """
    given = as_scores(scores)
    inside = as_mask(truth, len(given))
    positives = int(inside.sum())
    negatives = len(given) - positives
    if not positives or not negatives:
        raise ValueError(
            f"truth must hold some of the {len(given)} nodes and not all (got {positives})"
        )
    _, place, count = np.unique(given, return_inverse=True, return_counts=True)
    # the mean rank of equal scores
    ranks = (np.cumsum(count) - (count - 1) / 2)[place]
    above = ranks[inside].sum() - positives * (positives + 1) / 2
    return float(above / (positives * negatives))


def precision_at_k(scores: ArrayLike, truth: Any, k: int | None = None) -> float:
    """Share of true nodes among the ``k`` best ones; by default as many as are true.

    >>> precision_at_k([0.9, 0.1, 0.8, 0.1], [0, 1])
    0.5
    """
    given = as_scores(scores)
    inside = as_mask(truth, len(given))
    size = int(inside.sum()) if k is None else k
    if not 1 <= size <= len(given):
        raise ValueError(f"k must lie in 1..{len(given)} (got {size})")
    return float(inside[np.argsort(-given, kind="stable")[:size]].mean())


def precision(nodes: Any, truth: Any, num_nodes: int) -> float:
    """Share of the selected nodes that are true; 0 for an empty selection."""
    chosen, inside = as_mask(nodes, num_nodes), as_mask(truth, num_nodes)
    return float((chosen & inside).sum() / max(1, chosen.sum()))


def recall(nodes: Any, truth: Any, num_nodes: int) -> float:
    """Share of the true nodes that are selected.

    >>> recall([0, 1], [1, 2, 3], num_nodes=5)
    0.3333...
    """
    chosen, inside = as_mask(nodes, num_nodes), as_mask(truth, num_nodes)
    if not inside.any():
        raise ValueError("truth must hold at least one node (got none)")
    return float((chosen & inside).sum() / inside.sum())


def iou(nodes: Any, truth: Any, num_nodes: int) -> float:
    """Nodes both selected and true, as a share of those either selected or true.

    >>> iou([0, 1], [1, 2, 3], num_nodes=5)
    0.25
    """
    chosen, inside = as_mask(nodes, num_nodes), as_mask(truth, num_nodes)
    either = int((chosen | inside).sum())
    if not either:
        raise ValueError("nodes and truth must not both be empty")
    return float((chosen & inside).sum() / either)
