"""Runs in worker processes have the same rows, and lose nothing when a process is killed."""

from __future__ import annotations

import multiprocessing
import os
import random
import signal
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import settings

from gstarx._internal.processes import Worker, can_fork
from gstarx.models import GCN, load_model, save_model
from gstarx_bench.runs import (
    ChangedInput,
    ModelSpec,
    RunSpec,
    local,
    read,
    resume,
    run,
    write_spec,
)
from gstarx_bench.runs import store as stores
from gstarx_bench.runs.local import explain_locally
from gstarx_bench.runs.resolution import resolve
from gstarx_bench.runs.store import open_store
from tests.runs.same_rows import assert_same_rows

Make = Callable[..., RunSpec]

#: Written to the disk often, so that a kill hits that too.
PROGRAM = """
import sys, traceback
from gstarx_bench.runs import run, store
store.SYNC_SECONDS = 0.05
try:
    run(sys.argv[1], sys.argv[2], workers=int(sys.argv[3]), progress=False)
except KeyboardInterrupt:
    traceback.print_exc()
    # Python would end by the signal, but for torch, which imports tabulate at exit if that is there
    sys.exit(130)
"""


def soak() -> bool:
    return settings.default is settings.get_profile("soak")


def started(spec: Path, store: Path, workers: int, plugin: Path) -> subprocess.Popen[bytes]:
    """A run in a process as a user starts it."""
    path = os.pathsep.join([str(plugin), *filter(None, sys.path)])
    return subprocess.Popen(
        [sys.executable, "-c", PROGRAM, str(spec), str(store), str(workers)],
        env={**os.environ, "PYTHONPATH": path},
        stderr=subprocess.PIPE,
    )


def copied(spec: Path, store: Path, workers: int) -> Any:
    """A run in a copy of this process, where systems can copy one, which is faster."""
    context: Any = multiprocessing.get_context("fork" if can_fork() else "spawn")
    process = context.Process(target=_run, args=(spec, store, workers))
    with warnings.catch_warnings():
        # Python 3.12 and later: threads of this process do not exist in the other
        warnings.filterwarnings("ignore", message=".*use of fork", category=DeprecationWarning)
        process.start()
    return process


def _run(spec: Path, store: Path, workers: int) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    stores.SYNC_SECONDS = 0.05
    run(spec, store, workers=workers, progress=False)


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.005)


def rows_in(store: Path) -> int:
    return read(store, columns=["graph"]).num_rows if (store / "store.json").exists() else 0


def test_killed_at_random_moments_and_resumed(
    spec: Make, plugin: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = 10 if soak() else 3
    explained = tmp_path / "explained"
    monkeypatch.setenv("COUNTED", str(explained))
    store, count, unfinished = tmp_path / "store", 20 * kills, 0
    run_spec = spec("slow", count)
    write_spec(run_spec, tmp_path / "run.toml")
    moments = random.Random(0)
    before = 0
    for number in range(kills):
        workers = 2 if number == 1 else 1
        process = copied(tmp_path / "run.toml", store, workers)
        wait_for(lambda: rows_in(store) > before or not process.is_alive())  # noqa: B023
        time.sleep(moments.uniform(0, 0.4))
        assert process.is_alive()
        children = psutil.Process(process.pid).children(recursive=True)
        process.kill()
        process.join()
        gone, alive = psutil.wait_procs(children, timeout=10)
        assert not alive, "workers outlive the run"
        assert len(gone) == (2 if workers == 2 else 0)
        # the current graph, and for worker processes one whose row is being sent
        unfinished += 1 if workers == 1 else 4
        assert rows_in(store) >= before
        before = rows_in(store)
    assert 0 < before < count
    monkeypatch.setenv("HURRIED", "1")
    (report,) = resume(store, workers=1, progress=False)
    assert report.found == before
    assert report.found + report.done == count
    assert explained.stat().st_size <= count + unfinished
    monkeypatch.delenv("COUNTED")
    run(run_spec, tmp_path / "at once", workers=1, progress=False)
    assert_same_rows(store, tmp_path / "at once")


def assert_interrupted(store: Path, children: list[psutil.Process]) -> None:
    assert not psutil.wait_procs(children, timeout=5)[1]
    before = rows_in(store)
    assert 3 < before < 500
    with open_store(store) as opened:
        (request,) = opened.requests()
        assert (opened.statuses(request["name"][:32], 500) > 0).sum() == before


def test_an_interrupt_leaves_rows_and_no_workers(spec: Make, plugin: Path, tmp_path: Path) -> None:
    write_spec(spec("slow", 500), tmp_path / "run.toml")
    process = started(tmp_path / "run.toml", tmp_path / "store", 2, plugin)
    wait_for(lambda: rows_in(tmp_path / "store") > 3 or process.poll() is not None)
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == 2
    process.send_signal(signal.SIGINT)
    stderr = process.communicate(timeout=60)[1]
    assert process.returncode == 130
    assert stderr.rstrip().endswith(b"KeyboardInterrupt")
    assert stderr.count(b"Traceback") == 1
    assert_interrupted(tmp_path / "store", children)


def test_being_terminated_leaves_rows_and_no_workers(
    spec: Make, plugin: Path, tmp_path: Path
) -> None:
    write_spec(spec("slow", 500), tmp_path / "run.toml")
    process = copied(tmp_path / "run.toml", tmp_path / "store", 2)
    wait_for(lambda: rows_in(tmp_path / "store") > 3 or not process.is_alive())
    children = psutil.Process(process.pid).children(recursive=True)
    assert len(children) == 2
    process.terminate()
    process.join(60)
    assert process.exitcode == -signal.SIGTERM
    assert_interrupted(tmp_path / "store", children)


def test_two_workers_give_the_same_rows_as_one(
    spec: Make, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    run_spec = spec("gstarx_published", 24, baseline="test", seed=3)
    run(run_spec, tmp_path / "one", workers=1, progress=False)
    report = run(run_spec, tmp_path / "two", workers=2, progress=True)
    assert (report.done, report.failed) == (24, 0)
    assert_same_rows(tmp_path / "one", tmp_path / "two")
    assert "24/24" in capfd.readouterr().err


def test_a_graph_that_crashes_its_worker_is_a_failure(
    spec: Make, plugin: Path, tmp_path: Path
) -> None:
    resolved = resolve(spec())
    sizes = [resolved.graph(at).num_nodes for at in range(6)]
    deadly = {"name": "deadly", "options": {"nodes": sizes[3]}}
    report = run(spec(deadly, 6), tmp_path, workers=2, progress=False)
    errors = read(tmp_path).column("error").to_pylist()
    for size, error in zip(sizes, errors, strict=True):
        if size == sizes[3]:
            assert "WorkerLost: 2 worker processes" in error
            assert "memory runs out" in error
        else:
            assert error is None
    assert report.failed == 1


def load_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers load what they need, although they are copies of this process, which is faster."""

    def make(*arguments: Any, fork: bool) -> Worker:
        assert not fork
        return Worker(*arguments, fork=can_fork())

    monkeypatch.setattr(local, "Worker", make)
    monkeypatch.setattr(local, "can_fork", lambda: False)


def test_weights_that_change_before_a_worker_reads_them(
    spec: Make, weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = tmp_path / "own.safetensors"
    save_model(own, load_model(weights)[0])
    resolved = resolve(spec().model_copy(update={"model": ModelSpec(weights=str(own))}))
    save_model(own, GCN(8, 8, 2))
    load_again(monkeypatch)
    with pytest.raises(ChangedInput, match=r"own\.safetensors changed"):
        list(explain_locally(resolved, None, range(4), workers=2))


def test_workers_that_load_again(
    spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(spec("gstarx"), tmp_path / "one", workers=1, progress=False)
    load_again(monkeypatch)
    run(spec("gstarx"), tmp_path / "two", workers=2, progress=False)
    assert_same_rows(tmp_path / "one", tmp_path / "two")


def test_workers_that_inherit_nothing(
    spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(spec("gstarx", 1), tmp_path / "one", workers=1, progress=False)
    monkeypatch.setattr(local, "can_fork", lambda: False)
    # one graph needs one worker, whose imports take long
    run(spec("gstarx", 1), tmp_path / "two", workers=2, progress=False)
    assert_same_rows(tmp_path / "one", tmp_path / "two")
