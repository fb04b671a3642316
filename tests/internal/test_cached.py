"""Attributes that are computed once, without a lock."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from gstarx._internal.cached import cached_property


class Owner:
    """Counts how often its attribute is computed, and may have to wait for it."""

    def __init__(self, wait: Event | None = None) -> None:
        self.wait, self.begun, self.count = wait, Event(), 0

    @cached_property
    def slow(self) -> int:
        """A number."""
        self.count += 1
        self.begun.set()
        if self.wait is not None:
            assert self.wait.wait(20)
        return 7


def test_it_is_computed_once() -> None:
    owner = Owner()
    assert owner.slow == owner.slow == 7
    assert owner.count == 1
    assert Owner.slow.__doc__ == "A number."


def test_instances_do_not_wait_for_each_other() -> None:
    """They would with the lock of Python 3.11."""
    done = Event()
    first = Owner(done)
    with ThreadPoolExecutor(2) as threads:
        waiting = threads.submit(lambda: first.slow)
        assert first.begun.wait(20)
        assert threads.submit(lambda: Owner().slow).result(10) == 7
        assert not waiting.done()
        done.set()
        assert waiting.result(20) == 7
