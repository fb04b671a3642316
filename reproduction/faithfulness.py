"""Tables 1 and 2 again: who finds the nodes that the network needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from reproduction.analysis import SPARSITIES, Chosen, Found, of_role
from reproduction.grids import Cell, Grid, mean_of, percent
from reproduction.paper import PRINTED_NAMES, TABLE_1, paper, printed_mean

OURS = of_role("ours")
CONTROLS = of_role("control")
RIVALS = of_role("rival")
_SHOWN_CONTROLS = tuple(name for name in CONTROLS if not name.startswith("random "))


def headline(
    found: Mapping[str, Found], setups: Mapping[str, str], name: str, *, few: bool
) -> Grid:
    """Best of eight sparsities and two rules on the test split, the paper's figure in brackets."""
    table = paper()["table_1" if setups is TABLE_1 else "table_2"]
    rows: list[tuple[Cell, ...]] = []
    leaders = _leaders(found, setups, few)
    for method in (*RIVALS, *OURS, *_SHOWN_CONTROLS):
        cells = [found[setup].best(method, few=few) for setup in setups]
        if all(cell is None for cell in cells):
            continue
        printed = [_printed(table, setups[setup], method) for setup in setups]
        shown = [
            _cell(cell, said, cell is not None and cell == leaders[setup])
            for setup, cell, said in zip(setups, cells, printed, strict=True)
        ]
        rows.append((method, *shown, *_average(cells, printed, setups is TABLE_1)))
    random = [_best_random(found[setup], few) for setup in setups]
    best = [found[setup].best("best found", few=few) for setup in setups]
    for label, cells in (("random, mean of 5", random), ("best found", best)):
        rows.append((label, *cells, *_average(cells, [None] * len(cells), setups is TABLE_1)))
    graphs = [_count(found[setup], few) for setup in setups]
    rows.append(("graphs", *graphs, *([""] if setups is TABLE_1 else [])))
    average = ("average",) if setups is TABLE_1 else ()
    return Grid(name, ("method", *setups, *average), tuple(rows))


def chosen_on_validation(found: Mapping[str, Found], setups: Sequence[str]) -> Grid:
    """Our variant, rule and sparsity chosen on the validation split, judged once on the test."""
    rows: list[tuple[Cell, ...]] = []
    for name in setups:
        own = found[name].choose(OURS)
        if own is None:
            rows.append((name, found[name].missing or "not yet", *[None] * 6))
            continue
        at_random, at_best, share = _on_the_way(found[name], own)
        rows.append(
            (
                name,
                own.method.name,
                own.rule,
                f"{SPARSITIES[own.level]:.2f}",
                own.validation,
                own.mean,
                at_random,
                at_best,
                percent(share),
            )
        )
    header = (
        "setup",
        "chosen",
        "rule",
        "sparsity",
        "validation",
        "test",
        "random there",
        "best found there",
        "share of the way",
    )
    return Grid("chosen", header, tuple(rows))


def short_of(found: Mapping[str, Found], setups: Sequence[str], share: float = 0.8) -> str:
    """Where the chosen variant goes less than that share of the way, in words."""
    short = []
    for name in setups:
        own = found[name].choose(OURS)
        reached = None if own is None else _on_the_way(found[name], own)[2]
        if reached is not None and reached < share:
            short.append(f"{name} ({reached:.0%})")
    return ", ".join(short) or "nowhere"


def against_rivals(found: Mapping[str, Found], setups: Sequence[str]) -> Grid:
    """What the chosen variant gains on each rival, whose sparsity is chosen likewise; paired."""
    rows: list[tuple[Cell, ...]] = []
    for rival in RIVALS:
        cells: list[Cell] = []
        for name in setups:
            few = found[name].choose([rival]) is None
            other = found[name].choose([rival], few=few)
            own = found[name].choose(OURS, few=False)
            if own is None or other is None:
                cells.append(None)
                continue
            gain = found[name].compare(_on(found[name], own, few), other)
            mark = "" if gain.low > 0 else " ·" if gain.high >= 0 else " ✗"
            cells.append(f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]{mark}")
        if any(cell is not None for cell in cells):
            rows.append((rival, *cells))
    return Grid("against_rivals", ("rival", *setups), tuple(rows))


def leads(found: Mapping[str, Found], setups: Sequence[str]) -> str:
    """Where the chosen variant leads all rivals that were run, and whom it does not, in words."""
    ahead: list[str] = []
    undecided: list[str] = []
    behind: list[str] = []
    for name in setups:
        own = found[name].choose(OURS)
        if own is None:
            continue
        level, better, run = [], [], 0
        for rival in RIVALS:
            few = found[name].choose([rival]) is None
            other = found[name].choose([rival], few=few)
            if other is None:
                continue
            run += 1
            gain = found[name].compare(_on(found[name], own, few), other)
            if gain.high < 0:
                better.append(rival)
            elif gain.low <= 0:
                level.append(f"{rival} {gain.mean:+.4f}")
        if run and not level and not better:
            ahead.append(name)
        if level:
            undecided.append(f"{name} ({', '.join(level)})")
        if better:
            behind.append(f"{name} ({', '.join(better)})")
    parts = [
        f"{what}: {', '.join(names)}."
        for what, names in (
            ("Beyond doubt ahead of every rival that was run", ahead),
            ("Not beyond doubt", undecided),
            ("Behind beyond doubt", behind),
        )
        if names
    ]
    return " ".join(parts)


def gap_shares(found: Mapping[str, Found], setups: Sequence[str]) -> Grid:
    """How much of the way from random to best found each method goes, best of eight sparsities."""
    rows: list[tuple[Cell, ...]] = []
    for method in (*OURS, *RIVALS, *_SHOWN_CONTROLS):
        cells = []
        for name in setups:
            few = found[name].best(method) is None
            value = found[name].best(method, few=few)
            cells.append(None if value is None else percent(found[name].share(value, few=few)))
        if any(cell is not None for cell in cells):
            rows.append((method, *cells))
    return Grid("share_of_gap", ("method", *setups), tuple(rows))


def refined(found: Mapping[str, Found], setups: Sequence[str]) -> Grid:
    """After 500 evaluations of a search that is told the metric, for every selection."""
    rows: list[tuple[Cell, ...]] = [
        (method, *(found[name].best(method) for name in setups)) for method in of_role("refined")
    ]
    rows.append(("best found", *(found[name].best("best found") for name in setups)))
    return Grid("refined", ("method", *setups), tuple(rows))


def _on_the_way(found: Found, own: Chosen) -> tuple[float | None, float | None, float | None]:
    """Random and best found at the chosen sparsity, and how far from one to the other we are."""
    random, best = found.random(), found.curves("best found")
    at_random = None if random is None else float(random[own.level])
    at_best = None if best is None else float(best.means[own.level])
    if at_random is None or at_best is None:
        return at_random, at_best, None
    return at_random, at_best, (own.mean - at_random) / (at_best - at_random)


def _on(found: Found, own: Chosen, few: bool) -> Chosen:
    """Our choice on the graphs that a slow rival got."""
    curves = found.curves(own.method.name, rule=own.rule, few=True) if few else None
    return own if curves is None else replace(own, test=curves.harmonic[:, own.level])


def _leaders(
    found: Mapping[str, Found], setups: Mapping[str, str], few: bool
) -> dict[str, float | None]:
    leaders = {}
    for setup in setups:
        every = [found[setup].best(m, few=few) for m in (*RIVALS, *OURS, *_SHOWN_CONTROLS)]
        there = [one for one in every if one is not None]
        leaders[setup] = max(there) if there else None
    return leaders


def _best_random(found: Found, few: bool) -> float | None:
    random = found.random(few=few)
    return None if random is None else float(random.max())


def _count(found: Found, few: bool) -> Cell:
    if found.missing:
        return found.missing
    graphs = found.graphs("test")
    return len(found.setup.few_graphs(graphs, "test") if few else graphs)


def _printed(table: Mapping[str, Any], row: str, method: str) -> float | None:
    if method not in PRINTED_NAMES:
        return None
    return float(table[row][table["methods"].index(PRINTED_NAMES[method])])


def _cell(cell: float | None, printed: float | None, leads: bool) -> Cell:
    shown = "–" if cell is None else f"**{cell:.4f}**" if leads else f"{cell:.4f}"
    return shown if printed is None else f"{shown} ({printed:.4f})"


def _average(
    cells: Sequence[float | None], printed: Sequence[float | None], wanted: bool
) -> tuple[Cell, ...]:
    if not wanted:
        return ()
    there = [one for one in printed if one is not None]
    said = printed_mean(there) if there and len(there) == len(printed) else None
    own = mean_of(cells)
    return (_cell(own, said, False) if said is not None else own,)
