"""What drives the model over all graphs: a chart and a table, in a report or on a page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from markupsafe import Markup

from gstarx._internal import rounding
from gstarx._internal.markup import render
from gstarx._version import __version__
from gstarx.drawing import summary_chart
from gstarx.evaluation import SummaryRow
from gstarx.report.assets import assets

HEADINGS = ("Group", "Explained", "Mean score", "95% interval", "Graphs", "Sign", "Examples")


def summary_page(
    title: str,
    summaries: Mapping[str, Sequence[SummaryRow]],
    *,
    facts: Mapping[str, str] | None = None,
) -> str:
    """A page about what drives a model: one HTML text that loads nothing.

    Parameters
    ----------
    title
        The title of the page.
    summaries
        By explainer, rows of :func:`gstarx.evaluation.summarize`.
    facts
        What to list below the title, by name.
    """
    return render(
        "report/summary.html.jinja",
        **assets(),
        title=title,
        parts=[summary_part(name, rows) for name, rows in summaries.items()],
        facts=dict(facts or {}),
        version=__version__,
    )


def summary_part(name: str, rows: Sequence[SummaryRow]) -> dict[str, object]:
    """The summary of one explainer, as the template shows it."""
    return {
        "explainer": name,
        "headings": HEADINGS,
        "chart": Markup(summary_chart(rows).svg) if rows else "",
        "rows": [_row(row) for row in rows],
    }


def _row(row: SummaryRow) -> dict[str, object]:
    # one graph has no interval
    ends = f"{rounding.metric(row.low)} to {rounding.metric(row.high)}"
    interval = ends if row.graphs > 1 else "–"
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
