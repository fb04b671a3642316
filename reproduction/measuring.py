"""Figures, claims and statistics: what needs the data, measured once and kept with the rows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from reproduction import RESULTS, claims, figures, possible
from reproduction.analysis import Found
from reproduction.costs import entropies
from reproduction.grids import Grid
from reproduction.setups import SETUPS, Missing

_Made = TypeVar("_Made")


def measure(
    only: tuple[str, ...] = (),
    *,
    results: Path = RESULTS,
    pictures: Path,
) -> None:
    """Make the figures and check the claims; what lacks its data is said so and passed over."""
    for made in (figures.small_weights, figures.sentence, figures.molecule):
        if only and made.__name__ not in only:
            continue
        figure = _made(made)
        if figure is not None:
            figure.grid.write(results)
            pictures.mkdir(parents=True, exist_ok=True)
            for name, picture in figure.pictures:
                picture.save(pictures / f"{name}.svg")
    for claim in (*claims.CLAIMS, possible.differences, possible.pairs, _entropies):
        if only and claim.__name__ not in only:
            continue
        grid = _made(claim, results) if claim is _entropies else _made(claim)
        if grid is not None:
            grid.write(results)


def _entropies(results: Path) -> Grid:
    return entropies({name: Found(setup, results) for name, setup in SETUPS.items()})


def _made(make: Callable[..., _Made], *arguments: object) -> _Made | None:
    print(f"{make.__name__} ...", file=sys.stderr, flush=True)
    try:
        return make(*arguments)
    except (Missing, ImportError, OSError) as error:
        print(f"{make.__name__}: {error}", file=sys.stderr)
        return None
