"""The kernel regression against exact Shapley values."""

from __future__ import annotations

from math import comb

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstarx.games import additive_game, random_game
from gstarx.models import GCN
from gstarx.values import shapley_value
from gstarx_bench.explainers.graphsvx import GraphSVX, kernel_shapley, kernel_weights, sample_masks
from tests.gnn.networks import CLASSES, FEATURES
from tests.gnn.one_by_one import graph
from tests.shared import UNTRAINED

pytestmark = UNTRAINED


@given(st.integers(1, 9), st.integers(0, 1000))
def test_all_coalitions_and_a_hard_constraint_give_shapley(n: int, seed: int) -> None:
    v = random_game(n, seed=seed)
    exact = shapley_value(v, n).values
    found = kernel_shapley(v, n, num_samples=2**n)
    np.testing.assert_allclose(found, exact, atol=1e-6)


def test_the_original_weight_of_the_ends_nearly_does() -> None:
    errors = []
    for seed in range(10):
        v = random_game(7, seed=seed)
        exact = shapley_value(v, 7).values
        found = kernel_shapley(v, 7, num_samples=2**7, efficiency="soft")
        errors.append(np.abs(found - exact).max())
    assert 1e-7 < np.median(errors) < 2e-3


def test_errors_fall_with_samples() -> None:
    v = random_game(12, seed=3)
    exact = shapley_value(v, 12).values
    errors = [
        np.mean(
            [
                np.abs(kernel_shapley(v, 12, num_samples=count, seed=seed) - exact).mean()
                for seed in range(10)
            ]
        )
        for count in (40, 160, 640, 2560)
    ]
    assert errors == sorted(errors, reverse=True)
    assert errors[-1] < errors[0] / 4


@given(st.integers(2, 20), st.integers(4, 300), st.sampled_from(["Smarter", "SmarterSeparate"]))
def test_scores_sum_to_the_worth_whatever_is_drawn(n: int, count: int, masks: str) -> None:
    v = random_game(n, seed=n)
    whole = v(np.ones((1, n), dtype=np.bool_))[0]
    found = kernel_shapley(v, n, num_samples=count, masks=masks, seed=count)
    assert found.sum() == pytest.approx(whole, abs=1e-8)


def test_additive_games_are_exact_with_enough_samples() -> None:
    shares = np.random.default_rng(0).normal(size=25)
    found = kernel_shapley(additive_game(shares), 25, seed=0)
    np.testing.assert_allclose(found, shares, atol=1e-8)


def test_masks_come_from_both_ends() -> None:
    for masks in (
        "Smarter",
        "SmarterSeparate",
    ):
        rows, weights = sample_masks(10, 100, masks, 3, np.random.default_rng(0))
        assert len(rows) == len(weights) == 98
        sizes = np.minimum(rows.sum(axis=1), 10 - rows.sum(axis=1))
        assert (sizes == 1).sum() >= 20
        pairs = {row.tobytes() for row in rows}
        systematic = 98 if masks == "SmarterSeparate" else 88
        assert sum((~row).tobytes() in pairs for row in rows) >= systematic
        # single nodes before pairs: all of these fit only without random ones
        assert ((sizes == 2).sum() == systematic - 20) or masks == "Smarter"
        assert (sizes == 0).sum() == 0


@pytest.mark.parametrize(
    ("count", "masks"), [(60, "Smarter"), (300, "SmarterSeparate"), (1000, "SmarterSeparate")]
)
def test_what_is_taken_stands_for_all(count: int, masks: str) -> None:
    kernel = kernel_weights(12)
    rows, weights = sample_masks(12, count, masks, 3, np.random.default_rng(1))
    sizes = rows.sum(axis=1)
    everything = sum(kernel[s] * comb(12, s) for s in range(13))
    taken = weights.sum()
    if count < 1000 and masks == "SmarterSeparate":
        # no budget is left for larger ones than these
        reached = range(1, int(np.minimum(sizes, 12 - sizes).max()) + 1)
        assert taken == pytest.approx(2 * sum(kernel[s] * comb(12, s) for s in reached))
    else:
        assert taken == pytest.approx(everything)
    assert weights[sizes == 1].sum() == pytest.approx(kernel[1] * 12)


def test_few_samples_and_few_players() -> None:
    for n in (1, 2, 3, 4):
        for count in (2, 3, 5, 9):
            found = kernel_shapley(random_game(n, seed=0), n, num_samples=count, seed=0)
            assert np.isfinite(found).all()
    assert kernel_shapley(random_game(1, seed=0), 0).shape == (0,)


def test_weights_of_very_many_players_are_finite() -> None:
    weights = kernel_weights(3000)
    assert np.isfinite(weights).all()
    assert weights[1] == weights[-2] > 0
    assert weights[1] == pytest.approx(1 / 3000)


def test_on_a_network_with_all_coalitions_it_is_shapley() -> None:
    from gstarx import explain

    model, data = GCN(FEATURES, 8, CLASSES), graph("ring")
    found = GraphSVX(num_samples=2**10).explain(model, data, seed=0)
    exact = explain(model, data, value="shapley", payoff="prob").node_mask[:, 0].numpy()
    np.testing.assert_allclose(found.node_scores, exact, atol=1e-5)


def test_at_nodes_only_those_around_have_scores() -> None:
    model = GCN(FEATURES, 8, CLASSES, readout=None)
    found = GraphSVX().explain(model, graph("wide"), seed=0, index=0, task="node")
    assert found.node_scores is not None
    assert found.node_scores.shape == (graph("wide").num_nodes,)


def test_bad_options() -> None:
    for options, message in (
        ({"masks": "All"}, "masks must be one of"),
        ({"efficiency": "maybe"}, "efficiency must be one of"),
        ({"num_samples": 1}, "num_samples must be None or at least 2"),
        ({"max_size": 0}, "max_size must be at least 1"),
    ):
        with pytest.raises(ValueError, match=message):
            GraphSVX(**options)  # type: ignore[arg-type]
