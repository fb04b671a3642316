"""Random coalitions that growth passes through, and the start nodes it may have come from.

The weight of a coalition ``T`` for start node ``k`` is the probability that growth from ``k``
passes through it. Let growth start anywhere and stop at a size fixed in advance; then that weight
is, up to known factors, the probability that growth started from ``k``, given that it is at ``T``.
Growth itself is one draw of the order in which ``T`` was built, from exactly the distribution of
these probabilities. A Markov chain on orders with this stationary distribution therefore starts in
equilibrium, and an average along it is unbiased however short it is; every further step reduces the
noise. If all coalitions of some size are known, the probabilities follow from the first nodes of
the order, up to that size.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import (
    WORD,
    CommunicationGraph,
    Masks,
    bit_count,
    compiled,
    same_mask,
    slot_of,
    table_of,
    words_for,
)
from gstarx.values.hn.arrival_times import neighbor_lists
from gstarx.values.hn.small_coalitions import SmallCoalitions

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
#: Weights along an order are scaled down before they overflow.
_HUGE = 1e200


class GrowthDraws:
    """Draws coalitions of a connected graph that are larger than the known ones."""

    def __init__(
        self, graph: CommunicationGraph, known: SmallCoalitions, generator: np.random.Generator
    ) -> None:
        self.num_nodes = graph.num_nodes
        self.generator = generator
        self.links = neighbor_lists(graph)
        self.hoods = graph.adjacency.copy()
        nodes = np.arange(graph.num_nodes)
        self.hoods[nodes, nodes // WORD] |= _ONE << (nodes % WORD).astype(np.uint64)
        self.size = known.size
        self.known = known.masks[known.last :]
        self.table = table_of(self.known)
        chances = known.weights[known.last :] / graph.degrees
        self.chances = chances / chances.sum(axis=1, keepdims=True)

    def draw(
        self, starts: NDArray[np.int64], sizes: NDArray[np.int64], steps: int
    ) -> tuple[Masks, NDArray[np.float64]]:
        """Coalitions (k, words) of given sizes, and their mean weight for growth from every node.

        The weights (k, n) are unbiased: for a coalition drawn with start nodes and sizes that are
        equally likely, ``E[weights[k] v(T)]`` is the mean over sizes of ``w_k(T) v(T) / b(k)``.
        """
        n = self.num_nodes
        masks = np.zeros((len(sizes), words_for(n)), dtype=np.uint64)
        weights = np.zeros((len(sizes), n))
        _draw(
            *self.links,
            self.hoods,
            starts,
            sizes,
            steps,
            self.size,
            self.known,
            self.table,
            self.chances,
            self.generator,
            masks,
            weights,
        )
        # start nodes are equally likely
        weights *= n
        return masks, weights


@compiled
def _draw(  # type: ignore[no-untyped-def]
    begins,
    neighbors,
    hoods,
    starts,
    sizes,
    steps,
    prefix,
    known,
    table,
    chances,
    generator,
    masks,
    weights,
):
    n, words = hoods.shape
    order = np.empty(n, np.int64)
    waiting = np.empty(n, np.int64)
    reached = np.empty(n, np.bool_)
    unions = np.zeros((n + 1, words), np.uint64)
    borders = np.empty(n + 1, np.int64)
    moved = np.empty(n, np.int64)
    moved_unions = np.zeros((n + 1, words), np.uint64)
    moved_borders = np.empty(n + 1, np.int64)
    likelihoods = np.empty(n + 1)
    union = np.empty(words, np.uint64)
    for row in range(len(starts)):
        size = sizes[row]
        border = _grow(begins, neighbors, starts[row], size, generator, order, waiting, reached)
        for place in range(size):
            masks[row, order[place] // WORD] |= _ONE << np.uint64(order[place] % WORD)
        _accumulate(hoods, order, 0, size, unions, borders)
        for _ in range(steps):
            _move_first(
                hoods,
                order,
                size,
                generator,
                unions,
                borders,
                moved,
                moved_unions,
                moved_borders,
                likelihoods,
                union,
            )
            _swap_neighbors(hoods, order, size, generator, unions, borders, union)
            for w in range(words):
                union[w] = _ZERO
            for place in range(prefix):
                union[order[place] // WORD] |= _ONE << np.uint64(order[place] % WORD)
            s = slot_of(union, len(table))
            while not same_mask(known[table[s]], union):
                s = (s + 1) & (len(table) - 1)
            for place in range(prefix):
                k = order[place]
                weights[row, k] += chances[table[s], k] / (steps * border)


@compiled
def _grow(begins, neighbors, first, size, generator, order, waiting, reached):  # type: ignore[no-untyped-def]
    """Random growth from a node up to a size, into ``order``; returns the boundary's size."""
    for node in range(len(reached)):
        reached[node] = False
    reached[first] = True
    order[0] = first
    border = 0
    for place in range(1, size + 1):
        node = order[place - 1]
        for at in range(begins[node], begins[node + 1]):
            other = neighbors[at]
            if not reached[other]:
                reached[other] = True
                waiting[border] = other
                border += 1
        if place < size:
            pick = np.int64(generator.random() * border)
            order[place] = waiting[pick]
            border -= 1
            waiting[pick] = waiting[border]
    return border


@compiled
def _accumulate(hoods, order, first, last, unions, borders):  # type: ignore[no-untyped-def]
    """Members and boundary of the first so many nodes, and the size of their boundary."""
    for place in range(first, last):
        count = np.int64(0)
        for w in range(hoods.shape[1]):
            unions[place + 1, w] = unions[place, w] | hoods[order[place], w]
            count += np.int64(bit_count(unions[place + 1, w]))
        borders[place + 1] = count - place - 1


@compiled
def _holds(mask, node):  # type: ignore[no-untyped-def]
    return (mask[node // WORD] >> np.uint64(node % WORD)) & _ONE != _ZERO


@compiled
def _swap_neighbors(hoods, order, size, generator, unions, borders, union):  # type: ignore[no-untyped-def]
    """Let each two successive nodes of an order change places, as likely as that makes the order.

    From the last to the first, so that a node can come a long way forward.
    """
    words = hoods.shape[1]
    for place in range(size - 2, -1, -1):
        node = order[place + 1]
        # the first two are linked; any other must be linked to what comes before both
        if place > 0 and not _holds(unions[place], node):
            continue
        count = np.int64(0)
        for w in range(words):
            union[w] = unions[place, w] | hoods[node, w]
            count += np.int64(bit_count(union[w]))
        border = count - place - 1
        # an order is as likely as one over the product of its boundaries
        if generator.random() * (borders[place + 1] + border) < borders[place + 1]:
            order[place + 1] = order[place]
            order[place] = node
            borders[place + 1] = border
            for w in range(words):
                unions[place + 1, w] = union[w]


@compiled
def _move_first(  # type: ignore[no-untyped-def]
    hoods,
    order,
    size,
    generator,
    unions,
    borders,
    moved,
    moved_unions,
    moved_borders,
    likelihoods,
    union,
):
    """A Metropolis-Hastings step that changes the first node of an order.

    Either the first node goes to a later place, as likely as that makes the order, or a neighbor
    of the first node comes to the front; each undoes the other.
    """
    if generator.random() < 0.5:
        last, scale = _later(hoods, order, size, borders, likelihoods, union)
        total = 0.0
        for place in range(1, last):
            total += likelihoods[place]
        if generator.random() * scale * _linked(hoods, order, size, order[1]) >= total:
            return
        point = generator.random() * total
        place = 1
        while place < last - 1 and point >= likelihoods[place]:
            point -= likelihoods[place]
            place += 1
        node = order[0]
        for p in range(place):
            order[p] = order[p + 1]
        order[place] = node
        _accumulate(hoods, order, 0, place, unions, borders)
    else:
        remaining = np.int64(generator.random() * _linked(hoods, order, size, order[0]))
        place = 0
        while remaining >= 0:
            place += 1
            if _holds(hoods[order[0]], order[place]):
                remaining -= 1
        moved[0] = order[place]
        for p in range(place):
            moved[p + 1] = order[p]
        for p in range(place + 1, size):
            moved[p] = order[p]
        _accumulate(hoods, moved, 0, place + 1, moved_unions, moved_borders)
        for p in range(place + 2, size + 1):
            moved_borders[p] = borders[p]
        last, scale = _later(hoods, moved, size, moved_borders, likelihoods, union)
        total = 0.0
        for p in range(1, last):
            total += likelihoods[p]
        if generator.random() * total >= scale * _linked(hoods, order, size, order[0]):
            return
        for p in range(place + 1):
            order[p] = moved[p]
            borders[p + 1] = moved_borders[p + 1]
            for w in range(hoods.shape[1]):
                unions[p + 1, w] = moved_unions[p + 1, w]


@compiled
def _linked(hoods, order, size, node):  # type: ignore[no-untyped-def]
    """How many nodes of an order are neighbors of one of them."""
    count = -1
    for place in range(size):
        count += _holds(hoods[node], order[place])
    return count


@compiled
def _later(hoods, order, size, borders, likelihoods, union):  # type: ignore[no-untyped-def]
    """How likely orders are in which the first node comes at place 1, 2, ..., into ``likelihoods``.

    Returns the end of the places that it can come at, and how likely the order is as it stands.
    """
    words = hoods.shape[1]
    for w in range(words):
        union[w] = _ZERO
    likely = 1.0
    scale = 1.0
    for place in range(1, size):
        node = order[place]
        # without the first node the others have to hang together
        if place > 1 and not _holds(union, node):
            return place, scale
        count = np.int64(0)
        for w in range(words):
            union[w] |= hoods[node, w]
            count += np.int64(bit_count(union[w]))
        likely *= borders[place] / (count - place)
        likelihoods[place] = likely
        if likely > _HUGE:
            for p in range(1, place + 1):
                likelihoods[p] /= _HUGE
            likely /= _HUGE
            scale /= _HUGE
    return size, scale
