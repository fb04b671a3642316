"""Tables 3 and 4 again: what an explanation costs, and how concentrated its scores are."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from gstarx.metrics import poisson_entropy, uniform_entropy
from reproduction.analysis import Found
from reproduction.explaining import training_seconds
from reproduction.grids import Cell, Grid
from reproduction.paper import PRINTED_NAMES, TABLE_1, paper


def seconds(found: Found, results: Path) -> Grid:
    """Table 3: CPU seconds for a BBBP graph, training apart, beside the paper's GPU seconds."""
    trained = training_seconds(results).get(found.setup.name, {})
    rows: list[tuple[Cell, ...]] = []
    for name, printed in PRINTED_NAMES.items():
        curves = found.curves(name) or found.curves(name, few=True)
        said = paper()["table_3"][printed]
        paper_cell = f"{said['seconds']:g}"
        if "training" in said:
            paper_cell += f" (training {said['training']:g})"
        if curves is None:
            rows.append((printed, found.missing or "not yet", None, None, None, paper_cell))
            continue
        own = curves.cpu_seconds
        rows.append(
            (
                printed,
                f"{own.mean():.3f}",
                f"{np.median(own):.3f}",
                f"{trained[name]:.0f}" if name in trained else "",
                len(own),
                paper_cell,
            )
        )
    for name in ("HN", "Shapley", "Banzhaf", "Banzhaf, 10,000 evaluations"):
        if (curves := found.curves(name)) is not None:
            own = curves.cpu_seconds
            rows.append(
                (
                    name if "evaluations" in name else f"{name}, 2,000 evaluations",
                    f"{own.mean():.3f}",
                    f"{np.median(own):.3f}",
                    "",
                    len(own),
                    "",
                )
            )
    header = ("method", "CPU s a graph", "median", "training CPU s", "graphs", "paper, GPU s")
    return Grid("table_3", header, tuple(rows))


def entropies(found: Mapping[str, Found]) -> Grid:
    """Table 4: entropy-based sparsity of the scores, beside three reference distributions."""
    table = paper()["table_4"]
    at = {name: table["datasets"].index(printed) for name, printed in TABLE_1.items()}
    rows: list[tuple[Cell, ...]] = []
    for label, method in (("GStarX, as published", "as published"), ("HN", "HN")):
        curves = {name: found[name].curves(method) for name in TABLE_1}
        own = [None if c is None else float(np.nanmean(c.entropy)) for c in curves.values()]
        said = [table["GStarX"][at[name]] for name in TABLE_1]
        if method == "as published":
            rows.append((label, *(_both(o, s) for o, s in zip(own, said, strict=True))))
        else:
            rows.append((label, *own))
    for label, entropy in (
        ("Uniform(n)", lambda n: uniform_entropy(n)),
        ("Uniform(0.25 n)", lambda n: uniform_entropy(n, 0.25)),
        ("Poisson(0.25 n)", poisson_entropy),
    ):
        cells: list[Cell] = []
        for name in TABLE_1:
            if found[name].missing:
                cells.append(found[name].missing)
                continue
            # over the whole split, of which only some sentences are explained
            graphs = found[name].setup.data().split("test")
            own_mean = float(np.mean([entropy(int(g.num_nodes or 0)) for g in graphs]))
            cells.append(_both(own_mean, table[label][at[name]]))
        rows.append((label, *cells))
    return Grid("table_4", ("scores", *TABLE_1), tuple(rows))


def _both(own: float | None, said: float) -> str:
    return f"{'–' if own is None else f'{own:.4f}'} ({said:.4f})"
