"""``gstarx evaluate``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gstarx.cli.console import WrongUse, note, only_json, out, print_json, show_progress
from gstarx.cli.inputs import InputSelection, Subject
from gstarx.cli.options import examples
from gstarx.registry import DatasetSource

if TYPE_CHECKING:
    from gstarx_bench.runs import RunReport, RunSpec

EXAMPLES = examples(
    "gstarx evaluate nitro",
    "gstarx evaluate nitro -e gstarx,subgraphx,random --limit 20 --workers 2 --json",
    "gstarx evaluate --file molecules.csv --weights mine.safetensors --workers 2",
    "gstarx evaluate mutag --weights mutag.safetensors --store runs --engine ray",
    "gstarx evaluate --file graph.npz --model my.models:network --nodes 37,52-60 --workers 2",
)


def evaluate(
    ctx: typer.Context,
    inputs: InputSelection,
    explainer: Annotated[list[str], "explainers"] = ["gstarx"],  # noqa: B006
    option: list[str] | None = None,
    baseline: str | None = None,
    share: str | None = None,
    players: str | None = None,
    nodes: str | None = None,
    references: Annotated[
        bool,
        typer.Option(
            "--references/--no-references",
            help="Also evaluate a random selection and the best selection that a search finds.",
        ),
    ] = True,
    store: Path = Path("gstarx-runs"),
    engine: str = "local",
    workers: int | None = None,
    as_json: bool = False,
) -> None:
    """Explain many graphs and evaluate the explanations at every sparsity.

    By default, these are the test split of a dataset, or all graphs of your own. Every finished
    graph is stored at once. After Ctrl-C the same command continues where it stopped, and so does
    [b]gstarx runs resume[/b].

    With [b]--nodes[/b], these are nodes of one graph, and scores of their players are stored.
    """
    from gstarx.cli.methods import parse_options

    known = getattr(ctx.obj, "explainers", {})
    options = parse_options(option or (), explainer, known, share, players, baseline)
    inputs = _with_default_split(inputs)
    inputs.check()
    failed = 0
    with only_json(as_json) as stream:
        references &= nodes is None
        listed: list[int] | None = None
        if nodes is None:
            subjects = inputs.subjects()
        else:
            subject, listed = inputs.nodes(nodes)
            subjects = [subject]
        specs = _specifications(inputs, subjects, options, baseline, listed, references=references)
        results = []
        for spec, is_reference in list(specs):
            report = _run(spec, inputs, store, engine=engine, workers=workers)
            failed += report.failed
            results.append({**_result(spec, report, store), "reference": is_reference})
            if not as_json and not is_reference:
                _show(results[-1], "graphs" if nodes is None else "nodes")
        if not as_json and references:
            _show_comparison(results)
    if as_json:
        content = {
            "store": str(store),
            "seed": inputs.seed,
            "skipped": len(inputs.skipped),
            "sides": inputs.sides(subjects),
            "runs": [result for result in results if not result["reference"]],
            "references": [result for result in results if result["reference"]],
        }
        print_json(content, stream)
    else:
        if nodes is None:
            out().print(f"training graphs: {inputs.sides_in_words(subjects)}", soft_wrap=True)
        out().print(f"stored in {store}", style="dim", soft_wrap=True)
    if failed:
        failed_what = "graphs" if nodes is None else "nodes"
        note(f"error: {failed} {failed_what} failed; see why with gstarx runs show {store}")
        raise typer.Exit(1)
    inputs.finish()


def _with_default_split(inputs: InputSelection) -> InputSelection:
    """The inputs with the default split, if they are graphs that runs can load again."""
    if inputs.smiles or inputs.sentence:
        raise WrongUse(
            "evaluate takes a dataset, --file or --graphs, which can be loaded again: for single "
            "molecules and sentences use gstarx compare"
        )
    if inputs.split is None and not inputs.positions:
        return replace(inputs, split="test" if inputs.dataset is not None else "all")
    return inputs


def _specifications(
    inputs: InputSelection,
    subjects: list[Subject],
    options: Mapping[str, Mapping[str, Any]],
    baseline: str | float | None,
    nodes: Sequence[int] | None,
    *,
    references: bool,
) -> Iterator[tuple[RunSpec, bool]]:
    """A run for every explainer and target, and whether it is a reference."""
    from gstarx_bench.runs import RunSpec

    network, source = inputs.network, inputs.source
    assert source is not None
    from_factory = inputs.model is not None and ":" in inputs.model
    weights = inputs.weights if from_factory else network.path
    is_sampled = inputs.sample and inputs.cuts_after_reading
    is_subset = any((inputs.positions, is_sampled, inputs.limit))
    methods = {**options, **({"random": {}, "best_found": {}} if references else {})}
    for target in inputs.targets(subjects):
        for name, given in methods.items():
            explainer_options = {key: value for key, value in given.items() if key != "baseline"}
            spec = RunSpec(
                dataset=_dataset_fields(source),
                model={
                    "weights": None if weights is None else str(weights),
                    "factory": inputs.model if from_factory else None,
                    "task": inputs.task,
                    "options": {"trust": True} if inputs.trust else {},
                    "return_type": inputs.return_type,
                },
                explainer={"name": name, "options": explainer_options},
                split=inputs.split or "all",
                graphs=tuple(subject.position for subject in subjects)
                if is_subset or nodes is not None
                else None,
                nodes=None if nodes is None else tuple(nodes),
                baseline=given.get("baseline", baseline),
                target=target,
                seed=inputs.seed,
            )
            yield spec, references and name not in options


def _dataset_fields(source: DatasetSource) -> dict[str, Any]:
    """The dataset of a specification: options are what differs from the defaults."""
    if source.name is not None:
        return {"name": source.name, "root": source.root}
    default = DatasetSource(file=source.file, graphs=source.graphs)
    changed = {
        name: list(value) if isinstance(value, tuple) else value
        for name, value in asdict(source).items()
        if value != getattr(default, name)
    }
    return {"file": source.file, "graphs": source.graphs, "options": changed}


def _run(
    spec: RunSpec, inputs: InputSelection, store: Path, *, engine: str, workers: int | None
) -> RunReport:
    from gstarx_bench import runs

    try:
        return runs.run(
            spec,
            store,
            engine=engine,
            workers=workers,
            progress=show_progress(),
            dataset=inputs.loaded,
        )
    except KeyboardInterrupt:
        note(f"stopped: finished graphs are in {store}; run the same command to continue")
        raise


def _result(spec: RunSpec, report: RunReport, store: Path) -> dict[str, Any]:
    from gstarx_bench.cli.run_tables import averages

    asked = spec.graphs if spec.nodes is None else spec.nodes
    count, points = averages(store, report.run, asked)
    best = max(points, key=lambda point: point["harmonic_fidelity"]) if points else None
    return {
        "explainer": spec.explainer.name,
        "options": spec.explainer.options,
        "target": spec.target,
        **asdict(report),
        "explained": count,
        "best": best,
        "points": points,
    }


def _show(result: dict[str, Any], what: str) -> None:
    from gstarx_bench.cli.run_tables import show_points

    if what == "nodes":
        out().print(f"{result['explainer']}: {result['explained']} nodes are explained")
    if result["points"]:
        title = f"{result['explainer']}, means over {result['explained']} graphs"
        show_points(title, result["points"])


def _show_comparison(results: list[dict[str, Any]]) -> None:
    """A row for every explainer at its best sparsity, the references last."""
    from gstarx_bench.cli.run_tables import metric_cells, metric_table

    shown = metric_table("explainer", "target", "requested", after=["graphs"], left=2)
    for result in results:
        if result["best"] is None:
            continue
        best = result["best"]
        names = {"random": "random selection", "best_found": "best selection found"}
        name = result["explainer"]
        shown.add_row(
            names.get(name, name) if result["reference"] else name,
            "" if result["target"] is None else str(result["target"]),
            f"{best['requested_sparsity']:.2f}",
            *metric_cells(best),
            str(result["explained"]),
            style="dim" if result["reference"] else "",
        )
    shown.title = "Every explainer at its best sparsity"
    out().print(shown)
