"""Variants of HN and Myerson values from one sample are what the explainer computes for each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from gstarx import HN, GNNGame, Myerson, explain
from reproduction import RESULTS, remedies, remedies_tables
from reproduction.remedies import RULES, VARIANTS, scores_of_variants
from reproduction.results import SetupResults
from reproduction.setups import SETUPS
from tests.explainers.small import graph, network
from tests.shared import UNTRAINED

pytestmark = UNTRAINED


@pytest.mark.parametrize("name", ["path", "components"])
def test_variants_by_linearity_are_those_of_the_explainer(name: str) -> None:
    model, data = network("gcn"), graph(name)

    def both(outputs: torch.Tensor) -> torch.Tensor:
        return torch.stack([outputs.softmax(1)[:, 1], outputs[:, 1]], dim=1)

    game = GNNGame(model, data, payoff=both, baseline=0.0)
    scores = scores_of_variants(game, seed=0)
    assert set(VARIANTS) < set(scores)
    for value, kind in (("HN", HN), ("Myerson", Myerson)):
        for payoff, words in (("prob", ""), ("raw", " of logits")):
            for two_sided, side in ((False, ""), (True, ", two-sided")):
                for rule in ("singletons", "uniform"):
                    baseline: Any = {"prob": 0.5, "raw": 0.0}[payoff]
                    one = explain(
                        model,
                        data,
                        target=1,
                        value=kind(two_sided=two_sided),
                        payoff=payoff,
                        baseline=rule if rule == "singletons" else baseline,
                    )
                    own = scores[f"{value}{words}{side}, {rule}"]
                    np.testing.assert_allclose(own, one.scores, atol=1e-6)


def test_every_rule_finds_the_constant_of_a_game_that_is_flat_on_small_coalitions() -> None:
    coalitions = np.array([[s >> i & 1 for i in range(8)] for s in range(1, 256)], dtype=np.bool_)
    size = coalitions.sum(axis=1)
    flat = np.stack([np.where(size <= 2, 0.7, 0.9), np.full(255, -3.0)], axis=1)
    for name in ("singletons", "small coalitions"):
        np.testing.assert_allclose(RULES[name](coalitions, flat), [0.7, -3.0])
    additive = np.stack([0.3 + coalitions @ np.arange(8.0), np.full(255, -3.0)], axis=1)
    np.testing.assert_allclose(RULES["intercept"](coalitions, additive), [0.3, -3.0], atol=1e-9)


def test_judging_goes_on_where_it_stopped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []

    def judge(model: Any, data: Any, seed: int) -> dict[str, dict[str, Any]]:
        seen.append(seed)
        return {m: {"harmonic": [0.5], "robust": None, "auroc": None} for m in ("HN", "random")}

    monkeypatch.setattr(remedies, "_judge", judge)
    monkeypatch.setattr(
        remedies,
        "load_network_and_graphs",
        lambda name: (None, {"val": [graph("path")] * 2, "test": [None] * 15}),
    )
    remedies.measure_all(["nitro"], results=tmp_path, graphs=(1, 0))
    assert remedies_tables.Judged(tmp_path).networks == ()  # nothing is tested yet
    remedies.measure_all(["nitro"], results=tmp_path, graphs=(1, 12))
    remedies.measure_all(["nitro"], results=tmp_path, graphs=(9, 99))
    assert seen == [0, *range(12), 1, 12, 13, 14]
    judged = remedies_tables.Judged(tmp_path)
    assert judged.networks == ("nitro",)
    assert judged.tested("nitro", "random").shape == (15,)
    assert remedies_tables.counts(tmp_path) == "nitro 2 + 15"


def test_whole_splits_are_paired_at_the_sparsity_that_validation_chose() -> None:
    stored = SetupResults(SETUPS["bbbp-gcn"], RESULTS)
    tested = []
    for name in ("Myerson, singletons", "HN"):
        levels = {
            rule: stored.curves(name, split="val", rule=rule).means  # type: ignore[union-attr]
            for rule in ("top k", "positive")
        }
        rule = max(levels, key=lambda one: levels[one].max())
        curves = stored.curves(name, rule=rule)
        assert curves is not None
        tested.append(curves.harmonic[:, levels[rule].argmax()])
    gain = tested[0] - tested[1]
    table = remedies_tables.whole_splits({"bbbp-gcn": stored})
    cells = {row[0]: row[1] for row in table.rows}
    assert cells["graphs"] == len(gain) == 205
    assert cells["default"] == pytest.approx(tested[0].mean())
    assert str(cells["… minus HN"]).startswith(f"**{1_000 * gain.mean():+.0f}**")
    assert remedies_tables.ahead_on({"bbbp-gcn": stored}, "HN") == "1 of 1"
    assert remedies_tables.ahead_on({"bbbp-gcn": stored}, "Banzhaf") == "0 of 1"
    assert str(cells["… minus SubgraphX"]).startswith("-22 [")  # on 30 graphs


def test_words_about_the_ranking_are_what_the_rows_say() -> None:
    judged = remedies_tables.Judged(RESULTS)
    plain, robust = (remedies_tables.leads(RESULTS, judge) for judge in ("harmonic", "robust"))
    best = "Myerson, two-sided, singletons"  # of HN and Myerson, by both
    gain = judged.tested("motifs", "Shapley") - judged.tested("motifs", best)
    assert plain.endswith(f"behind on motifs ({gain.mean():+.3f})")
    own, other = (judged.numbers("motifs", "test", m, "robust") for m in ("Shapley", best))
    assert f"motifs ({(own - other).mean():+.3f}); level on" in robust
    means = {
        method: np.mean(
            [judged.numbers(name, "val", method, "harmonic").mean(0).max() for name in SETUPS]
        )
        for method in VARIANTS
    }
    rank = sorted(means.values(), reverse=True).index(means["Myerson, singletons"]) + 1
    words = remedies_tables.rank_on_validation(RESULTS)
    assert words.startswith(f"number {rank} of {len(VARIANTS)} (")
    assert words.endswith(f"with {max(means.values()):.4f})")
    auroc = judged.numbers("ba_2motifs-gcn", "test", "Banzhaf", "auroc").mean()
    assert remedies_tables.found(RESULTS, "ba_2motifs-gcn", "Banzhaf").startswith(
        f"{auroc:.3f} [0.5"
    )
