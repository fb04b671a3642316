"""Workers that crash before they are ready, played by small programs with the same protocol."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gstarx_bench.runs import RunSpec, local
from gstarx_bench.runs.local import explain_locally
from gstarx_bench.runs.resolution import ResolvedRun, resolve
from gstarx_bench.runs.rows import TaskResult

pytestmark = pytest.mark.usefixtures("loaded_once")

Make = Callable[..., RunSpec]

#: Its number decides how it starts; its graphs decide how it continues.
WORKER = """
import os, signal, sys, time
folder = os.path.dirname(__file__)
number = 0
while True:
    try:
        os.mkdir(f"{folder}/{number}")
        break
    except FileExistsError:
        number += 1
sys.stdin.buffer.readline()
if number in DEAD:
    os.kill(os.getpid(), signal.SIGKILL)
if number in FAILING:
    print('failed "MemoryError: no room"', flush=True)
    sys.exit()
print("ready", flush=True)
for count, line in enumerate(sys.stdin):
    position = int(line)
    while not os.path.isdir(f"{folder}/{WAITED_FOR}"):
        time.sleep(0.01)
    if count == LIMIT:
        os._exit(3)
    if position == DEADLY:
        try:
            os.mkdir(f"{folder}/deadly")
            time.sleep(0.5)
            os._exit(3)
        except FileExistsError:
            pass
    print(f"{position} 0 {number}", flush=True)
"""


@pytest.fixture
def played(spec: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Results of workers, numbered from 0, of which some crash or fail at the start."""
    resolved: ResolvedRun = resolve(spec())

    def play(
        positions: range,
        dead: Any = (),
        failing: Any = (),
        deadly: int = -1,
        limit: int = -1,
        waited_for: int = 0,
        workers: int = 2,
    ) -> list[TaskResult]:
        program = tmp_path / "worker.py"
        rules = (
            f"DEAD, FAILING = {set(dead)}, {set(failing)}\n"
            f"DEADLY, LIMIT, WAITED_FOR = {deadly}, {limit}, {waited_for}\n"
        )
        program.write_text(rules + WORKER)
        start = tmp_path / "python"
        start.write_text(f'#!/bin/sh\nexec "{sys.executable}" -S "{program}"\n')
        start.chmod(0o700)
        monkeypatch.setattr(sys, "executable", str(start))
        results: list[TaskResult] = []
        try:
            results.extend(explain_locally(resolved, None, positions, workers=workers))
        except RuntimeError as error:
            error.add_note(f"{len(results)} were finished")
            raise
        return results

    return play


def positions_of(results: list[TaskResult]) -> list[int]:
    return sorted(result.position for result in results)


@pytest.mark.parametrize("way", ["dead", "failing"])
@pytest.mark.parametrize("numbers", [{0}, {1, 2}])
def test_a_worker_that_crashes_at_the_start_is_replaced(
    played: Callable[..., Any], way: str, numbers: set[int]
) -> None:
    results = played(range(20), **{way: numbers}, waited_for=max(numbers) + 1)
    assert positions_of(results) == list(range(20))


def test_a_worker_that_starts_resets_the_count_of_failures(played: Callable[..., Any]) -> None:
    # each does one graph and every other one crashes: many failures, but never two in a row
    results = played(range(4 * local.MAX_STARTS), dead=range(1, 99, 2), limit=1)
    assert positions_of(results) == list(range(4 * local.MAX_STARTS))


def test_the_others_continue_if_no_new_worker_can_start(played: Callable[..., Any]) -> None:
    results = played(range(20), dead=range(1, 99), waited_for=2 * local.MAX_STARTS)
    assert positions_of(results) == list(range(20))
    assert {result.row for result in results} == {b"0"}


def test_the_graphs_of_a_crashed_worker_go_to_an_idle_one(
    played: Callable[..., Any],
) -> None:
    # one worker crashes at the graph when the other one has done the rest; no third one starts
    assert positions_of(played(range(6), dead=range(2, 99), deadly=0)) == list(range(6))


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("dead", "exited before it was ready, killed by signal 9"),
        ("failing", "could not start: MemoryError: no room"),
    ],
)
def test_workers_that_can_never_start(
    played: Callable[..., Any], tmp_path: Path, way: str, message: str
) -> None:
    with pytest.raises(RuntimeError, match=rf"{message}.* in a row.*Finished rows are safe"):
        played(range(20), **{way: range(99)})
    # two at first, and a replacement for each but the last ones
    started = [path for path in tmp_path.iterdir() if path.name.isdigit()]
    assert len(started) == 2 * local.MAX_STARTS + 1


def test_rows_that_were_finished_before_are_kept(played: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="Finished rows are safe") as caught:
        played(range(20), dead=range(2, 99), limit=3, waited_for=1)
    assert caught.value.__notes__ == ["6 were finished"]


def test_a_system_that_cannot_start_more_processes(
    played: Callable[..., Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    popen, started = local.subprocess.Popen, []

    def limited(*arguments: Any, **options: Any) -> Any:
        started.append(1)
        if len(started) > 1:
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return popen(*arguments, **options)

    monkeypatch.setattr(local.subprocess, "Popen", limited)
    assert positions_of(played(range(5), workers=4)) == list(range(5))
    assert len(started) == 1 + 4 * local.MAX_STARTS


def test_a_single_graph_gets_a_process_if_there_are_several_workers(
    played: Callable[..., Any],
) -> None:
    # it may be one that crashes its process
    assert played(range(1)) == [TaskResult(0, False, b"0")]
