"""Yardsticks that are told the metric."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from gstarx import Judge
from gstarx.explainers import create, names
from gstarx.metrics import SPARSITIES, evaluate
from gstarx.metrics.selection import selection_size
from tests.gnn.networks import build
from tests.gnn.one_by_one import graph


def harmonic(model: Any, data: Any, nodes: Any) -> float:
    return evaluate(model, data, nodes).harmonic_fidelity


def test_they_are_no_explainers() -> None:
    assert not {"best_found", "refined"} & set(names())
    assert set(names(oracles=True)) - set(names()) == {"best_found", "refined"}


def test_the_best_of_every_size_is_that_of_one_by_one() -> None:
    model, data = build("gcn"), graph("messy")
    found = dict(Judge(model).best_of_sizes(data, [0, 2, 5, 2]))
    assert sorted(found) == [0, 2, 5]
    for size, one in found.items():
        alone = Judge(model).best(data, size)
        assert one.optimal
        assert one.evaluation.harmonic_fidelity == pytest.approx(
            alone.evaluation.harmonic_fidelity, abs=1e-7
        )


def test_a_search_never_loses_with_more_nodes_and_beats_what_it_starts_from() -> None:
    model, data = build("gcn"), graph("wide")
    searched = Judge(model).best_of_sizes(data, [3, 6, 9], starts=1, exhaustive_up_to=0, seed=0)
    found = dict(searched)
    scores = [found[size].evaluation.harmonic_fidelity for size in (3, 6, 9)]
    assert scores == sorted(scores)
    assert not any(one.optimal for one in found.values())
    for size, one in found.items():
        assert len(one.nodes) <= size
        assert harmonic(model, data, one.nodes) == pytest.approx(
            one.evaluation.harmonic_fidelity, abs=1e-6
        )
        # no single swap helps: it is a local optimum
        for inside in one.nodes[:2]:
            for outside in np.setdiff1d(np.arange(12), one.nodes)[:3]:
                other = [*np.setdiff1d(one.nodes, [inside]), outside]
                assert harmonic(model, data, other) <= scores[(size // 3) - 1] + 1e-6


def test_best_found_selects_the_best_of_at_most_so_many_nodes() -> None:
    model, data = build("gcn"), graph("messy")
    result = create("best_found").explain(model, data, seed=0)
    assert result.node_scores is None
    assert result.exact
    for level in SPARSITIES:
        size = selection_size(7, level)
        best = Judge(model).best(data, size).evaluation.harmonic_fidelity
        assert harmonic(model, data, result.select(size=size)) == pytest.approx(best, abs=1e-7)


@pytest.mark.parametrize("of", ["gstarx", "random"])
def test_refined_selections_keep_their_size_and_get_better(of: str) -> None:
    model, data = build("gcn"), graph("wide")
    refined = create("refined", of=of, baseline=0.5, budget=200).explain(model, data, seed=1)
    before = create(of, **({"baseline": 0.5} if of == "gstarx" else {}))
    plain = before.explain(model, data, seed=1)
    gains = []
    for level in SPARSITIES:
        size = selection_size(int(data.num_nodes), level)
        assert len(refined.select(size=size)) == size
        gains.append(
            harmonic(model, data, refined.select(size=size))
            - harmonic(model, data, plain.select(size=size))
        )
    assert min(gains) >= -1e-6
    assert max(gains) > 1e-4
    assert refined.evaluations <= (plain.evaluations or 0) + 200 * len(SPARSITIES)


def test_refined_takes_no_explainers_that_train() -> None:
    with pytest.raises(ValueError, match="need no training"):
        create("refined", of="pgexplainer")
