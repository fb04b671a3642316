"""What is logged over and over is counted."""

from __future__ import annotations

import logging

import pytest

from gstarx.web import repeating
from gstarx.web.repeating import repeats_counted

SERVER, HTTP = logging.getLogger("gstarx.web"), logging.getLogger("uvicorn.error")


def failed(reason: str) -> None:
    try:
        raise ValueError(reason)
    except ValueError:
        SERVER.exception("a request failed: %r", reason)


def test_a_message_is_said_once_and_then_counted(caplog: pytest.LogCaptureFixture) -> None:
    with repeats_counted():
        for number in range(1_000):
            HTTP.warning("Invalid HTTP request received.")
            failed(f"number {number}")
        HTTP.warning("Another one.")
        assert len(caplog.records) == 3
    assert [record.getMessage() for record in caplog.records[3:]] == [
        "999 more: Invalid HTTP request received.",
        "999 more: a request failed: %r",
    ]


def test_it_is_said_again_after_a_while_with_the_count(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    with repeats_counted():
        for _ in range(5):
            HTTP.warning("Invalid %s.", "request")
        monkeypatch.setattr(repeating, "_PAUSE", 0.0)
        for _ in range(2):
            HTTP.warning("Invalid %s.", "thing")
    said = [record.getMessage() for record in caplog.records]
    assert said == ["Invalid request.", "Invalid thing. (4 more before)", "Invalid thing."]


def test_errors_of_different_places_are_told_apart(caplog: pytest.LogCaptureFixture) -> None:
    with repeats_counted():
        failed("here")
        try:
            int("x")
        except ValueError:
            SERVER.exception("a request failed: %r", "there")
    assert len(caplog.records) == 2


def test_the_log_is_what_it_was_afterwards(caplog: pytest.LogCaptureFixture) -> None:
    with repeats_counted():
        pass
    for _ in range(3):
        HTTP.warning("the same")
    assert len(caplog.records) == 3


def test_what_is_known_does_not_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(repeating, "_KNOWN", 10)
    counted = repeating.Counted()
    for number in range(100):
        record = logging.LogRecord("x", logging.ERROR, "", 0, f"made {number}", (), None)
        assert counted.filter(record)
        assert len(counted._told) <= 10
