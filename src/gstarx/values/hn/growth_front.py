"""Growth weights of graphs whose coalitions cannot be listed.

The growth weights ``w_k(T)`` of all start nodes are carried from every size to the next at once: a
*front* of coalitions of one size, each with its vector of weights. When the front gets wider than
allowed it is thinned: coalitions stay with probability proportional to the norm of their weights,
and those that stay are weighted up, which changes no expectation. Three things keep the noise low:

- a coalition stays or goes for all start nodes together, and what start nodes have in common drops
  out of the closed form, whose weights on them are orthogonal to the degrees;
- systematic sampling in the order of growth replaces a coalition by a similar one;
- after thinning, the weights of every start node are calibrated so that every node is as often
  inside the front as before. This trades a small bias, gone as the front widens, for less noise.

While nothing is thinned the weights are exact.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs.bitmasks import Masks, unpack
from gstarx.graphs.communication import CommunicationGraph
from gstarx.graphs.compiled import compiled
from gstarx.graphs.index import same_mask, slot_of
from gstarx.graphs.lattice import boundary_of
from gstarx.values.coalition_sampling import inclusion_chances, systematic_sample

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
#: Calibration solves a system per start node and size. Up to this many nodes it looks at each of
#: them, beyond that at the smoothest waves on the graph.
_MAX_CALIBRATED_NODES = 64
_DIRECTIONS = 16
#: Ridge of the calibration: a little less exact, and far steadier on narrow fronts.
_RIDGE = 0.02
_NONE = np.zeros(0, dtype=np.int64)


def growth_front(
    graph: CommunicationGraph, width: int, generator: np.random.Generator
) -> tuple[Masks, NDArray[np.float64]]:
    """Coalitions of a connected graph and their growth weights, at most ``width`` of each size.

    Returns packed coalitions (k, words) and weights (k, n), exact up to the first size that was
    thinned and estimates from there on; the last row is the whole graph, which has no growth
    weight.
    """
    n = graph.num_nodes
    balanced = _balanced(graph)
    masks = np.zeros((n, graph.adjacency.shape[1]), dtype=np.uint64)
    masks[np.arange(n), np.arange(n) // 64] = _ONE << (np.arange(n) % 64).astype(np.uint64)
    weights = np.eye(n)
    front = [(masks, weights)]
    for size in range(2, n + 1):
        masks, weights = _grow(graph.adjacency, masks, weights)
        if size < n and len(masks) > width:
            masks, weights = _thin(masks, weights, balanced, width, generator)
        front.append((masks, weights))
    return np.concatenate([m for m, _ in front]), np.concatenate([w for _, w in front])


def _grow(
    adjacency: Masks, masks: Masks, weights: NDArray[np.float64]
) -> tuple[Masks, NDArray[np.float64]]:
    """The front one size up: every coalition's weights go to each coalition it can grow into."""
    room = int(_boundary_total(adjacency, masks))
    table = np.full(1 << (2 * room).bit_length(), -1, dtype=np.int64)
    grown = np.empty((room, masks.shape[1]), dtype=np.uint64)
    carried = np.zeros((room, weights.shape[1]))
    count = _grow_into(adjacency, masks, weights, table, grown, carried)
    return grown[:count].copy(), carried[:count].copy()


def _thin(
    masks: Masks,
    weights: NDArray[np.float64],
    balanced: NDArray[np.float64],
    width: int,
    generator: np.random.Generator,
) -> tuple[Masks, NDArray[np.float64]]:
    """Keep about ``width`` coalitions, weighted up for those that go, and calibrated."""
    chance = inclusion_chances(np.linalg.norm(weights, axis=1), width, _NONE)
    kept = systematic_sample(chance, generator)
    raised = weights[kept] / chance[kept, None]
    traits = unpack(masks, weights.shape[1]) @ balanced
    return masks[kept], _calibrate(raised, traits[kept], weights.T @ traits)


def _balanced(graph: CommunicationGraph) -> NDArray[np.float64]:
    """What of a coalition calibration keeps in balance, as columns (n, f) over its nodes."""
    n = graph.num_nodes
    if n <= _MAX_CALIBRATED_NODES:
        return np.eye(n)
    # the smoothest waves on the graph: which end of it a coalition lies in, at growing detail
    laplacian = np.diag(graph.degrees.astype(np.float64))
    for here, there in (graph.edges.T, graph.edges.T[::-1]):
        laplacian[here, there] = -1.0
    return np.linalg.eigh(laplacian)[1][:, : _DIRECTIONS + 1]


def _calibrate(
    weights: NDArray[np.float64], traits: NDArray[np.float64], totals: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Tilt every start node's weights so that ``weights.T @ traits`` is near ``totals`` again."""
    width = traits.shape[1]
    i, j = np.triu_indices(width)
    gram = np.empty((weights.shape[1], width, width))
    gram[:, i, j] = weights.T @ (traits[:, i] * traits[:, j])
    gram[:, j, i] = gram[:, i, j]
    scale = np.trace(gram, axis1=1, axis2=2)[:, None, None] / width
    gram += (_RIDGE * scale + 1e-300) * np.eye(width)
    tilt = np.linalg.solve(gram, (totals - weights.T @ traits)[:, :, None])[:, :, 0]
    # bounded, so that a start node with few coalitions cannot turn weights negative
    return weights * (1.0 + np.clip(traits @ tilt.T, -0.9, 3.0))


@compiled
def _boundary_total(adjacency, masks):  # type: ignore[no-untyped-def]
    border = np.empty(adjacency.shape[1], np.uint64)
    total = 0
    for row in range(len(masks)):
        total += boundary_of(adjacency, masks[row], border)
    return total


@compiled
def _grow_into(adjacency, masks, weights, table, grown, carried):  # type: ignore[no-untyped-def]
    """Fill ``grown`` and ``carried``; returns the number of distinct coalitions."""
    words = adjacency.shape[1]
    n = weights.shape[1]
    slots = len(table)
    border = np.empty(words, np.uint64)
    count = 0
    for row in range(len(masks)):
        boundary_of(adjacency, masks[row], border)
        for word in range(words):
            bits = border[word]
            while bits != _ZERO:
                bit = bits & (~bits + _ONE)
                bits ^= bit
                # written to the next free place, which it keeps if it is new
                for w in range(words):
                    grown[count, w] = masks[row, w]
                grown[count, word] |= bit
                s = slot_of(grown[count], slots)
                while table[s] >= 0 and not same_mask(grown[table[s]], grown[count]):
                    s = (s + 1) & (slots - 1)
                if table[s] < 0:
                    table[s] = count
                    count += 1
                for k in range(n):
                    carried[table[s], k] += weights[row, k]
    for row in range(count):
        size = boundary_of(adjacency, grown[row], border)
        for k in range(n):
            carried[row, k] = carried[row, k] / size if size > 0 else 0.0
    return count
