"""The gallery: a card for every graph, with the picture and the metrics of each explainer."""

from __future__ import annotations

import json
import math
from dataclasses import asdict

import numpy as np
from markupsafe import Markup

from gstarx._internal import rounding
from gstarx.drawing import NO_VERDICT, WORSE, Scored, Subject, card, group_scores, signed
from gstarx.metrics import Faithfulness
from gstarx.players import groups_of
from gstarx_bench.report.data import Explained, ReportData

#: Groups that are listed below a picture.
_GROUPS = 4


def graph_card(data: ReportData, index: int, graph: Explained) -> dict[str, object]:
    """What the template shows of one graph."""
    subject = Subject.of(graph.data, seed=data.seed or 0)
    predicted, known = _prediction(data, graph)
    verdict = {True: "right", False: "wrong", None: ""}[graph.right]
    words = subject.names if subject.kind == "sentence" else (subject.title,)
    smiles = str(graph.data.get("smiles") or "")
    tags = sorted({name for name, _ in groups_of(graph.data)}) if subject.kind == "molecule" else []
    metrics = {name: _plain(faithfulness) for name, faithfulness in graph.metrics.items()}
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
        "figures": [_figure(graph, subject, name) for name in graph.scores],
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


def _plain(faithfulness: Faithfulness) -> dict[str, float | None]:
    """Metrics for JSON, which has no nan."""
    return {
        name: None if math.isnan(value) else round(value, 6)
        for name, value in asdict(faithfulness).items()
    }


def _figure(graph: Explained, subject: Subject, name: str) -> dict[str, object]:
    """The picture of one explainer, its metrics, and the scores of functional groups."""
    players = graph.players.get(name)
    result = Scored(
        graph.scores[name],
        graph.selected.get(name, np.zeros(0, dtype=np.int64)),
        graph.std_errors.get(name),
        players,
        graph.at_stake.get(name),
    )
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
