"""Asking a game for the worths of all connected coalitions, and checking efficiency."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.games.protocol import Game, Worths, evaluate_masks
from gstarx.graphs.lattice import CoalitionLattice


def worths_of(v: Game, lattice: CoalitionLattice) -> Worths:
    """The worth of every coalition of the lattice, (k,) or (k, q)."""
    return evaluate_masks(v, lattice.masks, lattice.num_nodes)


def in_columns(worths: Worths) -> Worths:
    """Worths as a contiguous matrix (k, q), one column for a single game."""
    return np.ascontiguousarray(worths if worths.ndim == 2 else worths[:, None])


def component_gap(values: NDArray[np.float64], worths: Worths, lattice: CoalitionLattice) -> float:
    """Largest gap between the sum of values over a component and the component's worth."""
    shares = lattice.coalitions(lattice.tops).astype(np.float64) @ values
    return float(np.abs(shares - worths[lattice.tops]).max(initial=0.0))
