"""Models that crash, hang or talk nonsense fail their job, and the server goes on."""

from __future__ import annotations

import asyncio
import time

import pytest

from gstarx.web import Limits, Settings, processes
from gstarx.web.jobs import JobQueue
from gstarx.web.memory import held
from gstarx.web.messages import Answer
from gstarx.web.processes import JobRunner, Worker
from tests.web.served import MOLECULE, Served, problem, wait_for


def goes_on(server: Served) -> None:
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
    before = set(server.office.pids)
    job = server.job(model)
    assert job["state"] == "failed"
    assert job["error"]["code"] == code
    assert words in job["error"]["message"]
    assert "/" not in job["error"]["message"]
    goes_on(server)
    if model in ("dies", "segfaults", "hoards"):
        # the other worker may have done that job before the new one has come up
        wait_for(lambda: len(set(server.office.pids) - before) == 1)
    else:
        assert set(server.office.pids) == before, "it did not take its process with it"


def test_a_job_ends_when_its_time_is_over(server: Served) -> None:
    ids = [server.start(model).json()["id"] for model in ("dawdles", "deaf")]
    for id in ids:
        job = server.ended(id)
        assert job["error"]["code"] == "timeout"
        assert "15 s" in job["error"]["message"]
        assert 14 < job["seconds"] < 20
    goes_on(server)


@pytest.mark.parametrize("model", ["dawdles", "deaf"])
def test_a_job_is_cancelled_within_a_second_or_so(server: Served, model: str) -> None:
    before = set(server.office.pids)
    id = server.start(model).json()["id"]
    wait_for(lambda: server.state(id) == "running")
    start = time.monotonic()
    job = server.client.delete(f"/jobs/{id}").json()
    assert job["state"] == "cancelled"
    events = list(server.events(id))
    assert time.monotonic() - start < 5
    assert events[-1]["state"] == "cancelled"
    goes_on(server)
    if model == "dawdles":
        assert set(server.office.pids) == before, "a worker that listens need not be replaced"
    assert server.client.delete(f"/jobs/{id}").json()["state"] == "cancelled"


def test_a_job_that_waits_is_cancelled_without_a_trace(server: Served) -> None:
    busy = [server.start("dawdles").json()["id"] for _ in range(2)]
    for id in busy:
        wait_for(lambda id=id: server.state(id) == "running")
    first, second = (server.start(explainers=["random"]).json() for _ in range(2))
    assert (first["position"], second["position"]) == (0, 1)
    assert server.client.delete(f"/jobs/{first['id']}").json()["state"] == "cancelled"
    assert server.client.get(f"/jobs/{second['id']}").json()["position"] == 0
    for id in busy:
        server.client.delete(f"/jobs/{id}")
    assert server.ended(second["id"])["state"] == "done"
    assert server.client.get(f"/jobs/{first['id']}").json()["subject"] is None


def test_the_queue_has_an_end_and_says_so(server: Served) -> None:
    busy = [server.start("dawdles").json()["id"] for _ in range(2)]
    for id in busy:
        wait_for(lambda id=id: server.state(id) == "running")
    waiting = [server.start("dawdles").json()["id"] for _ in range(3)]
    assert "3 jobs wait" in problem(server.start(), 429, "busy")["message"]
    for id in (*waiting, *busy):
        server.client.delete(f"/jobs/{id}")
    goes_on(server)


def test_a_question_that_kills_the_desk(server: Served) -> None:
    asked = {"model": "dies", "input": {"smiles": MOLECULE}, "nodes": [0]}
    problem(server.client.post("/score", json=asked), 503, "unavailable")
    good = {**asked, "model": "nitro"}
    wait_for(lambda: server.client.post("/score", json=good).status_code == 200)
    goes_on(server)


@pytest.mark.skipif(not held(), reason="this system does not hold a process to its memory")
def test_what_takes_too_much_memory_is_refused_and_the_processes_are_replaced(
    server: Served,
) -> None:
    before = set(server.office.pids)
    asked = {"model": "eats", "input": {"smiles": MOLECULE}, "nodes": [0]}
    id = server.start("eats").json()["id"]
    question = problem(server.client.post("/score", json=asked), 422, "failed")
    for found in (server.ended(id)["error"], question):
        assert found["code"] == "failed"
        assert "a job may use 1.0 GB, which is not enough memory" in found["message"]
    good = {**asked, "model": "nitro"}
    wait_for(lambda: server.client.post("/score", json=good).status_code == 200, seconds=60)
    goes_on(server)
    # one for jobs and the one for questions
    wait_for(lambda: len(set(server.office.pids) - before) == 2)


def test_a_model_that_cannot_even_be_loaded_is_listed_with_its_problem(server: Served) -> None:
    found = {one["name"]: one for one in server.about()["models"]}
    assert "exit code 9" in found["deadly"]["problem"]
    assert found["nitro"]["problem"] is None
    problem(server.start("deadly"), 422, "no_model")
    goes_on(server)


def test_a_worker_that_dies_of_its_first_model_is_started_without_trying_any(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    roles = []

    class Made(Worker):
        def __init__(self, says: Answer | None) -> None:
            self.says = says

        alive = True

        async def answer(self) -> Answer | None:
            return self.says

        async def stop(self) -> None:
            pass

    async def started(role: str, settings: Settings) -> Worker:
        roles.append(role)
        return Made(Answer(0, "ready", "null") if role == "cold explainer" else None)

    async def script() -> None:
        lane = JobRunner(Settings(), JobQueue(Limits()))
        await lane._prepared()
        assert lane.ready.is_set()

    monkeypatch.setattr(Worker, "started", started)
    monkeypatch.setattr(processes, "_SHORTEST_PAUSE", 0.0)
    asyncio.run(script())
    assert roles == ["explainer", "cold explainer"]
