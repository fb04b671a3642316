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
            help="Show what the runs in this store have found, on graphs that all of them have.",
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
    asked = InputSelection(
        dataset, graphs, smiles, sentence, file, split, limit, data, model, weights
    )
    if from_store is None:
        asked.check()  # before torch is loaded, which takes seconds
    with one_thread(), only_json(as_json) as stream:
        methods: Mapping[str, Any]
        if from_store is not None:
            asked, methods = stored_results(from_store, asked)
        else:
            known = getattr(ctx.obj, "explainers", {})
            options = parse_options(option or (), explainer, known)
            methods = create_explainers(asked, options, baseline=baseline, seed=seed)
        found = gathered(
            asked, methods, title=title, sparsity=sparsity, seed=seed, return_type=return_type
        )
        from gstarx.report import write_report

        write_report(output, found)
    if as_json:
        print_json(summary(found, output), stream)
    else:
        out().print(f"wrote {output}", soft_wrap=True)


def gathered(
    asked: InputSelection,
    methods: Mapping[str, Any],
    *,
    title: str | None = None,
    sparsity: float = SPARSITY,
    seed: int = 0,
    **more: Any,
) -> ReportData:
    """Everything that the page about some graphs shows.

    Parameters
    ----------
    asked
        Which graphs and which network.
    methods
        Explainers by name, or what they have found for every graph.
    title, sparsity, seed
        Of the page.
    **more
        Options of :func:`gstarx.report.build_report`.
    """
    from gstarx.report import build_report

    subjects = asked.subjects()
    return build_report(
        asked.network.model,
        [subject.data for subject in subjects],
        methods,
        title=title or f"{asked.network.name} explained",
        class_names=asked.class_names,
        names=[subject.name for subject in subjects],
        positions=[subject.position for subject in subjects],
        model_facts={"name": asked.network.name, **asked.network.facts},
        dataset_facts=_dataset_facts(asked, subjects),
        sparsity=sparsity,
        seed=seed,
        progress=show_progress(),
        **more,
    )


def summary(found: ReportData, path: Path) -> dict[str, Any]:
    """What ``--json`` prints of a page."""
    from gstarx.metrics import average

    return {
        "report": str(path),
        "title": found.title,
        "graphs": len(found.rows[0].graphs),
        "accuracy": found.accuracy,
        "sparsity": found.sparsity,
        "seed": found.seed,
        "rows": [
            {"name": row.name, "kind": row.kind, "metrics": asdict(average(row.graphs))}
            for row in found.rows
        ],
    }


def _dataset_facts(asked: InputSelection, subjects: list[Subject]) -> dict[str, str]:
    facts = {"graphs shown": f"{len(subjects):,}"}
    if asked.dataset is None or asked.loaded is None:
        return facts
    loaded = asked.loaded
    about = {"name": loaded.name, "about": loaded.description, "source": loaded.source}
    if asked.split is not None:
        facts["split"] = asked.split
    return {**about, "graphs": f"{len(loaded):,}", **facts}


def stored_results(
    store: Path, asked: InputSelection
) -> tuple[InputSelection, dict[str, list[Explanation]]]:
    """The graphs that all runs of a store have explained, and what each of them found.

    Parameters
    ----------
    store
        The store; its runs must be about one dataset and one network.
    asked
        What else the command says: ``limit`` and ``data``.
    """
    if asked.dataset or asked.smiles or asked.sentences or asked.files or asked.model:
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
    common = common[: asked.limit]
    chosen = replace(
        asked,
        dataset=runs[0]["dataset"],
        positions=[str(position) for position in common],
        weights=Path(runs[0]["weights"]),
        limit=None,
    )
    found = {name: [explanation_of(own[graph]) for graph in common] for name, own in rows.items()}
    return chosen, found


def _name(run: Mapping[str, Any], runs: list[dict[str, Any]]) -> str:
    """The explainer, and which run where it has several."""
    same = [other for other in runs if other["explainer"] == run["explainer"]]
    return str(run["explainer"]) if len(same) == 1 else f"{run['explainer']} {run['run'][:6]}"


def _rows(store: Path, run: str) -> dict[int, dict[str, Any]]:
    from gstarx import runs
    from gstarx.runs import OF_A_RESULT

    found = runs.read(store, run=run, columns=["graph", "error", *OF_A_RESULT]).to_pylist()
    return {row["graph"]: row for row in found if row["error"] is None}
