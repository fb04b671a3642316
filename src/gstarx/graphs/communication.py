"""The communication graph: an undirected graph on the players of a game."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gstarx._internal.cached import cached_property
from gstarx.graphs.bitmasks import Coalitions, Masks, unpack, words_for
from gstarx.graphs.compilation import WORD
from gstarx.graphs.connectivity import (
    MAX_COUNT,
    count_by_size,
    label_components,
    label_parts,
    list_by_size,
)

if TYPE_CHECKING:
    import networkx


class TooManyCoalitions(ValueError):
    """A graph has more coalitions than the caller allowed to list, connected ones or all."""

    def __init__(
        self,
        at_least: int,
        limit: int,
        advice: str = "raise the limit",
        *,
        connected: bool = True,
    ) -> None:
        kind = "connected coalitions" if connected else "coalitions"
        super().__init__(
            f"the graph has at least {at_least:,} {kind} and the limit is {limit:,}: {advice}"
        )
        self.connected = connected
        self.at_least = at_least
        self.limit = limit
        self.advice = advice

    def __reduce__(self) -> tuple[Any, ...]:
        # workers pickle it, and by default an exception is rebuilt from its message alone
        build = partial(type(self), connected=self.connected)
        return build, (self.at_least, self.limit, self.advice)


class CommunicationGraph:
    """An undirected graph on nodes ``0 .. num_nodes - 1``: the channels of cooperation.

    Edge directions, self-loops and repeated edges have no meaning here and are dropped. The graph
    is immutable; two graphs with the same nodes and edges are equal and hash alike.

    Parameters
    ----------
    num_nodes
        Number of players, zero or more.
    edges
        Pairs of nodes, as an array (m, 2) or any iterable of pairs.

    Examples
    --------
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2), (2, 1), (0, 0)])
    >>> path
    CommunicationGraph(num_nodes=3, num_edges=2)
    >>> path.degrees
    array([1, 2, 1])
    >>> path.connected_coalitions().astype(int)
    array([[1, 0, 0],
           [0, 1, 0],
           [0, 0, 1],
           [1, 1, 0],
           [0, 1, 1],
           [1, 1, 1]])
    """

    def __init__(self, num_nodes: int, edges: ArrayLike | Iterable[Sequence[int]] = ()) -> None:
        self.num_nodes = as_size(num_nodes, name="num_nodes")
        self.edges = _clean_edges(edges, self.num_nodes)
        self.edges.setflags(write=False)

    @classmethod
    def from_edge_index(cls, edge_index: Any, num_nodes: int | None = None) -> CommunicationGraph:
        """Build the graph from a PyG-style ``edge_index`` of shape (2, E): a tensor or an array.

        Without ``num_nodes``, it follows from the largest node id, so pass it if the last nodes may
        be isolated.

        >>> CommunicationGraph.from_edge_index([[0, 1], [1, 2]], num_nodes=4).components
        ((0, 1, 2), (3,))
        """
        if hasattr(edge_index, "detach"):
            edge_index = edge_index.detach().cpu().numpy()
        pairs = _as_array(edge_index, name="edge_index", shape="(2, E)")
        if pairs.size == 0:
            pairs = pairs.reshape(2, 0).astype(np.int64)
        if pairs.ndim != 2 or pairs.shape[0] != 2:
            raise ValueError(f"edge_index must have shape (2, E) (got {pairs.shape})")
        if not np.issubdtype(pairs.dtype, np.integer):
            raise TypeError(f"edge_index must be integers (got dtype {pairs.dtype})")
        if num_nodes is None:
            num_nodes = max(0, int(pairs.max()) + 1) if pairs.size else 0
        return cls(num_nodes, pairs.T)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any]) -> CommunicationGraph:
        """Build the graph from a networkx graph; node ``i`` is the ``i``-th of ``graph.nodes``.

        >>> import networkx as nx
        >>> CommunicationGraph.from_networkx(nx.cycle_graph("abc")).edges.tolist()
        [[0, 1], [0, 2], [1, 2]]
        """
        position = {node: i for i, node in enumerate(graph.nodes)}
        return cls(len(position), [(position[u], position[v]) for u, v in graph.edges()])

    @classmethod
    def line_graph(cls, edges: ArrayLike) -> CommunicationGraph:
        """The graph whose nodes are edges (m, 2), two of them neighbors if they share a node.

        >>> CommunicationGraph.line_graph([(0, 1), (1, 2), (2, 3)]).edges.tolist()
        [[0, 1], [1, 2]]
        """
        ends = _as_array(edges, name="edges", shape="(m, 2)").reshape(-1, 2)
        node, line = ends.reshape(-1), np.repeat(np.arange(len(ends)), 2)
        order = np.argsort(node, kind="stable")
        starts = np.flatnonzero(np.diff(node[order], prepend=-1))
        pairs = [np.zeros((0, 2), dtype=np.int64)]
        for meeting in np.split(line[order], starts[1:]):
            a, b = np.triu_indices(len(meeting), 1)
            pairs.append(np.stack([meeting[a], meeting[b]], axis=1))
        return cls(len(ends), np.concatenate(pairs))

    @classmethod
    def complete(cls, num_nodes: int) -> CommunicationGraph:
        """The complete graph.

        >>> CommunicationGraph.complete(4).count_connected_coalitions()
        15
        """
        n = as_size(num_nodes, name="num_nodes")
        return cls(n, np.argwhere(np.triu(np.ones((n, n), bool), 1)))

    @cached_property
    def degrees(self) -> NDArray[np.int64]:
        """Number of neighbors of every node, shape (n,)."""
        degrees = np.bincount(self.edges.ravel(), minlength=self.num_nodes).astype(np.int64)
        degrees.setflags(write=False)
        return degrees

    @cached_property
    def adjacency(self) -> Masks:
        """The neighbors of every node as bitmasks (n, words)."""
        masks = np.zeros((self.num_nodes, words_for(self.num_nodes)), dtype=np.uint64)
        for here, there in (self.edges.T, self.edges.T[::-1]):
            bits = np.uint64(1) << (there % WORD).astype(np.uint64)
            np.bitwise_or.at(masks, (here, there // WORD), bits)
        masks.setflags(write=False)
        return masks

    @cached_property
    def components(self) -> tuple[tuple[int, ...], ...]:
        """The connected components, each sorted, ordered by their smallest node."""
        members: dict[int, list[int]] = {}
        for node, label in enumerate(label_components(self.num_nodes, self.edges).tolist()):
            members.setdefault(label, []).append(node)
        return tuple(map(tuple, members.values()))

    @cached_property
    def component_coalitions(self) -> Coalitions:
        """The connected components as boolean coalitions (c, n), in the same order."""
        members = np.zeros((len(self.components), self.num_nodes), dtype=np.bool_)
        for row, component in enumerate(self.components):
            members[row, list(component)] = True
        members.setflags(write=False)
        return members

    def boundary(self, mask: ArrayLike) -> NDArray[np.bool_]:
        """The neighbors of a coalition that are not in it, as a boolean array of the same shape.

        ``mask`` is boolean, (n,) for one coalition or (k, n) for several.

        >>> CommunicationGraph(3, [(0, 1), (1, 2)]).boundary([True, False, False])
        array([False,  True, False])
        """
        coalition = as_coalitions(mask, self.num_nodes, name="mask")
        touched = np.zeros_like(coalition)
        for here, there in (self.edges.T, self.edges.T[::-1]):
            row, edge = np.nonzero(coalition[:, here])
            touched[row, there[edge]] = True
        return (touched & ~coalition).reshape(np.shape(mask))

    def component_labels(self, mask: ArrayLike) -> NDArray[np.int64]:
        """Label the components of coalitions, (n,) or (k, n), by their smallest node; -1 outside.

        >>> path = CommunicationGraph(4, [(0, 1), (1, 2), (2, 3)])
        >>> path.component_labels([True, True, False, True])
        array([ 0,  0, -1,  3])
        """
        coalitions = as_coalitions(mask, self.num_nodes, name="mask")
        return label_parts(self.edges, coalitions).reshape(np.shape(mask))

    def subgraph(self, nodes: ArrayLike) -> CommunicationGraph:
        """The induced subgraph on ``nodes``; its node ``i`` is ``nodes[i]`` here.

        >>> CommunicationGraph(4, [(0, 1), (1, 2), (2, 3)]).subgraph([3, 2]).edges.tolist()
        [[0, 1]]
        """
        selected = as_nodes(nodes, self.num_nodes, name="nodes")
        position = np.full(self.num_nodes, -1, dtype=np.int64)
        position[selected] = np.arange(len(selected))
        edges = position[self.edges]
        return CommunicationGraph(len(selected), edges[(edges >= 0).all(axis=1)])

    def count_connected_coalitions(self, limit: int | None = None) -> int:
        """Number of non-empty connected coalitions; ``limit + 1`` as soon as there are more.

        >>> CommunicationGraph(200, [(i, i + 1) for i in range(199)]).count_connected_coalitions()
        20100
        >>> CommunicationGraph.complete(300).count_connected_coalitions(limit=1000)
        1001
        """
        stop = _stop_after(limit)
        total = int(count_by_size(self.adjacency, stop).sum())
        if total <= stop:
            return total
        if limit is None or limit > MAX_COUNT:
            raise OverflowError(
                "the graph has more than 2^62 connected coalitions, more than can be counted: "
                "give a limit of at most 2^62"
            )
        return stop + 1

    def connected_masks(self, limit: int | None = None) -> tuple[Masks, NDArray[np.int64]]:
        """The connected coalitions as bitmasks (k, words) by size, and how many of each size.

        Raises :class:`TooManyCoalitions` when there are more than ``limit``.
        """
        stop = _stop_after(limit)
        by_size = count_by_size(self.adjacency, stop)
        if (total := int(by_size.sum())) > stop:
            raise TooManyCoalitions(total, stop)
        return list_by_size(self.adjacency, by_size), by_size

    def connected_coalitions(self, limit: int | None = 10_000_000) -> Coalitions:
        """All non-empty connected coalitions, a boolean array (k, n) ordered by size.

        Raises :class:`TooManyCoalitions` when there are more than ``limit``.
        """
        return unpack(self.connected_masks(limit)[0], self.num_nodes)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CommunicationGraph):
            return NotImplemented
        return self.num_nodes == other.num_nodes and np.array_equal(self.edges, other.edges)

    def __hash__(self) -> int:
        return hash((self.num_nodes, self.edges.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        # rebuilt, because a pickled array loses its read-only flag
        return type(self), (self.num_nodes, self.edges)

    def __repr__(self) -> str:
        return f"CommunicationGraph(num_nodes={self.num_nodes}, num_edges={len(self.edges)})"


def as_coalitions(mask: ArrayLike, num_nodes: int, *, name: str) -> Coalitions:
    """Boolean coalitions (k, n) from one (n,) or several (k, n); raises for anything else."""
    coalitions = np.asarray(mask)
    if coalitions.dtype != np.bool_:
        raise TypeError(f"{name} must be boolean (got dtype {coalitions.dtype})")
    if coalitions.ndim not in (1, 2) or coalitions.shape[-1] != num_nodes:
        raise ValueError(
            f"{name} must have shape ({num_nodes},) or (k, {num_nodes}) (got {coalitions.shape})"
        )
    return np.atleast_2d(coalitions)


def as_nodes(nodes: ArrayLike, num_nodes: int, *, name: str) -> NDArray[np.int64]:
    """Distinct node ids in range as an integer array; raises for anything else."""
    ids = np.asarray(nodes)
    if ids.size == 0:
        return np.zeros(0, dtype=np.int64)
    if ids.ndim != 1 or not np.issubdtype(ids.dtype, np.integer):
        raise TypeError(f"{name} must be a list of node ids (got {nodes!r})")
    if ids.min() < 0 or ids.max() >= num_nodes:
        raise ValueError(f"{name} must lie in 0..{num_nodes - 1} (got {ids.tolist()})")
    seen = np.zeros(num_nodes, dtype=np.bool_)
    seen[ids] = True
    if int(seen.sum()) != len(ids):
        raise ValueError(f"{name} must not repeat a node (got {ids.tolist()})")
    return ids.astype(np.int64)


def as_size(number: int, *, name: str) -> int:
    """A non-negative integer; raises for anything else."""
    if isinstance(number, bool) or not isinstance(number, int | np.integer):
        raise TypeError(f"{name} must be an integer (got {number!r})")
    if number < 0:
        raise ValueError(f"{name} must be at least 0 (got {number})")
    return int(number)


def _stop_after(limit: int | None) -> int:
    return MAX_COUNT if limit is None else min(as_size(limit, name="limit"), MAX_COUNT)


def _as_array(rows: Any, *, name: str, shape: str) -> NDArray[Any]:
    try:
        return np.asarray(rows)
    except ValueError as error:
        raise ValueError(f"{name} must have shape {shape} (got rows of unequal length)") from error


def _clean_edges(edges: ArrayLike | Iterable[Sequence[int]], num_nodes: int) -> NDArray[np.int64]:
    """Edges as sorted distinct pairs i < j, shape (m, 2)."""
    listed = edges if isinstance(edges, np.ndarray) else list(edges)  # type: ignore[arg-type]
    pairs = _as_array(listed, name="edges", shape="(m, 2)")
    if pairs.size == 0:
        return np.zeros((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"edges must be pairs of nodes, shape (m, 2) (got {pairs.shape})")
    if not np.issubdtype(pairs.dtype, np.integer):
        raise TypeError(f"edges must be integers (got dtype {pairs.dtype})")
    if pairs.min() < 0 or pairs.max() >= num_nodes:
        wrong = pairs[((pairs < 0) | (pairs >= num_nodes)).any(axis=1)][0]
        raise ValueError(
            f"edge ({wrong[0]}, {wrong[1]}) names a node outside 0..{num_nodes - 1} "
            f"of a graph with {num_nodes} nodes"
        )
    low, high = pairs.min(axis=1).astype(np.int64), pairs.max(axis=1).astype(np.int64)
    # one number for each edge sorts several times faster than pairs do
    keys = np.unique((low * num_nodes + high)[low < high])
    return np.stack(np.divmod(keys, max(1, num_nodes)), axis=1)
