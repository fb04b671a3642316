"""Runs keep who plays and their scores, whatever the players are."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gstarx import datasets, metrics
from gstarx.drawing import draw
from gstarx.explainers import create, graph_generator
from gstarx.models import load_model
from gstarx_bench.runs import ExplainerSpec, RunSpec, explanation_of, read, run
from tests.cli.commands import gstarx
from tests.shared import UNTRAINED

pytestmark = UNTRAINED

CASES: dict[str, dict[str, Any]] = {
    "edges": {"players": "edges"},
    "directions": {"players": "edges", "directed": True},
    "position": {"players": "edges", "value": "position"},
    "fragments": {"players": "brics"},
    "features": {"players": "features", "feature_groups": {"first": [0, 2]}, "reference": "mean"},
}


@pytest.mark.parametrize("case", CASES)
def test_an_explanation_by_players_comes_back_from_its_row(
    case: str, spec: Callable[..., RunSpec], weights: Path, tmp_path: Path
) -> None:
    options = CASES[case]
    run(
        spec(ExplainerSpec(name="gstarx", options=options), 2, seed=5),
        tmp_path,
        workers=1,
        progress=False,
    )
    model, _ = load_model(weights)
    dataset = datasets.load("nitro")
    for position, row in enumerate(read(tmp_path).to_pylist()):
        made = create("gstarx", dataset="nitro", **options)
        expected = made.explain(model, dataset[position], seed=graph_generator(5, position))
        stored = explanation_of(row)
        assert stored.player_kind == expected.player_kind != "nodes"
        np.testing.assert_allclose(stored.scores, expected.scores, atol=1e-12)
        for player in range(len(expected.players)):
            assert stored.name_of(player) == expected.name_of(player)
            assert stored.nodes_of([player]).tolist() == expected.nodes_of([player]).tolist()
        assert stored.select(size=2).tolist() == expected.select(size=2).tolist()
        judged = [
            metrics.evaluate(model, dataset[position], [0], players=each.player_spec)
            for each in (stored, expected)
        ]
        assert judged[0] == pytest.approx(judged[1])
        pictures = [draw(dataset[position], each, caption="") for each in (stored, expected)]
        assert pictures[0].svg == pictures[1].svg


def test_a_report_of_a_store_draws_the_players(tmp_path: Path) -> None:
    store, page = tmp_path / "store", tmp_path / "page.html"
    evaluated = ("evaluate", "nitro", "--limit", 2, "-e", "gstarx,gnnexplainer")
    options = ("-o", "gnnexplainer.epochs=5", "--players", "edges", "--workers", 1)
    gstarx(*evaluated, *options, "--store", store)
    gstarx("report", "--store", store, "--output", page)
    written = page.read_text(encoding="utf-8")
    assert "of the edges are kept" in written
    assert re.search(r"<title>[A-Z][a-z]?\d+-[A-Z][a-z]?\d+ ", written)  # a bond and its score
