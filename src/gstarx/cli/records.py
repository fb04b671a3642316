"""One explanation: printed as JSON or as a table, drawn, and written to files."""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table
from rich.text import Text

from gstarx._internal import rounding
from gstarx._internal.files import atomic_path
from gstarx._internal.imports import require
from gstarx._internal.messages import encodable, escaped
from gstarx.cli.console import CommandError, as_csv, as_json, note, out, table, write
from gstarx.cli.inputs import InputSelection, Subject, as_slug, node_labels
from gstarx.cli.methods import OptionsOf

if TYPE_CHECKING:
    from gstarx.datasets import UnreadableRow
    from gstarx.explainers import NodeExplainer
    from gstarx.explanation import Explanation
    from gstarx.metrics import Faithfulness

_NODE_COLUMNS = (
    *("graph", "smiles", "position", "explainer", "target", "target_name", "prediction"),
    *("node", "label", "score", "std_error", "selected", "error"),
)
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
        from gstarx.gnn import hetero_of

        data, target, typed = self.subject.data, self.target, hetero_of(self.subject.data)
        return {
            "graph": self.subject.name,
            "smiles": data.get("smiles") or None,
            "dataset": self.subject.dataset,
            "position": self.subject.position,
            "labels": node_labels(data),
            "prediction": self._prediction(),
            "target": target,
            "target_name": self.output_name(target),
            "label": self._label(),
            "selected": [typed.pair(node) for node in self.selected] if typed else self.selected,
            "sparsity": self.sparsity,
            "metrics": None if self.metrics is None else asdict(self.metrics),
            "groups": self._groups(),
            "explainer": self.explainer,
            "options": self.options,
            "seed": self.inputs.seed,
            "explanation": self.explanation.to_dict(),
        }

    @property
    def noun(self) -> str:
        """What one player is called."""
        return str(self.explanation.player_kind).removesuffix("s").replace("_", " ")

    @property
    def at_stake(self) -> float | None:
        """What the scores could explain, if that is known."""
        from gstarx.drawing import at_stake_in

        return at_stake_in(self.explanation)

    def _worth(self, name: str) -> float | None:
        worth = self.explanation.get(name)
        return None if worth is None or worth.numel() != 1 else float(worth)

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

    def nodes(self) -> list[dict[str, Any]]:
        """A row for every node of the graph, as tables have it."""
        from gstarx.evaluation import recorded

        labels, record = node_labels(self.subject.data), recorded(self.explanation)
        unknown = [None] * len(labels)
        scores, errors = record["scores"] or unknown, record["std_errors"] or unknown
        selected = set(self.explanation.nodes_of(self.selected).tolist())
        return [
            {"label": label, "score": score, "std_error": error, "selected": node in selected}
            for node, (label, score, error) in enumerate(zip(labels, scores, errors, strict=True))
        ]

    def _players(self) -> list[dict[str, Any]]:
        """A row for every player, if they are not nodes."""
        explanation, labels = self.explanation, node_labels(self.subject.data)
        selected = set(self.selected)
        rows = zip(explanation.scores.tolist(), explanation.std_errors.tolist(), strict=True)
        return [
            {
                "label": _player_name(explanation, player, labels),
                "score": score,
                "std_error": None if np.isnan(error) else error,
                "selected": player in selected,
            }
            for player, (score, error) in enumerate(rows)
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
        if explanation.player_kind == "nodes":
            console.print(_score_table(self.nodes(), self.at_stake, numbered=True))
        else:
            rows = sorted(self._players(), key=lambda row: -row["score"])
            console.print(_score_table(rows, self.at_stake, numbered=False))
        if (nothing := self._faint()) is not None:
            console.print(nothing)
        selected = f"* {counted(len(self.selected), self.noun)} selected"
        selected += f" at sparsity {self.sparsity:g}"
        if self.metrics is not None:
            selected += f": fidelity {self.metrics.fidelity:.4f}"
            selected += f", inverse fidelity {self.metrics.inverse_fidelity:.4f}"
            selected += f", H-fidelity {self.metrics.harmonic_fidelity:.4f}"
        console.print(selected)
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

    def draw(self, path: Path) -> None:
        """Draw the explanation."""
        from gstarx import drawing

        names = self.inputs.output_names
        drawing.draw(
            self.subject.data,
            self.explanation,
            sparsity=self.sparsity,
            title=f"{self.explainer}: {self.subject.name}",
            names=names,
        ).save(path)
        note(f"drew {path}")

    def _faint(self) -> str | None:
        """That nothing stands out, if so."""
        from gstarx.drawing import faint_words, is_faint

        scores, at_stake = self.explanation.scores, self.at_stake
        largest = 0.0 if scores is None or not len(scores) else float(scores.abs().max())
        return faint_words(largest, at_stake, self.noun) if is_faint(largest, at_stake) else None

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


#: What was printed of a graph, with the record unless it failed.
Printed = tuple[dict[str, Any], Record | None]


@dataclass(frozen=True)
class Recorder:
    """How explanations are computed and evaluated, the same for all graphs of a command."""

    inputs: InputSelection
    sparsity: float
    players: str | None
    methods: Mapping[str, NodeExplainer]
    options: OptionsOf

    def record(self, name: str, subject: Subject, target: int | None) -> Record:
        """Explain a graph by one of the methods.

        A graph of a dataset gets the same random numbers here and in a run with the same seed.
        """
        from gstarx.metrics import selection_size

        pipeline = replace(self.inputs.pipeline(target), players=self.players or "nodes")
        data = subject.data
        explanation = pipeline.explain(self.methods[name], data, subject.position)
        metrics = None
        # of few nodes, one is selected: an empty selection says nothing
        size = selection_size(len(explanation.players), self.sparsity, of_nodes=False)
        if pipeline.model_task.mode == "regression" and pipeline.reference is None:
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
            options=dict(self.options[name]),
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


def picture_path(
    path: Path, subject: Subject, *, several: bool, target: Mapping[str, Any] | None = None
) -> Path:
    """Where the picture of a graph goes, with the ``target`` of its record if there are several.

    >>> from torch_geometric.data import Data
    >>> picture_path(Path("a.svg"), Subject("nitro 15", Data(), 15, "nitro"), several=True).name
    'a-nitro_15.svg'
    """
    slug = subject.slug
    if target is not None:  # the number tells apart names that a file cannot
        slug += f"-{target['target']}" + as_slug(f"_{target['target_name'] or ''}").rstrip("_")
    return path.with_name(f"{path.stem}-{slug}{path.suffix}") if several else path


def write_records(path: Path, content: Any, records: Sequence[Printed]) -> None:
    """Write all that was printed, in the format that the file's suffix names.

    JSON holds everything. CSV and Parquet have a row for every node, and a row with the error for
    what could not be read or explained. SDF has a record for every molecule, with the scores as
    atom properties.
    """
    if path.suffix == ".json":
        write(path, as_json(content) + "\n")
    elif path.suffix == ".csv":
        write(path, as_csv(_NODE_COLUMNS, _node_rows(records)))
    elif path.suffix == ".parquet":
        _write_parquet(path, list(_node_rows(records)))
    else:
        _write_sdf(path, records)
    note(f"wrote {path}")


def _node_rows(records: Sequence[Printed]) -> Iterator[dict[str, Any]]:
    for content, record in records:
        common = {name: content.get(name) for name in ("graph", "smiles", "position", "explainer")}
        if record is None:
            yield {**common, "error": content["error"]}
            continue
        common |= {"target": content["target"], "target_name": content["target_name"]}
        common["prediction"] = explained_output(content)
        for node, row in enumerate(record.nodes()):
            yield {**common, "node": node, **row}


def explained_output(record: Mapping[str, Any]) -> float | None:
    """The probability of the class, or the value of the target, that a record explains."""
    prediction = record["prediction"]
    outputs = prediction.get("values") or prediction.get("probabilities") or []
    target = record["target"]
    return float(outputs[target]) if target is not None and target < len(outputs) else None


def _write_parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    arrow = require("pyarrow", extra="runs")
    parquet = require("pyarrow.parquet", extra="runs")
    kinds = dict.fromkeys(_NODE_COLUMNS, arrow.string())
    kinds |= dict.fromkeys(("position", "target", "node"), arrow.int64())
    kinds |= dict.fromkeys(("prediction", "score", "std_error"), arrow.float64())
    kinds["selected"] = arrow.bool_()
    schema = arrow.schema(list(kinds.items()))
    complete_rows = [{name: encodable(row.get(name)) for name in _NODE_COLUMNS} for row in rows]
    with atomic_path(path) as temporary:
        parquet.write_table(arrow.Table.from_pylist(complete_rows, schema=schema), temporary)


def _write_sdf(path: Path, records: Sequence[Printed]) -> None:
    chem = require("rdkit.Chem", extra="molecules")
    depict = require("rdkit.Chem.rdDepictor", extra="molecules")
    blocks = []
    for content, record in records:
        if record is None or not content["smiles"]:
            continue
        nodes = record.nodes()
        molecule = chem.MolFromSmiles(content["smiles"])
        depict.Compute2DCoords(molecule)
        molecule.SetProp("_Name", str(content["graph"]))
        for name, value in _molecule_tags(content, nodes, record.at_stake).items():
            molecule.SetProp(name, value)
        for name in ("score", "std_error"):
            numbers = [node[name] for node in nodes]
            if all(number is not None for number in numbers):
                for atom, number in zip(molecule.GetAtoms(), numbers, strict=True):
                    atom.SetDoubleProp(name, float(number))
                chem.CreateAtomDoublePropertyList(molecule, name)
        stream = io.StringIO()
        with chem.SDWriter(stream) as writer:
            writer.write(molecule)
        blocks.append(stream.getvalue())
    if not blocks:
        raise CommandError(f"{path} is not written: none of the graphs is a molecule")
    write(path, "".join(blocks))


def _molecule_tags(
    content: Mapping[str, Any], nodes: list[dict[str, Any]], at_stake: float | None
) -> dict[str, str]:
    """The data items of a molecule; the highlights are what drawing programs take."""
    from gstarx.drawing import color_limit, score_color

    scores = [node["score"] or 0.0 for node in nodes]
    limit = color_limit([np.array(scores)], None, at_stake)
    tags = {
        "smiles": str(content["smiles"]),
        "explainer": str(content["explainer"]),
        "target": str(content["target_name"] or content["target"]),
        "prediction": str(explained_output(content)),
        "highlight_atoms": " ".join(str(at) for at, node in enumerate(nodes) if node["selected"]),
        "highlight_colors": " ".join(score_color(score, limit) for score in scores),
    }
    if content["metrics"] is not None:
        tags["H-fidelity"] = f"{content['metrics']['harmonic_fidelity']:.4f}"
    return tags


def _score_table(rows: list[dict[str, Any]], at_stake: float | None, *, numbered: bool) -> Table:
    """Nodes by their numbers, or other players by their names."""
    from gstarx.drawing import color_limit

    known = [row["score"] for row in rows if row["score"] is not None]
    # of the longest bar: the largest score, unless nothing stands out
    scale = color_limit([np.array(known, dtype=np.float64)], None, at_stake)
    errors = any(row["std_error"] for row in rows)
    names = ("node", "label") if numbered else ("player",)
    shown = table("", *names, "score", *(["±"] if errors else []), "", left=len(names))
    if numbered:
        shown.columns[1].justify, shown.columns[2].justify = "right", "left"
    shown.columns[-1].justify = "left"
    for at, row in enumerate(rows):
        score, error = row["score"], row["std_error"]
        shown.add_row(
            "*" if row["selected"] else "",
            *([str(at)] if numbered else []),
            row["label"],
            "" if score is None else f"{score:+.4f}",
            *([f"{error or 0:.4f}"] if errors else []),
            "" if score is None else _bar(score / scale),
            style="bold" if row["selected"] else "",
        )
    return shown


def _player_name(explanation: Explanation, player: int, labels: list[str]) -> str:
    if explanation.player_edges is None:
        return str(explanation.name_of(player))
    from gstarx.players import parallel_mark

    edges = explanation.player_edges.numpy()
    a, b = edges[player].tolist()
    return f"{labels[a]} {a} - {labels[b]} {b}{parallel_mark(edges, player)}"


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
