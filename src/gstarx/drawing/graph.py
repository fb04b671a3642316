"""The layout of any graph, by networkx and stress majorization."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.imports import require
from gstarx.drawing.geometry import MARGIN, Geometry, NodePlace

_LARGEST, _SMALLEST = 12.0, 3.0
#: Radius from which nodes are large enough for their names.
_TEXT_FROM = 8.0
_ROUNDS, _ROUNDS_IF_LARGE = 300, 40
#: From this size on, networkx would need SciPy for its spring layout.
_LARGE = 500
#: Beyond this a matrix of all distances is slow, and a picture is unreadable.
_MOST = 2_000


def graph_name(nodes: int, edges: int) -> str:
    """A graph by its size."""
    return f"Graph of {nodes} node{'s' * (nodes != 1)} and {edges} edge{'s' * (edges != 1)}"


def graph_geometry(
    pairs: Sequence[tuple[int, int]],
    names: Sequence[str],
    title: str,
    *,
    seed: int = 0,
    width: float = 460,
    labels: Sequence[str] | None = None,
    kinds: Sequence[int] | None = None,
    types: tuple[str, ...] = (),
) -> Geometry:
    """The layout of nodes and edges in units of the SVG.

    ``labels`` are written on nodes instead of their names, and ``kinds`` are their ``types``.
    """
    places, radius, height = _fitted(layout(pairs, len(names), seed=seed), pairs, width)
    described = zip(labels or names, names, places.tolist(), kinds or [0] * len(names), strict=True)
    return Geometry(
        "graph",
        title,
        width,
        height,
        tuple(
            NodePlace(label, name, x, y, radius, kind=kind)
            for label, name, (x, y), kind in described
        ),
        tuple(pairs),
        written=radius >= _TEXT_FROM,
        types=types,
    )


def _fitted(
    places: NDArray[np.float64], pairs: Sequence[tuple[int, int]], width: float
) -> tuple[NDArray[np.float64], float, float]:
    """Places in units of the SVG, the radius of nodes, and the height."""
    spread = np.maximum(np.ptp(places, axis=0), 1e-9)
    available = width - 2 * (_LARGEST + MARGIN)
    # no higher than wide
    scale = min(available / spread[0], available / spread[1])
    if len(places) == 1 or not pairs:
        scale = min(scale, 60.0)
    scale = min(scale, 70.0)
    scaled = (places - places.min(axis=0)) * scale
    nearest = _nearest(scaled)
    radius = float(np.clip(0.42 * nearest, _SMALLEST, _LARGEST))
    edge = radius + MARGIN
    height = float(np.ptp(scaled, axis=0)[1]) + 2 * edge
    left = (width - float(np.ptp(scaled, axis=0)[0])) / 2
    return scaled + np.array([left, edge]), radius, height


def _nearest(places: NDArray[np.float64]) -> float:
    """A distance that nearly all nodes keep from their nearest one."""
    if len(places) == 1:
        return np.inf
    apart = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(apart, np.inf)
    return float(np.quantile(apart.min(axis=1), 0.25))


def layout(edges: Sequence[tuple[int, int]], count: int, *, seed: int) -> NDArray[np.float64]:
    """A place for every node, (n, 2); neighbors are about 1 apart.

    Every connected component is laid out by networkx's spring layout and then by stress
    majorization (Gansner, Koren and North, 2004), so that distances match those in the graph.
    A component of 500 nodes or more starts from its two main coordinates instead of springs.
    Components are placed side by side, largest first. The same seed gives the same places.
    """
    if count > _MOST:
        raise ValueError(
            f"a graph to draw may have at most {_MOST:,} nodes (got {count:,}): draw a part of it"
        )
    networkx = require("networkx", extra="drawing")
    whole = networkx.Graph()
    whole.add_nodes_from(range(count))
    whole.add_edges_from(edges)
    parts = sorted(map(sorted, networkx.connected_components(whole)), key=lambda p: (-len(p), p))
    placed = []
    for part in parts:
        place = {node: at for at, node in enumerate(part)}
        graph = networkx.Graph()  # in order, which the spring layout depends on
        graph.add_nodes_from(range(len(part)))
        graph.add_edges_from(sorted((place[a], place[b]) for a, b in edges if a in place))
        placed.append(_component(networkx, graph, seed))
    coordinates = np.zeros((count, 2))
    for part, places in zip(parts, _packed(placed), strict=True):
        coordinates[part] = places
    return coordinates


def _component(networkx: Any, graph: Any, seed: int) -> NDArray[np.float64]:
    count = len(graph)
    if count == 1:
        return np.zeros((1, 2))
    distances = np.zeros((count, count))
    for node, reached in networkx.all_pairs_shortest_path_length(graph):
        distances[node, list(reached)] = list(reached.values())
    if count >= _LARGE:
        return _lying(_stressed(_main_coordinates(distances), distances, _ROUNDS_IF_LARGE))
    springs = networkx.spring_layout(graph, seed=seed)
    start = np.array([springs[node] for node in range(count)])
    return _lying(_stressed(start, distances, _ROUNDS))


def _main_coordinates(distances: NDArray[np.float64]) -> NDArray[np.float64]:
    """The plane that preserves distances best (classical multidimensional scaling)."""
    squared = distances**2
    means = squared.mean(axis=0)
    values, vectors = np.linalg.eigh(-(squared - means - means[:, None] + means.mean()) / 2)
    coordinates: NDArray[np.float64] = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 0.0))
    return coordinates


def _stressed(
    start: NDArray[np.float64], distances: NDArray[np.float64], rounds: int
) -> NDArray[np.float64]:
    """Places whose distances approximate ``distances``, short ones weighted most."""
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
    """Rotate the places so that the longest axis is horizontal, starting at the origin."""
    centered = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(centered, full_matrices=False)
    # the sign of an axis is arbitrary: fix it, or pictures flip between machines
    signs = np.sign(axes[np.arange(2), np.abs(axes).argmax(axis=1)]) if len(places) > 1 else 1.0
    turned = centered @ (axes * np.reshape(signs, (-1, 1))).T
    shifted: NDArray[np.float64] = turned - turned.min(axis=0)
    return shifted


def _packed(parts: Sequence[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """Components in rows, about as wide as high."""
    gap = 1.0
    sizes = [np.ptp(part, axis=0) + gap for part in parts]
    widest = max(float(sizes[0][0]), 1.5 * math.sqrt(float(sum(s[0] * s[1] for s in sizes))))
    packed = []
    x = y = row = 0.0
    for part, (width, height) in zip(parts, sizes, strict=True):
        if x and x + width > widest + gap:
            x, y, row = 0.0, y + row, 0.0
        packed.append(part + np.array([x, y]))
        x, row = x + width, max(row, height)
    return packed
