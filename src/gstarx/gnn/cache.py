"""Worths by bitmask: each distinct coalition is evaluated once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import Masks, compiled, same_mask, slot_of

_FIRST_ROOM = 1024


class WorthCache:
    """A growing table from bitmasks to worths: about 32 bytes per coalition of up to 64 nodes."""

    def __init__(self, words: int) -> None:
        self.count = 0
        self._masks = np.empty((_FIRST_ROOM, words), dtype=np.uint64)
        #: As many games as the first worths have.
        self._worths = np.empty((_FIRST_ROOM, 0))
        self._table = np.full(2 * _FIRST_ROOM, -1, dtype=np.int32)

    def rows_of(self, masks: Masks) -> NDArray[np.int64]:
        """Row of every mask; those not seen before get new rows from ``self.count`` on."""
        self._reserve(self.count + len(masks))
        rows = np.empty(len(masks), dtype=np.int64)
        _find_or_add(self._masks, self._table, self.count, masks, rows)
        return rows

    def masks(self, first: int, last: int) -> Masks:
        """Masks of some rows, filled by ``rows_of`` though not yet counted."""
        return self._masks[first:last]

    def arrange(self, first: int, order: NDArray[np.int64]) -> None:
        """Put the rows from ``first`` on, not yet counted, in another order."""
        masks = self._masks[first : first + len(order)]
        _move(self._masks, self._table, first, order)
        self._masks[first : first + len(order)] = masks[order]

    def add(self, worths: NDArray[np.float64]) -> None:
        """Give the next rows their worths (k, q), which makes them known."""
        if not self.count:
            self._worths = np.empty((len(self._masks), worths.shape[1]))
        self._worths[self.count : self.count + len(worths)] = worths
        self.count += len(worths)

    def forget_unknown(self) -> None:
        """Drop rows that were added but never got worths, after an evaluation failed."""
        self._table[:] = -1
        rows = np.empty(self.count, dtype=np.int64)
        _find_or_add(self._masks, self._table, 0, self._masks[: self.count].copy(), rows)

    def worths(self, rows: NDArray[np.int64]) -> NDArray[np.float64]:
        """Worths (k, q) of rows."""
        return self._worths[rows]

    def _reserve(self, needed: int) -> None:
        if needed <= len(self._masks):
            return
        capacity = len(self._masks)
        while capacity < needed:
            capacity *= 2
        for name in ("_masks", "_worths"):
            old = getattr(self, name)
            new = np.empty((capacity, old.shape[1]), dtype=old.dtype)
            new[: self.count] = old[: self.count]
            setattr(self, name, new)
        self._table = np.full(2 * capacity, -1, dtype=np.int32)
        self.forget_unknown()


@compiled
def _find_or_add(known, table, count, masks, rows):  # type: ignore[no-untyped-def]
    slots = len(table)
    for k in range(len(masks)):
        s = slot_of(masks[k], slots)
        while table[s] >= 0 and not same_mask(known[table[s]], masks[k]):
            s = (s + 1) & (slots - 1)
        if table[s] < 0:
            for w in range(masks.shape[1]):
                known[count, w] = masks[k, w]
            table[s] = count
            count += 1
        rows[k] = table[s]


@compiled
def _move(known, table, first, order):  # type: ignore[no-untyped-def]
    """Let the table point to where rows will be: ``first + order[k]`` will be ``first + k``."""
    slots = len(table)
    at = np.empty(len(order), np.int64)
    for k in range(len(order)):
        row = first + order[k]
        s = slot_of(known[row], slots)
        while table[s] != row:
            s = (s + 1) & (slots - 1)
        at[k] = s
    for k in range(len(order)):
        table[at[k]] = first + k
