"""Models that crash, hang or return nonsense fail their job, and the server keeps running."""

from __future__ import annotations

import asyncio
import time

import pytest

from gstarx_explorer import Limits, Settings, processes
from gstarx_explorer.jobs import JobQueue
from gstarx_explorer.memory import used_bytes
from gstarx_explorer.messages import Answer
from gstarx_explorer.processes import JobRunner, Worker
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
    roles = []

    class FakeWorker(Worker):
        def __init__(self, first_answer: Answer | None) -> None:
            self.first_answer = first_answer

        alive = True

        async def receive(self) -> Answer | None:
            return self.first_answer

        async def stop(self) -> None:
            pass

    async def start(role: str, settings: Settings) -> Worker:
        roles.append(role)
        return FakeWorker(Answer(0, "ready", "null") if role == "cold explainer" else None)

    async def script() -> None:
        runner = JobRunner(Settings(), JobQueue(Limits()))
        await runner._ready_worker()
        assert runner.ready.is_set()

    monkeypatch.setattr(Worker, "start", start)
    monkeypatch.setattr(processes, "_MIN_PAUSE", 0.0)
    asyncio.run(script())
    assert roles == ["explainer", "cold explainer"]
