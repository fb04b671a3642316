"""The HN value as the paper computes it: powers of the associated game (Algorithm 2).

The paper writes the associated game (Definition 4.2) as ``v* = H v`` (equation 16) with a matrix
``H`` over all ``2^n - 1`` coalitions and squares it until it settles. Only connected coalitions
matter, because a disconnected one is worth the sum of its components in ``v`` and in ``v*`` alike,
so here ``I + tau B`` acts on the connected coalitions, and on the worths themselves rather than on
a matrix.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, Worths, additive_game, evaluate, restricted_game
from gstarx.graphs import CoalitionLattice, Coalitions, CommunicationGraph, as_nodes, compiled
from gstarx.values.allocation import Allocation, ConvergenceWarning
from gstarx.values.hn.closed_form import hn_value, lattice_within
from gstarx.values.worths import component_gap, in_columns, worths_of

#: Up to here the power of the matrix itself is within reach: all graphs of at most ten nodes.
_DENSE_COALITIONS = 1100
_STEPS_PER_CALL = 1024


def hn_value_iterated(
    v: Game,
    graph: CommunicationGraph,
    *,
    tau: float = 0.01,
    max_squarings: int = 7,
    tol: float = 1e-3,
    max_coalitions: int = 2_000_000,
) -> Allocation:
    """The paper's Algorithm 2 with its truncation: worths of singletons after ``H^(2^s) v``.

    With the defaults, those of the published code, the iteration stops at ``H^128`` before it has
    settled. Use :func:`hn_value` for the HN value; this function is for comparison.

    Parameters
    ----------
    v
        The game; evaluated once on every connected coalition.
    graph
        The communication structure.
    tau
        Share of the surplus that a coalition receives per step. On a complete graph the iteration
        converges only if ``tau < 2 / n``; sparser graphs allow more, a path every ``tau < 1``.
        From ``2 / n`` up there is a warning.
    max_squarings
        At most this many squarings, so at most the power ``2^max_squarings``.
    tol
        Stop after a squaring that moved ``H`` by at most this much in the Frobenius norm over all
        coalitions. On graphs with more than 1,100 connected coalitions the matrix is out of reach
        and the worths themselves are watched, relative to their norm.
    max_coalitions
        Refuse graphs with more connected coalitions than this.

    Returns
    -------
    Allocation
        ``residual`` is the gap in efficiency, ``converged`` whether ``tol`` was met; ``exact`` is
        false, because of the truncation error.

    Warns
    -----
    ConvergenceWarning
        When the tolerance was not met within ``max_squarings``, or ``tau >= 2 / n``.

    Examples
    --------
    >>> from gstarx.games import unanimity_game
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> hn_value_iterated(
    ...     unanimity_game(3, [0, 1, 2]), path, max_squarings=20, tol=1e-12
    ... ).values.round(9)
    array([0.25, 0.5 , 0.25])
    """
    check_iteration(tau, max_squarings, tol)
    largest = max(map(len, graph.components), default=0)
    if tau >= 2 / max(largest, 1):
        warnings.warn(
            f"tau={tau:g} is not below 2/n={2 / largest:g} for the largest component, so the "
            "iteration may diverge (on sparse graphs it often converges all the same)",
            ConvergenceWarning,
            stacklevel=2,
        )
    lattice = lattice_within(graph, max_coalitions, sampler="hn_value_growth_sampled")
    worths = worths_of(v, lattice)
    settled, converged = iterate(lattice, in_columns(worths), tau, max_squarings, tol)
    values = settled[: graph.num_nodes].reshape(graph.num_nodes, *worths.shape[1:])
    gap = component_gap(values, worths, lattice)
    if not converged:
        warnings.warn(
            f"not converged to tol={tol:g} after {max_squarings} squarings: component efficiency "
            f"is missed by {gap:.3g}; hn_value gives the limit",
            ConvergenceWarning,
            stacklevel=2,
        )
    return Allocation(values, np.zeros_like(values), False, len(lattice), gap, converged)


def check_iteration(tau: Any, max_squarings: int, tol: float) -> None:
    """Raise for invalid settings of the iteration."""
    if not isinstance(tau, int | float | np.floating) or not 0 < tau <= 1:
        raise ValueError(f"tau must lie in (0, 1] (got {tau!r})")
    if max_squarings < 0 or max_squarings > 60:
        raise ValueError(f"max_squarings must lie in 0..60 (got {max_squarings!r})")
    if not tol >= 0:
        raise ValueError(f"tol must be at least 0 (got {tol!r})")


def iterate(
    lattice: CoalitionLattice, columns: Worths, tau: float, max_squarings: int, tol: float
) -> tuple[Worths, bool]:
    """Worths (k, q) after ``(I + tau B)^(2^s)``, and whether ``s`` squarings were enough."""
    joining = lattice.joining_nodes()
    scale = float(np.linalg.norm(columns))
    if max_squarings < _STEPS_PER_CALL.bit_length():
        together = np.zeros(len(lattice), dtype=np.int64)
        current, doubtful = iterate_parts(lattice, columns, tau, max_squarings, tol, together)
        if len(lattice) and not doubtful.any():
            return current, False
    powers = _MatrixPowers(lattice, joining, tau)
    current = powers.apply(columns, 1)
    for squaring in range(max_squarings):
        power = 1 << squaring
        following = powers.apply(current, power)
        # the change of the worths in one squaring is a lower bound of that of the matrix
        settled = float(np.linalg.norm(following - current)) <= tol * scale
        current = following
        if settled and powers.change(power) <= tol:
            return current, True
        if not np.isfinite(current).all():
            raise FloatingPointError(
                f"the iteration diverged after {squaring + 1} squarings: tau={tau:g} is too large "
                "for this graph"
            )
    return current, False


def iterate_parts(
    lattice: CoalitionLattice,
    columns: Worths,
    tau: float,
    squarings: int,
    tol: float,
    owner: NDArray[np.int64],
) -> tuple[Worths, NDArray[np.bool_]]:
    """Worths (k, q) after all of the squarings, for several graphs side by side at once.

    ``owner`` is the graph of every coalition. The second result says which graphs *may* have
    settled before the last squaring: the stopping rule matters only for those. The change of the
    worths in one squaring is a lower bound of that of the matrix.
    """
    parts = int(owner.max(initial=-1)) + 1
    limits = np.zeros(parts)
    np.add.at(limits, owner, (columns**2).sum(axis=1))
    doubtful = np.zeros(parts, dtype=np.bool_)
    buffers = np.empty((3, columns.shape[1], len(columns)))
    buffers[0] = columns.T
    _square(
        *_unsigned(lattice, lattice.joining_nodes()),
        tau,
        squarings,
        owner,
        tol * np.sqrt(limits),
        buffers,
        doubtful,
    )
    settled: Worths = buffers[0].T
    return settled, doubtful


class _MatrixPowers:
    """Powers of ``I + tau B``: applied step by step, or as a matrix where that is cheaper."""

    def __init__(self, lattice: CoalitionLattice, joining: NDArray[np.int32], tau: float) -> None:
        self.lattice = lattice
        self.joining = joining
        self.tau = tau
        self.small = len(lattice) <= _DENSE_COALITIONS
        self._power = 0
        self._matrix = np.zeros((0, 0))

    def apply(self, columns: Worths, power: int) -> Worths:
        """``(I + tau B)^power`` times the worths."""
        if self.small and power > _STEPS_PER_CALL:
            return self._dense(power) @ columns
        out = columns
        # in calls of bounded length, so that Ctrl-C takes effect
        for done in range(0, power, _STEPS_PER_CALL):
            steps = min(_STEPS_PER_CALL, power - done)
            out = step_games(self.lattice, self.joining, out, self.tau, steps)
        return out

    def change(self, power: int) -> float:
        """Frobenius norm over all coalitions of ``H^(2 power) - H^power``; 0 if out of reach."""
        if not self.small:
            return 0.0
        matrix = self._dense(power)
        change = matrix @ matrix - matrix
        # the row of a disconnected coalition is the sum of its components' rows
        return float(
            np.sqrt(max(0.0, np.sum(_joint_components(self.lattice) * (change @ change.T))))
        )

    def _dense(self, power: int) -> NDArray[np.float64]:
        if not 0 < self._power <= power:
            unit = np.eye(len(self.lattice))
            self._matrix = step_games(self.lattice, self.joining, unit, self.tau, 1)
            self._power = 1
        while self._power < power:
            self._matrix = self._matrix @ self._matrix
            self._power *= 2
        return self._matrix


def _joint_components(lattice: CoalitionLattice) -> NDArray[np.float64]:
    """For two connected coalitions, how many coalitions have both among their components."""
    members = lattice.coalitions().astype(np.float64)
    closed = members.copy()
    row = np.repeat(np.arange(len(lattice)), lattice.boundary_sizes)
    closed[row, lattice.joining_nodes()] = 1.0
    apart = (closed @ members.T == 0) | np.eye(len(lattice), dtype=np.bool_)
    covered = closed.sum(axis=1)[:, None] + closed.sum(axis=1) - closed @ closed.T
    return np.where(apart, np.exp2(lattice.num_nodes - covered), 0.0)


def step_games(
    lattice: CoalitionLattice,
    joining: NDArray[np.int32],
    columns: Worths,
    tau: float,
    steps: int,
) -> Worths:
    """Take worths (k, q) to those of the associated game, ``steps`` times over (equation 6)."""
    buffers = np.empty((2, columns.shape[1], len(columns)))
    buffers[0] = columns.T
    _step(*_unsigned(lattice, joining), tau, steps, buffers)
    settled: Worths = buffers[steps % 2].T
    return settled


def _unsigned(
    lattice: CoalitionLattice, joining: NDArray[np.int32]
) -> tuple[NDArray[np.uint64], NDArray[np.uint32], NDArray[np.uint32]]:
    """Links, successors and joining nodes as unsigned numbers, with which numba indexes faster."""
    return (
        lattice.links.view(np.uint64),
        lattice.successors.view(np.uint32),
        joining.view(np.uint32),
    )


@compiled
def _step(links, successors, joining, tau, steps, buffers):  # type: ignore[no-untyped-def]
    for g in range(buffers.shape[1]):
        before, after = buffers[0, g], buffers[1, g]
        for _ in range(steps):
            for row in range(len(before)):
                first, last = links[row], links[row + 1]
                surplus = 0.0
                for at in range(first, last):
                    surplus += before[successors[at]] - before[row] - before[joining[at]]
                after[row] = before[row] + tau * surplus
            before, after = after, before


@compiled
def _square(links, successors, joining, tau, squarings, owner, limits, buffers, doubtful):  # type: ignore[no-untyped-def]
    """Leave ``(I + tau B)^(2^squarings) v`` in ``buffers[0]``, and note whose worths settle."""
    moved = np.empty(len(limits))
    _step(links, successors, joining, tau, 1, buffers[:2])
    buffers[0] = buffers[1]
    for squaring in range(squarings):
        buffers[2] = buffers[0]
        _step(links, successors, joining, tau, 1 << squaring, buffers[:2])
        # an even number of steps ends where it began, an odd one in the other half
        if (1 << squaring) % 2 == 1:
            buffers[0] = buffers[1]
        moved[:] = 0.0
        for g in range(buffers.shape[1]):
            for row in range(buffers.shape[2]):
                moved[owner[row]] += (buffers[0, g, row] - buffers[2, g, row]) ** 2
        for part in range(len(limits)):
            # NaN counts as doubtful
            if not (limits[part] < np.sqrt(moved[part]) < np.inf):
                doubtful[part] = True


def surplus(v: Game, j: int, S: Iterable[int], *, n: int | None = None) -> float | Worths:
    """What coalition ``S`` and its neighbor ``j`` earn together beyond what each earns alone.

    ``p(j, S) = v(S + j) - v(S) - v({j})`` (Definition 4.1 of the paper). ``n`` is the number of
    players of the game; by default the attribute ``n`` of the game, or else as many as ``S`` and
    ``j`` name. Returns a number, or (q,) for q games at once.

    >>> from gstarx.games import TableGame
    >>> surplus(TableGame(2, [0, 1, 2, 5]), 1, [0])
    2.0
    """
    players = list(S)
    if n is None:
        n = int(getattr(v, "n", max([*players, j]) + 1))
    members = as_nodes(players, n, name="S")
    (joining,) = as_nodes([j], n, name="j")
    if joining in members:
        raise ValueError(f"j must not be in S (got j={j} and S={sorted(players)})")
    coalitions = np.zeros((3, n), dtype=np.bool_)
    coalitions[0, [*members, joining]] = True
    # a game is never evaluated on the empty coalition, whose worth is set below
    coalitions[1, members if len(members) else joining] = True
    coalitions[2, joining] = True
    together, others, alone = evaluate(v, coalitions)
    if not len(members):
        others = np.zeros_like(others)
    result = together - others - alone
    return float(result) if np.ndim(result) == 0 else result


def associated_game(v: Game, graph: CommunicationGraph, *, tau: float) -> Game:
    """The HN associated game ``v*_tau`` (Definition 4.2 of the paper).

    A connected coalition adds to its own worth the share ``tau`` of the surplus with each of its
    neighbors; a disconnected one is the sum of its components.

    >>> from gstarx.games import TableGame
    >>> pair = CommunicationGraph(2, [(0, 1)])
    >>> star = associated_game(TableGame(2, [0, 1, 2, 5]), pair, tau=0.1)
    >>> star(np.array([[True, False], [True, True]]))
    array([1.2, 5. ])
    """
    if not 0 <= tau <= 1:
        raise ValueError(f"tau must lie in [0, 1] (got {tau!r})")

    def of_connected(coalitions: Coalitions) -> Worths:
        border = graph.boundary(coalitions)
        row, joining = np.nonzero(border)
        grown = coalitions[row]
        grown[np.arange(len(row)), joining] = True
        alone = np.zeros_like(grown)
        alone[np.arange(len(row)), joining] = True
        k, links = len(coalitions), len(row)
        worths = evaluate(v, np.concatenate([coalitions, grown, alone]))
        base, together, single = worths[:k], worths[k : k + links], worths[k + links :]
        result = base.copy()
        np.add.at(result, row, tau * (together - base[row] - single))
        return result

    return restricted_game(of_connected, graph)


def limit_game(v: Game, graph: CommunicationGraph, *, max_coalitions: int = 2_000_000) -> Game:
    """The limit of repeated associated games (Definition E.2): the additive game of the HN value.

    >>> from gstarx.games import unanimity_game
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> limit_game(unanimity_game(3, [0, 1, 2]), path)(np.array([[True, True, False]]))
    array([0.75])
    """
    return additive_game(hn_value(v, graph, max_coalitions=max_coalitions).values)
