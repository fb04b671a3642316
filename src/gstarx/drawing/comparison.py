"""Explainers side by side on one graph, as in the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx._internal import rounding
from gstarx.drawing.draw import Subject, caption_of, explains_value, scored
from gstarx.drawing.painted import Painted, Scored, color_limit
from gstarx.drawing.picture import MARKS, Picture, Scene, card, color_bar
from gstarx.drawing.svg import INK, MUTED, WARNING, element, fitted, group, label, moved, number
from gstarx.metrics import Faithfulness, Judge, selection_size

SCALES = ("picture", "common")
#: What is said about an explanation that does worse than no explanation.
WORSE = "worse than a random selection: do not use this"
#: The same of a regression, whose metrics count changes toward the mean: scores that raise and
#: lower a value may be right where their selection does not move it there.
NO_VERDICT = "below random, which is no verdict on a regression"
_ROOM = 1180.0
_GAP = 24.0
_NAME = 14.0
_SMALL = 12.0
_LEAST = 250.0
#: Random selections that an explanation is compared with.
_DRAWS = 20
#: Between two numbers below a picture.
_FIGURE = 64.0


def compare(
    data: Data | str,
    results: Mapping[str, Any],
    *,
    judge: Judge | None = None,
    target: int | None = None,
    metrics: Mapping[str, Faithfulness] | None = None,
    random: float | None = None,
    sparsity: float = 0.7,
    scale: str | float = "picture",
    columns: int | None = None,
    title: str | None = None,
    caption: str | None = None,
    names: Sequence[str] = (),
    legend: bool = True,
    seed: int = 0,
) -> Picture:
    """Several explanations of one graph side by side.

    Below each are the fidelity, inverse fidelity and H-fidelity of its selected nodes. The highest
    H-fidelity is bold and underlined; one below that of a random selection is marked.

    Parameters
    ----------
    data
        The graph, or a SMILES.
    results
        By name, a score per node or a :class:`gstarx.Explanation`. An explanation that only
        has sets of nodes is drawn as 1 on the set it selects, else 0; one whose players are edges,
        groups or features as :func:`draw` does.
    judge, target
        If given, it computes metrics for this target, and those of random selections.
    metrics
        By name, metrics that are already known.
    random
        The H-fidelity of random selections of the same size, if it is known.
    sparsity
        The share of nodes that a selection leaves out.
    scale
        ``"picture"``: colors end at the largest score of each picture, which is printed below it,
        because explainers have scores of different units. ``"common"``: colors mean the same number
        everywhere, and end at the largest of all. A number: they end there.
    columns
        Pictures in a row; by default as many as fit, and one for sentences.
    title, legend
        As for :func:`draw`.
    caption, names
        As for :func:`draw`: by default the prediction that the first explanation knows.
    seed
        Of the layout of a graph, and of random selections.

    Examples
    --------
    >>> picture = compare("CC=O", {"first": [0, 0.2, 0.9], "second": [0.5, 0, 0]})
    >>> picture.title
    'Molecule CC=O: first, second'
    """
    _check(results, scale, columns)
    subject = Subject.of(data, seed=seed)
    drawn = {
        str(name): scored(result, len(subject.names), sparsity) for name, result in results.items()
    }
    by_name = dict(metrics or {})
    at_random = dict.fromkeys(drawn, random)
    if judge is not None:
        computed, draws = _evaluated(judge, target, data, drawn, sparsity, seed)
        by_name |= computed
        at_random = dict(draws) if random is None else at_random
    if caption is None:
        captions = (
            caption_of(result, names=names)
            for result in results.values()
            if hasattr(result, "node_scores")
        )
        caption = next(captions, None)
    limit = None
    if scale == "common":
        drawn_limits = (
            color_limit([result.scores], None, result.at_stake)
            for result in drawn.values()
            if result.scores.any()
        )
        limit = max(drawn_limits, default=1.0)
    if not isinstance(scale, str):
        limit = color_limit([], scale)
    regression = any(map(explains_value, results.values()))
    if judge is not None:
        regression |= judge.of(None).mode == "regression"
    cells = [
        _Cell(
            name,
            subject.painted(result, limit),
            by_name.get(name),
            at_random[name],
            limit is None,
            NO_VERDICT if regression else WORSE,
        )
        for name, result in drawn.items()
    ]
    marks = [mark for mark in MARKS if any(mark in cell.painted.marks for cell in cells)]
    return card(
        _grid(subject, cells, columns),
        title=title,
        caption=caption,
        alternative=f"{subject.title}: {', '.join(drawn)}",
        description=" ".join(cell.described() for cell in cells) + subject.remark,
        legend=color_bar(
            limit or 1.0, marks=marks, numbers=limit is not None, regression=regression
        )
        if legend
        else None,
    )


def _check(results: Mapping[str, Any], scale: str | float, columns: int | None) -> None:
    """Raise if there is nothing to compare, or it cannot be drawn so."""
    if isinstance(scale, str) and scale not in SCALES:
        valid = ", ".join(map(repr, SCALES))
        raise ValueError(f"scale must be one of {valid}, or a number (got {scale!r})")
    if not results:
        raise ValueError("results must name at least one explainer (got none)")
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1 (got {columns!r})")


def _evaluated(
    judge: Judge,
    target: int | None,
    data: Data | str,
    drawn: Mapping[str, Scored],
    sparsity: float,
    seed: int,
) -> tuple[dict[str, Faithfulness], dict[str, float]]:
    """The metrics of all results, and the mean H-fidelity of random selections, by name.

    Random selections are of the players that a result has.
    """
    if isinstance(data, str):
        raise TypeError("metrics need the graph that the model reads, not a SMILES")
    metrics: dict[str, Faithfulness] = {}
    at_random: dict[str, float] = {}
    of_nodes = {name: result for name, result in drawn.items() if result.explanation is None}
    others = [{name: result} for name, result in drawn.items() if name not in of_nodes]
    for results in [of_nodes, *others] if of_nodes else others:
        first = next(iter(results.values()))
        generator = np.random.default_rng(seed)
        count = len(first.scores)
        size = selection_size(count, sparsity, of_nodes=first.explanation is None)
        draws = [generator.permutation(count)[:size] for _ in range(_DRAWS)]
        selections = [result.selected for result in results.values()]
        of_players = judge
        if first.explanation is not None:
            of_players = replace(judge, players=first.explanation.player_spec)
            if first.explanation.player_kind != "groups":
                of_players = replace(of_players, removal="remove")  # all nodes stay
        (evaluated,) = of_players.many([data], [[*selections, *draws]], target=target)
        mean = float(np.mean([one.harmonic_fidelity for one in evaluated[len(results) :]]))
        metrics |= dict(zip(results, evaluated, strict=False))
        at_random |= dict.fromkeys(results, mean)
    return metrics, at_random


@dataclass(frozen=True)
class _Cell:
    name: str
    painted: Painted
    metrics: Faithfulness | None
    random: float | None
    own_scale: bool
    verdict: str

    @property
    def worse(self) -> bool:
        """Whether it is, as printed, worse than a random selection."""
        if self.metrics is None or self.random is None:
            return False
        value = self.metrics.harmonic_fidelity
        return value < self.random and rounding.metric(value) != rounding.metric(self.random)

    @property
    def notes(self) -> list[str]:
        faint = [f"no {self.painted.noun} stands out"] if self.painted.faint else []
        return [*faint, *([self.verdict] if self.worse else [])]

    def figures(self) -> list[tuple[str, str]]:
        """What is printed below the picture, by name."""
        named: dict[str, float] = {}
        if self.metrics is not None:
            named["fidelity"] = self.metrics.fidelity
            named["inverse"] = self.metrics.inverse_fidelity
            named["H-fidelity"] = self.metrics.harmonic_fidelity
        figures = [(name, rounding.metric(value)) for name, value in named.items()]
        scale = rounding.scale(self.painted.limit)
        return [*figures, *([("scale", scale)] if self.own_scale else [])]

    def described(self) -> str:
        text = f"{self.name}: {self.painted.described()}"
        figures = ", ".join(f"{name} {value}" for name, value in self.figures())
        return " ".join([text, *([f"{figures}."] if figures else []), *self.notes])


def _grid(subject: Subject, cells: list[_Cell], columns: int | None) -> Scene:
    widths = {"graph": 320.0, "sentence": 760.0}
    wide = widths.get(subject.kind)
    scenes = [subject.scene(cell.painted, width=wide) for cell in cells]
    width = max(_LEAST, *(scene.width for scene in scenes))
    height = max(scene.height for scene in scenes)
    printed = [rounding.metric(cell.metrics.harmonic_fidelity) for cell in cells if cell.metrics]
    # compared as printed: if several look equal, none is the best
    best = max(printed) if len(printed) > 1 and printed.count(max(printed)) == 1 else None
    if columns is None:
        fitting = 1 if subject.kind == "sentence" else int((_ROOM + _GAP) // (width + _GAP))
        columns = min(len(cells), max(1, fitting))
    below = 34.0 if any(cell.figures() for cell in cells) else 0.0
    below += 18.0 * max(len(cell.notes) for cell in cells)
    step = height + _NAME + 10 + below + _GAP
    parts = [
        moved(
            _drawn(cell, scene, width, height, best),
            (i % columns) * (width + _GAP),
            i // columns * step,
        )
        for i, (cell, scene) in enumerate(zip(cells, scenes, strict=True))
    ]
    rows = -(-len(cells) // columns)
    across = min(columns, len(cells))
    return Scene(across * (width + _GAP) - _GAP, rows * step - _GAP, group(*parts))


def _drawn(cell: _Cell, scene: Scene, width: float, height: float, best: str | None) -> str:
    middle = width / 2
    name = fitted(cell.name, _NAME, width)
    parts = [
        label(middle, _NAME, name, size=_NAME, font_weight=600, text_anchor="middle"),
        moved(scene.body, (width - scene.width) / 2, _NAME + 10 + (height - scene.height) / 2),
    ]
    y = _NAME + 10 + height + 22
    figures = cell.figures()
    for place, (metric, value) in enumerate(figures):
        strong = metric == "H-fidelity" and value == best
        x = middle + _FIGURE * (place - (len(figures) - 1) / 2)
        parts.append(_figure(x, y, metric, value, strong))
    parts += [
        label(middle, y + 26 + 18 * at, note, size=10.5, fill=WARNING, text_anchor="middle")
        for at, note in enumerate(cell.notes)
    ]
    return group(*parts)


def _figure(x: float, y: float, name: str, value: str, heavy: bool) -> str:
    parts = [
        label(x, y - 6, name, size=9.5, fill=MUTED, text_anchor="middle"),
        label(x, y + 7, value, size=_SMALL, text_anchor="middle", font_weight=700 * heavy or None),
    ]
    if heavy:  # not every font has bold letters
        path = f"M{number(x - 16)} {number(y + 11)}h32"
        parts.append(element("path", d=path, stroke=INK, stroke_width=1.6))
    return group(*parts)
