"""HN with the uniform baseline and the default, compared."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from reproduction import RESULTS, defaults
from reproduction.grids import Grid
from reproduction.setups import Missing


def test_scores_that_follow_the_degree_and_scores_that_do_not() -> None:
    edges = torch.tensor([[0, 1, 1, 1, 2, 3], [1, 0, 2, 3, 1, 1]])
    star, flat = Data(edge_index=edges, num_nodes=4), Data(edge_index=edges[:, :2], num_nodes=2)
    follows, against = np.array([1.0, 3, 1, 1]), np.array([2.0, -8, 2, 2])
    assert defaults._median([follows], [star]) == pytest.approx(1.0)
    # the size of the correlation; where all degrees are equal there is none
    assert defaults._median([against, np.ones(2)], [star, flat]) == pytest.approx(1.0)
    assert defaults._median([np.array([1.0, 0, -1, 0])], [star]) == pytest.approx(0.0)


def test_what_is_stored_says_that_the_default_is_better_for_classifiers() -> None:
    measured = Grid.read(RESULTS, "defaults")
    assert measured is not None
    assert len(measured.rows) == 26
    header, rows = measured.header, defaults.summary(measured).rows
    assert [row[0] for row in rows] == [
        "the paper's networks (8)",
        "nitro and motifs (2)",
        "ground truth, classifiers (12)",
        "ground truth, Crippen (4)",
    ]
    for row in rows[:3]:
        cells = dict(zip(header, row, strict=True))
        assert cells["degree, default"] < cells["degree, HN"]
        assert cells["H-fidelity, default"] > cells["H-fidelity, HN"]
        assert cells["truth, default"] > cells["truth, HN"]


def test_a_network_without_data_keeps_its_row(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Grid.read(RESULTS, "defaults")
    assert measured is not None
    stored = {row[0]: row for row in measured.rows}

    def missing(name: str, judged: object) -> None:
        raise Missing(f"no weights of {name}")

    monkeypatch.setattr(defaults, "_of_results", missing)
    monkeypatch.setattr(defaults, "_of_truths", stored.__getitem__)
    assert defaults.defaults() == measured
