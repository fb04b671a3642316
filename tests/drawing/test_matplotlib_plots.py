"""Plots on matplotlib's axes show the numbers they are given, and touch nothing else."""

from __future__ import annotations

import importlib
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from gstarx.drawing import curves_ax, intervals_ax, plot_intervals, scores_ax
from gstarx.explanation import Explanation
from gstarx.metrics import Faithfulness, FidelityCurve, paired_bootstrap
from tests.drawing.parsed import tips

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

ALONE = np.random.default_rng(0).random(20).tolist()  # enough that intervals depend on the seed
RESULTS = {
    "low": [Faithfulness.of(0.9, 0.8, alone, 0.7) for alone in ALONE],
    "high": [Faithfulness.of(0.9, 0.2, alone, 0.7) for alone in ALONE],
}


def curve(*heights: float) -> FidelityCurve:
    pairs = zip(heights, (0.52, 0.71), strict=True)
    points = tuple(Faithfulness.of(0.9, h, 0.8, s) for h, s in pairs)
    return FidelityCurve((0.5, 0.7), points, tuple((p,) for p in points))


def test_curves_show_the_metric_at_the_sparsity_achieved() -> None:
    curves = {"a": curve(0.8, 0.7), "b $x$": curve(0.2, 0.1)}
    ax = curves_ax(curves, metric="fidelity")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("sparsity", "fidelity")
    for line in ax.get_lines():
        assert line.get_xdata().tolist() == [0.52, 0.71]
        assert line.get_ydata().tolist() == curves[line.get_label()]["fidelity"].tolist()
    texts = ax.get_legend().get_texts()
    assert [text.get_text() for text in texts] == ["b $x$", "a"]  # highest end first
    assert not any(text.get_parse_math() for text in texts)
    looks = {(line.get_color(), line.get_marker()) for line in ax.get_lines()}
    assert len(looks) == 2


def test_intervals_are_those_of_the_other_plot() -> None:
    ax = intervals_ax(RESULTS, seed=3)
    names = [text.get_text() for text in ax.get_yticklabels()]
    assert names == ["high", "low"]
    bottom, top = ax.get_ylim()
    assert bottom > top  # the first is on top
    (bars,) = ax.collections
    (means,) = ax.get_lines()
    heights = {name: [one.harmonic_fidelity for one in own] for name, own in RESULTS.items()}
    shown = tips(plot_intervals(heights, seed=3))
    for row, name in enumerate(names):
        (low, y), (high, _) = bars.get_segments()[row]
        found = paired_bootstrap(heights[name], np.zeros(20), seed=3)
        assert (means.get_xdata()[row], low, high) == (found.mean, found.low, found.high)
        assert y == means.get_ydata()[row] == row
        assert f"{name}: {found.mean:.4f}, {low:.4f} to {high:.4f}" in shown
    assert ax.get_xlabel() == "H-fidelity"


def test_scores_are_bars_with_their_errors() -> None:
    explanation = SimpleNamespace(
        scores=torch.tensor([0.1, -0.4, 0.9]),
        std_errors=torch.tensor([0.05, float("nan"), 0.2]),
        players=torch.tensor([4, 0, 2]),
        words=["zero", "one", "$two$", "three", "four"],
    )
    ax = scores_ax(explanation)
    assert [bar.get_width() for bar in ax.patches] == pytest.approx([0.9, 0.1, -0.4])
    assert [text.get_text() for text in ax.get_yticklabels()] == ["$two$ 2", "four 4", "zero 0"]
    (errors,) = ax.collections
    ends = [segment[:, 0].tolist() for segment in errors.get_segments()]
    assert ends == [pytest.approx([0.7, 1.1]), pytest.approx([0.05, 0.15])]
    assert len(scores_ax(explanation, top=2).patches) == 2
    explanation.std_errors = None
    assert not scores_ax(explanation).collections
    ax.figure.canvas.draw()


def test_axes_that_are_given_are_drawn_on_and_nothing_else_changes() -> None:
    settings = dict(matplotlib.rcParams)
    figure = Figure()
    ax = figure.add_subplot()
    explanation = Explanation.from_scores(np.array([0.2, 0.7]), num_nodes=2)
    assert curves_ax({"a": curve(0.1, 0.2)}, ax=ax) is ax
    assert intervals_ax(RESULTS, ax=ax) is ax
    assert scores_ax(explanation, ax=ax) is ax
    assert figure.axes == [ax]
    assert scores_ax(explanation).figure is not figure
    assert dict(matplotlib.rcParams) == settings


def test_pyplot_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would fail
    explanation = Explanation.from_scores(np.array([0.2, 0.7]), num_nodes=2)
    for ax in (curves_ax({"a": curve(0.1, 0.2)}), intervals_ax(RESULTS), scores_ax(explanation)):
        ax.figure.canvas.draw()


def test_bad_input_is_named() -> None:
    with pytest.raises(ValueError, match=r"metric must be one of .*\(got 'height'\)"):
        curves_ax({"a": curve(0.1, 0.2)}, metric="height")
    with pytest.raises(ValueError, match=r"metric must be one of .*\(got 'height'\)"):
        intervals_ax(RESULTS, metric="height")
    for draw in (curves_ax, intervals_ax):
        with pytest.raises(ValueError, match="at least one explainer"):
            draw({})
    explanation = Explanation.from_scores(np.array([0.2, 0.7]), num_nodes=2)
    with pytest.raises(ValueError, match=r"top must be at least 1 \(got 0\)"):
        scores_ax(explanation, top=0)
    explanation.scores = torch.tensor([0.2, torch.nan])
    with pytest.raises(ValueError, match=r"finite scores \(got \[0.2.*, nan\]\)"):
        scores_ax(explanation)
    explanation.scores = torch.ones(2, 3)
    with pytest.raises(ValueError, match=r"for_target\(\) \(got scores of shape \(2, 3\)\)"):
        scores_ax(explanation)
    with pytest.raises(ValueError, match="sets of nodes only"):
        scores_ax(Explanation.from_scores(None, num_nodes=2, sets=[np.array([0])]))


def test_without_matplotlib_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    importlib.reload(sys.modules["gstarx.drawing.matplotlib_plots"])  # needs it only to draw
    with pytest.raises(ImportError, match=r"gstarx\[plots\]"):
        curves_ax({"a": curve(0.1, 0.2)})
