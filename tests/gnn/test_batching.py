"""The index arrays of a batch, against graphs cut out one by one."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gstarx.gnn.batching import UnionBatch, coalition_sizes
from gstarx.graphs.bitmasks import pack
from tests.strategies import coalition_matrices, edge_lists


@given(st.data(), st.sampled_from([0, 60, 100]))
def test_a_batch_is_the_disjoint_union(data: st.DataObject, shift: int) -> None:
    """Nodes from ``shift`` on, so that masks of more than one word are met."""
    small, drawn = data.draw(edge_lists(max_nodes=6))
    n = small + shift
    edges = np.array([(a + shift, b + shift) for a, b in drawn], dtype=np.int64).reshape(-1, 2)
    rows = np.zeros((0, n), dtype=bool)
    chosen = data.draw(coalition_matrices(small))
    rows = np.hstack([np.zeros((len(chosen), shift), dtype=bool), chosen])
    flags = st.lists(st.booleans(), min_size=small, max_size=small)
    present = np.array([False] * shift + data.draw(flags))
    linked = present & np.array([False] * shift + data.draw(flags))
    asked = np.array(data.draw(st.lists(st.integers(0, n - 1))), dtype=np.int64)
    batch = UnionBatch.of(
        pack(rows),
        n,
        np.ascontiguousarray(edges.T),
        present=pack(present[None]),
        linked=pack(linked[None]),
        wanted=asked,
    )
    nodes, owner, ends, kept, places = [], [], [], [], []
    for number, row in enumerate(rows):
        there = np.flatnonzero(row | present)
        place = {int(node): len(nodes) + at for at, node in enumerate(there)}
        nodes += there.tolist()
        owner += [number] * len(there)
        for e, (a, b) in enumerate(edges.tolist()):
            if (row | linked)[a] and (row | linked)[b]:
                ends.append((place[a], place[b]))
                kept.append(e)
        places.append([place.get(int(node), -1) for node in asked])
    assert batch.nodes.tolist() == nodes
    assert batch.owner.tolist() == owner
    assert batch.ends.T.tolist() == [list(pair) for pair in ends]
    assert batch.edges.tolist() == kept
    assert batch.places.shape == (len(rows), len(asked))
    assert batch.places.tolist() == places
    sizes = coalition_sizes(pack(rows), pack(present[None]))
    assert sizes.tolist() == (rows | present).sum(axis=1).tolist()


def test_without_further_wishes() -> None:
    edges = np.array([[0, 1, 2], [1, 2, 0]])
    nobody = pack(np.zeros((1, 3), dtype=bool))
    batch = UnionBatch.of(pack(np.ones((2, 3), dtype=bool)), 3, edges, present=nobody)
    assert batch.nodes.tolist() == [0, 1, 2, 0, 1, 2]
    assert batch.ends.tolist() == [[0, 1, 2, 3, 4, 5], [1, 2, 0, 4, 5, 3]]
    assert batch.places.shape == (2, 0)


def test_memory_does_not_grow_with_the_graph() -> None:
    """Many small coalitions of a large graph need room for their own nodes only."""
    n = 20_000
    rows = np.zeros((4_000, n), dtype=bool)
    rows[np.arange(4_000), np.arange(4_000)] = True
    batch = UnionBatch.of(
        pack(rows), n, np.zeros((2, 0), dtype=np.int64), present=pack(np.zeros((1, n), dtype=bool))
    )
    assert sum(array.nbytes for array in vars(batch).values()) < 100_000
