"""The store: whole rows or none, for one writer at a time, on every kind of disk."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstarx_bench.runs import RunSpec, StoreError, StoreInUse, read, resume, run
from gstarx_bench.runs import store as stores
from gstarx_bench.runs.rows import SCHEMA, TaskResult, as_table, decoded, encoded, row_key
from gstarx_bench.runs.store import Store, locked, open_store
from tests.runs.same_rows import assert_same_rows

Make = Callable[..., RunSpec]
RUN = "0" * 32


def result(graph: int, **more: Any) -> TaskResult:
    about = {"dataset": "d", "explainer": "e", "scores": [graph / 7, -1.5], **more}
    row = {"key": row_key(RUN, graph), "run": RUN, "graph": graph, **about}
    return TaskResult(graph, "error" in more, encoded(row))


def written(path: Path, graphs: range, **more: Any) -> None:
    with open_store(path) as store:
        for graph in graphs:
            store.append(RUN, result(graph, **more))


def graphs_in(path: Path) -> list[int]:
    return read(path, columns=["graph"]).column("graph").to_pylist()


def killed(store: Path, copy: Path) -> Path:
    """What is left of an open store when its process is killed now."""
    return Path(shutil.copytree(store, copy))


@given(st.lists(st.floats() | st.integers(-(2**40), 2**40).map(float), max_size=5))
def test_numbers_are_stored_exactly(numbers: list[float]) -> None:
    line = encoded({"scores": numbers, "error": "two\nlines"})
    stored = as_table([line], SCHEMA).column("scores").to_pylist()[0]
    assert np.array_equal(stored, numbers, equal_nan=True)
    assert decoded(line)["error"] == "two\nlines"


@pytest.mark.parametrize("network", [False, True])
def test_rows_can_be_read_at_once_and_without_the_writer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, network: bool
) -> None:
    monkeypatch.setattr(stores, "_is_on_network", lambda _: network)
    path = tmp_path / "store"
    with open_store(path) as store:
        for graph in range(3):
            store.append(RUN, result(graph))
            assert graphs_in(path) == list(range(graph + 1))
        assert (path / "rows.sqlite-wal").exists() == (not network)
        left = killed(path, tmp_path / "left")
    assert graphs_in(left) == [0, 1, 2]
    written(left, range(2, 4))
    for each in (path, left):
        assert read(each).column("scores").to_pylist()[2] == [2 / 7, -1.5]
        files = {file.name for file in each.iterdir()}
        assert files == {"rows.sqlite", "ledger", "trained", "lock", "lock.holder", "store.json"}


def test_the_last_row_of_a_graph_counts(tmp_path: Path) -> None:
    written(tmp_path, range(4), error="failed")
    written(tmp_path, range(2, 6))
    assert graphs_in(tmp_path) == list(range(6))
    assert read(tmp_path).column("error").to_pylist() == ["failed"] * 2 + [None] * 4
    assert stores.counts(tmp_path, RUN) == (4, 2)
    with open_store(tmp_path) as store:
        assert store.statuses(RUN, 8).tolist() == [2, 2, 1, 1, 1, 1, 0, 0]


def test_only_the_requested_columns_are_read(tmp_path: Path) -> None:
    with open_store(tmp_path):
        assert read(tmp_path).schema.equals(SCHEMA)
    written(tmp_path, range(2))
    assert read(tmp_path, columns=["scores"]).column_names == ["scores"]
    assert read(tmp_path).schema.equals(SCHEMA)
    assert read(tmp_path, run="1" * 32).num_rows == 0
    with pytest.raises(ValueError, match="no column 'score'; did you mean 'scores'"):
        read(tmp_path, columns=["score"])


@pytest.mark.parametrize("left", ["closed", "killed"])
def test_a_store_that_cannot_be_written_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    path = tmp_path / "store"
    with open_store(path) as store:
        for graph in range(3):
            store.append(RUN, result(graph))
        copy = killed(path, tmp_path / "copy")
    path = copy if left == "killed" else path
    connect = sqlite3.connect

    def refusing(database: Any, **options: Any) -> sqlite3.Connection:
        # as SQLite does where it cannot make the memory that processes share
        if "mode=ro" in str(database):
            return connect(tmp_path / "none" / "none")
        return connect(database, **options)

    before = {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()}
    monkeypatch.setattr(sqlite3, "connect", refusing)
    assert graphs_in(path) == [0, 1, 2]
    monkeypatch.undo()
    assert {file.name: file.read_bytes() for file in path.iterdir() if file.is_file()} == before


def test_the_error_of_a_second_process_names_the_first(tmp_path: Path, spec: Make) -> None:
    with open_store(tmp_path), pytest.raises(StoreInUse, match=f"by process {os.getpid()} on .*"):
        run(spec(count=1), tmp_path, workers=1, progress=False)
    with locked(tmp_path / "lock"):
        (tmp_path / "lock.holder").write_text("half")
        with pytest.raises(StoreInUse, match="by another process"), locked(tmp_path / "lock"):
            pass
    run(spec(count=1), tmp_path, workers=1, progress=False)


@pytest.mark.parametrize("version", [1, 99])
def test_a_store_of_another_version_is_refused(tmp_path: Path, spec: Make, version: int) -> None:
    written(tmp_path, range(1))
    (tmp_path / "store.json").write_text(json.dumps({"format": version}))
    for call in (
        lambda: read(tmp_path),
        lambda: run(spec(), tmp_path, progress=False),
        lambda: resume(tmp_path, progress=False),
    ):
        with pytest.raises(StoreError, match=rf"another version, in format {version}: .* format 2"):
            call()


@pytest.mark.parametrize("content", ["", "{}", "[1, 2]", "[" * 100_000])
def test_a_mark_that_cannot_be_read(tmp_path: Path, content: str) -> None:
    written(tmp_path, range(1))
    (tmp_path / "store.json").write_text(content)
    with pytest.raises(StoreError, match="cannot be read"):
        read(tmp_path)


def test_directories_that_are_not_stores(tmp_path: Path, spec: Make) -> None:
    with pytest.raises(StoreError, match="no store at"):
        read(tmp_path / "none")
    with pytest.raises(StoreError, match="no store at"):
        resume(tmp_path / "none")
    assert not (tmp_path / "none").exists()
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(StoreError, match=r"is not a store.*thesis\.txt"):
        run(spec(), tmp_path, progress=False)
    with pytest.raises(StoreError, match="a store is a directory"):
        run(spec(), tmp_path / "thesis.txt", progress=False)
    with pytest.raises(StoreError, match="cannot write to the store"):
        run(spec(), tmp_path / "thesis.txt" / "store", progress=False)


@pytest.mark.parametrize(
    ("pragma", "reason"), [("max_page_count", "the disk is full"), ("query_only", "read-only")]
)
def test_a_disk_that_cannot_be_written(
    tmp_path: Path, spec: Make, monkeypatch: pytest.MonkeyPatch, pragma: str, reason: str
) -> None:
    calls, append = 0, Store.append

    def failing(store: Store, run: str, result: TaskResult) -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            assert store._connection is not None
            store._connection.execute(f"PRAGMA {pragma}=1")
            result = result._replace(row=result.row + b" " * (1 << 16))
        append(store, run, result)

    with monkeypatch.context() as patch:
        patch.setattr(Store, "append", failing)
        with pytest.raises(StoreError, match=f"{reason}.*resume"):
            run(spec(count=6), tmp_path / "full", workers=1, progress=False)
    assert graphs_in(tmp_path / "full") == [0, 1, 2]
    (report,) = resume(tmp_path / "full", workers=1, progress=False)
    assert (report.found, report.done) == (3, 3)
    run(spec(count=6), tmp_path / "complete", workers=1, progress=False)
    assert_same_rows(tmp_path / "full", tmp_path / "complete")


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path) -> None:
    peaks = []
    for count in (2_000, 6_000):
        with open_store(tmp_path / str(count)) as store:
            tracemalloc.start()
            for graph in range(count):
                store.append(RUN, result(graph))
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[1] < 1.3 * peaks[0]
