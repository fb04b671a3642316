"""Finding coalitions by their bitmask, against a dictionary."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from numpy.typing import NDArray

from gstarx.graphs.index import distinct_rows, find_rows, same_mask, slot_of

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


@pytest.mark.parametrize("width", [1, 2, 3])
@pytest.mark.parametrize("lowest", [0, 10, 25, 30, 40, 50])
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
