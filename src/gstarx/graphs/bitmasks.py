"""Coalitions as bitmasks of any width, and a hash table that finds them.

A mask has 64 nodes to a word; bit ``i`` of it is node ``i``.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs.compilation import WORD, compiled, trailing_zeros

#: Boolean coalitions, one a row: shape (k, n).
Coalitions = NDArray[np.bool_]
#: Packed coalitions, one a row: shape (k, words).
Masks = NDArray[np.uint64]
_ZERO = np.uint64(0)


def words_for(num_nodes: int) -> int:
    """Number of 64-bit words that hold a mask of ``num_nodes`` bits (at least one)."""
    return max(1, -(-num_nodes // WORD))


def pack(coalitions: Coalitions) -> Masks:
    """Pack boolean coalitions (k, n) into bitmasks (k, words).

    >>> pack(np.array([[True, False, True]]))
    array([[5]], dtype=uint64)
    """
    k, n = coalitions.shape
    padded = np.zeros((k, words_for(n) * 8), dtype=np.uint8)
    packed = np.packbits(coalitions, axis=1, bitorder="little")
    padded[:, : packed.shape[1]] = packed
    return padded.view("<u8").astype(np.uint64, copy=False)


def unpack(masks: Masks, num_nodes: int) -> Coalitions:
    """Unpack bitmasks (k, words) into boolean coalitions (k, ``num_nodes``).

    >>> unpack(np.array([[5]], dtype=np.uint64), 3)
    array([[ True, False,  True]])
    """
    octets = np.ascontiguousarray(masks).astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(octets, axis=1, count=num_nodes, bitorder="little")
    return bits.view(np.bool_)


def first_nodes(masks: Masks) -> NDArray[np.int64]:
    """The lowest node of every mask (k, words), none of them empty.

    >>> first_nodes(np.array([[6]], dtype=np.uint64))
    array([1])
    """
    words = (masks != 0).argmax(axis=1)
    lowest = masks[np.arange(len(masks)), words]
    alone = lowest & (~lowest + np.uint64(1))
    lows: NDArray[np.int64] = words * WORD + np.frexp(alone.astype(np.float64))[1] - 1
    return lows


def renumber(masks: Masks, nodes: NDArray[np.int64], num_nodes: int) -> Masks:
    """Masks (k, words) in which bit ``i`` becomes bit ``nodes[i]`` of ``num_nodes``.

    >>> renumber(np.array([[3]], dtype=np.uint64), np.array([2, 0]), 3)
    array([[5]], dtype=uint64)
    """
    moved = np.zeros((len(masks), words_for(num_nodes)), dtype=np.uint64)
    _renumber(masks, nodes, moved)
    return moved


@compiled
def _renumber(masks, nodes, moved):  # type: ignore[no-untyped-def]
    one = np.uint64(1)
    for row in range(len(masks)):
        for word in range(masks.shape[1]):
            bits = masks[row, word]
            while bits != np.uint64(0):
                node = nodes[word * WORD + np.int64(trailing_zeros(bits))]
                bits &= bits - one
                moved[row, node // WORD] |= one << np.uint64(node % WORD)


@compiled
def slot_of(mask, slots):  # type: ignore[no-untyped-def]
    """Where a mask starts looking in a table of ``slots`` (a power of two) places."""
    key = _ZERO
    for w in range(len(mask)):
        key = (key ^ mask[w]) * np.uint64(0x9E3779B97F4A7C15)
        key ^= key >> np.uint64(32)
    # the high bits of a product depend on every bit of its factors, the low ones do not
    return np.int64(((key >> np.uint64(32)) * np.uint64(slots)) >> np.uint64(32))


@compiled
def same_mask(mask, other):  # type: ignore[no-untyped-def]
    """Whether two masks hold the same nodes."""
    for w in range(len(mask)):
        if mask[w] != other[w]:
            return False
    return True


@compiled
def _insert(masks, table):  # type: ignore[no-untyped-def]
    """Put every mask into the table, a repeated one once; returns the row of its first copy."""
    slots = len(table)
    rows = np.empty(len(masks), np.int64)
    for row in range(len(masks)):
        s = slot_of(masks[row], slots)
        while table[s] >= 0 and not same_mask(masks[table[s]], masks[row]):
            s = (s + 1) & (slots - 1)
        if table[s] < 0:
            table[s] = row
        rows[row] = table[s]
    return rows


@compiled
def _find(masks, table, wanted, rows):  # type: ignore[no-untyped-def]
    slots = len(table)
    for k in range(len(wanted)):
        s = slot_of(wanted[k], slots)
        while table[s] >= 0 and not same_mask(masks[table[s]], wanted[k]):
            s = (s + 1) & (slots - 1)
        rows[k] = table[s]


def distinct_rows(masks: Masks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Rows of the first copy of every distinct mask, and for each mask its place among them.

    >>> first, where = distinct_rows(np.array([[4], [9], [4]], dtype=np.uint64))
    >>> first, where
    (array([0, 1]), array([0, 1, 0]))
    """
    rows = _insert(masks, _empty_table(len(masks)))
    is_first = rows == np.arange(len(masks))
    return np.flatnonzero(is_first), (np.cumsum(is_first) - 1)[rows]


def find_rows(masks: Masks, wanted: Masks) -> NDArray[np.int64]:
    """Row in ``masks`` of every wanted mask, -1 where it is missing.

    >>> find_rows(np.array([[4], [9]], dtype=np.uint64), np.array([[9], [5]], dtype=np.uint64))
    array([ 1, -1])
    """
    rows = np.empty(len(wanted), dtype=np.int64)
    _find(masks, table_of(masks), wanted, rows)
    return rows


def table_of(masks: Masks) -> NDArray[np.int64]:
    """The rows of distinct masks in the places where :func:`slot_of` starts looking, else -1."""
    table = _empty_table(len(masks))
    _insert(masks, table)
    return table


def _empty_table(entries: int) -> NDArray[np.int64]:
    return np.full(1 << (2 * max(1, entries) - 1).bit_length(), -1, dtype=np.int64)
