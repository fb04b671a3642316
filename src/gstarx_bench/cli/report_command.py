"""``gstarx report``."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import asdict, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gstarx._internal.processes import one_thread
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
from gstarx.cli.inputs import InputSelection, Subject
from gstarx.cli.options import SPARSITY, examples
from gstarx_bench.cli.runs_command import runs_of

#: Explainers that evaluate runs as references.
_REFERENCES = ("random", "best_found")

if TYPE_CHECKING:
    from gstarx.explanation import Explanation
    from gstarx.players import PlayerKind, PlayersLike
    from gstarx_bench.report import ReportData


EXAMPLES = examples(
    "gstarx report nitro --split test --limit 20",
    "gstarx report nitro 15 44 -e gstarx,subgraphx,gnnexplainer --output nitro.html",
    "gstarx report --file molecules.csv --weights mine.safetensors --output mine.html",
    "gstarx report --store gstarx-runs --limit 50",
)


def report(
    ctx: typer.Context,
    inputs: InputSelection,
    from_store: Annotated[
        Path | None,
        typer.Option(
            "--store",
            help="Show the results of the runs in this store, on graphs that all of them have.",
            show_default=False,
        ),
    ] = None,
    explainer: Annotated[list[str], "explainers"] = ["gstarx", "banzhaf", "subgraphx", "graphsvx"],  # noqa: B006
    option: list[str] | None = None,
    sparsity: float = SPARSITY,
    baseline: str | None = None,
    share: str | None = None,
    players: str | None = None,
    title: Annotated[
        str | None, typer.Option(help="Title of the page.", show_default=False)
    ] = None,
    output: Annotated[Path, typer.Option(help="The page, .html.")] = Path("report.html"),
    as_json: bool = False,
) -> None:
    """Write one HTML page with pictures, metrics and curves of several explainers.

    The page needs no network and can be sent to others as it is.
    """
    from gstarx.cli.methods import create_explainers, parse_options

    writable(output, ".html")
    if from_store is None:
        inputs.check()  # before torch is loaded, which takes seconds
    with one_thread(), only_json(as_json) as stream:
        methods: Mapping[str, Any]
        playing: PlayersLike
        if from_store is not None:
            inputs, methods, playing = stored_results(from_store, inputs)
        else:
            configured = getattr(ctx.obj, "explainers", {})
            options = parse_options(option or (), explainer, configured, share, players, baseline)
            methods = create_explainers(inputs, options, baseline=baseline)
            playing = players or "nodes"
        from gstarx_bench.report import write_report

        written = []
        for one in _one_by_one(inputs):
            path = _page_of(output, one, several=inputs.target == "all")
            report_data = collect_report(
                one, methods, title=title, sparsity=sparsity, players=playing
            )
            write_report(path, report_data)
            written.append(summary(report_data, path))
    if as_json:
        print_json(written if inputs.target == "all" else written[0], stream)
    else:
        for page in written:
            out().print(f"wrote {page['report']}", soft_wrap=True)
    inputs.finish()


def _one_by_one(inputs: InputSelection) -> list[InputSelection]:
    """The inputs for every target that is asked for: a report is about one."""
    if inputs.target != "all":
        return [inputs]
    single = []
    for target in inputs.targets(inputs.subjects()):
        one = replace(inputs, target=str(target))
        # what was loaded is not loaded again
        vars(one).update(network=inputs.network, loaded=inputs.loaded)
        single.append(one)
    return single


def _page_of(output: Path, inputs: InputSelection, *, several: bool) -> Path:
    """The page of a target: its name is added where there are several."""
    if not several:
        return output
    number = int(inputs.target or 0)
    names = inputs.output_names
    name = names[number] if number < len(names) else str(number)
    plain = re.sub(r"[^\w-]+", "_", name).strip("_")[:40]
    return output.with_name(f"{output.stem}-{number}-{plain}{output.suffix}")


def collect_report(
    inputs: InputSelection,
    methods: Mapping[str, Any],
    *,
    title: str | None = None,
    sparsity: float = SPARSITY,
    players: PlayersLike = "nodes",
) -> ReportData:
    """Everything that the report on a set of graphs shows.

    Parameters
    ----------
    inputs
        Which graphs and which network.
    methods
        Explainers by name, or their explanations of every graph.
    title, sparsity
        Of the page.
    players
        Who is drawn and removed.
    """
    from gstarx.metrics import Judge
    from gstarx_bench.report import ReportOptions, build_report

    subjects = inputs.subjects()
    inputs.check_reference()
    targets = inputs.targets(subjects)
    if len(targets) > 1:
        raise WrongUse(f"a report is about one target (got --target {inputs.target})")
    judge = Judge(
        inputs.network.model, task=inputs.model_task, players=players, reference=inputs.reference
    )
    return build_report(
        judge,
        [subject.data for subject in subjects],
        methods,
        title=title or f"{inputs.network.name} explained",
        output_names=inputs.output_names,
        names=[subject.name for subject in subjects],
        positions=[subject.position for subject in subjects],
        facts={
            "model": {"name": inputs.network.name, **inputs.network.facts},
            "dataset": _dataset_facts(inputs, subjects),
        },
        options=ReportOptions(sparsity=sparsity),
        seed=inputs.seed,
        target=targets[0],
        progress=show_progress(),
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


def _dataset_facts(inputs: InputSelection, subjects: list[Subject]) -> dict[str, str]:
    facts = {"graphs shown": f"{len(subjects):,}"}
    if inputs.source is None or inputs.loaded is None:
        return {**facts, "training graphs": inputs.sides_in_words(subjects)}
    loaded = inputs.loaded
    about = {"name": loaded.name, "about": loaded.description, "source": loaded.source}
    about = {name: text for name, text in about.items() if text}
    if inputs.split is not None:
        facts["split"] = inputs.split
    facts["training graphs"] = inputs.sides_in_words(subjects)
    if loaded.unreadable and inputs.dataset is None:
        facts["rows skipped"] = f"{len(loaded.unreadable):,}"
    return {**about, "graphs": f"{len(loaded):,}", **facts}


def stored_results(
    store: Path, inputs: InputSelection
) -> tuple[InputSelection, dict[str, list[Explanation]], PlayerKind]:
    """The graphs that all runs of a store have explained, the explanations, and who plays.

    Parameters
    ----------
    store
        The store; its runs must be about one dataset, one network and one target.
    inputs
        The other options of the command: ``limit`` and ``data``.
    """
    if any((inputs.dataset, inputs.smiles, inputs.sentence, inputs.file, inputs.graphs)) or (
        inputs.model or inputs.weights
    ):
        raise WrongUse(
            "--store already determines the graphs and the network: leave out the options for them"
        )
    from gstarx_bench.runs import StoreError, explanation_of

    every_run = runs_of(store)
    runs = [run for run in every_run if not run["spec"].get("nodes")]
    if every_run and not runs:
        raise CommandError(f"the runs in {store} explain nodes: a report is about whole graphs")
    # the report has rows of its own for random and best selections
    runs = [run for run in runs if run["explainer"] not in _REFERENCES] or runs
    for field in ("dataset", "model", "target"):
        distinct = sorted({str(run[field]) for run in runs})
        if len(distinct) > 1:
            raise CommandError(
                f"the runs in {store} differ in their {field}: {', '.join(distinct)}"
            )
    rows = {}
    for run in runs:
        try:
            rows[_name(run, runs)] = _rows(store, run["run"])
        except StoreError as error:
            note(f"warning: {run['explainer']} is left out: {error}")
    common = sorted(set.intersection(*map(set, rows.values()))) if rows else []
    if not common:
        raise CommandError(f"there is no graph that all {len(rows)} runs in {store} have explained")
    common = common[: inputs.limit]
    explanations = {
        name: [explanation_of(by_graph[graph]) for graph in common]
        for name, by_graph in rows.items()
    }
    return _inputs_of(runs[0]["spec"], common, inputs), explanations, _stored_players(runs)


def _stored_players(runs: list[dict[str, Any]]) -> PlayerKind:
    """Who plays in all runs; nodes if they differ."""
    from gstarx.explainers import GStarX, with_objects
    from gstarx.gnn import options_in
    from gstarx.players import as_players

    names = {"players", *options_in("players")}
    every = [run["spec"]["explainer"]["options"] for run in runs]
    chosen = [{name: value for name, value in one.items() if name in names} for one in every]
    if any(one != chosen[0] for one in chosen) or "players" not in chosen[0]:
        return as_players("nodes")
    return as_players(with_objects(GStarX, chosen[0])["players"])


def _inputs_of(
    spec: Mapping[str, Any], positions: list[int], inputs: InputSelection
) -> InputSelection:
    """The inputs of a run, from its specification."""
    dataset, model = spec["dataset"], spec["model"]
    option_names = {field.name for field in fields(InputSelection)}
    dataset_options = {} if dataset["name"] else {**dataset["options"], "split": None}
    return replace(
        inputs,
        dataset=dataset["name"],
        file=None if dataset.get("file") is None else [Path(dataset["file"])],
        graphs=dataset.get("graphs"),
        positions=[str(position) for position in positions],
        model=model.get("factory"),
        weights=None if model["weights"] is None else Path(model["weights"]),
        return_type=model.get("return_type", "raw"),
        target=None if spec.get("target") is None else str(spec["target"]),
        **{
            "limit": None,
            **{name: value for name, value in dataset_options.items() if name in option_names},
            "task": model.get("task"),
        },
    )


def _name(run: Mapping[str, Any], runs: list[dict[str, Any]]) -> str:
    """The name of the explainer, with the run where it has several."""
    same_explainer = [other for other in runs if other["explainer"] == run["explainer"]]
    if len(same_explainer) == 1:
        return str(run["explainer"])
    return f"{run['explainer']} {run['run'][:6]}"


def _rows(store: Path, run: str) -> dict[int, dict[str, Any]]:
    from gstarx_bench import runs
    from gstarx_bench.runs import OF_A_RESULT

    rows = runs.read(store, run=run, columns=["graph", "error", *OF_A_RESULT]).to_pylist()
    return {row["graph"]: row for row in rows if row["error"] is None}
