"""Where the rows are kept: a directory of Parquet that survives whatever happens to its writer."""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gstarx.runs import pieces
from gstarx.runs.journal import Journal
from gstarx.runs.lock import locked
from gstarx.runs.rows import FORMAT, SCHEMA
from gstarx.unknown_names import unknown
from gstarx.whole_files import write_whole

#: Rows after which a journal becomes Parquet.
ROWS_PER_PIECE = 1_000
#: Pieces that are not full, after which they are merged.
MERGED_AT = 20


class StoreError(RuntimeError):
    """A store cannot be read or written."""


class Store:
    """A store open for writing, by :func:`open_store`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trained = path / "trained"
        self.aside = path / "aside"

    def directory(self, run: str) -> Path:
        """Where the rows of a run are."""
        return self.path / "rows" / f"run={run}"

    def statuses(self, run: str, count: int) -> NDArray[np.uint8]:
        """For each of so many graphs whether it is missing, done or failed."""
        return pieces.statuses(self.directory(run), count)

    def remember(self, name: str, request: Mapping[str, Any]) -> None:
        """Write down what was asked for, so that it can be resumed."""
        path = self.path / "runs" / f"{name}.json"
        if not path.exists():
            with disk(self.path):
                write_whole(path, json.dumps(request, indent=2).encode())

    def requests(self) -> list[dict[str, Any]]:
        """All that was ever asked for, oldest first."""
        found = sorted((self.path / "runs").glob("*.json"), key=lambda p: p.stat().st_mtime_ns)
        return [json.loads(path.read_text(encoding="utf-8")) for path in found]


class Writer:
    """The rows of one run, being written."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._journal: Journal | None = None
        self._pieces = 0

    def append(self, row: bytes) -> None:
        """Keep an encoded row: from now on it outlives this process."""
        with disk(self._directory):
            if self._journal is None:
                self._directory.mkdir(parents=True, exist_ok=True)
                self._journal = Journal(pieces.journal_path(self._directory))
            self._journal.append(row)
            if self._journal.lines >= ROWS_PER_PIECE:
                self._seal()
                if self._pieces % MERGED_AT == 0:
                    pieces.compact(self._directory, least=MERGED_AT)

    def finish(self) -> None:
        """Turn everything into Parquet, in few files."""
        with disk(self._directory):
            self._seal()
            pieces.compact(self._directory, least=2)

    def abandon(self) -> None:
        """Let go of the journal as it is; the next process to open the store will see to it."""
        if self._journal is not None:
            self._journal.close()
            self._journal = None

    def _seal(self) -> None:
        if self._journal is not None:
            journal, self._journal = self._journal, None
            journal.close()
            pieces.seal(journal.path)
            self._pieces += 1


@contextmanager
def open_store(path: str | os.PathLike[str]) -> Iterator[Store]:
    """A store to write to, made if need be, for this process alone.

    What a process that was killed left behind is put in order first.

    Raises
    ------
    StoreInUse
        When another process has it open.
    StoreError
        When it is no store, was written in another format, or cannot be written.
    """
    path = Path(path)
    with disk(path):
        if path.exists() and not path.is_dir():
            raise StoreError(f"a store is a directory (got the file {path})")
        mark = path / "store.json"
        if path.is_dir() and any(path.iterdir()) and not mark.exists():
            # a process that was killed at the very beginning has left the lock and no more
            strange = {entry.name for entry in path.iterdir()} - {"lock", "lock.holder"}
            strange = {name for name in strange if not name.startswith(".store.json")}
            if strange:
                raise StoreError(
                    f"{path} is not a store: it has no store.json, but {sorted(strange)[0]!r}"
                )
        path.mkdir(parents=True, exist_ok=True)
    with _lock(path):
        store = Store(path)
        with disk(path):
            if not mark.exists():
                write_whole(mark, json.dumps({"format": FORMAT}).encode())
            check_format(path)
            for directory in sorted((path / "rows").glob("run=*")):
                pieces.recover(directory, store.aside)
        yield store


def read(
    store: str | os.PathLike[str],
    *,
    run: str | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """All rows of a store, also while another process is writing to it.

    Parameters
    ----------
    store
        Its directory.
    run
        Only the rows of this run, as :class:`RunReport` and the column ``run`` name it.
    columns
        Only these columns.

    Returns
    -------
    pyarrow.Table
        The last row of every graph and run, by run and graph. ``.to_pandas()`` makes a data frame,
        where pandas is installed.

    Raises
    ------
    StoreError
        When there is no store, it was written in another format, or a file in it is damaged.
    """
    path = Path(store)
    check_format(path)
    for name in columns or ():
        if name not in SCHEMA.names:
            raise ValueError(unknown("column", name, SCHEMA.names))
    wanted = "*" if run is None else run
    tables = [
        _read_run(directory, columns) for directory in sorted((path / "rows").glob(f"run={wanted}"))
    ]
    if not tables:
        return pa.schema([SCHEMA.field(n) for n in columns or SCHEMA.names]).empty_table()
    return pa.concat_tables(tables)


def check_format(path: Path) -> None:
    """Raise unless there is a store of this format."""
    mark = path / "store.json"
    if not mark.is_file():
        raise StoreError(f"there is no store at {path}")
    try:
        got = json.loads(mark.read_text(encoding="utf-8"))["format"]
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(f"{mark} cannot be read: {error!r}") from error
    if got != FORMAT:
        raise StoreError(
            f"{path} was written by another version, in format {got!r}: this version reads and "
            f"writes format {FORMAT}; use that version, or begin a new store"
        )


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Say of an error of the file system what it means for the run."""
    try:
        yield
    except OSError as error:
        reasons = {
            errno.ENOSPC: "the disk is full",
            errno.EDQUOT: "the quota is used up",
            errno.EFBIG: "no file may be larger",
            errno.EROFS: "the file system is read-only",
            errno.EACCES: "writing is not permitted",
            errno.EPERM: "writing is not permitted",
        }
        reason = reasons.get(error.errno or 0, "the file system failed")
        raise StoreError(
            f"cannot write to the store at {path}: {reason} ({error}). What was stored before is "
            "safe: see to it, and resume"
        ) from error
    except pa.ArrowInvalid as error:
        raise damaged(error) from error


def damaged(error: Exception) -> StoreError:
    """What to do about a file whose checksums are wrong."""
    return StoreError(
        f"a file is damaged: {error}. Move it out of the store; the graphs in it will be done "
        "again by resume"
    )


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    lock = locked(path / "lock")
    with disk(path):
        lock.__enter__()
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def _read_run(directory: Path, columns: Sequence[str] | None) -> pa.Table:
    for attempt in range(10):
        try:
            return pieces.read_rows(directory, columns)
        except FileNotFoundError:
            # merged into another file meanwhile: look again
            if attempt == 9:
                raise
        except pa.ArrowInvalid as error:
            raise damaged(error) from error
    raise AssertionError
