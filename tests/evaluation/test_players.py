"""The pipeline evaluates what was explained: edges as edges, groups as groups."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx import GNNGame, metrics
from gstarx.datasets import load
from gstarx.drawing import scored
from gstarx.evaluation import Pipeline, recorded
from gstarx.explainers import create
from gstarx.models import pretrained


@pytest.mark.parametrize("players", ["edges", "brics", "features"])
def test_selections_of_players_are_judged_as_players(players: str) -> None:
    model, data = pretrained("nitro")[0].double(), load("nitro")[0].clone()
    data.x = data.x.double()  # passes of different sizes round differently
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
    shown = scored(explanation, int(data.num_nodes), 0.5)
    np.testing.assert_array_equal(shown.selected, evaluated.selections[0])
    np.testing.assert_array_equal(shown.scores, explanation.scores)


def test_masks_of_edges_are_judged_on_edges() -> None:
    model, _ = pretrained("nitro")
    data = load("nitro")[0]
    pipeline = Pipeline(model, seed=0)
    of_nodes = pipeline.explain(create("gnnexplainer", epochs=10), data, 0)
    of_edges = pipeline.explain(create("gnnexplainer", epochs=10, players="edges"), data, 0)
    scores, edges = metrics.edge_player_scores(of_nodes.edge_mask, data.edge_index)
    assert (of_nodes.player_kind, of_edges.player_kind) == ("nodes", "edges")
    np.testing.assert_allclose(of_edges.scores, scores)
    np.testing.assert_array_equal(of_edges.player_edges, edges)
    assert (of_edges.method, of_edges.target_class) == (of_nodes.method, of_nodes.target_class)
    evaluated = pipeline.evaluate(data, of_edges, sparsities=[0.8])["top"]
    expected = metrics.evaluate(model, data, evaluated.selections[0], players="edges")
    assert evaluated.metrics[0].fidelity == pytest.approx(expected.fidelity, abs=1e-9)


@pytest.mark.parametrize("name", ["gnnexplainer"])
def test_masks_of_edges_are_no_scores_of_groups(name: str) -> None:
    with pytest.raises(ValueError, match="players must be 'nodes' or 'edges'"):
        create(name, players="brics")
    if name == "gnnexplainer":
        with pytest.raises(ValueError, match="leave out node_mask"):
            create(name, players="edges", node_mask=True)


@pytest.mark.parametrize("players", ["features"])
def test_selections_without_an_explanation_are_of_the_players_of_the_pipeline(players: str) -> None:
    model, _ = pretrained("nitro")
    data = load("nitro")[0]
    ((found,),) = Pipeline(model, players=players).evaluate_selections([data], [[[0]]])
    expected = metrics.evaluate(model, data, [0], players=players)
    assert found.fidelity == pytest.approx(expected.fidelity, abs=1e-9)


@pytest.mark.parametrize("players", ["edges", "brics"])
def test_simple_baselines_take_players(players: str) -> None:
    model, _ = pretrained("nitro")
    data = load("nitro")[0]
    pipeline = Pipeline(model, seed=0)
    left_out = pipeline.explain(create("leave_one_out", players=players), data, 0)
    game = GNNGame(model, data, players=players)
    without = ~np.eye(game.n, dtype=np.bool_)
    whole = game(np.ones((1, game.n), dtype=np.bool_))
    np.testing.assert_allclose(left_out.scores, (whole - game(without)).reshape(-1), atol=1e-9)
    by_chance = pipeline.explain(create("random", players=players), data, 0)
    assert by_chance.player_kind == left_out.player_kind != "nodes"
    assert len(by_chance.scores) == game.n
