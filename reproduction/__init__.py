"""Reproducing the paper: its tables, figures and claims, from stored results.

Not part of the package: run ``python -m reproduction --help`` from a checkout.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

#: Rows, tables and trainings that are kept with the code.
RESULTS = Path(__file__).with_name("results")


def checked(
    kind: str, names: Sequence[str], valid: Collection[str], default: Sequence[str] | None = None
) -> tuple[str, ...]:
    """The names if all are valid, else an error; the default, or all valid ones, for no names.

    >>> checked("color", [], ["red", "blue"])
    ('red', 'blue')
    """
    for name in names:
        if name not in valid:
            raise ValueError(f"there is no {kind} {name!r}; there are {', '.join(valid)}")
    return tuple(names or default or valid)
