"""Cases of tests: several options at once without their full product, and tables of inputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import wraps
from inspect import signature
from itertools import combinations, product
from typing import Any


def pairwise(*axes: Iterable[Any]) -> list[tuple[Any, ...]]:
    """Tuples with a value from every axis, in which any two values of two axes meet.

    >>> len(pairwise("abc", (1, 2), (True, False), (None, 3)))
    6
    """
    values = [list(axis) for axis in axes]
    places = [range(len(axis)) for axis in values]
    waiting = {
        ((i, a), (j, b))
        for i, j in combinations(range(len(values)), 2)
        for a, b in product(places[i], places[j])
    }
    rows = []
    while waiting:
        row = dict(min(waiting))
        for axis in range(len(values)):
            if axis not in row:
                row[axis] = max(places[axis], key=lambda at: _met(row, axis, at, waiting))
        chosen = sorted(row.items())
        waiting -= set(combinations(chosen, 2))
        rows.append(tuple(values[axis][at] for axis, at in chosen))
    return rows


def _met(row: dict[int, int], axis: int, at: int, waiting: set[Any]) -> int:
    """How many pairs that have not met would meet."""
    return sum(tuple(sorted((one, (axis, at)))) in waiting for one in row.items())


def in_turn(first: Iterable[Any], *others: Iterable[Any], each: int = 1) -> list[tuple[Any, ...]]:
    """Every value of the first axis with ``each`` combinations of the others, one after another.

    >>> in_turn("abc", (1, 2))
    [('a', 1), ('b', 2), ('c', 1)]
    """
    rest = list(product(*map(list, others)))
    return [
        (value, *rest[(each * at + turn) % len(rest)])
        for at, value in enumerate(first)
        for turn in range(each)
    ]


def for_each(
    names: str | tuple[str, ...], rows: Iterable[Any]
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """One test for a table of inputs that cost nothing, such as those that are refused.

    It is written as ``pytest.mark.parametrize`` is; the row that fails is noted in the error.
    """
    listed = (names,) if isinstance(names, str) else names

    def decorated(test: Callable[..., None]) -> Callable[..., None]:
        @wraps(test)
        def tested(*args: Any, **fixtures: Any) -> None:
            for row in rows:
                values = (row,) if isinstance(names, str) else row
                given = dict(zip(listed, values, strict=True))
                try:
                    test(*args, **given, **fixtures)
                except BaseException as error:
                    error.add_note(f"for {given}")
                    raise

        whole = signature(test)
        kept = [one for name, one in whole.parameters.items() if name not in listed]
        tested.__signature__ = whole.replace(parameters=kept)  # type: ignore[attr-defined]
        return tested

    return decorated
