"""Explaining nodes of one graph on the command line."""

from __future__ import annotations

from pathlib import Path
from typing import IO, Any

from gstarx.cli.console import (
    CommandError,
    WrongUse,
    as_json,
    note,
    out,
    print_json,
    show_progress,
    write,
)
from gstarx.cli.inputs import InputSelection
from gstarx.cli.subjects import Subject, positions

#: Players of a node that are printed for the terminal.
_SHOWN = 8


def parse_nodes(text: str, size: int) -> list[int]:
    """Numbers of nodes: ``37,1792-1796``, or ``@file`` with a list of them.

    >>> parse_nodes("7,3-5", 10)
    [7, 3, 4, 5]
    """
    listed = text
    if text.startswith("@"):
        try:
            listed = ",".join(Path(text[1:]).read_text(encoding="utf-8").split())
        except (OSError, UnicodeDecodeError) as error:
            raise CommandError(f"--nodes: {text[1:]} cannot be read: {error}") from error
    parts = [part for part in listed.split(",") if part]
    if not parts:
        raise WrongUse(f"--nodes takes numbers such as 37,52-60 (got {text!r})")
    return [node for part in parts for node in positions(part.strip(), size)]


def nodes_of_one_graph(subjects: list[Subject], nodes: str) -> list[int]:
    """The requested nodes of the one graph that is selected."""
    if len(subjects) != 1:
        raise WrongUse(f"--nodes is for nodes of one graph (got {len(subjects)} graphs)")
    return parse_nodes(nodes, int(subjects[0].data.num_nodes or 0))


def explain_selected_nodes(
    inputs: InputSelection,
    nodes: str,
    explainer: str,
    options: dict[str, Any],
    *,
    node_type: str | None,
    stream: IO[str] | None,
    output: Path | None,
    draw: Path | None,
) -> int:
    """Explain nodes of the one graph that is selected, print and write them; count failures."""
    from gstarx.explainers import FailedExplanation, explain_nodes
    from gstarx.gnn import hetero_of

    if explainer != "gstarx":
        raise WrongUse(f"--nodes is for --explainer gstarx (got {explainer!r})")
    if draw is not None or (output is not None and output.suffix != ".json"):
        raise WrongUse("explanations of nodes are printed, or written with --output file.json")
    subjects = inputs.subjects(of_nodes=True)
    listed = nodes_of_one_graph(subjects, nodes)
    (subject,) = subjects
    typed = hetero_of(subject.data)
    made = explain_nodes(
        *(inputs.network.model, subject.data if typed is None else typed.data, listed),
        node_type=node_type,
        mode=inputs.network.task,
        return_type=inputs.return_type,
        target=_targets(inputs, subjects),
        seed=inputs.seed,
        on_error="record",
        progress=show_progress(),
        **options,
    )
    records = []
    for node, explanation in zip(listed, made, strict=True):
        about = {"graph": subject.name, "dataset": subject.dataset, "node": node}
        if isinstance(explanation, FailedExplanation):
            outcome: dict[str, Any] = {"error": str(explanation.error)}
        else:
            outcome = {"explanation": explanation.to_dict(all_outputs=False)}
        how = {"explainer": explainer, "options": options, "seed": inputs.seed}
        records.append({**about, **how, **outcome})
        if stream is None:
            _show(node, explanation)
    if stream is not None:
        print_json(records, stream)
    if output is not None:
        write(output, as_json(records) + "\n")
        note(f"wrote {output}")
    return sum("error" in record for record in records)


def _targets(inputs: InputSelection, subjects: list[Subject]) -> int | list[int] | None:
    """The requested classes, None for the predicted one of every node."""
    if inputs.target is None:
        return None
    targets = [target for target in inputs.targets(subjects) if target is not None]
    return targets[0] if len(targets) == 1 else targets


def _show(node: int, explanation: Any) -> None:
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
