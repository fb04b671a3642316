"""The store: whole or not at all, in order after every accident, and for one process at a time."""

from __future__ import annotations

import errno
import json
import os
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstarx_bench.runs import RunSpec, StoreError, StoreInUse, parquet_parts, read, resume, run
from gstarx_bench.runs import store as stores
from gstarx_bench.runs.parquet_parts import Journal, read_journal
from gstarx_bench.runs.rows import SCHEMA, as_table, decoded, encoded, row_key
from gstarx_bench.runs.store import Writer, locked, open_store
from tests.runs.same_rows import assert_same_rows

Make = Callable[..., RunSpec]
RUN = "0" * 32


def row(graph: int, **more: Any) -> dict[str, Any]:
    about = {"dataset": "d", "explainer": "e", "scores": [graph / 7, -1.5]}
    return {"key": row_key(RUN, graph), "run": RUN, "graph": graph, **about, **more}


def written(path: Path, graphs: range, **more: Any) -> None:
    with open_store(path) as store:
        writer = Writer(store.directory(RUN))
        for graph in graphs:
            writer.append(encoded(row(graph, **more)))
        writer.finish()


def graphs_in(path: Path) -> list[int]:
    return read(path, columns=["graph"]).column("graph").to_pylist()


def files(path: Path) -> list[str]:
    return sorted(file.name for file in (path / "rows" / f"run={RUN}").iterdir())


@given(st.lists(st.floats() | st.integers(-(2**40), 2**40).map(float), max_size=5))
def test_numbers_are_stored_exactly(numbers: list[float]) -> None:
    stored = as_table([encoded(row(0, scores=numbers))]).column("scores").to_pylist()[0]
    assert np.array(stored).tobytes() == np.array(numbers).tobytes() or any(map(np.isnan, numbers))
    assert np.array_equal(stored, numbers, equal_nan=True)


@given(st.lists(st.binary().filter(lambda b: b"\n" not in b), max_size=6), st.data())
def test_a_truncated_journal_keeps_its_complete_lines(
    tmp_path_factory: pytest.TempPathFactory, lines: list[bytes], data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("journal") / "journal"
    with Journal(path) as journal:
        for line in lines:
            journal.append(line)
    content = path.read_bytes()
    cut = data.draw(st.integers(0, len(content)))
    path.write_bytes(content[:cut])
    valid, broken = read_journal(path)
    assert valid == lines[: content[:cut].count(b"\n")]
    assert sum(map(len, broken)) == len(content[:cut].rpartition(b"\n")[2])


def test_a_damaged_line_does_not_affect_its_neighbors(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal") as journal:
        for line in (b"one", b"two", b"three"):
            journal.append(line)
    path = tmp_path / "journal"
    path.write_bytes(path.read_bytes().replace(b"two", b"tvo"))
    assert read_journal(path)[0] == [b"one", b"three"]


def test_rows_can_be_read_at_once_and_without_the_writer(tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        writer = Writer(store.directory(RUN))
        for graph in range(3):
            writer.append(encoded(row(graph)))
            assert graphs_in(tmp_path) == list(range(graph + 1))
        writer.abandon()
    assert files(tmp_path) == ["journal-00000000.jsonl"]
    with open_store(tmp_path):
        assert files(tmp_path) == ["rows-00000000-00000000.parquet"]
    assert read(tmp_path).column("scores").to_pylist()[2] == [2 / 7, -1.5]


def test_small_files_are_merged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stores, "ROWS_PER_PART", 2)
    monkeypatch.setattr(stores, "PARTS_PER_MERGE", 3)
    monkeypatch.setattr(parquet_parts, "FULL", 12)
    with open_store(tmp_path) as store:
        writer = Writer(store.directory(RUN))
        most = 0
        for graph in range(50):
            writer.append(encoded(row(graph)))
            most = max(most, len(files(tmp_path)))
        assert most < 12  # and not 25
        writer.finish()
    names = files(tmp_path)
    assert len(names) <= 6
    assert all(name.endswith(".parquet") for name in names)
    sizes = [
        pq.read_metadata(file).num_rows for file in (tmp_path / "rows" / f"run={RUN}").iterdir()
    ]
    assert max(sizes) < 24  # full parts are not merged
    assert graphs_in(tmp_path) == list(range(50))


def test_the_last_row_of_a_graph_counts(tmp_path: Path) -> None:
    written(tmp_path, range(4), error="failed")
    written(tmp_path, range(2, 6))
    assert graphs_in(tmp_path) == list(range(6))
    assert read(tmp_path).column("error").to_pylist() == ["failed"] * 2 + [None] * 4
    with open_store(tmp_path) as store:
        assert store.statuses(RUN, 8).tolist() == [2, 2, 1, 1, 1, 1, 0, 0]
    # merging has dropped the outdated rows
    (file,) = (tmp_path / "rows" / f"run={RUN}").iterdir()
    assert pq.read_metadata(file).num_rows == 6


def test_a_process_killed_between_any_two_steps(tmp_path: Path) -> None:
    """All files that may be left behind, at once."""
    written(tmp_path, range(3))
    directory = tmp_path / "rows" / f"run={RUN}"
    (first,) = directory.iterdir()
    # a journal that was not deleted yet
    with Journal(directory / "journal-00000000.jsonl") as journal:
        journal.append(encoded(row(0)))
    # a merge whose parts are still there
    parquet_parts.write_rows(
        directory / "rows-00000001-00000003.parquet",
        as_table([encoded(row(g)) for g in (3, 4, 5)]).to_batches(),
    )
    parquet_parts.write_rows(
        directory / "rows-00000002-00000002.parquet", as_table([encoded(row(4))]).to_batches()
    )
    # an unfinished file, a damaged one, and a truncated journal
    (directory / ".rows-00000004-00000004.parquet.abc.part").write_bytes(b"PAR1...")
    (directory / "rows-00000005-00000005.parquet").write_bytes(first.read_bytes()[:-20])
    with Journal(directory / "journal-00000006.jsonl") as journal:
        journal.append(encoded(row(6)))
        journal.append(encoded(row(7)))
    path = directory / "journal-00000006.jsonl"
    path.write_bytes(path.read_bytes()[:-5])
    with open_store(tmp_path) as store:
        assert store.statuses(RUN, 9).tolist() == [1] * 7 + [0] * 2
    assert graphs_in(tmp_path) == list(range(7))
    assert files(tmp_path) == [
        "rows-00000000-00000000.parquet",
        "rows-00000001-00000003.parquet",
        "rows-00000006-00000006.parquet",
    ]
    assert len(list((tmp_path / "aside").iterdir())) == 3


def test_a_damaged_file_is_detected(tmp_path: Path) -> None:
    written(tmp_path, range(200))
    (file,) = (tmp_path / "rows" / f"run={RUN}").iterdir()
    content = bytearray(file.read_bytes())
    # the first page of the first column
    content[60] ^= 0xFF
    file.write_bytes(content)
    with pytest.raises(StoreError, match=rf"{file.name}.*Move it out of the store"):
        read(tmp_path)


def test_only_the_requested_columns_are_read(tmp_path: Path) -> None:
    written(tmp_path, range(2))
    assert read(tmp_path, columns=["scores"]).column_names == ["scores"]
    assert read(tmp_path).schema.equals(SCHEMA)
    assert read(tmp_path, run="1" * 32).num_rows == 0
    with pytest.raises(ValueError, match="no column 'score'; did you mean 'scores'"):
        read(tmp_path, columns=["score"])


def test_an_empty_store_has_all_columns(tmp_path: Path) -> None:
    with open_store(tmp_path):
        pass
    assert read(tmp_path).schema.equals(SCHEMA)


def test_the_error_of_a_second_process_names_the_first(tmp_path: Path, spec: Make) -> None:
    with open_store(tmp_path), pytest.raises(StoreInUse, match=f"by process {os.getpid()} on .*"):
        run(spec(count=1), tmp_path, workers=1, progress=False)
    run(spec(count=1), tmp_path, workers=1, progress=False)


def test_a_lock_of_an_unknown_process(tmp_path: Path) -> None:
    with locked(tmp_path / "lock"):
        (tmp_path / "lock.holder").write_text("half")
        with pytest.raises(StoreInUse, match="by another process"), locked(tmp_path / "lock"):
            pass


def test_a_store_of_another_version_is_refused(tmp_path: Path, spec: Make) -> None:
    written(tmp_path, range(1))
    (tmp_path / "store.json").write_text(json.dumps({"format": 99}))
    for call in (
        lambda: read(tmp_path),
        lambda: run(spec(), tmp_path, progress=False),
        lambda: resume(tmp_path, progress=False),
    ):
        with pytest.raises(StoreError, match=r"another version, in format 99: .* format 1"):
            call()
    (tmp_path / "store.json").write_text("{}")
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


@pytest.mark.parametrize(
    ("code", "reason"), [(errno.ENOSPC, "the disk is full"), (errno.EROFS, "read-only")]
)
def test_a_disk_that_cannot_be_written(
    tmp_path: Path, spec: Make, monkeypatch: pytest.MonkeyPatch, code: int, reason: str
) -> None:
    calls = 0
    append = Journal.append

    def failing(journal: Journal, content: bytes) -> None:
        nonlocal calls
        calls += 1
        if calls > 3:
            os.write(journal._descriptor, b"1234 half a li")
            raise OSError(code, os.strerror(code))
        append(journal, content)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "append", failing)
        with pytest.raises(StoreError, match=f"{reason}.*resume"):
            run(spec(count=6), tmp_path / "full", workers=1, progress=False)
    assert graphs_in(tmp_path / "full") == [0, 1, 2]
    (report,) = resume(tmp_path / "full", workers=1, progress=False)
    assert (report.found, report.done) == (3, 3)
    run(spec(count=6), tmp_path / "complete", workers=1, progress=False)
    assert_same_rows(tmp_path / "full", tmp_path / "complete")


def test_a_directory_that_cannot_be_made(tmp_path: Path, spec: Make) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="cannot write to the store"):
        run(spec(), tmp_path / "file" / "store", progress=False)


def test_memory_does_not_grow_with_the_number_of_rows(tmp_path: Path) -> None:
    """Six parts take as much memory to write as two."""
    peaks = []
    for count in (2, 6):
        with open_store(tmp_path / str(count)) as store:
            writer = Writer(store.directory(RUN))
            tracemalloc.start()
            for graph in range(count * stores.ROWS_PER_PART):
                writer.append(encoded(row(graph)))
            writer.finish()
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
            statuses = store.statuses(RUN, count * stores.ROWS_PER_PART)
            assert statuses.nbytes == count * stores.ROWS_PER_PART
    assert peaks[1] < 1.3 * peaks[0]


def test_a_row_is_one_line() -> None:
    line = encoded(row(0, error="two\nlines", scores=[float("nan"), float("inf")]))
    assert b"\n" not in line
    assert decoded(line)["error"] == "two\nlines"
