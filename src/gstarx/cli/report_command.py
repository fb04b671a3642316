"""``gstarx report``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gstarx._internal.one_thread import one_thread
from gstarx.cli.console import (
    CommandError,
    WrongUse,
    note,
    only_json,
    out,
    print_json,
    show_progress,
    writable,
)
from gstarx.cli.graphs import InputSelection, Subject
from gstarx.cli.options import (
    SPARSITY,
    AsJson,
    Baseline,
    Data,
    Explainers,
    Files,
    Limit,
    MaybeDataset,
    MaybeSplit,
    Model,
    Options,
    Positions,
    ReturnType,
    Seed,
    Sentences,
    Smiles,
    Sparsity,
    Weights,
    examples,
)
from gstarx.cli.runs_command import runs_of

if TYPE_CHECKING:
    from gstarx.explainers import Explanation
    from gstarx.report import ReportData


EXAMPLES = examples(
    "gstarx report nitro --split test --limit 20",
    "gstarx report nitro 15 44 -e gstarx,subgraphx,gnnexplainer --output nitro.html",
    "gstarx report --file molecules.csv --output mine.html",
    "gstarx report --store gstarx-runs --limit 50",
)


def report(
    ctx: typer.Context,
    dataset: MaybeDataset = None,
    graphs: Positions = None,
    smiles: Smiles = None,
    sentence: Sentences = None,
    file: Files = None,
    split: MaybeSplit = None,
    from_store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            help="Show the results of the runs in this store, on the graphs they all explained.",
            show_default=False,
        ),
    ] = None,
    limit: Limit = None,
    data: Data = None,
    model: Model = None,
    weights: Weights = None,
    return_type: ReturnType = "raw",
    explainer: Explainers = ["gstarx", "subgraphx", "graphsvx"],  # noqa: B006
    option: Options = None,
    sparsity: Sparsity = SPARSITY,
    baseline: Baseline = None,
    seed: Seed = 0,
    title: Annotated[str | None, typer.Option(help="Of the page.", show_default=False)] = None,
    output: Annotated[Path, typer.Option(help="The page, .html.")] = Path("report.html"),
    as_json: AsJson = False,
) -> None:
    """Write one HTML page with pictures, metrics and curves of several explainers.

    The page needs no network and can be sent to others as it is.
    """
    from gstarx.cli.methods import create_explainers, parse_options

    writable(output, ".html")
    input_selection = InputSelection(
        dataset, graphs, smiles, sentence, file, split, limit, data, model, weights
    )
    if from_store is None:
        input_selection.check()  # before torch is loaded, which takes seconds
    with one_thread(), only_json(as_json) as stream:
        methods: Mapping[str, Any]
        if from_store is not None:
            input_selection, methods = stored_results(from_store, input_selection)
        else:
            known = getattr(ctx.obj, "explainers", {})
            options = parse_options(option or (), explainer, known)
            methods = create_explainers(input_selection, options, baseline=baseline, seed=seed)
        report_data = gathered(
            input_selection,
            methods,
            title=title,
            sparsity=sparsity,
            seed=seed,
            return_type=return_type,
        )
        from gstarx.report import write_report

        write_report(output, report_data)
    if as_json:
        print_json(summary(report_data, output), stream)
    else:
        out().print(f"wrote {output}", soft_wrap=True)


def gathered(
    input_selection: InputSelection,
    methods: Mapping[str, Any],
    *,
    title: str | None = None,
    sparsity: float = SPARSITY,
    seed: int = 0,
    **more: Any,
) -> ReportData:
    """Everything that the report on a set of graphs shows.

    Parameters
    ----------
    input_selection
        Which graphs and which network.
    methods
        Explainers by name, or their explanations of every graph.
    title, sparsity, seed
        Of the page.
    **more
        Options of :func:`gstarx.report.build_report`.
    """
    from gstarx.report import build_report

    subjects = input_selection.subjects()
    return build_report(
        input_selection.network.model,
        [subject.data for subject in subjects],
        methods,
        title=title or f"{input_selection.network.name} explained",
        class_names=input_selection.class_names,
        names=[subject.name for subject in subjects],
        positions=[subject.position for subject in subjects],
        model_facts={"name": input_selection.network.name, **input_selection.network.facts},
        dataset_facts=_dataset_facts(input_selection, subjects),
        sparsity=sparsity,
        seed=seed,
        progress=show_progress(),
        **more,
    )


def summary(report_data: ReportData, path: Path) -> dict[str, Any]:
    """What ``--json`` prints about a report."""
    from gstarx.metrics import average

    return {
        "report": str(path),
        "title": report_data.title,
        "graphs": len(report_data.rows[0].graphs),
        "accuracy": report_data.accuracy,
        "sparsity": report_data.sparsity,
        "seed": report_data.seed,
        "rows": [
            {"name": row.name, "kind": row.kind, "metrics": asdict(average(row.graphs))}
            for row in report_data.rows
        ],
    }


def _dataset_facts(input_selection: InputSelection, subjects: list[Subject]) -> dict[str, str]:
    facts = {"graphs shown": f"{len(subjects):,}"}
    if input_selection.dataset is None or input_selection.loaded is None:
        return facts
    loaded = input_selection.loaded
    about = {"name": loaded.name, "about": loaded.description, "source": loaded.source}
    if input_selection.split is not None:
        facts["split"] = input_selection.split
    return {**about, "graphs": f"{len(loaded):,}", **facts}


def stored_results(
    store: Path, input_selection: InputSelection
) -> tuple[InputSelection, dict[str, list[Explanation]]]:
    """The graphs that all runs of a store have explained, and the explanations of each run.

    Parameters
    ----------
    store
        The store; its runs must be about one dataset and one network.
    input_selection
        The other options of the command: ``limit`` and ``data``.
    """
    if (
        input_selection.dataset
        or input_selection.smiles
        or input_selection.sentences
        or input_selection.files
        or input_selection.model
    ):
        raise WrongUse("--store knows its graphs and network: say nothing else about them")
    from gstarx.runs import StoreError, explanation_of

    runs = runs_of(store)
    for field in ("dataset", "weights"):
        several = sorted({run[field] for run in runs})
        if len(several) > 1:
            raise CommandError(f"the runs in {store} are about several: {', '.join(several)}")
    rows = {}
    for run in runs:
        try:
            rows[_name(run, runs)] = _rows(store, run["run"])
        except StoreError as error:
            note(f"warning: {run['explainer']} is left out: {error}")
    common = sorted(set.intersection(*map(set, rows.values()))) if rows else []
    if not common:
        raise CommandError(f"there is no graph that all {len(rows)} runs in {store} have explained")
    common = common[: input_selection.limit]
    common_selection = replace(
        input_selection,
        dataset=runs[0]["dataset"],
        positions=[str(position) for position in common],
        weights=Path(runs[0]["weights"]),
        limit=None,
    )
    explanations = {
        name: [explanation_of(by_graph[graph]) for graph in common]
        for name, by_graph in rows.items()
    }
    return common_selection, explanations


def _name(run: Mapping[str, Any], runs: list[dict[str, Any]]) -> str:
    """The name of the explainer, with the run where it has several."""
    same = [other for other in runs if other["explainer"] == run["explainer"]]
    return str(run["explainer"]) if len(same) == 1 else f"{run['explainer']} {run['run'][:6]}"


def _rows(store: Path, run: str) -> dict[int, dict[str, Any]]:
    from gstarx import runs
    from gstarx.runs import OF_A_RESULT

    rows = runs.read(store, run=run, columns=["graph", "error", *OF_A_RESULT]).to_pylist()
    return {row["graph"]: row for row in rows if row["error"] is None}
