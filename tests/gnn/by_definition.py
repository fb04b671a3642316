"""Games and values of every kind of player as they are defined, from all subsets."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import networkx as nx
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.games import TableGame
from gstarx.graphs import CommunicationGraph
from tests.values.definitions import (
    associated_matrix,
    own_worths,
    restricted_table,
    shapley_by_orders,
    squared_until_settled,
)

Numbers = NDArray[np.float64]
#: A square with a tail, both directions of every edge, and a self-loop.
SQUARE = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4)]


def small_graph(*, seed: int = 0, loop: bool = True, features: int = 4) -> Data:
    """A graph in double precision, so that values agree to the last digits."""
    draw = torch.Generator().manual_seed(seed)
    pairs = [*SQUARE, *[(b, a) for a, b in SQUARE], *([(2, 2)] if loop else [])]
    return Data(
        x=torch.randn(5, features, generator=draw, dtype=torch.float64),
        edge_index=torch.tensor(pairs).t(),
        edge_attr=torch.randn(len(pairs), 3, generator=draw, dtype=torch.float64),
    )


def with_edges(data: Data, kept: Sequence[tuple[int, int]], *, directed: bool = False) -> Data:
    """All nodes, and of the edges only some and the self-loops."""
    wanted = {pair for a, b in kept for pair in ([(a, b)] if directed else [(a, b), (b, a)])}
    columns = data.edge_index.t().tolist()
    mask = torch.tensor([a == b or (a, b) in wanted for a, b in columns])
    out = data.clone()
    out.edge_index, out.edge_attr = data.edge_index[:, mask], data.edge_attr[mask]
    return out


def with_columns_of_edges(data: Data, columns: Sequence[int]) -> Data:
    """All nodes, and of the edges only some columns of ``edge_index`` and the self-loops."""
    mask = data.edge_index[0] == data.edge_index[1]
    mask[list(columns)] = True
    out = data.clone()
    out.edge_index, out.edge_attr = data.edge_index[:, mask], data.edge_attr[mask]
    return out


def with_nodes(data: Data, nodes: Sequence[int]) -> Data:
    """The induced subgraph."""
    place = {node: at for at, node in enumerate(sorted(nodes))}
    columns = data.edge_index.t().tolist()
    mask = torch.tensor([a in place and b in place for a, b in columns], dtype=torch.bool)
    out = data.clone()
    ends = [(place[a], place[b]) for a, b in columns if a in place and b in place]
    out.edge_index = torch.tensor(ends, dtype=torch.long).reshape(-1, 2).t()
    out.x, out.edge_attr = data.x[sorted(nodes)], data.edge_attr[mask]
    return out


def with_columns(data: Data, columns: Sequence[int], reference: Tensor, field: str = "x") -> Data:
    """The other columns replaced by rows (N, F) of a reference."""
    out = data.clone()
    kept = torch.zeros(data[field].shape[1], dtype=torch.bool)
    kept[list(columns)] = True
    out[field] = torch.where(kept, data[field], reference)
    return out


def table(worth: Callable[[list[int]], float], count: int, nothing: float) -> TableGame:
    """The worths of all coalitions less the baseline; that of nobody is 0."""
    sets = [[i for i in range(count) if mask >> i & 1] for mask in range(1, 2**count)]
    return TableGame(count, np.array([0.0, *(worth(inside) - nothing for inside in sets)]))


def value_of(game: TableGame, graph: CommunicationGraph, value: str) -> Numbers:
    """A value by its definition, from the worths of all coalitions."""
    n = graph.num_nodes
    if value == "hn":
        # tau < 2 / n, and squared until nothing moves but the rounding of up to 63 rows
        matrix, settled = squared_until_settled(
            associated_matrix(graph, 1.0 / n), tol=1e-12, max_squarings=60
        )
        assert settled
        return own_worths(matrix, game)
    if value == "banzhaf":
        worths, bits = game.worths, np.arange(2**n)
        return np.array(
            [
                np.mean([worths[b] - worths[b ^ 1 << i] for b in bits if b >> i & 1])
                for i in range(n)
            ]
        )
    worths = game.worths if value == "shapley" else restricted_table(game.worths, graph)
    return shapley_by_orders(worths, n)


def line_graph(edges: Sequence[tuple[int, int]]) -> CommunicationGraph:
    """Edges as nodes, by networkx for simple graphs, by hand for two directions of one edge."""
    near = [
        (i, j)
        for i, a in enumerate(edges)
        for j, b in enumerate(edges)
        if i < j and set(a) & set(b)
    ]
    simple = nx.Graph(edges)
    if len(simple.edges) == len(edges):
        assert nx.line_graph(simple).number_of_edges() == len(near)
    return CommunicationGraph(len(edges), near)


def probability(model: Any, target: int, data: Data, index: int | None = None) -> float:
    """The probability of a class, from one call on one graph."""
    with torch.no_grad():
        out = model(data.x, data.edge_index, data.edge_attr)
    return float(out[0 if index is None else index].softmax(-1)[target])
