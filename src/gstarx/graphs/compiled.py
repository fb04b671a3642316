"""The one place that knows numba: how our kernels are compiled, and the bit tricks they share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import numba
from numba import types
from numba.extending import intrinsic

Function = TypeVar("Function", bound=Callable[..., Any])

#: Bits in one machine word of a bitmask.
WORD = 64


def compiled(function: Function) -> Function:
    """Compile ``function`` with numba on its first call and keep the machine code on disk.

    Kernels release the interpreter lock and use no fast-math, so that the same input gives the
    same bits. The first call after an installation pays for compilation; later processes load
    the cached code in milliseconds. Where numba finds no place to write to (a read-only
    installation without a home) every process compiles for itself.
    """
    try:
        return numba.njit(cache=True, nogil=True)(function)  # type: ignore[no-any-return]
    except RuntimeError:
        return numba.njit(nogil=True)(function)  # type: ignore[no-any-return]


@intrinsic  # type: ignore[untyped-decorator]
def trailing_zeros(typing_context: Any, word: Any) -> Any:
    """Index of the lowest set bit of a non-zero 64-bit word (one machine instruction)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        true = context.get_constant(types.boolean, True)
        return builder.cttz(arguments[0], true)

    return types.uint64(types.uint64), generate


@intrinsic  # type: ignore[untyped-decorator]
def bit_count(typing_context: Any, word: Any) -> Any:
    """Number of set bits of a 64-bit word (one machine instruction)."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        return builder.ctpop(arguments[0])

    return types.uint64(types.uint64), generate
