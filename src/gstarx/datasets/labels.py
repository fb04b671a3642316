"""Labels as tables write them: classes, yes or no for several targets, or numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor

from gstarx._internal.messages import listed, quoted
from gstarx.registry import TASKS

#: How tables write that something was not measured.
_MISSING = ("", "na", "n/a", "nan", "none", "null", "-", "?")


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
    path: Path, columns: Sequence[str], rows: Sequence[Sequence[str]], task: str | None
) -> Labels:
    """The labels in the cells of rows, a cell for each label column.

    Parameters
    ----------
    path, columns
        For messages, and the names of the targets.
    rows
        The cells of every row, as written.
    task
        What the labels are; by default several columns of 0 and 1 are ``"multilabel"``, other
        numbers that are not whole are ``"regression"``, and everything else is a class.

    Raises
    ------
    ValueError
        When no row has a label of this kind, or there is one class only. A row without a proper
        label does not cost the others: its value is the reason.
    """
    if task is not None and task not in TASKS:
        raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))} (got {task!r})")
    kind = task or _looks_like(rows)
    if kind in ("classification", "binary"):
        if len(columns) > 1:
            raise ValueError(
                f"a {kind} has one column of labels (got {', '.join(columns)}): several targets "
                "are multilabel or regression"
            )
        return _classes(path, columns[0], [row[0] for row in rows], kind)
    values = [_numbers(row, kind) for row in rows]
    if values and all(isinstance(value, str) for value in values):
        raise ValueError(
            f"{path}: no row has a label for {kind} in {', '.join(columns)}: {values[0]}"
        )
    return Labels(kind, values, target_names=tuple(columns))


def read_known_labels(
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    task: str | None,
    class_names: Sequence[str],
) -> Labels:
    """The labels of graphs that a network reads, as its classes or numbers.

    A cell that is no such label is none at all: the graph can be explained without it.
    """
    kind = task or ("classification" if class_names else _looks_like(rows))
    if kind not in ("classification", "binary"):
        values: list[Tensor | str] = [_numbers(row, kind) for row in rows]
        return Labels(kind, values, target_names=tuple(columns))
    classes = {normal_label(name): at for at, name in enumerate(class_names)}
    values = []
    for row in rows:
        label = normal_label(row[0])
        if not classes and label.isdigit():
            values.append(torch.tensor([int(label)]))
        else:
            values.append(torch.tensor([classes[label]]) if label in classes else "no such class")
    return Labels(kind, values, class_names=tuple(class_names))


def _looks_like(rows: Sequence[Sequence[str]]) -> str:
    cells = [cell for row in rows for cell in row if not _is_missing(cell)]
    numbers = [_number(cell) for cell in cells]
    if any(number is None for number in numbers):
        return "classification"
    if rows and len(rows[0]) > 1:
        return "multilabel" if all(number in (0, 1) for number in numbers) else "regression"
    integers = all(number is not None and number.is_integer() for number in numbers)
    return "classification" if integers else "regression"


def _classes(path: Path, column: str, cells: Sequence[str], task: str) -> Labels:
    reasons = [_no_class(cell) for cell in cells]
    names = {normal_label(cell) for cell, why in zip(cells, reasons, strict=True) if not why}
    if len(names) < 2:
        if not names and cells:
            raise ValueError(f"{path}: no row has a class in {quoted(column)}: {reasons[0]}")
        raise ValueError(
            f"{path} needs at least two classes in {quoted(column)} "
            f"(got only {listed(list(names))})"
        )
    in_order = sorted(names, key=float) if all(map(_is_number, names)) else sorted(names)
    if task == "binary" and len(names) != 2:
        raise ValueError(
            f"{path}: a binary label has two values in {quoted(column)} (got {listed(in_order)})"
        )
    number = {name: at for at, name in enumerate(in_order)}
    values: list[Tensor | str] = [
        why or torch.tensor([number[normal_label(cell)]])
        for cell, why in zip(cells, reasons, strict=True)
    ]
    return Labels(task, values, class_names=tuple(in_order))


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
    """A class as written, with whole numbers in one form.

    >>> normal_label("1.0"), normal_label("-1"), normal_label("toxic")
    ('1', '-1', 'toxic')
    """
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
