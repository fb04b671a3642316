"""Workers: jobs with limits, deaths that cost one job, and workers that cannot start."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch  # noqa: F401  (inherited by workers, which would load it one by one)

from gstarx._internal import processes
from gstarx._internal.processes import (
    MAX_STARTS,
    Canceled,
    Worker,
    WorkerDied,
    can_fork,
    send_message,
    unordered_map,
)

pytestmark = pytest.mark.skipif(not can_fork(), reason="processes cannot be forked here")


def act(item: Any) -> Any:
    """What a job asks for."""
    match item:
        case "sleep":
            send_message("awake")
            time.sleep(60)
        case "die":
            os.kill(os.getpid(), signal.SIGKILL)
        case "exit":
            sys.exit(4)
        case "much":
            return len(bytearray(3 << 30))
        case "messages":
            for number in range(100):
                send_message(number)
    return item


def setup(why: str = "") -> Callable[[Any], Any]:
    if why:
        raise ValueError(why)
    return act


@pytest.mark.parametrize("fork", [True, False])
def test_one_worker_does_many_jobs(fork: bool) -> None:
    worker = Worker(setup, fork=fork, memory=1 << 30)
    messages: list[Any] = []
    try:
        assert worker.ready.result().get() is None
        job = worker.submit("messages", on_message=messages.append)
        assert job.result().get() == "messages"
        assert messages == list(range(100))
        with pytest.raises(RuntimeError, match="SystemExit: 4"):
            worker.submit("exit").result().get()
        with pytest.raises(Exception, match="pickle"):
            worker.submit(lambda: 0).result().get()
        if sys.platform == "linux":
            with pytest.raises(MemoryError):
                worker.submit("much").result().get()
        assert [worker.submit(at).result().get() for at in range(3)] == [0, 1, 2]
    finally:
        worker.stop()
    assert worker.pid is not None
    assert not psutil.pid_exists(worker.pid)


def test_a_canceled_job_keeps_its_process() -> None:
    worker, messages = Worker(setup), list[str]()
    job = worker.submit("sleep", on_message=messages.append)
    while not messages:
        time.sleep(0.01)
    job.cancel()
    assert isinstance(job.result(timeout=5).error, Canceled)
    assert worker.submit("next").result().get() == "next"
    worker.stop()


def deaf(item: Any) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    send_message("deaf")
    time.sleep(60)


@pytest.mark.parametrize(
    ("way", "error"),
    [("cancel", Canceled), ("timeout", TimeoutError), ("kill", WorkerDied), ("stop", WorkerDied)],
)
def test_a_process_that_is_ended(way: str, error: type[Exception]) -> None:
    worker, messages = Worker(lambda: deaf), list[str]()
    job = worker.submit(0, timeout=0.5 if way == "timeout" else None, on_message=messages.append)
    behind = worker.submit(0)
    while not messages:
        time.sleep(0.01)
    assert worker.pid is not None
    if way == "cancel":
        job.cancel()
    elif way == "kill":
        os.kill(worker.pid, signal.SIGKILL)
    elif way == "stop":
        worker.stop()
    assert isinstance(job.result(timeout=10).error, error)
    assert isinstance(behind.result(timeout=10).error, WorkerDied)
    assert not worker.alive
    assert isinstance(worker.submit(0).result(timeout=10).error, WorkerDied)
    worker.stop()


def test_a_setup_that_fails() -> None:
    worker = Worker(setup, "no model")
    for job in (worker.ready, worker.submit(1)):
        with pytest.raises(ValueError, match="no model"):
            job.result().get()
    worker.stop()


class Crew:
    """Workers, numbered from 0, of which some crash or fail at the start."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.started = folder, 0

    def make(self, dead: Any, failing: Any, limit: int, deadly: int, unstarted: Any) -> Worker:
        number = self.started
        self.started += 1
        if number in unstarted:
            raise BlockingIOError(11, "Resource temporarily unavailable")

        def begin() -> Callable[[int], int]:
            if number in dead:
                os.kill(os.getpid(), signal.SIGKILL)
            if number in failing:
                raise MemoryError("no room")
            return act

        done = []

        def act(item: int) -> int:
            done.append(item)
            if len(done) > limit:
                os._exit(3)
            if item == deadly and not (self.folder / "deadly").exists():
                (self.folder / "deadly").touch()
                time.sleep(0.3)
                os._exit(3)
            time.sleep(0.01)
            return number

        return Worker(begin)

    def results(
        self,
        count: int,
        dead: Any = (),
        failing: Any = (),
        limit: int = 99,
        deadly: int = -1,
        unstarted: Any = (),
        workers: int = 2,
    ) -> dict[int, int]:
        make = partial(self.make, dead, failing, limit, deadly, unstarted)
        found = {}
        try:
            for at, outcome in unordered_map(make, range(count), workers, attempts=9):
                assert at not in found
                found[at] = outcome.get()
        except RuntimeError as error:
            error.add_note(f"{len(found)} were finished")
            raise
        return found


@pytest.fixture
def crew(tmp_path: Path) -> Crew:
    return Crew(tmp_path)


@pytest.mark.parametrize(
    "options",
    [
        {"dead": {0}},
        {"failing": {1, 2}},
        # each does one item and every other one crashes: many failures, but never two in a row
        {"dead": range(1, 99, 2), "limit": 1},
        # one is left
        {"dead": range(1, 99)},
        {"unstarted": range(1, 99), "workers": 4},
        # one crashes at its item when the other one has done the rest; no third one starts
        {"dead": range(2, 99), "deadly": 0},
        {"count": 1, "deadly": 0},
    ],
    ids=str,
)
def test_items_are_done_although_workers_crash(crew: Crew, options: dict[str, Any]) -> None:
    count = options.setdefault("count", 4 * MAX_STARTS)
    assert crew.results(**options).keys() == set(range(count))


@pytest.mark.parametrize(
    ("way", "message"),
    [("dead", "killed by signal 9"), ("failing", "MemoryError: no room"), ("unstarted", "11")],
)
def test_workers_that_can_never_start(crew: Crew, way: str, message: str) -> None:
    with pytest.raises(RuntimeError, match=rf"{message}.* in a row.*Finished rows are safe"):
        crew.results(20, **{way: range(99)})
    assert crew.started <= 2 * MAX_STARTS + 1


def test_items_that_were_finished_before_are_kept(crew: Crew) -> None:
    with pytest.raises(RuntimeError, match="Finished rows are safe") as caught:
        crew.results(20, dead=range(2, 99), limit=3)
    assert caught.value.__notes__ == ["6 were finished"]


def test_the_item_that_kills_its_workers_has_their_death() -> None:
    items = ["a", "b", "die", "c", "die"]
    results = dict(unordered_map(partial(Worker, setup), items, 2, attempts=2))
    assert {at: one.result for at, one in results.items() if not one.error} == {
        0: "a",
        1: "b",
        3: "c",
    }
    assert all("killed by signal 9" in str(results[at].error) for at in (2, 4))


def test_nothing_is_left_of_a_map_that_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Worker] = []

    def make() -> Worker:
        made.append(Worker(setup))
        return made[-1]

    results = unordered_map(make, ["a", "sleep", "sleep"], 2)
    assert next(results)[1].get() == "a"
    results.close()
    assert [psutil.pid_exists(worker.pid or 0) for worker in made] == [False, False]
    assert processes.usable_cores() >= 1
