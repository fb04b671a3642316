"""The matrix of a linear value, for many games on the same graph."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import CommunicationGraph
from gstarx.values.hn.closed_form import hn_weights, lattice_within
from gstarx.values.myerson import myerson_weights

_SAMPLERS = {"hn": "hn_value_growth_sampled", "myerson": "myerson_value_sampled"}


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
