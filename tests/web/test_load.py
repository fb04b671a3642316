"""Fifty clients at once for a minute, and two requests at the limits: memory stays bounded."""

from __future__ import annotations

import asyncio
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from tests.web.served import MOLECULE
from tests.web.test_serving import ready, serving

pytestmark = pytest.mark.slow
CLIENTS, SECONDS, WARM_UP = 50, 60.0, 30.0
MOLECULES = (
    MOLECULE,
    "c1ccccc1[N+](=O)[O-]",
    "CC.O",
    "OCC(NC(=O)C(Cl)Cl)C(O)c1ccc([N+](=O)[O-])cc1",
)


class Visitor:
    """A client that sends one request after the other."""

    def __init__(self, client: httpx.AsyncClient, seed: int, seen: Counter[str]) -> None:
        self.client, self.seen, self.draws = client, seen, random.Random(seed)
        self.times: list[float] = []

    async def visit(self, end: float) -> None:
        ways = (self.look, self.list, self.score, self.explain, self.cancel, self.blunder)
        while time.monotonic() < end:
            await self.draws.choices(ways, (3, 3, 5, 4, 1, 1))[0]()

    async def request(self, method: str, path: str, expected: int = 200, **more: Any) -> Any:
        """A response, or None if the server is busy and says when to try again."""
        start = time.monotonic()
        answer = await self.client.request(method, path, **more)
        self.times.append(time.monotonic() - start)
        if answer.status_code in (429, 503):
            assert int(answer.headers["retry-after"]) > 0
            assert answer.json()["error"]["code"] in ("busy", "unavailable")
            self.seen["busy"] += 1
            await asyncio.sleep(self.draws.uniform(0.2, 1.0))
            return None
        assert answer.status_code == expected, answer.text
        self.seen["answered"] += 1
        return answer

    async def look(self) -> None:
        await self.request("GET", "/api/v1/about")
        await self.request("GET", self.draws.choice(["/", "/page/main.js", "/favicon.ico"]))

    async def list(self) -> None:
        params = {"offset": self.draws.randrange(400), "search": self.draws.choice(["", "Br"])}
        await self.request("GET", "/api/v1/models/nitro/graphs", params=params)

    async def score(self) -> None:
        nodes = self.draws.sample(range(9), self.draws.randrange(9))
        request = {"model": "nitro", "input": {"smiles": MOLECULES[1]}, "nodes": nodes}
        await self.request("POST", "/api/v1/score", json=request)

    async def started(self) -> Any:
        model = self.draws.choice(["nitro", "motifs"])
        input = {"smiles": self.draws.choice(MOLECULES)} if model == "nitro" else {"graph": 3}
        names = self.draws.sample(["gstarx", "graphsvx", "leave_one_out", "random"], 2)
        request = {"model": model, "input": input, "explainers": [{"name": name} for name in names]}
        best = self.draws.random() < 0.3
        return await self.request("POST", "/api/v1/jobs", 202, json={**request, "best": best})

    async def explain(self) -> None:
        answer = await self.started()
        if answer is None:
            return
        path = f"/api/v1/jobs/{answer.json()['id']}"
        async with self.client.stream("GET", f"{path}/events") as stream:
            assert stream.status_code == 200
            async for line in stream.aiter_lines():
                if line == "event: end":
                    self.seen["explained"] += 1
        job = await self.request("GET", path)
        assert job is None or job.json()["state"] == "done", job.text

    async def cancel(self) -> None:
        answer = await self.started()
        if answer is not None:
            await asyncio.sleep(self.draws.uniform(0, 0.3))
            await self.request("DELETE", f"/api/v1/jobs/{answer.json()['id']}")

    async def blunder(self) -> None:
        request = {"model": "nitro", "input": {"smiles": "no"}, "explainers": [{"name": "random"}]}
        await self.request("POST", "/api/v1/jobs", 422, json=request)


async def visited(address: str, seconds: float, seed: int) -> tuple[Counter[str], list[float]]:
    seen: Counter[str] = Counter()
    limits = httpx.Limits(max_connections=2 * CLIENTS)
    async with httpx.AsyncClient(base_url=address, timeout=120, limits=limits) as client:
        visitors = [Visitor(client, seed + at, seen) for at in range(CLIENTS)]
        end = time.monotonic() + seconds
        await asyncio.gather(*(visitor.visit(end) for visitor in visitors))
    return seen, sorted(time for visitor in visitors for time in visitor.times)


def memory(pid: int) -> list[int]:
    """The memory of the server and of each of its workers."""
    server = psutil.Process(pid)
    return [one.memory_info().rss for one in (server, *server.children())]


def test_fifty_visitors_for_a_minute(tmp_path: Path) -> None:
    options = ("--model", "nitro", "--model", "motifs", "--workers", "2")
    with serving(*options, where=tmp_path) as command:
        with httpx.Client(base_url=command.address) as client:
            ready(client)
        asyncio.run(visited(command.address, WARM_UP, seed=1_000))
        before, workers = memory(command.process.pid), command.workers()
        seen, times = asyncio.run(visited(command.address, SECONDS, seed=0))
        time.sleep(5)
        after = memory(command.process.pid)
        middle, most = times[len(times) // 2], times[int(len(times) * 0.95)]
        print(f"{dict(seen)}; half within {middle:.3f} s, 95 % within {most:.3f} s")
        print("MB before", [b >> 20 for b in before], "after", [a >> 20 for a in after])
        assert seen["explained"] > 20
        assert seen["answered"] > 500
        assert command.workers() == workers, "no worker was replaced"
        assert sum(after) <= 1.1 * sum(before)
        assert not [line for line in command.output if "Traceback" in line]


def test_two_maximum_requests_take_less_than_four_gb(tmp_path: Path) -> None:
    options = ("--model", "nitro", "--workers", "2", "--max-memory", "1")
    chosen = {"name": "shapley", "options": {"budget": 50_000}}
    request = {"model": "nitro", "input": {"smiles": "C" * 150}, "explainers": [chosen]}
    with serving(*options, where=tmp_path) as command:
        with httpx.Client(base_url=command.address, timeout=60) as client:
            ready(client)
            ids = [client.post("api/v1/jobs", json=request).json()["id"] for _ in range(2)]
            most, running = 0, True
            while running:
                most = max(most, sum(memory(command.process.pid)))
                jobs = [client.get(f"api/v1/jobs/{id}").json() for id in ids]
                running = any(job["state"] in ("queued", "running") for job in jobs)
                time.sleep(0.1)
        print(f"{most >> 20} MB at most,", [job["error"] for job in jobs])
        assert most < 4 << 30
        for job in jobs:
            assert job["error"] is None or job["error"]["code"] == "timeout"
            assert all(result["error"] is None for result in job["results"])
