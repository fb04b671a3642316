"""Arrival times of random growth, and the HN value of games that depend on them alone.

Let every boundary node join at rate one. Growth then stays in ``T`` for ``1 / b(T)`` on average,
and ``w_k(T) / b(k)`` is the mean time that growth from ``k`` spends in ``T``. The sums of the
linear system become mean times: a node ``m`` is inside from its arrival on, so that

    M[k, m] / b(k) = E_k[last arrival - arrival of m]

and a pattern of nodes is inside from the arrival of the last of them.

A node joins an exponential time after the first of its neighbors has. So give every node a clock,
an exponential time of its own, and the arrivals are shortest paths of clocks. One round of clocks
serves growth from *all* start nodes, and what these have in common cancels out of the system, which
sees differences between start nodes only. The clocks of a node are spread evenly over the rounds of
a batch; batches are independent, and their spread tells the error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import CommunicationGraph, compiled
from gstarx.values.coalition_sampling import small_sample_factor
from gstarx.values.hn.closed_form import system_of
from gstarx.values.surrogate import Surrogate

#: Independent batches of rounds.
BATCHES = 16


@dataclass(frozen=True)
class ArrivalTimes:
    """Sampled arrival times of growth on a connected graph of at least two nodes."""

    graph: CommunicationGraph
    #: (batches, rounds, n)
    clocks: NDArray[np.float64]
    #: Mean time that ``m`` is inside when growth starts from ``k``: (batches, n, n).
    inside: NDArray[np.float32]
    #: Mean over the time of growth from ``k`` of one and of one over the size: (batches, n, 2).
    sizes: NDArray[np.float64]
    #: The inverse of the linear system without its last row, (n, n + 1): what worths averaged over
    #: growth from every start node, and at last the worth of the whole, give to every node.
    inverse: NDArray[np.float64]

    @classmethod
    def sample(
        cls, graph: CommunicationGraph, rounds: int, generator: np.random.Generator
    ) -> ArrivalTimes:
        """Arrival times from ``rounds`` rounds of clocks, in equal batches."""
        n = graph.num_nodes
        each = -(-rounds // BATCHES)
        clocks = np.stack([_clocks(each, n, generator) for _ in range(BATCHES)])
        inside = np.zeros((BATCHES, n, n), dtype=np.float32)
        sizes = np.zeros((BATCHES, n, 2))
        links = neighbor_lists(graph)
        for batch in range(BATCHES):
            total = np.zeros((n, n))
            _add_times(*links, clocks[batch], total, sizes[batch])
            inside[batch] = total / each
        mean = inside.mean(axis=0, dtype=np.float64)
        inverse = np.linalg.inv(system_of(mean, np.ones(n, dtype=np.int64)))[:n].astype(np.float64)
        return cls(graph, clocks, inside, sizes / each, inverse)

    def value_of(
        self, surrogate: Surrogate, nodes: NDArray[np.int64]
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """HN value (n, q) of a surrogate on the component of these nodes, and its variance."""
        known, terms = _split(surrogate, nodes, self.graph)
        worths = self.sizes @ terms.by_size
        if len(terms.patterns):
            links = neighbor_lists(self.graph)
            for batch, clocks in enumerate(self.clocks):
                added = np.zeros_like(worths[batch])
                _add_worths(*links, clocks, terms.patterns, terms.plain, terms.shares, added)
                worths[batch] += added / len(clocks)
        mean = np.vstack([worths.mean(axis=0), terms.full_worth])
        values = self.inverse @ mean
        # the error of the linear system in each batch
        off = np.stack(
            [
                self.inverse[:, :-1] @ (batch_worths - inside @ values)
                for batch_worths, inside in zip(worths, self.inside, strict=True)
            ]
        )
        variance = off.var(axis=0, ddof=1) / BATCHES * small_sample_factor(BATCHES) ** 2
        return known + values, variance


@dataclass(frozen=True)
class _Terms:
    """Terms that depend on growth: of patterns, plain and divided by the size, and of the size.

    Patterns are rows of three nodes, some of which may be equal.
    """

    patterns: NDArray[np.int64]
    plain: NDArray[np.float64]
    shares: NDArray[np.float64]
    #: Coefficients of a constant and of one over the size: (2, q).
    by_size: NDArray[np.float64]
    #: The worth of the whole component, (1, q).
    full_worth: NDArray[np.float64]


def _split(
    surrogate: Surrogate, nodes: NDArray[np.int64], graph: CommunicationGraph
) -> tuple[NDArray[np.float64], _Terms]:
    """The part of a surrogate's HN value (n, q) that is known exactly, and the other terms.

    A pattern of nodes that are all linked shares its worth equally. A connected pattern of three
    has the mean value of its three pairs, because it differs from that by the surplus of one game.
    """
    q = surrogate.coefficients.shape[1]
    place = np.full(surrogate.features.num_nodes, -1)
    place[nodes] = np.arange(len(nodes))
    linked = np.zeros((len(nodes), len(nodes)), dtype=np.bool_)
    linked[tuple(graph.edges.T)] = True
    linked |= linked.T
    known = np.zeros((len(nodes), q))
    remaining: list[tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.float64]]] = []
    by_size, terms = surrogate.terms()
    full_worth = by_size[0] + by_size[1] / len(nodes)
    for pattern, plain, shares in terms:
        here = place[pattern[:, 0]] >= 0
        local, plain = place[pattern[here]], plain[here]
        if local.shape[1] == 1:
            known[local[:, 0]] += plain
        else:
            pairs = [(0, 1)] if local.shape[1] == 2 else [(0, 1), (1, 2), (0, 2)]
            for pair in pairs:
                ends, worth = local[:, pair], plain / len(pairs)
                near = linked[tuple(ends.T)]
                for end in ends[near].T:
                    np.add.at(known, end, worth[near] / 2)
                far = ends[~near]
                if len(far):
                    remaining.append((far[:, [0, 1, 1]], worth[~near], np.zeros_like(worth[~near])))
                    full_worth = full_worth + worth[~near].sum(axis=0)
        if shares is not None:
            three = local[:, np.minimum(np.arange(3), local.shape[1] - 1)]
            remaining.append((three, np.zeros_like(shares[here]), shares[here]))
            full_worth = full_worth + shares[here].sum(axis=0) / len(nodes)
    empty = (np.zeros((0, 3), dtype=np.int64), np.zeros((0, q)), np.zeros((0, q)))
    patterns, plain, shares = (
        np.ascontiguousarray(np.concatenate(part)) for part in zip(empty, *remaining, strict=True)
    )
    return known, _Terms(patterns, plain, shares, by_size, full_worth[None])


def _clocks(rounds: int, n: int, generator: np.random.Generator) -> NDArray[np.float64]:
    """Exponential times (rounds, n), those of every node spread evenly over the rounds."""
    order = generator.permuted(np.tile(np.arange(rounds), (n, 1)), axis=1).T
    even = (order + generator.random((rounds, n))) / rounds
    return -np.log1p(-even)


def neighbor_lists(
    graph: CommunicationGraph,
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The neighbors of all nodes in one list, and where those of every node begin (n + 1,)."""
    ends = np.vstack([graph.edges, graph.edges[:, ::-1]])
    ends = ends[np.argsort(ends[:, 0], kind="stable")]
    return np.concatenate([[0], np.cumsum(graph.degrees)]), np.ascontiguousarray(ends[:, 1])


@compiled
def _grow(begins, neighbors, clock, first, rank, times, due, waiting, reached):  # type: ignore[no-untyped-def]
    """Grow from a node: ``rank`` of every node by arrival, and ``times`` of arrival by rank.

    ``due`` and ``waiting`` are a heap of boundary nodes by the time at which they will join.
    """
    n = len(clock)
    for node in range(n):
        reached[node] = False
    reached[first] = True
    rank[first] = 0
    times[0] = 0.0
    size = 0
    node = first
    for place in range(1, n):
        now = times[place - 1]
        for at in range(begins[node], begins[node + 1]):
            other = neighbors[at]
            if reached[other]:
                continue
            reached[other] = True
            key = now + clock[other]
            child = size
            size += 1
            while child > 0 and due[(child - 1) // 2] > key:
                due[child] = due[(child - 1) // 2]
                waiting[child] = waiting[(child - 1) // 2]
                child = (child - 1) // 2
            due[child] = key
            waiting[child] = other
        node = waiting[0]
        times[place] = due[0]
        rank[node] = place
        size -= 1
        parent = 0
        while True:
            child = 2 * parent + 1
            if child >= size:
                break
            if child + 1 < size and due[child + 1] < due[child]:
                child += 1
            if due[child] >= due[size]:
                break
            due[parent] = due[child]
            waiting[parent] = waiting[child]
            parent = child
        due[parent] = due[size]
        waiting[parent] = waiting[size]


@compiled
def _add_times(begins, neighbors, clocks, inside, sizes):  # type: ignore[no-untyped-def]
    """Add to ``inside`` (n, n) how long nodes are inside, and to ``sizes`` (n, 2) what sizes are.

    Up to the last arrival, which completes the whole graph.
    """
    n = clocks.shape[1]
    rank = np.empty(n, np.int64)
    times = np.empty(n)
    due = np.empty(n + 1)
    waiting = np.empty(n + 1, np.int64)
    reached = np.empty(n, np.bool_)
    for clock in clocks:
        for k in range(n):
            _grow(begins, neighbors, clock, k, rank, times, due, waiting, reached)
            for m in range(n):
                inside[k, m] += times[n - 1] - times[rank[m]]
            sizes[k, 0] += times[n - 1]
            for place in range(1, n):
                sizes[k, 1] += (times[place] - times[place - 1]) / place


@compiled
def _add_worths(begins, neighbors, clocks, patterns, plain, shares, added):  # type: ignore[no-untyped-def]
    """Add to ``added`` (n, q) what patterns are worth over the time of growth from every node."""
    n = clocks.shape[1]
    q = added.shape[1]
    rank = np.empty(n, np.int64)
    times = np.empty(n)
    due = np.empty(n + 1)
    waiting = np.empty(n + 1, np.int64)
    reached = np.empty(n, np.bool_)
    # from the arrival of each rank on: the remaining time, and the same divided by the size
    left = np.zeros(n)
    by_size = np.zeros(n)
    for clock in clocks:
        for k in range(n):
            _grow(begins, neighbors, clock, k, rank, times, due, waiting, reached)
            for place in range(n - 2, -1, -1):
                stay = times[place + 1] - times[place]
                left[place] = left[place + 1] + stay
                by_size[place] = by_size[place + 1] + stay / (place + 1)
            for p in range(len(patterns)):
                last = max(rank[patterns[p, 0]], rank[patterns[p, 1]], rank[patterns[p, 2]])
                for g in range(q):
                    added[k, g] += plain[p, g] * left[last] + shares[p, g] * by_size[last]
