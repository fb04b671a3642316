"""From scores to a selection of nodes at a given sparsity."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data

from gstarx.graphs import CommunicationGraph, as_nodes
from gstarx.players import edge_players

#: The sparsities of the paper's experiments (section 5.2).
SPARSITIES = (0.5, 0.55, 0.6, 0.65, 0.7, 0.75, 0.8, 0.85)
#: Tolerance for floating-point errors: 20 nodes at sparsity 0.8 leave 4, not 3.
_ROUNDING = 1e-9
#: Scores this close, as a share of the largest, are the same number: models compute in single
#: precision.
_SAME = 1e-6
#: Standard errors on either side of a score that make its 95% interval.
_INTERVAL = 1.96
_REDUCTIONS = ("max", "mean", "sum")


def selection_size(num_players: int, sparsity: float, *, of_nodes: bool = True) -> int:
    """The number of nodes that a sparsity leaves: ``floor((1 - sparsity) |V|)`` (Algorithm 1).

    Of other players, which may be few, one is left at the least, unless the sparsity is 1.

    >>> selection_size(20, 0.8), selection_size(17, 0.5), selection_size(5, 1.0)
    (4, 8, 0)
    >>> selection_size(3, 0.7), selection_size(3, 0.7, of_nodes=False)
    (0, 1)
    """
    wanted = _number(sparsity, name="sparsity")
    if not 0 <= wanted <= 1:
        raise ValueError(f"sparsity must lie in [0, 1] (got {sparsity!r})")
    size = int(np.floor((1 - wanted) * num_players + _ROUNDING))
    return size if of_nodes or wanted == 1 else max(min(1, num_players), size)


def select_nodes(
    scores: ArrayLike,
    sparsity: float,
    *,
    positive_only: bool = False,
    connected: Any = None,
) -> NDArray[np.int64]:
    """The nodes with the highest scores, as many as a sparsity leaves.

    Algorithm 1 takes the top ``floor((1 - sparsity) |V|)``. The published code takes only nodes
    with a positive score, which changes every number of a table: ``positive_only=True``.

    Parameters
    ----------
    scores
        A score per node, (n,) or (n, 1): an array, a tensor, or a PyG explanation's ``node_mask``.
    sparsity
        The share of nodes that is left out, between 0 and 1.
    positive_only
        Select only nodes with a positive score.
    connected
        A ``Data``, an ``edge_index`` (2, E) or a :class:`~gstarx.graphs.CommunicationGraph`: the
        selection is grown along its edges from the best node, always by the best neighbor, and is
        connected. It is smaller than requested if the component is.

    Returns
    -------
    ndarray
        Node ids, best first. Ties go to the smaller id.

    Examples
    --------
    >>> select_nodes([0.1, 0.5, -0.2, 0.5], 0.25)
    array([1, 3, 0])
    >>> select_nodes([0.1, 0.5, -0.2, 0.5], 0.0, positive_only=True)
    array([1, 3, 0])
    >>> select_nodes([3, 1, 2], 0.3, connected=[[0, 1], [1, 2]])
    array([0, 1])
    """
    ranked = as_scores(scores)
    graph = None if connected is None else _as_graph(connected, len(ranked))
    size = selection_size(len(ranked), sparsity)
    return select_best(ranked, size, positive_only=positive_only, graph=graph)


def select_best(
    scores: NDArray[np.float64],
    size: int,
    *,
    positive_only: bool = False,
    graph: CommunicationGraph | None = None,
) -> NDArray[np.int64]:
    """The ``size`` nodes with the highest scores, best first, as in :func:`select_nodes`."""
    if positive_only:
        size = min(size, int((scores > 0).sum()))
    order = np.argsort(-scores, kind="stable")
    return order[:size] if graph is None else _grown(graph, order, size)


def largest_gap(scores: ArrayLike) -> int:
    """How many nodes to keep if the cut is where sorted scores drop the most.

    Only positive scores count, and the last of them is compared with 0: a set without a positive
    score is empty. Of equal gaps, the first one is taken, which gives the smaller set.

    >>> largest_gap([0.1, 0.9, 0.8, 0.2, -3.0]), largest_gap([0.5, 0.5]), largest_gap([-1.0, 0.0])
    (2, 2, 0)
    """
    values = as_scores(scores)
    kept = np.sort(values[above_noise(values)])[::-1]
    if not len(kept):
        return 0
    drops = kept - np.append(kept[1:], 0.0)
    # equal up to rounding: the first one
    return int(np.argmax(drops >= drops.max() - _SAME * kept[0])) + 1


def above_noise(scores: ArrayLike, std_errors: ArrayLike | None = None) -> NDArray[np.bool_]:
    """Which scores are positive, and larger than 1.96 standard errors where these are known.

    >>> above_noise([0.5, 0.5, 0.5, -0.5], [0.0, 0.3, np.nan, 0.0]).tolist()
    [True, False, True, False]
    """
    values = as_scores(scores)
    least = _SAME * np.abs(values).max(initial=0.0)
    result: NDArray[np.bool_] = values > np.maximum(_half_interval(std_errors, values), least)
    return result


def uncertain(scores: ArrayLike, std_errors: ArrayLike | None) -> NDArray[np.bool_]:
    """Which scores have a known standard error and a 95% interval that includes 0.

    >>> uncertain([0.5, 0.5, 0.0, -0.1], [0.0, 0.3, 0.0, 0.2]).tolist()
    [False, True, False, True]
    """
    values = as_scores(scores)
    half = _half_interval(std_errors, values)
    result: NDArray[np.bool_] = (half > 0) & (np.abs(values) <= half)
    return result


def ties_at_cut(
    scores: ArrayLike, selected: Any, std_errors: ArrayLike | None = None
) -> NDArray[np.bool_]:
    """The nodes with the lowest selected score, if not all nodes with that score are selected.

    Which of them are selected is then arbitrary. Estimated scores are the same if the 95% interval
    of their difference includes 0. A selection that is not the top of the scores has no such ties.

    >>> ties_at_cut([0.9, 0.4, 0.4, 0.1], [0, 1]).tolist()
    [False, True, True, False]
    >>> ties_at_cut([0.9, 0.4, 0.4, 0.1], [0, 1, 2]).any(), ties_at_cut([0.4, 0.9], [0]).any()
    (np.False_, np.False_)
    """
    values = as_scores(scores)
    chosen = as_mask(selected, len(values))
    none = np.zeros(len(values), dtype=np.bool_)
    if not chosen.any():
        return none
    inside = np.flatnonzero(chosen)
    lowest = inside[np.argmin(values[inside])]
    half = _half_interval(std_errors, values)
    close = np.maximum(np.hypot(half, half[lowest]), _SAME * np.abs(values).max())
    apart = values - values[lowest]
    if (apart > close)[~chosen].any():
        return none
    equal: NDArray[np.bool_] = np.abs(apart) <= close
    return equal if (equal & ~chosen).any() else none


def _half_interval(
    std_errors: ArrayLike | None, scores: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Half the width of the 95% interval of every score: 0 where it is exact or unknown."""
    if std_errors is None:
        return np.zeros_like(scores)
    errors = np.asarray(_detached(std_errors), dtype=np.float64)
    if errors.shape != scores.shape:
        raise ValueError(
            f"std_errors must be one for each of {len(scores)} scores (got shape {errors.shape})"
        )
    if (errors < 0).any():
        raise ValueError(f"std_errors must not be negative (got {np.nanmin(errors)})")
    return np.where(np.isfinite(errors), _INTERVAL * errors, 0.0)


def node_scores_from_edges(
    edge_scores: ArrayLike, edge_index: Any, num_nodes: int, *, reduce: str = "max"
) -> NDArray[np.float64]:
    """A score per node from scores of edges, so that edge-based explainers can be compared.

    Both directions of an edge are averaged first. A node gets the maximum (or mean, or sum) over
    its edges; one without edges gets 0. Selecting nodes by the maximum is the same as adding edges
    in order of their scores and collecting their ends.

    Parameters
    ----------
    edge_scores
        A score per column of ``edge_index``, (E,).
    edge_index
        The edges, (2, E).
    num_nodes
        Number of nodes.
    reduce
        ``"max"``, ``"mean"`` or ``"sum"``. A sum favors nodes with many edges.

    Examples
    --------
    >>> node_scores_from_edges([0.2, 0.4, 0.9], [[0, 1, 1], [1, 0, 2]], 4)
    array([0.3, 0.9, 0.9, 0. ])
    """
    if reduce not in _REDUCTIONS:
        valid = ", ".join(map(repr, _REDUCTIONS))
        raise ValueError(f"reduce must be one of {valid} (got {reduce!r})")
    per_edge, ends = _scores_and_ends(edge_scores, edge_index, name="edge_scores")
    per_node = np.zeros(num_nodes)
    if not per_edge.size:
        return per_node
    if ends.min() < 0 or ends.max() >= num_nodes:
        raise ValueError(
            f"edge_index must name nodes in 0..{num_nodes - 1} (got {ends.min()}..{ends.max()})"
        )
    keys, where = np.unique(ends.min(axis=0) * num_nodes + ends.max(axis=0), return_inverse=True)
    both = np.bincount(where, weights=per_edge) / np.bincount(where)
    low, high = np.divmod(keys, num_nodes)
    # a self-loop is an edge of its node once
    nodes = np.concatenate([low, high[low != high]])
    values = np.concatenate([both, both[low != high]])
    if reduce == "max":
        per_node = np.full(num_nodes, -np.inf)
        np.maximum.at(per_node, nodes, values)
        return np.where(np.isfinite(per_node), per_node, 0.0)
    np.add.at(per_node, nodes, values)
    if reduce == "mean":
        per_node /= np.maximum(np.bincount(nodes, minlength=num_nodes), 1)
    return per_node


def edge_player_scores(
    edge_mask: ArrayLike, edge_index: Any, *, directed: bool = False
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores of edges as players, from an explainer's ``edge_mask``.

    With these scores, the mask of any edge explainer can be used to select edges and be evaluated
    with ``evaluate(..., players="edges")``.

    Parameters
    ----------
    edge_mask
        A score per column of ``edge_index``, (E,).
    edge_index
        The edges, (2, E). Self-loops are no players.
    directed
        Whether each column is a player; by default all those between two nodes are averaged.

    Returns
    -------
    scores, edges
        A score per player (P,), and the two ends of every player (P, 2), in the order of
        :attr:`gstarx.Explanation.player_edges`.

    Examples
    --------
    >>> edge_player_scores([0.2, 0.4, 0.9], [[0, 1, 1], [1, 0, 2]])
    (array([0.3, 0.9]), array([[0, 1],
           [1, 2]]))
    """
    per_edge, ends = _scores_and_ends(edge_mask, edge_index, name="edge_mask")
    edges, player_of = edge_players(ends.T, directed=directed)
    joining = player_of >= 0
    summed = np.bincount(player_of[joining], weights=per_edge[joining], minlength=len(edges))
    counts = np.bincount(player_of[joining], minlength=len(edges))
    return summed / np.maximum(counts, 1), edges


def _scores_and_ends(
    scores: ArrayLike, edge_index: Any, *, name: str
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Scores of edges (E,), and their ends (2, E); raises if they do not fit."""
    ends = np.asarray(_detached(edge_index), dtype=np.int64)
    per_edge = _finite(scores, name=name)
    if ends.ndim != 2 or ends.shape[0] != 2 or per_edge.shape != (ends.shape[1],):
        raise ValueError(
            f"{name} must be one number for each column of edge_index (2, E) "
            f"(got {per_edge.shape} for {ends.shape})"
        )
    return per_edge, ends


def as_scores(scores: ArrayLike, num_nodes: int | None = None) -> NDArray[np.float64]:
    """Scores as finite floats (n,); raises if they are anything else."""
    values = _finite(scores, name="scores")
    if values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    if values.ndim != 1 or (num_nodes is not None and len(values) != num_nodes):
        expected = "(n,)" if num_nodes is None else f"({num_nodes},)"
        raise ValueError(f"scores must have shape {expected} (got {values.shape})")
    return values


def as_mask(nodes: Any, num_nodes: int) -> NDArray[np.bool_]:
    """A boolean mask (n,) of nodes, from distinct ids or a mask; raises for anything else."""
    if isinstance(nodes, Data):
        raise TypeError(
            "nodes must be ids or a mask (got an explanation): pass a selection of it, such as "
            "explanation.select(sparsity=0.7)"
        )
    if isinstance(nodes, set | frozenset):
        nodes = sorted(nodes)
    selected = np.asarray(_detached(nodes))
    if selected.dtype == np.bool_:
        if selected.shape != (num_nodes,):
            raise ValueError(
                f"a mask of nodes must have shape ({num_nodes},) (got {selected.shape})"
            )
        return selected
    mask = np.zeros(num_nodes, dtype=np.bool_)
    mask[as_nodes(selected, num_nodes, name="nodes")] = True
    return mask


def _grown(graph: CommunicationGraph, order: NDArray[np.int64], size: int) -> NDArray[np.int64]:
    """Up to ``size`` nodes, starting with the best; each next one is the best neighbor."""
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    inside = np.zeros(len(order), dtype=np.bool_)
    grown: list[int] = []
    candidates = order[:1]
    while len(grown) < size and len(candidates):
        best = int(candidates[np.argmin(rank[candidates])])
        inside[best] = True
        grown.append(best)
        candidates = np.flatnonzero(graph.boundary(inside))
    return np.array(grown, dtype=np.int64)


def _as_graph(connected: Any, num_nodes: int) -> CommunicationGraph:
    if isinstance(connected, CommunicationGraph):
        graph = connected
    else:
        edge_index = getattr(connected, "edge_index", connected)
        graph = CommunicationGraph.from_edge_index(edge_index, num_nodes)
    if graph.num_nodes != num_nodes:
        raise ValueError(
            f"connected must be a graph of {num_nodes} nodes, one for each score "
            f"(got {graph.num_nodes})"
        )
    return graph


def _detached(values: Any) -> Any:
    return values.detach().cpu().numpy() if hasattr(values, "detach") else values


def _finite(values: ArrayLike, *, name: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(_detached(values), dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be numbers (got {values!r})") from error
    if not np.isfinite(numbers).all():
        first = int(np.flatnonzero(~np.isfinite(numbers.reshape(-1)))[0])
        raise ValueError(f"{name} must be finite (got {numbers.reshape(-1)[first]} at {first})")
    return numbers


def _number(value: Any, *, name: str) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float | np.number):
        raise TypeError(f"{name} must be a number (got {value!r})")
    return float(value)
