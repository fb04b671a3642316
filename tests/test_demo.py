"""The demo computes the paper's worked examples, explains a network, and says how it went."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
import torch

from gstarx import demo
from gstarx.demo import explaining, molecules, worked
from gstarx.games import random_game, restricted_game
from gstarx.graphs import CommunicationGraph
from gstarx.values import hn_value, myerson_value


def test_the_demo_agrees_with_the_paper_and_finds_the_nitro_group(
    capsys: pytest.CaptureFixture[str],
) -> None:
    random_state = torch.get_rng_state()
    assert demo.main() == 0
    assert torch.equal(torch.get_rng_state(), random_state)
    out = capsys.readouterr().out
    assert "All as printed in the paper" in out
    assert "20,100" in out
    right = re.search(r"about (\d+)% of 100 molecules", out)
    assert right is not None
    assert int(right[1]) >= 95
    assert out.count("3 of them belong to the nitro group") == 2
    assert out.count("as they should") == 2
    assert len(re.findall(r" \+0\.\d{3} \* ", out)) == 6
    assert len(re.findall(r" [+-]0\.\d{3} ± 0\.\d{3}$", out, re.MULTILINE)) >= 12


def test_a_disagreement_is_not_hidden(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(worked.PAPER, "HN", ("1/2", "1/4", "1/4", "0"))
    monkeypatch.setattr(demo, "show_explanations", lambda *, epochs: True)
    assert demo.main() == 1
    assert "NOT AS printed" in capsys.readouterr().out


def test_scores_that_miss_the_worth_are_not_hidden(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(*arguments, **options):
        found = explaining_properly(*arguments, **options)
        found.node_mask[0] += 0.01
        return found

    explaining_properly = explaining.explain
    monkeypatch.setattr(explaining, "explain", wrong)
    assert demo.main(epochs=2) == 1
    assert "WHICH IS WRONG" in capsys.readouterr().out


def test_it_runs_as_a_program() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "gstarx.demo"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "standard errors" in done.stdout


def test_the_classes_have_the_same_atoms() -> None:
    drawn = molecules.draw_molecules(200, seed=3)
    assert drawn == molecules.draw_molecules(200, seed=3)
    for molecule in drawn:
        graph = molecule.graph
        assert graph.is_undirected()
        structure = CommunicationGraph.from_edge_index(graph.edge_index, graph.num_nodes)
        assert len(structure.components) == 1
        assert molecule.atoms.count("N") >= 1
        assert molecule.atoms.count("O") >= 2
        oxygens = [0] * len(molecule.atoms)
        for a, b in molecule.bonds:
            oxygens[a] += molecule.atoms[b] == "O"
            oxygens[b] += molecule.atoms[a] == "O"
        groups = [n for atom, n in zip(molecule.atoms, oxygens, strict=True) if atom == "N"]
        assert molecule.has_nitro == (max(groups) == 2) == bool(graph.y)


@pytest.mark.parametrize("node", range(3))
@pytest.mark.parametrize(("value", "allocate"), [("hn", hn_value), ("myerson", myerson_value)])
def test_marginal_contributions_add_up_to_the_value(node: int, value: str, allocate) -> None:
    path = CommunicationGraph(3, [(0, 1), (1, 2)])
    game = random_game(3, seed=7)
    worth = restricted_game(game, path)
    total = 0.0
    for S, weight in worked.marginal_weights(path, node, value=value).items():
        without = np.isin(np.arange(3), S)
        both = np.stack([without | (np.arange(3) == node), without])
        joined, left = worth(both)
        total += weight * (joined - left)
    assert total == pytest.approx(allocate(game, path).values[node], abs=1e-12)
