"""Tables of molecules as users have them: CSV, TSV, SMILES files, SDF and Parquet.

Rows are read one after the other, so the first ten rows of a file of any length cost nothing. A row
that cannot be read is reported with its line and the reason, and the others go on.
"""

from __future__ import annotations

import codecs
import csv
import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any

from gstarx._internal.messages import listed, quoted
from gstarx._internal.molecules import rdkit_messages
from gstarx._internal.optional import require

#: Usual names of columns, the most telling first; compared without case.
SMILES_COLUMNS = ("smiles", "canonical_smiles", "isomeric_smiles", "structure", "mol", "molecule")
NAME_COLUMNS = ("name", "id", "title", "compound", "compound_id", "molecule_name", "mol_id", "cid")
LABEL_COLUMNS = ("label", "class", "target", "y", "activity", "active")
SUFFIXES = (".csv", ".tsv", ".smi", ".sdf", ".parquet")

#: The longest line that is read, in bytes; a file of one endless line is no table.
_LONGEST_LINE = 1 << 26


class TableError(ValueError):
    """A table cannot be read at all."""


class WrongColumnsError(TableError):
    """A table does not have the requested columns."""


@dataclass(frozen=True)
class UnreadableRow:
    """A row of a raw file that gave no graph.

    Attributes
    ----------
    line
        Its line in the file, from one.
    text
        What could not be read, as it is written there.
    reason
        Why, in RDKit's words where it was RDKit that refused it.
    name
        The name of the molecule, where the file has one.
    """

    line: int
    text: str
    reason: str = ""
    name: str | None = None

    @property
    def in_words(self) -> str:
        """The reason, and what could not be read."""
        return f"{self.reason or 'not readable'}: {quoted(self.text)}"

    def __str__(self) -> str:
        named = f" ({self.name})" if self.name else ""
        return f"line {self.line}{named}: {self.in_words}"


@dataclass(frozen=True)
class TableRow:
    """A row of a table: its line from one, and its cells by column."""

    line: int
    cells: dict[str, str]


@dataclass(frozen=True)
class Columns:
    """Which columns of a table mean what; ``None`` where there is no such column."""

    smiles: str
    name: str | None = None
    labels: tuple[str, ...] = ()
    split: str | None = None


@dataclass
class Table:
    """An open table: its columns, and its rows one after the other, those that are broken too."""

    path: Path
    header: tuple[str, ...]
    rows: Iterator[TableRow | UnreadableRow]

    def columns(
        self,
        *,
        smiles: str | None = None,
        name: str | None = None,
        label: str | None = None,
        split: str | None = None,
    ) -> Columns:
        """The columns as named, or else found by their usual names.

        Without a ``label`` and without a column of a usual name there are no labels.
        """
        found_smiles = self._named(smiles) or self._usual(SMILES_COLUMNS)
        if found_smiles is None:
            containing = [column for column in self.header if "smiles" in column.lower()]
            if len(containing) != 1:
                raise WrongColumnsError(
                    f"{self.path} has no column 'smiles' (its columns: {listed(self.header)}): "
                    "name the column of molecules with --smiles-column"
                )
            (found_smiles,) = containing
        if label is not None:
            labels = tuple(str(self._named(part.strip())) for part in label.split(","))
        else:
            usual = self._usual(LABEL_COLUMNS)
            labels = () if usual is None else (usual,)
        return Columns(
            found_smiles, self._named(name) or self._usual(NAME_COLUMNS), labels, self._named(split)
        )

    def _named(self, column: str | None) -> str | None:
        if column is None or column in self.header:
            return column
        same = [known for known in self.header if known.lower() == column.lower()]
        if len(same) == 1:
            return same[0]
        raise WrongColumnsError(
            f"{self.path} has no column {quoted(column)} (its columns: {listed(self.header)})"
        )

    def _usual(self, names: Sequence[str]) -> str | None:
        by_name = {column.lower(): column for column in reversed(self.header)}
        return next((by_name[name] for name in names if name in by_name), None)


def open_table(path: Path, *, delimiter: str | None = None) -> Table:
    """Open a table by the ending of its name.

    Parameters
    ----------
    path
        A ``.csv``, ``.tsv``, ``.smi``, ``.sdf`` or ``.parquet`` file.
    delimiter
        What separates the cells of a CSV file; by default a tab in ``.tsv`` files, and otherwise
        whichever of comma, semicolon and tab the header has most of.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        When there is no file.
    TableError
        When it is empty, is no table of this kind, or its header cannot be read.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, where a file of molecules is expected")
    if not path.is_file():
        raise FileNotFoundError(f"there is no table of molecules at {path}")
    suffix = path.suffix.lower()
    readers: dict[str, Callable[[Path], Table]] = {
        ".smi": _smiles_file,
        ".sdf": _structure_file,
        ".parquet": _parquet_file,
    }
    if suffix in readers:
        return readers[suffix](path)
    if suffix in (".csv", ".tsv", ".txt"):
        return _delimited_file(path, "\t" if suffix == ".tsv" else delimiter)
    raise TableError(f"{path}: tables are read from {', '.join(SUFFIXES)} (got {path.suffix!r})")


def present_columns(path: Path, names: Sequence[str]) -> str | None:
    """The names, separated by commas, if the table there has all these columns."""
    if not names or path.suffix.lower() not in SUFFIXES or not path.is_file():
        return None
    return ",".join(names) if set(names) <= set(open_table(path).header) else None


def selected_rows(
    table: Table,
    *,
    delimiter: str | None = None,
    limit: int | None,
    sample: int | None,
    seed: int,
) -> Iterator[TableRow | UnreadableRow]:
    """The first rows of a table, or a random sample of them in their order.

    A row that is broken counts as well. A sample takes two passes, of which the first only counts.
    """
    if limit is not None and sample is not None:
        raise ValueError(f"say limit or sample, not both (got {limit} and {sample})")
    for name, count in (("limit", limit), ("sample", sample)):
        if count is not None and count < 1:
            raise ValueError(f"{name} must be at least 1 (got {count})")
    if sample is None:
        return islice(table.rows, limit)
    total = sum(1 for _ in open_table(table.path, delimiter=delimiter).rows)
    drawn = set(random.Random(seed).sample(range(total), min(sample, total)))
    return (row for at, row in enumerate(table.rows) if at in drawn)


def _delimited_file(path: Path, delimiter: str | None) -> Table:
    start, lines = _first_lines(path)
    if delimiter is None:
        delimiter = max(",;\t", key=lambda mark: (start[-1].count(mark), mark == ","))
    latest = [""]

    def remembered() -> Iterator[str]:
        for latest[0] in chain(start, lines):
            yield latest[0]

    reader = csv.reader(remembered(), delimiter=delimiter, strict=True)
    try:
        header = tuple(cell.strip() for cell in next(row for row in reader if row))
    except csv.Error as error:
        raise TableError(f"{path} line {len(start)}: {error} (got {quoted(start[-1])})") from error
    twice = sorted(name for name, count in Counter(header).items() if name and count > 1)
    if twice:
        raise WrongColumnsError(f"{path} has two columns of one name: {listed(twice)}")
    return Table(path, header, _delimited_rows(path, header, reader, latest))


def _delimited_rows(
    path: Path, header: Sequence[str], reader: Any, latest: list[str]
) -> Iterator[TableRow | UnreadableRow]:
    """The rows that a reader finds; ``latest`` holds the line that it read last."""
    width, before = len(header), reader.line_num
    while True:
        try:
            cells = [cell.strip() for cell in next(reader)]
        except StopIteration:
            return
        except csv.Error as error:
            if reader.line_num - before > 1:  # a quotation mark swallowed the lines after it
                raise TableError(
                    f"{path} line {before + 1}: {error}; expected cells in quotation marks "
                    "that are closed again, or in none"
                ) from error
            yield UnreadableRow(reader.line_num, latest[0].strip()[:200], str(error))
            before = reader.line_num
            continue
        before = reader.line_num
        if not any(cells):
            continue
        if len(cells) != width:
            reason = f"{len(cells)} cells where the header has {width}"
            yield UnreadableRow(reader.line_num, " ".join(cells)[:200], reason)
            continue
        yield TableRow(reader.line_num, dict(zip(header, cells, strict=True)))


def _smiles_file(path: Path) -> Table:
    start, lines = _first_lines(path)

    def rows() -> Iterator[TableRow]:
        for line, text in enumerate(chain(start, lines), start=1):
            parts = text.split(maxsplit=1)
            if not parts or (line == 1 and parts[0].lower() in SMILES_COLUMNS):
                continue  # some programs write a header
            yield TableRow(line, {"smiles": parts[0], "name": "".join(parts[1:]).strip()})

    return Table(path, ("smiles", "name"), rows())


def _first_lines(path: Path) -> tuple[list[str], Iterator[str]]:
    """The lines up to the first that is not blank, and those after it."""
    lines = _text_lines(path)
    start: list[str] = []
    for text in lines:
        start.append(text)
        if text.strip():
            return start, lines
    raise TableError(f"{path} is empty")


def _text_lines(path: Path) -> Iterator[str]:
    """The lines of a text file in UTF-8, with or without a byte-order mark, as they are read."""
    with path.open("rb") as file:
        number = 0
        while raw := file.readline(_LONGEST_LINE):
            number += 1
            if number == 1:
                if raw.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
                    raise TableError(f"{path} line 1: this is UTF-16: save the file in UTF-8")
                raw = raw.removeprefix(codecs.BOM_UTF8)
                if b"\r" in raw and not raw.endswith(b"\n"):  # lines end as on old Macs
                    yield from _decoded(path, raw.split(b"\r"))
                    return
            if len(raw) == _LONGEST_LINE:
                raise TableError(f"{path} line {number}: longer than {_LONGEST_LINE:,} bytes")
            yield from _decoded(path, [raw], number)


def _decoded(path: Path, lines: Iterable[bytes], start: int = 1) -> Iterator[str]:
    """Lines as text, the first of which has the number ``start``."""
    for number, raw in enumerate(lines, start):
        wrong = raw.find(b"\0")
        try:
            text = raw.decode()
        except UnicodeDecodeError as error:
            wrong = error.start
        if wrong >= 0:
            raise TableError(
                f"{path} line {number}: not a text in UTF-8 (got the byte 0x{raw[wrong]:02x}): "
                "it is in another encoding, or no text"
            )
        yield text


def _structure_file(path: Path) -> Table:
    """The records of an SDF, each up to its ``$$$$``; properties are columns."""
    first = next(_records(path), None)
    if first is None:
        raise TableError(f"{path} is empty")
    properties: list[str] = []
    for _, block in islice(_records(path), 100):
        properties += [name for name in _properties(block) if name not in properties]
    taken = ("smiles", "name")
    header = (*taken, *(name for name in properties if name not in taken))

    def rows() -> Iterator[TableRow | UnreadableRow]:
        for line, block in _records(path):
            title = block.partition("\n")[0].strip()
            molecule, reason = _from_block(block)
            if molecule is None:
                yield UnreadableRow(line, f"record at line {line}", reason, title or None)
                continue
            chem = require("rdkit.Chem", extra="molecules")
            own = _properties(block)
            cells = {name: own.get(name, "") for name in header[2:]}
            name = title or own.get("name", "")
            yield TableRow(line, {"smiles": chem.MolToSmiles(molecule), "name": name, **cells})

    return Table(path, header, rows())


def _records(path: Path) -> Iterator[tuple[int, str]]:
    """The records of an SDF with their first lines; what follows the last ``$$$$`` is one too."""
    start = 1
    lines: list[str] = []
    for number, text in enumerate(_text_lines(path), start=1):
        if text.startswith("$$$$"):
            yield start, "".join(lines)
            start, lines = number + 1, []
        else:
            lines.append(text)
    if any(text.strip() for text in lines):
        yield start, "".join(lines)


def _properties(block: str) -> dict[str, str]:
    """The data items of a record: the first line of each."""
    lines = iter(block.splitlines())
    items: dict[str, str] = {}
    for line in lines:
        if line.startswith(">") and "<" in line:
            items[line.partition("<")[2].partition(">")[0].strip()] = next(lines, "").strip()
    return items


def _from_block(block: str) -> tuple[Any, str]:
    chem = require("rdkit.Chem", extra="molecules")
    with rdkit_messages() as reason:
        molecule = chem.MolFromMolBlock(block.partition("M  END")[0] + "M  END\n")
    if molecule is None or not molecule.GetNumAtoms():
        return None, reason() or "a record without atoms"
    return molecule, ""


def _parquet_file(path: Path) -> Table:
    parquet = require("pyarrow.parquet", extra="runs")
    try:
        file = parquet.ParquetFile(path)
    except (OSError, ValueError) as error:  # ArrowInvalid is a ValueError
        raise TableError(f"{path} is no readable Parquet file: {error}") from error
    header = tuple(file.schema_arrow.names)

    def rows() -> Iterator[TableRow]:
        line = 0
        for batch in file.iter_batches(batch_size=1_000):
            for row in batch.to_pylist():
                line += 1
                cells = {k: "" if v is None else str(v).strip() for k, v in row.items()}
                yield TableRow(line, cells)

    return Table(path, header, rows())
