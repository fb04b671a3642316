"""Writes the report as one HTML page without external resources."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
from collections.abc import Sequence
from dataclasses import asdict
from importlib.resources import files
from pathlib import Path

from markupsafe import Markup

from gstarx._internal.markup import render
from gstarx.drawing import (
    NAMES,
    Painted,
    Picture,
    Subject,
    card,
    color_bar,
    decimal,
    plot_curves,
    plot_intervals,
    signed,
    write_file,
)
from gstarx.metrics import share_of_gap
from gstarx.report.data import Explained, ExplainerRow, ReportData

_SUFFIXES = (".html", ".htm")
_CURVES = {
    "harmonic_fidelity": "H-fidelity",
    "fidelity": "Fidelity: higher is better",
    "inverse_fidelity": "Inverse fidelity: lower is better",
}
_METRICS = ("harmonic_fidelity", "fidelity", "inverse_fidelity", "sparsity")
#: Columns of the table whose best number is marked.
_BEST = {"H-fidelity": max, "Fidelity": max, "Inverse": min, "Gap closed": max, "AUROC": max}
_FORMATS = {
    "Gap closed": "{:.0%}",
    "Evaluations": "{:,.0f}",
    "Seconds": "{:.2g}",
    "Sparsity": "{:.2f}",
}


def write_report(path: str | os.PathLike[str], data: ReportData) -> Path:
    """Write the report as one HTML file that loads nothing, completely or not at all.

    Parameters
    ----------
    path
        The file, with the suffix ``.html``. Missing directories are created.
    data
        The content, for example from :func:`build_report`.

    Returns
    -------
    Path
        The file.
    """
    target = Path(path)
    if target.suffix.lower() not in _SUFFIXES:
        valid = " or ".join(map(repr, _SUFFIXES))
        raise ValueError(f"the name of a report must end in {valid} (got {target.name!r})")
    write_file(target, report_page(data).encode())
    return target


def report_page(data: ReportData) -> str:
    """The text of the file that :func:`write_report` writes.

    The same data gives the same text. Names, words and SMILES are always shown as plain text, and
    the page does not allow the browser to run or load anything else.
    """
    assets = {
        part: files("gstarx.report").joinpath(name).read_text(encoding="utf-8")
        for part, name in {"style": "report.css", "script": "report.js"}.items()
    }
    return render(
        "report/report.html.jinja",
        **{part: Markup(text) for part, text in assets.items()},
        digests={part: _digest(text) for part, text in assets.items()},
        **_summary(data),
        **_table(data),
        plots=[Markup(picture.svg) for picture in _plots(data)],
        choices=_choices(data),
        bar=_legend(),
        graphs=[_graph(data, place, graph) for place, graph in enumerate(data.graphs)],
        lists=_facts(data),
        version=data.versions.get("gstarx", ""),
    )


def _digest(text: str) -> str:
    """The digest of a script or style for the content security policy."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _summary(data: ReportData) -> dict[str, object]:
    """The summary at the top: a few sentences and numbers."""
    explainers = data.of_kind("explainer")
    count = len(data.rows[0].graphs)
    sizes = [int(graph.data.num_nodes or 0) for graph in data.graphs]
    tiles = [("Graphs", str(count), "")]
    if data.accuracy is not None:
        tiles.append(("Accuracy of the model", f"{data.accuracy:.1%}", ""))
    if sizes:
        tiles.append(("Nodes per graph", f"{sum(sizes) / len(sizes):.1f}", "on average"))
    tiles.append(("Nodes left out", f"{data.sparsity:.0%}", "sparsity"))
    highest = [_named(row) for row in explainers[:1]]
    tiles += [("Highest H-fidelity", top["value"], top["name"]) for top in highest]
    return {
        "title": data.title,
        "count": count,
        "compared": (
            f"{len(explainers)} explainer{'s' * (len(explainers) != 1)} on "
            f"{count} graph{'s' * (count != 1)}."
        ),
        "accuracy": None if data.accuracy is None else f"{data.accuracy:.0%}",
        "sparsity": f"{data.sparsity:g}",
        "kept": f"{1 - data.sparsity:.0%}",
        "highest": highest[0] if highest else None,
        "references": [_named(row) for row in _of_kinds(data, "random", "optimum")],
        "tiles": tiles,
    }


def _named(row: ExplainerRow) -> dict[str, str]:
    return {"name": row.name, "value": decimal(row.mean.harmonic_fidelity)}


def _of_kinds(data: ReportData, *kinds: str) -> list[ExplainerRow]:
    return [row for kind in kinds for row in data.of_kind(kind)]


def _table(data: ReportData) -> dict[str, object]:
    """All explainers with their metrics."""
    rows = _of_kinds(data, "optimum", "explainer", "random")
    columns = _columns(data, rows)
    cells = [_cells(name, column, rows) for name, column in columns.items()]
    return {
        "headings": ["Explainer", *columns],
        "rows": [
            {
                "name": row.name,
                "note": row.note,
                "reference": row.kind != "explainer",
                "cells": [column[place] for column in cells],
            }
            for place, row in enumerate(rows)
        ],
    }


def _columns(data: ReportData, rows: Sequence[ExplainerRow]) -> dict[str, list[float | None]]:
    """The numbers of the table by heading; empty columns are omitted."""
    random, best = (
        next((row.mean.harmonic_fidelity for row in data.of_kind(kind)), None)
        for kind in ("random", "optimum")
    )
    columns: dict[str, list[float | None]] = {
        "H-fidelity": [row.mean.harmonic_fidelity for row in rows],
        "Fidelity": [row.mean.fidelity for row in rows],
        "Inverse": [row.mean.inverse_fidelity for row in rows],
        "Sparsity": [row.mean.sparsity for row in rows],
        "Gap closed": [
            share_of_gap(row.mean.harmonic_fidelity, random, best)
            if random is not None and best is not None and best > random
            else None
            for row in rows
        ],
        "AUROC": [row.auroc for row in rows],
        "Evaluations": [row.evaluations for row in rows],
        "Seconds": [row.seconds for row in rows],
    }
    return {name: column for name, column in columns.items() if any(v is not None for v in column)}


def _cells(
    name: str, column: Sequence[float | None], rows: Sequence[ExplainerRow]
) -> list[dict[str, object]]:
    """A column of the table: the text of each cell, and the value it is sorted by."""
    values = [
        v for v, row in zip(column, rows, strict=True) if row.kind == "explainer" and v is not None
    ]
    best = _BEST[name](values) if name in _BEST and len(values) > 1 else None
    known = [value for value in column if value is not None]
    low, high = min(known), max(known)
    cells = []
    for value, row in zip(column, rows, strict=True):
        text = _FORMATS.get(name, "{:.3f}").format(value) if value is not None else "–"
        share = None
        if name == "H-fidelity" and value is not None:
            share = (value - low) / (high - low) if high > low else 1.0
        cells.append(
            {
                "text": re.sub(r"^-(?=[0.]*%?$)", "", text).replace("-", "−"),
                "value": f"{math.nan if value is None else value:.10g}",
                "best": row.kind == "explainer" and value is not None and value == best,
                "meter": share,
            }
        )
    return cells


def _plots(data: ReportData) -> list[Picture]:
    """Intervals at the sparsity of the table, and the curves of the metrics."""
    explainers = data.of_kind("explainer")
    pictures = []
    if len(data.rows[0].graphs) > 1 and explainers:
        references = _of_kinds(data, "random", "optimum")
        pictures.append(
            plot_intervals(
                {row.name: [g.harmonic_fidelity for g in row.graphs] for row in explainers},
                references={row.name: row.mean.harmonic_fidelity for row in references},
                title=f"H-fidelity at sparsity {data.sparsity:g}, with 95% intervals",
                width=480,
                height=320,
            )
        )
    curves = {
        row.name: row.curve
        for row in _of_kinds(data, "explainer", "random")
        if row.curve is not None
    }
    muted = [row.name for row in data.of_kind("random")]
    if curves:
        pictures += [
            plot_curves(curves, metric=metric, title=title, muted=muted, width=480, height=320)
            for metric, title in _CURVES.items()
        ]
    return pictures


def _choices(data: ReportData) -> dict[str, dict[str, str]]:
    """The choices of the gallery's filters, by value."""
    classes = sorted({c for g in data.graphs for c in (g.predicted, g.label) if c is not None})
    return {
        "classes": {"": "any", **{str(c): data.class_name(c) for c in classes}},
        "explainers": {row.name: row.name for row in data.rows if row.kind == "explainer"},
        "metrics": {metric: NAMES[metric] for metric in _METRICS},
    }


def _legend() -> dict[str, object]:
    bar = color_bar(1.0, selected=True, numbers=False)
    return {"width": bar.width, "body": Markup(bar.body)}


def _graph(data: ReportData, place: int, graph: Explained) -> dict[str, object]:
    """A card of the gallery: one graph, explained by each explainer."""
    subject = Subject.of(graph.data, seed=data.seed or 0)
    predicted = data.class_name(graph.predicted)
    verdict = {True: "right", False: "wrong", None: ""}[graph.right]
    known = "" if graph.label is None else f"label: {data.class_name(graph.label)}"
    words = subject.names if subject.kind == "sentence" else (subject.title,)
    metrics = {
        name: {metric: round(value, 6) for metric, value in asdict(faithfulness).items()}
        for name, faithfulness in graph.metrics.items()
    }
    return {
        "name": graph.name,
        "kind": subject.kind,
        "predicted": f"{predicted} · {graph.probability:.0%}",
        "known": known,
        "verdict": verdict,
        "attributes": {
            "place": place,
            "text": " ".join([graph.name, predicted, known, *words]),
            "verdict": verdict,
            "predicted": graph.predicted,
            "label": "" if graph.label is None else graph.label,
            "probability": f"{graph.probability:.6f}",
            "nodes": len(subject.names),
            "metrics": json.dumps(metrics),
        },
        "figures": [_figure(graph, subject, name) for name in graph.scores],
    }


def _figure(graph: Explained, subject: Subject, name: str) -> dict[str, object]:
    """The picture of one explainer, and its metrics."""
    painted = Painted.of(graph.scores[name], graph.selected.get(name), None, subject.names)
    picture = card(
        subject.scene(painted, width={"graph": 380.0, "sentence": 540.0}.get(subject.kind)),
        title=None,
        alternative=f"{name}: {subject.title}",
        description=subject.described(painted),
        paper=False,
    )
    numbers, best = {}, False
    metrics = graph.metrics.get(name)
    if metrics is not None:
        numbers = {
            "H-fidelity": decimal(metrics.harmonic_fidelity),
            "fidelity": decimal(metrics.fidelity),
            "inverse": decimal(metrics.inverse_fidelity),
            "scale": signed(painted.limit).replace("+", "±"),
        }
        # compared as printed: equal numbers are not marked
        printed = [decimal(each.harmonic_fidelity) for each in graph.metrics.values()]
        value = numbers["H-fidelity"]
        best = value == max(printed) and printed.count(value) == 1 and len(printed) > 1
    return {"explainer": name, "picture": Markup(picture.svg), "numbers": numbers, "best": best}


def _facts(data: ReportData) -> dict[str, dict[str, str]]:
    """Model, data, settings and versions."""
    settings = {**data.settings, "sparsity": f"{data.sparsity:g}"}
    if data.seed is not None:
        settings["seed"] = str(data.seed)
    return {
        "Model": dict(data.model),
        "Data": dict(data.dataset),
        "Settings": settings,
        "Versions": dict(data.versions),
    }
