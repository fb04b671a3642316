"""Jobs and their queue, without worker processes."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from gstarx_explorer import Kept, Limits, app, workers
from gstarx_explorer.messages import Refused
from gstarx_explorer.workers import Job, JobQueue

LIMITS = Limits(queue=2, kept=Kept(jobs=2))


def parsed(events: list[str]) -> list[dict[str, Any]]:
    parts = [event.split("\n") for event in events]
    return [json.loads(lines[1].removeprefix("data: ")) for lines in parts if len(lines) > 3]


async def finished(job_queue: JobQueue) -> Job:
    await job_queue.add({})
    job = await job_queue.take()
    job.end("done")
    return job


def test_first_come_first_served() -> None:
    async def script() -> None:
        job_queue = JobQueue(LIMITS)
        first, second = await job_queue.add({"a": 1}), await job_queue.add({"a": 2})
        assert (first.position, second.position) == (0, 1)
        with pytest.raises(Refused, match="2 jobs are waiting"):
            await job_queue.add({})
        assert await job_queue.take() is first
        assert first.state == "running"
        assert second.position == 0
        third = await job_queue.add({})
        job_queue.cancel(second)
        assert second.state == "canceled"
        assert third.position == 0
        assert await job_queue.take() is third

    asyncio.run(script())


def test_take_waits_for_the_next_job() -> None:
    async def script() -> None:
        job_queue = JobQueue(LIMITS)
        waiting = asyncio.create_task(job_queue.take())
        await asyncio.sleep(0)
        job = await job_queue.add({})
        assert await waiting is job

    asyncio.run(script())


def test_finished_jobs_are_deleted_by_age_number_and_size() -> None:
    async def script(limits: Limits) -> list[bool]:
        job_queue = JobQueue(limits)
        jobs = [await finished(job_queue) for _ in range(4)]
        kept = []
        for job in jobs:
            try:
                kept.append(job_queue.get(job.id) is job)
            except Refused:
                kept.append(False)
        return kept

    assert asyncio.run(script(LIMITS)) == [False, False, True, True]
    assert asyncio.run(script(replace(LIMITS, kept=Kept(seconds=-1.0)))) == [False] * 4
    assert asyncio.run(script(replace(LIMITS, kept=Kept(bytes=1)))) == [False] * 4


def test_unfinished_jobs_are_never_deleted() -> None:
    async def script() -> None:
        job_queue = JobQueue(replace(LIMITS, kept=Kept(seconds=-1.0, bytes=0)))
        waiting, running = await job_queue.add({}), await job_queue.add({})
        await job_queue.take()
        job_queue.forget()
        assert job_queue.get(waiting.id)
        assert job_queue.get(running.id)

    asyncio.run(script())


def test_only_the_first_end_counts() -> None:
    job = Job({})
    job.end("canceled")
    job.end("failed", Refused("failed", "too late"))
    assert job.state == "canceled"
    assert job.error is None


def test_a_job_as_json() -> None:
    job = Job({})
    job.start()
    curves = {name: [0.5] for name in ("fidelity", "inverse_fidelity", "harmonic_fidelity")}
    best = {"selections": [[]], "metrics": curves, "optimal": [True], "evaluations": 3}
    job.receive("best", json.dumps(best))
    job.receive("progress", '{"done":1,"total":2,"doing":"x"}')
    job.end("failed", Refused("failed", "m"))
    job.receive("progress", '{"done":2,"total":2,"doing":"too late"}')
    entry = json.loads(job.as_json())
    app.Job.model_validate(entry)
    assert entry["progress"] == {"done": 1, "total": 2, "doing": "x"}
    assert entry["best"] == best
    assert entry["state"] == "failed"
    assert entry["error"]["message"] == "m"


def test_events_arrive_at_once_with_heartbeats_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "_HEARTBEAT", 0.01)

    async def script() -> list[str]:
        job = Job({})
        received: list[str] = []

        async def listen() -> None:
            received.extend([event async for event in job.events()])

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0.05)
        job.start()
        await asyncio.sleep(0.05)
        job.end("done")
        await listening
        return received

    events = asyncio.run(script())
    assert ": still here\n\n" in events
    assert events[-1] == "event: end\ndata: {}\n\n"
    assert [event["state"] for event in parsed(events)[:-1]] == ["running", "done"]


def test_the_number_of_listeners_is_limited() -> None:
    async def script() -> None:
        job_queue = JobQueue(replace(LIMITS, listeners=1))
        job = await finished(job_queue)
        stream = job_queue.listen(job.id)
        await anext(stream)
        with pytest.raises(Refused, match="too many event streams"):
            job_queue.listen(job.id)
        async for _ in stream:
            pass
        assert [event async for event in job_queue.listen(job.id)]

    asyncio.run(script())


def test_closing_the_queue_ends_all_jobs() -> None:
    async def script() -> list[str]:
        job_queue = JobQueue(LIMITS)
        waiting, running = await job_queue.add({}), await job_queue.add({})
        await job_queue.take()
        job_queue.close()
        return [waiting.state, running.state]

    assert asyncio.run(script()) == ["canceled", "canceled"]
