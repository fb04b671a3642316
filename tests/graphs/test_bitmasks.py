"""Packing coalitions into words and back, and finding them by their bitmask."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from gstarx.graphs.bitmasks import (
    distinct_rows,
    find_rows,
    first_nodes,
    pack,
    renumber,
    same_mask,
    slot_of,
    unpack,
    words_for,
)
from tests.oracles import as_integer, as_sets
from tests.pairs import for_each
from tests.strategies import coalition_matrices

widths = st.integers(0, 200) | st.sampled_from([0, 1, 63, 64, 65, 127, 128, 129, 192])
matrices = widths.flatmap(coalition_matrices)


def as_integers(masks: NDArray[np.uint64]) -> list[int]:
    return [sum(int(word) << (64 * w) for w, word in enumerate(mask)) for mask in masks]


@for_each(
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


words = st.integers(0, 2**64 - 1) | st.integers(0, 5)


def masks(width: int) -> st.SearchStrategy[NDArray[np.uint64]]:
    return st.integers(0, 30).flatmap(lambda k: arrays(np.uint64, (k, width), elements=words))


@given(st.integers(1, 3).flatmap(masks))
def test_distinct_rows(some: NDArray[np.uint64]) -> None:
    first, where = distinct_rows(some)
    seen: dict[bytes, int] = {}
    places = [seen.setdefault(mask.tobytes(), len(seen)) for mask in some]
    assert where.tolist() == places
    assert first.tolist() == [places.index(place) for place in range(len(seen))]


@given(st.integers(1, 3).flatmap(lambda width: st.tuples(masks(width), masks(width))))
def test_rows_are_found_and_missing_ones_said_to_be(
    pair: tuple[NDArray[np.uint64], NDArray[np.uint64]],
) -> None:
    some, others = pair
    known: dict[bytes, int] = {}
    for row, mask in enumerate(some):
        known.setdefault(mask.tobytes(), row)
    wanted = np.concatenate([others, some])
    expected = [known.get(mask.tobytes(), -1) for mask in wanted]
    assert find_rows(some, wanted).tolist() == expected


def test_a_full_level_of_masks_is_distinguished() -> None:
    some = np.random.default_rng(0).permutation(2**14).astype(np.uint64)[:, None]
    wanted = np.arange(2**15, dtype=np.uint64)[:, None]
    rows = find_rows(some, wanted)
    assert (rows[2**14 :] == -1).all()
    np.testing.assert_array_equal(some[rows[: 2**14], 0], np.arange(2**14))
    assert len(distinct_rows(np.concatenate([some, some]))[0]) == 2**14


def test_same_mask_looks_at_every_word() -> None:
    mask = np.array([3, 0, 5], dtype=np.uint64)
    assert same_mask(mask, mask.copy())
    for word in range(3):
        other = mask.copy()
        other[word] ^= np.uint64(1 << 63)
        assert not same_mask(mask, other)


@for_each("width", [1, 2, 3])
@for_each("lowest", [0, 10, 25, 30, 40, 50])
def test_masks_scatter_wherever_they_differ(width: int, lowest: int) -> None:
    # a table in which masks that differ in high bits only share a slot takes quadratic time
    bits = np.arange(2**14, dtype=np.uint64) << np.uint64(lowest)
    slots = 2**15
    for word in range(width):
        some = np.zeros((len(bits), width), dtype=np.uint64)
        some[:, word] = bits
        places = {slot_of(mask, slots) for mask in some}
        assert min(places) >= 0
        assert max(places) < slots
        assert len(places) > len(bits) / 2
