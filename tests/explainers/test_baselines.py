"""Shapley values within some hops, by what they are at the ends."""

from __future__ import annotations

import numpy as np
import pytest

from gstarx import explain
from gstarx.explainers import create
from tests.gnn.networks import build
from tests.gnn.one_by_one import graph


def test_within_all_hops_it_is_the_shapley_value() -> None:
    model, data = build("gcn"), graph("ring")
    exact = explain(model, data, value="shapley").node_mask[:, 0].numpy()
    local = create("local_shapley", hops=9, sample_num=2**10).explain(model, data, seed=0)
    np.testing.assert_allclose(local.node_scores, exact, atol=1e-5)


def test_without_hops_it_is_leave_one_out() -> None:
    model, data = build("gcn"), graph("messy")
    local = create("local_shapley", hops=0).explain(model, data, seed=0)
    alone = create("leave_one_out").explain(model, data)
    np.testing.assert_allclose(local.node_scores, alone.node_scores, atol=1e-6)
    with pytest.raises(ValueError, match="hops must be at least 0"):
        create("local_shapley", hops=-1)
