"""The Hamiache-Navarro value in closed form: exact, no ``tau``, no iteration.

The limit game of the paper (Definition E.2, equation 17) is the projection of ``v`` onto the
additive games along the range of the surplus operator ``B``, where ``(B v)(T)`` is the sum of the
surpluses of ``T`` with its neighbors. What vanishes on that range is made of *growth weights* and
the worth of the whole. Grow a coalition from node ``k`` by adding a uniformly chosen boundary node
at every step, let ``P_k(T)`` be the probability of passing through ``T``; then
``w_k(T) = b(k) P_k(T) / b(T)``. The value is the additive game ``phi`` with the same
growth-averaged worth as ``v`` from every start node, up to one multiplier per component, and
efficient on every component:

    sum_m M[k, m] phi_m + b(k) lambda = u[k],    sum_m phi_m = v(component)

with ``M[k, m] = sum_T w_k(T) [m in T]`` and ``u[k] = sum_T w_k(T) v(T)`` over the connected
coalitions that are not whole components. The derivation is on the theory page of the documentation.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, Worths
from gstarx.graphs import (
    WORD,
    CoalitionLattice,
    Coalitions,
    CommunicationGraph,
    TooManyCoalitions,
    compiled,
)
from gstarx.values.allocation import Allocation
from gstarx.values.worths import component_gap, in_columns, worths_of

#: Bytes for the two rolling levels of the backward pass; wider problems run in column blocks.
_LEVEL_BYTES = 64 << 20
_ONE = np.uint64(1)


def hn_value(v: Game, graph: CommunicationGraph, *, max_coalitions: int = 2_000_000) -> Allocation:
    """The exact Hamiache-Navarro value of a game with communication structure.

    The unique value with associated consistency, inessential game and continuity (Theorem E.3 of
    the paper), as the solution of one linear system instead of the limit of matrix powers.

    Parameters
    ----------
    v
        The game; evaluated once on every connected coalition.
    graph
        The communication structure. Components are separate games: the values of a component sum
        to the worth of that component.
    max_coalitions
        Refuse graphs with more connected coalitions than this.

    Returns
    -------
    Allocation
        ``exact`` is true and ``std_error`` zero.

    Raises
    ------
    TooManyCoalitions
        With a lower bound of their number; :func:`hn_value_growth_sampled` estimates such values.

    Notes
    -----
    Cost ``O(|C| b (n + q))`` for ``|C|`` connected coalitions with mean boundary ``b`` and ``q``
    games. Memory ``O(|C| (b + q))`` for links and worths, however many nodes there are.

    Examples
    --------
    >>> from gstarx.games import unanimity_game
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> hn_value(unanimity_game(3, [0, 1, 2]), path).values
    array([0.25, 0.5 , 0.25])

    References
    ----------
    G. Hamiache and F. Navarro, "Associated consistency, value and graphs", International Journal of
    Game Theory 49 (2020).
    """
    lattice = lattice_within(graph, max_coalitions, sampler="hn_value_growth_sampled")
    worths = worths_of(v, lattice)
    values = solve(lattice, graph, in_columns(worths))
    values = values.reshape(graph.num_nodes, *worths.shape[1:])
    return Allocation.exactly(values, len(lattice), component_gap(values, worths, lattice))


def solve(
    lattice: CoalitionLattice, graph: CommunicationGraph, columns: Worths
) -> NDArray[np.float64]:
    """HN values (n, q) from the worths (k, q) of all connected coalitions."""
    matrix, sums = growth_sums(lattice, columns)
    values = np.empty((graph.num_nodes, columns.shape[1]))
    for top in lattice.tops:
        nodes = np.flatnonzero(lattice.coalitions(np.array([top]))[0])
        system = system_of(matrix[np.ix_(nodes, nodes)], graph.degrees[nodes])
        values[nodes] = np.linalg.solve(system, np.vstack([sums[nodes], columns[top]]))[:-1]
    return values


def growth_weights(lattice: CoalitionLattice) -> NDArray[np.float64]:
    """``w_k(T)`` of every coalition and start node, shape (|C|, n); zero rows for whole components.

    Computed forwards, from the singletons up: ``w_k(T) = sum_j w_k(T - j) / b(T)``.
    """
    weights = np.zeros((len(lattice), lattice.num_nodes))
    _forward(lattice.boundary_sizes, lattice.links, lattice.successors, weights)
    return weights


def value_weights(
    weights: NDArray[np.float64],
    members: Coalitions,
    degrees: NDArray[np.int64],
    tops: NDArray[np.int64],
) -> NDArray[np.float64]:
    """From growth weights (k, n) to the weights of the HN value: ``phi = result.T @ worths``.

    ``members`` are the coalitions (k, n), ``tops`` the rows that are whole components.
    """
    matrix = weights.T @ members
    out = np.zeros_like(weights)
    for top in tops:
        nodes = np.flatnonzero(members[top])
        inverse = np.linalg.inv(system_of(matrix[np.ix_(nodes, nodes)], degrees[nodes]))
        # coalitions of other components have no weight on these nodes
        out[:, nodes] = weights[:, nodes] @ inverse[:-1, :-1].T
        out[top, nodes] = inverse[:-1, -1]
    return out


def hn_weights(lattice: CoalitionLattice, graph: CommunicationGraph) -> NDArray[np.float64]:
    """The matrix (|C|, n) whose transpose maps worths to HN values."""
    return value_weights(growth_weights(lattice), lattice.coalitions(), graph.degrees, lattice.tops)


def growth_sums(
    lattice: CoalitionLattice, columns: Worths
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """``M`` (n, n) and ``u`` (n, q) of the linear system, from one backward pass per column block.

    ``U(T) = g(T) + sum_j U(T + j) / b(T + j)`` over the boundary nodes ``j`` that do not complete a
    component, largest coalitions first. ``U`` of node ``k`` is row ``k``, with ``g(T) = [m in T]``
    for column ``m`` of ``M`` and ``g = v`` for ``u``. Only the size above is kept, and columns go
    in blocks, so that memory does not grow with their number.
    """
    n = lattice.num_nodes
    widest = int(np.diff(lattice.starts).max(initial=1))
    block = max(1, _LEVEL_BYTES // (16 * widest))
    out = np.zeros((n, n + columns.shape[1]))
    for first in range(0, out.shape[1], block):
        last = min(first + block, out.shape[1])
        level = np.empty((2, widest, last - first))
        _backward(
            lattice.masks,
            lattice.starts,
            lattice.boundary_sizes,
            lattice.links,
            lattice.successors,
            columns,
            level,
            first,
            last,
            out,
        )
    return out[:, :n], out[:, n:]


def lattice_within(
    graph: CommunicationGraph, max_coalitions: int, *, sampler: str
) -> CoalitionLattice:
    """The linked coalitions of a graph; if there are too many, the error names the sampler."""
    try:
        return CoalitionLattice.of(graph, max_coalitions)
    except TooManyCoalitions as error:
        raise TooManyCoalitions(
            error.at_least, error.limit, f"raise max_coalitions, or estimate with {sampler}"
        ) from None


def system_of(matrix: NDArray[np.float64], degrees: NDArray[np.int64]) -> NDArray[np.float64]:
    """The bordered matrix of one component."""
    n = len(matrix)
    system = np.zeros((n + 1, n + 1))
    system[:n, :n] = matrix
    # a node on its own has no growth at all; any non-zero border makes its multiplier vanish
    system[:n, n] = np.maximum(degrees, 1)
    system[n, :n] = 1.0
    return system


@compiled
def _forward(boundary_sizes, links, successors, weights):  # type: ignore[no-untyped-def]
    n = weights.shape[1]
    for k in range(n):
        if boundary_sizes[k] > 0:
            weights[k, k] = 1.0
    for row in range(len(weights)):
        for at in range(links[row], links[row + 1]):
            grown = successors[at]
            if boundary_sizes[grown] > 0:
                share = 1.0 / boundary_sizes[grown]
                for k in range(n):
                    weights[grown, k] += share * weights[row, k]


@compiled
def _backward(masks, starts, boundary_sizes, links, successors, columns, level, first, last, out):  # type: ignore[no-untyped-def]
    """Columns ``first : last`` of [M | u]; ``level`` holds two sizes of ``U(T) / b(T)``."""
    n = len(starts) - 1
    width = last - first
    for size in range(n, 0, -1):
        here, above = size % 2, (size + 1) % 2
        begin, end = starts[size - 1], starts[size]
        for row in range(begin, end):
            b = boundary_sizes[row]
            total = level[here, row - begin]
            if b == 0:
                # a whole component: not part of any growth sum
                for c in range(width):
                    total[c] = 0.0
                continue
            for c in range(first, min(last, n)):
                total[c - first] = np.float64((masks[row, c // WORD] >> np.uint64(c % WORD)) & _ONE)
            for c in range(max(first, n), last):
                total[c - first] = columns[row, c - n]
            for at in range(links[row], links[row + 1]):
                grown = level[above, successors[at] - end]
                for c in range(width):
                    total[c] += grown[c]
            if size == 1:
                for c in range(width):
                    out[row, first + c] = total[c]
            else:
                for c in range(width):
                    total[c] /= b
