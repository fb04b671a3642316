"""Cross-fitted least squares on membership, which removes most of the variance of a sample.

Coalitions are drawn, and values are means of terms in which a worth counts for the members and
against the others. Subtracting a linear surrogate's prediction from every worth, and adding the
surrogate's own value, which is known, leaves the mean unchanged and makes the terms small. The
draws are split into folds, and each fold is corrected by a surrogate fitted to the other folds, so
that the fit adds no bias, and errors follow from the terms.

The fit is regularized by early stopping of conjugate gradients, where the held-out folds are
predicted best. All folds share the number of steps. The bias that comes from choosing it so is
negligible beyond a handful of draws, but with two or three pairs of coalitions it can be as large
as the standard error. The fit needs only products with the membership matrix, which is never
formed: :class:`Membership`.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import Masks, compiled

#: Folds, and how many where the draws are many for every player: the fit then loses little by
#: leaving out more of them.
_FOLDS, _FEWER_FOLDS = 10, 5
_MANY_DRAWS = 10
_MAX_STEPS = 200
#: Steps without a gain of at least a thousandth before the fit stops.
_PATIENCE = 8
_GAIN = 1e-3
#: Bytes of the tables of octets that are in use at once, which stay in a core's own cache.
_TABLES = 1 << 20
_OCTET = 8


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


@dataclass(frozen=True)
class Membership:
    """Products with the centered membership in k coalitions, a matrix that is never formed.

    The columns of player ``i`` are ``([i in S] - center) * scale``, one for each scale; those of
    the extras come last.

    Eight players make an octet of a bitmask, which has 256 values. A product with coefficients
    first sums them for every value of every octet; a row is then a sum of one table entry for every
    octet instead of one product for every player. The transposed product sums rows by the values of
    their octets first, and takes the players apart at the end. Both are several times faster than
    products of floating-point matrices, and need no memory for one.
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

    def fitted(self, coefficients: NDArray[np.float64]) -> NDArray[np.float64]:
        """The matrix times coefficients (width, c)."""
        groups, count = self.scales.shape[1], coefficients.shape[1]
        players = groups * self.num_players
        by_group = coefficients[:players].reshape(groups, self.num_players, count)
        stacked = by_group.transpose(1, 0, 2).reshape(self.num_players, groups * count)
        fitted: NDArray[np.float64] = self.extras @ coefficients[players:]
        # every member counts from the center on
        shift = stacked.sum(axis=0)
        for octets, entries in self._chunks(groups * count):
            tables = np.empty((octets.shape[1], 1 << _OCTET, groups * count))
            _tabulate(stacked[entries], tables)
            _look_up(octets, tables, self.centers, shift, self.scales, fitted)
            shift = np.zeros_like(shift)
        return fitted

    def transposed(self, numbers: NDArray[np.float64]) -> NDArray[np.float64]:
        """The transposed matrix times numbers (k, c)."""
        groups, count = self.scales.shape[1], numbers.shape[1]
        back = self._summed(numbers, self.scales, self.centers)
        grouped = back.reshape(self.num_players, groups, count).transpose(1, 0, 2)
        extras = self.extras.T @ numbers
        return np.concatenate([grouped.reshape(groups * self.num_players, count), extras])

    def shares(self, numbers: NDArray[np.float64], *, power: int = 1) -> NDArray[np.float64]:
        """Centered members, or their squares, without scales, transposed, times numbers (k, ...).

        Only powers 1 and 2.
        """
        flat = numbers.reshape(len(numbers), math.prod(numbers.shape[1:]))
        if power == 1:
            total = self._summed(flat, np.ones((len(flat), 1)), self.centers)
        else:
            # (1 - c)^2 for a member and c^2 for the others differ by 1 - 2 c
            apart = 1 - 2 * self.centers
            total = self._summed(flat, apart[:, None], np.zeros_like(apart))
            total += self.centers**2 @ flat
        return total.reshape(self.num_players, *numbers.shape[1:])

    def _summed(
        self,
        numbers: NDArray[np.float64],
        scales: NDArray[np.float64],
        centers: NDArray[np.float64],
    ) -> NDArray[np.float64]:
        """Centered members, transposed, times numbers (k, c) by scales (k, s): (n, s * c)."""
        columns = scales.shape[1] * numbers.shape[1]
        numbers = np.ascontiguousarray(numbers)
        total = np.empty((self.num_players, columns))
        for octets, entries in self._chunks(columns):
            tables = np.zeros((octets.shape[1], 1 << _OCTET, columns))
            _collect(octets, numbers, scales, tables)
            _take_apart(tables, total[entries])
        total -= ((centers[:, None] * scales).T @ numbers).reshape(columns)
        return total

    def _chunks(self, columns: int) -> Iterator[tuple[NDArray[np.uint8], slice]]:
        """Some octets of all coalitions at a time, and the players they stand for."""
        octets = np.ascontiguousarray(self.masks).astype("<u8", copy=False).view(np.uint8)
        count = -(-self.num_players // _OCTET)
        at_once = max(1, _TABLES // ((8 << _OCTET) * max(1, columns)))
        for first in range(0, count, at_once):
            last = min(count, first + at_once)
            yield octets[:, first:last], slice(_OCTET * first, _OCTET * last)


@compiled
def _tabulate(coefficients, tables):  # type: ignore[no-untyped-def]
    """The sum of the coefficients (n, c) of the players of every value of every octet."""
    n, columns = coefficients.shape
    for octet in range(len(tables)):
        tables[octet, 0] = 0.0
        for bit in range(_OCTET):
            player, half = _OCTET * octet + bit, 1 << bit
            for value in range(half):
                for j in range(columns):
                    more = coefficients[player, j] if player < n else 0.0
                    tables[octet, half + value, j] = tables[octet, value, j] + more


@compiled
def _look_up(octets, tables, centers, shift, scales, fitted):  # type: ignore[no-untyped-def]
    """Add what the players of some octets contribute to every row."""
    groups, count = scales.shape[1], fitted.shape[1]
    sums = np.empty(groups * count)
    for row in range(len(octets)):
        for j in range(len(sums)):
            sums[j] = -centers[row] * shift[j]
        for octet in range(octets.shape[1]):
            entry = tables[octet, octets[row, octet]]
            for j in range(len(sums)):
                sums[j] += entry[j]
        for group in range(groups):
            scale = scales[row, group]
            for j in range(count):
                fitted[row, j] += scale * sums[group * count + j]


@compiled
def _collect(octets, numbers, scales, tables):  # type: ignore[no-untyped-def]
    """Add every row, by its scales, to the entries of its octets."""
    groups, count = scales.shape[1], numbers.shape[1]
    scaled = np.empty(groups * count)
    for row in range(len(octets)):
        for group in range(groups):
            for j in range(count):
                scaled[group * count + j] = scales[row, group] * numbers[row, j]
        for octet in range(octets.shape[1]):
            entry = tables[octet, octets[row, octet]]
            for j in range(len(scaled)):
                entry[j] += scaled[j]


@compiled
def _take_apart(tables, total):  # type: ignore[no-untyped-def]
    """The sum over the values of an octet that hold a player, for every player."""
    n, columns = total.shape
    for octet in range(len(tables)):
        for bit in range(_OCTET - 1, -1, -1):
            player, half = _OCTET * octet + bit, 1 << bit
            if player < n:
                total[player] = 0.0
            for value in range(half):
                for j in range(columns):
                    more = tables[octet, half + value, j]
                    if player < n:
                        total[player, j] += more
                    tables[octet, value, j] += more
