"""What every value returns."""

from __future__ import annotations

import math
import warnings
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


#: Standard errors above this share of the largest score are worth a warning.
_NOISY = 0.25


def warn_if_noisy(
    values: NDArray[np.float64],
    std_error: NDArray[np.float64],
    *,
    value: str,
    evaluations: int,
    advice: str = "",
) -> None:
    """Warn when the largest standard error exceeds a quarter of the largest score.

    Each of several games at once is judged by itself. The message names the number of evaluations
    that would bring the error down to a quarter, as errors fall with its root, and then ``advice``.
    """
    if not values.size:
        return
    error = np.nan_to_num(std_error).reshape(len(values), -1).max(axis=0)
    score = np.abs(values).reshape(len(values), -1).max(axis=0)
    # what is left of worths that cancel out is rounding, not noise
    excess = np.where(error > 1e-12, error / np.maximum(_NOISY * score, 1e-100), 0.0)
    worst = int(np.argmax(excess))
    if excess[worst] <= 1:
        return
    wanted = evaluations * float(excess[worst]) ** 2
    needed = f"about {_rounded_up(wanted):,}" if wanted < 1e9 else "more than a billion"
    warnings.warn(
        f"{value}: the standard errors reach {error[worst]:.2g} and the largest score is "
        f"{score[worst]:.2g} in size, so that the order of the nodes is mostly chance. To bring "
        f"them down to a quarter of it would take {needed} evaluations instead of {evaluations:,}"
        + (f"; {advice}" if advice else ""),
        PrecisionWarning,
        stacklevel=3,
    )


def warn_if_unknown(std_error: NDArray[np.float64], *, value: str, budget: int) -> None:
    """Warn when standard errors are not known, and name the smallest budget with which they are."""
    if np.isnan(std_error).any():
        warnings.warn(
            f"{value}: nothing was left of the budget to measure standard errors with, they are "
            f"nan; from budget={budget} on they are known",
            PrecisionWarning,
            stacklevel=3,
        )


def _rounded_up(number: float) -> int:
    """A number of two digits and zeros that is not smaller."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return math.ceil(number / unit - 1e-9) * unit
