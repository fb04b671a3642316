"""Plots on matplotlib axes, for papers: they accept an ``Axes`` and return one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gstarx._internal.optional import require
from gstarx.drawing.plots import NAMES, check_metric, curve_lines, looks_of, mean_intervals
from gstarx.drawing.svg import INK, LINES
from gstarx.metrics import Faithfulness, FidelityCurve

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKERS = {"circle": "o", "square": "s", "triangle": "^", "diamond": "D"}


def curves_ax(
    curves: Mapping[str, FidelityCurve],
    *,
    metric: str = "harmonic_fidelity",
    ax: Axes | None = None,
) -> Axes:
    """A metric against achieved sparsity, a line for each explainer.

    Parameters
    ----------
    curves
        By name, a curve or a pair of arrays: sparsities and values.
    metric
        Which of :data:`gstarx.metrics.METRICS`.
    ax
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> ax = curves_ax({"ours": ([0.5, 0.7], [0.6, 0.65]), "random": ([0.5, 0.7], [0.5, 0.5])})
    >>> ax.get_ylabel()
    'H-fidelity'
    """
    lines = curve_lines(curves, metric)
    ax = _axes(ax)
    looks = looks_of(list(lines), frozenset())
    # in the order of their last values, so that they are easy to find in the legend
    for name in sorted(lines, key=lambda line: -lines[line][1][-1]):
        xs, ys = lines[name]
        dashes = looks[name].dashes
        ax.plot(
            xs,
            ys,
            color=looks[name].color,
            marker=_MARKERS[looks[name].marker],
            linestyle="-" if dashes is None else (0, tuple(map(float, dashes.split()))),
            label=name,
        )
    ax.set_xlabel("sparsity")
    ax.set_ylabel(NAMES[metric])
    for text in ax.legend().get_texts():
        text.set_parse_math(False)
    return ax


def intervals_ax(
    results: Mapping[str, Sequence[Faithfulness]],
    *,
    metric: str = "harmonic_fidelity",
    ax: Axes | None = None,
    seed: int = 0,
) -> Axes:
    """Means with their 95% bootstrap intervals, a row for each explainer, highest first.

    The numbers are those of :func:`gstarx.drawing.plot_intervals`.

    Parameters
    ----------
    results
        By name, the metrics of every graph.
    metric
        Which of :data:`gstarx.metrics.METRICS`.
    ax
        Where to draw; by default on a figure of its own.
    seed
        Of the resampling.

    Examples
    --------
    >>> found = [Faithfulness.of(0.9, 0.3, alone, 0.75) for alone in (0.7, 0.8)]
    >>> [label.get_text() for label in intervals_ax({"ours": found}).get_yticklabels()]
    ['ours']
    """
    check_metric(metric)
    columns = {name: [getattr(one, metric) for one in metrics] for name, metrics in results.items()}
    rows = mean_intervals(columns, confidence=0.95, seed=seed)
    ax = _axes(ax)
    means, lows, highs = np.array(list(rows.values())).T
    places = np.arange(len(rows))
    ax.hlines(places, lows, highs, color=LINES[1], linewidth=2)
    ax.plot(means, places, color=LINES[1], marker="o", linestyle="none")
    _label_rows(ax, list(rows))
    ax.set_xlabel(NAMES[metric])
    return ax


def scores_ax(explanation: Any, *, top: int | None = None, ax: Axes | None = None) -> Axes:
    """The scores of the nodes as horizontal bars, highest first, with their standard errors.

    Nodes are numbered, and named where the explanation has ``words`` or ``atoms``. There is no
    error bar where the error is zero or unknown.

    Parameters
    ----------
    explanation
        Anything with ``scores``, ``std_errors`` and ``players``, of one target.
    top
        How many nodes to draw; by default all.
    ax
        Where to draw; by default on a figure of its own.

    Examples
    --------
    >>> from gstarx.explanation import Explanation
    >>> ax = scores_ax(Explanation.from_scores(np.array([0.2, 0.7, 0.1]), num_nodes=3), top=2)
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['1', '0']
    """
    if explanation.scores is None:
        raise ValueError("explanation must have scores (got one with sets of nodes only)")
    scores = np.asarray(explanation.scores, dtype=np.float64)
    if scores.ndim != 1 or not len(scores):
        raise ValueError(
            "explanation must have a score per player, at least one; of several targets take one "
            f"by for_target() (got scores of shape {scores.shape})"
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"explanation must have finite scores (got {scores.tolist()})")
    if top is not None and top < 1:
        raise ValueError(f"top must be at least 1 (got {top!r})")
    order = np.argsort(-scores, kind="stable")[:top]
    scores, nodes = scores[order], np.asarray(explanation.players)[order]
    errors = np.full(len(order), np.nan)
    if explanation.std_errors is not None:
        errors = np.asarray(explanation.std_errors, dtype=np.float64)[order]
    ax = _axes(ax)
    places = np.arange(len(order))
    ax.barh(places, scores, color=np.where(scores < 0, LINES[1], LINES[0]).tolist())
    has_error = errors > 0
    if has_error.any():
        ax.errorbar(
            scores[has_error],
            places[has_error],
            xerr=errors[has_error],
            color=INK,
            linestyle="none",
            capsize=3,
        )
    ax.axvline(0, color=INK, linewidth=0.8)
    words = getattr(explanation, "words", None) or getattr(explanation, "atoms", None)
    _label_rows(ax, [str(node) if words is None else f"{words[node]} {node}" for node in nodes])
    ax.set_xlabel("score")
    return ax


def _label_rows(ax: Axes, names: Sequence[str]) -> None:
    """Names at the left, the first on top."""
    ax.set_yticks(range(len(names)), labels=names, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)


def _axes(ax: Axes | None) -> Axes:
    """``ax``, or the axes of a new figure that needs neither a display nor pyplot."""
    figure = require("matplotlib.figure", extra="plots")
    if ax is not None:
        return ax
    new_figure = figure.Figure(layout="constrained")
    require("matplotlib.backends.backend_agg", extra="plots").FigureCanvasAgg(new_figure)
    axes: Axes = new_figure.add_subplot()
    return axes
