"""Requests that are begun and never ended do not hold a connection for ever."""

from __future__ import annotations

import socket
import time
from contextlib import closing
from http.client import HTTPConnection

import pytest

from gstarx.web import patience
from tests.web.served import Served

HEAD = b"POST /api/v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def connected(server: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HT", HEAD, HEAD + b"Content-Length: 500\r\n\r\n{"], ids=len
)
def test_half_a_request_is_hung_up_on(
    server: Served, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.5)
    with connected(server) as half:
        start = time.monotonic()
        half.sendall(begun)
        while half.recv(1000):
            pass
        assert time.monotonic() - start > 0.4


def test_bytes_that_trickle_in_do_not_buy_time(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.5)

    def trickle(slow: socket.socket) -> None:
        slow.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        for _ in range(100):
            time.sleep(0.1)
            slow.sendall(b"a")

    with connected(server) as slow, pytest.raises(ConnectionError):
        trickle(slow)


def test_answers_and_pauses_may_take_longer(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patience, "PATIENCE", 0.5)
    id = server.start("dawdles").json()["id"]
    with connected(server) as listening:
        path = f"/api/v1/jobs/{id}/events".encode()
        listening.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(1.2)
        server.client.delete(f"/jobs/{id}")
        heard = b""
        while b"event: end" not in heard:
            heard += (more := listening.recv(1000))
            assert more, "the stream was cut off"
    with closing(HTTPConnection("127.0.0.1", server.port)) as kept:
        kept.connect()
        own = kept.sock
        for _ in range(2):
            kept.request("GET", "/page/favicon.svg")
            assert kept.getresponse().read().startswith(b"<svg")
            assert kept.sock is own
            time.sleep(1.0)
