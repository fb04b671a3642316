"""Models that crash, hang or return nonsense fail their job, and the server keeps running."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time
from concurrent.futures import Future
from typing import Any

import pytest

from gstarx._internal.processes import Outcome, WorkerDied
from gstarx_explorer import Limits, Settings, workers
from gstarx_explorer.explaining import time_limit
from gstarx_explorer.workers import JobQueue, JobRunner, is_out_of_memory, used_bytes
from tests.cli.commands import environment
from tests.web.odd_models import ODD, SHIPPED
from tests.web.served import MOLECULE, Served, problem, served, wait_for


def assert_still_works(server: Served) -> None:
    job = server.job(explainers=["leave_one_out"])
    assert job["state"] == "done"
    assert job["results"][0]["error"] is None


@pytest.mark.parametrize(
    ("model", "code", "words"),
    [
        ("dies", "crashed", "exit code 7"),
        ("segfaults", "crashed", "signal 11"),
        ("hoards", "failed", "memory"),
        ("exits", "failed", "SystemExit"),
        ("stumbles", "failed", "lost (a file)"),
        ("nan", "failed", "finite"),
    ],
)
def test_a_model_that_fails(server: Served, model: str, code: str, words: str) -> None:
    before = set(server.service.pids)
    job = server.job(model)
    assert job["state"] == "failed"
    assert job["error"]["code"] == code
    assert words in job["error"]["message"]
    assert "/" not in job["error"]["message"]
    assert_still_works(server)
    if model in ("dies", "segfaults", "hoards"):
        # the other worker may have done that job before the new one has come up
        wait_for(lambda: len(set(server.service.pids) - before) == 1)
    else:
        assert set(server.service.pids) == before, "the process survives"


def test_a_job_ends_when_it_runs_out_of_time() -> None:
    settings = Settings(models=(*SHIPPED, *ODD), limits=Limits(seconds=3.0))
    with served(settings) as server:
        ids = [server.start(model).json()["id"] for model in ("dawdles", "deaf")]
        for id in ids:
            job = server.ended(id)
            assert job["error"]["code"] == "timeout"
            assert "3 s" in job["error"]["message"]
            # far less than the model would sleep
            assert 3 <= job["seconds"] < 60
        # a busy machine may take longer once
        wait_for(lambda: server.job(explainers=["random"])["state"] == "done")


@pytest.mark.parametrize("model", ["dawdles", "deaf"])
def test_a_running_job_is_canceled_within_seconds(server: Served, model: str) -> None:
    before = set(server.service.pids)
    id = server.start(model).json()["id"]
    wait_for(lambda: server.state(id) == "running")
    start = time.monotonic()
    job = server.client.delete(f"/jobs/{id}").json()
    assert job["state"] == "canceled"
    events = list(server.events(id))
    assert time.monotonic() - start < 5
    assert events[-1]["state"] == "canceled"
    assert_still_works(server)
    if model == "dawdles":
        assert set(server.service.pids) == before, "a worker that listens need not be replaced"
    assert server.client.delete(f"/jobs/{id}").json()["state"] == "canceled"


def test_a_queued_job_is_canceled_before_it_starts(server: Served) -> None:
    busy = [server.start("dawdles").json()["id"] for _ in range(2)]
    for id in busy:
        wait_for(lambda id=id: server.state(id) == "running")
    first, second = (server.start(explainers=["random"]).json() for _ in range(2))
    assert (first["position"], second["position"]) == (0, 1)
    assert server.client.delete(f"/jobs/{first['id']}").json()["state"] == "canceled"
    assert server.client.get(f"/jobs/{second['id']}").json()["position"] == 0
    for id in busy:
        server.client.delete(f"/jobs/{id}")
    assert server.ended(second["id"])["state"] == "done"
    assert server.client.get(f"/jobs/{first['id']}").json()["subject"] is None


def test_a_full_queue_refuses_further_jobs(server: Served) -> None:
    busy = [server.start("dawdles").json()["id"] for _ in range(2)]
    for id in busy:
        wait_for(lambda id=id: server.state(id) == "running")
    waiting = [server.start("dawdles").json()["id"] for _ in range(3)]
    assert "3 jobs are waiting" in problem(server.start(), 429, "busy")["message"]
    for id in (*waiting, *busy):
        server.client.delete(f"/jobs/{id}")
    assert_still_works(server)


def test_a_query_that_kills_its_worker(server: Served) -> None:
    request = {"model": "dies", "input": {"smiles": MOLECULE}, "nodes": [0]}
    problem(server.client.post("/score", json=request), 503, "unavailable")
    good = {**request, "model": "nitro"}
    wait_for(lambda: server.client.post("/score", json=good).status_code == 200)
    assert_still_works(server)


@pytest.mark.skipif(not used_bytes(), reason="this system does not limit the memory of a process")
def test_what_takes_too_much_memory_is_refused_and_the_processes_are_replaced(
    server: Served,
) -> None:
    # a worker of an earlier test may be about to be replaced: both have to take a job first
    busy = [server.start("dawdles").json()["id"] for _ in range(2)]
    for id in busy:
        wait_for(lambda id=id: server.state(id) == "running")
    for id in busy:
        server.client.delete(f"/jobs/{id}")
    assert_still_works(server)
    before = set(server.service.pids)
    request = {"model": "eats", "input": {"smiles": MOLECULE}, "nodes": [0]}
    id = server.start("eats").json()["id"]
    refused = problem(server.client.post("/score", json=request), 422, "failed")
    for error in (server.ended(id)["error"], refused):
        assert error["code"] == "failed"
        assert "a job may use 1.0 GB, which is not enough memory" in error["message"]
    good = {**request, "model": "nitro"}
    wait_for(lambda: server.client.post("/score", json=good).status_code == 200, seconds=60)
    assert_still_works(server)
    # one for jobs and the one for queries
    wait_for(lambda: len(set(server.service.pids) - before) == 2)


def test_a_model_that_cannot_be_loaded_is_listed_with_its_problem(server: Served) -> None:
    models = {model["name"]: model for model in server.about()["models"]}
    assert "exit code 9" in models["deadly"]["problem"]
    assert models["nitro"]["problem"] is None
    problem(server.start("deadly"), 422, "no_model")
    assert_still_works(server)


def test_a_worker_that_dies_in_its_warm_up_is_started_without_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    started = []

    class FakeWorker:
        def __init__(self, load: Any, role: str, settings: Settings, warm: bool, fork: bool):
            started.append(warm)
            self.alive = not warm
            self.ready: Future[Outcome] = Future()
            self.ready.set_result(Outcome(error=WorkerDied("so it was") if warm else None))

        def stop(self) -> None:
            pass

    async def script() -> None:
        runner = JobRunner(Settings(), JobQueue(Limits()))
        await runner.seat()
        assert runner.ready.is_set()

    monkeypatch.setattr(workers, "Worker", FakeWorker)
    monkeypatch.setattr(workers, "_MIN_PAUSE", 0.0)
    asyncio.run(script())
    assert started == [True, False]


def test_which_errors_mean_that_memory_ran_out() -> None:
    words = "DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes"
    errors = (MemoryError(), RuntimeError(words), RuntimeError("std::bad_alloc"))
    assert all(map(is_out_of_memory, errors))
    assert not is_out_of_memory(ValueError("no such class"))


PROGRAM = """
import numpy as np
from gstarx_explorer.workers import MEMORY
loaded = np.ones(150 << 20, dtype=np.uint8)
with MEMORY.limited(100 << 20):
    used = np.ones(70 << 20, dtype=np.uint8)
    try:
        more = np.ones(70 << 20, dtype=np.uint8)
    except MemoryError:
        del used
    else:
        raise AssertionError
assert not MEMORY.used_up
more = np.ones(150 << 20, dtype=np.uint8)
with MEMORY.limited(100 << 20):
    kept = np.ones(70 << 20, dtype=np.uint8)
assert MEMORY.used_up, "more than half"
print(MEMORY.problem())
"""


@pytest.mark.skipif(not used_bytes(), reason="this system does not limit the memory of a process")
def test_a_process_cannot_exceed_its_limit() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        env=environment(),
        check=True,
    )
    assert "a job may use 0.1 GB, which is not enough memory" in done.stdout


def pause(seconds: float) -> None:
    """Wait in small steps, between which an interrupt is noticed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="this system has no alarm")
def test_a_part_that_takes_too_long_ends_and_the_job_continues() -> None:
    done = []
    with time_limit(0.05):
        done.append(1)
        pause(10)
        done.append(2)
    done.append(3)
    with time_limit(10):
        done.append(4)
    pause(0.02)
    assert done == [1, 3, 4]
