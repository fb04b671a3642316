"""The values as they are defined, computed without any of the package's short cuts."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import permutations
from math import factorial
from typing import Any

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, TableGame
from gstarx.graphs import CommunicationGraph
from tests.oracles import as_integer, as_networkx, parts, subsets

Numbers = NDArray[np.float64]


class Counting:
    """A game that remembers which coalitions it was asked for."""

    def __init__(self, game: Game) -> None:
        self.game = game
        self.asked: list[bytes] = []

    def __call__(self, coalitions: NDArray[np.bool_]) -> Any:
        assert coalitions.dtype == np.bool_
        self.asked += [row.tobytes() for row in coalitions]
        return self.game(coalitions)

    @property
    def distinct(self) -> int:
        """How many coalitions were asked for; fails when one was asked for twice, or nobody."""
        assert len(set(self.asked)) == len(self.asked), "a coalition was asked for twice"
        assert not any(set(row) == {0} for row in self.asked), "the empty coalition was asked for"
        return len(self.asked)


def path(n: int) -> CommunicationGraph:
    return CommunicationGraph(n, [(i, i + 1) for i in range(n - 1)])


def ring(n: int) -> CommunicationGraph:
    return CommunicationGraph(n, [(i, (i + 1) % n) for i in range(n)])


def tree(n: int, *, seed: int) -> CommunicationGraph:
    """A random tree, every node tied to one before it."""
    generator = np.random.default_rng(seed)
    return CommunicationGraph(n, [(int(generator.integers(node)), node) for node in range(1, n)])


def molecule(n: int, *, seed: int, chords: int = 2) -> CommunicationGraph:
    """A random tree of small degree and a few more edges, much as molecules are."""
    generator = np.random.default_rng(seed)
    edges: list[tuple[int, int]] = []
    degree = np.zeros(n, dtype=np.int64)
    while len(edges) < n - 1 + chords:
        node = len(edges) + 1
        i, j = (
            (node, int(generator.integers(max(0, node - 3), node)))
            if node < n
            else map(int, generator.choice(n, 2, replace=False))
        )
        if degree[i] < 4 and degree[j] < 4 and (j, i) not in edges and (i, j) not in edges:
            edges.append((i, j))
            degree[[i, j]] += 1
    return CommunicationGraph(n, edges)


def smooth_game(n: int, *, seed: int = 0, q: int | None = None) -> Game:
    """Worths that vary gently with the members, as the outputs of a network do."""
    generator = np.random.default_rng(seed)
    size = n if q is None else (n, q)
    slope, wave = generator.normal(size=size), generator.normal(size=size)

    def worth(coalitions: NDArray[np.bool_]) -> Numbers:
        members = coalitions.astype(np.float64)
        answer: Numbers = np.tanh(members @ slope / 2) * (1 + 0.5 * np.sin(members @ wave))
        return answer

    return worth


def first_players_game(coalitions: NDArray[np.bool_]) -> Numbers:
    """Worths that cost neither time nor memory, however many players there are."""
    worths: Numbers = np.tanh(coalitions[:, :7].sum(axis=1) - 3.0)
    return worths


@contextmanager
def peak_memory() -> Iterator[list[float]]:
    """The most bytes that were held at once inside, of what was not there before."""
    peak: list[float] = []
    tracemalloc.start()
    try:
        yield peak
        peak.append(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def relabeled(graph: CommunicationGraph, label: Sequence[int]) -> CommunicationGraph:
    """The same graph, its node ``i`` called ``label[i]``."""
    return CommunicationGraph(graph.num_nodes, np.array(label, dtype=np.int64)[graph.edges])


def renamed(game: Game, label: Sequence[int]) -> Game:
    """The same game, its player ``i`` called ``label[i]``."""
    return lambda coalitions: game(coalitions[:, list(label)])


def associated_matrix(graph: CommunicationGraph, tau: float) -> Numbers:
    """The matrix ``H`` of Definition 4.2 over all coalitions, row ``mask - 1`` for each."""
    n = graph.num_nodes
    other = as_networkx(graph)
    matrix = np.zeros((2**n - 1, 2**n - 1))
    split = []
    for coalition in subsets(range(n)):
        if not coalition:
            continue
        row = as_integer(coalition)
        components = list(nx.connected_components(other.subgraph(coalition)))
        if len(components) > 1:
            split.append((row, components))
            continue
        matrix[row - 1, row - 1] += 1
        for j in nx.node_boundary(other, coalition):
            matrix[row - 1, (row | 1 << j) - 1] += tau
            matrix[row - 1, row - 1] -= tau
            matrix[row - 1, (1 << j) - 1] -= tau
    for row, components in split:
        matrix[row - 1] = sum(matrix[as_integer(part) - 1] for part in components)
    return matrix


def squared_until_settled(
    matrix: Numbers, *, tol: float = 1e-3, max_squarings: int = 7
) -> tuple[Numbers, bool]:
    """The published iteration: square until the Frobenius norm of the change is at most ``tol``."""
    for _ in range(max_squarings):
        squared = matrix @ matrix
        moved = np.linalg.norm(squared - matrix)
        matrix = squared
        if moved <= tol:
            return matrix, True
    return matrix, False


def own_worths(matrix: Numbers, game: TableGame) -> Numbers:
    """What single players are worth after ``matrix`` has been applied to the worths of a game."""
    singles = (1 << np.arange(game.n)) - 1
    return np.asarray((matrix @ game.worths[1:])[singles])


def shapley_by_orders(table: Numbers, n: int) -> Numbers:
    """The mean marginal contribution over all orders of arrival."""
    values = np.zeros((n, *table.shape[1:]))
    for order in permutations(range(n)):
        before = 0
        for player in order:
            values[player] += table[before | 1 << player] - table[before]
            before |= 1 << player
    return values / factorial(n)


def restricted_table(table: Numbers, graph: CommunicationGraph) -> Numbers:
    """The worths of Myerson's restricted game, indexed by bitmask."""
    out = np.zeros_like(table)
    for coalition in subsets(range(graph.num_nodes)):
        for part in parts(graph, coalition):
            out[as_integer(coalition)] += table[as_integer(part)]
    return out
