"""Many coalitions of one graph as the index arrays of one disjoint-union batch.

A coalition is a bitmask. Which nodes and edges of the graph it keeps, and where they land in the
batch, is written by one compiled loop: no ``Data`` object and no tensor operation per coalition.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import WORD, Masks, bit_count, compiled

_ONE = np.uint64(1)
_ZERO = np.uint64(0)


@dataclass(frozen=True)
class UnionBatch:
    """Where every node and edge of a batch of coalitions comes from and goes to.

    Attributes
    ----------
    nodes
        Node of the graph behind every node of the batch, (N,).
    owner
        Coalition that every node of the batch belongs to, (N,).
    ends
        Edges of the batch, in its own numbering, (2, E).
    edges
        Edge of the graph behind every edge of the batch, (E,).
    places
        The position in the batch of every wanted node in every coalition, -1 where it is
        absent; (k, len(wanted)).
    """

    nodes: NDArray[np.int64]
    owner: NDArray[np.int64]
    ends: NDArray[np.int64]
    edges: NDArray[np.int64]
    places: NDArray[np.int64]

    @classmethod
    def of(
        cls,
        masks: Masks,
        num_nodes: int,
        edge_index: NDArray[np.int64],
        *,
        present: Masks,
        linked: Masks | None = None,
        wanted: NDArray[np.int64] | None = None,
    ) -> UnionBatch:
        """The batch of packed coalitions (k, words).

        ``present`` (1, words) are nodes that every coalition of the batch holds in any case. An
        edge is kept when both its ends are in the coalition itself, or in ``linked`` (1, words).
        ``wanted`` are nodes whose places in the batch are wanted.
        """
        linked = np.zeros_like(present) if linked is None else linked
        wanted = np.zeros(0, dtype=np.int64) if wanted is None else wanted
        sizes = np.empty((len(masks), 2), dtype=np.int64)
        _measure(masks, edge_index, present[0], linked[0], sizes)
        total_nodes, total_edges = sizes.sum(axis=0)
        batch = cls(
            np.empty(total_nodes, dtype=np.int64),
            np.empty(total_nodes, dtype=np.int64),
            np.empty((2, total_edges), dtype=np.int64),
            np.empty(total_edges, dtype=np.int64),
            np.empty((len(masks), len(wanted)), dtype=np.int64),
        )
        _fill(
            masks,
            edge_index,
            present[0],
            linked[0],
            np.empty(num_nodes, dtype=np.int64),
            batch.nodes,
            batch.owner,
            batch.ends,
            batch.edges,
            wanted,
            batch.places,
        )
        return batch

    @classmethod
    def copies(
        cls, num_nodes: int, edge_index: NDArray[np.int64], count: int, wanted: NDArray[np.int64]
    ) -> UnionBatch:
        """The batch of ``count`` copies of a graph, with the places of the ``wanted`` nodes."""
        first = np.arange(count)[:, None] * num_nodes
        return cls(
            np.tile(np.arange(num_nodes), count),
            np.repeat(np.arange(count), num_nodes),
            (edge_index[:, None, :] + first[None]).reshape(2, -1),
            np.tile(np.arange(edge_index.shape[1]), count),
            first + wanted,
        )


def coalition_sizes(masks: Masks, present: Masks) -> NDArray[np.int64]:
    """Number of nodes of every coalition, those present in any case included."""
    sizes = np.empty(len(masks), dtype=np.int64)
    _sizes(masks, present[0], sizes)
    return sizes


def with_edges(
    masks: Masks, edge_index: NDArray[np.int64], linked: Masks | None = None
) -> NDArray[np.bool_]:
    """Which of packed coalitions keep an edge, (k,); ``linked`` as for a batch."""
    linked = np.zeros_like(masks[:1]) if linked is None else linked
    found = np.zeros(len(masks), dtype=np.bool_)
    _with_edges(masks, edge_index, linked[0], found)
    return found


@compiled
def _with_edges(masks, edge_index, linked, found):  # type: ignore[no-untyped-def]
    mask = np.empty(masks.shape[1], np.uint64)
    for row in range(len(masks)):
        for w in range(len(mask)):
            mask[w] = masks[row, w] | linked[w]
        for e in range(edge_index.shape[1]):
            if _has(mask, edge_index[0, e]) and _has(mask, edge_index[1, e]):
                found[row] = True
                break


@compiled
def _has(mask, node):  # type: ignore[no-untyped-def]
    return (mask[node // WORD] >> np.uint64(node % WORD)) & _ONE != _ZERO


@compiled
def _sizes(masks, present, sizes):  # type: ignore[no-untyped-def]
    for row in range(len(masks)):
        sizes[row] = 0
        for w in range(masks.shape[1]):
            sizes[row] += np.int64(bit_count(masks[row, w] | present[w]))


@compiled
def _measure(masks, edge_index, present, linked, sizes):  # type: ignore[no-untyped-def]
    words = masks.shape[1]
    mask = np.empty(words, np.uint64)
    for row in range(len(masks)):
        sizes[row, 0] = 0
        for w in range(words):
            sizes[row, 0] += np.int64(bit_count(masks[row, w] | present[w]))
            mask[w] = masks[row, w] | linked[w]
        kept = 0
        for e in range(edge_index.shape[1]):
            kept += _has(mask, edge_index[0, e]) & _has(mask, edge_index[1, e])
        sizes[row, 1] = kept


@compiled
def _fill(masks, edge_index, present, linked, place, nodes, owner, ends, edges, wanted, places):  # type: ignore[no-untyped-def]
    words = masks.shape[1]
    mask = np.empty(words, np.uint64)
    here, there = 0, 0
    for row in range(len(masks)):
        for w in range(words):
            mask[w] = masks[row, w] | present[w]
        for node in range(len(place)):
            place[node] = -1
            if _has(mask, node):
                place[node] = here
                nodes[here] = node
                owner[here] = row
                here += 1
        for at in range(len(wanted)):
            places[row, at] = place[wanted[at]]
        for w in range(words):
            mask[w] = masks[row, w] | linked[w]
        for e in range(edge_index.shape[1]):
            a, b = edge_index[0, e], edge_index[1, e]
            if _has(mask, a) & _has(mask, b):
                ends[0, there] = place[a]
                ends[1, there] = place[b]
                edges[there] = e
                there += 1
