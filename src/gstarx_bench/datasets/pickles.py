"""Arrays from untrusted pickles: nothing in a pickle is ever called."""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from gstarx._internal.files import most_bytes

Array = NDArray[Any]


class UnsafePickleError(ValueError):
    """A pickle asks for more than numbers in arrays."""


def read_arrays(path: Path) -> tuple[Array, ...]:
    """The arrays of numbers in a pickled array, or in a tuple, list or dictionary of arrays.

    A pickle is a program, and reading it with ``pickle.load`` runs it. Here the few instructions
    that numpy writes for an array of numbers are executed by stand-ins that copy bytes, and every
    other instruction is refused. numpy's own functions are not called either, since they trust
    what a pickle says about memory.

    Parameters
    ----------
    path
        A pickle of any protocol, written with numpy 1 or 2, by Python 2 or 3.

    Returns
    -------
    tuple of arrays
        In the order of the pickle; one for a lone array.

    Raises
    ------
    UnsafePickleError
        When the pickle refers to anything but arrays of numbers, or repeats the same bytes so
        often that they exceed :func:`gstarx._internal.files.most_bytes`.
    ValueError
        When the file is damaged or not a pickle.
    """
    try:
        with open(path, "rb") as file:
            content = _ArrayUnpickler(file, most_bytes(path)).load()
    except OSError:
        raise
    except UnsafePickleError as error:
        raise UnsafePickleError(f"{path} is refused: {error}") from error
    except Exception as error:  # a garbled pickle may fail in any way
        raise ValueError(f"{path} is not a readable pickle: {error}") from error
    items = [content] if isinstance(content, _Array) else content
    items = list(items.values()) if isinstance(items, dict) else items
    if not isinstance(items, tuple | list) or not all(isinstance(item, _Array) for item in items):
        raise UnsafePickleError(
            f"{path} is refused: it must hold an array, or a tuple, list or dictionary of arrays"
        )
    if any(item.values is None for item in items):
        raise ValueError(f"{path} is not a readable pickle: an array has no content")
    return tuple(item.values for item in items)


class _DType:
    """Stands in for ``numpy.dtype``: plain numbers only."""

    def __init__(self, code: Any, *_: Any) -> None:
        dtype = np.dtype(code) if isinstance(code, str) else None
        if dtype is None or dtype.kind not in "biufc":
            raise UnsafePickleError(f"arrays must hold numbers (got type {code!r})")
        self.dtype = dtype

    def __setstate__(self, state: Any) -> None:
        order, *extra = state[1:5]
        if order not in ("<", ">", "|", "=") or extra != [None] * 3:
            raise UnsafePickleError("arrays must hold plain numbers")
        self.dtype = self.dtype.newbyteorder(order)


class _Array:
    """Stands in for ``numpy.ndarray``."""

    values: Array | None = None

    def __init__(self, count: Callable[[int], None]) -> None:
        self.count = count

    def __setstate__(self, state: Any) -> None:
        _, shape, dtype, fortran, content = state
        content = content.encode("latin1") if isinstance(content, str) else content
        self.fill(content, dtype, shape, "F" if fortran else "C")

    def fill(self, content: Any, dtype: Any, shape: Any, order: Any) -> _Array:
        if not isinstance(dtype, _DType) or not isinstance(content, bytes | bytearray):
            raise UnsafePickleError("arrays must be written as bytes of numbers")
        if len(content) != dtype.dtype.itemsize * math.prod(shape):
            raise ValueError(f"{len(content)} bytes are not an array of shape {shape}")
        self.count(len(content))
        values = np.frombuffer(bytes(content), dtype.dtype).reshape(shape, order=order)
        self.values = values.astype(values.dtype.newbyteorder("="))
        return self


class _ArrayUnpickler(pickle.Unpickler):
    def __init__(self, file: IO[bytes], most: int) -> None:
        super().__init__(file, encoding="latin1")
        self.most, self.made = most, 0

    def count(self, size: int) -> None:
        """Count the bytes of the arrays."""
        self.made += size
        if self.made > self.most:
            raise UnsafePickleError(f"its arrays grow to more than {self.most:,} bytes")

    def encode(self, text: Any, encoding: Any) -> bytes:
        """Decode bytes as old protocols write them."""
        if not isinstance(text, str) or encoding != "latin1":
            raise UnsafePickleError("bytes must be written as latin1 text")
        self.count(len(text))
        return text.encode("latin1")

    def find_class(self, module: str, name: str) -> Any:
        """The stand-in for a name in the pickle."""
        # new functions for every pickle: attributes it sets on them are discarded with it
        plain = module.replace("numpy._core", "numpy.core").replace("__builtin__", "builtins")
        admitted: dict[tuple[str, str], Callable[..., Any] | str] = {
            ("numpy", "ndarray"): "the type of arrays",
            ("numpy", "dtype"): lambda *args: _DType(*args),
            ("_codecs", "encode"): lambda *args: self.encode(*args),
            ("builtins", "bytes"): lambda: b"",
            ("numpy.core.multiarray", "_reconstruct"): lambda *_: _Array(self.count),
            ("numpy.core.numeric", "_frombuffer"): lambda *args: _Array(self.count).fill(*args),
        }
        if (plain, name) not in admitted:
            raise UnsafePickleError(f"it refers to {module}.{name}, and only arrays are read")
        return admitted[plain, name]
