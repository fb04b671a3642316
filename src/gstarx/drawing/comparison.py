"""Explainers side by side on one graph, as in the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx.drawing.dispatch import Subject
from gstarx.drawing.frame import Scene, card, color_bar
from gstarx.drawing.painted import Painted, color_limit
from gstarx.drawing.picture import Picture
from gstarx.drawing.svg import INK, MUTED, decimal, element, fitted, group, label, moved, number
from gstarx.metrics import Faithfulness, as_scores, evaluate_many, select_best, selection_size

SCALES = ("common", "own")
_ROOM = 1180.0
_GAP = 24.0
_NAME = 14.0
_SMALL = 12.0
_LEAST = 210.0


def compare(
    data: Data | str,
    results: Mapping[str, Any],
    *,
    model: Any = None,
    metrics: Mapping[str, Faithfulness] | None = None,
    sparsity: float = 0.7,
    scale: str = "common",
    columns: int | None = None,
    title: str | None = None,
    legend: bool = True,
    seed: int = 0,
    target: int | None = None,
    removal: Any = "remove",
    mode: str = "multiclass_classification",
    return_type: str = "raw",
    keywords: Sequence[str] | None = None,
) -> Picture:
    """Several explanations of one graph side by side.

    Below each are the fidelity, inverse fidelity and H-fidelity of its selected nodes. The highest
    H-fidelity is bold and underlined.

    Parameters
    ----------
    data
        The graph, or a SMILES.
    results
        By name, a score per node or a :class:`gstarx.Explanation`. An explanation that only
        has sets of nodes is drawn as 1 on the set it selects, else 0.
    model
        If given, metrics are computed with it.
    metrics
        By name, metrics that are already known.
    sparsity
        The share of nodes that a selection leaves out.
    scale
        ``"common"``: colors mean the same number everywhere. ``"own"``: colors end at the largest
        score of each, which suits explainers whose scores have different units.
    columns
        Pictures in a row; by default as many as fit, and one for sentences.
    title, legend
        As for :func:`draw_molecule`.
    seed
        Of the layout of a graph.
    target, removal, mode, return_type, keywords
        For the metrics, as for :func:`gstarx.metrics.evaluate`.

    Examples
    --------
    >>> picture = compare("CC=O", {"first": [0, 0.2, 0.9], "second": [0.5, 0, 0]})
    >>> picture.title
    'Molecule CC=O: first, second'
    """
    if scale not in SCALES:
        valid = ", ".join(map(repr, SCALES))
        raise ValueError(f"scale must be one of {valid} (got {scale!r})")
    if not results:
        raise ValueError("results must name at least one explainer (got none)")
    if columns is not None and columns < 1:
        raise ValueError(f"columns must be at least 1 (got {columns!r})")
    subject = Subject.of(data, seed=seed)
    drawn = {
        str(name): scored(result, len(subject.names), sparsity) for name, result in results.items()
    }
    known = dict(metrics or {})
    if model is not None:
        if isinstance(data, str):
            raise TypeError("metrics need the graph that the model reads, not a SMILES")
        (evaluated,) = evaluate_many(
            model,
            [data],
            [[result_drawn.selected for result_drawn in drawn.values()]],
            target=target,
            removal=removal,
            mode=mode,
            return_type=return_type,
            keywords=keywords,
        )
        known |= dict(zip(drawn, evaluated, strict=True))
    common = color_limit([result_drawn.scores for result_drawn in drawn.values()], None)
    cells = [
        _Cell(
            name,
            Painted.of(result_drawn.scores, result_drawn.selected, limit, subject.names),
            known.get(name),
        )
        for name, result_drawn in drawn.items()
        for limit in [common if scale == "common" else None]
    ]
    return card(
        _grid(subject, cells, columns),
        title=title,
        alternative=f"{subject.title}: {', '.join(drawn)}",
        description=" ".join(cell.described() for cell in cells) + subject.remark,
        legend=color_bar(common, selected=True, numbers=scale == "common") if legend else None,
    )


@dataclass(frozen=True)
class Scored:
    """Scores to draw and the nodes selected, of any kind of result."""

    scores: NDArray[np.float64]
    selected: NDArray[np.int64]


def scored(result: Any, count: int, sparsity: float) -> Scored:
    """The scores and selected nodes of a result; sets of nodes become scores of 1 and 0."""
    size = selection_size(count, sparsity)
    if not hasattr(result, "select"):
        plain = as_scores(getattr(result, "node_mask", result), count)
        return Scored(plain, np.sort(select_best(plain, size)))
    selected = result.select(size=size)
    if result.node_scores is not None:
        return Scored(as_scores(result.node_scores, count), selected)
    scores = np.zeros(count)
    scores[selected] = 1.0
    return Scored(scores, selected)


@dataclass(frozen=True)
class _Cell:
    name: str
    painted: Painted
    metrics: Faithfulness | None

    def described(self) -> str:
        text = f"{self.name}: {self.painted.described()}"
        if self.metrics is None:
            return text
        return f"{text} {', '.join(f'{name} {value}' for name, value in _figures(self.metrics))}."


def _figures(metrics: Faithfulness) -> list[tuple[str, str]]:
    return [
        ("fidelity", decimal(metrics.fidelity)),
        ("inverse", decimal(metrics.inverse_fidelity)),
        ("H-fidelity", decimal(metrics.harmonic_fidelity)),
    ]


def _grid(subject: Subject, cells: list[_Cell], columns: int | None) -> Scene:
    widths = {"graph": 320.0, "sentence": 760.0}
    scenes = [subject.scene(cell.painted, width=widths.get(subject.kind)) for cell in cells]
    width = max(_LEAST, *(scene.width for scene in scenes))
    height = max(scene.height for scene in scenes)
    printed = [decimal(cell.metrics.harmonic_fidelity) for cell in cells if cell.metrics]
    # compared as printed: if several look equal, none is the best
    best = max(printed) if len(printed) > 1 and printed.count(max(printed)) == 1 else None
    if columns is None:
        fitting = 1 if subject.kind == "sentence" else int((_ROOM + _GAP) // (width + _GAP))
        columns = min(len(cells), max(1, fitting))
    below = 34.0 if printed else 0.0
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
    if cell.metrics is not None:
        y = _NAME + 10 + height + 22
        heavy = decimal(cell.metrics.harmonic_fidelity) == best
        for (metric, value), place in zip(_figures(cell.metrics), (-70, 0, 74), strict=True):
            strong = heavy and metric == "H-fidelity"
            parts.append(_figure(middle + place, y, metric, value, strong))
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
