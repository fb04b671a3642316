"""The store of rows: an SQLite database that survives a crash of its writer, and damage.

A store is a directory with ``rows.sqlite``, in which every run has a table, and beside it a ledger
of every run: a line for each row that was ever stored. SQLite keeps what it was given when a
process is killed, but notices neither flipped bits nor a log that was cut. So a row is sealed: it
carries a checksum and all that identifies it, is checked whenever it is read, and can be found in
a file whose structure is damaged. The ledger says which rows are missing, and which are outdated
because a later one is missing; those are not served, but named and computed again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import logging
import os
import re
import shutil
import socket
import sqlite3
import struct
import time
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from gstarx._internal.files import unfinished_files, write_atomically
from gstarx._internal.messages import unknown
from gstarx_bench.runs.rows import SCHEMA, TaskResult, as_table

_LOG = logging.getLogger(__name__)
#: Increased whenever older versions cannot read what is written. The first was of Parquet files.
FORMAT = 2
#: The status of a graph.
MISSING, DONE, FAILED = 0, 1, 2
#: Seconds after which rows are written to the disk, so that they survive the machine.
SYNC_SECONDS = 1.0
_DATABASE = "rows.sqlite"
#: What SQLite puts beside a database: its log, the memory that processes share, its old pages.
_BESIDE = ("-wal", "-shm", "-journal")
#: Bytes of a page: large enough for the rows of most molecules, which are then in one piece.
_PAGE = 1 << 14
#: Seconds to wait for another process that reads or writes a row.
_PATIENCE = 60.0
#: Rows that are decoded together.
_BATCH = 1_000
#: In place of a run, for the requests of all of them.
_REQUESTS = "f" * 32
_RUN, _LINE = re.compile(r"[0-9a-f]{32}"), re.compile(rb"((\d+) (\d+)(?: (\S+))?) ([0-9a-f]{8}) ")
_TABLE = 'CREATE TABLE IF NOT EXISTS "{}" (graph INTEGER PRIMARY KEY, sealed BLOB)'
_DAMAGES = (
    *(sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_FORMAT),
    # of statements that are right: what the file says of its tables or their sizes is not
    *(sqlite3.SQLITE_ERROR, sqlite3.SQLITE_TOOBIG, sqlite3.SQLITE_MISMATCH),
)
_MAGIC = b"\xf5gstarx\xf6"
#: What is before a row: this mark, the size, the number, whether it failed, the run, the graph, and
#: the checksum of all but itself.
_HEAD = struct.Struct("<8sIQ?16sq16s")
_NETWORKS = re.compile(r"nfs|cifs|smb|afs|lustre|gpfs|beegfs|ceph|gluster|9p|sshfs|davfs|ncpfs")
_REASONS = {
    **dict.fromkeys(("SQLITE_FULL", "ENOSPC"), "the disk is full"),
    **dict.fromkeys(("SQLITE_READONLY", "EROFS"), "the file system is read-only"),
    **dict.fromkeys(("SQLITE_PERM", "EACCES", "EPERM"), "access is not permitted"),
    **dict.fromkeys(("SQLITE_BUSY", "SQLITE_LOCKED"), "another program has locked it"),
    **dict.fromkeys(("SQLITE_CORRUPT", "SQLITE_NOTADB"), "it is damaged"),
    "EDQUOT": "the quota is used up",
}


class StoreError(RuntimeError):
    """A store cannot be read or written."""


class StoreInUse(RuntimeError):
    """Another process is writing to the store."""


class Row(NamedTuple):
    """A stored row, or the request of a run; later rows of a graph have larger numbers."""

    run: str
    graph: int
    number: int
    failed: bool
    content: bytes


def sealed(row: Row) -> bytes:
    """A row with all that identifies it, and a checksum.

    >>> row = Row("0" * 32, 4, 1, False, b"{}")
    >>> unsealed(sealed(row)) == row
    True
    >>> unsealed(sealed(row).replace(b"{}", b"[]")) is None
    True
    """
    head = _head(row, b"")
    return _head(row, _checksum(head, row.content)) + row.content


def unsealed(content: Any, start: int = 0) -> Row | None:
    """The row that begins there, or ``None`` if it is not as it was written."""
    end = start + _HEAD.size
    if not isinstance(content, bytes) or len(content) < end:
        return None
    magic, size, number, failed, run, graph, checksum = _HEAD.unpack(content[start:end])
    row = Row(run.hex(), graph, number, failed, content[end : end + size])
    intact = magic == _MAGIC and checksum == _checksum(_head(row, b""), row.content)
    return row if intact else None


def _head(row: Row, checksum: bytes) -> bytes:
    run = bytes.fromhex(row.run)
    return _HEAD.pack(_MAGIC, len(row.content), row.number, row.failed, run, row.graph, checksum)


def _checksum(head: bytes, content: bytes) -> bytes:
    return hashlib.sha256(head + content).digest()[:16]


class Stored:
    """The rows of a run as they were written, and after iterating over them, what is lost."""

    def __init__(self, store: Path, run: str, *, quiet: bool = False) -> None:
        self._store, self._run, self._quiet = store, run, quiet
        self._seen: set[int] = set()
        # before the rows, because a writer adds to it what it has stored
        self.ledger = _ledger(store, run)
        #: Graphs whose rows are missing or damaged, and what SQLite says about its file.
        self.lost: list[int] = []
        self.recovered = False
        self.problem: Exception | None = None

    def __iter__(self) -> Iterator[Row]:
        try:
            with _reading(self._store) as connection:
                if self._run in _tables(connection):
                    order = f'SELECT sealed FROM "{self._run}" ORDER BY graph'
                    yield from self._valid(unsealed(one) for (one,) in connection.execute(order))
        except (sqlite3.Error, MemoryError) as error:
            if not _is_damage(error):
                raise
            self.problem = error
        if self.problem is not None or not self.ledger.keys() <= self._seen:
            # in the file, whatever its structure says
            known = len(self._seen)
            found: list[Row] = sorted(_scan(self._store), key=lambda row: -row.number)
            yield from self._valid(found)
            self.recovered = len(self._seen) > known
        self.lost = sorted(self.ledger.keys() - self._seen)
        if (self.lost or self.problem is not None) and not self._quiet:
            graphs = ", ".join(map(str, self.lost[:9])) + ", ..." * (len(self.lost) > 9)
            _LOG.warning(
                "%s is damaged (%s): %d rows of the run %s are lost, those of the graphs [%s]. "
                "Nothing wrong is read; to resume the run computes them again",
                *(self._store / _DATABASE, self.problem or "rows are not as they were written"),
                *(len(self.lost), self._run, graphs),
            )

    def _valid(self, rows: Iterable[Row | None]) -> Iterator[Row]:
        """Rows of this run, one of each graph, and none that a lost one has replaced."""
        for row in rows:
            if row is None or row.run != self._run or row.graph in self._seen:
                continue
            if row.number >= self.ledger.get(row.graph, (0, ""))[0]:
                self._seen.add(row.graph)
                yield row


class Store:
    """A store open for writing, by :func:`open_store`, or for reading its requests."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.trained = path / "trained"
        self._connection: sqlite3.Connection | None = None
        self._next: dict[str, int] = {}
        self._synced = time.monotonic()

    def statuses(self, run: str, count: int) -> NDArray[np.uint8]:
        """For each of ``count`` graphs whether it is missing, done or failed."""
        result = np.full(count, MISSING, dtype=np.uint8)
        with storage_errors(self.path):
            for row in self._checked(run):
                result[row.graph] = FAILED if row.failed else DONE
        return result

    def _checked(self, run: str) -> list[Row]:
        """The rows of a run without their content; a damaged database is written anew."""
        stored = Stored(self.path, run)
        rows = [row._replace(content=b"") for row in stored]
        if stored.problem is not None or stored.recovered or (stored.lost and not self._is_sound()):
            self._repair()
        self._next[run] = 1 + max(
            [number for number, _ in stored.ledger.values()] + [row.number for row in rows],
            default=0,
        )
        return rows

    def _is_sound(self) -> bool:
        """Whether the structure of the database is right, so that rows can be added to it."""
        assert self._connection is not None
        try:
            return list(self._connection.execute("PRAGMA quick_check(1)")) == [("ok",)]
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise
            return False

    def append(self, run: str, result: TaskResult) -> None:
        """Store a row, which then survives this process, and after a second the machine."""
        self._insert(run, result.position, result.failed, result.row)

    def remember(self, name: str, request: Mapping[str, Any]) -> None:
        """Store a request, so that it can be resumed."""
        if all(known["name"] != name for known in self.requests()):
            content = json.dumps(request).encode()
            self._checked(_REQUESTS)
            self._insert(_REQUESTS, self._next[_REQUESTS], False, content, f" {name}")

    def _insert(self, run: str, graph: int, failed: bool, content: bytes, name: str = "") -> None:
        with storage_errors(self.path):
            if run not in self._next:
                self._checked(run)
            number, self._next[run] = self._next[run], self._next[run] + 1
            assert self._connection is not None
            self._connection.execute(_TABLE.format(run))
            self._connection.execute(
                f'INSERT OR REPLACE INTO "{run}" VALUES (?, ?)',
                (graph, sealed(Row(run, graph, number, failed, content))),
            )
            with (self.path / "ledger" / run).open("ab", buffering=0) as ledger:
                line = f"{number} {graph}{name}".encode()
                ledger.write(b"\n%s %08x " % (line, zlib.crc32(line)))
            if time.monotonic() - self._synced >= SYNC_SECONDS:
                self._connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
                self._synced = time.monotonic()

    def requests(self) -> list[dict[str, Any]]:
        """All requests that can be read, oldest first."""
        return self.read_requests()[0]

    def read_requests(self) -> tuple[list[dict[str, Any]], dict[str, StoreError]]:
        """All requests, oldest first, and the problems of those that are lost, by name."""
        with storage_errors(self.path, "read"):
            stored = Stored(self.path, _REQUESTS)
            rows = sorted(stored, key=lambda row: row.number)
        found = [json.loads(row.content) for row in rows]
        names = {request["name"] for request in found}
        lost = {stored.ledger[graph][1] for graph in stored.lost} - names
        return found, {name: _lost_request(self.path, name) for name in lost}

    def open(self) -> None:
        """Open the database, and write it anew if that is impossible."""
        unclean = len(_files(self.path)) > 1
        try:
            self._connect()
        except sqlite3.Error as error:
            if not _is_damage(error):
                raise
            self._repair()
        # before the log, in which something may be found, is overwritten
        for run in (_REQUESTS, *_runs(self.path)) if unclean else ():
            self._checked(run)

    def _connect(self) -> None:
        file = self.path / _DATABASE
        self._connection = sqlite3.connect(file, timeout=_PATIENCE, isolation_level=None)
        # a log needs memory that processes share, which machines cannot
        mode = "TRUNCATE" if _is_on_network(self.path) else "WAL"
        for pragma in (f"page_size={_PAGE}", f"journal_mode={mode}", "synchronous=NORMAL"):
            self._connection.execute(f"PRAGMA {pragma}").fetchall()
        _tables(self._connection)

    def close(self) -> None:
        """Write everything to the disk and into one file."""
        if self._connection is not None:
            connection, self._connection = self._connection, None
            try:
                with closing(connection):
                    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                    connection.execute("PRAGMA journal_mode=DELETE")
            except sqlite3.Error as error:
                # not raised, because it would hide the error that ended the run; what is in the
                # log is read by the next process
                _LOG.warning("%s was not closed: %s", self.path / _DATABASE, error)

    def _repair(self) -> None:
        """Write all rows that are as they were written to a new database."""
        damaged, new = self.path / f"damaged-{time.time_ns()}", self.path / f".{_DATABASE}.new"
        new.unlink(missing_ok=True)
        with closing(sqlite3.connect(new, isolation_level=None)) as connection:
            connection.execute(f"PRAGMA page_size={_PAGE}")
            connection.execute("BEGIN")
            for run in (_REQUESTS, *_runs(self.path)):
                connection.execute(_TABLE.format(run))
                connection.executemany(
                    f'INSERT INTO "{run}" VALUES (?, ?)',
                    ((row.graph, sealed(row)) for row in Stored(self.path, run, quiet=True)),
                )
            connection.execute("COMMIT")
        damaged.mkdir()
        for file in _files(self.path):
            shutil.copy2(file, damaged)
        self.close()  # which deletes the log
        for file in _files(self.path)[1:]:
            file.unlink()  # it would be applied to the new database
        new.replace(self.path / _DATABASE)
        _LOG.warning("%s was written anew: as it was before, it is in %s", self.path, damaged)
        self._connect()


@contextmanager
def open_store(path: str | os.PathLike[str]) -> Iterator[Store]:
    """A store to write to, created if needed, for this process alone.

    Raises
    ------
    StoreInUse
        If another process has it open.
    StoreError
        If it is not a store, was written in another format, or cannot be written.
    """
    path = Path(path)
    mark = path / "store.json"
    with ExitStack() as stack:
        with storage_errors(path):
            if path.exists() and not path.is_dir():
                raise StoreError(f"a store is a directory (got the file {path})")
            path.mkdir(parents=True, exist_ok=True)
            # a process that was killed at the very beginning has left only these
            expected = {path / "lock", path / "lock.holder", *unfinished_files(path)}
            others = sorted(set(path.iterdir()) - expected)
            if others and not mark.exists():
                name = others[0].name
                raise StoreError(f"{path} is not a store: it has no store.json, but {name!r}")
            stack.enter_context(locked(path / "lock"))
            if not mark.exists():
                write_atomically(mark, json.dumps({"format": FORMAT}).encode())
            check_format(path)
            for name in ("ledger", "trained"):
                (path / name).mkdir(exist_ok=True)
            for unfinished in (*unfinished_files(path), *unfinished_files(path / "trained")):
                unfinished.unlink()
            store = Store(path)
            store.open()
            stack.callback(store.close)
        yield store


def read(
    store: str | os.PathLike[str],
    *,
    run: str | None = None,
    columns: Sequence[str] | None = None,
) -> pa.Table:
    """Read the rows of a store, even while another process is writing to it.

    A row that is damaged or lost is not read; a warning in the log names it.

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
        If there is no store, it was written in another format, or cannot be read.
    """
    path = Path(store)
    check_format(path)
    for name in columns or ():
        if name not in SCHEMA.names:
            raise ValueError(unknown("column", name, SCHEMA.names))
    schema = SCHEMA if columns is None else pa.schema([SCHEMA.field(name) for name in columns])
    tables = [schema.empty_table()]
    with storage_errors(path, "read"):
        for name in _runs(path) if run is None else (run,):
            contents = {row.graph: row.content for row in Stored(path, name)}
            lines = [contents.pop(graph) for graph in sorted(contents)]
            tables += [
                as_table(lines[at : at + _BATCH], schema) for at in range(0, len(lines), _BATCH)
            ]
    return pa.concat_tables(tables)


def counts(store: str | os.PathLike[str], run: str) -> tuple[int, int]:
    """How many graphs of a run are explained, and how many failed."""
    with storage_errors(Path(store), "read"):
        failed = [row.failed for row in Stored(Path(store), run)]
    return len(failed) - sum(failed), sum(failed)


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
def storage_errors(path: Path, doing: str = "write to") -> Iterator[None]:
    """Turn errors of the file system and of SQLite into StoreError."""
    try:
        yield
    except sqlite3.Error as error:
        reason = _REASONS.get(getattr(error, "sqlite_errorname", ""), "the file system failed")
        raise StoreError(_cannot(doing, path, reason, error)) from error
    except OSError as error:
        reason = _REASONS.get(errno.errorcode.get(error.errno or 0, ""), "the file system failed")
        raise StoreError(_cannot(doing, path, reason, error)) from error


def _cannot(doing: str, path: Path, reason: str, error: Exception) -> str:
    return (
        f"cannot {doing} the store at {path}: {reason} ({error}). What was stored before is safe: "
        "fix the problem and resume"
    )


def _lost_request(path: Path, name: str) -> StoreError:
    return StoreError(
        f"{path} is damaged: what the run {name} was to do is lost. Its rows are not: run its "
        "specification again, which continues the run"
    )


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Hold a lock on a file inside the block; it ends with the process, even if that is killed.

    ``<name>.holder`` next to it names the last process that held it.

    Raises
    ------
    StoreInUse
        At once, if another process or another thread of this one holds it.
    """
    holder = path.with_suffix(".holder")
    with closing(sqlite3.connect(path, timeout=0, isolation_level=None)) as connection:
        try:
            connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            raise StoreInUse(
                f"{path.parent} is in use by {_describe(holder)}: wait until it has ended, or use "
                "another store"
            ) from None
        process = {"pid": os.getpid(), "host": socket.gethostname(), "since": time.time()}
        holder.write_text(json.dumps(process), encoding="utf-8")
        yield


def _describe(holder: Path) -> str:
    try:
        process = json.loads(holder.read_text(encoding="utf-8"))
        since = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(process["since"]))
        return f"process {process['pid']} on {process['host']} since {since}"
    except (OSError, ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return "another process"


@contextmanager
def _reading(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection that reads what is stored now, also where nothing can be written."""
    file = path / _DATABASE
    if not file.exists():
        with closing(sqlite3.connect(":memory:")) as connection:
            yield connection
        return
    with ExitStack() as stack:
        uri, beside = file.absolute().as_uri(), _files(path)[1:]
        try:
            connection = sqlite3.connect(f"{uri}?mode=ro", timeout=_PATIENCE, uri=True)
            stack.enter_context(closing(connection))
            _tables(connection)
        except sqlite3.OperationalError:
            # its log cannot be shared with others here, or is to be rolled back
            if beside:
                folder = Path(stack.enter_context(TemporaryDirectory()))
                for each in (file, *beside):
                    shutil.copy(each, folder)
                connection = sqlite3.connect(folder / _DATABASE)
            else:
                connection = sqlite3.connect(f"{uri}?immutable=1", uri=True)
            stack.enter_context(closing(connection))
        yield connection


def _is_damage(error: Exception) -> bool:
    """Whether an error comes from the content of a file, not from the system."""
    # what cannot be decoded, or is too large for the memory, has no code
    return getattr(error, "sqlite_errorcode", sqlite3.SQLITE_ERROR) & 0xFF in _DAMAGES


def _tables(connection: sqlite3.Connection) -> set[str]:
    """The tables of a database; raises if it cannot be read."""
    return {name for (name,) in connection.execute("SELECT name FROM sqlite_master")}


def _runs(path: Path) -> list[str]:
    """The runs that have rows, also those whose tables are lost."""
    found = {file.name for file in (path / "ledger").glob("*")}
    with suppress(sqlite3.DatabaseError), _reading(path) as connection:
        found |= _tables(connection)
    return sorted(name for name in found - {_REQUESTS} if _RUN.fullmatch(name))


def _files(path: Path) -> list[Path]:
    """The database, and what SQLite has put beside it."""
    files = [path / f"{_DATABASE}{ending}" for ending in ("", *_BESIDE)]
    return [file for file in files if file.exists()]


def _ledger(path: Path, run: str) -> dict[int, tuple[int, str]]:
    """For every graph whose row was stored, the number of the last one, and a name."""
    lines: list[bytes] = []
    with suppress(FileNotFoundError):
        lines = (path / "ledger" / run).read_bytes().splitlines()
    found = [match.groups() for line in lines if (match := _LINE.fullmatch(line))]
    return {
        int(graph): (int(number), (name or b"").decode())
        for line, number, graph, name, checksum in found
        if checksum == b"%08x" % zlib.crc32(line)
    }


def _scan(path: Path) -> Iterator[Row]:
    """Every row in the files that is in one piece, whatever their structure; some repeatedly."""
    for file in _files(path):
        content = file.read_bytes()
        for match in re.finditer(re.escape(_MAGIC), content):
            if (row := unsealed(content, match.start())) is not None:
                yield row


def _is_on_network(path: Path) -> bool:
    """Whether other machines may have the file system too, as far as this one says."""
    path = path.absolute()
    try:
        mounts = [line.split() for line in Path("/proc/self/mounts").read_text().splitlines()]
    except OSError:
        return str(path).startswith(("\\\\", "//"))
    above = [(len(at), kind) for _, at, kind, *_ in mounts if path.is_relative_to(at)]
    return bool(_NETWORKS.search(max(above, default=(0, ""))[1]))
