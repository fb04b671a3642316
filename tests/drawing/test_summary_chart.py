"""Bars of a dataset summary."""

from __future__ import annotations

import pytest

from gstarx.drawing import summary_chart
from gstarx.drawing.svg import NEGATIVE, POSITIVE
from gstarx_bench.summary import SummaryRow
from tests.drawing.parsed import parsed, texts, tips


def row(name: str, mean: float, sign: str, explained: str = "active", **more: int) -> SummaryRow:
    graphs = more.get("graphs", 20)
    return SummaryRow(name, 1, explained, mean, mean - 0.1, mean + 0.1, graphs, graphs, sign, ())


ROWS = [
    row("nitro", 0.5, "for"),
    row("<b>amine</b>", 0.05, "unclear", graphs=1),
    row("halogen", -0.4, "against"),
]


def test_every_row_has_a_bar_in_the_color_of_its_sign() -> None:
    picture = summary_chart(ROWS)
    bars = {
        name.split(":")[0]: next(part for part in element.iter() if part.tag.endswith("rect"))
        for name, element in tips(picture).items()
    }
    assert bars["nitro"].get("fill") == POSITIVE
    assert bars["halogen"].get("fill") == NEGATIVE
    assert bars["<b>amine</b>"].get("fill") not in (POSITIVE, NEGATIVE)
    assert {"0.5000", "−0.4000", "20 graphs", "1 graph", "active"} <= set(texts(picture))
    assert (
        "nitro 0.5000 (0.4000 to 0.6000), 20 graphs, for active"
        in parsed(picture).attrib["aria-label"]
    )


def test_bars_of_a_regression_raise_and_lower() -> None:
    shown = summary_chart([row("nitro", 0.5, "raises"), row("halogen", -0.4, "lowers")])
    assert {"raises", "lowers"} <= set(texts(shown))
    assert not {"for", "against"} & set(texts(shown))
    assert POSITIVE in shown.svg
    assert NEGATIVE in shown.svg
    assert {"for", "against"} <= set(texts(summary_chart(ROWS)))


def test_each_class_has_a_part_and_the_weakest_are_left_out() -> None:
    rows = [*ROWS, row("nitro", -0.5, "against", "inactive")]
    shown = texts(summary_chart(rows, most=2))
    assert "active (2 of 3 groups)" in shown
    assert "inactive" in shown
    assert "<b>amine</b>" not in shown


def test_no_rows_are_refused() -> None:
    with pytest.raises(ValueError, match="at least one group"):
        summary_chart([])
