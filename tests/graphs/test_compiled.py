"""Compilation, and the bit tricks that kernels share."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gstarx.graphs.compiled import bit_count, compiled, trailing_zeros


@compiled
def lowest(word):  # type: ignore[no-untyped-def]
    return trailing_zeros(word)


@compiled
def how_many(word):  # type: ignore[no-untyped-def]
    return bit_count(word)


@given(st.integers(1, 2**64 - 1) | st.integers(0, 63).map(lambda bit: 1 << bit))
def test_lowest_bit(word: int) -> None:
    assert lowest(np.uint64(word)) == (word & -word).bit_length() - 1


@given(st.integers(0, 2**64 - 1))
def test_number_of_bits(word: int) -> None:
    assert how_many(np.uint64(word)) == word.bit_count()


def test_a_function_that_cannot_be_cached_is_compiled_all_the_same() -> None:
    names: dict[str, object] = {}
    # a function without a file is one for which numba finds no place to keep the machine code
    exec("def double(x):\n    return 2 * x", names)
    double = compiled(names["double"])  # type: ignore[type-var]
    assert double(21) == 42
    assert double.nopython_signatures
