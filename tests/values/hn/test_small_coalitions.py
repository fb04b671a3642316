"""The smallest coalitions and their growth weights, against the lattice of all coalitions."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx.graphs import CommunicationGraph
from gstarx.graphs.bitmasks import unpack
from gstarx.graphs.lattice import CoalitionLattice
from gstarx.values.hn.closed_form import growth_weights
from gstarx.values.hn.small_coalitions import SmallCoalitions
from tests.pairs import for_each
from tests.values.definitions import Numbers, molecule, path, ring, tree

GRAPHS = (path(7), ring(8), molecule(12, seed=2), tree(70, seed=1), CommunicationGraph.complete(6))


def by_members(members: np.ndarray, weights: Numbers) -> dict[bytes, Numbers]:
    return {row.tobytes(): own for row, own in zip(members, weights, strict=True)}


@pytest.mark.parametrize("graph", GRAPHS[:3] + GRAPHS[4:])
def test_a_large_limit_gives_all_but_the_grand_coalition(graph: CommunicationGraph) -> None:
    lattice = CoalitionLattice.of(graph)
    exact = by_members(lattice.coalitions(), growth_weights(lattice))
    known = SmallCoalitions.within(graph, 10**5)
    assert known.size == graph.num_nodes - 1
    found = by_members(unpack(known.masks, graph.num_nodes), known.weights)
    assert len(found) == len(known.masks) == len(exact) - 1
    for members, weights in found.items():
        np.testing.assert_allclose(weights, exact[members], rtol=1e-12, atol=0)


@for_each("graph", GRAPHS)
def test_sizes_are_complete(graph: CommunicationGraph) -> None:
    n = graph.num_nodes
    for limit in (1, n, n + 5, 4 * n, 9 * n):
        known = SmallCoalitions.within(graph, limit)
        sizes = unpack(known.masks, n).sum(axis=1)
        assert len(sizes) <= max(limit, n)
        assert known.size == sizes.max()
        assert (sizes[known.last :] == known.size).all()
        assert (sizes[: known.last] < known.size).all()
        # growth is at some coalition of every size, whatever it started from
        linked = np.zeros((n, n), dtype=np.int64)
        linked[tuple(graph.edges.T)] = linked[tuple(graph.edges[:, ::-1].T)] = 1
        members = unpack(known.masks, n)
        border = ((members @ linked > 0) & ~members).sum(axis=1)
        for size in range(1, known.size + 1):
            at = sizes == size
            np.testing.assert_allclose(
                (known.weights[at] * border[at, None]).sum(axis=0), graph.degrees, rtol=1e-9
            )
