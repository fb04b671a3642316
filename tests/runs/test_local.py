"""Workers that die before they have begun, played by small programs that speak their language."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gstarx.runs import RunSpec, local
from gstarx.runs.local import explain_locally
from gstarx.runs.resolution import ResolvedRun, resolve
from gstarx.runs.rows import Done

pytestmark = pytest.mark.usefixtures("loaded_once")

Make = Callable[..., RunSpec]

#: Its number says how it begins; what it is given, how it goes on.
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
    """What workers find, numbered from 0, of which some die or fail while they begin."""
    resolved: ResolvedRun = resolve(spec())

    def play(
        positions: range,
        dead: Any = (),
        failing: Any = (),
        deadly: int = -1,
        limit: int = -1,
        waited_for: int = 0,
        workers: int = 2,
    ) -> list[Done]:
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
        results: list[Done] = []
        try:
            results.extend(explain_locally(resolved, None, positions, workers=workers))
        except RuntimeError as error:
            error.add_note(f"{len(results)} were finished")
            raise
        return results

    return play


def positions_of(results: list[Done]) -> list[int]:
    return sorted(done.position for done in results)


@pytest.mark.parametrize("way", ["dead", "failing"])
@pytest.mark.parametrize("numbers", [{0}, {1, 2}])
def test_a_worker_that_dies_while_it_begins_is_replaced(
    played: Callable[..., Any], way: str, numbers: set[int]
) -> None:
    found = played(range(20), **{way: numbers}, waited_for=max(numbers) + 1)
    assert positions_of(found) == list(range(20))


def test_a_worker_that_begins_makes_up_for_those_that_did_not(played: Callable[..., Any]) -> None:
    # each does one graph; every other one is dead, so that there are more of them than in a row
    found = played(range(4 * local.STARTS), dead=range(1, 99, 2), limit=1)
    assert positions_of(found) == list(range(4 * local.STARTS))


def test_the_others_go_on_where_no_new_worker_can_begin(played: Callable[..., Any]) -> None:
    results = played(range(20), dead=range(1, 99), waited_for=2 * local.STARTS)
    assert positions_of(results) == list(range(20))
    assert {done.row for done in results} == {b"0"}


def test_what_a_dead_worker_leaves_goes_to_one_that_has_nothing_to_do(
    played: Callable[..., Any],
) -> None:
    # worker 1 or 0 dies at the graph when the other one has done the rest; no third one begins
    assert positions_of(played(range(6), dead=range(2, 99), deadly=0)) == list(range(6))


@pytest.mark.parametrize(
    ("way", "message"),
    [
        ("dead", "ended before it had begun, killed by signal 9"),
        ("failing", "could not begin: MemoryError: no room"),
    ],
)
def test_workers_that_can_never_begin(
    played: Callable[..., Any], tmp_path: Path, way: str, message: str
) -> None:
    with pytest.raises(RuntimeError, match=rf"{message}.* in a row.*finished is safe"):
        played(range(20), **{way: range(99)})
    # two at first, and another for each but the last ones
    started = [path for path in tmp_path.iterdir() if path.name.isdigit()]
    assert len(started) == 2 * local.STARTS + 1


def test_what_was_finished_before_is_there(played: Callable[..., Any]) -> None:
    with pytest.raises(RuntimeError, match="finished is safe") as caught:
        played(range(20), dead=range(2, 99), limit=3, waited_for=1)
    assert caught.value.__notes__ == ["6 were finished"]


def test_a_system_that_starts_no_more_processes(
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
    assert len(started) == 1 + 4 * local.STARTS


def test_one_graph_has_a_process_of_its_own_where_that_is_asked_for(
    played: Callable[..., Any],
) -> None:
    # it may be one that takes its process down, and is the last that is left
    assert played(range(1)) == [Done(0, False, b"0")]
