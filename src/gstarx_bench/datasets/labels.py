"""Labels as tables write them: classes, yes or no for several targets, or numbers."""

from __future__ import annotations

import math
import warnings
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gstarx._internal.arguments import one_of
from gstarx._internal.messages import listed, quoted
from gstarx.registry import TASKS
from gstarx_bench.datasets.tables import Table

#: How tables write that something was not measured.
_MISSING = ("", "na", "n/a", "nan", "none", "null", "-", "?")
#: Words that people mean the same by, however they capitalize them; of others it may matter. They
#: are English, German, French, Spanish, Italian, Portuguese, Dutch, Swedish and Polish.
_WORDS = """
    yes no true false active inactive positive negative
    ja nein wahr falsch aktiv inaktiv positiv negativ
    oui non vrai faux actif inactif positif négatif
    sí si verdadero falso activo inactivo positivo negativo
    sì vero attivo inattivo
    sim não nao verdadeiro ativo inativo
    nee waar onwaar actief inactief positief negatief
    nej sant falskt
    tak nie prawda fałsz
"""
_USUAL = frozenset(_WORDS.split())
#: A class this much rarer than the most frequent one of several is more likely a slip.
_RARE = 20
#: More classes than this, in more than half as many as rows, are no classes.
_MANY = 20


@dataclass(frozen=True)
class Labels:
    """The labels of the rows of a table.

    Attributes
    ----------
    task
        ``"classification"``, ``"binary"``, ``"multilabel"`` or ``"regression"``.
    values
        ``y`` of each row, or why it has none.
    class_names
        Of a classification, in order.
    target_names
        Of several targets or a regression, in order.
    """

    task: str
    values: list[Tensor | str]
    class_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()


def read_labels(
    table: Table, columns: Sequence[str], rows: Sequence[Sequence[str]], task: str | None
) -> Labels:
    """The labels in the cells of rows, a cell for each label column.

    Parameters
    ----------
    table, columns
        Where the labels are from, and the names of the targets.
    rows
        The cells of every row, as written. Numbers may have decimal commas, unless commas separate
        the cells of the table.
    task
        What the labels are; by default several columns of 0 and 1 are ``"multilabel"``, other
        numbers that are not whole are ``"regression"``, and everything else is a class.

    Raises
    ------
    ValueError
        When no row has a label of this kind, there is one class only, or nearly every row has a
        class of its own. A row without a proper label does not cost the others: its value is the
        reason.
    """
    if task is not None:
        one_of(task, TASKS, name="task")
    with_points, commas = _decimal_points(table, columns, rows)
    kind = task or _looks_like(with_points)
    if kind in ("classification", "binary"):
        if len(columns) > 1:
            raise ValueError(
                f"a {kind} has one column of labels (got {', '.join(columns)}): several targets "
                "are multilabel or regression"
            )
        return _classes(table, columns[0], [row[0] for row in rows], kind)
    if commas:
        warnings.warn(commas, stacklevel=2)
    values = [_numbers(row, kind) for row in with_points]
    if values and all(isinstance(value, str) for value in values):
        raise ValueError(
            f"{table.path}: no row has a label for {kind} in {', '.join(columns)}: {values[0]}"
        )
    return Labels(kind, values, target_names=tuple(columns))


def read_known_labels(
    table: Table,
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    task: str | None,
    class_names: Sequence[str],
    *,
    named: bool,
) -> Labels:
    """The labels of graphs that a network reads, as its classes or numbers.

    A cell that is no such label is none at all, with a warning: the graph can be explained without
    it. Columns that nobody ``named`` and that hold no label are about something else.
    """
    with_points, commas = _decimal_points(table, columns, rows)
    kind = task or ("classification" if class_names else _looks_like(with_points))
    values: list[Tensor | str]
    if kind in ("classification", "binary"):
        values = _known_classes([row[0] for row in rows], class_names)
        labels = Labels(kind, values, class_names=tuple(class_names))
    else:
        if commas:
            warnings.warn(commas, stacklevel=2)
        values = [_numbers(row, kind) for row in with_points]
        labels = Labels(kind, values, target_names=tuple(columns))
    wrong = [
        next(cell for cell in row if not _is_missing(cell))
        for row, value in zip(rows, values, strict=True)
        if isinstance(value, str) and not all(map(_is_missing, row))
    ]
    if wrong and (named or any(isinstance(value, Tensor) for value in values)):
        classes = f"; its classes: {listed(class_names)}" if labels.class_names else ""
        warnings.warn(
            f"{table.path}: no label of the network's {kind} in {listed(columns)} of "
            f"{len(wrong):,} of {len(rows):,} rows (such as {quoted(wrong[0])}{classes}): they are "
            "used without a label",
            stacklevel=2,
        )
    return labels


def _known_classes(cells: Sequence[str], class_names: Sequence[str]) -> list[Tensor | str]:
    """The classes of cells, as they are written or else in their normal form."""
    counts = Counter(map(normal_label, class_names))
    places = {normal_label(name): at for at, name in enumerate(class_names)}
    # a network may have told classes apart by their case: then only what is written counts
    places = {name: at for name, at in places.items() if counts[name] == 1}
    places |= {name: at for at, name in enumerate(class_names)}
    values: list[Tensor | str] = []
    for cell in cells:
        label = cell if cell in places else normal_label(cell)
        if not class_names and label.isdigit():
            values.append(torch.tensor([int(label)]))
        else:
            values.append(torch.tensor([places[label]]) if label in places else "no such class")
    return values


def _decimal_points(
    table: Table, columns: Sequence[str], rows: Sequence[Sequence[str]]
) -> tuple[list[list[str]], str]:
    """The cells with points instead of decimal commas, and what to say of it for numbers.

    A column has decimal commas if every comma in it can be one and no number has a point: beside
    6.5, the comma of 1,234 may separate thousands.
    """
    read = [list(column) for column in zip(*rows, strict=True)]
    changed: dict[str, str] = {}
    for name, column in zip(columns, read, strict=False) if table.delimiter != "," else ():
        commas = [cell for cell in column if "," in cell]
        if not all(_is_number(cell.replace(",", ".")) for cell in commas):
            continue
        if commas and not any("." in cell and _is_number(cell) for cell in column):
            changed[name] = f"{quoted(commas[0])} as {commas[0].replace(',', '.')}"
            column[:] = [cell.replace(",", ".") for cell in column]
    words = (
        f"{table.path}: the commas in {listed(list(changed))} are read as decimal commas "
        f"({next(iter(changed.values()), '')})"
    )
    return [list(row) for row in zip(*read, strict=True)], words if changed else ""


def _looks_like(rows: Sequence[Sequence[str]]) -> str:
    cells = [cell for row in rows for cell in row if not _is_missing(cell)]
    numbers = [_number(cell) for cell in cells]
    if any(number is None for number in numbers):
        return "classification"
    if rows and len(rows[0]) > 1:
        return "multilabel" if all(number in (0, 1) for number in numbers) else "regression"
    integers = all(number is not None and number.is_integer() for number in numbers)
    return "classification" if integers else "regression"


def _classes(table: Table, column: str, cells: Sequence[str], task: str) -> Labels:
    path = table.path
    labels = [(normal_label(cell), _no_class(cell)) for cell in cells]
    counts = Counter(label for label, why in labels if not why)
    if len(counts) < 2:
        if not counts and labels:
            raise ValueError(f"{path}: no row has a class in {quoted(column)}: {labels[0][1]}")
        raise ValueError(
            f"{path} needs at least two classes in {quoted(column)} (got only {listed([*counts])})"
        )
    names = sorted(counts, key=float) if all(map(_is_number, counts)) else sorted(counts)
    if task == "binary" and len(names) != 2:
        raise ValueError(
            f"{path}: a binary label has two values in {quoted(column)} (got {listed(names)})"
        )
    _refuse_many(table, column, len(names), counts.total())
    _warn_of_classes(path, column, counts)
    number = {name: at for at, name in enumerate(names)}
    values = [why or torch.tensor([number[label]]) for label, why in labels]
    return Labels(task, values, class_names=tuple(names))


def _refuse_many(table: Table, column: str, classes: int, rows: int) -> None:
    """Raise where nearly every row has a class of its own: these are numbers, names or notes."""
    if classes > _MANY and 2 * classes > rows:
        raise ValueError(
            f"{table.path}: {quoted(column)} has {classes:,} different values in {rows:,} rows, "
            "which are no classes. For numbers use --task regression (task='regression'); decimal "
            "commas, as in 6,32, are read where commas do not separate the cells and no number has "
            f"a point. Or name another column with --label (the columns: {listed(table.header)})"
        )


def _warn_of_classes(path: Path, column: str, counts: Counter[str]) -> None:
    """Warn of classes that may be slips: alike but for their case, or of few rows.

    Those that differ in case may be one class or, as Co and CO, two. Of a class of few rows beside
    two or more others, nothing can be learned.
    """
    spellings: dict[str, list[str]] = {}
    for name in sorted(counts):
        spellings.setdefault(name.strip().lower(), []).append(name)
    alike = [" and ".join(map(quoted, same)) for same in spellings.values() if len(same) > 1]
    if alike:
        warnings.warn(
            f"{path}: {quoted(column)} has classes that differ only in case ({listed(alike)}): "
            "they are different classes; write them alike if they are one",
            stacklevel=2,
        )
    most = max(counts.values())
    rare = sorted(n for n, c in counts.items() if c * _RARE <= most or (c == 1 and most > 4))
    if len(counts) > 2 and rare:
        shown = listed([f"{quoted(name)} {counts[name]:,}" for name in rare])
        warnings.warn(
            f"{path}: {quoted(column)} has {len(counts)} classes, some of them with few rows "
            f"({shown}; the most frequent one {most:,}): leave these cells empty if they are no "
            "classes of their own",
            stacklevel=2,
        )


def _no_class(cell: str) -> str:
    if _is_missing(cell):
        return "no label" if not cell else f"no label (got {quoted(cell)})"
    number = _number(cell)
    if number is not None and not number.is_integer():
        return f"a class is a whole number or a word (got {quoted(cell)})"
    return ""


def _numbers(cells: Sequence[str], task: str) -> Tensor | str:
    numbers = []
    for cell in cells:
        number = math.nan if _is_missing(cell) else _number(cell)
        if number is None:
            return f"a label of a {task} is a number (got {quoted(cell)})"
        if task == "multilabel" and number not in (0, 1) and not math.isnan(number):
            return f"a label of a multilabel task is 0, 1 or missing (got {quoted(cell)})"
        if math.isinf(number):
            return f"a label must be finite (got {quoted(cell)})"
        numbers.append(number)
    if all(math.isnan(number) for number in numbers):
        return "no label"
    return torch.tensor([numbers], dtype=torch.float32)


def normal_label(label: str) -> str:
    """A class as written, with whole numbers and the usual words in one form.

    >>> normal_label("1.0"), normal_label("-1"), normal_label("toxic"), normal_label("JA ")
    ('1', '-1', 'toxic', 'ja')
    """
    word = label.strip().lower()
    if word in _USUAL:
        return word
    number = _number(label)
    return str(int(number)) if number is not None and number.is_integer() else label


def _is_missing(cell: str) -> bool:
    return cell.strip().lower() in _MISSING


def _is_number(cell: str) -> bool:
    return _number(cell) is not None


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
