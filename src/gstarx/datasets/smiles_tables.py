"""Tables of molecules and their classes, as CSV files."""

from __future__ import annotations

import codecs
import csv
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gstarx._internal.quoting import listed, quoted


@dataclass(frozen=True)
class MoleculeRow:
    """A row of a table: its line in the file from one, the SMILES, the class as written."""

    line: int
    smiles: str
    label: str


class WrongColumnsError(ValueError):
    """A table lacks a requested column."""


def read_rows(path: Path, *, smiles: str, label: str, delimiter: str = ",") -> list[MoleculeRow]:
    """The molecules of a CSV file with a header line; blank lines are skipped.

    Raises
    ------
    FileNotFoundError
        When there is no file.
    WrongColumnsError
        When the header lacks one of the two columns.
    ValueError
        When the file is empty, not UTF-8, or has a line that does not match the header, or lacks
        one of the two entries. The message names the line.
    """
    table = table_rows(path, delimiter)
    _, header = next(table)
    positions = _positions(path, header, smiles, label)
    rows = []
    for line, cells in table:
        molecule, kind = (cells[position] for position in positions)
        if not molecule or not kind:
            raise ValueError(f"{path} line {line}: {label if molecule else smiles!r} is empty")
        rows.append(MoleculeRow(line, molecule, kind))
    if not rows:
        raise ValueError(f"{path} holds no molecules")
    return rows


def table_rows(path: Path, delimiter: str = ",") -> Iterator[tuple[int, list[str]]]:
    """The rows of a CSV file, each with its line from one, the header first.

    Cells come without white space around them; blank lines are skipped.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        When there is no file.
    ValueError
        When the file is empty or not UTF-8 text, or a line does not match the header. The message
        names the line and quotes its beginning.
    """
    lines = io.StringIO(read_text(path), newline="").readlines()
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    columns = 0
    try:
        for row in reader:
            cells = [cell.strip() for cell in row]
            columns = columns or len(cells)
            if not cells:
                continue
            if len(cells) != columns:
                raise ValueError(
                    f"{path} line {reader.line_num}: expected {columns} columns as in the header "
                    f"(got {len(cells)}); the file may be cut short"
                )
            yield reader.line_num, cells
    except csv.Error as error:
        at = max(reader.line_num, 1)
        raise ValueError(
            f"{path} line {at}: {error} (got {quoted(lines[at - 1])}); expected cells with "
            f"{delimiter!r} between them, in quotation marks that are closed again or in none"
        ) from error


def read_text(path: Path) -> str:
    """The text of a file in UTF-8, with or without a byte-order mark; never empty.

    Raises
    ------
    FileNotFoundError, IsADirectoryError
        When there is no file.
    ValueError
        When it is empty, in another encoding, or not text. The message names the line.
    """
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a directory, where a file of molecules is expected")
    if not path.is_file():
        raise FileNotFoundError(f"there is no table of molecules at {path}")
    content = path.read_bytes()
    if content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        raise ValueError(f"{path} line 1: this is UTF-16: save the file as text in UTF-8")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _no_text(path, error.object, error.start) from error
    if b"\0" in content:
        raise _no_text(path, content, content.index(b"\0"))
    if not text.strip():
        raise ValueError(f"{path} is empty")
    return text


def _no_text(path: Path, content: bytes, at: int) -> ValueError:
    line = content.count(b"\n", 0, at) + 1
    return ValueError(
        f"{path} line {line}: not a text in UTF-8 (got the byte 0x{content[at]:02x}): it is in "
        "another encoding, or no text"
    )


def class_names(path: Path, rows: Sequence[MoleculeRow]) -> tuple[str, ...]:
    """The distinct classes in order: whole numbers by size, words alphabetically."""
    labels = {normal_label(row.label) for row in rows}
    numbers = {label for label in labels if _is_number(label)}
    for row in rows:
        # "nan" is how tables write a missing number.
        if _is_number(row.label) and not float(row.label).is_integer():
            raise ValueError(
                f"{path} line {row.line}: a class is a whole number or a word "
                f"(got {quoted(row.label)})"
            )
    if len(labels) < 2:
        raise ValueError(f"{path} needs at least two classes (got only {listed(list(labels))})")
    if numbers == labels:
        return tuple(sorted(labels, key=float))
    return tuple(sorted(labels))


def normal_label(label: str) -> str:
    """A class as written, with whole numbers in one form.

    >>> normal_label("1.0"), normal_label("-1"), normal_label("toxic")
    ('1', '-1', 'toxic')
    """
    if _is_number(label) and float(label).is_integer():
        return str(int(float(label)))
    return label


def _is_number(label: str) -> bool:
    try:
        float(label)
    except ValueError:
        return False
    return True


def _positions(path: Path, header: Sequence[str], *columns: str) -> list[int]:
    for column in columns:
        if column not in header:
            shown = ", ".join(map(quoted, header[:8])) + (", ..." if len(header) > 8 else "")
            raise WrongColumnsError(
                f"{path} has no column {quoted(column)}: its header has {shown}"
            )
    return [header.index(column) for column in columns]
