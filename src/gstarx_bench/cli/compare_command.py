"""``gstarx compare``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from statistics import stdev
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gstarx._internal.processes import one_thread
from gstarx.cli.console import as_json as json_text
from gstarx.cli.console import (
    note,
    only_json,
    out,
    print_json,
    progress,
    uninterrupted,
    writable,
    write,
)
from gstarx.cli.inputs import InputSelection, Subject
from gstarx.cli.options import SPARSITY, examples

if TYPE_CHECKING:
    from gstarx.cli.records import Record, Recorder
    from gstarx.metrics import Faithfulness

EXAMPLES = examples(
    "gstarx compare nitro 15 -e gstarx,subgraphx,gnnexplainer --draw side-by-side.svg",
    "gstarx compare nitro --split test --limit 10 -e gstarx -e random --json",
    'gstarx compare --smiles "CC(=O)Nc1ccc([N+](=O)[O-])cc1" -o gstarx.budget=2000',
)


def compare(
    ctx: typer.Context,
    inputs: InputSelection,
    explainer: Annotated[list[str], "explainers"] = ["gstarx", "banzhaf", "subgraphx", "random"],  # noqa: B006
    option: list[str] | None = None,
    sparsity: float = SPARSITY,
    baseline: str | None = None,
    share: str | None = None,
    players: str | None = None,
    draw: Path | None = None,
    output: Annotated[Path | None, "json file"] = None,
    as_json: bool = False,
) -> None:
    """Compare explainers on the same graphs by the same metrics.

    The table shows means over the graphs, plus or minus two standard errors. For a whole dataset,
    use [b]gstarx evaluate[/b], which runs on all cores and keeps its results.
    """
    from gstarx.cli.methods import create_explainers, parse_options
    from gstarx.cli.records import Recorder

    writable(output, ".json")
    writable(draw, ".svg", ".png", ".pdf")
    known = getattr(ctx.obj, "explainers", {})
    options = parse_options(option or (), explainer, known, share, players, baseline)
    inputs.check()  # before torch is loaded, which takes seconds
    with one_thread(), only_json(as_json) as stream:
        subjects = inputs.subjects()
        methods = create_explainers(inputs, options, baseline=baseline)
        inputs.check_reference()
        recorder = Recorder(inputs, sparsity, players, methods, options)
        tasks = [(s, target) for target in inputs.targets(subjects) for s in subjects]
        done: list[dict[str, Record]] = []
        try:
            for records in _records(recorder, tasks):
                done.append(records)
                _draw(draw, records, several=len(tasks) > 1)
        except KeyboardInterrupt:
            note(f"stopped: {len(done)} of {len(tasks)} graphs are finished")
            raise
        finally:
            with uninterrupted():
                content = _content(list(methods), done, recorder)
                if done and as_json:
                    print_json(content, stream)
                elif done:
                    _show(content)
                if done and output is not None:
                    write(output, json_text(content) + "\n")
    inputs.finish()


def _records(
    recorder: Recorder, tasks: Sequence[tuple[Subject, int | None]]
) -> Iterator[dict[str, Record]]:
    """The records of each graph in turn, one per explainer."""
    with progress("explaining", len(tasks) * len(recorder.methods)) as step:
        for subject, target in tasks:
            records = {}
            for name in recorder.methods:
                records[name] = recorder.record(name, subject, target)
                step(f"{subject.name} by {name}")
            yield records


def _content(
    names: Sequence[str], done: Sequence[Mapping[str, Record]], recorder: Recorder
) -> dict[str, Any]:
    """What is printed: the means over the graphs, and every graph."""
    from gstarx.cli.records import skipped_row
    from gstarx.metrics import average

    rows = []
    for name in names if done else ():
        of_explainer = [records[name] for records in done]
        counted = [
            r.explanation.evaluations for r in of_explainer if r.explanation.evaluations is not None
        ]
        rows.append(
            {
                "explainer": name,
                "metrics": asdict(average(r.metrics for r in of_explainer if r.metrics)),
                "std_errors": _std_errors([r.metrics for r in of_explainer if r.metrics]),
                "evaluations": sum(counted) / len(counted) if counted else None,
                "cpu_seconds": sum(record.explanation.seconds for record in of_explainer)
                / len(of_explainer),
                "graphs": [record.as_dict() for record in of_explainer],
            }
        )
    return {
        "network": recorder.inputs.network.name,
        "graphs": [next(iter(records.values())).subject.name for records in done],
        "skipped": [skipped_row(row) for row in recorder.inputs.skipped],
        "sparsity": recorder.sparsity,
        "seed": recorder.inputs.seed,
        "explainers": rows,
    }


def _std_errors(results: Sequence[Faithfulness]) -> dict[str, float] | None:
    """Standard errors of the means over graphs whose metrics are defined, of at least two."""
    defined = [asdict(result) for result in results if result.undefined < 1]
    if len(defined) < 2:
        return None
    from gstarx_bench.cli.run_tables import SHOWN

    root = math.sqrt(len(defined))
    return {name: stdev(result[name] for result in defined) / root for name in SHOWN}


def _shown(means: Mapping[str, float], errors: Mapping[str, float] | None) -> list[str]:
    """Means, and two standard errors on either side if they are known."""
    from gstarx_bench.cli.run_tables import metric_cells

    if errors is None:
        return metric_cells(means)
    return [f"{means[name]:.3f} ± {2 * error:.3f}" for name, error in errors.items()]


def _show(content: Mapping[str, Any]) -> None:
    from gstarx_bench.cli.run_tables import metric_table

    count = len(content["graphs"])
    subject = content["graphs"][0] if count == 1 else f"means over {count} graphs"
    console = out()
    console.print(
        f"{content['network']}, {subject}, sparsity {content['sparsity']:g}\n", style="bold"
    )
    shown = metric_table("explainer", after=["sparsity", "evaluations", "CPU s"])
    best = max(row["metrics"]["harmonic_fidelity"] for row in content["explainers"])
    for row in content["explainers"]:
        metrics = row["metrics"]
        counted = row["evaluations"]
        shown.add_row(
            row["explainer"],
            *_shown(row["metrics"], row["std_errors"]),
            f"{metrics['sparsity']:.3f}",
            "" if counted is None else f"{counted:,.0f}",
            f"{row['cpu_seconds']:.2f}",
            style="bold" if metrics["harmonic_fidelity"] == best else "",
        )
    console.print(shown)


def _draw(path: Path | None, records: Mapping[str, Record], *, several: bool) -> None:
    if path is None:
        return
    from gstarx import drawing
    from gstarx.cli.records import picture_path

    first = next(iter(records.values()))
    target = picture_path(path, first.subject, several=several)
    drawing.compare(
        first.subject.data,
        {name: record.explanation for name, record in records.items()},
        metrics={name: r.metrics for name, r in records.items() if r.metrics is not None},
        sparsity=first.sparsity,
        title=first.subject.name,
        names=first.inputs.output_names,
    ).save(target)
    note(f"drew {target}")
