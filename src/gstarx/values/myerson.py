"""The Myerson value (Theorem F.5 of the paper), and the matrices of linear values."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.games import Game, Worths
from gstarx.graphs import WORD, CoalitionLattice, CommunicationGraph, compiled, trailing_zeros
from gstarx.values.allocation import Allocation
from gstarx.values.hn.closed_form import hn_weights, lattice_within
from gstarx.values.worths import component_gap, in_columns, worths_of

_ONE = np.uint64(1)
_ZERO = np.uint64(0)
_SAMPLERS = {"hn": "hn_value_growth_sampled", "myerson": "myerson_value_sampled"}


def myerson_value(
    v: Game, graph: CommunicationGraph, *, max_coalitions: int = 2_000_000
) -> Allocation:
    """The exact Myerson value, from connected coalitions only.

    Let the players arrive in random order. A connected coalition ``T`` with ``t`` members and ``b``
    boundary nodes is a component at some time exactly if all of ``T`` come before all of its
    boundary, which has probability ``p = t! b! / (t + b)!``. It gives ``p v(T) / t`` to every
    member, as each is as likely to complete it, and takes ``p v(T) / b`` from every boundary node,
    as each is as likely to break it up by joining.

    Parameters
    ----------
    v
        The game; evaluated once on every connected coalition.
    graph
        The communication structure.
    max_coalitions
        Refuse graphs with more connected coalitions than this; :func:`myerson_value_sampled`
        estimates such values.

    Notes
    -----
    Cost ``O(|C| n q)``.

    Examples
    --------
    >>> from gstarx.games import unanimity_game
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> myerson_value(unanimity_game(3, [0, 2]), path).values
    array([0.33333333, 0.33333333, 0.33333333])
    """
    lattice = lattice_within(graph, max_coalitions, sampler="myerson_value_sampled")
    worths = worths_of(v, lattice)
    values = share_out(lattice, in_columns(worths))
    values = values.reshape(graph.num_nodes, *worths.shape[1:])
    return Allocation.exactly(values, len(lattice), component_gap(values, worths, lattice))


def share_out(lattice: CoalitionLattice, columns: Worths) -> NDArray[np.float64]:
    """Myerson values (n, q) from the worths (k, q) of all connected coalitions."""
    values = np.zeros((lattice.num_nodes, columns.shape[1]))
    sizes = lattice.sizes
    chance = component_chance(sizes, lattice.boundary_sizes)
    _share(
        lattice.masks,
        lattice.boundary_sizes,
        lattice.links,
        lattice.joining_nodes(),
        sizes,
        columns * chance[:, None],
        values,
    )
    return values


def component_chance(
    sizes: NDArray[np.integer], boundary_sizes: NDArray[np.integer]
) -> NDArray[np.float64]:
    """``t! b! / (t + b)!``: how often a coalition is a component in a random order of arrival."""
    top = int((sizes + boundary_sizes).max(initial=0))
    log_factorial = np.concatenate([[0.0], np.cumsum(np.log(np.arange(1, top + 1)))])
    chance: NDArray[np.float64] = np.exp(
        log_factorial[sizes] + log_factorial[boundary_sizes] - log_factorial[sizes + boundary_sizes]
    )
    return chance


def myerson_weights(lattice: CoalitionLattice) -> NDArray[np.float64]:
    """The matrix (|C|, n) whose transpose maps worths to Myerson values."""
    sizes = lattice.sizes
    chance = component_chance(sizes, lattice.boundary_sizes)
    weights = np.where(lattice.coalitions(), (chance / sizes)[:, None], 0.0)
    row = np.repeat(np.arange(len(lattice)), lattice.boundary_sizes)
    weights[row, lattice.joining_nodes()] = -(chance / np.maximum(lattice.boundary_sizes, 1))[row]
    return weights


@compiled
def _share(masks, boundary_sizes, links, joining, sizes, scaled, values):  # type: ignore[no-untyped-def]
    """Give ``scaled / t`` to members and take ``scaled / b`` from boundary nodes."""
    for row in range(len(masks)):
        for word in range(masks.shape[1]):
            bits = masks[row, word]
            while bits != _ZERO:
                node = word * WORD + np.int64(trailing_zeros(bits))
                bits &= bits - _ONE
                for g in range(scaled.shape[1]):
                    values[node, g] += scaled[row, g] / sizes[row]
        for at in range(links[row], links[row + 1]):
            for g in range(scaled.shape[1]):
                values[joining[at], g] -= scaled[row, g] / boundary_sizes[row]


def coalition_weights(
    graph: CommunicationGraph, *, value: str = "hn", max_coalitions: int = 200_000
) -> NDArray[np.float64]:
    """The matrix (n, |C|) that maps the worths of connected coalitions to values.

    Columns are in the order of ``graph.connected_coalitions()``, so
    ``coalition_weights(graph) @ v(graph.connected_coalitions())`` is the HN value of ``v``.

    Parameters
    ----------
    graph
        The communication structure.
    value
        ``"hn"`` or ``"myerson"``.
    max_coalitions
        Refuse graphs with more connected coalitions: the matrix has ``n`` numbers for each.

    Examples
    --------
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> coalition_weights(path)[0].round(2) + 0.0  # {0} {1} {2} {0,1} {1,2} {0,1,2}
    array([ 0.5 , -0.25,  0.  ,  0.25, -0.25,  0.25])
    """
    if value not in _SAMPLERS:
        raise ValueError(f"value must be one of 'hn', 'myerson' (got {value!r})")
    lattice = lattice_within(graph, max_coalitions, sampler=_SAMPLERS[value])
    weights = hn_weights(lattice, graph) if value == "hn" else myerson_weights(lattice)
    return weights.T
