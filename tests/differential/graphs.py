"""Random graphs, small and awkward: loops, parallel and directed edges, isolated nodes, none."""

from __future__ import annotations

from itertools import combinations, pairwise
from random import Random

import torch
from torch_geometric.data import Data

from tests.differential import values

FEATURES, EDGE_FEATURES = 4, 2
#: The most connected coalitions of a large graph.
MOST_SETS = 400
Pairs = list[tuple[int, int]]


def generator(rng: Random) -> torch.Generator:
    """Random tensors that follow from the random numbers of the combination."""
    return torch.Generator().manual_seed(rng.randrange(2**31))


def draw_graph(rng: Random, *, both_ways: bool, large: int = 0) -> Data:
    """A graph in double precision; ``both_ways`` says that every edge has both directions.

    A large one has so many nodes and is sparse, so that its connected coalitions can be listed.
    """
    n = large or rng.choice((1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 8))
    pairs = _shape(rng, n, large)
    edges = [pair for a, b in pairs for pair in _directions(rng, a, b, both_ways)]
    if edges and rng.random() < 0.25:  # parallel edges
        for a, b in rng.sample(edges, min(len(edges), rng.choice((1, 2)))):
            edges += [(a, b), (b, a)] if both_ways else [(a, b)]
    if rng.random() < (0.5 if large else 0.35):
        edges += [(node, node) for node in rng.sample(range(n), rng.randint(1, min(n, 3)))]
    if rng.random() < 0.5:
        rng.shuffle(edges)
    return _with_fields(rng, n, edges, alike=rng.random() < (0.6 if large else 0.4))


def _shape(rng: Random, n: int, large: int) -> Pairs:
    """Pairs of nodes that are linked."""
    order = rng.sample(range(n), n)
    tree = [(order[rng.randrange(at)], order[at]) for at in range(1, n)]
    path = list(pairwise(order))
    ring = [*path, (order[-1], order[0])] if n > 2 else path
    if large:
        chords = [*ring, *zip(order[:2], order[2:4], strict=True)]  # two triangles
        few = [pairs for pairs in (tree, chords) if _connected_sets(n, pairs) <= MOST_SETS]
        return rng.choice([path, ring, path[: n - 2], *few, *few])
    kind = rng.random()
    if kind < 0.05:
        return []
    if kind < 0.25:
        return tree
    if kind < 0.4:
        return ring
    everything = list(combinations(range(n), 2))
    if kind < 0.7:  # connected, with a few cycles
        return sorted(
            {(min(p), max(p)) for p in [*tree, *rng.sample(everything, len(everything) // 4)]}
        )
    density = rng.choice((0.25, 0.4, 0.6, 1.0))
    return [pair for pair in everything if rng.random() < density]


def _connected_sets(n: int, pairs: Pairs) -> int:
    return len(values.connected(values.neighbors(n, pairs), MOST_SETS))


def _directions(rng: Random, a: int, b: int, both_ways: bool) -> Pairs:
    if both_ways or rng.random() < 0.4:
        return [(a, b), (b, a)]
    return [(a, b) if rng.random() < 0.5 else (b, a)]


def _with_fields(rng: Random, n: int, edges: Pairs, *, alike: bool) -> Data:
    draw = generator(rng)
    if alike:
        x = torch.eye(FEATURES, dtype=torch.float64)[torch.randint(FEATURES, (n,), generator=draw)]
    else:
        x = torch.randn(n, FEATURES, generator=draw, dtype=torch.float64)
    count = len(edges)
    attributes = torch.randn(count, EDGE_FEATURES, generator=draw, dtype=torch.float64)
    if rng.random() < 0.4:
        attributes = (attributes > 0).double()
    return Data(
        x=x,
        edge_index=torch.tensor(edges, dtype=torch.long).reshape(-1, 2).t().contiguous(),
        edge_attr=attributes,
        edge_weight=torch.rand(count, generator=draw, dtype=torch.float64) + 0.2,
    )
