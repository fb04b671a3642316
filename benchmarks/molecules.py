"""Seeded molecule-like graphs, and a seeded message-passing network on them as a game."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import networkx as nx
import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, Worths
from gstarx.graphs import CommunicationGraph
from gstarx.graphs.bitmasks import find_rows, pack

_ATOMS = (0.6, 0.15, 0.15, 0.03, 0.02, 0.03, 0.02)
_WIDTH = 16
_CHUNK = 4096


def molecule(generator: np.random.Generator, num_atoms: int) -> CommunicationGraph:
    """Rings of five and six, fused or linked, with chains and forked groups hanging on."""
    graph = nx.cycle_graph(int(generator.choice([5, 6, 6, 6])))
    while len(graph) < num_atoms:
        new = len(graph)
        free = [atom for atom in graph if graph.degree(atom) <= 2]
        at = free[int(generator.integers(len(free)))]
        kind = generator.random()
        if kind < 0.3:
            bonds = [(a, b) for a, b in graph.edges if graph.degree(a) == graph.degree(b) == 2]
            if bonds:
                a, b = bonds[int(generator.integers(len(bonds)))]
                nx.add_path(graph, [a, *range(new, new + int(generator.choice([3, 4, 4]))), b])
        elif kind < 0.45:
            nx.add_cycle(graph, range(new, new + int(generator.choice([5, 6]))))
            graph.add_edge(at, new)
        elif kind < 0.7:
            graph.add_edges_from([(at, new), (new, new + 1), (new, new + 2)])
        else:
            graph.add_edge(at, new)
    return CommunicationGraph.from_networkx(graph)


def molecules_with(
    count: int, *, fewest: int, most: int, atoms: tuple[int, int], seed: int
) -> list[CommunicationGraph]:
    """The first ``count`` random molecules with atoms and connected coalitions in range.

    ``atoms`` is a half-open range, ``fewest`` and ``most`` are included.
    """
    generator = np.random.default_rng(seed)
    found: list[CommunicationGraph] = []
    while len(found) < count:
        graph = molecule(generator, int(generator.integers(*atoms)))
        if graph.num_nodes not in range(*atoms):
            continue
        if fewest <= graph.count_connected_coalitions(most) <= most:
            found.append(graph)
    return found


class MessagePassingGame:
    """Three rounds of normalized message passing with ReLU, a readout, and a probability.

    The worth of a coalition is the probability that the network gives the induced subgraph, less
    one half; the grand coalition sits at a logit of 1, where the probability still moves.
    """

    def __init__(self, graph: CommunicationGraph, *, seed: int, readout: str = "mean") -> None:
        n = graph.num_nodes
        generator = np.random.default_rng(seed)
        self.adjacency = np.zeros((n, n))
        self.adjacency[tuple(graph.edges.T)] = 1.0
        self.adjacency += self.adjacency.T
        self.atoms = np.eye(len(_ATOMS))[generator.choice(len(_ATOMS), size=n, p=_ATOMS)]
        widths = [len(_ATOMS), _WIDTH, _WIDTH, _WIDTH]
        self.layers = [
            (generator.normal(size=shape) * np.sqrt(2 / shape[0]), generator.normal(size=shape[1]))
            for shape in pairwise(widths)
        ]
        self.last = 2 * generator.normal(size=_WIDTH)
        self.readout = readout
        self.shift = self._logits(np.ones((1, n), dtype=np.bool_))[0] - 1.0

    def _logits(self, coalitions: NDArray[np.bool_]) -> NDArray[np.float64]:
        inside = coalitions.astype(np.float64)
        loops = self.adjacency + np.eye(coalitions.shape[1])
        linked = loops * inside[:, :, None] * inside[:, None, :]
        scale = 1 / np.sqrt(np.maximum(linked.sum(axis=2), 1.0))
        linked *= scale[:, :, None] * scale[:, None, :]
        hidden = self.atoms * inside[:, :, None]
        for weight, bias in self.layers:
            hidden = np.maximum(linked @ (hidden @ weight) + 0.1 * bias, 0.0) * inside[:, :, None]
        if self.readout == "max":
            return hidden.max(axis=1) @ self.last
        return hidden.sum(axis=1) / inside.sum(axis=1, keepdims=True) @ self.last

    def __call__(self, coalitions: NDArray[np.bool_]) -> Worths:
        chunks = [
            self._logits(coalitions[first : first + _CHUNK]) - self.shift
            for first in range(0, len(coalitions), _CHUNK)
        ]
        return 1 / (1 + np.exp(-np.concatenate(chunks))) - 0.5


@dataclass(frozen=True)
class Recorded:
    """A game whose worths on all connected coalitions were computed once."""

    masks: NDArray[np.uint64]
    worths: Worths

    @classmethod
    def of(cls, game: Game, graph: CommunicationGraph) -> Recorded:
        coalitions = graph.connected_coalitions()
        return cls(pack(coalitions), game(coalitions))

    def __call__(self, coalitions: NDArray[np.bool_]) -> Worths:
        return self.worths[find_rows(self.masks, pack(coalitions))]
