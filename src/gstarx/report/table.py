"""The upper half of the report: the sentence that sums it up, the table, the curves."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

from gstarx.drawing import decimal, element, escaped, plot_curves, plot_intervals
from gstarx.metrics import share_of_gap
from gstarx.report.data import ExplainerRow, ReportData

_PLOTS = ("harmonic_fidelity", "fidelity", "inverse_fidelity")
_METER = 84.0
_FORMATS = {
    "Gap closed": "{:.0%}",
    "Evaluations": "{:,.0f}",
    "Seconds": "{:.2g}",
    "Sparsity": "{:.2f}",
}


def summary(data: ReportData) -> str:
    """What the page says, in a few sentences."""
    best = data.of_kind("explainer")
    count = len(data.rows[0].graphs)
    said = [f"{len(best)} explainer{'s' * (len(best) != 1)} on {count} graph{'s' * (count != 1)}."]
    if data.accuracy is not None:
        said.append(f"The model is right about <strong>{data.accuracy:.0%}</strong> of them.")
    if best:
        top = best[0]
        sentence = (
            f"When {1 - data.sparsity:.0%} of the nodes are kept, "
            f"<strong>{escaped(top.name)}</strong> has the highest H-fidelity, "
            f"<strong>{decimal(top.mean.harmonic_fidelity)}</strong>"
        )
        held = [
            f"{escaped(row.name)} {decimal(row.mean.harmonic_fidelity)}"
            for kind in ("random", "optimum")
            for row in data.of_kind(kind)
        ]
        said.append(sentence + (f" ({', '.join(held)})." if held else "."))
    return " ".join(said)


def tiles(data: ReportData) -> str:
    """Four numbers to begin with."""
    best = data.of_kind("explainer")
    sizes = [int(graph.data.num_nodes or 0) for graph in data.graphs]
    found = [("Graphs", str(len(data.rows[0].graphs)), "")]
    if data.accuracy is not None:
        found.append(("Accuracy of the model", f"{data.accuracy:.1%}", ""))
    if sizes:
        found.append(("Nodes of a graph", f"{sum(sizes) / len(sizes):.1f}", "on average"))
    found.append(("Nodes left out", f"{data.sparsity:.0%}", "sparsity"))
    if best:
        top = best[0]
        found.append(("Highest H-fidelity", decimal(top.mean.harmonic_fidelity), top.name))
    return (
        '<dl class="tiles">'
        + "".join(
            f"<div><dt>{escaped(name)}</dt><dd>{escaped(value)} <small>{escaped(more)}</small>"
            "</dd></div>"
            for name, value, more in found
        )
        + "</dl>"
    )


def table(data: ReportData) -> str:
    """All explainers with their metrics, sortable."""
    rows = [row for kind in ("optimum", "explainer", "random") for row in data.of_kind(kind)]
    columns = _columns(data, rows)
    heads = "".join(
        f'<th scope="col"{_sorted(place)}><button type="button">{escaped(name)}</button></th>'
        for place, name in enumerate(["Explainer", *columns])
    )
    ends = [row.mean.harmonic_fidelity for row in rows]
    body = []
    for place, row in enumerate(rows):
        note = f"<small>{escaped(row.note)}</small>" if row.note else ""
        cells = "".join(
            _cell(name, values[place], place, rows, values, (min(ends), max(ends)))
            for name, values in columns.items()
        )
        held = ' class="held"' if row.kind != "explainer" else ""
        body.append(
            f'<tr{held} data-place="{place}"><th scope="row">{escaped(row.name)}{note}</th>'
            f"{cells}</tr>"
        )
    caption = (
        f"Means over {len(rows[0].graphs)} graphs at sparsity {data.sparsity:g}. Higher is better, "
        "but for inverse fidelity, evaluations and seconds. Press a heading to sort."
    )
    return (
        f'<p id="about-table" class="muted">{caption}</p><div class="panel scroll">'
        '<table id="explainers" aria-describedby="about-table">'
        f"<thead><tr>{heads}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
    )


def curves(data: ReportData) -> str:
    """Intervals at the sparsity of the table, and the metrics over sparsities."""
    explainers = data.of_kind("explainer")
    references = {
        row.name: row.mean.harmonic_fidelity
        for kind in ("random", "optimum")
        for row in data.of_kind(kind)
    }
    pictures = []
    if len(data.rows[0].graphs) > 1 and explainers:
        pictures.append(
            plot_intervals(
                {row.name: [g.harmonic_fidelity for g in row.graphs] for row in explainers},
                references=references,
                title=f"H-fidelity at sparsity {data.sparsity:g}, with 95% intervals",
                width=480,
                height=320,
            )
        )
    found = {
        row.name: row.curve
        for kind in ("explainer", "random")
        for row in data.of_kind(kind)
        if row.curve is not None
    }
    held = [row.name for row in data.of_kind("random")]
    if found:
        titles = ("H-fidelity", "Fidelity: higher is better", "Inverse fidelity: lower is better")
        pictures += [
            plot_curves(found, metric=metric, title=title, muted=held, width=480, height=320)
            for metric, title in zip(_PLOTS, titles, strict=True)
        ]
    return (
        '<div class="plots">'
        + "".join(f'<div class="picture">{picture.svg}</div>' for picture in pictures)
        + "</div>"
    )


def _columns(data: ReportData, rows: Sequence[ExplainerRow]) -> dict[str, list[float | None]]:
    """The numbers of the table by heading; columns without any number are left out."""
    random, best = (
        next((row.mean.harmonic_fidelity for row in data.of_kind(kind)), None)
        for kind in ("random", "optimum")
    )
    found: dict[str, list[float | None]] = {
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
    return {name: column for name, column in found.items() if any(v is not None for v in column)}


def _cell(
    name: str,
    value: float | None,
    place: int,
    rows: Sequence[ExplainerRow],
    column: Sequence[float | None],
    ends: tuple[float, float],
) -> str:
    own = [
        v for v, row in zip(column, rows, strict=True) if row.kind == "explainer" and v is not None
    ]
    best = None
    if own and name in ("H-fidelity", "Fidelity", "Gap closed", "AUROC"):
        best = max(own)
    elif own and name == "Inverse":
        best = min(own)
    mark = ' class="best"' if value == best and value is not None and len(own) > 1 else ""
    if rows[place].kind != "explainer":
        mark = ""
    text = _FORMATS.get(name, "{:.3f}").format(value) if value is not None else "–"
    text = re.sub(r"^-(?=[0.]*%?$)", "", text).replace("-", "−")
    meter = _meter(value, *ends) if name == "H-fidelity" and value is not None else ""
    return f'<td{mark} data-value="{math.nan if value is None else value:.10g}">{text}{meter}</td>'


def _meter(value: float, low: float, high: float) -> str:
    """A dot between the lowest and the highest of the table."""
    share = (value - low) / (high - low) if high > low else 1.0
    x = 5 + share * (_METER - 10)
    return element(
        "svg",
        element("rect", class_="track", x=0.0, y=6.0, width=_METER, height=2.0, rx=1.0)
        + element("circle", class_="dot", cx=x, cy=7.0, r=5.0),
        class_="meter",
        viewBox=f"0 0 {_METER:g} 14",
        aria_hidden="true",
    )


def _sorted(place: int) -> str:
    return ' aria-sort="descending"' if place == 1 else ""
