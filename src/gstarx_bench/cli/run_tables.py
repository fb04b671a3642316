"""The rows of a store, averaged and written out."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from rich.table import Table

from gstarx.cli.console import as_csv, as_json, out, table
from gstarx.metrics import METRICS
from gstarx.players import parallel_mark

#: The metrics that printed tables show, and what they are called there.
SHOWN = {
    "fidelity": "fidelity ↑",
    "inverse_fidelity": "inverse ↓",
    "harmonic_fidelity": "H-fidelity ↑",
}
_PLAIN = (
    *("run", "dataset", "split", "graph", "name", "smiles", "explainer", "num_nodes", "target"),
    "exact",
)
_POINT = ("graph", "error", "sparsities", "clipped")
_TIMES = ("evaluations", "cpu_seconds")


def metric_table(*before: str, after: Collection[str] = (), **options: Any) -> Table:
    """An empty table with the metrics between other columns."""
    return table(*before, *SHOWN.values(), *after, **options)


def metric_cells(metrics: Mapping[str, float]) -> list[str]:
    """Metrics as they are printed."""
    return [f"{metrics[name]:.4f}" for name in SHOWN]


def averages(
    store: Path, run: str, graphs: Collection[int] | None = None
) -> tuple[int, list[dict[str, float]]]:
    """How many graphs of a run are explained, and the mean metrics at every sparsity.

    For a regression also the share that was ``clipped``, and how many graphs are ``undefined``.
    """
    from gstarx_bench import runs

    stored = runs.read(store, run=run, columns=[*_POINT, *METRICS])
    rows = [
        row
        for row in stored.to_pylist()
        if row["error"] is None and (graphs is None or row["graph"] in graphs)
    ]
    if not rows or rows[0]["fidelity"] is None:  # nodes of one graph have scores only
        return len(rows), []
    points = []
    for at, sparsity in enumerate(rows[0]["sparsities"]):
        # graphs whose output is the mean of a regression have no metrics
        defined = [row for row in rows if not np.isnan(row["harmonic_fidelity"][at])]
        if defined:
            means = {name: float(np.mean([row[name][at] for row in defined])) for name in METRICS}
            if rows[0]["clipped"] is not None:
                means["clipped"] = float(np.mean([row["clipped"][at] for row in defined]))
                means["undefined"] = len(rows) - len(defined)
            points.append({"requested_sparsity": sparsity, **means})
    return len(rows), points


def show_points(title: str, points: list[dict[str, float]]) -> None:
    """A table of means, a line for every sparsity, the best one bold."""
    best = max(point["harmonic_fidelity"] for point in points)
    after = ["sparsity", "clipped"] if "clipped" in points[0] else ["sparsity"]
    shown = metric_table("requested", after=after, title=title)
    for point in points:
        shown.add_row(
            f"{point['requested_sparsity']:.2f}",
            *metric_cells(point),
            f"{point['sparsity']:.4f}",
            *(f"{point[name]:.0%}" for name in after[1:]),
            style="bold" if point["harmonic_fidelity"] == best else "",
        )
    out().print(shown)
    if points[0].get("undefined"):
        out().print(
            f"{points[0]['undefined']:g} graphs without metrics: their output is the mean of the "
            "reference",
            style="dim",
        )
    out().print()


def as_text(rows: list[Mapping[str, Any]], suffix: str) -> str:
    """Rows of a store as the text of a file.

    JSON holds everything, a row per graph. CSV has a line for every graph and sparsity, with all
    scores and metrics, and a line with the error for a graph that failed.
    """
    if suffix == ".json":
        return as_json(rows) + "\n"
    names = [
        *_PLAIN,
        *_TIMES,
        "scores",
        "requested_sparsity",
        *METRICS,
        "clipped",
        "selected",
        "error",
    ]
    of_nodes = any(row.get("node") is not None for row in rows)
    names += ["node", "player", "score", "std_error"] if of_nodes else []
    return as_csv(names, (line for row in rows for line in _lines(row)))


def _lines(row: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """The lines of a row: its error, or one for every player or sparsity."""
    plain = {name: row[name] for name in (*_PLAIN, *_TIMES, "error")}
    if row["error"] is not None:
        yield plain
        return
    if row.get("node") is not None:
        yield from ({**plain, **line} for line in _player_lines(row))
        return
    plain["scores"] = " ".join(map(str, row["scores"] or ()))
    for at, sparsity in enumerate(row["sparsities"]):
        metrics = {name: row[name][at] for name in METRICS}
        metrics["clipped"] = None if row["clipped"] is None else row["clipped"][at]
        nodes = " ".join(map(str, row["selected"][at]))
        yield {**plain, "requested_sparsity": sparsity, **metrics, "selected": nodes}


def _player_lines(row: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A line for every player of a node; an edge is written as its two ends."""
    stored = json.loads(row["explanation"])
    edges = np.array(stored.get("player_edges", ()), dtype=np.int64).reshape(-1, 2)
    players = [f"{a}>{b}{parallel_mark(edges, at)}" for at, (a, b) in enumerate(edges.tolist())]
    players, scores = players or stored["players"], stored["scores"]
    errors = stored["std_errors"] or [None] * len(scores)
    return [
        {"node": row["node"], "player": player, "score": score, "std_error": error}
        for player, score, error in zip(players, scores, errors, strict=True)
    ]
