"""The position value: links share, and a node gets half of what each of its links gets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, Worths, evaluate
from gstarx.graphs import Coalitions, CommunicationGraph, as_coalitions, distinct_rows, pack, unpack
from gstarx.values.allocation import Allocation
from gstarx.values.myerson import myerson_value
from gstarx.values.permutation_sampling import myerson_value_sampled


@dataclass(frozen=True, repr=False)
class PositionValue(Allocation):
    """The position value of every node, with what every link gets.

    Attributes
    ----------
    edges
        The two ends of every link, (m, 2).
    links
        What every link gets: (m,), or (m, q).
    link_error
        Standard error of ``links``, same shape. Those of nodes are at most half of the sum of those
        of their links, which is what ``std_error`` is.
    """

    edges: NDArray[np.int64] | None = None
    links: NDArray[np.float64] | None = None
    link_error: NDArray[np.float64] | None = None


def position_value(
    v: Game, graph: CommunicationGraph, *, max_coalitions: int = 2_000_000
) -> PositionValue:
    """The exact position value (Meessen 1988; Borm, Owen and Tijs 1992).

    The links of the graph are the players of a game ``r``: a connected set of links ``A`` is worth
    what the nodes that it touches are worth together, beyond what they are worth alone,
    ``r(A) = v(V(A)) - sum of v({i}) over V(A)``. The Myerson value of ``r`` on the line graph,
    where links are neighbors if they share a node, gives every link its share. A node gets half of
    each of its links, and ``v({i})``.

    Parameters
    ----------
    v
        The game; evaluated once on every node, and on every set of nodes that connected links
        touch.
    graph
        The communication structure.
    max_coalitions
        Refuse graphs with more connected sets of links than this;
        :func:`position_value_sampled` estimates such values.

    Examples
    --------
    In a star the center is an end of both links, so it gets half of everything:

    >>> from gstarx.games import unanimity_game
    >>> star = CommunicationGraph(3, [(0, 1), (0, 2)])
    >>> position_value(unanimity_game(3, [1, 2]), star).values
    array([0.5 , 0.25, 0.25])
    """

    def share(game: Game, lines: CommunicationGraph) -> Allocation:
        return myerson_value(game, lines, max_coalitions=max_coalitions)

    return _from_links(v, graph, share)


def position_value_sampled(
    v: Game,
    graph: CommunicationGraph,
    *,
    budget: int,
    seed: int | np.random.Generator | None = None,
) -> PositionValue:
    """Estimate the position value from at most ``budget`` distinct connected sets of links.

    The Myerson value on the line graph is estimated by :func:`gstarx.values.myerson_value_sampled`.
    Single nodes are evaluated besides.

    Parameters
    ----------
    v, graph
        As for :func:`position_value`.
    budget
        The most distinct sets of links to evaluate, at least the number of links.
    seed
        An integer or a numpy generator; the same seed gives the same numbers.

    Examples
    --------
    >>> from gstarx.games import random_game
    >>> ring = CommunicationGraph(30, [(i, (i + 1) % 30) for i in range(30)])
    >>> position_value_sampled(random_game(30, seed=0), ring, budget=400, seed=0).exact
    False
    """

    def share(game: Game, lines: CommunicationGraph) -> Allocation:
        return myerson_value_sampled(game, lines, budget=budget, seed=seed)

    return _from_links(v, graph, share)


def touched_nodes(links: Coalitions, edges: NDArray[np.int64], num_nodes: int) -> Coalitions:
    """The nodes (k, n) that sets of links (k, m) touch."""
    rows = as_coalitions(links, len(edges), name="links")
    touched = np.zeros((len(rows), num_nodes), dtype=np.bool_)
    row, link = np.nonzero(rows)
    touched[row[:, None], edges[link]] = True
    return touched


def node_shares(
    links: NDArray[np.float64], edges: NDArray[np.int64], num_nodes: int
) -> NDArray[np.float64]:
    """Half of what every link gets, for each of its two ends: (n, ...) from (m, ...)."""
    shares = np.zeros((num_nodes, *links.shape[1:]))
    for end in edges.T:
        np.add.at(shares, end, links / 2)
    return shares


def _from_links(
    v: Game,
    graph: CommunicationGraph,
    share: Callable[[Game, CommunicationGraph], Allocation],
) -> PositionValue:
    n, edges = graph.num_nodes, graph.edges
    alone = np.eye(n, dtype=np.bool_)
    singles = evaluate(v, alone) if n else np.zeros(0)
    seen = {row.tobytes() for row in pack(alone)}

    def beyond_alone(links: Coalitions) -> Worths:
        touched = touched_nodes(links, edges, n)
        masks = pack(touched)
        first, where = distinct_rows(masks)
        seen.update(row.tobytes() for row in masks[first])
        together = evaluate(v, unpack(masks[first], n))[where]
        return np.asarray(together - touched.astype(np.float64) @ singles)

    allocation = Allocation.exactly(np.zeros((0, *singles.shape[1:])), 0, 0.0)
    if len(edges):
        allocation = share(beyond_alone, CommunicationGraph.line_graph(edges))
    values = singles + node_shares(allocation.values, edges, n)
    together = evaluate(v, graph.component_coalitions) if n else np.zeros(0)
    sums = graph.component_coalitions.astype(np.float64) @ values
    return PositionValue(
        values,
        node_shares(allocation.std_error, edges, n),
        allocation.exact,
        len(seen),
        float(np.abs(sums - together).max(initial=0.0)),
        allocation.converged,
        edges,
        allocation.values,
        allocation.std_error,
    )
