"""Products with a matrix of coalitions and players that is never formed.

Eight players make an octet of a bitmask, which has 256 values. A product with coefficients first
sums them for every value of every octet; a row is then a sum of one table entry for every octet
instead of one product for every player. The transposed product sums rows by the values of their
octets first, and takes the players apart at the end. Both are several times faster than products
of floating-point matrices, and need no memory for one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import Masks, compiled

#: Bytes of the tables of octets that are in use at once, which stay in a core's own cache.
_TABLES = 1 << 20
_OCTET = 8


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
