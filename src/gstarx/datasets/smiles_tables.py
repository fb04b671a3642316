"""Tables of molecules and their classes, as CSV files."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class MoleculeRow:
    """A row of a table: its line in the file from one, the SMILES, the class as written."""

    line: int
    smiles: str
    label: str


class WrongColumnsError(ValueError):
    """A table has not the columns that were asked for."""


def read_rows(path: Path, *, smiles: str, label: str, delimiter: str = ",") -> list[MoleculeRow]:
    """The molecules of a CSV file with a header line; blank lines are skipped.

    Raises
    ------
    FileNotFoundError
        When there is no file.
    WrongColumnsError
        When the header lacks one of the two columns.
    ValueError
        When the file is empty, not UTF-8, or has a line that does not fit the header, or lacks
        one of the two entries. The line is named.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no table of molecules at {path}")
    reader = csv.reader(io.StringIO(_text(path), newline=""), delimiter=delimiter, strict=True)
    rows = []
    try:
        header = [cell.strip() for cell in next(reader, [])]
        positions = _positions(path, header, smiles, label)
        for cells in reader:
            if not cells:
                continue
            if len(cells) != len(header):
                raise ValueError(
                    f"{path} line {reader.line_num}: expected {len(header)} columns as in the "
                    f"header (got {len(cells)}); the file may be cut short"
                )
            molecule, kind = (cells[position].strip() for position in positions)
            if not molecule or not kind:
                empty = label if molecule else smiles
                raise ValueError(f"{path} line {reader.line_num}: {empty!r} is empty")
            rows.append(MoleculeRow(reader.line_num, molecule, kind))
    except csv.Error as error:
        raise ValueError(f"{path} line {reader.line_num}: {error}") from error
    if not rows:
        raise ValueError(f"{path} holds no molecules")
    return rows


def class_names(path: Path, rows: Sequence[MoleculeRow]) -> tuple[str, ...]:
    """The different classes in order: whole numbers by size, words by the alphabet."""
    labels = {normal_label(row.label) for row in rows}
    numbers = {label for label in labels if _is_number(label)}
    for row in rows:
        # "nan" is how tables write a missing number.
        if _is_number(row.label) and not float(row.label).is_integer():
            raise ValueError(
                f"{path} line {row.line}: a class is a whole number or a word (got {row.label!r})"
            )
    if len(labels) < 2:
        raise ValueError(f"{path} needs at least two classes (got only {', '.join(labels)})")
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


def _text(path: Path) -> str:
    content = path.read_bytes()
    try:
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(f"{path} line {line}: not a text in UTF-8") from error


def _positions(path: Path, header: Sequence[str], *columns: str) -> list[int]:
    for column in columns:
        if column not in header:
            shown = ", ".join(map(repr, header[:8])) + (", ..." if len(header) > 8 else "")
            raise WrongColumnsError(
                f"{path} has no column {column!r}: its header has {shown or 'nothing'}"
            )
    return [header.index(column) for column in columns]
