"""Curves and intervals: numbers where they belong."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gstarx.drawing import Picture, plot_curves, plot_intervals
from gstarx.drawing.plots import Axis, wide_enough
from gstarx.drawing.svg import LINES, MUTED
from gstarx.metrics import Faithfulness, FidelityCurve, paired_bootstrap
from tests.drawing.parsed import SVG, elements, parsed, texts, tips

AT = [0.5, 0.6, 0.7]


def path_of(picture: Picture, name: str) -> np.ndarray:
    """Corners of a curve, (k, 2), in units of the SVG."""
    for part in parsed(picture).iter(f"{SVG}g"):
        title, path = part.find(f"{SVG}title"), part.find(f"{SVG}path")
        if title is not None and title.text == name and path is not None:
            return np.array(re.findall(r"([\d.]+) ([\d.]+)", path.attrib["d"]), dtype=float)
    raise AssertionError(name)


def test_higher_values_are_higher_and_the_same_scale_holds_for_all() -> None:
    picture = plot_curves({"a": (AT, [0.2, 0.3, 0.4]), "b": (AT, [0.4, 0.3, 0.2])})
    a, b = path_of(picture, "a"), path_of(picture, "b")
    assert a[:, 0] == pytest.approx(b[:, 0])
    assert a[:, 1] == pytest.approx(b[::-1, 1])
    assert (np.diff(a[:, 1]) < 0).all()
    assert np.diff(a[:, 0]) == pytest.approx(np.diff(a[:, 0])[0], abs=0.02)


def test_curves_are_drawn_at_the_sparsity_achieved() -> None:
    points = tuple(Faithfulness.of(1.0, 0.2, 0.9, s) for s in (0.52, 0.71))
    curve = FidelityCurve((0.5, 0.7), points, tuple((p,) for p in points))
    one = plot_curves({"a": curve}, metric="normalized_fidelity")
    other = plot_curves(
        {"a": ([0.52, 0.71], curve["normalized_fidelity"])}, metric="normalized_fidelity"
    )
    assert one.svg == other.svg
    assert "normalized fidelity" in texts(one)


def test_points_are_sorted() -> None:
    one = plot_curves({"a": ([0.7, 0.5], [1, 2])})
    assert one.svg == plot_curves({"a": ([0.5, 0.7], [2, 1])}).svg


def test_the_legend_lists_curves_as_they_end() -> None:
    picture = plot_curves({"low": (AT, [3, 2, 1]), "high": (AT, [1, 2, 3]), "mid": (AT, [2, 2, 2])})
    assert [text for text in texts(picture) if text in ("low", "mid", "high")] == [
        "high",
        "mid",
        "low",
    ]


def test_many_curves_all_look_different() -> None:
    picture = plot_curves({f"c{i}": (AT, [i, i, i]) for i in range(14)})
    looks = set()
    for part in parsed(picture).iter(f"{SVG}g"):
        path = part.find(f"{SVG}path")
        if path is not None:
            looks.add((path.attrib["stroke"], path.get("stroke-dasharray")))
    assert len(looks) == 14


def test_what_others_are_held_against_is_grey_and_the_rest_keeps_its_colors() -> None:
    curves = {"random": (AT, AT), "a": (AT, AT), "best": (AT, AT)}
    muted = plot_curves(curves, muted=["random", "best"])
    looks = {
        part.findtext(f"{SVG}title"): (path.get("stroke"), path.get("stroke-dasharray"))
        for part in parsed(muted).iter(f"{SVG}g")
        if (path := part.find(f"{SVG}path")) is not None
    }
    assert looks["a"] == (LINES[0], None)
    assert looks["random"][0] == looks["best"][0] == MUTED
    assert looks["random"][1] != looks["best"][1]


@pytest.mark.parametrize("values", [[0.5, 0.5], [0.0, 0.0], [1e-9, 2e-9], [-1e6, 1e6]])
def test_any_range_has_an_axis(values: list[float]) -> None:
    picture = plot_curves({"a": ([0.5, 0.6], values)})
    width, height = picture.size
    corners = path_of(picture, "a")
    assert ((corners > 0) & (corners < [width, height])).all()


@given(st.floats(-1e3, 1e3), st.floats(1e-3, 1e3))
def test_ticks_are_few_round_and_inside(low: float, span: float) -> None:
    axis = Axis(low, low + span, 0, 100)
    ticks = axis.ticks()
    assert 2 <= len(ticks) <= 7
    assert all(low - 1e-6 * span <= tick <= low + span * (1 + 1e-6) for tick in ticks)
    assert np.ptp(np.diff(ticks)) < 1e-6 * span


def test_an_axis_never_has_no_width() -> None:
    low, high = wide_enough(np.array([0.3, 0.3]))
    assert low < 0.3 < high


def test_intervals_are_those_of_the_bootstrap() -> None:
    values = [0.4, 0.6, 0.7, 0.5]
    found = paired_bootstrap(values, [0] * 4, seed=0)
    picture = plot_intervals({"a": values, "b": [0.9, 0.9, 0.9, 0.8]}, references={"random": 0.3})
    assert f"a: {found.mean:.4f}, {found.low:.4f} to {found.high:.4f}" in tips(picture)
    rows = [text for text in texts(picture) if text in ("a", "b", "random")]
    assert rows == ["random", "b", "a"]
    assert picture.svg != plot_intervals({"a": values, "b": [0.9] * 4}).svg


def test_intervals_lie_in_order() -> None:
    picture = plot_intervals({"a": [0.1, 0.3, 0.2], "b": [0.6, 0.9, 0.7]}, height=300)
    marks = [
        (float(line.attrib["x1"]), float(line.attrib["x2"]))
        for line in elements(picture, "line")
        if line.get("stroke-width") == "3"
    ]
    assert all(low < high for low, high in marks)
    assert all(one[0] > other[1] for one, other in pairwise(marks))
    assert picture.size[1] > plot_intervals({"a": [0.1, 0.3], "b": [0.6, 0.9]}).size[1]


def test_names_of_references_do_not_overlap() -> None:
    apart = plot_intervals({"a": [0.1, 0.9]}, references={"low one": 0.0, "high one": 1.0})
    close = plot_intervals({"a": [0.1, 0.9]}, references={"low one": 0.5, "high one": 0.52})

    def heights(picture: Picture) -> set[str]:
        named = [part for part in elements(picture, "text") if (part.text or "").endswith(" one")]
        return {part.attrib["y"] for part in named}

    assert len(heights(apart)) == 1
    assert len(heights(close)) == 2


def test_names_are_shown_as_text() -> None:
    name = "<img src=x onerror=alert(1)>"
    for picture in (plot_curves({name: (AT, AT)}), plot_intervals({name: AT})):
        assert name in texts(picture) or any(t.startswith("<img") for t in texts(picture))
        assert elements(picture, "img") == []


@pytest.mark.parametrize(
    ("curves", "options", "error", "message"),
    [
        ({}, {}, ValueError, "at least one explainer"),
        ({"a": (AT, [1, 2])}, {}, ValueError, "as many values as sparsities"),
        ({"a": ([], [])}, {}, ValueError, "at least one"),
        ({"a": (AT, [1, 2, np.nan])}, {}, ValueError, "finite"),
        ({"a": 3}, {}, TypeError, "a FidelityCurve or a pair of arrays"),
        ({"a": (AT, AT)}, {"metric": "fid"}, ValueError, "metric must be one of 'fidelity'"),
    ],
)
def test_bad_curves_are_refused(
    curves: dict[str, object], options: dict[str, str], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        plot_curves(curves, **options)


def test_bad_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one explainer"):
        plot_intervals({})
    with pytest.raises(ValueError, match="finite"):
        plot_intervals({"a": [0.1, np.inf]})
