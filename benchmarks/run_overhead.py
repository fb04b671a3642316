"""What the run machinery costs: runs with one worker against a plain loop, and a large store.

MUTAG, all 188 molecules, the published procedure, one thread, in turns. "Plain" is a loop that
explains a molecule, selects nodes by both rules at eight sparsities and evaluates them; both sides
load data and model themselves. Then a store of 100,000 rows: how long it takes to open it and see
what is left, and the memory.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import torch

from benchmarks.published import mutag_files
from gstarx import Judge, datasets, expected_output
from gstarx.explainers import create
from gstarx.metrics import SPARSITIES
from gstarx.metrics.selection import selection_size
from gstarx_bench.models import load_published_checkpoint
from gstarx_bench.runs import RunSpec, read, resolution, run
from gstarx_bench.runs.rows import TaskResult
from gstarx_bench.runs.store import open_store

_TURNS = 9


def main() -> None:
    if (files := mutag_files()) is None:
        return
    data, checkpoint = map(str, files)
    torch.set_num_threads(1)
    spec = RunSpec(
        dataset={"name": "mutag", "root": data},
        model=checkpoint,
        explainer="gstarx_published",
        split="all",
        baseline="test",
    )
    folder = Path(tempfile.mkdtemp())
    try:
        _overhead(spec, data, checkpoint, folder)
        _large_store(spec, folder / "large")
    finally:
        shutil.rmtree(folder)


def _overhead(spec: RunSpec, data: str, checkpoint: str, folder: Path) -> None:
    turns = []
    for turn in range(-1, _TURNS):
        sides = [
            lambda: _plain(data, checkpoint),
            lambda at=turn: run(spec, folder / f"store{at}", workers=1, progress=True),
        ]
        took = {side: _timed(sides[side]) for side in ((0, 1) if turn % 2 else (1, 0))}
        if turn >= 0:
            turns.append([took[0], took[1]])
    times = np.array(turns)  # turn, side, wall or CPU
    (_, plain), (_, whole) = np.median(times, axis=0)
    print(
        f"CPU ms per molecule: plain {1e3 * plain / 188:.2f}, run {1e3 * whole / 188:.2f}; medians "
        f"of {_TURNS} turns"
    )
    wall, cpu = np.median(times[:, 1] / times[:, 0], axis=0) - 1
    print(f"overhead, median over the turns: CPU {cpu:+.1%}, wall {wall:+.1%}")


def _timed(call: Callable[[], object]) -> tuple[float, float]:
    """Wall and CPU seconds."""
    start, cpu = time.perf_counter(), time.process_time()
    call()
    return time.perf_counter() - start, time.process_time() - cpu


def _plain(data: str, checkpoint: str) -> list:
    dataset = datasets.load("mutag", data)
    model = load_published_checkpoint(checkpoint)
    baseline = expected_output(model, dataset.split("test"))
    explainer = create("gstarx_published", dataset="mutag", baseline=baseline)
    rows = []
    for position, graph in enumerate(dataset):
        found = explainer.explain(model, graph, seed=position)
        sizes = [selection_size(graph.num_nodes, level) for level in SPARSITIES]
        sets = [found.select(size=s, rule=rule) for rule in ("top", "positive") for s in sizes]
        rows.append((found, Judge(model).many([graph], [sets])))
    return rows


def _large_store(spec: RunSpec, folder: Path, rows: int = 100_000) -> None:
    resolved = resolution.resolve(spec)
    task = resolved.task(None)
    lines = [task.run(at, resolved.graph(at)).row for at in resolved.positions]
    ends = [b'"graph":%d,' % at for at in resolved.positions]
    me = psutil.Process()
    with open_store(folder) as store:
        memory = []
        start, cpu = time.perf_counter(), time.process_time()
        for at in range(rows):
            kind = at % len(lines)
            line = lines[kind].replace(ends[kind], b'"graph":%d,' % at)
            store.append(resolved.run, TaskResult(at, False, line))
            if at % (rows // 4) == rows // 4 - 1:
                memory.append(me.memory_info().rss >> 20)
        spent, cpu = time.perf_counter() - start, time.process_time() - cpu
    size = (folder / "rows.sqlite").stat().st_size
    print(
        f"\n{rows:,} rows written in {spent:.0f} s, {1e6 * cpu / rows:.0f} us of CPU each, "
        f"{size / rows:.0f} bytes each; memory after each quarter "
        f"{', '.join(map(str, memory))} MB"
    )
    start = time.perf_counter()
    with open_store(folder) as store:
        statuses = store.statuses(resolved.run, rows)
    print(
        f"opened and seen what is left ({int((statuses == 0).sum())}) in "
        f"{time.perf_counter() - start:.2f} s"
    )
    start = time.perf_counter()
    report = run(spec.model_copy(update={"seed": 1}), folder, workers=1, progress=False)
    other = time.perf_counter() - start
    start = time.perf_counter()
    again = run(spec.model_copy(update={"seed": 1}), folder, workers=1, progress=False)
    print(
        f"another run of {report.done} molecules into it: {other:.2f} s; once more, with nothing "
        f"left ({again.done}): {time.perf_counter() - start:.2f} s"
    )
    start = time.perf_counter()
    table = read(folder, columns=["graph", "harmonic_fidelity"])
    print(f"one metric of {table.num_rows:,} rows read in {time.perf_counter() - start:.2f} s")
