"""Runs that are killed and stores that are damaged: what it costs, and that nothing wrong is read.

A run with two workers is killed with signal 9 at random times, the driver and a worker in turns,
and started again until it is done. Then bits of its files are flipped, one at a time. Its rows are
compared with those of a run that nothing happened to. Last, a store of many rows: how fast they are
written and read, and how long it takes to see what is left.
"""

from __future__ import annotations

import logging
import multiprocessing
import random
import shutil
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import psutil

from gstarx.models import shipped_path
from gstarx_bench.runs import VOLATILE, RunSpec, read, run
from gstarx_bench.runs.rows import TaskResult
from gstarx_bench.runs.store import Stored, open_store

KILLS, FLIPS, GRAPHS, ROWS = 60, 200, 400, 20_000


def main() -> None:
    logging.disable(logging.WARNING)
    spec = RunSpec(
        dataset="nitro",
        model=str(shipped_path("nitro-gcn")),
        explainer="leave_one_out",
        split="all",
        graphs=range(GRAPHS),
    )
    folder = Path(tempfile.mkdtemp())
    try:
        name = run(spec, folder / "whole", workers=1, progress=False).run
        right = rows_of(folder / "whole")
        kill(spec, folder / "killed", right)
        flip(folder / "killed", folder / "flipped", right)
        many(folder / "whole", folder / "many", name)
    finally:
        shutil.rmtree(folder)


def rows_of(store: Path) -> dict[int, dict[str, object]]:
    rows = read(store).drop_columns(list(VOLATILE)).to_pylist()
    assert len({row["graph"] for row in rows}) == len(rows), "rows are doubled"
    return {row["graph"]: row for row in rows}


def kill(spec: RunSpec, store: Path, right: dict[int, dict[str, object]]) -> None:
    draw, kills, lost, different = random.Random(0), [0, 0], 0, 0
    before: dict[int, dict[str, object]] = {}
    while sum(kills) < KILLS:
        if len(before) == len(right):
            shutil.rmtree(store)
            before = {}
        options = {"workers": 2, "progress": False}
        process = multiprocessing.get_context("fork").Process(
            target=run, args=(spec, store), kwargs=options
        )
        process.start()
        driver, workers = psutil.Process(process.pid), []
        while process.is_alive() and len(workers) < 2:
            with suppress(psutil.Error):
                workers = driver.children()
            time.sleep(0.01)
        time.sleep(draw.uniform(0.0, 1.5))
        if sum(kills) % 2 and workers:
            with suppress(psutil.Error):  # the run has ended
                draw.choice(workers).kill()
                kills[1] += 1
            time.sleep(draw.uniform(0.0, 0.5))
        if process.is_alive():
            process.kill()
            kills[0] += 1
        process.join()
        psutil.wait_procs(workers, timeout=10)
        now = rows_of(store) if (store / "store.json").exists() else {}
        lost += len(before.keys() - now.keys())
        different += sum(row != right[graph] for graph, row in now.items())
        before = now
    start = time.perf_counter()
    report = run(spec, store, workers=2, progress=False)
    resumed = time.perf_counter() - start
    assert rows_of(store) == right
    print(
        f"{kills[0]} kills of the driver, {kills[1]} of a worker: {lost} rows lost, {different} "
        f"different; the last {report.done} of {report.graphs} rows in {resumed:.1f} s"
    )


def flip(store: Path, damaged: Path, right: dict[int, dict[str, object]]) -> None:
    draw, wrong, lost, hit = random.Random(1), 0, 0, 0
    for _ in range(FLIPS):
        shutil.copytree(store, damaged)
        content = bytearray((damaged / "rows.sqlite").read_bytes())
        content[draw.randrange(len(content))] ^= 1 << draw.randrange(8)
        (damaged / "rows.sqlite").write_bytes(content)
        found = rows_of(damaged)
        wrong += sum(row != right[graph] for graph, row in found.items())
        lost += len(right) - len(found)
        hit += len(right) > len(found)
        shutil.rmtree(damaged)
    print(f"{FLIPS} flipped bits: {wrong} wrong rows read, {lost} rows lost by {hit} of them")


def many(whole: Path, store: Path, name: str) -> None:
    lines = [row.content for row in Stored(whole, name)]
    start = time.perf_counter()
    with open_store(store) as opened:
        for at in range(ROWS):
            opened.append(name, TaskResult(at, False, lines[at % len(lines)]))
    wrote = time.perf_counter()
    table = read(store)
    everything = time.perf_counter()
    read(store, columns=["graph", "error"])
    columns = time.perf_counter()
    with open_store(store) as opened:
        opened.statuses(name, ROWS)
    seen = time.perf_counter()
    size = (store / "rows.sqlite").stat().st_size
    print(
        f"{ROWS:,} rows: {ROWS / (wrote - start):,.0f} written per second, {size / ROWS:,.0f} "
        f"bytes each; {table.num_rows / (everything - wrote):,.0f} read per second, two columns of "
        f"{ROWS / (columns - everything):,.0f}; what is left is known in {seen - columns:.2f} s"
    )


if __name__ == "__main__":
    main()
