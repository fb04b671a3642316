"""Where the nodes of a graph go: networkx to begin with, then distances as in the graph."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.optional import require

_ROUNDS, _ROUNDS_IF_LARGE = 300, 40
#: From here on networkx would want SciPy for its springs.
_LARGE = 500
#: Beyond this a matrix of all distances is slow, and a picture would be a cloud.
_MOST = 2_000


def layout(edges: Sequence[tuple[int, int]], count: int, *, seed: int) -> NDArray[np.float64]:
    """A place for every node, (n, 2); neighbors are about 1 apart.

    Every connected component is laid out by networkx' springs and then pulled so that places are
    as far apart as nodes are in the graph (stress majorisation: Gansner, Koren and North, 2004).
    A component of 500 nodes or more starts from its two main coordinates instead of springs.
    Components go beside each other, the largest first. The same seed gives the same places.
    """
    if count > _MOST:
        raise ValueError(
            f"a graph to draw may have at most {_MOST:,} nodes (got {count:,}): draw a part of it"
        )
    networkx = require("networkx", extra="drawing")
    graph = networkx.Graph()
    graph.add_nodes_from(range(count))
    graph.add_edges_from(edges)
    parts = sorted(map(sorted, networkx.connected_components(graph)), key=lambda p: (-len(p), p))
    placed = [_component(networkx, graph.subgraph(part), part, seed) for part in parts]
    found = np.zeros((count, 2))
    for part, places in zip(parts, _packed(placed), strict=True):
        found[part] = places
    return found


def _component(networkx: Any, graph: Any, nodes: list[int], seed: int) -> NDArray[np.float64]:
    if len(nodes) == 1:
        return np.zeros((1, 2))
    index = {node: place for place, node in enumerate(nodes)}
    distances = np.zeros((len(nodes), len(nodes)))
    for node, reached in networkx.all_pairs_shortest_path_length(graph):
        for other, steps in reached.items():
            distances[index[node], index[other]] = steps
    if len(nodes) >= _LARGE:
        return _lying(_stressed(_main_coordinates(distances), distances, _ROUNDS_IF_LARGE))
    springs = networkx.spring_layout(_in_order(networkx, graph, nodes), seed=seed)
    start = np.array([springs[node] for node in nodes])
    return _lying(_stressed(start, distances, _ROUNDS))


def _main_coordinates(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The plane in which distances are kept best (classical scaling)."""
    squared = distances**2
    means = squared.mean(axis=0)
    values, vectors = np.linalg.eigh(-(squared - means - means[:, None] + means.mean()) / 2)
    found: NDArray[np.float64] = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    return found


def _in_order(networkx: Any, graph: Any, nodes: list[int]) -> Any:
    """A copy whose nodes come in order, because springs depend on it."""
    ordered = networkx.Graph()
    ordered.add_nodes_from(nodes)
    ordered.add_edges_from(sorted(tuple(sorted(edge)) for edge in graph.edges))
    return ordered


def _stressed(
    start: NDArray[np.float64], distances: NDArray[np.float64], rounds: int
) -> NDArray[np.float64]:
    """Places whose distances are near those given, the near ones counting most."""
    count = len(start)
    weights = 1 / np.where(distances > 0, distances, 1.0) ** 2
    np.fill_diagonal(weights, 0.0)
    laplacian = np.diag(weights.sum(axis=1)) - weights
    inverse = np.linalg.pinv(laplacian)
    places: NDArray[np.float64] = start * distances.max() / max(np.ptp(start, axis=0).max(), 1e-9)
    pull = weights * distances
    for _ in range(rounds):
        apart = np.linalg.norm(places[:, None] - places[None], axis=2)
        ratio = -pull / np.maximum(apart, 1e-9)
        np.fill_diagonal(ratio, 0.0)
        np.fill_diagonal(ratio, -ratio.sum(axis=1))
        following = inverse @ (ratio @ places)
        moved = float(np.abs(following - places).max())
        places = following
        if moved < 1e-4 * count:
            break
    return places


def _lying(places: NDArray[np.float64]) -> NDArray[np.float64]:
    """Turned so that the longest way runs from left to right, starting at the origin."""
    centered = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    # the sign of an axis is anybody's guess: fix it, or pictures flip between machines
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)]) if len(places) > 1 else 1.0
    turned = centered @ (axes * np.reshape(signs, (-1, 1))).T
    found: NDArray[np.float64] = turned - turned.min(axis=0)
    return found


def _packed(parts: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Components in rows, about as wide as high."""
    gap = 1.0
    sizes = [np.ptp(part, axis=0) + gap for part in parts]
    widest = max(float(sizes[0][0]), 1.5 * math.sqrt(float(sum(s[0] * s[1] for s in sizes))))
    found = []
    x = y = row = 0.0
    for part, (width, height) in zip(parts, sizes, strict=True):
        if x and x + width > widest + gap:
            x, y, row = 0.0, y + row, 0.0
        found.append(part + np.array([x, y]))
        x, row = x + width, max(row, height)
    return found
