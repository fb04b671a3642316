"""The page of results, written from what was found and nothing else; its words are in page.md."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from string import Template

import numpy as np

from gstarx._internal.atomic_write import write_whole
from gstarx.drawing import plot_curves, plot_intervals
from reproduction.ablation import changes, equal_evaluations
from reproduction.analysis import Found, of_role
from reproduction.costs import seconds
from reproduction.faithfulness import (
    OURS,
    against_rivals,
    chosen_on_validation,
    gap_shares,
    headline,
    leads,
    refined,
    short_of,
)
from reproduction.grids import Grid, mean_of, shown
from reproduction.paper import PRINTED_NAMES, TABLE_1, TABLE_2, paper, printed_mean
from reproduction.setups import SETUPS
from reproduction.tables import accuracy_table

#: What the curves show, by the field that holds it, and PyG-style name of the metric.
_CURVES = {
    "harmonic": ("H-fidelity", "harmonic_fidelity"),
    "fidelity": ("Fidelity", "fidelity"),
    "inverse": ("1 − inverse fidelity", "inverse_fidelity"),
}
_DRAWN = ("as published", "HN", "Shapley", "Banzhaf", "GraphSVX", "SubgraphX", "GNNExplainer")
#: Tables that were measured, where the data was.
_MEASURED = (
    "table_4",
    "figure_1a",
    "figure_2",
    "figure_3",
    "claim_cost",
    "claim_locality",
    "claim_zero_weight",
    "claim_fits",
    "claim_differences",
    "claim_pairs",
)


def write_page(results: Path, to: Path) -> Path:
    """Write the page, its tables as CSV files beside the rows, and its plots beside the page."""
    found = {name: Found(setup, results) for name, setup in SETUPS.items()}
    names = list(SETUPS)
    grids = [
        headline(found, TABLE_1, "table_1", few=False),
        headline(found, TABLE_1, "table_1_few", few=True),
        headline(found, TABLE_2, "table_2", few=False),
        headline(found, TABLE_2, "table_2_few", few=True),
        gap_shares(found, names),
        chosen_on_validation(found, names),
        against_rivals(found, names),
        refined(found, names),
        equal_evaluations(found, ["mutag-gcn", "bbbp-gcn", "ba_2motifs-gcn"]),
        seconds(found["bbbp-gcn"], results),
        changes(found, names),
    ]
    words = {grid.name: grid.markdown().strip() for grid in grids}
    for grid in grids:
        grid.write(results)
    for name in _MEASURED:
        measured = Grid.read(results, name)
        words[name] = "Not measured yet." if measured is None else measured.markdown().strip()
    words |= _figures(found) | _averages(found) | _orphicx() | _cost_growth(results)
    words["curves"] = _curves(found, to.parent / "figures")
    words["intervals"] = _intervals(found, to.parent / "figures")
    words["accuracies"] = accuracy_table(results).strip()
    words |= {"count_ours": str(len(OURS)), "ours": "; ".join(OURS), "lead": leads(found, names)}
    words["short"] = short_of(found, names)
    template = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    write_whole(to, Template(template).substitute(words).encode())
    return to


def _figures(found: Mapping[str, Found]) -> dict[str, str]:
    """Sums over all rows, and who is ahead."""
    spent = rows = failed = 0.0
    behind, of = [], 0
    sparse = []
    for name, one in found.items():
        table = one.results.table
        rows += table.num_rows
        spent += float(np.nansum(np.array(table["cpu_seconds"].to_pylist(), dtype=float)))
        failed += sum(error is not None for error in table["error"].to_pylist())
        hn, shapley, random = (one.curves(m) for m in ("HN", "Shapley", "random 0"))
        if hn is None or shapley is None:
            continue
        of += 1
        if float(shapley.harmonic.mean()) > float(hn.harmonic.mean()):
            behind.append(name)
        if random is not None:
            means = [float(np.nanmean(c.entropy)) for c in (hn, shapley, random)]
            sparse.append(
                f"{name} HN {means[0]:.2f}, Shapley {means[1]:.2f}, random {means[2]:.2f}"
            )
    return {
        "rows": f"{int(rows):,}",
        "hours": f"{spent / 3600:.1f}",
        "failed": f"{int(failed)}",
        "shapley_ahead": str(len(behind)),
        "shapley_of": str(of),
        "shapley_where": ", ".join(behind) or "none",
        "sparse": "; ".join(sparse) or "not measured yet",
    }


def _averages(found: Mapping[str, Found]) -> dict[str, str]:
    """Averages over Table 1 of the methods that the summary names, and the paper's."""
    table = paper()["table_1"]
    printed = dict(zip(table["methods"], table["average"], strict=True))
    words = {
        "average_paper": f"{printed['GStarX']:.4f}",
        "gin_paper": f"{paper()['table_2']['mutag-gin'][-1]:.4f}",
        "gin_published": shown(found["mutag-gin"].best("as published")),
    }
    for key, method in (
        ("published", "as published"),
        ("hn", "HN"),
        ("shapley", "Shapley"),
        ("banzhaf", "Banzhaf"),
        ("logarithms", "Banzhaf of logarithms"),
    ):
        words[f"average_{key}"] = shown(mean_of([found[name].best(method) for name in TABLE_1]))
    rivals = []
    for method in of_role("rival"):
        own = mean_of([found[name].best(method, few=True) for name in TABLE_1])
        rivals.append(f"{method} {shown(own)} ({printed[PRINTED_NAMES[method]]:.4f})")
    words["rivals"] = ", ".join(rivals)
    return words


def _orphicx() -> dict[str, str]:
    """The one average that is not the mean of its column."""
    table = paper()["table_1"]
    at = table["methods"].index("OrphicX")
    mean = printed_mean([table[name][at] for name in TABLE_1.values()])
    return {"orphicx_printed": str(table["average"][at]), "orphicx_mean": f"{mean:.4f}"}


def _cost_growth(results: Path) -> dict[str, str]:
    grid = Grid.read(results, "claim_cost")
    if grid is None:
        return {"cost_growth": "?"}
    first, last = (float(str(row[1]).removesuffix(" ms")) for row in (grid.rows[0], grid.rows[-1]))
    return {"cost_growth": f"{last / first:.1f}"}


def _curves(found: Mapping[str, Found], pictures: Path) -> str:
    pictures.mkdir(parents=True, exist_ok=True)
    parts = []
    for name, one in found.items():
        shown = []
        for field, (title, metric) in _CURVES.items():
            lines = _lines(one, field)
            if len(lines) < 3:
                continue
            file = pictures / f"curves-{name}-{field}.svg"
            muted = ("random", "best found")
            plot_curves(lines, metric=metric, title=f"{title}, {name}", muted=muted).save(file)
            shown.append(f"![{title} against sparsity, {name}](figures/{file.name})")
        if shown:
            parts.append(f"### {name}\n\n" + "\n".join(shown))
    return "\n\n".join(parts) or "Not measured yet."


def _intervals(found: Mapping[str, Found], pictures: Path) -> str:
    pictures.mkdir(parents=True, exist_ok=True)
    shown = []
    for name, one in found.items():
        values = {}
        for method in (*OURS, *of_role("rival")):
            chosen = one.choose([method]) or one.choose([method], few=True)
            if chosen is not None:
                few = "" if len(chosen.test) == len(one.graphs("test")) else ", few graphs"
                values[method + few] = chosen.test
        random, best = one.random(), one.best("best found")
        if not values or random is None or best is None:
            continue
        ends = {"random": float(random.max()), "best found": best}
        file = pictures / f"intervals-{name}.svg"
        plot_intervals(values, references=ends, title=f"H-fidelity, {name}").save(file)
        shown.append(f"![H-fidelity with intervals, {name}](figures/{file.name})")
    return "\n\n".join(shown) or "Not measured yet."


def _lines(found: Found, field: str) -> dict[str, tuple[object, object]]:
    lines: dict[str, tuple[object, object]] = {}
    for method in (*_DRAWN, "random 0", "best found"):
        curves = found.curves(method) or found.curves(method, few=True)
        if curves is None:
            continue
        values = getattr(curves, field).mean(axis=0)
        if method == "best found" and "random" in lines:
            # its sets may be smaller than asked for: drawn where others have as many nodes to take
            lines[method] = (lines["random"][0], 1 - values if field == "inverse" else values)
            continue
        label = "random" if method == "random 0" else method
        lines[label] = (curves.sparsity.mean(axis=0), 1 - values if field == "inverse" else values)
    return lines
