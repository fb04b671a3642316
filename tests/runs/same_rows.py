"""Compares the rows of two stores."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa

from gstarx_bench.runs import VOLATILE, read


def lasting(store: Path) -> pa.Table:
    """The rows of a store without times, host and versions."""
    return read(store).drop_columns(list(VOLATILE))


def assert_same_rows(one: Path, other: Path) -> None:
    first, second = lasting(one), lasting(other)
    assert first.column("graph").to_pylist() == second.column("graph").to_pylist()
    assert first.equals(second)
