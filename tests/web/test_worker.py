"""A job is stopped from another thread, where this is allowed."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from gstarx_explorer.worker import Interrupter, Stopped


@pytest.fixture
def interrupter() -> Iterator[Interrupter]:
    created = Interrupter()
    before = signal.signal(signal.SIGINT, created.handle_signal)
    yield created
    signal.signal(signal.SIGINT, before)


def pause(seconds: float) -> None:
    """Wait in small steps, between which an interrupt is noticed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)


def test_the_current_job_is_stopped(interrupter: Interrupter) -> None:
    threading.Timer(0.05, interrupter.stop, args=(7,)).start()
    with pytest.raises(Stopped), interrupter.stoppable(7):
        pause(10)
    pause(0.01)


def test_a_stop_before_the_job_starts(interrupter: Interrupter) -> None:
    interrupter.stop(7)
    pause(0.01)
    with pytest.raises(Stopped), interrupter.stoppable(7):
        pause(10)


def test_other_jobs_are_not_stopped(interrupter: Interrupter) -> None:
    interrupter.stop(6)
    with interrupter.stoppable(7):
        pause(0.01)
        interrupter.stop(8)
        pause(0.01)
    interrupter.stop(7)
    pause(0.01)


def test_a_part_that_takes_too_long_ends_and_the_job_continues(interrupter: Interrupter) -> None:
    done = []
    with interrupter.stoppable(7):
        with interrupter.time_limit(0.05):
            done.append(1)
            pause(10)
            done.append(2)
        done.append(3)
        with interrupter.time_limit(10):
            done.append(4)
        pause(0.02)
    assert done == [1, 3, 4]


def test_a_job_is_stopped_inside_a_time_limit(interrupter: Interrupter) -> None:
    threading.Timer(0.05, interrupter.stop, args=(7,)).start()
    with pytest.raises(Stopped), interrupter.stoppable(7), interrupter.time_limit(10):
        pause(10)
