"""Artificial responses: rows of every kind, and names that are code."""

from __future__ import annotations

import json
from typing import Any

HOSTILE = """<script>window.hacked = 1</script>"><img src=x onerror="window.hacked=1">&amp;"""
_METRICS = ("fidelity", "inverse_fidelity", "harmonic_fidelity")


def run(page: Any) -> dict[str, Any]:
    """The run of the real server."""
    address = page.url.partition("#")[0]
    content: dict[str, Any] = page.request.get(f"{address}api/v1/run").json()
    return content


def rows(about: dict[str, Any], query: dict[str, list[str]]) -> dict[str, Any]:
    """A page of sixty rows, some of them wrong, one of them failed."""
    made = [_row(graph, [str(each["id"]) for each in about["runs"]]) for graph in range(60)]
    kept = {
        "all": made,
        "wrong": [row for row in made if not row["correct"]],
        "failed": [row for row in made if row["error"]],
    }[query["filter"][0]]
    offset, limit = int(query.get("offset", ["0"])[0]), int(query["limit"][0])
    return {"total": len(kept), "rows": kept[offset : offset + limit]}


def _row(graph: int, runs: list[str]) -> dict[str, Any]:
    failed = graph == 7
    figures = dict.fromkeys(_METRICS, graph / 60)
    return {
        "graph": graph,
        "title": HOSTILE,
        "nodes": 9,
        "prediction": 1,
        "label": int(graph % 10 != 3),
        "correct": graph % 10 != 3,
        "metrics": dict.fromkeys(runs, None if failed else figures),
        "error": HOSTILE if failed else None,
    }


def answer_everything(page: Any, *, groups: bool) -> None:
    """Answer the requests of a page with hostile names wherever there are names.

    Players are two nodes, or two groups of one node.
    """
    job = {"id": "made", "state": "queued", "position": 1, "results": []}
    page.route("**/api/v1/about", lambda route: route.fulfill(json=_about()))
    page.route("**/api/v1/jobs", lambda route: route.fulfill(status=202, json=job))
    page.route(
        "**/api/v1/jobs/made/events",
        lambda route: route.fulfill(content_type="text/event-stream", body=_events(groups)),
    )


def _about() -> dict[str, Any]:
    option = {"name": HOSTILE, "about": HOSTILE, "type": "choice", "default": HOSTILE}
    option |= {"choices": [HOSTILE], "minimum": None, "maximum": None}
    model = {"name": "made", "title": HOSTILE, "kind": "graph", "inputs": ["smiles"]}
    model |= {"classes": [HOSTILE, "b"], "dataset": HOSTILE, "graphs": 0, "problem": None}
    model |= {"facts": {"network": HOSTILE}}
    model |= {"players": [{"name": "nodes", "title": HOSTILE}]}
    model |= {"examples": [{"title": HOSTILE, "input": {"smiles": HOSTILE}}]}
    explainer = {"name": "made", "title": HOSTILE, "about": HOSTILE, "trains": False}
    explainer |= {"players": ["nodes"]}
    limits = {"nodes": 9, "text": 999, "budget": 9, "seconds": 9, "queue": 9}
    return {
        "version": HOSTILE,
        "ready": True,
        "limits": {**limits, "explainers": 9, "graphs_per_page": 9},
        "models": [model, {**model, "name": "other", "problem": HOSTILE}],
        "explainers": [{**explainer, "default": True, "options": [option]}],
        "run": None,
    }


def _groups() -> dict[str, Any]:
    entries = [{"name": HOSTILE, "nodes": [node]} for node in (0, 1)]
    return {"name": HOSTILE, "title": HOSTILE, "kind": "groups", "entries": entries}


def _events(groups: bool) -> str:
    node = {"label": HOSTILE, "name": HOSTILE, "y": 50, "r": 12}
    subject = {
        "title": HOSTILE,
        "kind": "graph",
        "width": 120,
        "height": 100,
        "nodes": [{**node, "x": 20}, {**node, "x": 90}],
        "edges": [[0, 1]],
        "shapes": [{"d": HOSTILE, "fill": HOSTILE, "stroke": HOSTILE, "width": 1}],
        "text": True,
        "prediction": {"class": 0, "name": HOSTILE, "probabilities": [0.75, 0.25]},
        "classes": [HOSTILE, "b"],
        "label": 1,
        "players": _groups() if groups else None,
        "truth": None,
        "input": {"smiles": HOSTILE},
    }
    result = {
        "explainer": "made",
        "title": HOSTILE,
        "options": {},
        "explanation": {"exact": False, "estimator": HOSTILE, "evaluations": 3},
        "scores": [0.5, -0.25],
        "std_errors": [0.1, 0.2],
        "limit": 0.5,
        "notes": [HOSTILE],
        "selections": [[], [0], [0, 1]],
        "metrics": {name: [0.5, 0.6, 0.5] for name in _METRICS},
        "seconds": 0.1,
        "error": None,
    }
    parts = [{"subject": subject}, {"result": result}, {"state": "done"}]
    events = "".join(f"event: job\ndata: {json.dumps(part)}\n\n" for part in parts)
    return f"{events}event: end\ndata: {{}}\n\n"
