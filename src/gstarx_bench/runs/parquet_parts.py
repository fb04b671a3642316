"""The files of one run: Parquet parts and journals, numbered in the order of their creation.

``rows-<first>-<last>.parquet`` has the rows of the journals with these numbers. A part within the
range of another has been merged into it, and only remains to be deleted.
"""

from __future__ import annotations

import logging
import os
import re
import time
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self
from uuid import uuid4

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gstarx._internal.files import atomic_path, unfinished_files
from gstarx_bench.runs.rows import ADDED, SCHEMA, as_table

_LOG = logging.getLogger(__name__)
#: The columns of this store, and of those that were written before some were added.
_SCHEMAS = [
    pa.schema([field for field in SCHEMA if field.name not in ADDED[kept:]])
    for kept in range(len(ADDED) + 1)
]
_NAME = re.compile(r"rows-(\d{8})-(\d{8})\.parquet|journal-(\d{8})\.jsonl")
#: A part with this many rows is not merged any further.
FULL = 20_000
#: Rows of a row group.
_GROUP = 5_000
#: The status of a graph.
MISSING, DONE, FAILED = 0, 1, 2
#: Seconds between two synchronizations of a journal with the disk.
SYNC_SECONDS = 1.0


class Journal:
    """A new journal: an append-only file of rows with a checksum on every line.

    Each line is passed to the system at once, so that it survives the process, and written to the
    disk every second, so that it survives the machine.
    """

    def __init__(self, path: Path, *, sync_seconds: float = SYNC_SECONDS) -> None:
        self.path = path
        self.lines = 0
        self._sync_seconds = sync_seconds
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        self._synced = time.monotonic()

    def append(self, content: bytes) -> None:
        """Append a line, which must not contain a line break."""
        line = b"%08x %s\n" % (zlib.crc32(content), content)
        written = os.write(self._descriptor, line)
        while written < len(line):  # a full disk may accept a part of the line before it fails
            written += os.write(self._descriptor, line[written:])
        self.lines += 1
        if time.monotonic() - self._synced >= self._sync_seconds:
            self.sync()

    def sync(self) -> None:
        """Write everything to the disk."""
        os.fsync(self._descriptor)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Write everything to the disk and close the file; further calls do nothing."""
        if self._descriptor >= 0:
            try:
                os.fsync(self._descriptor)
            finally:
                os.close(self._descriptor)
                self._descriptor = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def read_journal(path: Path) -> tuple[list[bytes], list[bytes]]:
    """The lines with a valid checksum, and the others.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     path = Path(folder, "journal")
    ...     with Journal(path) as journal:
    ...         journal.append(b"first")
    ...         journal.append(b"second")
    ...     _ = path.write_bytes(path.read_bytes()[:-3])
    ...     read_journal(path)
    ([b'first'], [b'... seco'])
    """
    valid: list[bytes] = []
    broken: list[bytes] = []
    with path.open("rb") as file:
        for line in file:
            check, _, content = line[:-1].partition(b" ")
            if line.endswith(b"\n") and check == b"%08x" % zlib.crc32(content):
                valid.append(content)
            else:
                broken.append(line)
    return valid, broken


@dataclass(frozen=True)
class Part:
    """A file of rows, and the range of journals that it covers."""

    first: int
    last: int
    path: Path

    @property
    def is_journal(self) -> bool:
        """Whether it is a journal rather than Parquet."""
        return self.path.suffix == ".jsonl"

    def is_merged_into(self, other: Part) -> bool:
        """Whether another Parquet part has all rows of this one."""
        covers = other.first <= self.first and self.last <= other.last
        same = (other.first, other.last) == (self.first, self.last)
        return covers and not other.is_journal and (self.is_journal or not same)


def parts(directory: Path) -> tuple[list[Part], list[Part]]:
    """The current parts, in order, and those that were merged into one of them."""
    everything = []
    for path in directory.iterdir() if directory.is_dir() else ():
        if match := _NAME.fullmatch(path.name):
            first, last, journal = (None if g is None else int(g) for g in match.groups())
            if journal is not None:
                everything.append(Part(journal, journal, path))
            elif first is not None and last is not None:
                everything.append(Part(first, last, path))
    everything.sort(key=lambda part: (part.first, -part.last, part.is_journal))
    current: list[Part] = []
    merged: list[Part] = []
    for part in everything:
        # in this order, a part comes after the one it was merged into, which is the last one
        (merged if current and part.is_merged_into(current[-1]) else current).append(part)
    return current, merged


def journal_path(directory: Path) -> Path:
    """The path of a new journal, numbered after all existing files."""
    current, merged = parts(directory)
    number = 1 + max((part.last for part in (*current, *merged)), default=-1)
    return directory / f"journal-{number:08}.jsonl"


def seal(journal: Path, aside: Path) -> None:
    """Convert a finished journal to Parquet; broken lines are moved to ``aside``."""
    number = journal.stem.partition("-")[2]
    table, broken = _journal_rows(journal)
    if broken:
        remains = _path_in(aside, journal)
        remains.write_bytes(b"".join(broken))
        _LOG.warning("%s: %d broken lines are now in %s", journal, len(broken), remains)
    if len(table):
        path = journal.with_name(f"rows-{number}-{number}.parquet")
        write_rows(path, table.to_batches(max_chunksize=_GROUP))
    journal.unlink()


def write_rows(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write a Parquet file, which gets its name when it is complete."""
    with (
        atomic_path(path) as unfinished,
        pq.ParquetWriter(
            unfinished, SCHEMA, compression="zstd", write_page_checksum=True
        ) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)


def recover(directory: Path, aside: Path) -> None:
    """Clean up after a process that was killed.

    Unfinished files, unreadable parts and broken lines are moved to ``aside``; journals become
    Parquet.
    """
    set_aside_unfinished(directory, aside)
    for path in directory.iterdir():
        if path.is_dir() and _NAME.fullmatch(path.name):
            set_aside(path, aside, "it is a directory")
    for path in directory.glob("rows-*.parquet"):
        try:
            pq.read_metadata(path)
        except Exception as error:
            if is_system_error(error):
                raise
            set_aside(path, aside, str(error))
    current, merged = parts(directory)
    for part in merged:
        part.path.unlink()
    for part in current:
        if part.is_journal:
            seal(part.path, aside)


def set_aside_unfinished(directory: Path, aside: Path) -> None:
    """Move the unfinished files of a process that was killed to ``aside``."""
    for path in unfinished_files(directory):
        set_aside(path, aside, "it was being written when the process ended")


def is_system_error(error: Exception) -> bool:
    """Whether the system failed to read a file, whose content may be valid.

    Missing files, missing permissions or too many open files have an error number. For invalid
    content, Arrow raises errors of many kinds, all without one.
    """
    return isinstance(error, OSError) and error.errno is not None


def set_aside(path: Path, aside: Path, reason: str) -> None:
    """Move an unusable file to ``aside``, and log it."""
    target = _path_in(aside, path)
    path.replace(target)
    _LOG.warning("%s cannot be used (%s): it is now %s", path, reason, target)


def _path_in(aside: Path, path: Path) -> Path:
    aside.mkdir(parents=True, exist_ok=True)
    return aside / f"{path.parent.name}-{path.name.lstrip('.')}.{uuid4().hex[:8]}"


def statuses(directory: Path, count: int) -> NDArray[np.uint8]:
    """For every graph whether it is missing, done or failed, by its last row."""
    result = np.full(count, MISSING, dtype=np.uint8)
    for part in parts(directory)[0]:
        for batch in _batches(part, ["graph", "error"]):
            graphs = batch.column("graph").to_numpy()
            failed = batch.column("error").is_valid().to_numpy(zero_copy_only=False)
            result[graphs] = np.where(failed, FAILED, DONE)
    return result


def read_rows(directory: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The last row of every graph, in the order of the graphs."""
    names = list(columns or SCHEMA.names)
    needed = names if "graph" in names else [*names, "graph"]
    tables = [
        pa.Table.from_batches([batch])
        for part in parts(directory)[0]
        for batch in _batches(part, needed)
    ]
    if not tables:
        return pa.schema([SCHEMA.field(name) for name in names]).empty_table()
    table = pa.concat_tables(tables)
    order = _last_of_each(table.column("graph").to_numpy())
    return table.take(pa.array(order)).select(names)


def compact(directory: Path, *, min_parts: int) -> None:
    """Merge neighboring parts if there are enough of them, or enough rows for a full one."""
    group: list[Part] = []
    rows = 0
    for part in [*(p for p in parts(directory)[0] if not p.is_journal), None]:
        size = FULL if part is None else pq.read_metadata(part.path).num_rows
        if part is not None and size < FULL and rows < FULL:
            group.append(part)
            rows += size
            continue
        if len(group) > 1 and (len(group) >= min_parts or rows >= FULL):
            _merge(group)
        group, rows = ([part], size) if part is not None and size < FULL else ([], 0)


def _merge(group: Sequence[Part]) -> None:
    graphs = [
        batch.column("graph").to_numpy() for part in group for batch in _batches(part, ["graph"])
    ]
    all_graphs = np.concatenate(graphs)
    keep = np.zeros(len(all_graphs), dtype=np.bool_)
    keep[_last_of_each(all_graphs)] = True

    def last_rows() -> Iterator[pa.RecordBatch]:
        start = 0
        for part in group:
            for batch in _batches(part, SCHEMA.names):
                yield batch.filter(pa.array(keep[start : start + len(batch)]))
                start += len(batch)

    name = f"rows-{group[0].first:08}-{group[-1].last:08}.parquet"
    write_rows(group[0].path.with_name(name), _regroup(last_rows()))
    for part in group:
        part.path.unlink()


def _regroup(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of about the size of a row group."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _GROUP:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _batches(part: Part, columns: list[str]) -> Iterator[pa.RecordBatch]:
    if part.is_journal:
        yield from _journal_rows(part.path)[0].select(columns).to_batches()
        return
    try:
        with pq.ParquetFile(part.path, page_checksum_verification=True) as file:
            if not any(file.schema_arrow.equals(schema) for schema in _SCHEMAS):
                raise pa.ArrowInvalid("its columns are not those of the store")
            present = [name for name in columns if name in file.schema_arrow.names]
            missing = file.metadata.num_rows
            for batch in file.iter_batches(_GROUP, columns=present):
                missing -= len(batch)
                # Parquet does not keep the requested order
                yield _with_columns(batch, columns)
            # pages have checksums, but their headers and the schema do not
            if missing:
                raise pa.ArrowInvalid(f"{missing} of its rows are missing")
    except Exception as error:
        if is_system_error(error):
            raise
        reason = " ".join(str(error).split())
        raise pa.ArrowInvalid(f"{part.path}: {reason}") from error


def _with_columns(batch: pa.RecordBatch, columns: list[str]) -> pa.RecordBatch:
    """The columns in this order, null where the file was written before they existed."""
    fields = [SCHEMA.field(name) for name in columns]
    arrays = [
        batch.column(field.name)
        if field.name in batch.schema.names
        else pa.nulls(len(batch), field.type)
        for field in fields
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=pa.schema(fields))


def _journal_rows(journal: Path) -> tuple[pa.Table, list[bytes]]:
    """The rows of a journal, and the lines that are not rows."""
    lines, broken = read_journal(journal)
    try:
        return as_table(lines), broken
    except Exception:
        tables = [_row_table(line) for line in lines]
    broken += [line + b"\n" for line, table in zip(lines, tables, strict=True) if table is None]
    return pa.concat_tables([SCHEMA.empty_table(), *(t for t in tables if t is not None)]), broken


def _row_table(line: bytes) -> pa.Table | None:
    """The row in a line; ``None`` if the line is not a row of the store."""
    try:
        return as_table([line])
    except Exception:
        return None


def _last_of_each(graphs: NDArray[np.int64]) -> NDArray[np.int64]:
    """The index of the last row of every graph, in the order of the graphs."""
    _, indices = np.unique(graphs[::-1], return_index=True)
    return len(graphs) - 1 - indices
