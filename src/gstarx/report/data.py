"""What the report shows, whoever computed it: this room, the command, or a stored run."""

from __future__ import annotations

import platform
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

import numpy as np
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx._version import __version__
from gstarx.metrics import Faithfulness, FidelityCurve, average

KINDS = ("explainer", "random", "optimum")
_PACKAGES = ("numpy", "torch", "torch_geometric", "rdkit")


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that numbers and pictures depend on."""
    # the package need not be installed to run, so that its own word counts
    found = {"gstarx": __version__, "python": platform.python_version()}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found


@dataclass(frozen=True)
class ExplainerRow:
    """One line of the table: an explainer, or what it is held against, over all graphs.

    Attributes
    ----------
    name
        What it is called.
    graphs
        The metrics of every graph, at the sparsity of the report.
    kind
        ``"explainer"``, ``"random"`` for the random selection, or ``"optimum"`` for the best
        selection that a search found.
    curve
        The metrics at many sparsities.
    seconds
        CPU seconds for a graph, on average.
    evaluations
        Parts of a graph that went through the model, on average.
    auroc
        How well scores find the nodes that are known to matter, where that is known.
    note
        What has to be said of it.
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
        if self.kind not in KINDS:
            valid = ", ".join(map(repr, KINDS))
            raise ValueError(f"kind must be one of {valid} (got {self.kind!r})")
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
        What it is called; shown as text whatever it holds.
    data
        The graph, drawn as :func:`gstarx.drawing.draw` would.
    predicted
        The class that the model predicts.
    probability
        How sure it is of it.
    label
        The true class, where it is known.
    scores
        By explainer, a score per node.
    selected
        By explainer, the nodes it selects.
    metrics
        By explainer, how true these are.
    """

    name: str
    data: Data
    predicted: int
    probability: float
    label: int | None = None
    scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    selected: Mapping[str, NDArray[np.int64]] = field(default_factory=dict)
    metrics: Mapping[str, Faithfulness] = field(default_factory=dict)

    @property
    def right(self) -> bool | None:
        """Whether the prediction is the label; None where there is no label."""
        return None if self.label is None else self.label == self.predicted


@dataclass(frozen=True)
class ReportData:
    """Everything that :func:`write_report` puts on the page.

    Attributes
    ----------
    title
        Of the page.
    rows
        The table: explainers, and where they were computed the random selection and the optimum.
    graphs
        The gallery.
    sparsity
        The share of nodes that is left out when nodes are selected.
    class_names
        What each class stands for; numbers by default.
    accuracy
        The share of the graphs that the model predicts right.
    model, dataset, settings
        Facts to list, by name.
    versions
        Versions of packages, by name; by default those that are installed.
    seed
        Of everything random.
    """

    title: str
    rows: tuple[ExplainerRow, ...]
    graphs: tuple[Explained, ...]
    sparsity: float
    class_names: tuple[str, ...] = ()
    accuracy: float | None = None
    model: Mapping[str, str] = field(default_factory=dict)
    dataset: Mapping[str, str] = field(default_factory=dict)
    settings: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    seed: int | None = None

    def __post_init__(self) -> None:
        if not self.rows:
            raise ValueError("rows must hold at least one explainer (got none)")
        names = [row.name for row in self.rows]
        if len(set(names)) != len(names):
            raise ValueError(f"rows must have names of their own (got {', '.join(names)})")
        sizes = {len(row.graphs) for row in self.rows}
        if len(sizes) != 1:
            raise ValueError(f"rows must be about the same graphs (got {sorted(sizes)} of them)")

    def class_name(self, number: int) -> str:
        """What a class stands for."""
        return self.class_names[number] if number < len(self.class_names) else f"class {number}"

    def of_kind(self, kind: str) -> list[ExplainerRow]:
        """The rows of one kind, the highest H-fidelity first."""
        found = [row for row in self.rows if row.kind == kind]
        return sorted(found, key=lambda row: -row.mean.harmonic_fidelity)
