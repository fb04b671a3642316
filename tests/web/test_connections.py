"""Idle connections are closed, busy ones are not."""

from __future__ import annotations

import socket
import time
from contextlib import closing, suppress
from http.client import HTTPConnection

import pytest

from gstarx_explorer import server as serving
from tests.web.served import CONNECTIONS, Served, is_open, wait_for

HEAD = b"POST /api/v1/score HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"


def connected(server: Served) -> socket.socket:
    return socket.create_connection(("127.0.0.1", server.port), timeout=20)


@pytest.mark.parametrize(
    "begun", [b"", b"GET / HT", HEAD, HEAD + b"Content-Length: 500\r\n\r\n{"], ids=len
)
def test_an_incomplete_request_is_closed(
    server: Served, monkeypatch: pytest.MonkeyPatch, begun: bytes
) -> None:
    monkeypatch.setattr(serving, "CONNECTION_TIMEOUT", 0.5)
    with connected(server) as half:
        start = time.monotonic()
        half.sendall(begun)
        while half.recv(1000):
            pass
        assert time.monotonic() - start > 0.4


def test_bytes_that_trickle_in_do_not_extend_the_timeout(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "CONNECTION_TIMEOUT", 0.5)

    def trickle(slow: socket.socket) -> None:
        slow.sendall(b"GET / HTTP/1.1\r\nX-Slow: ")
        for _ in range(100):
            time.sleep(0.1)
            slow.sendall(b"a")

    with connected(server) as slow, pytest.raises(ConnectionError):
        trickle(slow)


def test_responses_and_pauses_may_take_longer(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "CONNECTION_TIMEOUT", 0.5)
    id = server.start("dawdles").json()["id"]
    with connected(server) as listening:
        path = f"/api/v1/jobs/{id}/events".encode()
        listening.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(1.2)
        server.client.delete(f"/jobs/{id}")
        received = b""
        while b"event: end" not in received:
            received += (more := listening.recv(1000))
            assert more, "the stream was cut off"
    with closing(HTTPConnection("127.0.0.1", server.port)) as kept:
        kept.connect()
        own = kept.sock
        for _ in range(2):
            kept.request("GET", "/page/favicon.svg")
            assert kept.getresponse().read().startswith(b"<svg")
            assert kept.sock is own
            time.sleep(1.0)


def test_a_response_that_is_not_read_is_closed(
    server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(serving, "CONNECTION_TIMEOUT", 0.5)
    with socket.socket() as slow:
        slow.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        slow.settimeout(20)
        slow.connect(("127.0.0.1", server.port))
        wanted = 1_000
        slow.sendall(b"GET /page/ask.js HTTP/1.1\r\nHost: localhost\r\n\r\n" * wanted)
        time.sleep(1.5)
        taken = b""
        with suppress(ConnectionResetError):
            while more := slow.recv(1 << 20):
                taken += more
        assert 0 < taken.count(b"HTTP/1.1 200") < wanted


def test_one_connection_too_many_replaces_the_idlest(server: Served) -> None:
    id = server.start("dawdles").json()["id"]
    crowd: list[socket.socket] = []
    with connected(server) as listening, closing(HTTPConnection("127.0.0.1", server.port)) as kept:
        path = f"/api/v1/jobs/{id}/events".encode()
        listening.sendall(b"GET " + path + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in listening.recv(1000)
        kept.request("GET", "/page/favicon.svg")
        kept.getresponse().read()
        own = kept.sock
        try:
            for _ in range(2 * CONNECTIONS):
                crowd.append(connected(server))
                crowd[-1].setblocking(False)
            assert server.client.get("/about", timeout=10).status_code == 200
            # the first ones are gone, the last ones are there
            wait_for(lambda: not any(map(is_open, crowd[:CONNECTIONS])), seconds=20)
            assert is_open(crowd[-1])
        finally:
            for one in crowd:
                one.close()
        # neither a busy connection was closed, nor one that had been used before
        server.client.delete(f"/jobs/{id}")
        received = b""
        while b"event: end" not in received:
            received += (more := listening.recv(1000))
            assert more, "the stream was cut off"
        kept.request("GET", "/page/favicon.svg")
        assert kept.getresponse().read().startswith(b"<svg")
        assert kept.sock is own
