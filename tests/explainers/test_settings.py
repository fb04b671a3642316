"""Which value, estimated how."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx import (
    HN,
    Banzhaf,
    GNNGame,
    GStarX,
    Myerson,
    Passes,
    Position,
    Shapley,
    Subgraphs,
    explain,
    explain_many,
    explain_nodes,
)
from gstarx.explainers import create
from gstarx.explainers.budget import Budgeted
from gstarx.games import random_game
from gstarx.graphs import CommunicationGraph
from gstarx.models import GCN
from gstarx.players import Edges
from gstarx.values import (
    Value,
    as_value,
    banzhaf_value,
    banzhaf_value_sampled,
    hn_value,
    hn_value_growth_sampled,
    myerson_value,
    myerson_value_sampled,
    shapley_value,
    shapley_value_sampled,
    subgraph_sampled,
)
from tests.pairs import for_each

RING = CommunicationGraph(8, [(i, (i + 1) % 8) for i in range(8)])
GAME = random_game(8, seed=1)
CONNECTED = 8 * 7 + 1

VALID: dict[type[Value], str] = {
    HN: "auto, exact, growth",
    Myerson: "auto, exact, sampled",
    Shapley: "auto, exact, sampled",
    Banzhaf: "auto, exact, sampled",
    Position: "auto, exact, sampled",
    Subgraphs: "auto, subgraphs",
}


@for_each("kind", VALID)
def test_valid_estimators_and_no_others(kind: type[Value]) -> None:
    for estimator in ("auto", "exact", "growth", "subgraphs", "sampled", "best"):
        if estimator in VALID[kind].split(", "):
            kind(estimator=estimator)
            continue
        wrong = f"no estimator {estimator!r} for {kind.__name__}; valid are {VALID[kind]}$"
        with pytest.raises(ValueError, match=wrong):
            kind(estimator=estimator)


def test_an_unknown_value() -> None:
    with pytest.raises(ValueError, match=r"no value 'owen'.* Valid are myerson, hn, shapley, ban"):
        GStarX(value="owen")
    with pytest.raises(TypeError, match=r"value must be an object, HN\(\.\.\.\) \(got the class\)"):
        GStarX(value=HN)
    for wrong, got in ((0.5, "float"), (None, "NoneType")):
        with pytest.raises(TypeError, match=rf"an object such as gstarx.Myerson.*\(got {got}\)"):
            GStarX(value=wrong)


@pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")
@for_each(
    ("kind", "estimator", "expected"),
    [
        (HN, "exact", lambda: hn_value(GAME, RING)),
        (Myerson, "exact", lambda: myerson_value(GAME, RING)),
        (Shapley, "exact", lambda: shapley_value(GAME, 8)),
        (Banzhaf, "exact", lambda: banzhaf_value(GAME, 8)),
        (Banzhaf, "sampled", lambda: banzhaf_value_sampled(GAME, 8, budget=40, seed=3)),
        (HN, "growth", lambda: hn_value_growth_sampled(GAME, RING, budget=40, seed=3)),
        (Myerson, "sampled", lambda: myerson_value_sampled(GAME, RING, budget=40, seed=3)),
        (Shapley, "sampled", lambda: shapley_value_sampled(GAME, 8, budget=40, seed=3)),
    ],
)
def test_each_pair_is_its_function(kind: type[Value], estimator: str, expected: Any) -> None:
    budget = 300 if estimator == "exact" else 40
    found, used = Budgeted(kind(estimator=estimator), budget).allocate(GAME, RING, seed=3)
    assert used == estimator
    assert np.array_equal(found.values, expected().values)
    assert found.exact == (estimator == "exact")


@for_each("value", ["hn", "myerson", "shapley"])
def test_subsets_for_all_three(value: str) -> None:
    options: dict[str, Any] = {
        "max_sample_size": 5,
        "num_samples": 9,
        "sampling": "khop",
        "superadditive": True,
    }
    chosen = Subgraphs(value=value, inner="exact", **options)
    found, used = Budgeted(chosen).allocate(GAME, RING, seed=3)
    assert used == "subgraphs"
    expected = subgraph_sampled(GAME, RING, value=value, seed=3, **options)
    assert np.array_equal(found.values, expected.values)
    plain, _ = Budgeted(Subgraphs(value=value, inner="exact")).allocate(GAME, RING, seed=3)
    assert not np.array_equal(found.values, plain.values)


def test_the_truncated_iteration_is_requested_by_name_and_does_not_warn() -> None:
    how: dict[str, Any] = {"max_sample_size": 6, "inner": "iterated", "tau": 0.05}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, _ = Budgeted(Subgraphs(**how)).allocate(GAME, RING, seed=3)
    assert not found.converged
    with pytest.warns(UserWarning, match="truncated"):
        expected = subgraph_sampled(GAME, RING, **how, seed=3)
    assert np.array_equal(found.values, expected.values)


@pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")
@for_each(
    ("value", "needed", "sampler"),
    [
        ("hn", CONNECTED, "growth"),
        ("myerson", CONNECTED, "sampled"),
        ("shapley", 255, "sampled"),
        ("banzhaf", 255, "sampled"),
    ],
)
def test_auto_is_exact_while_that_fits_the_budget(value: str, needed: int, sampler: str) -> None:
    exactly, used = Budgeted(as_value(value), needed).allocate(GAME, RING, seed=0)
    assert used == "exact"
    assert exactly.exact
    assert exactly.evaluations == needed
    roughly, used = Budgeted(as_value(value), needed - 1).allocate(GAME, RING, seed=0)
    assert used == sampler
    assert not roughly.exact
    assert roughly.evaluations <= needed - 1


def test_auto_on_graphs_with_more_coalitions_than_can_be_counted() -> None:
    large = CommunicationGraph.complete(300)
    for kind, sampler in ((HN, "growth"), (Myerson, "sampled"), (Shapley, "sampled")):
        assert Budgeted(kind()).estimator(large) == sampler
        assert Budgeted(kind(estimator="exact")).estimator(large) == "exact"
    path = CommunicationGraph(150, [(i, i + 1) for i in range(149)])
    assert Budgeted(HN()).estimator(path) == "exact"
    assert Budgeted(Shapley(), 10**30).estimator(path) == "sampled"


def test_values_are_values() -> None:
    assert GStarX().value == Myerson(two_sided=False, estimator="auto") == as_value("myerson")
    assert len({HN(), HN(two_sided=False), HN(two_sided=True)}) == 2
    with pytest.raises(AttributeError):
        HN().two_sided = True  # type: ignore[misc]


def test_more_is_exact_by_default_where_coalitions_share_embeddings() -> None:
    torch.manual_seed(0)
    leaves = torch.stack([torch.zeros(15, dtype=torch.long), torch.arange(1, 16)])
    data = Data(
        x=torch.eye(4)[[0] * 8 + [1] * 8], edge_index=torch.cat([leaves, leaves.flip(0)], 1)
    )
    model = GCN(4, 8, 2)
    found = explain(model, data)
    assert found.exact
    assert found.evaluations == 2**15 + 15
    assert found.sharing.used
    again = explain(model, data, seed=0, passes=Passes(share=False))
    assert not again.exact
    assert again.evaluations <= 20_000
    torch.testing.assert_close(found.scores, again.scores, atol=0.01, rtol=0)
    assert not explain(model, data, budget=20_000, seed=0).exact
    exact = explain(model, data, passes=Passes(share=False), value=Myerson(estimator="exact"))
    torch.testing.assert_close(found.scores, exact.scores, atol=1e-6, rtol=0)


@for_each("wrong", ["no", "False", 1, 0, None])
def test_boolean_options_are_true_or_false(wrong: Any) -> None:
    for kind, name in (
        (Myerson, "two_sided"),
        (HN, "two_sided"),
        (Subgraphs, "superadditive"),
        (Edges, "directed"),
        (Passes, "check"),
    ):
        with pytest.raises(TypeError, match=rf"{name} must be True or False \(got {wrong!r}\)"):
            kind(**{name: wrong})
    model, data = GCN(2, 4, 2), Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    message = rf"progress must be True or False \(got {wrong!r}\)"
    if wrong is None:  # the default, for a bar where it takes long, or of many
        assert len(explain_many(model, [data], progress=None)) == 1
        return
    with pytest.raises(TypeError, match=message):
        explain(model, data, progress=wrong)
    with pytest.raises(TypeError, match=message):
        explain_many(model, [data], progress=wrong)
    with pytest.raises(TypeError, match=message):
        explain_nodes(model, data, [0], progress=wrong)


def test_boolean_options_of_other_explainers_and_of_games() -> None:
    for name, option in (
        ("gnnexplainer", "node_mask"),
        ("gnnexplainer", "feature_mask"),
        ("subgraphx", "high2low"),
        ("gstarx", "two_sided"),
        ("gstarx_published", "check"),
    ):
        others = {"baseline": 0.5} if name == "gstarx_published" else {}
        with pytest.raises(TypeError, match=rf"{option} must be True or False \(got 'no'\)"):
            create(name, **{option: "no"}, **others)
    model, data = GCN(2, 4, 2), Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    with pytest.raises(TypeError, match=r"lazy must be True or False \(got 'no'\)"):
        GNNGame(model, data, lazy="no")


def test_booleans_of_numpy_are_booleans() -> None:
    model, data = GCN(2, 4, 2), Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    yes, no = np.array([True, False])
    one = explain(
        model, data, progress=no, passes=Passes(check=yes, share=no), value=Myerson(two_sided=yes)
    )
    assert one.two_sided is True
    assert (
        one.scores.tolist()
        == explain(
            model, data, passes=Passes(share=False), value=Myerson(two_sided=True)
        ).scores.tolist()
    )
