"""The gallery of the report: every graph with its pictures side by side, and how to find one."""

from __future__ import annotations

import json
from dataclasses import asdict

from gstarx.drawing import (
    NAMES,
    Painted,
    Subject,
    card,
    color_bar,
    decimal,
    element,
    escaped,
    signed,
)
from gstarx.report.data import Explained, ReportData

_ORDERS = {
    "given": "as given",
    "high": "metric, highest first",
    "low": "metric, lowest first",
    "sure": "surest prediction first",
    "unsure": "least sure first",
    "large": "largest graph first",
}
_METRICS = ("harmonic_fidelity", "fidelity", "inverse_fidelity", "sparsity")


def gallery(data: ReportData) -> str:
    """Controls, and a card for each graph."""
    names = [row.name for row in data.rows if row.kind == "explainer"]
    cards = "".join(_card(data, place, graph) for place, graph in enumerate(data.graphs))
    many = len(data.rows[0].graphs)
    first = "" if len(data.graphs) == many else f"The first {len(data.graphs)} of {many}. "
    return (
        f'<p class="muted">{first}The same graph, explained by each of them.</p>'
        f"{_controls(data, names)}"
        '<p id="count" class="count muted" role="status" aria-live="polite"></p>'
        f'{_legend()}<ul id="gallery" class="gallery">{cards}</ul>'
        '<dialog id="large" aria-labelledby="large-name"><p id="large-name"></p>'
        '<div id="large-picture" class="picture"></div>'
        '<button type="button" id="close">Close</button></dialog>'
    )


def _controls(data: ReportData, names: list[str]) -> str:
    classes = sorted({c for g in data.graphs for c in (g.predicted, g.label) if c is not None})
    return (
        '<div class="controls panel" role="search" aria-label="Find graphs">'
        '<label class="grow">Search<input id="search" type="search" autocomplete="off" '
        'placeholder="name, SMILES, word, class"></label>'
        + _choice("verdict", "Prediction", {"": "any", "right": "right", "wrong": "wrong"})
        + _choice("class", "Class", {"": "any", **{str(c): data.class_name(c) for c in classes}})
        + _choice("explainer", "Explainer", {name: name for name in names})
        + _choice("metric", "Metric", {metric: NAMES[metric] for metric in _METRICS})
        + '<label>At least<input id="least" type="number" step="0.05" min="-1" max="1" '
        'placeholder="any"></label>'
        + _choice("order", "Order", _ORDERS)
        + '<button type="button" id="reset">Show all</button></div>'
    )


def _choice(identity: str, name: str, options: dict[str, str]) -> str:
    listed = "".join(
        f'<option value="{escaped(value)}">{escaped(shown)}</option>'
        for value, shown in options.items()
    )
    return f'<label>{escaped(name)}<select id="{identity}">{listed}</select></label>'


def _legend() -> str:
    bar = color_bar(1.0, selected=True, numbers=False)
    drawn = element(
        "svg",
        element("rect", width=bar.width + 24, height=44.0, rx=8, fill="#ffffff")
        + element("g", bar.body, transform="translate(12 9)"),
        viewBox=f"0 0 {bar.width + 24:.0f} 44",
        width=bar.width + 24,
        height=44.0,
        role="img",
        aria_label="Orange speaks for the prediction, blue against it, white is 0",
    )
    return (
        f'<div class="legend"><span>{drawn}</span><span>Colors end at the largest score of each '
        "picture, printed below it. Press a picture to enlarge it.</span></div>"
    )


def _card(data: ReportData, place: int, graph: Explained) -> str:
    subject = Subject.of(graph.data, seed=data.seed or 0)
    predicted = data.class_name(graph.predicted)
    verdict = {True: "right", False: "wrong", None: ""}[graph.right]
    badge = f"{predicted} · {graph.probability:.0%}"
    known = ""
    if graph.label is not None:
        known = f"label: {data.class_name(graph.label)}"
    pictures = "".join(_figure(graph, subject, name) for name in graph.scores)
    metrics = {
        name: {metric: round(value, 6) for metric, value in asdict(found).items()}
        for name, found in graph.metrics.items()
    }
    text = " ".join([graph.name, predicted, known, *_words(subject)])
    attributes = {
        "place": place,
        "text": text,
        "verdict": verdict,
        "predicted": graph.predicted,
        "label": "" if graph.label is None else graph.label,
        "probability": f"{graph.probability:.6f}",
        "nodes": len(subject.names),
        "metrics": json.dumps(metrics),
    }
    said = "".join(f' data-{name}="{escaped(value)}"' for name, value in attributes.items())
    mark = f'<span class="badge {verdict}">{escaped(verdict)}</span>' if verdict else ""
    return (
        f'<li class="panel {subject.kind}"{said}><div class="top"><h3>{escaped(graph.name)}</h3>'
        f"<span>predicted: <strong>{escaped(badge)}</strong></span>"
        f'<span class="muted">{escaped(known)}</span>{mark}</div>'
        f'<div class="row">{pictures}</div></li>'
    )


def _words(subject: Subject) -> tuple[str, ...]:
    return subject.names if subject.kind == "sentence" else (subject.title,)


def _figure(graph: Explained, subject: Subject, name: str) -> str:
    painted = Painted.of(graph.scores[name], graph.selected.get(name), None, subject.names)
    picture = card(
        subject.scene(painted, width={"graph": 380.0, "sentence": 540.0}.get(subject.kind)),
        title=None,
        alternative=f"{name}: {subject.title}",
        description=subject.described(painted),
        paper=False,
    )
    found = graph.metrics.get(name)
    numbers = ""
    if found is not None:
        # as printed: what looks equal is not the best
        printed = [decimal(own.harmonic_fidelity) for own in graph.metrics.values()]
        own = decimal(found.harmonic_fidelity)
        best = own == max(printed) and printed.count(own) == 1 and len(printed) > 1
        listed = {
            "H-fidelity": decimal(found.harmonic_fidelity),
            "fidelity": decimal(found.fidelity),
            "inverse": decimal(found.inverse_fidelity),
            "scale": signed(painted.limit).replace("+", "±"),
        }
        marks = {"H-fidelity": ' class="best"' if best else ""}
        numbers = "".join(
            f"<div{marks.get(said, '')}><dt>{said}</dt><dd>{value}</dd></div>"
            for said, value in listed.items()
        )
    shown = escaped(f"{name}: {graph.name}")
    return (
        f'<figure><button type="button" class="open picture" data-name="{shown}" '
        f'aria-label="Enlarge {shown}">{picture.svg}</button>'
        f"<figcaption><b>{escaped(name)}</b><dl>{numbers}</dl></figcaption></figure>"
    )
