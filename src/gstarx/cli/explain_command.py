"""``gstarx explain``: graphs, or nodes of one graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from gstarx._internal.processes import one_thread
from gstarx.cli.console import (
    CommandError,
    WrongUse,
    as_json,
    note,
    only_json,
    out,
    progress,
    show_progress,
    uninterrupted,
    writable,
)
from gstarx.cli.inputs import InputSelection
from gstarx.cli.options import SPARSITY, examples

if TYPE_CHECKING:
    from gstarx.cli.inputs import Subject
    from gstarx.cli.records import Printed, Record, Recorder

EXAMPLES = examples(
    "gstarx explain nitro 15 44",
    'gstarx explain --smiles "CC(=O)Nc1ccc([N+](=O)[O-])cc1" --draw molecule.svg',
    'gstarx explain --sentence "a gripping and wonderfully acted film" --json',
    "gstarx explain nitro --split test --limit 20 -e subgraphx --json > scores.json",
    "gstarx explain --file molecules.csv --weights mine.safetensors --output scores.csv",
    "gstarx explain --file graphs.pt --model my_code:make_model --weights weights.pt",
)
#: Players of a node that are printed for the terminal.
_SHOWN = 8


class Printer:
    """Prints explanations as they finish: one as an object, several as a list."""

    def __init__(self, stream: IO[str] | None, output: Path | None) -> None:
        self.stream = stream
        self.output = output
        self.several = True
        self.printed: list[Printed] = []

    def __enter__(self) -> None:
        """Begin the list."""

    def add(
        self,
        content: dict[str, Any],
        record: Record | None = None,
        show: Callable[[], None] = lambda: None,
    ) -> None:
        """Print one more, as JSON if there is a stream for it, else as it shows itself."""
        with uninterrupted():
            if self.stream is None:
                show()
            else:
                start = "" if not self.several else ",\n" if self.printed else "[\n"
                self.stream.write(start + as_json(content, self.stream))
                self.stream.flush()
            self.printed.append((content, record))

    def __exit__(self, *_: object) -> None:
        """Close the list, so that it is valid JSON even after an interruption, and write it."""
        from gstarx.cli.records import write_records

        with uninterrupted():
            if self.stream is not None:
                if self.several:
                    self.stream.write("\n]" if self.printed else "[]")
                if self.several or self.printed:
                    self.stream.write("\n")
                self.stream.flush()
            if self.output is not None and self.printed:
                contents = [content for content, _ in self.printed]
                write_records(self.output, contents if self.several else contents[0], self.printed)


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
    from gstarx.cli.records import Recorder

    writable(output, ".json", ".csv", ".parquet", ".sdf")
    writable(draw, ".svg", ".png", ".pdf")
    known = getattr(ctx.obj, "explainers", {})
    options = parse_options(option or (), [explainer], known, share, players, baseline)
    inputs.check()  # before torch is loaded, which takes seconds
    _check_nodes(nodes, node_type, explainer, baseline, draw, output)
    with one_thread(), only_json(as_json) as stream:
        printer = Printer(stream if as_json else None, output)
        if nodes is not None:
            failed = _explain_nodes(inputs, nodes, node_type, options[explainer], printer)
        else:
            subjects = inputs.subjects()
            methods = create_explainers(inputs, options, baseline=baseline)
            recorder = Recorder(inputs, sparsity, players, methods, options)
            failed = _explain_graphs(recorder, subjects, draw, printer)
    if failed:
        raise typer.Exit(1)
    inputs.finish()


def _check_nodes(
    nodes: str | None,
    node_type: str | None,
    explainer: str,
    baseline: str | float | None,
    draw: Path | None,
    output: Path | None,
) -> None:
    """Raise where options do not belong to graphs, or not to nodes."""
    if nodes is None:
        if node_type is not None:
            raise WrongUse(f"--node-type is for --nodes (got --node-type {node_type})")
        return
    if baseline is not None:
        raise WrongUse(
            "--baseline is for whole graphs: with --nodes, write --option baseline=singletons, "
            f"or a number (got --baseline {baseline})"
        )
    if explainer != "gstarx":
        raise WrongUse(f"--nodes is for --explainer gstarx (got {explainer!r})")
    if draw is not None or (output is not None and output.suffix != ".json"):
        raise WrongUse("explanations of nodes are printed, or written with --output file.json")


def _explain_graphs(
    recorder: Recorder, subjects: Sequence[Subject], draw: Path | None, printer: Printer
) -> int:
    """Explain, print and draw one graph after another; return how many failed."""
    from gstarx.cli.records import failed, picture_path, skipped_row

    (explainer,) = recorder.methods
    skipped, targets = recorder.inputs.skipped, recorder.inputs.targets(subjects)
    tasks = [(subject, target) for subject in subjects for target in targets]
    printer.several = len(tasks) + len(skipped) > 1
    errors = 0
    try:
        with printer, progress("explaining", len(tasks)) as step:
            for row in skipped:
                printer.add(skipped_row(row))
            for subject, target in tasks:
                try:
                    record = recorder.record(explainer, subject, target)
                except CommandError:
                    raise
                except Exception as error:
                    printer.add(failed(subject, error))
                    errors += 1
                else:
                    content = record.as_dict()
                    printer.add(content, record, record.show)
                    if draw is not None:
                        named: Mapping[str, Any] | None = content if len(targets) > 1 else None
                        several = printer.several
                        record.draw(picture_path(draw, subject, several=several, target=named))
                step(subject.name)
    except KeyboardInterrupt:
        note(f"stopped: {len(printer.printed)} of {len(tasks)} graphs are finished")
        raise
    return errors


def _explain_nodes(
    inputs: InputSelection,
    nodes: str,
    node_type: str | None,
    options: Mapping[str, Any],
    printer: Printer,
) -> int:
    """Explain and print nodes of the one graph that is selected; return how many failed."""
    from gstarx.explainers import FailedExplanation, GStarX, explain_nodes, with_objects
    from gstarx.gnn import Task, hetero_of

    subject, listed = inputs.nodes(nodes)
    typed = hetero_of(subject.data)
    # by default, the predicted class of every node
    asked = [] if inputs.target is None else inputs.targets([subject])
    targets = [target for target in asked if target is not None]
    arranged = with_objects(GStarX, options)
    made = explain_nodes(
        *(inputs.network.model, subject.data if typed is None else typed.data, listed),
        task=Task(inputs.network.task, return_type=inputs.return_type, node_type=node_type),
        target=targets[0] if len(targets) == 1 else targets or None,
        seed=inputs.seed,
        on_error="record",
        progress=show_progress(),
        **arranged,
    )
    about = {"graph": subject.name, "dataset": subject.dataset}
    how = {"explainer": "gstarx", "options": options, "seed": inputs.seed}
    failures = 0
    with printer:
        for node, one in zip(listed, made, strict=True):
            failed = isinstance(one, FailedExplanation)
            found = {"error": str(one.error)} if failed else {"explanation": _of_a_node(one)}
            printer.add(
                {**about, "node": node, **how, **found}, show=partial(_show_node, node, one)
            )
            failures += failed
    return failures


def _of_a_node(explanation: Any) -> dict[str, Any]:
    """The explanation without the outputs of other nodes, which are the same for each of many."""
    made: dict[str, Any] = explanation.to_dict(all_outputs=False)
    return made


def _show_node(node: int, explanation: Any) -> None:
    """Print the strongest players of a node."""
    from gstarx.explainers import FailedExplanation
    from gstarx.explanation import HeteroExplanation

    console = out()
    if isinstance(explanation, FailedExplanation):
        console.print(f"node {node}: {explanation.error}", markup=False)
        return
    view = explanation.view if isinstance(explanation, HeteroExplanation) else explanation
    console.print(
        f"node {node}: class {view.explained[0]}, {len(view.players):,} players, "
        f"{view.evaluations:,} evaluations, {'exact' if view.exact else 'estimated'}",
        style="bold",
    )
    scores = view.scores.reshape(len(view.players), -1)
    order = scores.abs().amax(dim=1).argsort(descending=True, stable=True)[:_SHOWN]
    for at in order.tolist():
        shown = ", ".join(f"{score:+.4g}" for score in scores[at].tolist())
        console.print(f"  {view.name_of(view.players[at])}: {shown}", markup=False)
