"""Tables of molecules as users have them: CSV, TSV, SMILES files, SDF, Parquet and Excel.

Rows are read one after the other, so the first ten rows of a file of any length cost nothing. A row
that cannot be read is reported with its line and the reason, and the others go on.
"""

from __future__ import annotations

import codecs
import csv
import random
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

from gstarx._internal.imports import require
from gstarx._internal.messages import listed, quoted
from gstarx._internal.molecules import rdkit_messages
from gstarx.datasets import TABLES, UnreadableRow

#: Usual names of columns, the most telling first; compared without case.
SMILES_COLUMNS = ("smiles", "canonical_smiles", "isomeric_smiles", "structure", "mol", "molecule")
NAME_COLUMNS = ("name", "id", "title", "compound", "compound_id", "molecule_name", "mol_id", "cid")
LABEL_COLUMNS = ("label", "class", "target", "y", "activity", "active")


#: The longest line that is read, in bytes; a file of one endless line is no table.
_LONGEST_LINE = 1 << 26


class TableError(ValueError):
    """A table cannot be read at all."""


class WrongColumnsError(TableError):
    """A table does not have the requested columns."""


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
    """An open table: its columns, and its rows one after the other, those that are broken too.

    The ``delimiter`` is that of a CSV file; other files have none.
    """

    path: Path
    header: tuple[str, ...]
    rows: Iterator[TableRow | UnreadableRow]
    delimiter: str | None = None

    def columns(
        self,
        *,
        smiles: str | None = None,
        name: str | None = None,
        label: str | None = None,
        split: str | None = None,
    ) -> Columns:
        """The columns as named, or else found by their usual names; ``name=""`` for no names.

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
        names = None if name == "" else self._named(name) or self._usual(NAME_COLUMNS)
        return Columns(found_smiles, names, labels, self._named(split))

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


def open_table(path: Path, *, delimiter: str | None = None, encoding: str | None = None) -> Table:
    """Open a table by the ending of its name.

    Parameters
    ----------
    path
        A ``.csv``, ``.tsv``, ``.smi``, ``.sdf``, ``.parquet`` or ``.xlsx`` file, of which the first
        sheet is read.
    delimiter
        What separates the cells of a CSV file; by default a tab in ``.tsv`` files, and otherwise
        whichever of comma, semicolon and tab the header has most of.
    encoding
        The encoding of a text, such as ``"latin-1"``; detected by default.

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
    binary: dict[str, Callable[[Path], Table]] = {
        ".parquet": _parquet_file,
        ".xlsx": _excel_file,
    }
    if suffix in binary:
        return binary[suffix](path)
    if suffix == ".smi":
        return _smiles_file(path, encoding)
    if suffix == ".sdf":
        return _structure_file(path, encoding)
    if suffix in (".csv", ".tsv", ".txt"):
        return _delimited_file(path, "\t" if suffix == ".tsv" else delimiter, encoding)
    raise TableError(f"{path}: tables are read from {', '.join(TABLES)} (got {path.suffix!r})")


def present_columns(path: Path, names: Sequence[str], encoding: str | None = None) -> str | None:
    """The names, separated by commas, if the table there has all these columns."""
    if not names or path.suffix.lower() not in TABLES or not path.is_file():
        return None
    header = open_table(path, encoding=encoding).header
    return ",".join(names) if set(names) <= set(header) else None


def selected_rows(
    table: Table,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
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
    total = sum(1 for _ in open_table(table.path, delimiter=delimiter, encoding=encoding).rows)
    drawn = set(random.Random(seed).sample(range(total), min(sample, total)))
    return (row for at, row in enumerate(table.rows) if at in drawn)


def _delimited_file(path: Path, delimiter: str | None, encoding: str | None) -> Table:
    start, lines = _first_lines(path, encoding)
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
    _check_header(path, header)
    return Table(path, header, _delimited_rows(path, header, reader, latest), delimiter)


def _check_header(path: Path, header: Sequence[str]) -> None:
    twice = sorted(name for name, count in Counter(header).items() if name and count > 1)
    if twice:
        raise WrongColumnsError(f"{path} has two columns of one name: {listed(twice)}")


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


def _smiles_file(path: Path, encoding: str | None) -> Table:
    start, lines = _first_lines(path, encoding)

    def rows() -> Iterator[TableRow]:
        for line, text in enumerate(chain(start, lines), start=1):
            parts = text.split(maxsplit=1)
            if not parts or (line == 1 and parts[0].lower() in SMILES_COLUMNS):
                continue  # some programs write a header
            yield TableRow(line, {"smiles": parts[0], "name": "".join(parts[1:]).strip()})

    return Table(path, ("smiles", "name"), rows())


def _first_lines(path: Path, encoding: str | None) -> tuple[list[str], Iterator[str]]:
    """The lines up to the first that is not blank, and those after it."""
    lines = _text_lines(path, encoding)
    start: list[str] = []
    for text in lines:
        start.append(text)
        if text.strip():
            return start, lines
    raise TableError(f"{path} is empty")


def _text_lines(path: Path, encoding: str | None = None) -> Iterator[str]:
    """The lines of a text file as they are read, in its encoding or in the one that it seems to be.

    A byte-order mark says UTF-8 or UTF-16. Otherwise the file is in UTF-8, unless a byte is not and
    no earlier one was more than ASCII: then it is in Windows-1252, which has Latin-1's letters.
    """
    with path.open("rb") as file:
        start = file.read(4)
    if encoding is None and start.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        encoding = "utf-16"
    return _lines_in(path, encoding) if encoding else _detected_lines(path)


def _lines_in(path: Path, encoding: str) -> Iterator[str]:
    """The lines of a text file in a known encoding."""
    name = _known_encoding(encoding)
    number = 0
    with path.open(encoding=name, newline="") as file:
        try:
            while text := file.readline(_LONGEST_LINE):
                number += 1
                if len(text) == _LONGEST_LINE:
                    raise TableError(f"{path} line {number}: longer than {_LONGEST_LINE:,} bytes")
                yield text
        except UnicodeError as error:
            raise TableError(f"{path} is not a text in {name}: {error}") from error


def _known_encoding(encoding: str) -> str:
    try:
        name = codecs.lookup(encoding).name
        "".encode(name)  # some codecs, such as hex, are not about text
    except LookupError as error:
        raise TableError(
            "encoding must be one that Python knows, such as 'latin-1', 'cp1252' or 'utf-16' "
            f"(got {quoted(encoding)})"
        ) from error
    return "utf-8-sig" if name == "utf-8" else name


def _detected_lines(path: Path) -> Iterator[str]:
    encoding, certain = "utf-8", False
    for number, raw in enumerate(_raw_lines(path), start=1):
        if number == 1:
            certain = raw.startswith(codecs.BOM_UTF8)
            raw = raw.removeprefix(codecs.BOM_UTF8)
        try:
            text, wrong = raw.decode(encoding), raw.find(b"\0")
        except UnicodeDecodeError as error:
            text, wrong = "", error.start
        if wrong >= 0 and not certain and b"\0" not in raw:
            encoding = "cp1252" if _fits(raw, "cp1252") else "latin-1"
            warnings.warn(
                f"{path} line {number} is not in UTF-8 (got the byte 0x{raw[wrong]:02x}): the file "
                f"is read as {encoding}; name its encoding with --encoding (encoding=) if letters "
                "are wrong",
                stacklevel=2,
            )
            text, wrong = raw.decode(encoding), -1
        if wrong >= 0:
            raise TableError(
                f"{path} line {number}: not a text in UTF-8 (got the byte 0x{raw[wrong]:02x}): it "
                "is no text, or name its encoding with --encoding"
            )
        certain |= not raw.isascii()
        yield text


def _raw_lines(path: Path) -> Iterator[bytes]:
    number = 0
    with path.open("rb") as file:
        while raw := file.readline(_LONGEST_LINE):
            number += 1
            if number == 1 and b"\r" in raw and not raw.endswith(b"\n"):  # as on old Macs
                yield from raw.split(b"\r")
                return
            if len(raw) == _LONGEST_LINE:
                raise TableError(f"{path} line {number}: longer than {_LONGEST_LINE:,} bytes")
            yield raw


def _fits(raw: bytes, encoding: str) -> bool:
    try:
        raw.decode(encoding)
    except UnicodeDecodeError:
        return False
    return True


def _structure_file(path: Path, encoding: str | None) -> Table:
    """The records of an SDF, each up to its ``$$$$``; properties are columns."""
    first = next(_records(path, encoding), None)
    if first is None:
        raise TableError(f"{path} is empty")
    properties: list[str] = []
    for _, block in islice(_records(path, encoding), 100):
        properties += [name for name in _properties(block) if name not in properties]
    taken = ("smiles", "name")
    header = (*taken, *(name for name in properties if name not in taken))

    def rows() -> Iterator[TableRow | UnreadableRow]:
        for line, block in _records(path, encoding):
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


def _records(path: Path, encoding: str | None) -> Iterator[tuple[int, str]]:
    """The records of an SDF with their first lines; what follows the last ``$$$$`` is one too."""
    start = 1
    lines: list[str] = []
    for number, text in enumerate(_text_lines(path, encoding), start=1):
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


def _excel_file(path: Path) -> Table:
    """The first sheet of a workbook; of formulas, the results that were stored."""
    excel = require("openpyxl", extra="excel")
    try:
        book = excel.load_workbook(path, read_only=True, data_only=True)
    except (OSError, ValueError, KeyError, BadZipFile) as error:
        raise TableError(f"{path} is no readable Excel workbook: {error}") from error
    lines = enumerate(book.worksheets[0].iter_rows(values_only=True), start=1)
    filled = ((line, [_excel_cell(cell) for cell in cells]) for line, cells in lines)
    written = ((line, cells) for line, cells in filled if any(cells))
    first = next(written, None)
    if first is None:
        raise TableError(f"{path} is empty")
    header = tuple(first[1])
    _check_header(path, header)

    def rows() -> Iterator[TableRow]:
        for line, cells in written:
            yield TableRow(line, dict(zip(header, cells, strict=False)))
        book.close()

    return Table(path, header, rows())


def _excel_cell(value: Any) -> str:
    # a workbook does not tell 1 from 1.0
    whole = isinstance(value, float) and value.is_integer()
    return "" if value is None else str(int(value) if whole else value).strip()
