"""Tables 1 and 2: H-fidelity of all methods, best of eight sparsities and chosen on validation."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from gstarx.metrics import SPARSITIES, Difference
from reproduction.grids import Cell, Grid, mean_of, percent
from reproduction.methods import of_role
from reproduction.paper import PRINTED_NAMES, TABLE_1, paper, printed_mean
from reproduction.results import Choice, SetupResults

OURS = of_role("ours")
CONTROLS = of_role("control")
COMPARED = of_role("compared")
_SHOWN_CONTROLS = tuple(name for name in CONTROLS if not name.startswith("random "))


def headline(
    results: Mapping[str, SetupResults], setups: Mapping[str, str], name: str, *, few: bool
) -> Grid:
    """Best of eight sparsities and two rules on the test split, the paper's figure in brackets."""
    table = paper()["table_1" if setups is TABLE_1 else "table_2"]
    rows: list[tuple[Cell, ...]] = []
    leaders = _leaders(results, setups, few)
    for method in (*COMPARED, *OURS, *_SHOWN_CONTROLS):
        values = [results[setup].best(method, few=few) for setup in setups]
        if all(value is None for value in values):
            continue
        printed = [_printed(table, setups[setup], method) for setup in setups]
        cells = [
            _cell(value, figure, value is not None and value == leaders[setup])
            for setup, value, figure in zip(setups, values, printed, strict=True)
        ]
        rows.append((method, *cells, *_average(values, printed, setups is TABLE_1)))
    random = [_best_random(results[setup], few) for setup in setups]
    best = [results[setup].best("best found", few=few) for setup in setups]
    for label, values in (("random, mean of 5", random), ("best found", best)):
        rows.append((label, *values, *_average(values, [None] * len(values), setups is TABLE_1)))
    graphs = [_count(results[setup], few) for setup in setups]
    rows.append(("graphs", *graphs, *([""] if setups is TABLE_1 else [])))
    average = ("average",) if setups is TABLE_1 else ()
    return Grid(name, ("method", *setups, *average), tuple(rows))


def chosen_on_validation(results: Mapping[str, SetupResults], setups: Sequence[str]) -> Grid:
    """Our variant, rule and sparsity chosen on the validation split, evaluated once on the test."""
    rows: list[tuple[Cell, ...]] = []
    for name in setups:
        own = results[name].choose(OURS)
        if own is None:
            rows.append((name, results[name].missing or "not yet", *[None] * 7))
            continue
        at_random, at_best, share = _gap_closed(results[name], own)
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
        "chosen method",
        "rule",
        "sparsity",
        "validation",
        "test",
        "random",
        "best found",
        "gap closed",
    )
    return Grid("chosen", header, tuple(rows))


def below_share(
    results: Mapping[str, SetupResults], setups: Sequence[str], share: float = 0.8
) -> str:
    """Setups where the chosen variant closes less than that share of the gap, in words."""
    below = []
    for name in setups:
        own = results[name].choose(OURS)
        closed = None if own is None else _gap_closed(results[name], own)[2]
        if closed is not None and closed < share:
            below.append(f"{name} ({closed:.0%})")
    return ", ".join(below) or "none"


Gains = Mapping[str, Mapping[str, Difference]]


def gains_over_compared(results: Mapping[str, SetupResults], setups: Sequence[str]) -> Gains:
    """By setup and compared method, what the chosen variant gains on it, paired over graphs."""
    return {name: dict(_gains(results[name])) for name in setups}


def _gains(results: SetupResults) -> Iterator[tuple[str, Difference]]:
    """Gains on every compared method that was run, its rule and sparsity chosen likewise."""
    own = results.choose(OURS)
    for method in COMPARED if own is not None else ():
        few = results.choose([method]) is None
        other = results.choose([method], few=few)
        if own is not None and other is not None:
            yield method, results.compare(_on_same_graphs(results, own, few), other)


def paired_gains(gains: Gains) -> Grid:
    """The gains as a table; intervals that reach zero are marked."""
    rows: list[tuple[Cell, ...]] = []
    for method in COMPARED:
        cells: list[Cell] = []
        for by_method in gains.values():
            gain = by_method.get(method)
            if gain is None:
                cells.append(None)
                continue
            mark = "" if gain.low > 0 else " ·" if gain.high >= 0 else " ✗"
            cells.append(f"{gain.mean:+.3f} [{gain.low:+.3f}, {gain.high:+.3f}]{mark}")
        if any(cell is not None for cell in cells):
            rows.append((method, *cells))
    return Grid("paired_gains", ("compared with", *gains), tuple(rows))


def significance(gains: Gains) -> str:
    """Where the chosen variant is significantly ahead, undecided or behind, in words."""
    ahead: list[str] = []
    undecided: list[str] = []
    behind: list[str] = []
    for name, by_method in gains.items():
        better = [method for method, gain in by_method.items() if gain.high < 0]
        level = [
            f"{method} {gain.mean:+.4f}"
            for method, gain in by_method.items()
            if gain.low <= 0 <= gain.high
        ]
        if by_method and not level and not better:
            ahead.append(name)
        if level:
            undecided.append(f"{name} ({', '.join(level)})")
        if better:
            behind.append(f"{name} ({', '.join(better)})")
    parts = [
        f"{what}: {', '.join(names)}."
        for what, names in (
            ("Significantly ahead of every compared method that was run", ahead),
            ("No significant difference", undecided),
            ("Significantly behind", behind),
        )
        if names
    ]
    return " ".join(parts)


def gap_shares(results: Mapping[str, SetupResults], setups: Sequence[str]) -> Grid:
    """Share of the gap between random and best found that each method closes."""
    rows: list[tuple[Cell, ...]] = []
    for method in (*OURS, *COMPARED, *_SHOWN_CONTROLS):
        cells = []
        for name in setups:
            few = results[name].best(method) is None
            value = results[name].best(method, few=few)
            cells.append(None if value is None else percent(results[name].share(value, few=few)))
        if any(cell is not None for cell in cells):
            rows.append((method, *cells))
    return Grid("share_of_gap", ("method", *setups), tuple(rows))


def refined(results: Mapping[str, SetupResults], setups: Sequence[str]) -> Grid:
    """After an oracle search of 500 evaluations of the metric for every selection."""
    rows: list[tuple[Cell, ...]] = [
        (method, *(results[name].best(method) for name in setups)) for method in of_role("refined")
    ]
    rows.append(("best found", *(results[name].best("best found") for name in setups)))
    return Grid("refined", ("method", *setups), tuple(rows))


def _gap_closed(
    results: SetupResults, own: Choice
) -> tuple[float | None, float | None, float | None]:
    """Random and best found at the chosen sparsity, and the share of that gap that is closed."""
    random, best = results.random(), results.curves("best found")
    at_random = None if random is None else float(random[own.level])
    at_best = None if best is None else float(best.means[own.level])
    if at_random is None or at_best is None:
        return at_random, at_best, None
    return at_random, at_best, (own.mean - at_random) / (at_best - at_random)


def _on_same_graphs(results: SetupResults, own: Choice, few: bool) -> Choice:
    """Our choice on the graphs that a slow method explained."""
    curves = results.curves(own.method.name, rule=own.rule, few=True) if few else None
    return own if curves is None else replace(own, test=curves.harmonic[:, own.level])


def _leaders(
    results: Mapping[str, SetupResults], setups: Mapping[str, str], few: bool
) -> dict[str, float | None]:
    leaders = {}
    for setup in setups:
        values = [results[setup].best(m, few=few) for m in (*COMPARED, *OURS, *_SHOWN_CONTROLS)]
        leaders[setup] = max((value for value in values if value is not None), default=None)
    return leaders


def _best_random(results: SetupResults, few: bool) -> float | None:
    random = results.random(few=few)
    return None if random is None else float(random.max())


def _count(results: SetupResults, few: bool) -> Cell:
    if results.missing:
        return results.missing
    graphs = results.graphs("test")
    return len(results.setup.few_graphs(graphs, "test") if few else graphs)


def _printed(table: Mapping[str, Any], row: str, method: str) -> float | None:
    if method not in PRINTED_NAMES:
        return None
    return float(table[row][table["methods"].index(PRINTED_NAMES[method])])


def _cell(value: float | None, printed: float | None, leads: bool) -> Cell:
    shown = "–" if value is None else f"**{value:.4f}**" if leads else f"{value:.4f}"
    return shown if printed is None else f"{shown} ({printed:.4f})"


def _average(
    values: Sequence[float | None], printed: Sequence[float | None], wanted: bool
) -> tuple[Cell, ...]:
    if not wanted:
        return ()
    figures = [figure for figure in printed if figure is not None]
    own = mean_of(values)
    if not figures or len(figures) < len(printed):
        return (own,)
    return (_cell(own, printed_mean(figures), False),)
