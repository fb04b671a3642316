"""Coalitions as bitmasks of any width: 64 nodes to a word, bit ``i`` of the mask is node ``i``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs.compilation import WORD, compiled, trailing_zeros

#: Boolean coalitions, one a row: shape (k, n).
Coalitions = NDArray[np.bool_]
#: Packed coalitions, one a row: shape (k, words).
Masks = NDArray[np.uint64]


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
