"""Scores that are next to nothing: pictures stay pale and say that nothing stands out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from gstarx import Explanation, Judge, explain
from gstarx.datasets import smiles_graph
from gstarx.drawing import compare, draw, score_color
from gstarx.drawing.painted import Painted, Scored, at_stake_in, color_limit
from gstarx.drawing.picture import TIE_DASHES
from gstarx_bench.report import build_report, write_report

IBUPROFEN = "CC(C)Cc1ccc(cc1)C(C)C(=O)O"


@dataclass
class Oxygens:
    """A model that adds a number for every bonded oxygen to a constant."""

    each: float
    constant: float = 0.0
    classes: int = 2

    def __call__(self, x: Tensor, edge_index: Tensor, batch: Tensor) -> Tensor:
        bonded = torch.zeros(len(x), dtype=x.dtype).index_add_(
            0, edge_index[1], torch.ones(edge_index.shape[1], dtype=x.dtype)
        )
        oxygen = (x[:, 0] * bonded.clamp(max=1)).double()
        total = torch.zeros(int(batch.max()) + 1, dtype=torch.float64).index_add_(0, batch, oxygen)
        value = (self.constant + self.each * total)[:, None]
        return value if self.classes == 1 else torch.cat([torch.zeros_like(value), value], dim=1)


MOLECULE = smiles_graph(IBUPROFEN)
MOLECULE.x = torch.zeros(15, 1)
MOLECULE.x[13:] = 1.0  # which atoms are oxygen


def explained(model: Oxygens, **options: Any) -> Explanation:
    mode = "regression" if model.classes == 1 else "multiclass_classification"
    return explain(model, MOLECULE, target=model.classes - 1, task=mode, **options)


def colors(picture: Any) -> set[str]:
    """Colors of more than a tint of orange or blue."""
    vivid = {
        score_color(sign * share, 1.0) for sign in (1, -1) for share in np.linspace(0.5, 1, 51)
    }
    # without the legend, which has all colors
    return {color for color in vivid if color in picture.svg}


def test_noise_stays_pale_and_is_called_so() -> None:
    explanation = explained(Oxygens(0.0005))
    assert 0 < float(explanation.scores.abs().max()) < 0.001
    picture = draw(MOLECULE, explanation, legend=False)
    assert "No atom stands out: the largest score, 0.0001" in picture.svg
    assert "Suggested cut" not in picture.svg
    assert not colors(picture)
    plain = draw(MOLECULE, explanation.node_scores, legend=False)  # of which nothing is known
    assert colors(plain)
    assert "stands out" not in plain.svg


def test_what_matters_is_painted_in_full() -> None:
    picture = draw(MOLECULE, explained(Oxygens(3.0)), legend=False)
    assert colors(picture)
    assert "stands out" not in picture.svg


def test_a_limit_of_ones_own_is_kept() -> None:
    picture = draw(MOLECULE, explained(Oxygens(0.0005)), limit=0.0001, legend=False)
    assert colors(picture)
    assert "No atom stands out" in picture.svg


@pytest.mark.filterwarnings("ignore:the outputs for all evaluated parts of the graph")
def test_a_regression_is_compared_with_its_own_output() -> None:
    for each, faint in (
        (0.5, False),
        (1e-5, True),
    ):
        explanation = explained(Oxygens(each, 5.0, classes=1))
        assert ("No atom stands out" in draw(MOLECULE, explanation).svg) is faint
        least = 0.01 * (5 + 2 * each)
        assert at_stake_in(explanation) == pytest.approx(max(2 * each, least), rel=0.2)


def test_other_players_follow_the_same_rule() -> None:
    for players in (
        "edges",
        "rings",
    ):
        picture = draw(MOLECULE, explained(Oxygens(0.0005), players=players), legend=False)
        noun = {"edges": "edge", "rings": "group"}[players]
        assert f"No {noun} stands out" in picture.svg


def test_a_comparison_is_pale_on_both_scales() -> None:
    faint = explained(Oxygens(0.0005))
    for scale in ("picture", "common"):
        picture = compare(MOLECULE, {"one": faint}, scale=scale, legend=False)
        assert "no atom stands out" in picture.svg
        assert not colors(picture)


def test_a_report_is_pale(tmp_path: Any) -> None:
    results = {"gstarx": [explained(Oxygens(0.0005))]}
    data = build_report(Judge(Oxygens(0.0005)), [MOLECULE], results, title="Faint", progress=False)
    page = write_report(tmp_path / "report.html", data).read_text()
    assert "No atom stands out" in page


def test_a_cut_is_suggested_only_where_it_helps() -> None:
    def notes(scores: list[float]) -> list[str]:
        names = [str(i) for i in range(len(scores))]
        drawn = Scored(np.array(scores), np.array([0]))
        return Painted.of(drawn, None, names, by_score=True).notes()

    assert notes([0.9, 0.8, 0.1, 0.0]) == ["Suggested cut, the largest gap of the scores: 2 nodes."]
    assert notes([0.5] * 85) == []  # all of them are no cut
    assert notes([0.9, 0.8, 0.7, 0.0]) == []
    assert color_limit([np.zeros(3)], None, 1.0) == 1.0


def test_a_regression_raises_and_lowers() -> None:
    value = draw(MOLECULE, explained(Oxygens(0.5, classes=1)))
    assert ">raises<" in value.svg
    assert ">for<" not in value.svg
    shown = compare(MOLECULE, {"one": explained(Oxygens(0.5, classes=1))})
    assert ">lowers<" in shown.svg
    assert ">for<" in draw(MOLECULE, explained(Oxygens(3.0))).svg


def test_tied_edges_have_a_dashed_outline() -> None:
    ring = smiles_graph("C1CCCC1")
    ring.x = torch.ones(5, 1)
    picture = draw(ring, explain(Oxygens(1.0), ring, target=1, players="edges"), legend=False)
    assert f'stroke-dasharray="{TIE_DASHES}"' in picture.svg


def test_of_few_atoms_one_is_outlined() -> None:
    explanation = Explanation.from_scores(np.array([0.1, 0.2, 0.9]), num_nodes=3)
    assert len(explanation.select(sparsity=0.7)) == 0
    assert "Selected: O2." in draw("CCO", explanation).svg
