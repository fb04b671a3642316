"""Agreement of scores and selections with the true nodes, if a ground truth is known.

The truth is a planted motif or the group that determines the label. A model may be right for other
reasons, so these metrics measure model and explainer together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

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
    if not 0 < inside.sum() < len(values):
        raise ValueError(
            f"truth must hold some but not all of the {len(values)} nodes (got {inside.sum()})"
        )
    return float(_areas(values, inside[None])[0])


def ranks_of(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Ranks from 1, of equal values their mean rank."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: NDArray[np.float64] = (np.cumsum(count) - (count - 1) / 2)[place]
    return ranks


def _areas(values: NDArray[np.float64], inside: NDArray[np.bool_]) -> NDArray[np.float64]:
    """The AUROC of scores (n,) for each of some truths (k, n), which are neither empty nor full."""
    positives = inside.sum(axis=1)
    above = inside @ ranks_of(values) - positives * (positives + 1) / 2
    areas: NDArray[np.float64] = above / (positives * (len(values) - positives))
    return areas


def edge_auroc(
    edge_mask: ArrayLike, edge_index: Any, truth: Any, *, directed: bool = False
) -> float:
    """Probability that a true edge scores higher than another one; ties count half.

    Parameters
    ----------
    edge_mask
        A score per column of ``edge_index``, (E,), as PyG's explainers return it.
    edge_index
        The edges, (2, E). All columns between two nodes are averaged and count once, unless
        ``directed``; self-loops do not count.
    truth
        The true edges: a boolean mask (E,), of which either direction is enough; or the true nodes
        as ids, which make an edge between two of them true.
    directed
        Whether each column counts on its own.

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


def attribution_auroc(
    scores: ArrayLike,
    truths: Any,
    *,
    edge_scores: ArrayLike | None = None,
    edge_index: Any = None,
) -> float:
    """AUROC against the alternative truth that fits best (Sanchez-Lengeling et al., 2020).

    Where several sets of nodes are full reasons, an explanation need not find all of them: the
    score of a graph is the largest AUROC over its alternatives. Average it over graphs with
    ``numpy.nanmean``, which leaves out graphs without a defined AUROC.

    Parameters
    ----------
    scores
        A score per node, with its sign.
    truths
        Masks of the alternatives, (alternatives, nodes), or one mask, (nodes,).
    edge_scores, edge_index
        Scores of directed edges (E,) and their ends (2, E), if the explanation scores edges as
        well. The score of an edge is added to the node that it points to.

    Returns
    -------
    float
        NaN if no alternative has some but not all nodes, as in a graph of the negative class.

    Raises
    ------
    ValueError
        If scores are not finite, or do not fit the truths.

    Examples
    --------
    >>> attribution_auroc([0.9, 0.1, 0.8, 0.2], [[1, 1, 0, 0], [0, 0, 1, 0], [1, 1, 1, 0]])
    0.666...
    >>> attribution_auroc([0.9, 0.1, 0.8, 0.2], [[0, 0, 0, 0]])
    nan
    """
    values = _node_values(scores, edge_scores, edge_index)
    masks = _truth_rows(truths, len(values))
    if not np.isin(masks, (0, 1)).all():
        raise ValueError("truths must be masks of 0 and 1; see attribution_tau for numbers")
    inside = masks.astype(bool)
    positives = inside.sum(axis=1)
    inside = inside[(positives > 0) & (positives < len(values))]
    return float(_areas(values, inside).max()) if len(inside) else float("nan")


def attribution_tau(
    scores: ArrayLike,
    truths: Any,
    *,
    edge_scores: ArrayLike | None = None,
    edge_index: Any = None,
) -> float:
    """Kendall's tau-b between scores and true contributions of the nodes of one graph.

    Parameters
    ----------
    scores, edge_scores, edge_index
        As for :func:`attribution_auroc`.
    truths
        The true contribution of every node, (nodes,) or (1, nodes).

    Returns
    -------
    float
        In [-1, 1]; NaN if all scores or all contributions are equal.

    Examples
    --------
    >>> attribution_tau([0.3, 0.1, 0.2], [[3.0, 1.0, 2.0]])
    1.0
    """
    values = _node_values(scores, edge_scores, edge_index)
    rows = _truth_rows(truths, len(values))
    if len(rows) != 1:
        raise ValueError(f"tau is defined for one row of contributions (got {len(rows)})")
    upper = np.triu_indices(len(values), 1)
    given, true = (np.sign(v[upper[0]] - v[upper[1]]) for v in (values, rows[0]))
    pairs = np.sqrt(float(np.count_nonzero(given)) * float(np.count_nonzero(true)))
    return float((given * true).sum() / pairs) if pairs else float("nan")


def _node_values(
    scores: ArrayLike, edge_scores: ArrayLike | None, edge_index: Any
) -> NDArray[np.float64]:
    """Scores of nodes, each with those of the edges that point to it."""
    values = as_scores(scores)
    if edge_scores is None:
        return values
    if edge_index is None:
        raise ValueError("edge_scores need edge_index, the ends of the edges")
    weights, ends = as_scores(edge_scores), np.asarray(edge_index)
    if ends.shape != (2, len(weights)):
        raise ValueError(
            f"edge_index must have shape (2, {len(weights)}), a column for each edge score "
            f"(got {ends.shape})"
        )
    if ends.size and not 0 <= ends.min() <= ends.max() < len(values):
        raise ValueError(f"edge_index must name nodes in 0..{len(values) - 1}")
    return values + np.bincount(ends[1], weights=weights, minlength=len(values))


def _truth_rows(truths: Any, num_nodes: int) -> NDArray[np.float64]:
    rows = np.atleast_2d(np.asarray(truths, dtype=np.float64))
    if rows.ndim != 2 or rows.shape[1] != num_nodes or not len(rows):
        raise ValueError(
            f"truths must have the shape (alternatives, {num_nodes}), with a column for each "
            f"score (got {np.shape(truths)})"
        )
    if not np.isfinite(rows).all():
        raise ValueError("truths must be finite numbers (got nan or inf)")
    return rows
