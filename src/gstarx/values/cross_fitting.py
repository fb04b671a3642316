"""Cross-fitted least squares on membership, which removes most of the variance of a sample.

Coalitions are drawn, and values are means of terms in which a worth counts for the members and
against the others. Subtracting a linear surrogate's prediction from every worth, and adding the
surrogate's own value, which is known, leaves the mean unchanged and makes the terms small. The
draws are split into folds, and each fold is corrected by a surrogate fitted to the other folds, so
that there is no bias however the fit is regularized, and errors follow from the terms.

The fit is regularized by early stopping of conjugate gradients, where the held-out folds are
predicted best. It needs only products with the membership matrix, so that a large floating-point
matrix of coalitions times players is never formed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import Masks, unpack

_FOLDS = 10
#: Memberships expanded to numbers at once (2 MB).
_CELLS = 1 << 18
#: A matrix of so many numbers is kept whole (8 MB).
_MOST_KEPT = 1 << 20
_MAX_STEPS = 200
#: Steps without a gain of at least a thousandth before the fit stops.
_PATIENCE = 8
_GAIN = 1e-3


@dataclass(frozen=True)
class Membership:
    """Centered membership in k coalitions, as columns of a regression.

    The columns of player ``i`` are ``([i in S] - center) * scale``, one for each scale; those of
    the extras come last.
    """

    masks: Masks
    num_players: int
    #: What is subtracted from a coalition's memberships, (k,).
    centers: NDArray[np.float64]
    #: (k, s), one column for each group of ``num_players`` columns.
    scales: NDArray[np.float64]
    #: Columns that players do not decide, (k, e).
    extras: NDArray[np.float64]

    @classmethod
    def of(cls, masks: Masks, num_players: int, *, center: float, scale: float) -> Membership:
        """Every coalition with the same center and one scale, and no extras."""
        rows = len(masks)
        scales, extras = np.full((rows, 1), scale), np.zeros((rows, 0))
        return cls(masks, num_players, np.full(rows, center), scales, extras)

    @property
    def width(self) -> int:
        """Number of columns."""
        return int(self.scales.shape[1]) * self.num_players + int(self.extras.shape[1])

    def __getitem__(self, rows: slice) -> Membership:
        return replace(
            self,
            masks=self.masks[rows],
            centers=self.centers[rows],
            scales=self.scales[rows],
            extras=self.extras[rows],
        )

    def blocks(self) -> Iterator[tuple[slice, NDArray[np.float64]]]:
        """Rows with their centered members, few enough at a time."""
        rows = max(1, _CELLS // max(1, self.num_players))
        for first in range(0, len(self.masks), rows):
            block = slice(first, first + rows)
            members = unpack(self.masks[block], self.num_players).astype(np.float64)
            members -= self.centers[block, None]
            yield block, members

    @cached_property
    def matrix(self) -> NDArray[np.float64] | None:
        """The whole matrix where it is small, kept for the next product."""
        if len(self.masks) * self.width > _MOST_KEPT:
            return None
        members = unpack(self.masks, self.num_players) - self.centers[:, None]
        return np.hstack([*(members * scale[:, None] for scale in self.scales.T), self.extras])

    def fitted(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """The matrix times coefficients (width, c)."""
        return self.normal(coefficients, None)[0]

    def normal(
        self, coefficients: NDArray[np.float64], weights: NDArray[np.float64] | None
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The matrix times coefficients (width, c), and its transpose times that by weights (k, c).

        Both in one pass over the coalitions; without weights the second is left out.
        """
        groups, count = self.scales.shape[1], coefficients.shape[1]
        if self.matrix is not None:
            fitted = self.matrix @ coefficients
            none = np.zeros((0, count))
            return fitted, none if weights is None else self.matrix.T @ (fitted * weights)
        players = groups * self.num_players
        by_group = coefficients[:players].reshape(groups, self.num_players, count)
        stacked = by_group.transpose(1, 0, 2).reshape(self.num_players, groups * count)
        fitted = self.extras @ coefficients[players:]
        back = np.zeros_like(stacked)
        for block, members in self.blocks():
            scale = self.scales[block, :, None]
            fitted[block] += ((members @ stacked).reshape(-1, groups, count) * scale).sum(axis=1)
            if weights is not None:
                weighted = (fitted[block] * weights[block])[:, None, :] * scale
                back += members.T @ weighted.reshape(len(members), -1)
        if weights is None:
            return fitted, np.zeros((0, count))
        return fitted, self._joined(back, count, self.extras.T @ (fitted * weights))

    def transposed(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The transposed matrix times numbers (k, c)."""
        if self.matrix is not None:
            return self.matrix.T @ numbers
        groups, count = self.scales.shape[1], numbers.shape[1]
        back = np.zeros((self.num_players, groups * count))
        for block, members in self.blocks():
            scaled = numbers[block, None, :] * self.scales[block, :, None]
            back += members.T @ scaled.reshape(len(members), -1)
        return self._joined(back, count, self.extras.T @ numbers)

    def _joined(
        self, back: NDArray[np.float64], count: int, extras: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        groups = self.scales.shape[1]
        grouped = back.reshape(self.num_players, groups, count).transpose(1, 0, 2)
        return np.concatenate([grouped.reshape(groups * self.num_players, count), extras])

    def shares(self, numbers: NDArray[np.float64], *, power: int = 1) -> NDArray[np.float64]:
        """Powers of centered members without scales, transposed, times numbers (k, ...)."""
        flat = numbers.reshape(len(numbers), math.prod(numbers.shape[1:]))
        total = np.zeros((self.num_players, flat.shape[1]))
        for block, members in self.blocks():
            total += (members**power).T @ flat[block]
        return total.reshape(self.num_players, *numbers.shape[1:])


def fold_of(draws: int, *, folds: int = _FOLDS) -> NDArray[np.int64]:
    """The fold of each draw; at most as many folds as draws."""
    return np.arange(draws) % max(1, min(folds, draws))


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
    for coefficients, residual in _descent(
        rows, seen, watch.coefficients.copy(), watch.residual.copy()
    ):
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
        self.coefficients, self.residual = coefficients, residual.copy()
        self.least = self.loss(residual)
        self.enough = 1e-26 * self.least
        self.to_beat = self.least.copy()
        self.patience = np.full(games, _PATIENCE)

    def loss(self, residual: NDArray[np.float64]) -> NDArray[np.float64]:
        """Sum of squared residuals on the held-out folds, for each game."""
        squares = (self.held * residual**2).sum(axis=0)
        loss: NDArray[np.float64] = squares.reshape(-1, self.games).sum(axis=0)
        return loss

    def look(self, coefficients: NDArray[np.float64], residual: NDArray[np.float64]) -> bool:
        """Keep better surrogates; return whether some game may still improve."""
        loss = self.loss(residual)
        # a game that has run out of patience does not resume while others continue
        better = (loss < self.least) & (self.patience > 0)
        columns = np.tile(better, residual.shape[1] // self.games)
        self.coefficients[:, columns], self.residual[:, columns] = (
            coefficients[:, columns],
            residual[:, columns],
        )
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
        along, curved = rows.normal(direction, seen)
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
    and the residual (k, folds, q) of its own fold, :func:`fold_of`. Values are means over draws,
    and the variance is that of a mean of independent draws; it is ``nan`` for a single one. For
    draws without replacement, ``population`` is the number to draw from.
    """
    draws, count = len(rows.masks), base.shape[1]
    weighted = np.zeros_like(residuals)
    place = (np.arange(draws), fold_of(draws))
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
