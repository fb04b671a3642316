"""One explanation, printed as JSON or as a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from rich.text import Text

from gstarx.cli.console import CommandError, note, out, table
from gstarx.cli.graphs import InputSelection, Subject, node_labels
from gstarx.cli.methods import OptionsOf

if TYPE_CHECKING:
    from gstarx.explainers import Explanation, NodeExplainer
    from gstarx.metrics import Faithfulness

#: Width of the longest bar in characters, and the colors of positive and negative scores, which
#: color-blind readers can tell apart.
_WIDTH = 20
_FOR, _AGAINST = "dark_orange", "dodger_blue1"


@dataclass(frozen=True)
class Record:
    """An explanation of a graph, with its metrics and settings."""

    subject: Subject
    explainer: str
    explanation: Explanation
    selected: list[int]
    metrics: Faithfulness
    probabilities: list[float]
    class_names: tuple[str, ...]
    sparsity: float
    seed: int
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def drawn_scores(self) -> NDArray[np.float64]:
        """The scores; for a search, which has none, ones for the nodes it selects."""
        if self.explanation.node_scores is not None:
            scores: NDArray[np.float64] = self.explanation.node_scores.numpy()
            return scores
        marked = np.zeros(int(self.subject.data.num_nodes or 0))
        marked[self.selected] = 1.0
        return marked

    @property
    def predicted(self) -> int:
        """The class with the highest probability."""
        return int(np.argmax(self.probabilities))

    def class_name(self, number: int | None) -> str | None:
        """What a class stands for, where that is known."""
        if number is None or not 0 <= number < len(self.class_names):
            return None
        return self.class_names[number]

    def as_dict(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        from gstarx.datasets import label_of
        from gstarx.evaluation import recorded

        kept = recorded(self.explanation)
        return {
            "graph": self.subject.name,
            "dataset": self.subject.dataset,
            "position": self.subject.position,
            "prediction": {
                "class": self.predicted,
                "name": self.class_name(self.predicted),
                "probabilities": self.probabilities,
            },
            "target": kept["target"],
            "label": label_of(self.subject.data),
            "nodes": self._nodes(),
            "metrics": asdict(self.metrics),
            "sparsity": self.sparsity,
            "explainer": self.explainer,
            "options": self.options,
            "exact": kept["exact"],
            "estimator": kept["estimator"],
            "evaluations": kept["evaluations"],
            "cpu_seconds": kept["cpu_seconds"],
            "seed": self.seed,
        }

    def _nodes(self) -> list[dict[str, Any]]:
        from gstarx.evaluation import recorded

        labels = node_labels(self.subject.data)
        kept = recorded(self.explanation)
        scores, errors = kept["scores"], kept["std_errors"]
        selected = set(self.selected)
        return [
            {
                "index": node,
                "label": labels[node],
                "score": None if scores is None else float(scores[node]),
                "std_error": None if errors is None else float(errors[node]),
                "selected": node in selected,
            }
            for node in range(len(labels))
        ]

    def show(self) -> None:
        """Print the explanation as a table."""
        console, explanation = out(), self.explanation
        title = Text(self.subject.name, style="bold")
        if self.subject.dataset and isinstance(self.subject.data.get("smiles"), str):
            title.append(f"  {self.subject.data.smiles}", style="dim")
        console.print(title, soft_wrap=True)
        console.print(self._prediction())
        console.print(_node_table(self._nodes()))
        kept = counted(len(self.selected), "node")
        shown = ", ".join(
            f"{name} {getattr(self.metrics, key):.3f}"
            for name, key in (
                ("fidelity", "fidelity"),
                ("inverse fidelity", "inverse_fidelity"),
                ("H-fidelity", "harmonic_fidelity"),
            )
        )
        console.print(f"* {kept} kept at sparsity {self.sparsity:g}: {shown}")
        how = [self.explainer]
        if explanation.exact is not None:
            how.append("exact" if explanation.exact else "estimated")
        if explanation.evaluations is not None:
            how.append(f"{counted(explanation.evaluations, 'part')} of the graph evaluated")
        how.append(f"{explanation.seconds:.2f} s of CPU")
        console.print(", ".join(how) + "\n", style="dim")

    def _prediction(self) -> Text:
        from gstarx.datasets import label_of

        def named(number: int) -> str:
            name = self.class_name(number)
            return f"class {number}" + (f" ({name})" if name else "")

        text = Text(f"Predicted: {named(self.predicted)}, ")
        text.append(f"probability {self.probabilities[self.predicted]:.3f}")
        label = label_of(self.subject.data)
        if label is not None and label != self.predicted:
            text.append(f"; its label is {named(label)}")
        if self.explanation.target_class != self.predicted:
            text.append(f". Explained: {named(self.explanation.target_class)}")
        return text


@dataclass(frozen=True)
class Judge:
    """How explanations are made and evaluated, the same for all graphs of a command."""

    input_selection: InputSelection
    sparsity: float
    seed: int
    target: int | None
    return_type: str

    def record(
        self, name: str, explainer: NodeExplainer, subject: Subject, options: OptionsOf
    ) -> Record:
        """Explain a graph.

        A graph of a dataset gets the same random numbers here and in a run with the same seed.
        """
        from gstarx.evaluation import Pipeline

        model, data = self.input_selection.network.model, subject.data
        pipeline = Pipeline(model, seed=self.seed, target=self.target, return_type=self.return_type)
        if self.target is not None:
            self._check_target(model, data)
        explanation = pipeline.explain(explainer, data, subject.position)
        evaluated = pipeline.evaluate(data, explanation, sparsities=[self.sparsity])["top"]
        return Record(
            subject=subject,
            explainer=name,
            explanation=explanation,
            selected=evaluated.selections[0].tolist(),
            metrics=evaluated.metrics[0],
            probabilities=pipeline.probabilities(explanation.prediction),
            class_names=self.input_selection.class_names,
            sparsity=self.sparsity,
            seed=self.seed,
            options=dict(options[name]),
        )

    def _check_target(self, model: Any, data: Any) -> None:
        from gstarx.gnn import ModelTask

        classes = ModelTask(return_type=self.return_type).output(model, data).shape[1]
        if self.target is not None and self.target >= classes:
            raise CommandError(f"--target must be a class in 0..{classes - 1} (got {self.target})")


def counted(number: int, what: str) -> str:
    """A number with its noun.

    >>> counted(1, "node"), counted(1200, "part")
    ('1 node', '1,200 parts')
    """
    return f"{number:,} {what}" + ("" if number == 1 else "s")


def failed(subject: Subject, error: Exception) -> dict[str, Any]:
    """The entry for a graph that could not be explained; the error also goes to stderr."""
    message = f"{type(error).__name__}: {error}"
    note(f"error: {subject.name}: {message}")
    return {"graph": subject.name, "position": subject.position, "error": message}


def _node_table(nodes: list[dict[str, Any]]) -> Table:
    scores = [node["score"] for node in nodes if node["score"] is not None]
    scale = max((abs(score) for score in scores), default=0.0) or 1.0
    errors = any(node["std_error"] for node in nodes)
    shown = table("", "node", "label", "score", *(["±"] if errors else []), "", left=0)
    shown.columns[2].justify = shown.columns[-1].justify = "left"
    for node in nodes:
        score, error = node["score"], node["std_error"]
        shown.add_row(
            "*" if node["selected"] else "",
            str(node["index"]),
            Text(node["label"]),
            "" if score is None else f"{score:+.4f}",
            *([f"{error or 0:.4f}"] if errors else []),
            "" if score is None else _bar(score / scale),
            style="bold" if node["selected"] else "",
        )
    return shown


def _bar(share: float) -> Text:
    """A bar from the middle: to the right if the share is positive, else to the left."""
    length = round(_WIDTH / 2 * abs(share))
    half = _WIDTH // 2
    if share < 0:
        return Text(" " * (half - length) + "█" * length, style=_AGAINST)
    return Text(" " * half + "█" * length, style=_FOR)
