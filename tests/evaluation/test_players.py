"""The pipeline evaluates what was explained: edges as edges, groups as groups."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx import metrics
from gstarx.datasets import load
from gstarx.drawing import scored
from gstarx.evaluation import Pipeline, recorded
from gstarx.explainers import create
from gstarx.models import pretrained


@pytest.mark.parametrize("players", ["edges", "brics", "features"])
def test_selections_of_players_are_judged_as_players(players: str) -> None:
    model, _ = pretrained("nitro")
    data = load("nitro")[0]
    pipeline = Pipeline(model, seed=0)
    explanation = pipeline.explain(create("gstarx", players=players), data, 0)
    evaluated = pipeline.evaluate(data, explanation, sparsities=[0.5, 0.8])["top"]
    for chosen, found in zip(evaluated.selections, evaluated.metrics, strict=True):
        expected = metrics.evaluate(model, data, chosen, players=explanation.player_spec)
        assert found.fidelity == pytest.approx(expected.fidelity, abs=1e-9)
        assert found.sparsity == pytest.approx(1 - len(chosen) / len(explanation.players))
    record = recorded(explanation)
    assert (record["scores"] is None) == (players != "brics")
    assert record["std_errors"] is None
    if players != "features":
        shown = scored(explanation, int(data.num_nodes), 0.5)
        np.testing.assert_array_equal(shown.selected, explanation.nodes_of(evaluated.selections[0]))
