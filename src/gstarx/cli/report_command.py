"""``gstarx report``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gstarx._internal.one_thread import one_thread
from gstarx.cli.console import only_json, out, print_json, show_progress, writable
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
    Share,
    Smiles,
    Sparsity,
    Weights,
    examples,
)

if TYPE_CHECKING:
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
    share: Share = None,
    seed: Seed = 0,
    title: Annotated[str | None, typer.Option(help="Of the page.", show_default=False)] = None,
    output: Annotated[Path, typer.Option(help="The page, .html.")] = Path("report.html"),
    as_json: AsJson = False,
) -> None:
    """Write one HTML page with pictures, metrics and curves of several explainers.

    The page needs no network and can be sent to others as it is.
    """
    from gstarx.cli.methods import create_explainers, parse_options
    from gstarx.cli.stored_results import stored_results

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
            options = parse_options(option or (), explainer, known, share)
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
