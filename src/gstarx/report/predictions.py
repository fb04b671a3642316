"""What the model predicts for every graph, and whether that is right."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx.datasets import label_of
from gstarx.drawing import output_name
from gstarx.evaluation import Pipeline
from gstarx.gnn import ModelTask


@dataclass(frozen=True)
class Predictions:
    """The predictions of a model.

    Attributes
    ----------
    task
        ``"classification"``, ``"multilabel"`` or ``"regression"``.
    explained
        The name of the label or output that is explained; empty for a classification.
    graphs
        For each graph the fields of :class:`gstarx.report.Explained` about its prediction.
    accuracy, error
        The share of right predictions, or the root mean squared error, of graphs with a label.
    """

    task: str
    explained: str
    graphs: list[dict[str, Any]]
    accuracy: float | None = None
    error: float | None = None


def predictions_of(
    pipeline: Pipeline,
    graphs: Sequence[Data],
    labels: Sequence[float] | None,
    target_names: Sequence[str],
) -> Predictions:
    """The predictions of a pipeline's model; raises if it has several outputs and no target."""
    task = ModelTask(pipeline.mode, return_type=pipeline.return_type, keywords=pipeline.keywords)
    outputs = [task.output(pipeline.model, graph) for graph in graphs]
    values = [pipeline.probabilities(output) for output in outputs]
    count = outputs[0].shape[1]
    regression = task.mode == "regression"
    if not regression and (task.mode == "multiclass_classification" or count == 1):
        classes = [label_of(g) for g in graphs] if labels is None else [int(y) for y in labels]
        return _classes(values, classes)
    if pipeline.target is None and count > 1:
        raise ValueError(
            f"the model has {count} outputs: choose the one to report on with target=0..{count - 1}"
        )
    column = pipeline.target or 0
    measured = [measured_of(g, column) for g in graphs] if labels is None else list(labels)
    outputs_of_target = [row[column] for row in values]
    name = output_name(column, target_names, count)
    summarize = _values if regression else _labels
    return summarize(outputs_of_target, measured, name)


def measured_of(graph: Data, column: int) -> float | None:
    """The true value of one of the targets of a graph, if it was measured."""
    y = graph.get("y")
    if y is None or y.numel() <= column:
        return None
    value = float(y.reshape(-1)[column])
    return None if math.isnan(value) else value


def _classes(values: list[list[float]], classes: Sequence[int | None]) -> Predictions:
    graphs = [
        {"predicted": int(np.argmax(row)), "probability": max(row), "label": label}
        for row, label in zip(values, classes, strict=True)
    ]
    return Predictions("classification", "", graphs, accuracy=_accuracy(graphs))


def _labels(probabilities: list[float], measured: Sequence[float | None], name: str) -> Predictions:
    graphs = [
        {"predicted": int(p > 0.5), "probability": p, "label": None if y is None else int(y)}
        for p, y in zip(probabilities, measured, strict=True)
    ]
    return Predictions("multilabel", name, graphs, accuracy=_accuracy(graphs))


def _values(predicted: list[float], measured: Sequence[float | None], name: str) -> Predictions:
    pairs = list(zip(predicted, measured, strict=True))
    errors = [value - true for value, true in pairs if true is not None]
    error = float(np.sqrt(np.mean(np.square(errors)))) if errors else None
    graphs = [{"value": value, "measured": true} for value, true in pairs]
    return Predictions("regression", name, graphs, error=error)


def _accuracy(graphs: Sequence[dict[str, Any]]) -> float | None:
    right = [g["predicted"] == g["label"] for g in graphs if g["label"] is not None]
    return float(np.mean(right)) if right else None
