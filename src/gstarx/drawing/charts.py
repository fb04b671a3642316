"""Charts by matplotlib: curves, intervals, bars of scores."""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

import numpy as np
from numpy.typing import ArrayLike, NDArray

from gstarx._internal import rounding
from gstarx._internal.arguments import one_of
from gstarx._internal.imports import require
from gstarx._internal.messages import printable
from gstarx.drawing.painted import Painted
from gstarx.drawing.picture import Picture, Scene, card
from gstarx.drawing.svg import (
    CARD,
    FONT,
    INK,
    LINE,
    LINES,
    MUTED,
    NEGATIVE,
    POSITIVE,
    element,
    escaped,
    fitted,
    group,
    plain,
    signed,
    tip,
)
from gstarx.metrics import METRICS, FidelityCurve, paired_bootstrap

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: What the metrics are called on an axis.
NAMES = {
    "fidelity": "fidelity",
    "inverse_fidelity": "inverse fidelity",
    "sparsity": "sparsity",
    "normalized_fidelity": "normalized fidelity",
    "normalized_inverse_fidelity": "normalized inverse fidelity",
    "harmonic_fidelity": "H-fidelity",
}
_DASHES = ("-", (0, (3.5, 1.5)), (0, (1, 1.5)), (0, (4.5, 1.5, 1, 1.5)))
_MARKERS = ("o", "s", "^", "D")
_SMALL, _NOTE = 12.0, 11.0
_ROW, _HEADING, _BELOW = 24.0, 34.0, 44.0
#: Bars of features that are drawn.
_BARS = 30
_UNCLEAR = "interval includes 0, or too few graphs"
_COLORS = {
    "for": POSITIVE,
    "raises": POSITIVE,
    "against": NEGATIVE,
    "lowers": NEGATIVE,
    "unclear": LINE,
}
#: How charts in pictures look: like our other pictures, and without marks of matplotlib's own.
_STYLE = {
    "axes.axisbelow": True,
    "axes.edgecolor": "none",
    "axes.formatter.useoffset": False,
    "axes.grid": True,
    "axes.labelcolor": INK,
    "axes.labelsize": _SMALL,
    "axes.titlelocation": "left",
    "axes.titlepad": 10.0,
    "axes.titlesize": _SMALL,
    "font.size": _SMALL,
    "grid.color": LINE,
    "hatch.color": MUTED,
    "hatch.linewidth": 0.6,
    "legend.fontsize": _SMALL,
    "legend.frameon": False,
    "lines.linewidth": 2.0,
    "lines.markersize": 7.0,
    "svg.fonttype": "none",
    "text.color": INK,
    "text.parse_math": False,
    "xtick.color": "none",
    "xtick.labelcolor": MUTED,
    "xtick.labelsize": _NOTE,
    "xtick.major.size": 0.0,
    "ytick.color": "none",
    "ytick.labelcolor": INK,
    "ytick.major.size": 0.0,
}
#: What a part of a chart has in its id that says something when the pointer rests on it.
_TIP = "tip:"
#: The font of a text as matplotlib wrote it before version 3.10.
_OLD_FONT = re.compile(r"font: (bold )?([\d.]+)px")


def plot_curves(
    curves: Mapping[str, Any],
    *,
    metric: str = "harmonic_fidelity",
    title: str | None = None,
    muted: Collection[str] = (),
    width: float = 640,
    height: float = 400,
) -> Picture:
    """A metric against achieved sparsity, a line for each explainer.

    Lines differ in color, marker and dashes. The legend lists them as they end, highest first.

    Parameters
    ----------
    curves
        By name, a :class:`gstarx.metrics.FidelityCurve`, or a pair of arrays: sparsities and
        values.
    metric
        Which of :data:`gstarx.metrics.METRICS` to take from curves; for arrays, what to call the
        values.
    title
        What to print above.
    muted
        Names of reference curves, drawn in gray.
    width, height
        Of the drawing.

    Examples
    --------
    >>> picture = plot_curves(
    ...     {"ours": ([0.5, 0.7], [0.6, 0.65]), "random": ([0.5, 0.7], [0.5, 0.5])}
    ... )
    >>> picture.title
    'H-fidelity against sparsity'
    """
    one_of(metric, METRICS, name="metric")
    if not curves:
        raise ValueError("curves must name at least one explainer (got none)")
    lines = {str(name): _points(str(name), curve, metric) for name, curve in curves.items()}
    described = "; ".join(
        f"{name} from {ys[0]:.4f} at {xs[0]:.2f} to {ys[-1]:.4f} at {xs[-1]:.2f}"
        for name, (xs, ys) in lines.items()
    )
    described = f"{NAMES[metric]} against achieved sparsity: {described}."
    with _figure(width, height, salt=described) as figure:
        ax = figure.subplots()
        drawn = {}
        seen = {True: 0, False: 0}
        for name, (xs, ys) in lines.items():
            gray = name in muted
            place = seen[gray]
            seen[gray] += 1
            dashes = 1 + place % (len(_DASHES) - 1) if gray else place // len(LINES) % len(_DASHES)
            (drawn[name],) = ax.plot(
                xs,
                ys,
                color=MUTED if gray else LINES[place % len(LINES)],
                marker=_MARKERS[place % len(_MARKERS)],
                linestyle=_DASHES[dashes],
                gid=_TIP + name,
                markeredgecolor=CARD,
            )
        ax.set_xlabel("sparsity")
        ax.set_title(NAMES[metric])  # letters on their side are harder to read
        ax.yaxis.set_tick_params(labelcolor=MUTED, labelsize=_NOTE)
        ax.xaxis.grid(False)
        order = sorted(lines, key=lambda name: -lines[name][1][-1])
        places: dict[str, Any] = {
            "loc": "upper left",
            "bbox_to_anchor": (1.0, 1.0),
            "handlelength": 2.6,
        }
        for text in ax.legend([drawn[name] for name in order], order, **places).get_texts():
            text.set_text(fitted(text.get_text(), _SMALL, 0.4 * width - 40))
        scene = _scene(figure)
    return card(
        scene, title=title, alternative=f"{NAMES[metric]} against sparsity", description=described
    )


def plot_intervals(
    values: Mapping[str, ArrayLike],
    *,
    references: Mapping[str, float] | None = None,
    quantity: str = "H-fidelity",
    title: str | None = None,
    confidence: float = 0.95,
    seed: int = 0,
    width: float = 640,
    height: float | None = None,
) -> Picture:
    """Means with their bootstrap intervals, a row for each explainer, highest first.

    Parameters
    ----------
    values
        By name, a number per graph.
    references
        By name, numbers to draw a vertical line at: a random selection, the best one.
    quantity
        What the numbers are.
    title
        What to print above.
    confidence
        Of the percentile interval.
    seed
        Of the resampling.
    width, height
        Of the drawing; by default as high as the rows need.

    Examples
    --------
    >>> plot_intervals({"ours": [0.6, 0.7, 0.65]}, references={"random": 0.5}).title
    'H-fidelity: means and 95% intervals'
    """
    if not values:
        raise ValueError("values must name at least one explainer (got none)")
    found = {
        str(name): paired_bootstrap(v, np.zeros(np.shape(v)), confidence=confidence, seed=seed)
        for name, v in values.items()
    }
    rows = dict(sorted(found.items(), key=lambda row: -row[1].mean))
    lines = {str(name): float(value) for name, value in (references or {}).items()}
    said = {name: f"{row.mean:.4f}, {row.low:.4f} to {row.high:.4f}" for name, row in rows.items()}
    heading = f"{quantity}: means and {confidence:.0%} intervals"
    listed = [f"{name} {words}" for name, words in said.items()]
    listed += [f"{name} {value:.4f}" for name, value in lines.items()]
    described = f"{heading}: {'; '.join(listed)}."
    needed = _ROW * len(rows) + 1.5 * _BELOW + 18.0 * len(lines)
    with _figure(width, height or needed, salt=described) as figure:
        ax = figure.subplots()
        for place, (name, row) in enumerate(rows.items()):
            bar = ax.hlines(place, row.low, row.high, color=LINES[1], linewidth=3.0)
            bar.set_gid(f"{_TIP}{name}: {said[name]}")
            ax.plot([row.mean], [place], color=LINES[1], marker="o", linestyle="none")
            _write(ax, place, rounding.metric(row.mean), 12.0, color=MUTED)
        ax.set_xlabel(quantity)
        ax.yaxis.grid(False)
        _label_rows(ax, [fitted(name, _SMALL, 0.4 * width) for name in rows])
        _draw_references(figure, ax, lines)
        scene = _scene(figure)
    return card(scene, title=title, alternative=heading, description=described)


def summary_chart(
    rows: Sequence[Any],
    *,
    title: str | None = None,
    most: int = 12,
    width: float = 640,
) -> Picture:
    """The mean scores of groups over a dataset as bars with their 95% intervals.

    Bars of groups that support the explained class, or raise the value, are orange, those of groups
    that count against it, or lower it, blue, and gray and hatched if the interval includes 0. Each
    explained class has its own part.

    Parameters
    ----------
    rows
        The rows of a summary, with ``name``, ``explained``, ``mean``, ``low``, ``high``,
        ``graphs`` and ``sign``.
    title
        What to print above.
    most
        The largest number of groups for each class: those with the largest means, either way, of
        which something is known, and then the others.
    width
        Of the drawing.

    Examples
    --------
    >>> from types import SimpleNamespace
    >>> row = SimpleNamespace(
    ...     name="nitro", explained="active", mean=0.4, low=0.3, high=0.5, graphs=20, sign="for"
    ... )
    >>> summary_chart([row]).title
    'Mean scores of groups'
    """
    if not rows:
        raise ValueError("rows must hold at least one group (got none)")
    listed = [(name, list(part)) for name, part in groupby(rows, key=lambda row: row.explained)]
    shown = [(name, _largest(part, most), len(part)) for name, part in listed]
    described = "; ".join(
        f"{row.name} {_range(row, '{} ({} to {})')}, {row.graphs} graphs, {row.sign} {name}"
        for name, part, _ in shown
        for row in part
    )
    described = f"Mean scores of groups with 95% intervals: {described}."
    heights = [_HEADING + _ROW * len(part) for _, part, _ in shown]
    with _figure(width, sum(heights) + 2 * _BELOW, salt=described) as figure:
        parts = figure.subplots(
            len(shown), sharex=True, squeeze=False, gridspec_kw={"height_ratios": heights}
        )[:, 0]
        for ax, (name, part, count) in zip(parts, shown, strict=True):
            _draw_summary(ax, part, width)
            more = f" ({len(part)} of {count} groups)" if len(part) < count else ""
            ax.set_title(fitted(f"{name}{more}", 13, width), fontsize=13, fontweight="bold")
        ax.set_xlabel("mean score: the sum over a group")
        figure.legend(
            handles=_signs({row.sign for row in rows}),
            loc="outside lower center",
            ncols=3,
            fontsize=_NOTE,
            labelcolor=MUTED,
        )
        scene = _scene(figure)
    return card(scene, title=title, alternative="Mean scores of groups", description=described)


def feature_bars(painted: Painted) -> Scene:
    """A bar for every feature, the strongest first."""
    order = np.argsort(-np.abs(painted.scores), kind="stable")[:_BARS].tolist()
    with _figure(400.0, 19.0 * len(order) + 40, salt=" ".join(painted.names)) as figure:
        ax = figure.subplots()
        scores = painted.scores[order].clip(-painted.limit, painted.limit)
        bars = _draw_bars(ax, scores, [painted.color(at) for at in order])
        _label_rows(ax, [fitted(painted.names[at], _NOTE, 200) for at in order])
        ax.grid(False)
        ax.set_xlim(-painted.limit, painted.limit)
        ax.set_xticks([])
        for row, (at, bar) in enumerate(zip(order, bars, strict=True)):
            chosen = bool(painted.selected[at])
            bar.set(
                gid=_TIP + painted.caption(at),
                edgecolor=INK if chosen else "#9a9a9a",
                linewidth=1.6 if chosen else 0.6,
            )
            weight = "bold" if chosen else "normal"
            ax.get_yticklabels()[row].set(fontsize=_NOTE, fontweight=weight)
            _write(ax, row, signed(float(painted.scores[at])), 8.0, fontsize=_NOTE)
        left_out = len(painted.scores) - len(order)
        if left_out:
            ax.set_xlabel(f"and {left_out} more, with smaller scores", fontsize=10)
        return _scene(figure)


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
    if ax is None:  # a new figure that needs neither a display nor pyplot
        figure = require("matplotlib.figure", extra="drawing").Figure(layout="constrained")
        require("matplotlib.backends.backend_agg", extra="drawing").FigureCanvasAgg(figure)
        ax = figure.add_subplot()
    _draw_bars(ax, scores, np.where(scores < 0, LINES[1], LINES[0]).tolist())
    known = np.flatnonzero(errors > 0)
    if len(known):
        _draw_errors(ax, scores[known], known, errors[known])
    words = getattr(explanation, "words", None) or getattr(explanation, "atoms", None)
    _label_rows(ax, [str(node) if words is None else f"{words[node]} {node}" for node in nodes])
    ax.set_xlabel("score")
    return ax


def _points(name: str, curve: Any, metric: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Sparsities ascending, and the values there."""
    if isinstance(curve, FidelityCurve):
        xs, ys = curve["sparsity"], curve[metric]
    else:
        try:
            xs, ys = (np.asarray(part, dtype=np.float64) for part in curve)
        except (TypeError, ValueError) as error:
            raise TypeError(
                f"curve {name!r} must be a FidelityCurve or a pair of arrays (got {curve!r})"
            ) from error
    if xs.ndim != 1 or xs.shape != ys.shape or not len(xs):
        raise ValueError(
            f"curve {name!r} must have as many values as sparsities, at least one "
            f"(got {ys.shape} and {xs.shape})"
        )
    if not (np.isfinite(xs).all() and np.isfinite(ys).all()):
        raise ValueError(f"curve {name!r} must be finite numbers")
    order = np.argsort(xs, kind="stable")
    return xs[order], ys[order]


def _draw_references(figure: Figure, ax: Axes, lines: Mapping[str, float]) -> None:
    """Vertical lines with their names above, stacked where they would overlap."""
    named = []
    for name, value in sorted(lines.items(), key=lambda line: line[1]):
        ax.axvline(value, color=INK, linewidth=1.0, linestyle=(0, (4, 3)))
        where: dict[str, Any] = {
            "xycoords": ("data", "axes fraction"),
            "textcoords": "offset points",
        }
        named.append(
            ax.annotate(name, (value, 1.0), xytext=(0, 4), ha="center", fontsize=_NOTE, **where)
        )
    figure.draw_without_rendering()
    boxes: list[Any] = []
    for text in named:
        box = text.get_window_extent()
        while any(box.overlaps(other) for other in boxes):
            text.set_position((0, text.get_position()[1] + 14))
            box = box.translated(0, 14)
        boxes.append(box)


def _largest(rows: Sequence[Any], most: int) -> list[Any]:
    order = sorted(rows, key=lambda row: (row.sign == "unclear", -abs(row.mean)))
    shown = {id(row) for row in order[:most]}
    return [row for row in rows if id(row) in shown]


def _range(row: Any, form: str) -> str:
    return form.format(*map(rounding.metric, (row.mean, row.low, row.high)))


def _draw_summary(ax: Axes, rows: Sequence[Any], width: float) -> None:
    """A bar for each group with its interval, its mean and how many graphs contain it."""
    bars = _draw_bars(ax, [row.mean for row in rows], [_COLORS[row.sign] for row in rows])
    for place, (row, bar) in enumerate(zip(rows, bars, strict=True)):
        graphs = f"{row.graphs} graph{'s' * (row.graphs != 1)}"
        said = f"{row.name}: {_range(row, '{}, {} to {}')}, {graphs}, {row.sign}"
        bar.set(gid=_TIP + said, **_edge(row.sign))
        if row.graphs > 1:
            ends = [[row.mean - row.low], [row.high - row.mean]]
            _draw_errors(ax, [row.mean], [place], ends)
        _write(ax, place, rounding.metric(row.mean), 10.0)
        _write(ax, place, graphs, 66.0, fontsize=_NOTE, color=MUTED)
    _label_rows(ax, [fitted(row.name, _SMALL, 0.36 * width) for row in rows])
    ax.yaxis.grid(False)


def _edge(sign: str) -> dict[str, Any]:
    hatch = {"hatch": "////"} if sign == "unclear" else {}
    return {"edgecolor": MUTED, "linewidth": 0.6, **hatch}


def _signs(signs: set[str]) -> list[Any]:
    """What the colors of bars mean, for the legend."""
    patches = require("matplotlib.patches", extra="drawing")
    # of rows that are all unclear, nobody knows whether a class or a value was explained
    words = ("raises", "lowers") if signs & {"raises", "lowers"} else ("for", "against")
    shown = (*words, "unclear") if signs & {*words} else ("unclear",)
    return [
        patches.Patch(
            facecolor=_COLORS[sign], label=_UNCLEAR if sign == "unclear" else sign, **_edge(sign)
        )
        for sign in shown
    ]


def _draw_bars(ax: Axes, scores: ArrayLike, colors: Sequence[str]) -> list[Any]:
    """Horizontal bars from 0, the first on top."""
    bars = ax.barh(np.arange(len(colors)), scores, height=0.55, color=colors)
    ax.axvline(0, color=INK, linewidth=0.8)
    return list(bars)


def _draw_errors(ax: Axes, scores: ArrayLike, places: ArrayLike, errors: Any) -> None:
    style: dict[str, Any] = {"color": INK, "linestyle": "none", "capsize": 3, "elinewidth": 1.4}
    ax.errorbar(scores, places, xerr=errors, **style)


def _write(ax: Axes, row: int, text: str, right: float, **style: Any) -> None:
    """A text to the right of the axes."""
    where: dict[str, Any] = {"xycoords": ("axes fraction", "data"), "textcoords": "offset points"}
    ax.annotate(text, (1.0, row), xytext=(right, 0), va="center", **where, **style)


def _label_rows(ax: Axes, names: Sequence[str]) -> None:
    """Names at the left, the first on top."""
    ax.set_yticks(range(len(names)), labels=names, parse_math=False)
    ax.set_ylim(len(names) - 0.5, -0.5)


@contextmanager
def _figure(width: float, height: float, *, salt: str) -> Iterator[Figure]:
    """A figure for a picture, whatever the settings of the caller; they stay as they are.

    Ids are made of ``salt``, so that pictures on one page do not borrow each other's markers.
    """
    matplotlib = require("matplotlib", extra="drawing")
    figure = require("matplotlib.figure", extra="drawing").Figure
    with matplotlib.rc_context(), warnings.catch_warnings():
        # letters are measured in a font that may lack them, and drawn in another
        warnings.filterwarnings("ignore", message="Glyph .* missing from")
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE | {"svg.hashsalt": printable(salt)})
        made = figure(figsize=(width / 72, height / 72), dpi=72, layout="constrained")
        made.patch.set_visible(False)
        yield made


def _scene(figure: Figure) -> Scene:
    """What matplotlib draws as shapes like ours: without styles, which pages may forbid."""
    for ax in figure.axes:
        ax.patch.set_visible(False)
    written = io.StringIO()
    figure.savefig(written, format="svg", metadata={"Date": None})
    width, height = (72 * float(side) for side in figure.get_size_inches())
    body = _inside(ElementTree.fromstring(printable(written.getvalue())))
    return Scene(width, height, group(body, font_family=FONT))


def _inside(part: ElementTree.Element) -> str:
    """The parts of a drawing by matplotlib in the order that they lie in."""
    return "".join(map(_markup, part))


def _markup(part: ElementTree.Element, **more: Any) -> str:
    """A part with its markers and hatchings, without groups that say nothing."""
    tag, name = part.tag.rpartition("}")[2], part.get("id", "")
    if tag in {"metadata", "style", "clipPath"}:
        return ""
    if tag == "defs":
        used = "".join(_markup(each, id=each.get("id")) for each in part)
        return element("defs", used) if used else ""
    if tag == "g":
        said = tip(name.removeprefix(_TIP)) if name.startswith(_TIP) else ""
        return group(said, _inside(part)) if said else _inside(part)
    style = plain(part)
    if tag != "text":
        return element(tag, _inside(part), **style, **more)
    old = _OLD_FONT.search(part.get("style", ""))
    if old is not None:
        style |= {"font-size": old[2], **({"font-weight": "bold"} if old[1] else {})}
    style.setdefault("fill", INK)
    return element("text", escaped(part.text or ""), **style)
