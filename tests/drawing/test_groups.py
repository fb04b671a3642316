"""Scores of functional groups."""

from __future__ import annotations

import numpy as np
import pytest
from torch_geometric.data import Data

from gstarx.datasets import load
from gstarx.datasets.shipped import RULE
from gstarx.drawing import GroupScore, aggregate

DINITRO = "O=[N+]([O-])c1ccc(N)c([N+](=O)[O-])c1"


def test_every_match_is_an_entry_highest_first() -> None:
    scores = np.zeros(13)
    scores[[0, 1, 2]] = 0.1
    scores[[9, 10, 11]] = 0.2
    found = aggregate(scores, {"nitro": "[N+](=O)[O-]", "amine": "[NX3;H2]"}, DINITRO)
    assert [(group.name, group.atoms) for group in found] == [
        ("nitro", (9, 10, 11)),
        ("nitro", (0, 1, 2)),
        ("amine", (7,)),
    ]
    assert [group.score for group in found] == pytest.approx([0.6, 0.3, 0.0])


def test_matches_are_counted_once_and_may_overlap() -> None:
    (one,) = aggregate([1, 2], "CO", "CO")
    assert one == GroupScore("CO", (0, 1), 3.0)
    assert [group.name for group in aggregate([1, 2], ["[#6]", "[#8]"], "CO")] == ["[#8]", "[#6]"]

    found = aggregate([1, 10, 100], "CC", "CCC")
    assert {group.atoms: group.score for group in found} == {(0, 1): 11, (1, 2): 110}

    assert len(aggregate(np.ones(6), "c1ccccc1", "c1ccccc1")) == 1

    assert aggregate([1, 2], "[N+](=O)[O-]", "CO") == []


def test_the_rule_of_nitro_finds_the_truth() -> None:
    for graph in load("nitro")[:40]:
        found = aggregate(graph.truth.double(), RULE, graph)
        atoms = {atom for group in found for atom in group.atoms}
        assert atoms == set(graph.truth.nonzero().flatten().tolist())
        assert all(group.score == 4 for group in found)


def test_bad_input_is_refused() -> None:
    for scores, smarts, molecule, message in (
        ([1, 2], "C(", "CO", r"patterns that RDKit can read \(got 'C\('"),
        ([1, 2], "", "CO", "patterns that RDKit can read"),
        ([1], "C", "CO", "scores must have shape"),
        ([np.inf, 2], "C", "CO", "scores must be finite"),
        ([1, 2], "C", Data(num_nodes=2), "a graph with smiles or atoms"),
    ):
        with pytest.raises(ValueError, match=message):
            aggregate(scores, smarts, molecule)
