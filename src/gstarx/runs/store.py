"""Where the rows are kept: a directory of Parquet that survives whatever happens to its writer."""

from __future__ import annotations

import errno
import json
import logging
import os
import socket
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gstarx._internal.atomic_write import left_behind, write_whole
from gstarx._internal.suggestions import unknown
from gstarx.runs import parquet_parts
from gstarx.runs.rows import FORMAT, SCHEMA, digest_of, identity_in, request_name

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_LOG = logging.getLogger(__name__)
#: Rows after which a journal becomes Parquet.
ROWS_PER_PIECE = 1_000
#: Pieces that are not full, after which they are merged.
MERGED_AT = 20
#: What file systems say that have no locks.
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
        """Where the rows of a run are."""
        return self.path / "rows" / f"run={run}"

    def statuses(self, run: str, count: int) -> NDArray[np.uint8]:
        """For each of so many graphs whether it is missing, done or failed."""
        with disk(self.path):
            return parquet_parts.statuses(self.directory(run), count)

    def remember(self, name: str, request: Mapping[str, Any]) -> None:
        """Write down what was asked for, so that it can be resumed; anew where it is damaged."""
        path = self.path / "runs" / f"{name}.json"
        with disk(self.path):
            if path.exists():
                try:
                    _read_request(path)
                    return
                except ValueError as error:
                    parquet_parts.set_aside(path, self.aside, str(error))
            write_whole(path, json.dumps(request, indent=2).encode())

    def requests(self) -> list[dict[str, Any]]:
        """All that was ever asked for, oldest first; files that are damaged are in the log."""
        found, problems = self.read_requests()
        for problem in problems.values():
            _LOG.warning("%s", problem)
        return found

    def read_requests(self) -> tuple[list[dict[str, Any]], dict[str, StoreError]]:
        """All that was ever asked for, oldest first, and what is wrong with other files, by run."""
        found: list[tuple[int, dict[str, Any]]] = []
        problems: dict[str, StoreError] = {}
        for path in _inside(self.path / "runs"):
            if path.suffix != ".json" or path.name.startswith("."):
                continue  # with a dot: being written, or left behind by a process that was killed
            try:
                found.append((path.stat().st_mtime_ns, _read_request(path)))
            except FileNotFoundError:
                continue  # set aside meanwhile
            except OSError as error:
                text = f"{path} cannot be read ({error.strerror}): see to its permissions"
                problems[path.stem] = StoreError(text)
            except ValueError as error:
                problems[path.stem] = StoreError(
                    f"{path} is damaged ({error}). The rows of the run are safe: run its "
                    "specification again, which writes the file anew and goes on where it was, or "
                    "move the file out of the store"
                )
        found.sort(key=lambda pair: pair[0])
        return [request for _, request in found], problems


class Writer:
    """The rows of one run, being written."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._aside = directory.parent.parent / "aside"
        self._journal: parquet_parts.Journal | None = None
        self._pieces = 0

    def append(self, row: bytes) -> None:
        """Keep an encoded row: from now on it outlives this process."""
        with disk(self._directory):
            if self._journal is None:
                self._directory.mkdir(parents=True, exist_ok=True)
                self._journal = parquet_parts.Journal(parquet_parts.journal_path(self._directory))
            self._journal.append(row)
            if self._journal.lines >= ROWS_PER_PIECE:
                self._seal()
                if self._pieces % MERGED_AT == 0:
                    parquet_parts.compact(self._directory, least=MERGED_AT)

    def finish(self) -> None:
        """Turn everything into Parquet, in few files."""
        with disk(self._directory):
            self._seal()
            parquet_parts.compact(self._directory, least=2)

    def abandon(self) -> None:
        """Let go of the journal as it is; the next process to open the store will see to it."""
        if self._journal is not None:
            journal, self._journal = self._journal, None
            try:
                journal.close()
            except OSError as error:
                # whatever ended the run is to be said, not this
                _LOG.warning("%s was not pushed to the disk: %s", journal.path, error)

    def _seal(self) -> None:
        if self._journal is not None:
            journal, self._journal = self._journal, None
            journal.close()
            parquet_parts.seal(journal.path, self._aside)
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
        # a process that was killed at the very beginning has left the lock and no more
        known = {path / "lock", path / "lock.holder", *left_behind(path)}
        strange = sorted(set(_inside(path)) - known)
        if strange and not mark.exists():
            raise StoreError(
                f"{path} is not a store: it has no store.json, but {strange[0].name!r}"
            )
        path.mkdir(parents=True, exist_ok=True)
    with _lock(path):
        store = Store(path)
        with disk(path):
            if not mark.exists():
                write_whole(mark, json.dumps({"format": FORMAT}).encode())
            check_format(path)
            for directory in (path, path / "runs", path / "trained"):
                parquet_parts.set_aside_parts(directory, store.aside)
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
    tables = [
        _read_run(directory, columns)
        for directory in _runs(path)
        if run is None or directory.name == f"run={run}"
    ]
    if not tables:
        return pa.schema([SCHEMA.field(n) for n in columns or SCHEMA.names]).empty_table()
    return pa.concat_tables(tables)


def check_format(path: Path) -> None:
    """Raise unless there is a store of this format."""
    mark = path / "store.json"
    try:
        if not mark.is_file():
            raise StoreError(f"there is no store at {path}")
        got = json.loads(mark.read_text(encoding="utf-8"))["format"]
    except OSError as error:
        raise StoreError(f"{mark} cannot be read: {error.strerror}") from error
    except (ValueError, KeyError, TypeError) as error:
        raise StoreError(
            f"{mark} cannot be read: {error!r}. If this version wrote the store, write "
            f"{json.dumps({'format': FORMAT})} into it"
        ) from error
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
            errno.EACCES: "access is not permitted",
            errno.EPERM: "access is not permitted",
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
def locked(path: Path) -> Iterator[None]:
    """Hold the lock file inside, or say who holds it.

    The lock is the system's, on an open file: it ends with the process, however that ends. The
    file itself stays, and beside it ``<name>.holder`` says who was the last to hold it.

    Raises
    ------
    StoreInUse
        At once when another process, or another thread of this one, holds it.
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
                f"{path.parent} is in use by {_said(holder)}: wait until it has ended, or use "
                "another store"
            ) from None
        who = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        holder.write_text(json.dumps(who), encoding="utf-8")
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int) -> None:
    if sys.platform == "win32":
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _said(holder: Path) -> str:
    try:
        who = json.loads(holder.read_text(encoding="utf-8"))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(who["since"]))
        return f"process {who['pid']} on {who['host']} since {since}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    lock = locked(path / "lock")
    with disk(path):
        lock.__enter__()
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def _runs(path: Path) -> list[Path]:
    """The directories of rows."""
    return [entry for entry in _inside(path / "rows") if entry.name.startswith("run=")]


def _inside(directory: Path) -> list[Path]:
    """What is in a directory, if it is there; a closed one is not empty, as it is for glob."""
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
            # merged into another file meanwhile: look again
            if attempt == 9:
                raise
        except OSError as error:
            raise StoreError(f"cannot read the store: {error}") from error
        except pa.ArrowInvalid as error:
            raise damaged(error) from error
    raise AssertionError


def _read_request(path: Path) -> dict[str, Any]:
    """What was asked for, if the file says what its name is the digest of.

    Raises
    ------
    OSError, ValueError
        When it cannot be read, and when it is damaged.
    """
    try:
        request: dict[str, Any] = json.loads(path.read_bytes())
        spec, identity = request["spec"], identity_in(request)
        intact = path.stem == request["name"] == request_name(digest_of(identity), spec)
        if not intact or request.get("spec_digest", digest_of(spec)) != digest_of(spec):
            raise ValueError("its content is not that of its digests")
    except IsADirectoryError:
        raise ValueError("it is a directory") from None
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"it is no request: {error!r}") from error
    return request
