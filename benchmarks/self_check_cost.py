"""What the self-check costs: explanations with it against explanations without, in turn.

CPU seconds, one thread, least of seven; the paper's MUTAG GCN on its test molecules: exact
explanations of those with at most 30,000 coalitions, and the paper's configuration on all of them,
graph by graph and together.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np

from benchmarks.published import mutag
from gstarx import GNNGame, GStarX, Passes, explain, explain_many

_MOST = 30_000
_TURNS = 7


def main() -> None:
    if (found := mutag()) is None:
        return
    model, graphs, baseline = found
    small = [
        data
        for data in graphs
        if GNNGame(model, data).graph.count_connected_coalitions(_MOST) <= _MOST
    ]
    published = GStarX.as_published(baseline=baseline)
    options = {"value": published.value, **published.game_options}
    del options["passes"]

    def exactly(check: bool) -> None:
        for data in small:
            explain(
                model, data, value="hn", baseline=baseline, budget=_MOST, passes=Passes(check=check)
            )

    def singly(check: bool) -> None:
        for data in graphs:
            explain(model, data, seed=0, passes=Passes(check=check), **options)

    def together(check: bool) -> None:
        explain_many(model, graphs, seed=0, progress=False, passes=Passes(check=check), **options)

    _compare("exact", len(small), exactly)
    _compare("as published, graph by graph", len(graphs), singly)
    _compare("as published, together", len(graphs), together)


def _compare(name: str, count: int, run: Callable[[bool], None]) -> None:
    run(True)
    turns = [(_seconds(run, True), _seconds(run, False)) for _ in range(_TURNS)]
    checked, unchecked = np.min(turns, axis=0)
    ratios = [with_check / without - 1 for with_check, without in turns]
    print(
        f"{name}, {count} molecules: {1e3 * checked / count:.2f} ms each with the check, "
        f"{1e3 * unchecked / count:.2f} ms without: {100 * (checked / unchecked - 1):+.1f} % "
        f"(median of turns {100 * np.median(ratios):+.1f} %)",
        flush=True,
    )


def _seconds(run: Callable[[bool], None], check: bool) -> float:
    start = time.process_time()
    run(check)
    return time.process_time() - start
