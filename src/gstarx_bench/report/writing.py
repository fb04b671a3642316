"""Writes reports and summaries as HTML pages without external resources."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING

from markupsafe import Markup

from gstarx._internal import rounding
from gstarx._internal.messages import printable
from gstarx._version import __version__
from gstarx.drawing import (
    MARKS,
    NAMES,
    NO_VERDICT,
    WORSE,
    Picture,
    Subject,
    card,
    color_bar,
    group_scores,
    plot_curves,
    plot_intervals,
    signed,
    summary_chart,
    write_file,
)
from gstarx.metrics import Faithfulness, share_of_gap
from gstarx.players import groups_of
from gstarx_bench.report.data import Explained, ExplainerRow, ReportData
from gstarx_bench.summary import SummaryRow

if TYPE_CHECKING:
    from jinja2 import Environment

#: Functional groups that are listed below a picture.
_GROUPS = 4
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
    "Clipped": "{:.0%}",
    "Evaluations": "{:,.0f}",
    "Seconds": "{:.2g}",
}

_SUMMARY_HEADINGS = (
    "Group",
    "Explained",
    "Mean score",
    "95% interval",
    "Graphs",
    "Sign",
    "Examples",
)


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
    return render(
        "report/report.html.jinja",
        **_assets("report.js"),
        **_summary(data),
        **_table(data),
        plots=[Markup(picture.svg) for picture in _plots(data)],
        summaries=[_summary_part(name, rows) for name, rows in _ordered_summaries(data)],
        choices=_choices(data),
        bar=_legend(data),
        graphs=[_card(data, place, graph) for place, graph in enumerate(data.graphs)],
        lists=_facts(data),
        version=data.versions.get("gstarx", ""),
    )


def summary_page(
    title: str,
    summaries: Mapping[str, Sequence[SummaryRow]],
    *,
    facts: Mapping[str, str] | None = None,
) -> str:
    """A page about what drives a model: one HTML text that loads nothing.

    Parameters
    ----------
    title
        The title of the page.
    summaries
        By explainer, rows of :func:`gstarx_bench.summary.summarize`.
    facts
        What to list below the title, by name.
    """
    return render(
        "report/summary.html.jinja",
        **_assets(),
        title=title,
        parts=[_summary_part(name, rows) for name, rows in summaries.items()],
        facts=dict(facts or {}),
        version=__version__,
    )


def _summary(data: ReportData) -> dict[str, object]:
    """The summary at the top: a few sentences and numbers."""
    explainers = data.of_kind("explainer")
    count = len(data.rows[0].graphs)
    sizes = [int(graph.data.num_nodes or 0) for graph in data.graphs]
    trained_on, _, _ = data.facts.get("dataset", {}).get("training graphs", "").partition(":")
    tiles = [("Graphs", str(count), f"training graphs: {trained_on}" if trained_on else "")]
    if data.accuracy is not None:
        tiles.append(("Accuracy of the model", f"{data.accuracy:.1%}", "of labeled graphs"))
    if data.error is not None:
        tiles.append(("Error of the model", rounding.output(data.error), "root mean square"))
    if sizes:
        tiles.append(("Nodes per graph", f"{sum(sizes) / len(sizes):.1f}", "on average"))
    kind = data.players[:1].upper() + data.players[1:]
    tiles.append((f"{kind} left out", f"{data.sparsity:.0%}", "sparsity"))
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
        "task": data.task,
        "players": data.players,
        "explained": data.explained,
        "worse": [row.name for row in explainers if _worse(data, row)],
        "sparsity": f"{data.sparsity:g}",
        "kept": f"{1 - data.sparsity:.0%}",
        "highest": highest[0] if highest else None,
        "references": [_named(row) for row in _of_kinds(data, "random", "optimum")],
        "tiles": tiles,
    }


def _named(row: ExplainerRow) -> dict[str, str]:
    return {"name": row.name, "value": rounding.metric(row.mean.harmonic_fidelity)}


def _worse(data: ReportData, row: ExplainerRow) -> bool:
    """Whether an explainer is, as printed, worse than the random selection."""
    references = [each.mean.harmonic_fidelity for each in data.of_kind("random")]
    mean = row.mean.harmonic_fidelity
    return any(mean < r and rounding.metric(mean) != rounding.metric(r) for r in references)


def _below(data: ReportData, row: ExplainerRow, verdict: str) -> str:
    """The verdict on an explainer below the random selection, if it is the one of this task."""
    of_task = NO_VERDICT if data.task == "regression" else WORSE
    below = row.kind == "explainer" and verdict == of_task and _worse(data, row)
    return verdict if below else ""


def _of_kinds(data: ReportData, *kinds: str) -> list[ExplainerRow]:
    return [row for kind in kinds for row in data.of_kind(kind)]


def _table(data: ReportData) -> dict[str, object]:
    """All explainers with their metrics."""
    rows = _of_kinds(data, "optimum", "explainer", "random")
    columns = _columns(data, rows)
    cells = [_cells(name, column, rows) for name, column in columns.items()]
    return {
        "headings": ["Explainer", *columns],
        "clipped": "Clipped" in columns,
        # the same graphs for every explainer
        "undefined": round(rows[0].mean.undefined * len(rows[0].graphs)) if rows else 0,
        "no_gap": "Gap closed" in columns and not any(map(_known, columns["Gap closed"])),
        "rows": [
            {
                "name": row.name,
                "note": "; ".join(filter(None, (row.note, _below(data, row, NO_VERDICT)))),
                "warning": _below(data, row, WORSE),
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
            if random is not None and best is not None and _differ(random, best)
            else None
            for row in rows
        ],
        "Clipped": [row.mean.clipped if data.task == "regression" else None for row in rows],
        "AUROC": [row.auroc for row in rows],
        "Evaluations": [row.evaluations for row in rows],
        "Seconds": [row.seconds for row in rows],
    }
    # without both references there is no gap; where they do not differ, the column is blank
    always = {"Gap closed"} if random is not None and best is not None else set()
    return {
        name: column
        for name, column in columns.items()
        if name in always or any(map(_known, column))
    }


def _known(value: float | None) -> bool:
    return value is not None and not math.isnan(value)


def _differ(random: float, best: float) -> bool:
    """Whether there is a gap to close, as printed."""
    return best > random and rounding.metric(best) != rounding.metric(random)


def _cells(
    name: str, column: Sequence[float | None], rows: Sequence[ExplainerRow]
) -> list[dict[str, object]]:
    """A column of the table: the text of each cell, and the value it is sorted by."""
    values = [
        value
        for value, row in zip(column, rows, strict=True)
        if row.kind == "explainer" and value is not None and _known(value)
    ]
    best = _BEST[name](values) if name in _BEST and len(values) > 1 else None
    known = [value for value in column if value is not None and _known(value)]
    cells = []
    for value, row in zip(column, rows, strict=True):
        meter = None
        if name == "H-fidelity" and value is not None and _known(value):
            low, high = min(known), max(known)
            meter = (value - low) / (high - low) if high > low else 1.0
        cells.append(
            {
                "text": _cell_text(name, value),
                "value": f"{math.nan if value is None else value:.10g}",
                "best": row.kind == "explainer" and value is not None and value == best,
                "meter": meter,
            }
        )
    return cells


def _cell_text(name: str, value: float | None) -> str:
    if value is None or not _known(value):
        return "" if name == "Gap closed" else "–"
    if name not in _FORMATS:
        return rounding.metric(value)
    return re.sub(r"^-(?=[0.]*%?$)", "", _FORMATS[name].format(value)).replace("-", "−")


def _plots(data: ReportData) -> list[Picture]:
    """Intervals at the sparsity of the table, and the curves of the metrics."""
    explainers = data.of_kind("explainer")
    pictures = []
    heights = {row.name: [g.harmonic_fidelity for g in row.graphs] for row in explainers}
    # regression graphs whose prediction equals the mean have no metrics
    heights = {name: [v for v in values if _known(v)] for name, values in heights.items()}
    if heights and min(map(len, heights.values())) > 1:
        references = _of_kinds(data, "random", "optimum")
        pictures.append(
            plot_intervals(
                heights,
                references={
                    row.name: row.mean.harmonic_fidelity
                    for row in references
                    if _known(row.mean.harmonic_fidelity)
                },
                title=f"H-fidelity at sparsity {data.sparsity:g}, with 95% intervals",
                width=480,
                height=320,
            )
        )
    curves = {
        row.name: row.curve
        for row in _of_kinds(data, "explainer", "random")
        if row.curve is not None and all(map(_known, row.curve["harmonic_fidelity"]))
    }
    muted = [row.name for row in data.of_kind("random")]
    if curves:
        pictures += [
            plot_curves(curves, metric=metric, title=title, muted=muted, width=480, height=320)
            for metric, title in _CURVES.items()
        ]
    return pictures


def _ordered_summaries(data: ReportData) -> list[tuple[str, Sequence[SummaryRow]]]:
    """The summaries, that of the explainer with the highest H-fidelity first."""
    order = [row.name for row in data.of_kind("explainer")]
    named = [name for name in order if name in data.summaries]
    return [(name, data.summaries[name]) for name in named]


def _choices(data: ReportData) -> dict[str, dict[str, str]]:
    """The choices of the gallery's filters, by value; none for classes of a regression."""
    classes = sorted({c for g in data.graphs for c in (g.predicted, g.label) if c is not None})
    has_labels = any(graph.right is not None for graph in data.graphs)
    by_confidence = {"sure": "most confident first", "unsure": "least confident first"}
    if data.task == "regression":
        by_confidence = {"sure": "highest value first", "unsure": "lowest value first"}
    return {
        "verdicts": {"": "any", "right": "right", "wrong": "wrong"} if has_labels else {},
        "classes": {"": "any", **{str(c): data.class_name(c) for c in classes}} if classes else {},
        "explainers": {row.name: row.name for row in data.rows if row.kind == "explainer"},
        "metrics": {metric: NAMES[metric] for metric in _METRICS},
        "orders": {
            "given": "as given",
            "high": "metric, highest first",
            "low": "metric, lowest first",
            **by_confidence,
            "large": "largest graph first",
        },
    }


def _legend(data: ReportData) -> dict[str, object]:
    regression = data.task == "regression"
    bar = color_bar(1.0, marks=tuple(MARKS), numbers=False, regression=regression)
    return {"width": bar.width, "height": bar.height, "body": Markup(bar.body)}


def _facts(data: ReportData) -> dict[str, dict[str, str]]:
    """Model, data, settings and versions."""
    settings = {**data.facts.get("settings", {}), "sparsity": f"{data.sparsity:g}"}
    if data.seed is not None:
        settings["seed"] = str(data.seed)
    return {
        "Model": dict(data.facts.get("model", {})),
        "Data": dict(data.facts.get("dataset", {})),
        "Settings": settings,
        "Versions": dict(data.versions),
    }


def _summary_part(name: str, rows: Sequence[SummaryRow]) -> dict[str, object]:
    """The summary of one explainer, as the template shows it."""
    return {
        "explainer": name,
        "headings": _SUMMARY_HEADINGS,
        "chart": Markup(summary_chart(rows, width=520).svg) if rows else "",
        "rows": [_summary_row(row) for row in rows],
    }


def _summary_row(row: SummaryRow) -> dict[str, object]:
    return {
        "name": row.name,
        "sign": row.sign,
        "cells": (
            row.explained,
            rounding.metric(row.mean),
            row.interval,
            f"{row.graphs:,}",
            row.sign,
        ),
        "examples": ", ".join(row.examples),
    }


def _assets(*scripts: str) -> dict[str, object]:
    """The style, the scripts as one, and the digests by which the page allows them."""
    folder = files("gstarx_bench.report")
    texts = {
        "style": folder.joinpath("report.css").read_text(encoding="utf-8"),
        "script": "".join(
            folder.joinpath(name).read_text(encoding="utf-8") for name in ("tables.js", *scripts)
        ),
    }
    digests = {part: _digest(text) for part, text in texts.items()}
    return {**{part: Markup(text) for part, text in texts.items()}, "digests": digests}


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _card(data: ReportData, index: int, graph: Explained) -> dict[str, object]:
    """What the template shows of one graph."""
    subject = Subject.of(graph.data, seed=data.seed or 0)
    predicted, known = _prediction(data, graph)
    verdict = {True: "right", False: "wrong", None: ""}[graph.right]
    words = subject.names if subject.kind == "sentence" else (subject.title,)
    smiles = str(graph.data.get("smiles") or "")
    tags = sorted({name for name, _ in groups_of(graph.data)}) if subject.kind == "molecule" else []
    metrics = {name: _for_json(faithfulness) for name, faithfulness in graph.metrics.items()}
    confidence = graph.value if graph.probability is None else graph.probability
    return {
        "name": graph.name,
        "smiles": smiles if smiles != graph.name else "",
        "kind": subject.kind,
        "predicted": predicted,
        "known": known,
        "verdict": verdict,
        "tags": tags,
        "attributes": {
            "place": index,
            "text": " ".join([graph.name, predicted, known, smiles, *tags, *words]),
            "verdict": verdict,
            "predicted": "" if graph.predicted is None else graph.predicted,
            "label": "" if graph.label is None else graph.label,
            "probability": f"{0.0 if confidence is None else confidence:.6f}",
            "nodes": len(subject.names),
            "metrics": json.dumps(metrics),
        },
        "figures": [_figure(graph, subject, name) for name in graph.results],
    }


def _prediction(data: ReportData, graph: Explained) -> tuple[str, str]:
    """What was predicted, and what is true, in words."""
    if data.task == "regression":
        value = "–" if graph.value is None else rounding.output(graph.value)
        known = "" if graph.measured is None else f"measured: {rounding.output(graph.measured)}"
        return f"{data.explained or 'value'} {value}", known
    if graph.predicted is None or graph.probability is None:
        return "–", ""
    predicted = data.class_name(graph.predicted)
    known = "" if graph.label is None else f"label: {data.class_name(graph.label)}"
    if data.task == "multilabel":
        return f"{data.explained}: {rounding.yes_or_no(graph.probability)}", known
    return f"{predicted}, probability {rounding.probability(graph.probability)}", known


def _for_json(faithfulness: Faithfulness) -> dict[str, float | None]:
    """Metrics for JSON, which has no nan."""
    return {
        name: None if math.isnan(value) else round(value, 6)
        for name, value in asdict(faithfulness).items()
    }


def _figure(graph: Explained, subject: Subject, name: str) -> dict[str, object]:
    """The picture of one explainer, its metrics, and the scores of functional groups."""
    result = graph.results[name]
    players = result.explanation
    painted = subject.painted(result, None)
    wide = {"graph": 380.0, "sentence": 540.0}.get(subject.kind)
    picture = card(
        subject.scene(painted, width=wide),
        title=None,
        alternative=f"{name}: {subject.title}",
        description=subject.described(painted),
        paper=False,
    )
    numbers, best, worse = {}, False, False
    metrics = graph.metrics.get(name)
    if metrics is not None:
        numbers = {
            "H-fidelity": rounding.metric(metrics.harmonic_fidelity),
            "fidelity": rounding.metric(metrics.fidelity),
            "inverse": rounding.metric(metrics.inverse_fidelity),
            "scale": rounding.scale(painted.limit),
        }
        # compared as printed: equal numbers are not marked
        printed = [rounding.metric(each.harmonic_fidelity) for each in graph.metrics.values()]
        value = numbers["H-fidelity"]
        best = value == max(printed) and printed.count(value) == 1 and len(printed) > 1
        random = math.nan if graph.random is None else graph.random
        worse = metrics.harmonic_fidelity < random and value != rounding.metric(random)
    groups = []
    if subject.kind == "molecule" and players is None:
        strongest = group_scores(painted.scores, graph.data)
        strongest = sorted(strongest, key=lambda group: -abs(group.score))[:_GROUPS]
        groups = [f"{group.name} {signed(group.score)}" for group in strongest]
    verdict = NO_VERDICT if graph.value is not None else WORSE
    notes = painted.notes()
    return {
        "explainer": name,
        "picture": Markup(picture.svg),
        "numbers": numbers,
        "best": best,
        "groups": groups,
        "notes": [*notes, verdict] if worse and verdict == NO_VERDICT else notes,
        "warning": verdict if worse and verdict == WORSE else "",
    }


def render(name: str, **values: object) -> str:
    """A page from a template of the package.

    Parameters
    ----------
    name
        The path of the template below the package, such as ``"report/report.html.jinja"``.
    **values
        The values it shows. All but :class:`markupsafe.Markup` are escaped.

    Examples
    --------
    >>> page = render("cli/pages.html.jinja", title="a < b", pages={})
    >>> "<title>a &lt; b</title>" in page
    True
    """
    return printable(_environment().get_template(name).render(values))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        autoescape=True,
        loader=PackageLoader("gstarx_bench", "."),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
