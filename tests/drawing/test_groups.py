"""Scores of functional groups."""

from __future__ import annotations

import numpy as np
import pytest
from torch_geometric.data import Data

from gstarx.datasets import load
from gstarx.datasets.shipped import RULE
from gstarx.drawing import GroupScore, group_scores

DINITRO = "O=[N+]([O-])c1ccc(N)c([N+](=O)[O-])c1"


def test_every_match_is_an_entry_highest_first() -> None:
    scores = np.zeros(13)
    scores[[0, 1, 2]] = 0.1
    scores[[9, 10, 11]] = 0.2
    found = group_scores(scores, DINITRO, by={"nitro": "[N+](=O)[O-]", "amine": "[NX3;H2]"})
    assert [(group.name, group.atoms) for group in found] == [
        ("nitro", (9, 10, 11)),
        ("nitro", (0, 1, 2)),
        ("amine", (7,)),
    ]
    assert [group.score for group in found] == pytest.approx([0.6, 0.3, 0.0])


def test_matches_are_counted_once_and_may_overlap() -> None:
    (one,) = group_scores([1, 2], "CO", by={"C-O": "CO"})
    assert one == GroupScore("C-O", (0, 1), 3.0)
    atoms = {"carbon": "[#6]", "oxygen": "[#8]"}
    assert [group.name for group in group_scores([1, 2], "CO", by=atoms)] == ["oxygen", "carbon"]

    found = group_scores([1, 10, 100], "CCC", by={"bond": "CC"})
    assert {group.atoms: group.score for group in found} == {(0, 1): 11, (1, 2): 110}

    assert len(group_scores(np.ones(6), "c1ccccc1", by={"ring": "c1ccccc1"})) == 1

    assert group_scores([1, 2], "CO", by={"nitro": "[N+](=O)[O-]"}) == []


def test_the_rule_of_nitro_finds_the_truth() -> None:
    for graph in load("nitro")[:40]:
        found = group_scores(graph.truth.double(), graph, by={"nitro": RULE})
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
            group_scores(scores, molecule, by={"group": smarts})
