"""The files of one run: Parquet pieces and journals, numbered in the order they were begun.

``rows-<first>-<last>.parquet`` holds what the journals of these numbers held. A piece that lies
within the range of another has been merged into it: deleting it was all that was left to do.
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

from gstarx._internal.atomic_write import left_behind, written_aside
from gstarx.runs.rows import SCHEMA, as_table

_LOG = logging.getLogger(__name__)
_NAME = re.compile(r"rows-(\d{8})-(\d{8})\.parquet|journal-(\d{8})\.jsonl")
#: A piece of so many rows is not merged any further.
FULL = 20_000
_GROUP = 5_000
#: What :func:`statuses` says of a graph.
MISSING, DONE, FAILED = 0, 1, 2
#: Seconds between two times that what was written is pushed to the disk.
SYNC_SECONDS = 1.0


class Journal:
    """A new journal file, open for writing."""

    def __init__(self, path: Path, *, sync_seconds: float = SYNC_SECONDS) -> None:
        self.path = path
        self.lines = 0
        self._sync_seconds = sync_seconds
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND, 0o666)
        self._synced = time.monotonic()

    def append(self, content: bytes) -> None:
        """Add a line, which must have no line break inside."""
        line = b"%08x %s\n" % (zlib.crc32(content), content)
        written = os.write(self._descriptor, line)
        while written < len(line):  # a disk that is almost full takes a part, then says so
            written += os.write(self._descriptor, line[written:])
        self.lines += 1
        if time.monotonic() - self._synced >= self._sync_seconds:
            self.sync()

    def sync(self) -> None:
        """Push everything to the disk."""
        os.fsync(self._descriptor)
        self._synced = time.monotonic()

    def close(self) -> None:
        """Push everything to the disk, and close; nothing happens the second time."""
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
    """The lines that are whole, and the remains of those that are not.

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
    whole: list[bytes] = []
    broken: list[bytes] = []
    with path.open("rb") as file:
        for line in file:
            check, _, content = line[:-1].partition(b" ")
            if line.endswith(b"\n") and check == b"%08x" % zlib.crc32(content):
                whole.append(content)
            else:
                broken.append(line)
    return whole, broken


@dataclass(frozen=True)
class Piece:
    """A file of rows, and the numbers that it covers."""

    first: int
    last: int
    path: Path

    @property
    def is_journal(self) -> bool:
        """Whether it is a journal rather than Parquet."""
        return self.path.suffix == ".jsonl"

    def inside(self, other: Piece) -> bool:
        """Whether another Parquet piece holds all that this one does."""
        covers = other.first <= self.first and self.last <= other.last
        same = (other.first, other.last) == (self.first, self.last)
        return covers and not other.is_journal and (self.is_journal or not same)


def pieces(directory: Path) -> tuple[list[Piece], list[Piece]]:
    """The pieces that count, in order, and those that were merged into one of them."""
    found = []
    for path in directory.iterdir() if directory.is_dir() else ():
        if match := _NAME.fullmatch(path.name):
            first, last, journal = (None if g is None else int(g) for g in match.groups())
            if journal is not None:
                found.append(Piece(journal, journal, path))
            elif first is not None and last is not None:
                found.append(Piece(first, last, path))
    found.sort(key=lambda piece: (piece.first, -piece.last, piece.is_journal))
    counting: list[Piece] = []
    merged: list[Piece] = []
    for piece in found:
        # sorted so, whatever holds this piece came before, and nothing that counts ends later
        (merged if counting and piece.inside(counting[-1]) else counting).append(piece)
    return counting, merged


def journal_path(directory: Path) -> Path:
    """The path of a new journal, numbered after everything that there is."""
    counting, merged = pieces(directory)
    number = 1 + max((piece.last for piece in (*counting, *merged)), default=-1)
    return directory / f"journal-{number:08}.jsonl"


def seal(journal: Path, aside: Path) -> None:
    """Turn a journal that nobody writes to any more into Parquet; broken lines go to ``aside``."""
    number = journal.stem.partition("-")[2]
    table, broken = _rows_of(journal)
    if broken:
        remains = _place_in(aside, journal)
        remains.write_bytes(b"".join(broken))
        _LOG.warning("%s: %d broken lines are now in %s", journal, len(broken), remains)
    if len(table):
        path = journal.with_name(f"rows-{number}-{number}.parquet")
        write_rows(path, table.to_batches(max_chunksize=_GROUP))
    journal.unlink()


def write_rows(path: Path, batches: Iterable[pa.RecordBatch]) -> None:
    """Write Parquet aside, push it to the disk, and give it its name."""
    with (
        written_aside(path) as aside,
        pq.ParquetWriter(aside, SCHEMA, compression="zstd", write_page_checksum=True) as writer,
    ):
        for batch in batches:
            writer.write_batch(batch)


def recover(directory: Path, aside: Path) -> None:
    """Put in order what a process left behind that was stopped at any moment.

    Half-written files, unreadable pieces and broken lines go to ``aside``; journals become Parquet.
    """
    set_aside_parts(directory, aside)
    for path in directory.iterdir():
        if path.is_dir() and _NAME.fullmatch(path.name):
            set_aside(path, aside, "it is a directory")
    for path in directory.glob("rows-*.parquet"):
        try:
            pq.read_metadata(path)
        except Exception as error:
            if of_the_system(error):
                raise
            set_aside(path, aside, str(error))
    counting, merged = pieces(directory)
    for piece in merged:
        piece.path.unlink()
    for piece in counting:
        if piece.is_journal:
            seal(piece.path, aside)


def set_aside_parts(directory: Path, aside: Path) -> None:
    """Move what a process that was killed was writing in a directory out of the way."""
    for path in left_behind(directory):
        set_aside(path, aside, "it was being written when the process ended")


def of_the_system(error: Exception) -> bool:
    """Whether a file may be good, and the system would not let us see it.

    No such file, no permission, too many open files: these have a number. Of files whose content
    is wrong, Arrow says so by errors of many kinds, which have none.
    """
    return isinstance(error, OSError) and error.errno is not None


def set_aside(path: Path, aside: Path, reason: str) -> None:
    """Move a file that cannot be used out of the way, and say so."""
    target = _place_in(aside, path)
    path.replace(target)
    _LOG.warning("%s cannot be used (%s): it is now %s", path, reason, target)


def _place_in(aside: Path, path: Path) -> Path:
    aside.mkdir(parents=True, exist_ok=True)
    return aside / f"{path.parent.name}-{path.name.lstrip('.')}.{uuid4().hex[:8]}"


def statuses(directory: Path, count: int) -> NDArray[np.uint8]:
    """For every graph whether its last row is missing, done or failed; one byte for each."""
    found = np.full(count, MISSING, dtype=np.uint8)
    for piece in pieces(directory)[0]:
        for batch in _batches(piece, ["graph", "error"]):
            graphs = batch.column("graph").to_numpy()
            failed = batch.column("error").is_valid().to_numpy(zero_copy_only=False)
            found[graphs] = np.where(failed, FAILED, DONE)
    return found


def read_rows(directory: Path, columns: Sequence[str] | None = None) -> pa.Table:
    """The last row of every graph, by graph."""
    names = list(columns or SCHEMA.names)
    wanted = names if "graph" in names else [*names, "graph"]
    parts = [
        pa.Table.from_batches([batch])
        for piece in pieces(directory)[0]
        for batch in _batches(piece, wanted)
    ]
    if not parts:
        return pa.schema([SCHEMA.field(name) for name in names]).empty_table()
    table = pa.concat_tables(parts)
    order = _last_of_each(table.column("graph").to_numpy())
    return table.take(pa.array(order)).select(names)


def compact(directory: Path, *, least: int) -> None:
    """Merge neighboring pieces that are not full: at least so many, or enough for a full one."""
    group: list[Piece] = []
    rows = 0
    for piece in [*(p for p in pieces(directory)[0] if not p.is_journal), None]:
        size = FULL if piece is None else pq.read_metadata(piece.path).num_rows
        if piece is not None and size < FULL and rows < FULL:
            group.append(piece)
            rows += size
            continue
        if len(group) > 1 and (len(group) >= least or rows >= FULL):
            _merge(group)
        group, rows = ([piece], size) if piece is not None and size < FULL else ([], 0)


def _merge(group: Sequence[Piece]) -> None:
    graphs = [
        batch.column("graph").to_numpy() for piece in group for batch in _batches(piece, ["graph"])
    ]
    together = np.concatenate(graphs)
    keep = np.zeros(len(together), dtype=np.bool_)
    keep[_last_of_each(together)] = True

    def kept() -> Iterator[pa.RecordBatch]:
        start = 0
        for piece in group:
            for batch in _batches(piece, SCHEMA.names):
                yield batch.filter(pa.array(keep[start : start + len(batch)]))
                start += len(batch)

    name = f"rows-{group[0].first:08}-{group[-1].last:08}.parquet"
    write_rows(group[0].path.with_name(name), _regrouped(kept()))
    for piece in group:
        piece.path.unlink()


def _regrouped(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The same rows in batches of a size that reads well."""
    waiting: list[pa.RecordBatch] = []
    for batch in batches:
        waiting.append(batch)
        if sum(map(len, waiting)) >= _GROUP:
            yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()
            waiting = []
    if waiting:
        yield from pa.Table.from_batches(waiting).combine_chunks().to_batches()


def _batches(piece: Piece, columns: list[str]) -> Iterator[pa.RecordBatch]:
    if piece.is_journal:
        yield from _rows_of(piece.path)[0].select(columns).to_batches()
        return
    try:
        with pq.ParquetFile(piece.path, page_checksum_verification=True) as file:
            if not file.schema_arrow.equals(SCHEMA):
                raise pa.ArrowInvalid("it has other columns than the store")
            missing = file.metadata.num_rows
            for batch in file.iter_batches(_GROUP, columns=columns):
                missing -= len(batch)
                # in the order asked for, which Parquet does not keep
                yield batch.select(columns)
            # pages have checksums, but neither their headers nor the schema
            if missing:
                raise pa.ArrowInvalid(f"{missing} of its rows are missing")
    except Exception as error:
        if of_the_system(error):
            raise
        reason = " ".join(str(error).split())
        raise pa.ArrowInvalid(f"{piece.path}: {reason}") from error


def _rows_of(journal: Path) -> tuple[pa.Table, list[bytes]]:
    """The rows of a journal, and the lines that are none."""
    lines, broken = read_journal(journal)
    try:
        return as_table(lines), broken
    except Exception:
        tables = [_row_of(line) for line in lines]
    broken += [line + b"\n" for line, table in zip(lines, tables, strict=True) if table is None]
    return pa.concat_tables([SCHEMA.empty_table(), *(t for t in tables if t is not None)]), broken


def _row_of(line: bytes) -> pa.Table | None:
    """A row; ``None`` where the line is whole, and still the store has no columns for it."""
    try:
        return as_table([line])
    except Exception:
        return None


def _last_of_each(graphs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Where every graph occurs for the last time, by graph."""
    _, places = np.unique(graphs[::-1], return_index=True)
    return len(graphs) - 1 - places
