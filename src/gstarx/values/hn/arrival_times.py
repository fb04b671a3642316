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
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import CommunicationGraph, compiled
from gstarx.values.coalition_sampling import small_sample_factor
from gstarx.values.hn.closed_form import system_of
from gstarx.values.surrogate import Features, Surrogate

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

    def feature_values(self, features: Features, nodes: NDArray[np.int64]) -> FeatureValues:
        """The HN value of every feature on the component of these nodes."""
        values, terms = _split(features, nodes, self.graph)
        by_size = np.array(features.by_size if features.shares else (), dtype=np.int64)
        varying = np.union1d(by_size, terms.columns)
        columns = np.searchsorted(varying, terms.columns)
        worths = np.zeros((BATCHES, len(nodes), len(varying)))
        full_worths = np.zeros((1, len(varying)))
        if features.shares:
            worths[:, :, np.searchsorted(varying, by_size)] = self.sizes
            full_worths[0, np.searchsorted(varying, by_size)] = 1.0, 1.0 / len(nodes)
        if len(columns):
            links = neighbor_lists(self.graph)
            for clocks, added in zip(self.clocks, worths, strict=True):
                _add_worths(*links, clocks, *terms._replace(columns=columns), len(clocks), added)
            sizes = np.where(terms.divided, len(nodes), 1)
            np.add.at(full_worths[0], columns, terms.factors / sizes)
        grown = self.inverse @ np.vstack([worths.mean(axis=0), full_worths])
        values[:, varying] += grown
        # the error of the linear system in each batch
        for inside, batch_worths in zip(self.inside, worths, strict=True):
            batch_worths[:] = self.inverse[:, :-1] @ (batch_worths - inside @ grown)
        return FeatureValues(values, varying, worths)


@dataclass(frozen=True)
class FeatureValues:
    """Values (n, width) of the features of a surrogate, and what batches say of their errors."""

    values: NDArray[np.float64]
    #: Columns that depend on growth, (c,); all others are exact.
    varying: NDArray[np.int64]
    #: Errors of these columns, (batches, n, c).
    errors: NDArray[np.float64]

    @classmethod
    def exactly(cls, values: NDArray[np.float64]) -> FeatureValues:
        """Values without an error."""
        return cls(values, np.zeros(0, dtype=np.int64), np.zeros((BATCHES, len(values), 0)))

    def variance(self, surrogate: Surrogate) -> NDArray[np.float64]:
        """Variance (n, q) of the value of a surrogate, due to the rounds of clocks."""
        off = self.errors @ surrogate.coefficients[self.varying]
        spread: NDArray[np.float64] = off.var(axis=0, ddof=1)
        return spread / BATCHES * small_sample_factor(BATCHES) ** 2


class _Terms(NamedTuple):
    """Terms of features that depend on growth: patterns, and the columns that they add to."""

    #: Rows of three nodes, some of which may be equal.
    patterns: NDArray[np.int64]
    columns: NDArray[np.int64]
    factors: NDArray[np.float64]
    #: Whether a pattern is divided by the size of the coalition that it lies in.
    divided: NDArray[np.bool_]


def _split(
    features: Features, nodes: NDArray[np.int64], graph: CommunicationGraph
) -> tuple[NDArray[np.float64], _Terms]:
    """The part of the features' HN values (n, width) that is known exactly, and the other terms.

    A pattern of nodes that are all linked shares its worth equally. A connected pattern of three
    has the mean value of its three pairs, because it differs from that by the surplus of one game.
    """
    n = len(nodes)
    place = np.full(features.num_nodes, -1)
    place[nodes] = np.arange(n)
    linked = np.zeros((n, n), dtype=np.bool_)
    linked[tuple(graph.edges.T)] = True
    linked |= linked.T
    known = np.zeros((n, features.width))
    rows: list[tuple[NDArray[np.int64], NDArray[np.int64], float, bool]] = []
    for pattern, plain, divided in features.columns():
        here = place[pattern[:, 0]] >= 0
        local, columns = place[pattern[here]], plain[here]
        if local.shape[1] == 1:
            known[local[:, 0], columns] = 1.0
        else:
            pairs = [(0, 1)] if local.shape[1] == 2 else [(0, 1), (1, 2), (0, 2)]
            for pair in pairs:
                ends = local[:, pair]
                near = linked[tuple(ends.T)]
                for end in ends.T:
                    known[end[near], columns[near]] += 1 / len(pairs) / 2
                rows.append((ends[~near][:, [0, 1, 1]], columns[~near], 1 / len(pairs), False))
        if divided is not None:
            three = local[:, np.minimum(np.arange(3), local.shape[1] - 1)]
            rows.append((three, divided[here], 1.0, True))
    terms = _Terms(
        np.concatenate([np.zeros((0, 3), dtype=np.int64), *(row[0] for row in rows)]),
        np.concatenate([np.zeros(0, dtype=np.int64), *(row[1] for row in rows)]),
        np.concatenate([np.zeros(0), *(np.full(len(row[1]), row[2]) for row in rows)]),
        np.concatenate(
            [np.zeros(0, dtype=np.bool_), *(np.full(len(row[1]), row[3]) for row in rows)]
        ),
    )
    return known, terms


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
def _add_worths(begins, neighbors, clocks, patterns, columns, factors, divided, rounds, added):  # type: ignore[no-untyped-def]
    """Add to columns (n, width) what patterns are worth over the mean time of growth."""
    n = clocks.shape[1]
    rank = np.empty(n, np.int64)
    times = np.empty(n)
    due = np.empty(n + 1)
    waiting = np.empty(n + 1, np.int64)
    reached = np.empty(n, np.bool_)
    # from the arrival of each rank on: the remaining time, and the same divided by the size
    left = np.zeros((2, n))
    for clock in clocks:
        for k in range(n):
            _grow(begins, neighbors, clock, k, rank, times, due, waiting, reached)
            for place in range(n - 2, -1, -1):
                stay = (times[place + 1] - times[place]) / rounds
                left[0, place] = left[0, place + 1] + stay
                left[1, place] = left[1, place + 1] + stay / (place + 1)
            for p in range(len(patterns)):
                last = max(rank[patterns[p, 0]], rank[patterns[p, 1]], rank[patterns[p, 2]])
                added[k, columns[p]] += factors[p] * left[np.int64(divided[p]), last]
