"""Reports whose players are edges, groups or features."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx import metrics
from gstarx.datasets import load
from gstarx.explainers import create
from gstarx.models import pretrained
from gstarx_bench.report import ReportOptions, build_report, report_page
from tests.shared import UNTRAINED

pytestmark = UNTRAINED


@pytest.mark.parametrize(
    ("players", "words"),
    [("edges", "of the edges"), ("brics", "BRICS fragments")],
)
def test_players_are_drawn_selected_and_removed(players: str, words: str) -> None:
    model, _ = pretrained("nitro")
    graphs = load("nitro").split("test")[:2]
    explainers = {
        "value": create("shapley", players=players),
        "nodes": create("gradient_x_input"),
    }
    judge, options = metrics.Judge(model, players=players), ReportOptions(random_draws=3)
    report = build_report(
        judge, graphs, explainers, title="Players", options=options, progress=False
    )
    rows = {row.name: row for row in report.rows}
    assert "scores nodes" in rows["nodes"].note
    assert rows["value"].note == ""
    for at, graph in enumerate(report.graphs):
        shown = graph.results["value"].explanation
        chosen = graph.results["value"].selected
        assert len(chosen) >= 1
        np.testing.assert_array_equal(graph.results["value"].scores, shown.scores)
        judged = metrics.evaluate(model, graphs[at], chosen, players=players)
        assert graph.metrics["value"].fidelity == pytest.approx(judged.fidelity, abs=1e-6)
        # the best selection is of the same players
        best = rows["best selection found"].graphs[at].harmonic_fidelity
        assert best >= judged.harmonic_fidelity - 1e-9
        assert graph.results["nodes"].explanation is None
    page = report_page(report)
    assert words in page
    assert "Instead of nodes" in page
