"""The Shapley value (equation 2 of the paper), and C-Shapley on general graphs (appendix F.2)."""

from __future__ import annotations

import math

import numpy as np

from gstarx.games import Game, evaluate_masks
from gstarx.graphs import (
    CommunicationGraph,
    TooManyCoalitions,
    find_rows,
    label_parts,
    pack,
    unpack,
)
from gstarx.values.allocation import Allocation
from gstarx.values.hn.closed_form import lattice_within
from gstarx.values.myerson import component_chance
from gstarx.values.worths import component_gap, in_columns, worths_of

_CELLS = 1 << 22


def shapley_value(v: Game, n: int, *, max_coalitions: int = 2_000_000) -> Allocation:
    """The exact Shapley value over all ``2^n - 1`` coalitions of ``n`` players.

    ``phi_i = sum over S without i of |S|! (n - |S| - 1)! / n! (v(S + i) - v(S))``.

    Parameters
    ----------
    v
        The game; evaluated once on every non-empty coalition, connected or not.
    n
        Number of players.
    max_coalitions
        Refuse games with more coalitions than this.

    Examples
    --------
    >>> from gstarx.games import glove_game
    >>> shapley_value(glove_game(3, left=[0]), 3).values
    array([0.66666667, 0.16666667, 0.16666667])
    """
    if n < 0:
        raise ValueError(f"n must be at least 0 (got {n})")
    if 2**n - 1 > max_coalitions:
        raise TooManyCoalitions(
            2**n - 1,
            max_coalitions,
            "raise max_coalitions, or estimate with shapley_value_sampled",
            connected=False,
        )
    masks = np.arange(1, 2**n, dtype=np.uint64)[:, None]
    worths = evaluate_masks(v, masks, n)
    columns = in_columns(worths)
    inside = np.array([0.0] + [1 / (s * math.comb(n, s)) for s in range(1, n + 1)])
    outside = np.array([0.0] + [1 / ((n - s) * math.comb(n, s)) for s in range(1, n)] + [0.0])
    members = unpack(masks, n).astype(np.float64)
    sizes = members.sum(axis=1).astype(np.int64)
    values = members.T @ (columns * (inside + outside)[sizes, None])
    values -= (columns * outside[sizes, None]).sum(axis=0)
    gap = float(np.abs(values.sum(axis=0) - columns[-1:]).max(initial=0.0))
    return Allocation.exactly(values.reshape(n, *worths.shape[1:]), len(masks), gap)


def c_shapley_value(
    v: Game, graph: CommunicationGraph, *, max_coalitions: int = 200_000
) -> Allocation:
    """The C-Shapley value: marginal contributions to connected coalitions.

    ``phi_i = sum over connected U with i of (u-1)! l! / (u+l)! m(U, i)``, where ``u = |U|``, ``l``
    is the number of boundary *nodes* of ``U``, and ``m(U, i)`` is the worth of ``U`` less that of
    the components of ``U - i``. It equals the Myerson value on every graph.

    The formula of Chen et al. (2019) holds inside a line only. The paper corrects it (equation 22),
    but writes ``l`` where ``l!`` is needed (the same up to ``l = 2``, so on lines), counts edges
    where boundary nodes are meant (the same on trees), and gives ``1/d`` instead of ``1/|U|`` where
    ``l = 0`` (the same on connected graphs).

    Parameters
    ----------
    v
        The game; evaluated once on every connected coalition.
    graph
        The communication structure.
    max_coalitions
        Refuse graphs with more connected coalitions than this. :func:`myerson_value` gives the same
        numbers at a fraction of the cost.

    Examples
    --------
    >>> from gstarx.games import unanimity_game
    >>> path = CommunicationGraph(3, [(0, 1), (1, 2)])
    >>> c_shapley_value(unanimity_game(3, [0, 1]), path).values
    array([0.5, 0.5, 0. ])
    """
    lattice = lattice_within(graph, max_coalitions, sampler="myerson_value_sampled")
    worths = worths_of(v, lattice)
    columns = in_columns(worths)
    n = graph.num_nodes
    weights = component_chance(lattice.sizes, lattice.boundary_sizes) / lattice.sizes
    values = np.zeros((n, columns.shape[1]))
    rows = max(1, _CELLS // max(1, n * n))
    for first in range(0, len(lattice), rows):
        block = slice(first, first + rows)
        members = lattice.coalitions(block)
        coalition, player = np.nonzero(members)
        rest = members[coalition]
        rest[np.arange(len(rest)), player] = False
        labels = label_parts(graph.edges, rest)
        owner, root = np.nonzero(labels == np.arange(n))
        parts = find_rows(lattice.masks, pack(labels[owner] == root[:, None]))
        marginal = columns[block][coalition]
        np.subtract.at(marginal, owner, columns[parts])
        np.add.at(values, player, weights[block][coalition, None] * marginal)
    values = values.reshape(n, *worths.shape[1:])
    return Allocation.exactly(values, len(lattice), component_gap(values, worths, lattice))
