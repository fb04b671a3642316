"""The page of results, ``docs/results.md``, written from the stored results and ``page.md``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Template

import numpy as np

from gstarx._internal.files import write_atomically
from gstarx.drawing import plot_curves, plot_intervals
from reproduction import remedies_tables
from reproduction.ablation import changes, equal_evaluations
from reproduction.faithfulness import (
    COMPARED,
    OURS,
    below_share,
    chosen_on_validation,
    gains_over_compared,
    gap_shares,
    headline,
    paired_gains,
    refined,
    significance,
)
from reproduction.grids import REPOSITORY, Grid, mean_of, shown
from reproduction.paper import PRINTED_NAMES, TABLE_1, TABLE_2, paper, printed_mean
from reproduction.remedies import VARIANTS
from reproduction.results import SetupResults
from reproduction.setups import SETUPS
from reproduction.tables import accuracy_table, seconds

#: Titles and metric names of the curves, by the field of the metric.
_CURVES = {
    "harmonic": ("H-fidelity", "harmonic_fidelity"),
    "fidelity": ("Fidelity", "fidelity"),
    "inverse": ("1 − inverse fidelity", "inverse_fidelity"),
}
_DRAWN = ("as published", "HN", "Shapley", "Banzhaf", "GraphSVX", "SubgraphX", "GNNExplainer")
#: Rows of the tables that the page shows in part.
_MAIN = (
    *COMPARED,
    *("as published", "HN", "Myerson, singletons", "Myerson, two-sided, singletons"),
    *("Shapley", "Banzhaf", "leave one out", "random, mean of 5", "best found", "graphs"),
)
_SLOW = ("GNNExplainer", "SubgraphX", "as published", "Myerson, singletons", "Banzhaf")
_SHOWN = {
    "table_1": _MAIN,
    "table_1_few": (*_SLOW, "random, mean of 5", "best found", "graphs"),
    "table_2": _MAIN,
    "remedies_whole": (
        *("graphs", "default", "… minus HN", "… minus Myerson, two-sided, singletons"),
        *("… minus Shapley", "… minus Banzhaf", "… minus SubgraphX"),
    ),
}
#: Tables that ``python -m reproduction measure`` stored, because they need the data.
_MEASURED = (
    "figure_1a",
    "figure_2",
    "figure_3",
    "claim_locality",
    "claim_fits",
)


def write_page(folder: Path, to: Path) -> Path:
    """Write the page, its tables as CSV files beside the rows, and its plots beside the page.

    Parameters
    ----------
    folder
        The directory of the stored results.
    to
        The file of the page.
    """
    results = {name: SetupResults(setup, folder) for name, setup in SETUPS.items()}
    names = list(SETUPS)
    gains = gains_over_compared(results, names)
    grids = [
        headline(results, TABLE_1, "table_1", few=False),
        headline(results, TABLE_1, "table_1_few", few=True),
        headline(results, TABLE_2, "table_2", few=False),
        headline(results, TABLE_2, "table_2_few", few=True),
        gap_shares(results, names),
        chosen_on_validation(results, names),
        paired_gains(gains),
        refined(results, names),
        equal_evaluations(results, ["mutag-gcn", "bbbp-gcn", "ba_2motifs-gcn"]),
        seconds(results["bbbp-gcn"], folder),
        changes(results, names),
        *remedies_tables.tables(folder, results),
    ]
    words = {"tables": f"{REPOSITORY}/reproduction/results/tables"}
    for grid in grids:
        part = grid.only(_SHOWN[grid.name]) if grid.name in _SHOWN else grid
        part = with_leaders(part) if grid.name in ("table_1", "table_1_few", "table_2") else part
        words[grid.name] = part.markdown().strip()
        grid.write(folder)
    for name in _MEASURED:
        measured = Grid.read(folder, name)
        words[name] = "Not measured yet." if measured is None else measured.markdown().strip()
    words |= _totals(results) | _averages(results) | _orphicx() | _measured_words(folder)
    words["curves"] = _curves(results, to.parent / "figures")
    words["intervals"] = _intervals(results, to.parent / "figures")
    words["accuracies"] = accuracy_table(folder).strip()
    words |= {
        "count_ours": str(len(OURS)),
        "count_variants": str(len(VARIANTS)),
        "ahead_of_hn": remedies_tables.ahead_on(results, "HN"),
        "remedies_graphs": remedies_tables.counts(folder),
        "against_hn": remedies_tables.against(folder, "HN, uniform"),
        "against_banzhaf": remedies_tables.against(folder, "Banzhaf"),
        "leads_harmonic": remedies_tables.leads(folder, "harmonic"),
        "leads_robust": remedies_tables.leads(folder, "robust"),
        "rank_on_validation": remedies_tables.rank_on_validation(folder),
    }
    words |= {
        f"motif_{method.lower()}": remedies_tables.found(folder, "ba_2motifs-gcn", name)
        for method, name in (
            ("Banzhaf", "Banzhaf"),
            ("random", "random"),
            ("Myerson", "Myerson, singletons"),
            ("HN", "HN, singletons"),
        )
    }
    words |= {"significance": significance(gains), "below": below_share(results, names)}
    template = Path(__file__).with_name("page.md").read_text(encoding="utf-8")
    write_atomically(to, Template(template).substitute(words).encode())
    return to


def with_leaders(grid: Grid) -> Grid:
    """The highest figure of every column in bold, among the methods that are shown."""
    rows = [[str(shown(cell)).replace("**", "") for cell in row] for row in grid.rows]
    methods = [row for row in rows if row[0] not in ("best found", "graphs")]
    for column in range(1, len(grid.header)):
        figures = [row[column].partition(" ")[0] for row in methods]
        top = max((figure for figure in figures if figure != "–"), default=None)
        for row, figure in zip(methods, figures, strict=True):
            if figure == top:
                row[column] = row[column].replace(figure, f"**{figure}**", 1)
    return replace(grid, rows=tuple(tuple(row) for row in rows))


def _totals(results: Mapping[str, SetupResults]) -> dict[str, str]:
    """Sums over all rows, and comparisons of HN with Shapley."""
    spent = rows = failed = 0.0
    ahead, of = 0, 0
    entropies = []
    for one in results.values():
        table = one.store.table
        rows += table.num_rows
        spent += float(np.nansum(np.array(table["cpu_seconds"].to_pylist(), dtype=float)))
        failed += sum(error is not None for error in table["error"].to_pylist())
        hn, shapley, random = (one.curves(m) for m in ("HN", "Shapley", "random 0"))
        if hn is None or shapley is None:
            continue
        of += 1
        ahead += float(shapley.harmonic.mean()) > float(hn.harmonic.mean())
        if random is not None:
            entropies.append([np.nanmean(one.entropy) for one in (hn, shapley, random)])
    means = np.mean(entropies, axis=0) if entropies else ()
    return {
        "rows": f"{int(rows):,}",
        "hours": f"{spent / 3600:.1f}",
        "failed": f"{int(failed)}",
        "shapley_ahead": str(ahead),
        "shapley_of": str(of),
        "sparse": ", ".join(
            f"{name} {mean:.2f}"
            for name, mean in zip(("HN", "Shapley", "random"), means, strict=False)
        )
        or "not measured yet",
    }


def _averages(results: Mapping[str, SetupResults]) -> dict[str, str]:
    """Averages over Table 1 of the methods in the summary, and the paper's."""
    table = paper()["table_1"]
    printed = dict(zip(table["methods"], table["average"], strict=True))
    words = {
        "average_paper": f"{printed['GStarX']:.4f}",
        "gin_paper": f"{paper()['table_2']['mutag-gin'][-1]:.4f}",
        "gin_published": shown(results["mutag-gin"].best("as published")),
    }
    for key, method in (
        ("published", "as published"),
        ("hn", "HN"),
        ("shapley", "Shapley"),
        ("banzhaf", "Banzhaf"),
    ):
        words[f"average_{key}"] = shown(mean_of([results[name].best(method) for name in TABLE_1]))
    compared = []
    for method in COMPARED:
        own = mean_of([results[name].best(method, few=True) for name in TABLE_1])
        compared.append(f"{method} {shown(own)} ({printed[PRINTED_NAMES[method]]:.4f})")
    words["compared"] = ", ".join(compared)
    return words


def _orphicx() -> dict[str, str]:
    """The one average that is not the mean of its column."""
    table = paper()["table_1"]
    at = table["methods"].index("OrphicX")
    mean = printed_mean([table[name][at] for name in TABLE_1.values()])
    return {"orphicx_printed": str(table["average"][at]), "orphicx_mean": f"{mean:.4f}"}


def _measured_words(folder: Path) -> dict[str, str]:
    """What the text says about tables that are only linked."""
    cost, differences, pairs = (
        Grid.read(folder, f"claim_{name}") for name in ("cost", "differences", "pairs")
    )
    words = dict.fromkeys(
        ("cost_growth", "saturated_gin", "saturated_gin_rest", "flat_gin", "pairs_gain"), "?"
    )
    if cost is not None:
        first, last = (float(str(cost.rows[at][1]).removesuffix(" ms")) for at in (0, -1))
        words["cost_growth"] = f"{last / first:.1f}"
    if differences is not None:
        for setup, inside, outside, _, flat in differences.rows:
            if setup == "mutag-gin":
                words |= {"saturated_gin": str(inside), "saturated_gin_rest": str(outside)}
                words |= {"flat_gin": str(flat)}
    if pairs is not None:
        gains = [
            float(str(row[at + 1])) - float(str(row[at])) for row in pairs.rows for at in (1, 3)
        ]
        words["pairs_gain"] = f"{max(gains):.3f}"
    return words


def _curves(results: Mapping[str, SetupResults], pictures: Path) -> str:
    pictures.mkdir(parents=True, exist_ok=True)
    parts = []
    for name, one in results.items():
        images = []
        for field, (title, metric) in _CURVES.items():
            lines = _lines(one, field)
            if len(lines) < 3:
                continue
            file = pictures / f"curves-{name}-{field}.svg"
            muted = ("random", "best found")
            plot_curves(lines, metric=metric, title=f"{title}, {name}", muted=muted).save(file)
            images.append(f"![{title} against sparsity, {name}](figures/{file.name})")
        if images:
            parts.append(f"### {name}\n\n" + "\n".join(images))
    return "\n\n".join(parts) or "Not measured yet."


def _intervals(results: Mapping[str, SetupResults], pictures: Path) -> str:
    pictures.mkdir(parents=True, exist_ok=True)
    images = []
    for name, one in results.items():
        values = {}
        for method in (*OURS, *COMPARED):
            chosen = one.choose([method]) or one.choose([method], few=True)
            if chosen is not None:
                few = "" if len(chosen.test) == len(one.graphs("test")) else ", subset"
                values[method + few] = chosen.test
        random, best = one.random(), one.best("best found")
        if not values or random is None or best is None:
            continue
        ends = {"random": float(random.max()), "best found": best}
        file = pictures / f"intervals-{name}.svg"
        plot_intervals(values, references=ends, title=f"H-fidelity, {name}").save(file)
        images.append(f"![H-fidelity with intervals, {name}](figures/{file.name})")
    return "\n\n".join(images) or "Not measured yet."


def _lines(results: SetupResults, field: str) -> dict[str, tuple[object, object]]:
    lines: dict[str, tuple[object, object]] = {}
    for method in (*_DRAWN, "random 0", "best found"):
        curves = results.curves(method) or results.curves(method, few=True)
        if curves is None:
            continue
        values = getattr(curves, field).mean(axis=0)
        if method == "best found" and "random" in lines:
            # its sets may be smaller than requested: drawn at the sparsity of the others
            lines[method] = (lines["random"][0], 1 - values if field == "inverse" else values)
            continue
        label = "random" if method == "random 0" else method
        lines[label] = (curves.sparsity.mean(axis=0), 1 - values if field == "inverse" else values)
    return lines
