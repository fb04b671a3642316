"""Everything specific to numba: how kernels are compiled, and the bit operations they share."""

from __future__ import annotations

import hashlib
import io
import logging
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import numba
from numba import types
from numba.core.caching import FunctionCache, IndexDataCacheFile
from numba.extending import intrinsic

_LOG = logging.getLogger(__name__)

Function = TypeVar("Function", bound=Callable[..., Any])

#: Bits in one machine word of a bitmask.
WORD = 64


def compiled(function: Function) -> Function:
    """Compile ``function`` with numba on its first call and keep the machine code on disk.

    Kernels release the interpreter lock and use no fast-math, so that the same input gives the
    same bits. The first call after an installation compiles; later processes load the cached code
    in milliseconds. If it cannot be stored or read (a full disk, a damaged file, a read-only
    installation without a home directory), the process compiles for itself and logs that once.
    """
    kernel = numba.njit(nogil=True)(function)
    if hasattr(kernel, "enable_caching"):  # NUMBA_DISABLE_JIT leaves the function as it is
        try:
            kernel._cache = _KernelCache(function)
        except Exception as error:  # no directory to write to, or another version of numba
            _tell(numba.config.CACHE_DIR or os.path.dirname(function.__code__.co_filename), error)
    return kernel  # type: ignore[no-any-return]


class _KernelCache(FunctionCache):  # type: ignore[misc]
    """Numba's cache of one kernel, without errors whatever the state of the disk.

    The dispatcher uses it when it compiles, never when a compiled kernel is called.
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        self._cache_file = _CheckedFiles(
            cache_path=self._cache_path,
            filename_base=f"{self._impl.filename_base}.checked",  # not what numba alone has written
            source_stamp=self._impl.locator.get_source_stamp(),
        )

    def load_overload(self, signature: Any, context: Any) -> Any:
        """The stored code, or None to have it compiled."""
        try:
            return super().load_overload(signature, context)
        except OSError as error:
            self._give_up(error)
        except Exception as error:  # unpickling garbage may fail in any way
            _tell(self.cache_path, error)
            try:
                self.flush()  # the next save then replaces what is damaged
            except OSError:
                self.disable()
        return None

    def save_overload(self, signature: Any, data: Any) -> None:
        """Store the code if possible."""
        try:
            super().save_overload(signature, data)
        except Exception as error:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        _tell(self.cache_path, error)
        self.disable()


class _CheckedFiles(IndexDataCacheFile):  # type: ignore[misc]
    """Numba's files of one kernel, each followed by the SHA-256 of its content.

    Otherwise a flipped bit in machine code would go unnoticed, and crash the process or change a
    result. Numba's readers ignore what follows a pickle.
    """

    def save(self, key: Any, data: Any) -> None:
        """Write index and code. The index is written first: without its code it has to go again.

        The name may be that of a file with the code of an older source.
        """
        try:
            super().save(key, data)
        except BaseException:
            with suppress(OSError):
                os.unlink(self._index_path)
            raise

    def _load_index(self) -> Any:
        with suppress(FileNotFoundError):
            _check(self._index_path)
        return super()._load_index()

    def _load_data(self, name: str) -> Any:
        _check(self._data_path(name))
        return super()._load_data(name)

    @contextmanager
    def _open_for_write(self, path: str) -> Iterator[io.BytesIO]:
        with super()._open_for_write(path) as file:
            buffer = io.BytesIO()
            yield buffer
            file.write(buffer.getvalue() + hashlib.sha256(buffer.getvalue()).digest())


def _check(path: str) -> None:
    """Raise unless a file ends with the digest of what precedes it."""
    with open(path, "rb") as file:
        content = file.read()
    size = hashlib.sha256().digest_size
    if hashlib.sha256(content[:-size]).digest() != content[-size:]:
        raise ValueError(f"{path} is damaged")


_warned = False


def _tell(directory: str, error: Exception) -> None:
    """Log once per process that kernels are compiled without a cache."""
    global _warned
    if not _warned:
        _warned = True
        _LOG.warning(
            "numba's cache in %s cannot be used (%s: %s): compiling without it, which takes "
            "seconds in every process; free space on the disk, delete the .nbi and .nbc files "
            "there, or set NUMBA_CACHE_DIR to a directory that can be written",
            directory,
            type(error).__name__,
            error,
        )


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
