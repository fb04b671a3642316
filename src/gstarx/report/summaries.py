"""What drives the model over all graphs: a chart and a table, in a report or on a page."""

from __future__ import annotations

from collections.abc import Sequence

from markupsafe import Markup

from gstarx._internal import rounding
from gstarx.drawing import summary_chart
from gstarx.evaluation import SummaryRow

HEADINGS = ("Group", "Explained", "Mean score", "95% interval", "Graphs", "Sign", "Examples")


def summary_part(name: str, rows: Sequence[SummaryRow]) -> dict[str, object]:
    """The summary of one explainer, as the template shows it."""
    return {
        "explainer": name,
        "headings": HEADINGS,
        "chart": Markup(summary_chart(rows).svg),
        "rows": [_row(row) for row in rows],
    }


def _row(row: SummaryRow) -> dict[str, object]:
    interval = f"{rounding.metric(row.low)} to {rounding.metric(row.high)}"
    return {
        "name": row.name,
        "sign": row.sign,
        "cells": (
            row.explained,
            rounding.metric(row.mean),
            interval,
            f"{row.graphs:,}",
            row.sign,
        ),
        "examples": ", ".join(row.examples),
    }
