"""``gstarx serve`` as a process: it starts, prints its address, and leaves nothing behind."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from gstarx_explorer import Settings, workers
from gstarx_explorer.serve_command import served_models
from gstarx_explorer.server import listening_socket
from gstarx_explorer.workers import default_memory
from tests.cli.commands import environment, gstarx, refused
from tests.web.served import MOLECULE, is_open, wait_for

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals of POSIX")


class Command:
    """``gstarx serve`` in a process of its own."""

    def __init__(self, *arguments: str, where: Path, files: int | None = None) -> None:
        command = [sys.executable, "-m", "gstarx", "serve", "--port", "0", *arguments]
        if files is not None:
            command = ["sh", "-c", f'ulimit -n {files}; exec "$@"', "sh", *command]
        self.process = subprocess.Popen(
            command,
            stderr=subprocess.PIPE,
            text=True,
            env=environment(),
            cwd=where,
        )
        assert self.process.stderr is not None
        self.output = [self.process.stderr.readline()]
        match = re.search(r"http://\S+", self.output[0])
        assert match is not None, self.output[0] + self.process.stderr.read()
        self.address = match[0]
        self._listener = threading.Thread(target=self._listen, daemon=True)
        self._listener.start()

    def _listen(self) -> None:
        assert self.process.stderr is not None
        self.output += self.process.stderr

    def end(self) -> None:
        assert self.process.stderr is not None
        self.process.kill()
        self.process.wait()
        self._listener.join()
        self.process.stderr.close()

    def workers(self) -> list[psutil.Process]:
        children = psutil.Process(self.process.pid).children(recursive=True)
        # Python tracks what processes share in a process of its own
        return [one for one in children if "resource_tracker" not in "".join(one.cmdline())]


@contextmanager
def serving(*arguments: str, where: Path, files: int | None = None) -> Iterator[Command]:
    command = Command(*arguments, where=where, files=files)
    try:
        yield command
    finally:
        command.end()


def ready(client: httpx.Client) -> dict[str, Any]:
    wait_for(lambda: client.get("api/v1/about").json()["ready"])
    about: dict[str, Any] = client.get("api/v1/about").json()
    return about


def finished(client: httpx.Client, **request: Any) -> dict[str, Any]:
    job = {"input": {"smiles": MOLECULE}, "explainers": [{"name": "leave_one_out"}], **request}
    id = client.post("api/v1/jobs", json={"model": "nitro", **job}).json()["id"]
    wait_for(lambda: client.get(f"api/v1/jobs/{id}").json()["state"] not in ("queued", "running"))
    ended: dict[str, Any] = client.get(f"api/v1/jobs/{id}").json()
    return ended


GB = 1 << 30
OWN = """
import torch
from gstarx.models import GCN
def make():
    torch.manual_seed(0)
    return GCN(9, 8, 2)
"""


def test_ctrl_c_ends_it_with_all_its_workers(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(OWN)
    options = ("--model", "nitro", "--model", "mine:make", "--workers", "1")
    with serving(*options, where=tmp_path) as command:
        with httpx.Client(base_url=command.address) as client:
            assert client.get("/").status_code == 200
            shipped, own = ready(client)["models"]
            assert (shipped["name"], own["name"]) == ("nitro", "mine:make")
            assert (own["problem"], own["inputs"]) == (None, ["smiles"])
            assert finished(client)["state"] == "done"
            job = finished(client, model="mine:make")
            assert job["state"] == "done"
            assert job["subject"]["prediction"]["name"] is None
            maps = Path(f"/proc/{command.process.pid}/maps")
            if maps.exists():
                assert "libtorch" not in maps.read_text()
                assert "numpy" not in maps.read_text()
            workers = command.workers()
            assert len(workers) == 2
            # a client listens to a job that takes long
            request = {"model": "nitro", "input": {"smiles": MOLECULE}}
            slow = [{"name": "gnnexplainer", "options": {"epochs": 2000}}] * 8
            id = client.post("api/v1/jobs", json={**request, "explainers": slow}).json()["id"]
            with client.stream("GET", f"api/v1/jobs/{id}/events") as stream:
                lines = stream.iter_lines()
                next(lines)
                command.process.send_signal(signal.SIGINT)
                assert "event: end" in list(lines)
                for _ in range(2):  # Ctrl-C is pressed again
                    command.process.send_signal(signal.SIGINT)
                    time.sleep(0.05)
        assert command.process.wait(timeout=30) in (0, 130, -signal.SIGINT)
        _, alive = psutil.wait_procs(workers, timeout=10)
        assert not alive
        assert not [line for line in command.output if "Traceback" in line]


def test_when_it_is_killed_its_workers_end_too(tmp_path: Path) -> None:
    with serving("--model", "nitro", "--workers", "1", where=tmp_path) as command:
        wait_for(lambda: len(command.workers()) == 2)
        workers = command.workers()
        command.process.kill()
        _, alive = psutil.wait_procs(workers, timeout=60)
        assert not alive


def test_beyond_this_machine_a_token_is_made_and_needed(tmp_path: Path) -> None:
    with serving("--model", "nitro", "--host", "0.0.0.0", where=tmp_path) as command:
        address = httpx.URL(command.address).copy_with(host="127.0.0.1")
        token = address.params["token"]
        assert len(token) >= 24
        with httpx.Client(base_url=address.copy_with(query=None)) as client:
            assert client.get("/").status_code == 401
            assert client.get("/", params={"token": token}).status_code == 303
            assert client.get("/").status_code == 200
        assert "plain HTTP" in "".join(command.output)


STRANGE = b"GET /api/v1/about HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: keep-alive\r\n\r\n"


def crowd(address: httpx.URL, opened: ExitStack) -> list[socket.socket]:
    """Three hundred connections, of which the server accepts some."""
    sockets = [opened.enter_context(socket.socket()) for _ in range(300)]
    for one in sockets:
        one.setblocking(False)
        with suppress(BlockingIOError):
            one.connect((address.host, address.port))
    return sockets


def test_a_crowd_without_the_token_does_not_keep_the_owner_out(tmp_path: Path) -> None:
    token = "a-token-that-is-long-enough"
    options = ("--model", "nitro", "--workers", "1", "--token", token)
    shown = {"authorization": f"Bearer {token}"}
    # fewer files than connections, as some systems have it
    with serving(*options, where=tmp_path, files=256) as command:
        address = httpx.URL(command.address).copy_with(query=None)
        with httpx.Client(base_url=address, headers=shown, timeout=10) as owner:
            wait_for(lambda: owner.get("/").status_code == 200)
            for sent in (STRANGE, STRANGE[:20], b""):  # complete requests, incomplete ones, none
                with ExitStack() as opened:
                    strangers = crowd(address, opened)
                    for _ in range(3):
                        for one in strangers:
                            with suppress(OSError):
                                one.send(sent)
                        start = time.monotonic()
                        assert owner.get("/").status_code == 200
                        assert httpx.get(address, headers=shown, timeout=10).status_code == 200
                        assert time.monotonic() - start < 5
                        time.sleep(0.1)
                    if sent == STRANGE:  # refused connections are closed
                        wait_for(lambda: not any(map(is_open, strangers)), seconds=10)  # noqa: B023
        assert len("".join(command.output)) < 2_000


def test_a_port_that_is_taken() -> None:
    taken = listening_socket("127.0.0.1", 0)
    try:
        message = refused("serve", "--port", taken.getsockname()[1], code=1)
    finally:
        taken.close()
    assert "is taken" in message
    assert "--port" in message


def test_small_responses_are_sent_at_once() -> None:
    listening = listening_socket("127.0.0.1", 0)
    try:
        # asyncio turns off Nagle's algorithm only with an explicit protocol
        assert listening.proto == socket.IPPROTO_TCP
    finally:
        listening.close()


INVALID = (
    (("--token", "short"), "16 characters"),
    (("--token", " a token that begins with a space"), "begin"),
    (("--token", "a token with a\nline break"), "line break"),
    (("--run", "nowhere"), "no store of runs"),
    (("--model", "nitros"), "did you mean 'nitro"),
    (("--model", "no.safetensors"), "no file of weights"),
    (("--model", "a:b", "--model", "c:d", "--weights", "w.pt"), "several"),
    (("--model", "nitro", "--model", "nitro-gcn"), "two models"),
    (("--host", "nowhere.invalid"), "nowhere.invalid"),
    (("--max-memory", "0.4"), "0.5"),
)


def test_invalid_arguments() -> None:
    for arguments, words in INVALID:
        code = 1 if "--host" in arguments else 2
        assert words in refused("serve", *arguments, code=code)


def test_the_memory_of_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Settings] = []
    monkeypatch.setattr("gstarx_explorer.server.serve", lambda settings, _: seen.append(settings))
    for more in (("--max-memory", "1.5"), ("--workers", "3")):
        gstarx("serve", "--model", "motifs", *more)
    assert [settings.limits.memory for settings in seen] == [GB * 3 // 2, default_memory(3)]
    monkeypatch.setattr(workers, "_machine_memory", lambda: 16 * GB)
    assert (default_memory(2), default_memory(64)) == (int(3.5 * GB), GB // 2)
    monkeypatch.setattr(workers, "_machine_memory", lambda: 512 * GB)
    assert default_memory(2) == 4 * GB


def test_the_memory_of_a_container_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    before = workers._machine_memory()
    monkeypatch.setattr(workers, "_CONTAINER", (str(tmp_path / "memory.max"),))
    for content, expected in (("3221225472\n", 3 * GB), ("max\n", None)):
        (tmp_path / "memory.max").write_text(content)
        assert workers._machine_memory() == (expected or before)


def test_default_models() -> None:
    models = served_models((), None)
    assert [one.name for one in models] == ["nitro", "motifs", "sst2", "sst2-gat", "tweets"]
    assert [one.missing for one in models[:2]] == [None, None]


def test_published_files_are_named_after_their_dataset_too(tmp_path: Path) -> None:
    paths = [tmp_path / folder / "gcn.pth" for folder in ("mutag", "bbbp", "own")]
    for path in paths:
        path.parent.mkdir()
        path.touch()
    models = served_models([str(path) for path in paths], None)
    assert [one.name for one in models] == ["mutag-gcn", "bbbp-gcn", "gcn"]


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fastapi", None)
    assert "gstarx[web]" in refused("serve", "--port", 0, code=1)
