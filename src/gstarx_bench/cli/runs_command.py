"""``gstarx runs``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gstarx._internal.messages import unknown
from gstarx.cli.console import (
    CommandError,
    note,
    only_json,
    out,
    print_json,
    show_progress,
    table,
    writable,
    write,
)
from gstarx.cli.options import examples, with_options

if TYPE_CHECKING:
    from gstarx_bench.runs import StoreError

app = typer.Typer(
    no_args_is_help=True,
    help="Inspect and continue runs stored by [b]gstarx evaluate[/b].",
    epilog=examples("gstarx runs list gstarx-runs", "gstarx runs resume gstarx-runs"),
)

Run = Annotated[
    str | None,
    typer.Option(
        "--run", help="Only this run; a prefix of its name is enough.", show_default=False
    ),
]


@app.command("list", epilog=examples("gstarx runs list gstarx-runs"))
@with_options
def list_runs(store: Annotated[Path, "stored runs"], as_json: bool = False) -> None:
    """All runs of a store, oldest first."""
    runs = runs_of(store)
    if as_json:
        print_json([_without_spec(run) for run in runs])
        return
    shown = table("run", "dataset", "split", "explainer", "explained", "failed", left=4)
    for run in runs:
        counts = ("?" if run[key] is None else str(run[key]) for key in ("explained", "failed"))
        shown.add_row(run["run"][:12], run["dataset"], run["split"], run["explainer"], *counts)
    out().print(shown)


@app.command("show", epilog=examples("gstarx runs show gstarx-runs --run 3f2a"))
@with_options
def show(store: Annotated[Path, "stored runs"], run: Run = None, as_json: bool = False) -> None:
    """The mean metrics of runs at every sparsity, and the errors of graphs that failed."""
    from gstarx_bench import runs
    from gstarx_bench.cli.run_tables import averages, show_points

    content = []
    for about in _matching_runs(store, run):
        try:
            count, points = averages(store, about["run"])
            rows = runs.read(
                store, run=about["run"], columns=["graph", "node", "error"]
            ).to_pylist()
        except runs.StoreError as error:
            if run is not None:
                raise
            note(f"warning: {error}")
            continue
        errors = [row for row in rows if row["error"] is not None]
        content.append({**_without_spec(about), "points": points, "errors": errors})
        if as_json:
            continue
        title = f"{about['run'][:12]}  {about['explainer']} on {about['dataset']}, {count} graphs"
        if points:
            show_points(title, points)
        for row in errors:
            what = "graph" if row["node"] is None else "node"
            out().print(f"{what} {row['graph']}: {row['error']}", soft_wrap=True)
    if as_json:
        print_json(content)


@app.command(
    "resume",
    epilog=examples(
        "gstarx runs resume gstarx-runs --workers 4", "gstarx runs resume gstarx-runs --failed"
    ),
)
@with_options
def resume(
    store: Annotated[Path, "stored runs"],
    run: Run = None,
    failed: Annotated[
        bool, typer.Option("--failed", help="Retry the graphs that failed instead.")
    ] = False,
    engine: str = "local",
    workers: int | None = None,
    as_json: bool = False,
) -> None:
    """Resume the runs of a store that were stopped."""
    from gstarx_bench import runs
    from gstarx_bench.runs import Store, check_format

    resume_runs = runs.retry_failed if failed else runs.resume
    check_format(store)
    damaged = Store(store).read_requests()[1] if run is None else {}
    run_id = None if run is None else _matching_runs(store, run)[0]["run"]
    with only_json(as_json) as stream:
        reports = resume_runs(
            store, run=run_id, engine=engine, workers=workers, progress=show_progress()
        )
    if as_json:
        print_json([asdict(report) for report in reports], stream)
    else:
        shown = table("run", "graphs", "stored before", "processed now", "failed", "seconds")
        for report in reports:
            counts = (report.graphs, report.found, report.done, report.failed)
            shown.add_row(report.run[:12], *map(str, counts), f"{report.seconds:.1f}")
        out().print(shown)
    if any(report.failed for report in reports):
        note(f"error: some graphs failed; see why with gstarx runs show {store}")
    if damaged:
        note(f"error: not resumed, because their specifications are lost: {', '.join(damaged)}")
    if damaged or any(report.failed for report in reports):
        raise typer.Exit(1)


@app.command(
    "export",
    epilog=examples(
        "gstarx runs export gstarx-runs rows.csv",
        "gstarx runs export gstarx-runs rows.json --run 3f2a",
    ),
)
@with_options
def export(
    store: Annotated[Path, "stored runs"],
    to: Annotated[
        Path,
        typer.Argument(
            metavar="FILE", help="The file: .csv, .json or .parquet.", show_default=False
        ),
    ],
    run: Run = None,
) -> None:
    """Write the rows of a store to a file.

    CSV has a line for every graph and sparsity; JSON and Parquet hold everything.
    """
    from gstarx_bench import runs
    from gstarx_bench.cli.run_tables import as_text

    writable(to, ".csv", ".json", ".parquet")
    run_id = None if run is None else _matching_runs(store, run)[0]["run"]
    rows = runs.read(store, run=run_id)
    if to.suffix == ".parquet":
        import pyarrow.parquet as parquet

        from gstarx._internal.files import atomic_path

        with atomic_path(to) as temporary:
            parquet.write_table(rows, temporary)
    else:
        write(to, as_text(rows.to_pylist(), to.suffix))
    out().print(f"wrote {rows.num_rows} rows to {to}", soft_wrap=True)


def runs_of(store: Path) -> list[dict[str, Any]]:
    """Every run with its settings and progress; damaged files are reported on stderr."""
    listed, problems = _listed(store)
    for problem in problems.values():
        note(f"warning: {problem}")
    return listed


def _listed(store: Path) -> tuple[list[dict[str, Any]], dict[str, StoreError]]:
    """Every run, and the problems with files of the store, by run."""
    from gstarx_bench.runs import Store, check_format, counts

    check_format(store)
    requests, problems = Store(store).read_requests()
    by_run: dict[str, dict[str, Any]] = {}
    for request in requests:
        run, spec = request["name"].partition("-")[0], request["spec"]
        explained, failed = counts(store, run)
        by_run[run] = {
            "run": run,
            "dataset": _dataset_title(spec["dataset"]),
            "split": spec["split"],
            "explainer": spec["explainer"]["name"],
            "options": spec["explainer"]["options"],
            "model": spec["model"].get("factory") or spec["model"]["weights"],
            "weights": spec["model"]["weights"],
            "target": spec.get("target"),
            "seed": spec["seed"],
            "explained": explained,
            "failed": failed,
            "spec": spec,
        }
    return list(by_run.values()), problems


def _without_spec(run: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in run.items() if name != "spec"}


def _dataset_title(dataset: Mapping[str, Any]) -> str:
    if dataset["name"]:
        return str(dataset["name"])
    return (
        Path(dataset["file"]).stem if dataset.get("file") else dataset["graphs"].replace(":", ".")
    )


def _matching_runs(store: Path, run: str | None) -> list[dict[str, Any]]:
    """All runs, or the one whose name begins with ``run``."""
    if run is None:
        return runs_of(store)
    listed, problems = _listed(store)
    matching = [entry for entry in listed if entry["run"].startswith(run)]
    if len(matching) > 1:
        raise CommandError(f"{len(matching)} runs begin with {run!r}: give more characters")
    if not matching:
        for name, problem in problems.items():
            if name.startswith(run):
                raise problem
        raise CommandError(unknown("run", run, [entry["run"] for entry in listed]))
    return matching
