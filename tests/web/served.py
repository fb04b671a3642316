"""A server in a thread of the test, with its own worker processes, and a client for it."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import httpx

from gstarx_explorer import Settings
from gstarx_explorer.app import create_app
from gstarx_explorer.server import create_server, listening_socket

#: The most connections of the test server.
CONNECTIONS = 60
MOLECULE = "CC(=O)Nc1ccc([N+](=O)[O-])cc1"


class Served:
    """A server that runs."""

    def __init__(self, settings: Settings) -> None:
        self.app = create_app(settings)
        self.service = self.app.state.service
        self._socket = listening_socket("127.0.0.1", 0)
        self.port = self._socket.getsockname()[1]
        self._server = create_server(self.app, settings, self._socket)
        self._thread = threading.Thread(target=self._server.run, args=([self._socket],))
        self._thread.start()
        self.client = httpx.Client(base_url=f"http://127.0.0.1:{self.port}/api/v1", timeout=120)

    def stop(self) -> None:
        self.client.close()
        self._server.should_exit = True
        self._thread.join()
        self._socket.close()

    def about(self) -> dict[str, Any]:
        """The models and explainers, once the server is ready."""
        wait_for(lambda: self.client.get("/about").json()["ready"], seconds=300)
        about: dict[str, Any] = self.client.get("/about").json()
        return about

    def start(self, model: str = "nitro", explainers: Any = ("gstarx",), **more: Any) -> Any:
        """The response to a request for a job."""
        chosen = [
            {"name": one} if isinstance(one, str) else {"name": one[0], "options": one[1]}
            for one in explainers
        ]
        request = {"model": model, "explainers": chosen, "best": False}
        request |= {"input": {"smiles": MOLECULE}, **more}
        return self.client.post("/jobs", json=request)

    def job(self, *arguments: Any, **more: Any) -> dict[str, Any]:
        """A job, after it has ended."""
        answer = self.start(*arguments, **more)
        assert answer.status_code == 202, answer.text
        return self.ended(answer.json()["id"])

    def ended(self, id: str) -> dict[str, Any]:
        """A job by its ID, after it has ended."""
        for _ in self.events(id):
            pass
        job: dict[str, Any] = self.client.get(f"/jobs/{id}").json()
        return job

    def events(self, id: str) -> Iterator[dict[str, Any]]:
        """The events of a job, until it ends."""
        with self.client.stream("GET", f"/jobs/{id}/events") as stream:
            assert stream.headers["content-type"].startswith("text/event-stream")
            kind = ""
            for line in stream.iter_lines():
                name, _, content = line.partition(": ")
                if name == "event":
                    kind = content
                elif name == "data" and kind == "job":
                    yield json.loads(content)
            assert kind == "end"

    def state(self, id: str) -> str:
        """The state of a job."""
        state: str = self.client.get(f"/jobs/{id}").json()["state"]
        return state


@contextmanager
def served(settings: Settings) -> Iterator[Served]:
    """A server for as long as the block lasts."""
    running = Served(settings)
    try:
        running.about()
        yield running
    finally:
        running.stop()


def wait_for(condition: Callable[[], object], seconds: float = 120) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it takes too long"
        time.sleep(0.02)


def is_open(connection: socket.socket) -> bool:
    """Whether the server has not closed a nonblocking socket; discards what it sent."""
    try:
        while connection.recv(10_000):
            pass
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def problem(answer: httpx.Response, status: int, code: str) -> dict[str, Any]:
    """The error of a response, after checking its status, code and form."""
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"error"}
    error: dict[str, Any] = answer.json()["error"]
    assert set(error) == {"code", "message", "field"}
    assert error["code"] == code, error
    assert error["message"]
    for forbidden in ("Traceback", "/src/", "/tests/", ".py"):
        assert forbidden not in error["message"]
    if status in (429, 503):
        assert int(answer.headers["retry-after"]) > 0
    return error
