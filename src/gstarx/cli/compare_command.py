"""``gstarx compare``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gstarx._internal.one_thread import one_thread
from gstarx.cli.console import as_json as json_text
from gstarx.cli.console import (
    note,
    only_json,
    out,
    print_json,
    progress,
    table,
    uninterrupted,
    writable,
    write,
)
from gstarx.cli.graphs import Subject
from gstarx.cli.options import (
    SPARSITY,
    AsJson,
    Baseline,
    Data,
    Draw,
    Explainers,
    Files,
    JsonFile,
    Limit,
    MaybeDataset,
    MaybeSplit,
    Model,
    Options,
    Positions,
    ReturnType,
    Seed,
    Sentences,
    Share,
    Smiles,
    Sparsity,
    Target,
    Weights,
    examples,
)

if TYPE_CHECKING:
    from gstarx.cli.records import Judge, Record
    from gstarx.explainers import NodeExplainer
    from gstarx.report import ReportData

EXAMPLES = examples(
    "gstarx compare nitro 15 -e gstarx,subgraphx,gnnexplainer --draw side-by-side.svg",
    "gstarx compare nitro --split test --limit 10 -e gstarx -e random --json",
    'gstarx compare --smiles "CC(=O)Nc1ccc([N+](=O)[O-])cc1" -o gstarx.budget=2000',
)


def compare(
    ctx: typer.Context,
    dataset: MaybeDataset = None,
    graphs: Positions = None,
    smiles: Smiles = None,
    sentence: Sentences = None,
    file: Files = None,
    split: MaybeSplit = None,
    limit: Limit = None,
    data: Data = None,
    model: Model = None,
    weights: Weights = None,
    return_type: ReturnType = "raw",
    explainer: Explainers = ["gstarx", "subgraphx", "random"],  # noqa: B006
    option: Options = None,
    target: Target = None,
    sparsity: Sparsity = SPARSITY,
    baseline: Baseline = None,
    share: Share = None,
    seed: Seed = 0,
    draw: Draw = None,
    output: JsonFile = None,
    as_json: AsJson = False,
) -> None:
    """Compare explainers on the same graphs by the same metrics.

    The table holds means over the graphs. For a whole dataset there is [b]gstarx evaluate[/b],
    which uses all cores and keeps what it has done.
    """
    from gstarx.cli.graphs import InputSelection
    from gstarx.cli.methods import create_explainers, parse_options
    from gstarx.cli.records import Judge

    writable(output, ".json")
    writable(draw, ".svg", ".png")
    options = parse_options(option or (), explainer, getattr(ctx.obj, "explainers", {}), share)
    asked = InputSelection(
        dataset, graphs, smiles, sentence, file, split, limit, data, model, weights
    )
    asked.check()  # before torch is loaded, which takes seconds
    with one_thread(), only_json(as_json) as stream:
        subjects = asked.subjects()
        methods = create_explainers(asked, options, baseline=baseline, seed=seed)
        judge = Judge(asked, sparsity, seed, target, return_type)
        done: list[dict[str, Record]] = []
        try:
            for records in _records(judge, methods, subjects, options):
                done.append(records)
                _draw(draw, records, several=len(subjects) > 1)
        except KeyboardInterrupt:
            note(f"stopped: {len(done)} of {len(subjects)} graphs are finished")
            raise
        finally:
            with uninterrupted():
                content = _content(list(methods), done, judge)
                if done and as_json:
                    print_json(content, stream)
                elif done:
                    _show(content)
                if done and output is not None:
                    write(output, json_text(content) + "\n")


def _records(
    judge: Judge,
    methods: Mapping[str, NodeExplainer],
    subjects: Sequence[Subject],
    options: Mapping[str, Mapping[str, Any]],
) -> Iterator[dict[str, Record]]:
    """Graph after graph, explained by all."""
    with progress("explaining", len(subjects) * len(methods)) as step:
        for subject in subjects:
            records = {}
            for name, method in methods.items():
                records[name] = judge.record(name, method, subject, options)
                step()
            yield records


def _content(
    names: Sequence[str], done: Sequence[Mapping[str, Record]], judge: Judge
) -> dict[str, Any]:
    """What is printed: the means over the graphs, and every graph."""
    from gstarx.metrics import average

    rows = []
    for name in names if done else ():
        own = [records[name] for records in done]
        counted = [r.explanation.evaluations for r in own if r.explanation.evaluations is not None]
        rows.append(
            {
                "explainer": name,
                "metrics": asdict(average(record.metrics for record in own)),
                "evaluations": sum(counted) / len(counted) if counted else None,
                "cpu_seconds": sum(record.explanation.seconds for record in own) / len(own),
                "graphs": [record.as_dict() for record in own],
            }
        )
    return {
        "network": judge.asked.network.name,
        "graphs": [next(iter(records.values())).subject.name for records in done],
        "sparsity": judge.sparsity,
        "seed": judge.seed,
        "explainers": rows,
    }


def _show(content: Mapping[str, Any]) -> None:
    count = len(content["graphs"])
    what = content["graphs"][0] if count == 1 else f"means over {count} graphs"
    console = out()
    console.print(f"{content['network']}, {what}, sparsity {content['sparsity']:g}\n", style="bold")
    shown = table(
        "explainer", "fidelity ↑", "inverse ↓", "H-fidelity ↑", "sparsity", "evaluations", "CPU s"
    )
    best = max(row["metrics"]["harmonic_fidelity"] for row in content["explainers"])
    for row in content["explainers"]:
        found = row["metrics"]
        counted = row["evaluations"]
        shown.add_row(
            row["explainer"],
            f"{found['fidelity']:.4f}",
            f"{found['inverse_fidelity']:.4f}",
            f"{found['harmonic_fidelity']:.4f}",
            f"{found['sparsity']:.3f}",
            "" if counted is None else f"{counted:,.0f}",
            f"{row['cpu_seconds']:.2f}",
            style="bold" if found["harmonic_fidelity"] == best else "",
        )
    console.print(shown)


def show_rows(found: ReportData) -> None:
    """The table of a report: means of explainers, of random orders and of the best found."""
    from gstarx.metrics import average

    shown = table("", "fidelity ↑", "inverse ↓", "H-fidelity ↑", title=found.title)
    for row in found.rows:
        means = average(row.graphs)
        numbers = (means.fidelity, means.inverse_fidelity, means.harmonic_fidelity)
        shown.add_row(row.name, *(f"{number:.4f}" for number in numbers))
    out().print(shown)
    out().print()


def _draw(path: Path | None, records: Mapping[str, Record], *, several: bool) -> None:
    if path is None:
        return
    from gstarx import drawing
    from gstarx.cli.explain_command import picture_path

    first = next(iter(records.values()))
    target = picture_path(path, first.subject, several=several)
    drawing.compare(
        first.subject.data,
        {name: record.explanation for name, record in records.items()},
        metrics={name: record.metrics for name, record in records.items()},
        sparsity=first.sparsity,
        title=first.subject.name,
    ).save(target)
    note(f"drew {target}")
