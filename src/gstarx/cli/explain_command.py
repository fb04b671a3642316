"""``gstarx explain``, and explanations as files: JSON, tables of nodes, or SDF."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from gstarx._internal.files import atomic_path
from gstarx._internal.messages import encodable
from gstarx._internal.optional import require
from gstarx._internal.processes import one_thread
from gstarx.cli.console import (
    CommandError,
    WrongUse,
    as_csv,
    as_json,
    note,
    only_json,
    progress,
    uninterrupted,
    writable,
    write,
)
from gstarx.cli.inputs import InputSelection
from gstarx.cli.options import SPARSITY, examples
from gstarx.cli.subjects import Subject, as_slug

if TYPE_CHECKING:
    from gstarx.cli.records import Record

EXAMPLES = examples(
    "gstarx explain nitro 15 44",
    'gstarx explain --smiles "CC(=O)Nc1ccc([N+](=O)[O-])cc1" --draw molecule.svg',
    'gstarx explain --sentence "a gripping and wonderfully acted film" --json',
    "gstarx explain nitro --split test --limit 20 -e subgraphx --json > scores.json",
    "gstarx explain --file molecules.csv --weights mine.safetensors --output scores.csv",
    "gstarx explain --file graphs.pt --model my_code:make_model --weights weights.pt",
)
SUFFIXES = (".json", ".csv", ".parquet", ".sdf")
_NODE_COLUMNS = (
    *("graph", "smiles", "position", "explainer", "target", "target_name", "prediction"),
    *("node", "label", "score", "std_error", "selected", "error"),
)


class Printer:
    """Prints explanations as they finish: one as an object, several as a list."""

    def __init__(
        self, stream: IO[str] | None, *, draw: Path | None, several: bool, targets: int = 1
    ) -> None:
        self.stream = stream
        self.draw = draw
        self.several = several
        self.targets = targets
        self.printed: list[tuple[dict[str, Any], Record | None]] = []

    def add(self, content: dict[str, Any], record: Record | None = None) -> None:
        """Print one more, as JSON if there is a stream for it, and draw it if requested."""
        with uninterrupted():
            if self.stream is not None:
                start = "" if not self.several else ",\n" if self.printed else "[\n"
                self.stream.write(start + as_json(content, self.stream))
                self.stream.flush()
            elif record is not None:
                record.show()
            self.printed.append((content, record))
        if record is not None and self.draw is not None:
            target = content if self.targets > 1 else None
            path = picture_path(self.draw, record.subject, several=self.several, target=target)
            _draw(record, path)

    def close(self) -> None:
        """Close the list, so that it is valid JSON even after an interruption."""
        if self.stream is not None:
            if self.several:
                self.stream.write("\n]" if self.printed else "[]")
            if self.several or self.printed:
                self.stream.write("\n")
            self.stream.flush()

    @property
    def content(self) -> Any:
        """All that was printed as JSON."""
        contents = [content for content, _ in self.printed]
        return contents if self.several else contents[0]


def explain(
    ctx: typer.Context,
    inputs: InputSelection,
    explainer: str = "gstarx",
    option: list[str] | None = None,
    sparsity: float = SPARSITY,
    baseline: str | None = None,
    share: str | None = None,
    nodes: str | None = None,
    node_type: str | None = None,
    players: str | None = None,
    draw: Path | None = None,
    output: Annotated[Path | None, "results file"] = None,
    as_json: bool = False,
) -> None:
    """Explain predictions: which nodes they depend on.

    Graphs come from a dataset, or are your own molecules, sentences, tables or files. After Ctrl-C
    the finished explanations are printed and written. With [b]--json[/b] one graph is an object,
    several are a list.
    """
    from gstarx.cli.methods import create_explainers, parse_options
    from gstarx.cli.records import Recorder, skipped_row

    writable(output, *SUFFIXES)
    writable(draw, ".svg", ".png", ".pdf")
    known = getattr(ctx.obj, "explainers", {})
    options = parse_options(option or (), [explainer], known, share, players, baseline)
    inputs.check()  # before torch is loaded, which takes seconds
    if node_type is not None and nodes is None:
        raise WrongUse(f"--node-type is for --nodes (got --node-type {node_type})")
    if nodes is not None:
        if baseline is not None:
            raise WrongUse(
                "--baseline is for whole graphs: with --nodes, write --option baseline=singletons, "
                f"or a number (got --baseline {baseline})"
            )
        from gstarx.cli.node_explanations import explain_selected_nodes

        with one_thread(), only_json(as_json) as stream:
            failures = explain_selected_nodes(
                inputs,
                nodes,
                explainer,
                options[explainer],
                node_type=node_type,
                stream=stream if as_json else None,
                output=output,
                draw=draw,
            )
        raise typer.Exit(1 if failures else 0)
    with one_thread(), only_json(as_json) as stream:
        subjects = inputs.subjects()
        (method,) = create_explainers(inputs, options, baseline=baseline).values()
        recorder = Recorder(inputs, sparsity, players)
        targets = inputs.targets(subjects)
        tasks = [(subject, target) for subject in subjects for target in targets]
        several = len(tasks) + len(inputs.skipped) > 1
        printer = Printer(
            stream if as_json else None, draw=draw, several=several, targets=len(targets)
        )
        try:
            for row in inputs.skipped:
                printer.add(skipped_row(row))
            errors = _explain_all(
                tasks,
                printer,
                lambda subject, target: recorder.record(
                    explainer, method, subject, options, target
                ),
            )
        finally:
            with uninterrupted():
                printer.close()
                if output is not None and printer.printed:
                    write_records(output, printer)
    if errors:
        raise typer.Exit(1)
    inputs.finish()


def _explain_all(
    tasks: Sequence[tuple[Subject, int | None]],
    printer: Printer,
    explained: Callable[[Subject, int | None], Record],
) -> int:
    """Explain and print one graph after another; return how many failed."""
    from gstarx.cli.records import failed

    errors = 0
    try:
        with progress("explaining", len(tasks)) as step:
            for subject, target in tasks:
                try:
                    record = explained(subject, target)
                except CommandError:
                    raise
                except Exception as error:
                    printer.add(failed(subject, error))
                    errors += 1
                else:
                    printer.add(record.as_dict(), record)
                step(subject.name)
    except KeyboardInterrupt:
        note(f"stopped: {len(printer.printed)} of {len(tasks)} graphs are finished")
        raise
    return errors


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


def _draw(record: Record, path: Path) -> None:
    from gstarx import drawing

    names = record.inputs.output_names
    drawing.draw(
        record.subject.data,
        record.explanation,
        sparsity=record.sparsity,
        title=f"{record.explainer}: {record.subject.name}",
        class_names=names,
        target_names=names,
    ).save(path)
    note(f"drew {path}")


def write_records(path: Path, printer: Printer) -> None:
    """Write what was printed, in the format that the file's suffix names.

    JSON holds everything. CSV and Parquet have a row for every node, and a row with the error for
    what could not be read or explained. SDF has a record for every molecule, with the scores as
    atom properties.
    """
    if path.suffix == ".json":
        write(path, as_json(printer.content) + "\n")
    elif path.suffix == ".csv":
        write(path, as_csv(_NODE_COLUMNS, _node_rows(printer)))
    elif path.suffix == ".parquet":
        _write_parquet(path, list(_node_rows(printer)))
    else:
        _write_sdf(path, printer)
    note(f"wrote {path}")


def _node_rows(printer: Printer) -> Iterator[dict[str, Any]]:
    for content, record in printer.printed:
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


def _write_sdf(path: Path, printer: Printer) -> None:
    chem = require("rdkit.Chem", extra="molecules")
    depict = require("rdkit.Chem.rdDepictor", extra="molecules")
    blocks = []
    for content, record in printer.printed:
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
    import numpy as np

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
