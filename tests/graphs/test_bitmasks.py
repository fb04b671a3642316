"""Packing coalitions into words and back."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gstarx.graphs.bitmasks import first_nodes, pack, renumber, unpack, words_for
from tests.oracles import as_integer, as_sets
from tests.strategies import coalition_matrices

widths = st.integers(0, 200) | st.sampled_from([0, 1, 63, 64, 65, 127, 128, 129, 192])
matrices = widths.flatmap(coalition_matrices)


def as_integers(masks: NDArray[np.uint64]) -> list[int]:
    return [sum(int(word) << (64 * w) for w, word in enumerate(mask)) for mask in masks]


@pytest.mark.parametrize(
    ("nodes", "words"), [(0, 1), (1, 1), (63, 1), (64, 1), (65, 2), (128, 2), (129, 3), (200, 4)]
)
def test_words(nodes: int, words: int) -> None:
    assert words_for(nodes) == words


@given(matrices)
def test_bit_i_is_node_i(coalitions: NDArray[np.bool_]) -> None:
    masks = pack(coalitions)
    assert masks.dtype == np.uint64
    assert masks.shape == (len(coalitions), words_for(coalitions.shape[1]))
    assert as_integers(masks) == [as_integer(nodes) for nodes in as_sets(coalitions)]


@given(matrices)
def test_round_trip(coalitions: NDArray[np.bool_]) -> None:
    back = unpack(pack(coalitions), coalitions.shape[1])
    assert back.dtype == np.bool_
    np.testing.assert_array_equal(back, coalitions, strict=True)


@given(matrices)
def test_memory_layout_does_not_matter(coalitions: NDArray[np.bool_]) -> None:
    n = coalitions.shape[1]
    masks = pack(coalitions)
    np.testing.assert_array_equal(pack(np.asfortranarray(coalitions)), masks)
    np.testing.assert_array_equal(pack(np.repeat(coalitions, 2, axis=0)[::2]), masks)
    np.testing.assert_array_equal(unpack(np.asfortranarray(masks), n), coalitions)
    np.testing.assert_array_equal(unpack(np.repeat(masks, 2, axis=0)[::2], n), coalitions)


def test_unpacking_leaves_out_bits_beyond_the_last_node() -> None:
    every_bit = np.full((1, 2), 2**64 - 1, dtype=np.uint64)
    assert unpack(every_bit, 67).tolist() == [[True] * 67]


@given(st.integers(1, 150), st.integers(0, 2**31))
def test_renumbering_moves_every_node(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    there = int(rng.integers(n, 200))
    nodes = rng.permutation(there)[:n].astype(np.int64)
    coalitions = rng.random((5, n)) < 0.4
    moved = unpack(renumber(pack(coalitions), nodes, there), there)
    expected = np.zeros((5, there), dtype=np.bool_)
    expected[:, nodes] = coalitions
    assert np.array_equal(moved, expected)


@given(st.integers(1, 150), st.integers(0, 2**31))
def test_the_first_node_of_every_mask(n: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    coalitions = rng.random((5, n)) < 0.1
    coalitions[np.arange(5), rng.integers(n, size=5)] = True
    assert first_nodes(pack(coalitions)).tolist() == coalitions.argmax(axis=1).tolist()
