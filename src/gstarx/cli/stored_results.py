"""What runs have found, for a report."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gstarx.cli.console import CommandError, WrongUse, note
from gstarx.cli.graphs import InputSelection
from gstarx.cli.runs_command import runs_of

if TYPE_CHECKING:
    from gstarx.explainers import Explanation


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
