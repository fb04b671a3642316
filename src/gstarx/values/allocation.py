"""The result of every value, and warnings about its precision."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Allocation:
    """The values of all players of a game, with their precision.

    Attributes
    ----------
    values
        What every player gets: (n,), or (n, q) for q games at once.
    std_error
        Standard error of ``values``, same shape; zero where the values are exact.
    exact
        Whether the values follow from every coalition that matters (no sampling, no truncation).
    evaluations
        Number of distinct coalitions that were evaluated.
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
    """The sample was too small for the graph: use standard errors and scores with caution."""


class PrecisionError(ValueError):
    """A value cannot be estimated reliably for so many players: nothing was evaluated."""


#: Standard errors above this share of the largest score are worth a warning.
_NOISY = 0.25
#: Where warnings are collected, if they are.
_collected: ContextVar[list[Imprecise] | None] = ContextVar("gstarx_imprecise", default=None)


#: What a coalition of a sampler takes from the budget that was given, and what is taken besides.
_costs: ContextVar[tuple[int, int]] = ContextVar("gstarx_costs", default=(1, 0))


class Imprecise(NamedTuple):
    """A :class:`PrecisionWarning` that was not given yet: how bad it is, and what it says."""

    excess: float
    message: str


@contextmanager
def collect_imprecise() -> Iterator[list[Imprecise]]:
    """Collect warnings about precision inside this block instead of giving them."""
    collected: list[Imprecise] = []
    token = _collected.set(collected)
    try:
        yield collected
    finally:
        _collected.reset(token)


@contextmanager
def budget_costs(each: int, besides: int) -> Iterator[None]:
    """Let warnings name the budget that was given, not the part of it that a sampler has."""
    token = _costs.set((each, besides))
    try:
        yield
    finally:
        _costs.reset(token)


def summarize_imprecise(
    found: Mapping[str, Sequence[Imprecise]], total: int, what: str, stacklevel: int = 2
) -> None:
    """Warn once of all that was found, by the name of what it is about, among so many.

    ``what`` is the word for several of them.
    """
    worst = {name: max(listed) for name, listed in found.items() if listed}
    if worst:
        name = max(worst, key=lambda name: worst[name])
        those = (
            f"{len(worst):,} of {total:,} {what} have imprecise scores, the worst being {name}: "
        )
        warnings.warn(
            (those if total > 1 else "") + worst[name].message,
            PrecisionWarning,
            stacklevel=stacklevel + 1,
        )


def _warn(excess: float, message: str) -> None:
    """Warn about precision, or note that one would."""
    collected = _collected.get()
    if collected is None:
        warnings.warn(message, PrecisionWarning, stacklevel=4)
    else:
        collected.append(Imprecise(excess, message))


def warn_if_noisy(
    values: NDArray[np.float64],
    std_error: NDArray[np.float64],
    *,
    value: str,
    evaluations: int,
    advice: str = "",
) -> None:
    """Warn when the largest standard error exceeds a quarter of the largest score.

    Each of several games is checked separately. The message names the number of evaluations that
    would reduce the error to a quarter, as errors fall with its square root, and then ``advice``.
    """
    if not values.size:
        return
    error = np.nan_to_num(std_error).reshape(len(values), -1).max(axis=0)
    score = np.abs(values).reshape(len(values), -1).max(axis=0)
    # if worths cancel, the remainder is rounding, not noise
    excess = np.where(error > 1e-12, error / np.maximum(_NOISY * score, 1e-100), 0.0)
    worst = int(np.argmax(excess))
    if excess[worst] <= 1:
        return
    wanted = evaluations * float(excess[worst]) ** 2
    needed = f"about {_rounded_up(wanted):,}" if wanted < 1e9 else "more than a billion"
    _warn(
        float(excess[worst]),
        f"{value}: the standard errors reach {error[worst]:.2g} and the largest score is "
        f"{score[worst]:.2g} in size: little of the order of the nodes is more than chance. To "
        f"bring them down to a quarter of it would take {needed} evaluations instead of "
        f"{evaluations:,}" + (f"; {advice}" if advice else ""),
    )


def warn_if_unknown(std_error: NDArray[np.float64], *, value: str, budget: int) -> None:
    """Warn when standard errors are not known, and name a budget with which they are."""
    if np.isnan(std_error).any():
        each, besides = _costs.get()
        _warn(
            np.inf,
            f"{value}: nothing was left of the budget to measure standard errors with, they are "
            f"nan; from budget={each * budget + besides} on they are known",
        )


def within_range(
    values: NDArray[np.float64],
    std_error: NDArray[np.float64],
    span: NDArray[np.float64],
    *,
    value: str,
    evaluations: int,
    total: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Values (n, q) of marginal contributions, clipped to the range of worths with a warning.

    What a player adds never exceeds the largest minus the smallest worth, ``span`` (q,). If the
    values have to sum to ``total`` (q,), the others make up for what was clipped.
    """
    size = np.abs(values).max(axis=0, initial=0.0)
    # beyond rounding
    beyond = size > span * (1 + 1e-9) + 1e-12
    if not beyond.any():
        return values
    worst = int(np.argmax(np.where(beyond, size / np.maximum(span, 1e-300), 0.0)))
    noise = np.nan_to_num(std_error[:, worst]).max() or size[worst]
    wanted = evaluations * max(1.0, float(noise / (_NOISY * span[worst]))) ** 2
    # all coalitions are always enough
    wanted = min(wanted, 2.0 ** min(len(values), 1000) - 1)
    _warn(
        float(size[worst] / max(span[worst], 1e-300)) / _NOISY,
        f"{value}: a score was estimated at {size[worst]:.2g} in size, beyond the range of all "
        f"worths that were seen, {span[worst]:.2g}, which no true score is; it was cut back to "
        f"that. Take budget={_rounded_up(wanted)} or more",
    )
    cut = np.clip(values, -span, span) if total is None else _cut(values, span, total)
    return np.where(beyond, cut, values)


def _cut(
    values: NDArray[np.float64], span: NDArray[np.float64], total: NDArray[np.float64]
) -> NDArray[np.float64]:
    """The nearest values within the span that sum to the total: all shifted, then clipped."""
    high = np.abs(values).max(axis=0) + span
    low = -high
    for _ in range(100):
        shift = (low + high) / 2
        short = np.clip(values + shift, -span, span).sum(axis=0) < total
        low, high = np.where(short, shift, low), np.where(short, high, shift)
    cut: NDArray[np.float64] = np.clip(values + high, -span, span)
    return cut


def _rounded_up(number: float) -> int:
    """Round a number up to two significant digits."""
    unit: int = 10 ** max(0, math.floor(math.log10(max(number, 1.0))) - 1)
    return math.ceil(number / unit - 1e-9) * unit
