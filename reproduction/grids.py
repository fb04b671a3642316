"""Tables, written as Markdown for the page and as CSV for other programs."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from gstarx._internal.files import write_atomically
from gstarx.metrics import Difference

Cell = str | float | int | None
#: Where the pages link the tables that they do not show.
REPOSITORY = "https://github.com/gstarx/gstarx/blob/main"


@dataclass(frozen=True)
class Grid:
    """A table with a name; numbers are shown with four digits, missing cells as a dash."""

    name: str
    header: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]

    def markdown(self) -> str:
        """The table for a page."""
        lines = [self.header, tuple("---" for _ in self.header), *self.rows]
        return "\n".join(f"| {' | '.join(map(shown, line))} |" for line in lines) + "\n"

    def only(self, names: Sequence[str]) -> Grid:
        """The rows with these names, in the order of the names; missing ones are left out."""
        rows = {row[0]: row for row in self.rows}
        return replace(self, rows=tuple(rows[name] for name in names if name in rows))

    def columns(self, titles: Sequence[str]) -> Grid:
        """The first column, and those with these titles."""
        kept = [0, *(self.header.index(title) for title in titles)]
        rows = tuple(tuple(row[at] for at in kept) for row in self.rows)
        return replace(self, header=tuple(self.header[at] for at in kept), rows=rows)

    def csv(self) -> str:
        """The table with all digits."""
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(self.header)
        writer.writerows([["" if cell is None else cell for cell in row] for row in self.rows])
        return text.getvalue()

    @classmethod
    def read(cls, folder: Path, name: str) -> Grid | None:
        """The table stored under a name; None if there is none."""
        path = folder / "tables" / f"{name}.csv"
        if not path.exists():
            return None
        header, *rows = csv.reader(io.StringIO(path.read_text(encoding="utf-8")))
        return cls(name, tuple(header), tuple(tuple(map(_number, row)) for row in rows))

    def write(self, folder: Path) -> None:
        """Write the CSV file of that name."""
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "tables" / f"{self.name}.csv", self.csv().encode())


def shown(cell: Cell) -> str:
    """A cell as text.

    >>> shown(0.61713), shown(None), shown(1234)
    ('0.6171', '–', '1,234')
    """
    if cell is None or cell != cell:
        return "–"
    if isinstance(cell, float):
        return f"{cell:.4f}"
    return f"{cell:,}" if isinstance(cell, int) else cell


def percent(share: float | None) -> str | None:
    """A share as a percentage."""
    return None if share is None else f"{share:.0%}"


def thousandths(gain: Difference) -> str:
    """A mean difference with its interval, in thousandths; bold where that excludes zero."""
    mark = "**" if gain.low > 0 or gain.high < 0 else ""
    low, mean, high = (1_000 * bound for bound in (gain.low, gain.mean, gain.high))
    return f"{mark}{mean:+.0f}{mark} [{low:+.0f}, {high:+.0f}]"


def mean_of(cells: Sequence[float | None]) -> float | None:
    """The mean, or None where one is missing."""
    values = [cell for cell in cells if cell is not None]
    return sum(values) / len(values) if len(values) == len(cells) and values else None


def _number(cell: str) -> Cell:
    """A cell of a CSV file with its type restored."""
    if not cell:
        return None
    try:
        return int(cell)
    except ValueError:
        pass
    try:
        return float(cell)
    except ValueError:
        return cell
