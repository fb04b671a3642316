"""Cross-fitted least squares on membership, which removes most of the variance of a sample.

Coalitions are drawn, and values are means of terms in which a worth counts for the members and
against the others. Subtracting a linear surrogate's prediction from every worth, and adding the
surrogate's own value, which is known, leaves the mean unchanged and makes the terms small. The
draws are split into folds, and each fold is corrected by a surrogate fitted to the other folds, so
that there is no bias however the fit is regularized, and errors follow from the terms.

The fit is regularized by early stopping of conjugate gradients, where the held-out folds are
predicted best. It needs only products with the membership matrix, which is never formed:
:mod:`gstarx.values.membership`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from gstarx.values.membership import Membership

#: Folds, and how many where the draws are many for every player: the fit then loses little by
#: leaving out more of them.
_FOLDS, _FEWER_FOLDS = 10, 5
_MANY_DRAWS = 10
_MAX_STEPS = 200
#: Steps without a gain of at least a thousandth before the fit stops.
_PATIENCE = 8
_GAIN = 1e-3


def fold_of(draws: int, *, players: int | None = None) -> NDArray[np.int64]:
    """The fold of each draw; at most as many folds as draws."""
    many = players is not None and draws >= _MANY_DRAWS * players
    return np.arange(draws) % max(1, min(_FEWER_FOLDS if many else _FOLDS, draws))


@dataclass(frozen=True)
class CrossFit:
    """Surrogates, one for each fold and fitted without it."""

    #: (width, folds, q)
    coefficients: NDArray[np.float64]
    #: The residuals of all coalitions under each surrogate, (k, folds, q).
    residuals: NDArray[np.float64]


def cross_fit(
    rows: Membership,
    answers: NDArray[np.float64],
    seen: NDArray[np.float64],
    held: NDArray[np.float64],
    *,
    start: NDArray[np.float64] | None = None,
) -> CrossFit:
    """Regress answers (k, q) on members, once for each fold.

    Parameters
    ----------
    rows
        The coalitions.
    answers
        What is fitted.
    seen
        How much a row counts in the fit for a fold, (k, folds).
    held
        How much a row counts when the fit for a fold is validated, (k, folds).
    start
        Coefficients (width, q) to start from, up to a factor, if they are better than zero.
    """
    folds, games = seen.shape[1], answers.shape[1]
    # from here on one column for each fold and game
    seen, held = np.repeat(seen, games, axis=1), np.repeat(held, games, axis=1)
    residual = np.tile(answers, folds)
    watch = _Watch(held, games, np.zeros((rows.width, folds * games)), residual)
    if start is not None:
        guess = np.tile(rows.fitted(start), folds)
        size = (seen * guess**2).sum(axis=0)
        factor = (seen * guess * residual).sum(axis=0) / np.where(size > 0, size, 1.0)
        watch.look(np.tile(start, folds) * factor, residual - factor * guess)
    for coefficients, residual in _descent(rows, seen, watch.coefficients, watch.residual):
        if not watch.look(coefficients, residual):
            break
    shape = (-1, folds, games)
    return CrossFit(watch.coefficients.reshape(shape), watch.residual.reshape(shape))


class _Watch:
    """The best surrogates of each game so far: those that predict the held-out folds best."""

    def __init__(
        self,
        held: NDArray[np.float64],
        games: int,
        coefficients: NDArray[np.float64],
        residual: NDArray[np.float64],
    ) -> None:
        self.held, self.games = held, games
        self.coefficients, self.residual = coefficients, residual
        self.least = self.loss(residual)
        self.enough = 1e-26 * self.least
        self.to_beat = self.least.copy()
        self.patience = np.full(games, _PATIENCE)

    def loss(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of squared residuals on the held-out folds, for each game."""
        squares = np.einsum("kc,kc,kc->c", self.held, residual, residual)
        loss: NDArray[np.float64] = squares.reshape(-1, self.games).sum(axis=0)
        return loss

    def look(self, coefficients: NDArray[np.float64], residual: NDArray[np.float64]) -> bool:
        """Keep better surrogates; return whether some game may still improve."""
        loss = self.loss(residual)
        # a game that has run out of patience does not resume while others continue
        better = (loss < self.least) & (self.patience > 0)
        if better.all():
            self.coefficients, self.residual = coefficients, residual
        elif better.any():
            columns = np.tile(better, residual.shape[1] // self.games)
            self.coefficients = np.where(columns, coefficients, self.coefficients)
            self.residual = np.where(columns, residual, self.residual)
        self.least = np.where(better, loss, self.least)
        gain = better & (loss < (1 - _GAIN) * self.to_beat)
        self.to_beat = np.where(gain, loss, self.to_beat)
        self.patience = np.where(gain, _PATIENCE, self.patience - 1)
        self.patience[self.least <= self.enough] = 0
        return bool((self.patience > 0).any())


def _descent(
    rows: Membership,
    seen: NDArray[np.float64],
    coefficients: NDArray[np.float64],
    residual: NDArray[np.float64],
) -> Iterator[tuple[NDArray[np.float64], NDArray[np.float64]]]:
    """Conjugate gradients on the normal equations of every column: coefficients and residuals."""
    downhill = rows.transposed(seen * residual)
    direction, steep = downhill, (downhill**2).sum(axis=0)
    for _ in range(_MAX_STEPS):
        along = rows.fitted(direction)
        curved = rows.transposed(seen * along)
        bend = (direction * curved).sum(axis=0)
        stride = np.where(bend > 0, steep / np.where(bend > 0, bend, 1.0), 0.0)
        coefficients = coefficients + stride * direction
        residual = residual - stride * along
        yield coefficients, residual
        downhill = downhill - stride * curved
        flatter = (downhill**2).sum(axis=0)
        direction = downhill + flatter / np.where(steep > 0, steep, 1.0) * direction
        steep = flatter


def corrected(
    rows: Membership,
    weights: NDArray[np.float64],
    residuals: NDArray[np.float64],
    base: NDArray[np.float64],
    *,
    population: int | None = None,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Values (n, q) of all draws, and their variance.

    A draw estimates ``base + centered members * weight * residual``, with the base (n, folds, q)
    and the residual (k, folds, q) of its own fold, every next draw in the next one. Values are
    means over draws, and the variance is that of a mean of independent draws; it is ``nan`` for a
    single one. For draws without replacement, ``population`` is the number to draw from.
    """
    draws, count = len(rows.masks), base.shape[1]
    weighted = np.zeros_like(residuals)
    place = (np.arange(draws), np.arange(draws) % count)
    weighted[place] = weights[:, None] * residuals[place]
    shares = rows.shares(weighted)
    times = np.bincount(place[1], minlength=count)[:, None]
    values = ((base * times).sum(axis=1) + shares.sum(axis=1)) / draws
    if draws < 2:
        return values, np.full_like(values, np.nan)
    # of deviations from the mean, to avoid cancellation
    apart = base - values[:, None]
    squares = (apart**2 * times + 2 * apart * shares).sum(axis=1)
    squares += rows.shares(weighted.sum(axis=1) ** 2, power=2)
    variance = np.maximum(squares, 0.0) / (draws * (draws - 1))
    if population is not None:
        # a fold represents what other folds did not draw; what they drew is known
        others = rows.shares(weights[:, None, None] * residuals) - shares
        values += (others * times - shares * (draws - times)).sum(axis=1) / (draws * population)
        variance *= 1.0 - draws / population
    return values, variance
