"""``gstarx explain``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import typer

from gstarx._internal.one_thread import one_thread
from gstarx.cli.console import (
    CommandError,
    WrongUse,
    note,
    only_json,
    progress,
    uninterrupted,
    writable,
)
from gstarx.cli.console import as_json as json_text
from gstarx.cli.inputs import InputSelection, takes_inputs
from gstarx.cli.options import (
    SPARSITY,
    AsJson,
    Baseline,
    Draw,
    Explainer,
    Nodes,
    NodeType,
    Options,
    Players,
    ResultsFile,
    Share,
    Sparsity,
    examples,
)
from gstarx.cli.subjects import Subject

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


class Printer:
    """Prints explanations as they finish: one as an object, several as a list."""

    def __init__(self, stream: IO[str] | None, *, draw: Path | None, several: bool) -> None:
        self.stream = stream
        self.draw = draw
        self.several = several
        self.printed: list[dict[str, Any]] = []

    def add(self, content: dict[str, Any], record: Record | None = None) -> None:
        """Print one more, as JSON if there is a stream for it, and draw it if requested."""
        with uninterrupted():
            if self.stream is not None:
                start = "" if not self.several else ",\n" if self.printed else "[\n"
                self.stream.write(start + json_text(content))
                self.stream.flush()
            elif record is not None:
                record.show()
            self.printed.append(content)
        if record is not None and self.draw is not None:
            _draw(record, picture_path(self.draw, record.subject, several=self.several))

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
        """All that was printed."""
        return self.printed if self.several else next(iter(self.printed), None)


@takes_inputs
def explain(
    ctx: typer.Context,
    inputs: InputSelection,
    explainer: Explainer = "gstarx",
    option: Options = None,
    sparsity: Sparsity = SPARSITY,
    baseline: Baseline = None,
    share: Share = None,
    nodes: Nodes = None,
    node_type: NodeType = None,
    players: Players = None,
    draw: Draw = None,
    output: ResultsFile = None,
    as_json: AsJson = False,
) -> None:
    """Explain predictions: which nodes they depend on.

    Graphs come from a dataset, or are your own molecules, sentences, tables or files. After Ctrl-C
    the finished explanations are printed and written. With [b]--json[/b] one graph is an object,
    several are a list.
    """
    from gstarx.cli.exports import SUFFIXES, write_records
    from gstarx.cli.methods import create_explainers, parse_options
    from gstarx.cli.records import Recorder, skipped_row

    writable(output, *SUFFIXES)
    writable(draw, ".svg", ".png")
    known = getattr(ctx.obj, "explainers", {})
    options = parse_options(option or (), [explainer], known, share, players)
    inputs.check()  # before torch is loaded, which takes seconds
    if node_type is not None and nodes is None:
        raise WrongUse(f"--node-type is for --nodes (got --node-type {node_type})")
    if nodes is not None:
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
        printer = Printer(stream if as_json else None, draw=draw, several=several)
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
                    write_records(output, printer.content)
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
                step()
    except KeyboardInterrupt:
        note(f"stopped: {len(printer.printed)} of {len(tasks)} graphs are finished")
        raise
    return errors


def picture_path(path: Path, subject: Subject, *, several: bool) -> Path:
    """Where the picture of a graph goes.

    >>> from torch_geometric.data import Data
    >>> picture_path(Path("a.svg"), Subject("nitro 15", Data(), 15, "nitro"), several=True).name
    'a-nitro_15.svg'
    """
    return path.with_name(f"{path.stem}-{subject.slug}{path.suffix}") if several else path


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
