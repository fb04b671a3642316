"""``gstarx evaluate``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gstarx.cli.console import CommandError, note, only_json, out, print_json, show_progress
from gstarx.cli.options import (
    AsJson,
    Baseline,
    Data,
    DatasetName,
    Engine,
    Explainers,
    Limit,
    Model,
    Options,
    Seed,
    Share,
    Split,
    StoreOption,
    Weights,
    Workers,
    examples,
)

if TYPE_CHECKING:
    from gstarx.runs import RunReport, RunSpec

EXAMPLES = examples(
    "gstarx evaluate nitro",
    "gstarx evaluate nitro -e gstarx,subgraphx,random --limit 20 --workers 2 --json",
    "gstarx evaluate mutag --weights mutag.safetensors --store runs --engine ray",
)


def evaluate(
    ctx: typer.Context,
    dataset: DatasetName,
    split: Split = "test",
    limit: Limit = None,
    data: Data = None,
    model: Model = None,
    weights: Weights = None,
    explainer: Explainers = ["gstarx"],  # noqa: B006
    option: Options = None,
    baseline: Baseline = None,
    share: Share = None,
    seed: Seed = 0,
    store: StoreOption = Path("gstarx-runs"),
    engine: Engine = "local",
    workers: Workers = None,
    as_json: AsJson = False,
) -> None:
    """Explain a whole split and evaluate the explanations at every sparsity.

    Every finished graph is in the store at once. After Ctrl-C the same command goes on where it
    was, and so does [b]gstarx runs resume[/b].
    """
    from gstarx import runs
    from gstarx.cli.methods import parse_options

    options = parse_options(option or (), explainer, getattr(ctx.obj, "explainers", {}), share)
    failed = 0
    with only_json(as_json) as stream:
        network = _weights(dataset, model, weights)
        graphs = None if limit is None else _first(dataset, data, split, limit)
        results = []
        for name, chosen in options.items():
            spec = runs.RunSpec(
                dataset={"name": dataset, "root": None if data is None else str(data)},
                model=str(network),
                explainer={"name": name, "options": chosen},
                split=split,
                graphs=graphs,
                baseline=baseline,
                seed=seed,
            )
            report = _run(spec, store, engine=engine, workers=workers)
            failed += report.failed
            results.append(_result(spec, report, store))
            if not as_json:
                _show(results[-1])
    if as_json:
        print_json({"store": str(store), "seed": seed, "runs": results}, stream)
    else:
        out().print(f"kept in {store}", style="dim", soft_wrap=True)
    if failed:
        note(f"error: {failed} graphs failed; gstarx runs show {store} says why")
        raise typer.Exit(1)


def _weights(dataset: str, model: str | None, weights: Path | None) -> Path:
    """The file of the network: what workers load."""
    from gstarx.cli.networks import choose_network

    if model is not None and ":" in model:
        raise CommandError(
            "runs load networks of the package from files: say --weights, or use gstarx compare "
            f"for a model of your own (got --model {model})"
        )
    found = choose_network(model, weights, default=dataset).path
    assert found is not None
    return found


def _first(dataset: str, root: Path | None, split: str, limit: int) -> tuple[int, ...]:
    from gstarx.cli.graphs import load_dataset

    loaded = load_dataset(dataset, root)
    listed = range(len(loaded)) if split == "all" else sorted(loaded.split_indices[split])
    return tuple(listed[:limit])


def _run(spec: RunSpec, store: Path, *, engine: str, workers: int | None) -> RunReport:
    from gstarx import runs

    try:
        return runs.run(spec, store, engine=engine, workers=workers, progress=show_progress())
    except KeyboardInterrupt:
        note(f"stopped: what is finished is in {store}; the same command goes on")
        raise


def _result(spec: RunSpec, report: RunReport, store: Path) -> dict[str, Any]:
    from gstarx.cli.run_tables import averages

    count, points = averages(store, report.run, spec.graphs)
    best = max(points, key=lambda point: point["harmonic_fidelity"]) if points else None
    return {
        "explainer": spec.explainer.name,
        "options": spec.explainer.options,
        **asdict(report),
        "explained": count,
        "best": best,
        "points": points,
    }


def _show(result: dict[str, Any]) -> None:
    from gstarx.cli.run_tables import show_points

    if result["points"]:
        title = f"{result['explainer']}, means over {result['explained']} graphs"
        show_points(title, result["points"])
