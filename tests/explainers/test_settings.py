"""Which value, estimated how."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx import GNNGame, Myerson, Passes, explain, explain_many, explain_nodes
from gstarx.explainers import ValueSettings, create
from gstarx.games import random_game
from gstarx.graphs import CommunicationGraph
from gstarx.models import GCN
from gstarx.values import (
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
from tests.pairs import for_each, in_turn

RING = CommunicationGraph(8, [(i, (i + 1) % 8) for i in range(8)])
GAME = random_game(8, seed=1)
CONNECTED = 8 * 7 + 1

VALID = {
    "hn": {"auto", "exact", "subgraphs", "growth"},
    "myerson": {"auto", "exact", "subgraphs", "sampled"},
    "shapley": {"auto", "exact", "subgraphs", "sampled"},
    "banzhaf": {"auto", "exact", "sampled"},
}


@for_each("estimator", ["auto", "exact", "growth", "subgraphs", "sampled", "best"])
@for_each("value", VALID)
def test_valid_pairs_and_no_others(value: str, estimator: str) -> None:
    if estimator in VALID[value]:
        ValueSettings(value=value, estimator=estimator)
        return
    with pytest.raises(ValueError, match="there is no estimator") as caught:
        ValueSettings(value=value, estimator=estimator)
    message = str(caught.value)
    assert f"no estimator {estimator!r} for value={value!r}" in message
    for name, valid in VALID.items():
        listed = message.split(f"{name}: ")[1].split(";")[0]
        assert set(listed.split(", ")) == valid


def test_an_unknown_value() -> None:
    with pytest.raises(ValueError, match=r"value must be one of 'hn', 'myerson', 'shapley', 'ban"):
        ValueSettings(value="owen")


@pytest.mark.filterwarnings("ignore::gstarx.values.PrecisionWarning")
@for_each(
    ("value", "estimator", "expected"),
    [
        ("hn", "exact", lambda: hn_value(GAME, RING)),
        ("myerson", "exact", lambda: myerson_value(GAME, RING)),
        ("shapley", "exact", lambda: shapley_value(GAME, 8)),
        ("banzhaf", "exact", lambda: banzhaf_value(GAME, 8)),
        ("banzhaf", "sampled", lambda: banzhaf_value_sampled(GAME, 8, budget=40, seed=3)),
        ("hn", "growth", lambda: hn_value_growth_sampled(GAME, RING, budget=40, seed=3)),
        ("myerson", "sampled", lambda: myerson_value_sampled(GAME, RING, budget=40, seed=3)),
        ("shapley", "sampled", lambda: shapley_value_sampled(GAME, 8, budget=40, seed=3)),
    ],
)
def test_each_pair_is_its_function(value: str, estimator: str, expected: Any) -> None:
    budget = 300 if estimator == "exact" else 40
    settings = ValueSettings(value=value, estimator=estimator, budget=budget)
    found, used = settings.allocate(GAME, RING, seed=3)
    assert used == estimator
    assert np.array_equal(found.values, expected().values)
    assert found.exact == (estimator == "exact")


@for_each("value", [value for value in VALID if "subgraphs" in VALID[value]])
def test_subsets_for_all_three(value: str) -> None:
    options: dict[str, Any] = {
        "max_sample_size": 5,
        "num_samples": 9,
        "sampling": "khop",
        "superadditive": True,
    }
    found, used = ValueSettings(value=value, estimator="subgraphs", **options).allocate(
        GAME, RING, seed=3
    )
    assert used == "subgraphs"
    expected = subgraph_sampled(GAME, RING, value=value, seed=3, **options)
    assert np.array_equal(found.values, expected.values)
    plain, _ = ValueSettings(value=value, estimator="subgraphs").allocate(GAME, RING, seed=3)
    assert not np.array_equal(found.values, plain.values)


def test_the_truncated_iteration_is_requested_by_name_and_does_not_warn() -> None:
    how = {"max_sample_size": 6, "inner": "iterated", "tau": 0.05}
    settings = ValueSettings(value="hn", estimator="subgraphs", **how)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found, _ = settings.allocate(GAME, RING, seed=3)
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
    exactly, used = ValueSettings(value=value, budget=needed).allocate(GAME, RING, seed=0)
    assert used == "exact"
    assert exactly.exact
    assert exactly.evaluations == needed
    roughly, used = ValueSettings(value=value, budget=needed - 1).allocate(GAME, RING, seed=0)
    assert used == sampler
    assert not roughly.exact
    assert roughly.evaluations <= needed - 1


def test_auto_on_graphs_with_more_coalitions_than_can_be_counted() -> None:
    large = CommunicationGraph.complete(300)
    for value, sampler in (("hn", "growth"), ("myerson", "sampled"), ("shapley", "sampled")):
        assert ValueSettings(value=value).chosen_estimator(large) == sampler
        assert ValueSettings(value=value, estimator="exact").chosen_estimator(large) == "exact"
    path = CommunicationGraph(150, [(i, i + 1) for i in range(149)])
    assert ValueSettings(value="hn").chosen_estimator(path) == "exact"
    assert ValueSettings(value="shapley", budget=10**30).chosen_estimator(path) == "sampled"


def test_settings_are_values() -> None:
    assert ValueSettings() == ValueSettings(value="myerson", estimator="auto", budget=None)
    with pytest.raises(AttributeError):
        ValueSettings().value = "shapley"  # type: ignore[misc]


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


@for_each(
    ("name", "wrong"),
    in_turn(
        ["two_sided", "superadditive", "directed", "check", "progress", "edge_mask"],
        ["no", "False", 1, 0, None],
        each=2,
    ),
)
def test_boolean_options_are_true_or_false(name: str, wrong: Any) -> None:
    model, data = GCN(2, 4, 2), Data(x=torch.eye(2), edge_index=torch.tensor([[0, 1], [1, 0]]))
    message = rf"{name} must be True or False \(got {wrong!r}\)"
    options = {name: wrong}
    if options != {"progress": None}:  # which is the default, for a bar where it takes long
        with pytest.raises(TypeError, match=message):
            explain(model, data, **options)
    with pytest.raises(TypeError, match=message):
        explain_many(model, [data], **options)
    with pytest.raises(TypeError, match=message):
        explain_nodes(model, data, [0], **options)


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
    for option in ("check", "lazy", "directed"):
        with pytest.raises(TypeError, match=rf"{option} must be True or False \(got 'no'\)"):
            GNNGame(model, data, **{option: "no"})


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
