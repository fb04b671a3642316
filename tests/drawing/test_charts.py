"""Charts show the numbers they are given, look like our other pictures, and change nothing else."""

from __future__ import annotations

import importlib
import re
import sys
from itertools import pairwise
from types import SimpleNamespace
from xml.etree.ElementTree import Element

import numpy as np
import pytest
import torch

from gstarx.drawing import (
    Picture,
    plot_curves,
    plot_intervals,
    scores_ax,
    summary_chart,
)
from gstarx.drawing.svg import INK, LINE, LINES, MUTED, NEGATIVE, POSITIVE
from gstarx.explanation import Explanation
from gstarx.metrics import Faithfulness, FidelityCurve, paired_bootstrap
from gstarx_bench.summary import SummaryRow
from tests.drawing.parsed import SVG, elements, parsed, texts, tips

matplotlib = pytest.importorskip("matplotlib")
from matplotlib.figure import Figure  # noqa: E402

AT = [0.5, 0.6, 0.7]


def curve(*heights: float) -> FidelityCurve:
    pairs = zip(heights, (0.52, 0.71), strict=True)
    points = tuple(Faithfulness.of(0.9, h, 0.8, s) for h, s in pairs)
    return FidelityCurve((0.5, 0.7), points, tuple((p,) for p in points))


def row(name: str, mean: float, sign: str, explained: str = "active", **more: int) -> SummaryRow:
    graphs = more.get("graphs", 20)
    return SummaryRow(name, 1, explained, mean, mean - 0.1, mean + 0.1, graphs, graphs, sign, ())


ROWS = [
    row("nitro", 0.5, "for"),
    row("<b>amine</b>", 0.05, "unclear", graphs=1),
    row("halogen", -0.4, "against"),
]


def path_of(picture: Picture, name: str) -> Element:
    """The first path of what says its name when the pointer rests on it."""
    found = tips(picture)[name].find(f"{SVG}path")
    assert found is not None
    return found


def corners(path: Element) -> np.ndarray:
    """Corners of a path, (k, 2), in units of the SVG."""
    return np.array(re.findall(r"([\d.]+) ([\d.]+)", path.attrib["d"]), dtype=float)


def test_higher_values_are_higher_and_the_same_scale_holds_for_all() -> None:
    picture = plot_curves({"a": (AT, [0.2, 0.3, 0.4]), "b": (AT, [0.4, 0.3, 0.2])})
    a, b = corners(path_of(picture, "a")), corners(path_of(picture, "b"))
    assert a[:, 0] == pytest.approx(b[:, 0])
    assert a[:, 1] == pytest.approx(b[::-1, 1], abs=0.02)
    assert (np.diff(a[:, 1]) < 0).all()
    assert np.diff(a[:, 0]) == pytest.approx(np.diff(a[:, 0])[0], abs=0.02)


def test_curves_are_drawn_at_the_sparsity_achieved_and_sorted() -> None:
    heights = curve(0.2, 0.3)["normalized_fidelity"]
    one = plot_curves({"a": curve(0.2, 0.3)}, metric="normalized_fidelity")
    other = plot_curves({"a": ([0.71, 0.52], heights[::-1])}, metric="normalized_fidelity")
    assert one.svg == other.svg
    assert "normalized fidelity" in texts(one)


def test_the_legend_lists_curves_as_they_end() -> None:
    picture = plot_curves({"low": (AT, [3, 2, 1]), "high": (AT, [1, 2, 3]), "mid": (AT, [2, 2, 2])})
    shown = [text for text in texts(picture) if text in ("low", "mid", "high")]
    assert shown == ["high", "mid", "low"]


def test_many_curves_all_look_different_and_references_are_gray() -> None:
    names = [f"c{i}" for i in range(14)]
    picture = plot_curves(dict.fromkeys([*names, "r", "s"], (AT, AT)), muted=["r", "s"])
    looks = {
        name: tuple(map(path_of(picture, name).get, ("stroke", "stroke-dasharray")))
        for name in [*names, "r", "s"]
    }
    assert len(set(looks.values())) == 16
    assert looks["c0"] == (LINES[0], None)
    assert {looks[name][0] for name in "rs"} == {MUTED}


def test_any_range_has_an_axis() -> None:
    for values in ([0.5, 0.5], [0.0, 0.0], [1e-9, 2e-9], [-1e6, 1e6]):
        picture = plot_curves({"a": ([0.5, 0.6], values)})
        places = corners(path_of(picture, "a"))
        assert ((places > 0) & (places < picture.size)).all()


def test_intervals_are_those_of_the_bootstrap_in_order() -> None:
    values = {"a": [0.4, 0.6, 0.7, 0.5], "b": [0.9, 0.9, 0.9, 0.8]}
    picture = plot_intervals(values, references={"random": 0.3})
    marks = []
    for name in "ba":
        found = paired_bootstrap(values[name], [0] * 4, seed=0)
        said = f"{name}: {found.mean:.4f}, {found.low:.4f} to {found.high:.4f}"
        marks.append(corners(path_of(picture, said))[:, 0])
    assert all(low < high for low, high in marks)
    assert all(one[0] > other[1] for one, other in pairwise(marks))
    assert {"a", "b", "random"} < set(texts(picture))
    assert picture.size[1] < plot_intervals(values, height=300).size[1]


def test_names_of_references_do_not_overlap() -> None:
    def heights(references: dict[str, float]) -> set[str]:
        picture = plot_intervals({"a": [0.1, 0.9]}, references=references)
        named = [part for part in elements(picture, "text") if (part.text or "").endswith(" one")]
        return {part.attrib["y"] for part in named}

    assert len(heights({"low one": 0.0, "high one": 1.0})) == 1
    assert len(heights({"low one": 0.5, "high one": 0.52})) == 2


def test_every_row_of_a_summary_has_a_bar_in_the_color_of_its_sign() -> None:
    picture = summary_chart(ROWS)
    fills = {said.split(":")[0]: path_of(picture, said).get("fill") for said in tips(picture)}
    assert fills["nitro"] == POSITIVE
    assert fills["halogen"] == NEGATIVE
    assert fills["<b>amine</b>"] not in (POSITIVE, NEGATIVE)
    assert {"0.5000", "−0.4000", "20 graphs", "1 graph", "active"} <= set(texts(picture))
    assert {"for", "against"} <= set(texts(picture))
    assert (
        "nitro 0.5000 (0.4000 to 0.6000), 20 graphs, for active"
        in parsed(picture).attrib["aria-label"]
    )


def test_bars_of_a_regression_raise_and_lower() -> None:
    shown = summary_chart([row("nitro", 0.5, "raises"), row("halogen", -0.4, "lowers")])
    assert {"raises", "lowers"} <= set(texts(shown))
    assert not {"for", "against"} & set(texts(shown))


def test_each_class_has_a_part_and_the_weakest_are_left_out() -> None:
    rows = [*ROWS, row("nitro", -0.5, "against", "inactive")]
    shown = texts(summary_chart(rows, most=2))
    assert "active (2 of 3 groups)" in shown
    assert "inactive" in shown
    assert "<b>amine</b>" not in shown


def test_names_are_shown_as_text_and_pages_need_no_styles() -> None:
    name = "<img src=x> $x$\x00日本"
    pictures = (
        plot_curves({name: (AT, AT)}),
        plot_intervals({name: AT}),
        summary_chart([row(name, 0.1, "unclear")]),
    )
    for picture in pictures:
        assert "<img src=x> $x$\ufffd日本" in texts(picture)
        tags = {part.tag.removeprefix(SVG) for part in parsed(picture).iter()}
        assert not tags & {"img", "script", "style", "metadata"}
        assert not re.search(r"\sstyle=|\son\w+=", picture.svg)
        assert picture.png().startswith(b"\x89PNG")


def test_the_same_numbers_give_the_same_file_whatever_the_settings() -> None:
    before = dict(matplotlib.rcParams)
    first = summary_chart(ROWS).svg
    assert dict(matplotlib.rcParams) == before
    with matplotlib.rc_context({"font.size": 30, "axes.grid": False, "svg.fonttype": "path"}):
        assert summary_chart(ROWS).svg == first


def test_charts_on_one_page_share_no_ids() -> None:
    charts = [summary_chart(ROWS), summary_chart(ROWS[:2]), plot_curves({"a": (AT, AT)})]
    ids = [set(re.findall(r'\sid="([^"]+)"', chart.svg)) for chart in charts]
    assert all(ids)
    assert sum(map(len, ids)) == len(set.union(*ids))
    for chart, own in zip(charts, ids, strict=True):
        assert set(re.findall(r'(?:url\(|href=")#(\w+)', chart.svg)) == own


def test_colors_of_text_and_lines_are_those_that_a_dark_page_replaces() -> None:
    from importlib.resources import files

    style = files("gstarx_bench.report").joinpath("report.css").read_text(encoding="utf-8")
    pictures = (
        plot_curves({"a": (AT, AT), "r": (AT, AT)}, muted=["r"]),
        plot_intervals({"a": AT}, references={"random": 0.1}),
        summary_chart(ROWS),
    )
    replaced = set(re.findall(r'\[(?:fill|stroke)="(#\w+)"\]', style))
    assert {INK, MUTED, LINE, "#ffffff"} <= replaced
    for picture in pictures:
        for part in elements(picture, "text"):
            assert part.get("fill") in replaced


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


def test_axes_that_are_given_are_drawn_on_without_pyplot(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib.pyplot", None)  # importing it would fail
    settings = dict(matplotlib.rcParams)
    figure = Figure()
    ax = figure.add_subplot()
    explanation = Explanation.from_scores(np.array([0.2, 0.7]), num_nodes=2)
    assert scores_ax(explanation, ax=ax) is ax
    assert figure.axes == [ax]
    own = scores_ax(explanation)
    assert own.figure is not figure
    own.figure.canvas.draw()
    assert dict(matplotlib.rcParams) == settings


def test_bad_input_is_named() -> None:
    for curves, options, error, message in (
        ({}, {}, ValueError, "at least one explainer"),
        ({"a": (AT, [1, 2])}, {}, ValueError, "as many values as sparsities"),
        ({"a": ([], [])}, {}, ValueError, "at least one"),
        ({"a": (AT, [1, 2, np.nan])}, {}, ValueError, "finite"),
        ({"a": 3}, {}, TypeError, "a FidelityCurve or a pair of arrays"),
        ({"a": (AT, AT)}, {"metric": "fid"}, ValueError, r"metric must be one of .*'fid'"),
    ):
        with pytest.raises(error, match=message):
            plot_curves(curves, **options)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="at least one explainer"):
        plot_intervals({})
    with pytest.raises(ValueError, match="finite"):
        plot_intervals({"a": [0.1, np.inf]})
    with pytest.raises(ValueError, match="at least one group"):
        summary_chart([])


def test_scores_that_cannot_be_bars_are_named() -> None:
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
    importlib.reload(sys.modules["gstarx.drawing.charts"])  # needs it only to draw
    with pytest.raises(ImportError, match=r"gstarx\[drawing\]"):
        plot_curves({"a": curve(0.1, 0.2)})
