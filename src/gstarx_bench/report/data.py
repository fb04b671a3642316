"""What a report shows, as data: graphs, predictions, and a row for every explainer."""

from __future__ import annotations

import math
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx._internal.arguments import one_of
from gstarx._version import __version__
from gstarx.datasets import label_of
from gstarx.drawing import Scored, class_name, output_name
from gstarx.evaluation import Pipeline
from gstarx.metrics import Faithfulness, FidelityCurve, average
from gstarx_bench.summary import SummaryRow

KINDS = ("explainer", "random", "optimum")
TASKS = ("classification", "multilabel", "regression")
_PACKAGES = ("numpy", "torch", "torch_geometric", "rdkit")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers and pictures depend on."""
    # its own constant, because the package may run without being installed
    installed = {"gstarx": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            installed[package] = version(package)
        except PackageNotFoundError:
            continue
    return installed


@dataclass(frozen=True)
class ExplainerRow:
    """One row of the table: an explainer, or a reference to compare it with, over all graphs.

    Attributes
    ----------
    name
        Its name in the report.
    graphs
        The metrics of every graph, at the sparsity of the report.
    kind
        ``"explainer"``, ``"random"`` for the random selection, or ``"optimum"`` for the best
        selection that a search found.
    curve
        The metrics at many sparsities.
    seconds
        Mean CPU seconds per graph.
    evaluations
        Mean number of evaluations of the model per graph.
    auroc
        How well scores rank the nodes of the ground truth, if that is known.
    note
        A remark below the name.
    """

    name: str
    graphs: tuple[Faithfulness, ...]
    kind: str = "explainer"
    curve: FidelityCurve | None = None
    seconds: float | None = None
    evaluations: float | None = None
    auroc: float | None = None
    note: str = ""

    def __post_init__(self) -> None:
        one_of(self.kind, KINDS, name="kind")
        if not self.graphs:
            raise ValueError(f"graphs of {self.name!r} must not be empty")

    @property
    def mean(self) -> Faithfulness:
        """The metrics, each averaged over the graphs."""
        return average(self.graphs)


@dataclass(frozen=True)
class Explained:
    """One graph of the gallery.

    Attributes
    ----------
    name
        Its name; always shown as plain text.
    data
        The graph, drawn as by :func:`gstarx.drawing.draw`.
    predicted
        The class that the model predicts; of several labels, 1 if it predicts the one explained.
    probability
        The probability of this class, or of this label.
    label
        The true class, if known.
    results
        By explainer, the scores of nodes or other players, and those it selects.
    metrics
        By explainer, the metrics of these nodes or players.
    random
        The H-fidelity of a random selection.
    value, measured
        Of a regression, instead of class and probability: the predicted and the true value.
    """

    name: str
    data: Data
    predicted: int | None = None
    probability: float | None = None
    label: int | None = None
    results: Mapping[str, Scored] = field(default_factory=dict)
    metrics: Mapping[str, Faithfulness] = field(default_factory=dict)
    random: float | None = None
    value: float | None = None
    measured: float | None = None

    @property
    def right(self) -> bool | None:
        """Whether the prediction is correct; None if there is no label."""
        known = self.label is not None and self.predicted is not None
        return self.label == self.predicted if known else None


@dataclass(frozen=True)
class ReportData:
    """Everything that :func:`write_report` puts on the page.

    Attributes
    ----------
    title
        The title of the page.
    rows
        The table: explainers, and the random selection and the optimum if they were computed.
    graphs
        The gallery.
    sparsity
        The share of nodes, or players, that are not selected.
    class_names
        Names of the classes; numbers by default.
    accuracy
        The share of the graphs that the model predicts correctly.
    facts
        What to list about the ``"model"``, the ``"dataset"`` and the ``"settings"``, by name.
    versions
        Versions of packages, by name; by default those that are installed.
    seed
        The seed of everything random.
    task
        ``"classification"``, ``"multilabel"`` or ``"regression"``.
    explained
        The name of the label or output that a multilabel or regression report is about, or of the
        one class that is explained in all graphs.
    players
        What is selected and removed, in the plural.
    error
        Of a regression: the root mean squared error of the graphs with a true value.
    summaries
        By explainer, what drives the model over all graphs, from
        :func:`gstarx_bench.summary.summarize`.
    """

    title: str
    rows: tuple[ExplainerRow, ...]
    graphs: tuple[Explained, ...]
    sparsity: float
    class_names: tuple[str, ...] = ()
    accuracy: float | None = None
    facts: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    seed: int | None = None
    players: str = "nodes"
    task: str = "classification"
    explained: str = ""
    error: float | None = None
    summaries: Mapping[str, Sequence[SummaryRow]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        one_of(self.task, TASKS, name="task")
        if not self.rows:
            raise ValueError("rows must hold at least one explainer (got none)")
        names = [row.name for row in self.rows]
        if len(set(names)) != len(names):
            raise ValueError(f"rows must have different names (got {', '.join(names)})")
        sizes = {len(row.graphs) for row in self.rows}
        if len(sizes) != 1:
            raise ValueError(f"rows must be about the same graphs (got {sorted(sizes)} of them)")

    def class_name(self, number: int) -> str:
        """The name of a class; of several labels, whether the explained one is predicted."""
        if self.task == "multilabel":
            return ("no", "yes")[number]
        return class_name(number, self.class_names)

    def of_kind(self, kind: str) -> list[ExplainerRow]:
        """The rows of one kind, the highest H-fidelity first."""
        rows = [row for row in self.rows if row.kind == kind]
        return sorted(rows, key=lambda row: -row.mean.harmonic_fidelity)


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
        For each graph the fields of :class:`gstarx_bench.report.Explained` about its prediction.
    """

    task: str
    explained: str
    graphs: list[dict[str, Any]]

    @property
    def accuracy(self) -> float | None:
        """The share of right predictions among the graphs with a label."""
        right = [g["predicted"] == g["label"] for g in self.graphs if g.get("label") is not None]
        return float(np.mean(right)) if right else None

    @property
    def error(self) -> float | None:
        """Of a regression: the root mean squared error of the graphs with a true value."""
        known = [graph for graph in self.graphs if graph.get("measured") is not None]
        errors = [graph["value"] - graph["measured"] for graph in known]
        return float(np.sqrt(np.mean(np.square(errors)))) if errors else None


def predictions_of(
    pipeline: Pipeline,
    graphs: Sequence[Data],
    labels: Sequence[float] | None,
    output_names: Sequence[str],
) -> Predictions:
    """The predictions of a pipeline's model; raises if it has several outputs and no target."""
    task = pipeline.model_task
    outputs = [task.output(pipeline.model, graph) for graph in graphs]
    values = [pipeline.probabilities(output) for output in outputs]
    count = outputs[0].shape[1]
    if task.mode == "multiclass_classification" or (task.mode != "regression" and count == 1):
        classes = [label_of(g) for g in graphs] if labels is None else [int(y) for y in labels]
        of_classes = [
            {"predicted": int(np.argmax(row)), "probability": max(row), "label": label}
            for row, label in zip(values, classes, strict=True)
        ]
        return Predictions("classification", "", of_classes)
    if pipeline.target is None and count > 1:
        raise ValueError(
            f"the model has {count} outputs: choose the one to report on with target=0..{count - 1}"
        )
    column = pipeline.target or 0
    measured = [measured_of(g, column) for g in graphs] if labels is None else list(labels)
    pairs = list(zip((row[column] for row in values), measured, strict=True))
    name = output_name(column, output_names, count)
    if task.mode == "regression":
        return Predictions("regression", name, [{"value": v, "measured": y} for v, y in pairs])
    of_label = [
        {"predicted": int(p > 0.5), "probability": p, "label": None if y is None else int(y)}
        for p, y in pairs
    ]
    return Predictions("multilabel", name, of_label)


def measured_of(graph: Data, column: int) -> float | None:
    """The true value of one of the targets of a graph, if it was measured."""
    y = graph.get("y")
    if y is None or y.numel() <= column:
        return None
    value = float(y.reshape(-1)[column])
    return None if math.isnan(value) else value
