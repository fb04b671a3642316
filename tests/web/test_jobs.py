"""Jobs and their queue, without any process."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Any

import pytest

from gstarx.web import Limits, jobs
from gstarx.web.jobs import Job, JobQueue
from gstarx.web.messages import Answer, Problem, Refused
from gstarx.web.schemas import JobEntry

LIMITS = Limits(queue=2, kept_jobs=2)


def told(events: list[str]) -> list[dict[str, Any]]:
    parts = [event.split("\n") for event in events]
    return [json.loads(lines[1].removeprefix("data: ")) for lines in parts if len(lines) > 3]


async def finished(book: JobQueue) -> Job:
    await book.add({})
    job = await book.take()
    job.heard(Answer(1, "done", "null"))
    return job


def test_first_come_first_served() -> None:
    async def script() -> None:
        book = JobQueue(LIMITS)
        first, second = await book.add({"a": 1}), await book.add({"a": 2})
        assert (first.position, second.position) == (0, 1)
        with pytest.raises(Refused, match="2 jobs wait"):
            await book.add({})
        assert await book.take() is first
        assert first.state == "running"
        assert second.position == 0
        third = await book.add({})
        book.cancel(second)
        assert second.state == "cancelled"
        assert third.position == 0
        assert await book.take() is third

    asyncio.run(script())


def test_somebody_who_waits_gets_the_next_one() -> None:
    async def script() -> None:
        book = JobQueue(LIMITS)
        waiting = asyncio.create_task(book.take())
        await asyncio.sleep(0)
        job = await book.add({})
        assert await waiting is job

    asyncio.run(script())


def test_old_and_many_and_large_jobs_are_forgotten() -> None:
    async def script(limits: Limits) -> list[bool]:
        book = JobQueue(limits)
        kept = [await finished(book) for _ in range(4)]
        there = []
        for job in kept:
            try:
                there.append(book.get(job.id) is job)
            except Refused:
                there.append(False)
        return there

    assert asyncio.run(script(LIMITS)) == [False, False, True, True]
    assert asyncio.run(script(replace(LIMITS, kept_seconds=-1.0))) == [False] * 4
    assert asyncio.run(script(replace(LIMITS, kept_bytes=1))) == [False] * 4


def test_jobs_that_go_on_are_never_forgotten() -> None:
    async def script() -> None:
        book = JobQueue(replace(LIMITS, kept_seconds=-1.0, kept_bytes=0))
        waiting, running = await book.add({}), await book.add({})
        await book.take()
        book.forget()
        assert book.get(waiting.id)
        assert book.get(running.id)

    asyncio.run(script())


def test_what_is_said_after_the_end_does_not_count() -> None:
    job = Job({})
    job.end("cancelled")
    job.end("failed", Problem("failed", "too late"))
    assert job.state == "cancelled"
    assert job.error is None


def test_a_job_as_json() -> None:
    job = Job({})
    job.began()
    curves = {name: [0.5] for name in ("fidelity", "inverse_fidelity", "harmonic_fidelity")}
    best = {"selections": [[]], "metrics": curves, "optimal": [True], "evaluations": 3}
    job.heard(Answer(1, "best", json.dumps(best)))
    job.heard(Answer(1, "progress", '{"done":1,"total":2,"doing":"x"}'))
    job.heard(Answer(1, "refused", '{"code":"failed","message":"m","field":null}'))
    found = json.loads(job.as_json())
    JobEntry.model_validate(found)
    assert found["best"] == best
    assert found["state"] == "failed"
    assert found["error"]["message"] == "m"


def test_events_while_they_happen_and_signs_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jobs, "_HEARTBEAT", 0.01)

    async def script() -> list[str]:
        job = Job({})
        heard: list[str] = []

        async def listen() -> None:
            heard.extend([event async for event in job.events()])

        listening = asyncio.create_task(listen())
        await asyncio.sleep(0.05)
        job.began()
        await asyncio.sleep(0.05)
        job.end("done")
        await listening
        return heard

    heard = asyncio.run(script())
    assert ": still here\n\n" in heard
    assert heard[-1] == "event: end\ndata: {}\n\n"
    assert [event["state"] for event in told(heard)[:-1]] == ["running", "done"]


def test_only_so_many_may_listen() -> None:
    async def script() -> None:
        book = JobQueue(replace(LIMITS, listeners=1))
        job = await finished(book)
        stream = book.listen(job.id)
        await anext(stream)
        with pytest.raises(Refused, match="too many listen"):
            book.listen(job.id)
        async for _ in stream:
            pass
        assert [event async for event in book.listen(job.id)]

    asyncio.run(script())


def test_when_the_server_closes_nobody_waits() -> None:
    async def script() -> list[str]:
        book = JobQueue(LIMITS)
        waiting, running = await book.add({}), await book.add({})
        await book.take()
        book.close()
        return [waiting.state, running.state]

    assert asyncio.run(script()) == ["cancelled", "cancelled"]


@pytest.mark.parametrize("line", [b"", b"1 done", b"1 done {}", b"x done {}\n", b"\xff\n"])
def test_half_a_line_is_no_answer(line: bytes) -> None:
    with pytest.raises(ValueError):
        Answer.decoded(line)
