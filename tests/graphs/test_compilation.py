"""Compilation, and the bit tricks that kernels share."""

from __future__ import annotations

import errno
import importlib.util
import logging
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.caching import IndexDataCacheFile

from gstarx.graphs import compilation as kernels
from gstarx.graphs.compilation import bit_count, compiled, trailing_zeros


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


SOURCE = """
from gstarx.graphs.compilation import compiled


@compiled
def inner(x):
    return {factor} * x


@compiled
def outer(x):
    return inner(x) + 2
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache; what numba says of it is not said yet."""
    path = tmp_path / "cache"
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(path))
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(path))
    monkeypatch.setattr(kernels, "_warned", False)
    return path


def module(cache: Path, factor: int = 20) -> Any:
    """Two kernels that have not been called in this process, in a file of their own."""
    path = cache.parent / "two_kernels.py"
    path.write_text(SOURCE.format(factor=factor))
    spec = importlib.util.spec_from_file_location("two_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def files(cache: Path, suffix: str) -> list[Path]:
    return sorted(cache.rglob(f"*{suffix}"))


def hits(made: Any) -> int:
    return sum(made.outer.stats.cache_hits.values())


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]


def test_the_code_of_a_kernel_is_kept(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert module(cache).outer(2) == 42
    again = module(cache)
    assert again.outer(2) == 42
    assert hits(again) == 1
    assert len(files(cache, ".nbc")) == 2
    assert warnings_of(caplog) == []


def zeros(content: bytes) -> bytes:
    return bytes(len(content))


def one_bit(content: bytes) -> bytes:
    middle = len(content) // 2
    return content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :]


@pytest.mark.parametrize("suffix", [".nbi", ".nbc"])
@pytest.mark.parametrize(
    "damage", [lambda content: b"", lambda content: content[: len(content) // 2], zeros, one_bit]
)
def test_a_damaged_cache_is_reported_and_replaced(
    cache: Path,
    caplog: pytest.LogCaptureFixture,
    suffix: str,
    damage: Callable[[bytes], bytes],
) -> None:
    assert module(cache).outer(2) == 42
    for path in files(cache, suffix):
        path.write_bytes(damage(path.read_bytes()))
    damaged = module(cache)
    assert damaged.outer(2) == 42
    assert hits(damaged) == 0
    (said,) = warnings_of(caplog)  # once, for two kernels
    assert str(cache) in said
    assert "NUMBA_CACHE_DIR" in said
    assert "is damaged" in said
    again = module(cache)
    assert again.outer(2) == 42
    assert hits(again) == 1


def test_what_was_stored_without_a_checksum_is_not_read(cache: Path) -> None:
    assert module(cache).outer(2) == 42
    names = {path.name for path in files(cache, ".nbi")}
    assert all(".checked." in name for name in names)


def no_room(*_: Any) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


@pytest.mark.parametrize("method", ["_save_index", "_save_data"])
def test_a_full_disk_costs_the_cache_only(
    cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    monkeypatch.setattr(IndexDataCacheFile, method, no_room)
    made = module(cache)
    assert [made.outer(2), made.inner(1), made.outer(2.5)] == [42, 20, 52]
    (said,) = warnings_of(caplog)
    assert str(cache) in said
    assert "No space left" in said


def test_a_full_disk_does_not_bring_back_an_older_source(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert module(cache).outer(2) == 42
    with monkeypatch.context() as patch:
        patch.setattr(IndexDataCacheFile, "_save_data", no_room)
        assert module(cache, factor=30).outer(2) == 62
    assert module(cache, factor=30).outer(2) == 62


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_directory_that_is_none(
    cache: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    if when == "before":
        cache.write_text("a file")
    made = module(cache)
    if when == "after":
        shutil.rmtree(cache)
        cache.write_text("a file")
    assert made.outer(2) == 42
    (said,) = warnings_of(caplog)
    assert str(cache) in said


def test_an_index_that_cannot_be_read(cache: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert module(cache).outer(2) == 42
    for path in files(cache, ".nbi"):
        path.unlink()
        path.mkdir()
    assert module(cache).outer(2) == 42
    assert len(warnings_of(caplog)) == 1


def test_without_compilation_a_kernel_is_the_function(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    made = module(cache)
    assert made.outer(2) == 42
    assert not hasattr(made.outer, "py_func")
