"""Coalitions as bitmasks of any width: 64 nodes to a word, bit ``i`` of the mask is node ``i``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs.compiled import WORD

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
    room = np.zeros((k, words_for(n) * 8), dtype=np.uint8)
    packed = np.packbits(coalitions, axis=1, bitorder="little")
    room[:, : packed.shape[1]] = packed
    return room.view("<u8").astype(np.uint64, copy=False)


def unpack(masks: Masks, num_nodes: int) -> Coalitions:
    """Unpack bitmasks (k, words) into boolean coalitions (k, ``num_nodes``).

    >>> unpack(np.array([[5]], dtype=np.uint64), 3)
    array([[ True, False,  True]])
    """
    octets = np.ascontiguousarray(masks).astype("<u8", copy=False).view(np.uint8)
    bits = np.unpackbits(octets, axis=1, count=num_nodes, bitorder="little")
    return bits.view(np.bool_)
