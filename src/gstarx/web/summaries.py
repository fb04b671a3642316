"""Which functional groups, words or node types drive each class, over the graphs of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from gstarx._internal.suggestions import unknown
from gstarx.evaluation import summarize
from gstarx.players import default_kind
from gstarx.runs import explanation_of
from gstarx.web.messages import Refused, public_message

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gstarx.web.browsing import StoredRun, StoreView

#: Graphs of a run that are summarized, so that the page does not have to wait.
MAX_GRAPHS = 2_000
#: What graphs can be divided into, by what suits them.
_DIVISIONS = {
    "functional_groups": ("functional_groups", "rings", "brics", "node_types"),
    "words": ("words",),
    "node_types": ("node_types",),
}


def group_summary(view: StoreView, run: str, by: str | None) -> dict[str, Any]:
    """The groups of the graphs that a run has explained, with their mean scores; or Refused."""
    stored = view.runs[run]
    graphs = _explained(view, stored)
    if not graphs:
        text = f"{stored.title} has no scores to summarize, or the graphs are not available"
        raise Refused("no_data", text, "run")
    data = [graph for graph, _ in graphs]
    valid = _DIVISIONS.get(default_kind(data[0]), ("node_types",))
    by = valid[0] if by is None else by
    if by not in valid:
        raise Refused("bad_option", unknown("division", by[:50], valid), "by")
    shown = graphs[:MAX_GRAPHS]
    try:
        rows = summarize(
            [graph for graph, _ in shown],
            [explanation_of(row) for _, row in shown],
            by=by,
            mode=view.task,
            class_names=view.names,
            target_names=view.names,
        )
    except ValueError as error:
        raise Refused("failed", public_message(error), "by") from error
    return {
        "run": run,
        "by": by,
        "divisions": list(valid),
        "graphs": len(shown),
        "total": len(graphs),
        "rows": [row.as_dict() for row in rows],
    }


def _explained(view: StoreView, run: StoredRun) -> list[tuple[Data, dict[str, Any]]]:
    """The graphs that have scores, with their rows."""
    graphs = []
    for position, row in sorted(run.rows.items()):
        if row["error"] is not None or row["scores"] is None:
            continue
        try:
            graphs.append((view.graph(position), row))
        except Refused:
            continue  # it has changed since the run, which opening it says
    return graphs
