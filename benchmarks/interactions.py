"""Games whose Shapley, Banzhaf and Myerson values are known in closed form, and graphs for them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, Worths
from gstarx.graphs import CommunicationGraph
from gstarx.values.surrogate import two_edge_paths


class KnownValues(NamedTuple):
    """Values of a sum of unanimity games."""

    shapley: NDArray[np.float64]
    banzhaf: NDArray[np.float64]


def interaction_game(
    n: int, *, seed: int, triples: int | None = None, graph: CommunicationGraph | None = None
) -> tuple[Game, KnownValues]:
    """Random worths of players, of pairs and of triples, and the values in closed form.

    There are ``2 n`` pairs, and as many triples unless said otherwise. On a graph they are drawn
    from its edges and paths of two edges (all of them, if there are fewer), and the Shapley value
    is the Myerson value too.
    """
    generator = np.random.default_rng(seed)
    sets = [np.arange(n)[:, None]]
    for size, count in ((2, 2 * n), (3, 2 * n if triples is None else triples)):
        if graph is None:
            drawn = [generator.choice(n, size, replace=False) for _ in range(count)]
            sets.append(np.array(drawn, dtype=np.int64).reshape(-1, size))
        else:
            connected = graph.edges if size == 2 else two_edge_paths(graph)
            sets.append(generator.permutation(connected)[:count])
    amounts = [generator.normal(size=len(members)) for members in sets]

    def worth(coalitions: NDArray[np.bool_]) -> Worths:
        total = np.zeros(len(coalitions))
        for members, amount in zip(sets, amounts, strict=True):
            total += coalitions[:, members].all(axis=2) @ amount
        return total

    known = KnownValues(np.zeros(n), np.zeros(n))
    for members, amount in zip(sets, amounts, strict=True):
        size = members.shape[1]
        for player in members.T:
            np.add.at(known.shapley, player, amount / size)
            np.add.at(known.banzhaf, player, amount / 2 ** (size - 1))
    return worth, known


def sparse_graph(n: int, *, seed: int) -> CommunicationGraph:
    """A random tree of neighbors nearby and half as many edges again: three neighbors each."""
    generator = np.random.default_rng(seed)
    tree = [(int(generator.integers(max(0, node - 10), node)), node) for node in range(1, n)]
    chords = generator.integers(n, size=(n // 2, 2))
    return CommunicationGraph(n, np.concatenate([np.array(tree).reshape(-1, 2), chords]))


def dense_graph(n: int, *, seed: int) -> CommunicationGraph:
    """Every fifth pair of nodes is an edge."""
    chosen = np.random.default_rng(seed).random((n, n)) < 0.2
    return CommunicationGraph(n, np.argwhere(np.triu(chosen, 1)))
