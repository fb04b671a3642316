"""One explanation, printed as JSON or as a table."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table
from rich.text import Text

from gstarx._internal import rounding
from gstarx._internal.messages import escaped
from gstarx.cli.console import note, out, table
from gstarx.cli.inputs import InputSelection
from gstarx.cli.methods import OptionsOf
from gstarx.cli.subjects import Subject, node_labels

if TYPE_CHECKING:
    from gstarx.datasets import UnreadableRow
    from gstarx.explainers import NodeExplainer
    from gstarx.explanation import Explanation
    from gstarx.metrics import Faithfulness

#: Width of the longest bar in characters, and the colors of positive and negative scores, which
#: color-blind readers can tell apart.
_WIDTH = 20
_FOR, _AGAINST = "dark_orange", "dodger_blue1"


@dataclass(frozen=True)
class Record:
    """An explanation of a graph, with its metrics and settings.

    ``outputs`` are probabilities of all classes or targets, or the values of a regression;
    ``metrics`` are ``None`` where nothing is known of the scale of a regression.
    """

    inputs: InputSelection
    subject: Subject
    explainer: str
    explanation: Explanation
    selected: list[int]
    metrics: Faithfulness | None
    outputs: list[float]
    sparsity: float
    options: dict[str, Any] = field(default_factory=dict)

    @property
    def target(self) -> int:
        """The class or output that was explained."""
        return int(self.explanation.target_class)

    def output_name(self, number: int | None) -> str | None:
        """What a class or target is called, where that is known."""
        names = self.inputs.output_names
        return names[number] if number is not None and 0 <= number < len(names) else None

    def as_dict(self) -> dict[str, Any]:
        """What ``--json`` prints."""
        from gstarx.evaluation import recorded

        record = recorded(self.explanation)
        data = self.subject.data
        return {
            "graph": self.subject.name,
            "smiles": data.get("smiles") or None,
            "dataset": self.subject.dataset,
            "position": self.subject.position,
            "prediction": self._prediction(),
            "target": record["target"],
            "target_name": self.output_name(record["target"]),
            "label": self._label(),
            "nodes": self._nodes(),
            "groups": self._groups(),
            "player_kind": self.explanation.player_kind,
            "players": self._players(),
            "metrics": None if self.metrics is None else asdict(self.metrics),
            "worth": self._worth("worth"),
            "component_worth": self._worth("component_worth"),
            "baseline": self._baseline(),
            "baseline_source": self.explanation.get("baseline_source"),
            "at_stake": self._at_stake,
            "sparsity": self.sparsity,
            "explainer": self.explainer,
            "options": self.options,
            "exact": record["exact"],
            "estimator": record["estimator"],
            "evaluations": record["evaluations"],
            "cpu_seconds": record["cpu_seconds"],
            "seed": self.inputs.seed,
        }

    @property
    def _at_stake(self) -> float | None:
        """What the scores could explain, if that is known."""
        from gstarx.drawing import at_stake_in

        return at_stake_in(self.explanation)

    def _worth(self, name: str) -> float | None:
        worth = self.explanation.get(name)
        return None if worth is None or worth.numel() != 1 else float(worth)

    def _baseline(self) -> float | None:
        baseline = self.explanation.get("baseline")
        return None if baseline is None or len(baseline) != 1 else float(baseline[0])

    def _prediction(self) -> dict[str, Any]:
        names = list(self.inputs.output_names) or None
        if self.inputs.network.task == "regression":
            return {"values": self.outputs, "names": names}
        if self.inputs.network.task == "multilabel":
            return {"probabilities": self.outputs, "names": names}
        predicted = int(np.argmax(self.outputs))
        name = self.output_name(predicted)
        return {"class": predicted, "name": name, "probabilities": self.outputs}

    def _label(self) -> int | float | None:
        from gstarx.datasets import label_of

        if self.inputs.network.task not in ("multilabel", "regression"):
            return label_of(self.subject.data)
        y = self.subject.data.get("y")
        if y is None or y.numel() <= self.target or bool(y.reshape(-1)[self.target].isnan()):
            return None
        return float(y.reshape(-1)[self.target])

    def _nodes(self) -> list[dict[str, Any]]:
        from gstarx.evaluation import recorded

        labels = node_labels(self.subject.data)
        record = recorded(self.explanation)
        scores, errors = record["scores"], record["std_errors"]
        selected_nodes = set(self.explanation.nodes_of(self.selected).tolist())
        return [
            {
                "index": node,
                "label": labels[node],
                "score": None if scores is None else float(scores[node]),
                "std_error": None if errors is None else float(errors[node]),
                "selected": node in selected_nodes,
            }
            for node in range(len(labels))
        ]

    def _players(self) -> list[dict[str, Any]]:
        """Players that are not nodes, with their scores."""
        explanation = self.explanation
        if explanation.player_kind == "nodes":
            return []
        errors, chosen = explanation.std_errors.tolist(), set(self.selected)
        labels = node_labels(self.subject.data)
        return [
            {
                "index": player,
                "name": _player_name(explanation, player, labels),
                "nodes": explanation.nodes_of([player]).tolist(),
                "score": float(score),
                "std_error": None if np.isnan(errors[player]) else errors[player],
                "selected": player in chosen,
            }
            for player, score in enumerate(explanation.scores.tolist())
        ]

    def _groups(self) -> list[dict[str, Any]]:
        """Functional groups of a molecule with the sums of their atoms' scores."""
        from gstarx.drawing import group_scores

        scores = self.explanation.node_scores
        molecule = isinstance(self.subject.data.get("smiles"), str)
        if scores is None or not molecule or self.explanation.player_kind != "nodes":
            return []
        return [
            {"name": group.name, "atoms": list(group.atoms), "score": group.score}
            for group in group_scores(scores.numpy(), self.subject.data)
        ]

    def show(self) -> None:
        """Print the explanation for the terminal."""
        console, explanation = out(), self.explanation
        title = Text(escaped(self.subject.name), style="bold")
        smiles = self.subject.data.get("smiles")
        if isinstance(smiles, str) and smiles != self.subject.name:
            title.append(f"  {escaped(smiles)}", style="dim")
        console.print(title, soft_wrap=True)
        console.print(self._shown_prediction())
        kind = explanation.player_kind
        if kind == "nodes":
            console.print(_node_table(self._nodes(), self._at_stake))
        else:
            console.print(_player_table(self._players(), self._at_stake))
        if (nothing := self._faint()) is not None:
            console.print(nothing)
        selected = counted(len(self.selected), kind.removesuffix("s").replace("_", " "))
        if self.metrics is None:
            console.print(f"* {selected} selected at sparsity {self.sparsity:g}")
        else:
            shown = ", ".join(
                f"{name} {getattr(self.metrics, key):.4f}"
                for name, key in (
                    ("fidelity", "fidelity"),
                    ("inverse fidelity", "inverse_fidelity"),
                    ("H-fidelity", "harmonic_fidelity"),
                )
            )
            console.print(f"* {selected} selected at sparsity {self.sparsity:g}: {shown}")
        if groups := self._groups():
            console.print("Functional groups, as sums of their atoms' scores:")
            console.print(_group_table(groups))
        worth, parts = self._worth("worth"), self._worth("component_worth")
        scores = self.explanation.scores
        total = 0.0 if scores is None else float(scores.sum())
        # values that ignore edges sum to the worth of the whole graph
        if (
            worth is not None
            and parts is not None
            and abs(worth - parts) > 1e-4 > abs(total - parts)
        ):
            console.print(
                f"The graph is not connected: the scores sum to {parts:.4f}, the total worth of "
                f"its components, and the graph as a whole is worth {worth:.4f}"
            )
        details = [self.explainer]
        if explanation.exact is not None:
            details.append("exact" if explanation.exact else "estimated")
        if explanation.evaluations is not None:
            details.append(f"{counted(explanation.evaluations, 'coalition')} evaluated")
        details.append(f"{explanation.seconds:.2f} s of CPU")
        console.print(", ".join(details) + "\n", style="dim")

    def _faint(self) -> str | None:
        """That nothing stands out, if so."""
        from gstarx.drawing import faint_words, is_faint

        scores, at_stake = self.explanation.scores, self._at_stake
        largest = 0.0 if scores is None or not len(scores) else float(scores.abs().max())
        noun = self.explanation.player_kind.removesuffix("s").replace("_", " ")
        return faint_words(largest, at_stake, noun) if is_faint(largest, at_stake) else None

    def _shown_prediction(self) -> str:
        label, target = self._label(), self.target
        if self.inputs.network.task == "regression":
            name = self.output_name(target) or f"output {target}"
            text = f"Predicted: {name} = {self.outputs[target]:.4g}"
            if label is not None:
                text += f"; its label is {label:.4g}"
            return text
        if self.inputs.network.task == "multilabel":
            name = self.output_name(target) or f"target {target}"
            text = f"Predicted: {name}: {rounding.yes_or_no(self.outputs[target], explained=True)}"
            if label is not None:
                text += f"; its label is {'yes' if label > 0.5 else 'no'}"
            return text

        def named(number: int) -> str:
            name = self.output_name(number)
            return f"class {number}" + (f" ({name})" if name and name != str(number) else "")

        predicted = int(np.argmax(self.outputs))
        text = f"Predicted: {named(predicted)}, probability {self.outputs[predicted]:.3f}"
        if label is not None and label != predicted:
            text += f"; its label is {named(int(label))}"
        if target != predicted:
            text += f". Explained: {named(target)}"
        return text


@dataclass(frozen=True)
class Recorder:
    """How explanations are computed and evaluated, the same for all graphs of a command."""

    inputs: InputSelection
    sparsity: float
    players: str | None = None

    def record(
        self,
        name: str,
        explainer: NodeExplainer,
        subject: Subject,
        options: OptionsOf,
        target: int | None,
    ) -> Record:
        """Explain a graph.

        A graph of a dataset gets the same random numbers here and in a run with the same seed.
        """
        from gstarx.metrics import selection_size

        pipeline = replace(self.inputs.pipeline(target), players=self.players or "nodes")
        data = subject.data
        explanation = pipeline.explain(explainer, data, subject.position)
        metrics = None
        # of few nodes, one is selected: an empty selection says nothing
        size = selection_size(len(explanation.players), self.sparsity, of_nodes=False)
        if pipeline.mode == "regression" and pipeline.reference is None:
            selected = explanation.select(size=size)
        else:
            evaluated = pipeline.evaluate(data, explanation, sizes=[size])["top"]
            selected, metrics = evaluated.selections[0], evaluated.metrics[0]
        return Record(
            inputs=self.inputs,
            subject=subject,
            explainer=name,
            explanation=explanation,
            selected=selected.tolist(),
            metrics=metrics,
            outputs=pipeline.probabilities(explanation.prediction),
            sparsity=self.sparsity,
            options=dict(options[name]),
        )


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "node"), counted(1200, "coalition")
    ('1 node', '1,200 coalitions')
    """
    return f"{number:,} {noun}" + ("" if number == 1 else "s")


def failed(subject: Subject, error: Exception) -> dict[str, Any]:
    """The entry for a graph that could not be explained; the error also goes to stderr."""
    message = f"{type(error).__name__}: {error}"
    note(f"error: {subject.name}: {message}")
    return {"graph": subject.name, "position": subject.position, "error": message}


def skipped_row(row: UnreadableRow) -> dict[str, Any]:
    """What ``--json`` prints of a row that could not be read."""
    return {
        "graph": row.name or row.text,
        "line": row.line,
        "smiles": row.text,
        "error": f"skipped: {row.reason}",
    }


def _scale(scored: list[dict[str, Any]], at_stake: float | None) -> float:
    """The score of the longest bar: the largest one, unless nothing stands out."""
    from gstarx.drawing import color_limit

    scores = [one["score"] for one in scored if one["score"] is not None]
    return color_limit([np.array(scores, dtype=np.float64)], None, at_stake)


def _node_table(nodes: list[dict[str, Any]], at_stake: float | None) -> Table:
    scale = _scale(nodes, at_stake)
    errors = any(node["std_error"] for node in nodes)
    shown = table("", "node", "label", "score", *(["±"] if errors else []), "", left=0)
    shown.columns[2].justify = shown.columns[-1].justify = "left"
    for node in nodes:
        score, error = node["score"], node["std_error"]
        shown.add_row(
            "*" if node["selected"] else "",
            str(node["index"]),
            node["label"],
            "" if score is None else f"{score:+.4f}",
            *([f"{error or 0:.4f}"] if errors else []),
            "" if score is None else _bar(score / scale),
            style="bold" if node["selected"] else "",
        )
    return shown


def _player_name(explanation: Explanation, player: int, labels: list[str]) -> str:
    if explanation.player_edges is None:
        return str(explanation.name_of(player))
    from gstarx.players import parallel_mark

    edges = explanation.player_edges.numpy()
    a, b = edges[player].tolist()
    return f"{labels[a]} {a} - {labels[b]} {b}{parallel_mark(edges, player)}"


def _player_table(players: list[dict[str, Any]], at_stake: float | None) -> Table:
    """Players that are not nodes, highest score first."""
    scale = _scale(players, at_stake)
    errors = any(player["std_error"] for player in players)
    shown = table("", "player", "score", *(["±"] if errors else []), "", left=2)
    shown.columns[-1].justify = "left"
    for player in sorted(players, key=lambda one: -one["score"]):
        shown.add_row(
            "*" if player["selected"] else "",
            player["name"],
            f"{player['score']:+.4f}",
            *([f"{player['std_error'] or 0:.4f}"] if errors else []),
            _bar(player["score"] / scale),
            style="bold" if player["selected"] else "",
        )
    return shown


def _group_table(groups: list[dict[str, Any]]) -> Table:
    shown = table("", "group", "score", "nodes", left=2)
    shown.columns[3].justify = "left"
    for group in groups:
        nodes = " ".join(map(str, group["atoms"]))
        shown.add_row("", group["name"], f"{group['score']:+.4f}", nodes)
    return shown


def _bar(fraction: float) -> Text:
    """A bar from the middle, to the right if positive, to the left if negative."""
    length = round(_WIDTH / 2 * abs(fraction))
    half = _WIDTH // 2
    if fraction < 0:
        return Text(" " * (half - length) + "█" * length, style=_AGAINST)
    return Text(" " * half + "█" * length, style=_FOR)
