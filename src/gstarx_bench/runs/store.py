"""The store of rows: a directory of Parquet files that survives a crash of its writer."""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gstarx._internal.files import unfinished_files, write_atomically
from gstarx._internal.messages import unknown
from gstarx_bench.runs import parquet_parts
from gstarx_bench.runs.rows import FORMAT, SCHEMA, digest_of, identity_in, request_name

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOG = logging.getLogger(__name__)
#: Rows after which a journal becomes a Parquet part.
ROWS_PER_PART = 1_000
#: Number of parts after which those that are not full are merged.
PARTS_PER_MERGE = 20
#: Errors of file systems without locks.
_NO_LOCKS = (errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP, errno.EINVAL)


class StoreError(RuntimeError):
    """A store cannot be read or written."""


class StoreInUse(RuntimeError):
    """Another process is writing to the store."""


class Store:
    """A store open for writing, by :func:`open_store`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trained = path / "trained"
        self.aside = path / "aside"

    def directory(self, run: str) -> Path:
        """The directory of the rows of a run."""
        return self.path / "rows" / f"run={run}"

    def statuses(self, run: str, count: int) -> NDArray[np.uint8]:
        """For each of ``count`` graphs whether it is missing, done or failed."""
        with storage_errors(self.path):
            return parquet_parts.statuses(self.directory(run), count)

    def remember(self, name: str, request: Mapping[str, Any]) -> None:
        """Store a request, so that it can be resumed; a damaged file is replaced."""
        path = self.path / "runs" / f"{name}.json"
        with storage_errors(self.path):
            if path.exists():
                try:
                    _read_request(path)
                    return
                except ValueError as error:
                    parquet_parts.set_aside(path, self.aside, str(error))
            write_atomically(path, json.dumps(request, indent=2).encode())

    def requests(self) -> list[dict[str, Any]]:
        """All requests, oldest first; damaged files are named in the log."""
        requests, problems = self.read_requests()
        for problem in problems.values():
            _LOG.warning("%s", problem)
        return requests

    def read_requests(self) -> tuple[list[dict[str, Any]], dict[str, StoreError]]:
        """All requests, oldest first, and the problems of damaged files, by name."""
        requests: list[tuple[int, dict[str, Any]]] = []
        problems: dict[str, StoreError] = {}
        for path in _list(self.path / "runs"):
            if path.suffix != ".json" or path.name.startswith("."):
                continue  # a dot: unfinished, perhaps of a process that was killed
            try:
                requests.append((path.stat().st_mtime_ns, _read_request(path)))
            except FileNotFoundError:
                continue  # set aside in the meantime
            except OSError as error:
                text = f"{path} cannot be read ({error.strerror}): check its permissions"
                problems[path.stem] = StoreError(text)
            except ValueError as error:
                problems[path.stem] = StoreError(
                    f"{path} is damaged ({error}). The rows of the run are safe: run its "
                    "specification again, which restores the file and continues the run, or "
                    "move the file out of the store"
                )
        requests.sort(key=lambda pair: pair[0])
        return [request for _, request in requests], problems


class Writer:
    """Writes the rows of one run."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._aside = directory.parent.parent / "aside"
        self._journal: parquet_parts.Journal | None = None
        self._parts = 0

    def append(self, row: bytes) -> None:
        """Store an encoded row, which then survives this process."""
        with storage_errors(self._directory):
            if self._journal is None:
                self._directory.mkdir(parents=True, exist_ok=True)
                self._journal = parquet_parts.Journal(parquet_parts.journal_path(self._directory))
            self._journal.append(row)
            if self._journal.lines >= ROWS_PER_PART:
                self._seal()
                if self._parts % PARTS_PER_MERGE == 0:
                    parquet_parts.compact(self._directory, min_parts=PARTS_PER_MERGE)

    def finish(self) -> None:
        """Convert all rows to Parquet, in few files."""
        with storage_errors(self._directory):
            self._seal()
            parquet_parts.compact(self._directory, min_parts=2)

    def abandon(self) -> None:
        """Close the journal as it is; the next process that opens the store converts it."""
        if self._journal is not None:
            journal, self._journal = self._journal, None
            try:
                journal.close()
            except OSError as error:
                # not raised, because it would hide the error that ended the run
                _LOG.warning("%s was not written to the disk: %s", journal.path, error)

    def _seal(self) -> None:
        if self._journal is not None:
            journal, self._journal = self._journal, None
            journal.close()
            parquet_parts.seal(journal.path, self._aside)
            self._parts += 1


@contextmanager
def open_store(path: str | os.PathLike[str]) -> Iterator[Store]:
    """A store to write to, created if needed, for this process alone.

    The files of a process that was killed are cleaned up first.

    Raises
    ------
    StoreInUse
        If another process has it open.
    StoreError
        If it is not a store, was written in another format, or cannot be written.
    """
    path = Path(path)
    with storage_errors(path):
        if path.exists() and not path.is_dir():
            raise StoreError(f"a store is a directory (got the file {path})")
        mark = path / "store.json"
        # a process that was killed at the very beginning has left only these
        expected = {path / "lock", path / "lock.holder", *unfinished_files(path)}
        others = sorted(set(_list(path)) - expected)
        if others and not mark.exists():
            raise StoreError(f"{path} is not a store: it has no store.json, but {others[0].name!r}")
        path.mkdir(parents=True, exist_ok=True)
    with ExitStack() as stack:
        store = Store(path)
        with storage_errors(path):
            stack.enter_context(locked(path / "lock"))
            if not mark.exists():
                write_atomically(mark, json.dumps({"format": FORMAT}).encode())
            check_format(path)
            for directory in (path, path / "runs", path / "trained"):
                parquet_parts.set_aside_unfinished(directory, store.aside)
            for directory in _runs(path):
                if directory.is_dir():
                    parquet_parts.recover(directory, store.aside)
                else:
                    parquet_parts.set_aside(directory, store.aside, "it is not a directory")
        yield store


def read(
    store: str | os.PathLike[str],
    *,
    run: str | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Read the rows of a store, even while another process is writing to it.

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
        The last row of every graph, ordered by run and graph. ``.to_pandas()`` converts it to a
        data frame if pandas is installed.

    Raises
    ------
    StoreError
        If there is no store, it was written in another format, or a file in it is damaged.
    """
    path = Path(store)
    check_format(path)
    for name in columns or ():
        if name not in SCHEMA.names:
            raise ValueError(unknown("column", name, SCHEMA.names))
    tables = [
        _read_run(directory, columns)
        for directory in _runs(path)
        if run is None or directory.name == f"run={run}"
    ]
    if not tables:
        return pa.schema([SCHEMA.field(n) for n in columns or SCHEMA.names]).empty_table()
    return pa.concat_tables(tables)


def check_format(path: Path) -> None:
    """Raise StoreError unless there is a store of this format."""
    mark = path / "store.json"
    try:
        if not mark.is_file():
            raise StoreError(f"there is no store at {path}")
        got = json.loads(mark.read_text(encoding="utf-8"))["format"]
    except OSError as error:
        raise StoreError(f"{mark} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise StoreError(
            f"{mark} cannot be read: {error!r}. If this version wrote the store, write "
            f"{json.dumps({'format': FORMAT})} into it"
        ) from error
    if got != FORMAT:
        raise StoreError(
            f"{path} was written by another version, in format {got!r}: this version reads and "
            f"writes format {FORMAT}; use that version, or start a new store"
        )


@contextmanager
def storage_errors(path: Path) -> Iterator[None]:
    """Turn errors of the file system into StoreError."""
    try:
        yield
    except OSError as error:
        reasons = {
            errno.ENOSPC: "the disk is full",
            errno.EDQUOT: "the quota is used up",
            errno.EFBIG: "the file is too large",
            errno.EROFS: "the file system is read-only",
            errno.EACCES: "access is not permitted",
            errno.EPERM: "access is not permitted",
        }
        reason = reasons.get(error.errno or 0, "the file system failed")
        raise StoreError(
            f"cannot write to the store at {path}: {reason} ({error}). What was stored before is "
            "safe: fix the problem and resume"
        ) from error
    except pa.ArrowInvalid as error:
        raise _damaged(error) from error


def _damaged(error: Exception) -> StoreError:
    """The error for a file with wrong checksums."""
    return StoreError(
        f"a file is damaged: {error}. Move it out of the store and resume, which computes its "
        "graphs again"
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on a file inside the block.

    The system releases the lock when the process ends, even if it is killed. The file itself
    remains, and ``<name>.holder`` next to it names the last process that held it.

    Raises
    ------
    StoreInUse
        At once, if another process or another thread of this one holds it.
    """
    holder = path.with_suffix(".holder")
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
    try:
        try:
            _take(descriptor)
        except OSError as error:
            if error.errno in _NO_LOCKS:
                raise
            raise StoreInUse(
                f"{path.parent} is in use by {_describe(holder)}: wait until it has ended, or use "
                "another store"
            ) from None
        process = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        holder.write_text(json.dumps(process), encoding="utf-8")
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _describe(holder: Path) -> str:
    try:
        process = json.loads(holder.read_text(encoding="utf-8"))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(process["since"]))
        return f"process {process['pid']} on {process['host']} since {since}"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"


def _runs(path: Path) -> list[Path]:
    """The directories of the runs' rows."""
    return [entry for entry in _list(path / "rows") if entry.name.startswith("run=")]


def _list(directory: Path) -> list[Path]:
    """The entries of a directory, if it exists; unlike glob, raises if it cannot be read."""
    try:
        return sorted(directory.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise StoreError(f"cannot read the store: {error}") from error


def _read_run(directory: Path, columns: Sequence[str] | None) -> pa.Table:
    for attempt in range(10):
        try:
            return parquet_parts.read_rows(directory, columns)
        except FileNotFoundError:
            # merged into another file in the meantime: try again
            if attempt == 9:
                raise
        except OSError as error:
            raise StoreError(f"cannot read the store: {error}") from error
        except pa.ArrowInvalid as error:
            raise _damaged(error) from error
    raise AssertionError


def _read_request(path: Path) -> dict[str, Any]:
    """The request in a file, after checking its digests.

    Raises
    ------
    OSError, ValueError
        If it cannot be read or is damaged.
    """
    try:
        request: dict[str, Any] = json.loads(path.read_bytes())
        spec, identity = request["spec"], identity_in(request)
        intact = path.stem == request["name"] == request_name(digest_of(identity), spec)
        if not intact or request.get("spec_digest", digest_of(spec)) != digest_of(spec):
            raise ValueError("its content does not match its digests")
    except IsADirectoryError:
        raise ValueError("it is a directory") from None
    except (KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ValueError(f"it is not a request: {error!r}") from error
    return request
