"""Work is stopped from another thread, exactly where it may be."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Iterator

import pytest

from gstarx.web.worker import Interrupter, Stopped


@pytest.fixture
def bell() -> Iterator[Interrupter]:
    found = Interrupter()
    before = signal.signal(signal.SIGINT, found.rung)
    yield found
    signal.signal(signal.SIGINT, before)


def pause(seconds: float) -> None:
    """Wait in small steps, between which an interrupt is noticed."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        time.sleep(0.001)


def test_the_work_in_question_is_stopped(bell: Interrupter) -> None:
    threading.Timer(0.05, bell.stop, args=(7,)).start()
    with pytest.raises(Stopped), bell.heard_by(7):
        pause(10)
    pause(0.01)


def test_a_stop_that_comes_before_the_work(bell: Interrupter) -> None:
    bell.stop(7)
    pause(0.01)
    with pytest.raises(Stopped), bell.heard_by(7):
        pause(10)


def test_other_work_goes_on(bell: Interrupter) -> None:
    bell.stop(6)
    with bell.heard_by(7):
        pause(0.01)
        bell.stop(8)
        pause(0.01)
    bell.stop(7)
    pause(0.01)


def test_a_part_that_takes_too_long_ends_and_the_work_goes_on(bell: Interrupter) -> None:
    done = []
    with bell.heard_by(7):
        with bell.within(0.05):
            done.append(1)
            pause(10)
            done.append(2)
        done.append(3)
        with bell.within(10):
            done.append(4)
        pause(0.02)
    assert done == [1, 3, 4]


def test_a_part_can_be_stopped_for_good(bell: Interrupter) -> None:
    threading.Timer(0.05, bell.stop, args=(7,)).start()
    with pytest.raises(Stopped), bell.heard_by(7), bell.within(10):
        pause(10)
