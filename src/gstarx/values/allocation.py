"""What every value returns."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Allocation:
    """How a value shares the worth of a game among its players, and how far to trust it.

    Attributes
    ----------
    values
        What every player gets: (n,), or (n, q) for q games at once.
    std_error
        Standard error of ``values``, same shape; zero where the values are exact.
    exact
        Whether the values follow from every coalition that matters (no sampling, no truncation).
    evaluations
        Number of distinct coalitions the game was asked for.
    residual
        Largest gap, over components and games, between the values' sum and the component's worth.
    converged
        Whether an iteration reached its tolerance; true for methods that do not iterate.
    """

    values: NDArray[np.float64]
    std_error: NDArray[np.float64]
    exact: bool
    evaluations: int
    residual: float
    converged: bool = True

    @classmethod
    def exactly(cls, values: NDArray[np.float64], evaluations: int, residual: float) -> Allocation:
        """An allocation without sampling error."""
        return cls(values, np.zeros_like(values), True, evaluations, residual)

    def __repr__(self) -> str:
        how = "exact" if self.exact else f"std_error <= {self.std_error.max(initial=0.0):.2g}"
        state = "" if self.converged else ", not converged"
        values = np.array2string(self.values, precision=4, threshold=12, separator=", ")
        return f"Allocation({values}, {how}{state}, {self.evaluations:,} evaluations)"


class ConvergenceWarning(UserWarning):
    """An iteration stopped before it reached its tolerance."""


class PrecisionWarning(UserWarning):
    """A sample was too thin for the graph: take the standard errors, and the scores, with care."""
