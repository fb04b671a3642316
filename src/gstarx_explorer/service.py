"""The server without HTTP: its worker processes, its jobs, and what it knows of its models."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import Any

from gstarx._internal.messages import unknown
from gstarx._version import __version__
from gstarx_explorer.messages import Refused, as_json
from gstarx_explorer.settings import (
    Settings,
    check_players,
    checked_options,
    explainer_entry,
    find_explainer,
    offered,
    player_entries,
)
from gstarx_explorer.workers import Job, JobQueue, JobRunner, QueryClient

_log = logging.getLogger("gstarx_explorer")
#: How often a model may crash the query worker before it is listed with a problem.
_ATTEMPTS = 2
#: The limits that the page shows.
_SHOWN = ("nodes", "text", "budget", "seconds", "queue", "explainers", "graphs_per_page")
#: The entry of a model about which nothing is known.
UNKNOWN_MODEL: dict[str, Any] = {
    "kind": "graph",
    "players": player_entries("graph"),
    **dict.fromkeys(("inputs", "classes", "unreadable", "warnings", "examples"), ()),
    **dict.fromkeys(("outputs", "graphs", "skipped"), 0),
    "task": "classification",
    "dataset": None,
    "facts": {},
    "problem": None,
}


class ExplorerService:
    """Everything behind the routes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.job_queue = JobQueue(settings.limits)
        self._queries = QueryClient(settings)
        self.ask = self._queries.ask
        self._runners = [JobRunner(settings, self.job_queue) for _ in range(settings.workers)]
        self._models: dict[str, dict[str, Any]] = {}
        self._run: dict[str, Any] | None = None
        self._run_problem: str | None = None
        self.loaded = asyncio.Event()
        self._reads_sentences = False
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Start the workers and the loading of models, without waiting for them."""
        runners = [self._queries.run(), self._load(), *(runner.run() for runner in self._runners)]
        self._tasks = [asyncio.create_task(runner) for runner in runners]

    async def close(self) -> None:
        """End all jobs and all workers."""
        self.job_queue.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def pids(self) -> list[int]:
        """The process IDs of the workers."""
        workers = [seat.worker for seat in (self._queries, *self._runners)]
        return [worker.pid for worker in workers if worker is not None and worker.pid is not None]

    def about(self) -> str:
        """Models, explainers, limits and the run that can be browsed, as JSON."""
        limits, ready = self.settings.limits, self.loaded.is_set()
        specs = offered().values() if ready else ()
        return as_json(
            {
                "version": __version__,
                "ready": ready,
                "limits": {name: getattr(limits, name) for name in _SHOWN},
                "models": list(self._models.values()) if ready else [],
                "explainers": [explainer_entry(spec, limits.budget) for spec in specs],
                "run": self._run if ready else None,
                "run_problem": self._run_problem,
            }
        )

    @property
    def refused(self) -> str | None:
        """Why the server must not start: a required model that cannot be used."""
        for served in self.settings.models:
            problem = self._models.get(served.name, {}).get("problem")
            if served.required and problem is not None:
                return f"{served.name} cannot be used: {problem}"
        return None

    async def start_job(self, request: dict[str, Any]) -> Job:
        """Queue a job, after checking everything that can be checked quickly."""
        limits, explainers = self.settings.limits, request["explainers"]
        self._check_input(request)
        stored = "run_graph" in request["input"]
        if not stored and not explainers:
            raise Refused("invalid", "choose at least one explainer", "explainers")
        if len(explainers) > limits.explainers:
            text = f"a job may have {limits.explainers} explainers"
            raise Refused("too_many_explainers", text, "explainers")
        specs = [
            find_explainer(one["name"], f"explainers.{i}.name") for i, one in enumerate(explainers)
        ]
        if not stored:
            check_players(request["players"], self._models[request["model"]]["kind"], specs)
        for index, (spec, explainer) in enumerate(zip(specs, explainers, strict=True)):
            field = f"explainers.{index}.options"
            explainer["options"] = checked_options(spec, explainer["options"], limits.budget, field)
        self.job_queue.check_capacity()  # before the query worker is asked
        names = ("model", "input", "target", "players")
        await self.ask("check", **{name: request[name] for name in names})
        job = await self.job_queue.add(request)
        if "sentence" in request["input"] and not self._reads_sentences:
            self._reads_sentences = True
            self._warm_up(request["model"], request["input"])
        return job

    async def score(self, request: dict[str, Any]) -> str:
        """The metrics of a selection, as JSON."""
        self._check_input(request)
        return await self.ask("score", **request)

    async def run(self) -> str:
        """The run that can be browsed, in its current state, as JSON."""
        content = await self.ask("run")
        self._run, self._run_problem = json.loads(content), None
        await self._add_model(self._run["model"])
        return content

    def check_model(self, name: str) -> None:
        """Raise Refused if there is no such model or it cannot be used."""
        if not self.loaded.is_set():
            raise Refused("unavailable", "the server is still loading its models")
        model = self._models.get(name)
        if model is None:
            raise Refused("unknown_model", unknown("model", name[:50], self._models), "model")
        if model["problem"] is not None:
            raise Refused("no_model", model["problem"], "model")

    def _check_input(self, request: dict[str, Any]) -> None:
        name = request["model"]
        self.check_model(name)
        ((kind, value),) = request["input"].items()
        if kind == "run_graph":
            of_run = None if self._run is None else self._run["model"]
            if of_run != name:
                text = "there is no run to browse" if of_run is None else f"its model is {of_run!r}"
                raise Refused("no_run", text, "model")
            return
        inputs = self._models[name]["inputs"]
        if kind not in inputs:
            valid = " or ".join(inputs) or "no input that is available here"
            raise Refused("bad_input", f"the model {name!r} accepts {valid} (got {kind})", "input")
        if isinstance(value, str):
            limit = self.settings.limits.text
            if not value.strip():
                raise Refused(f"bad_{kind}", f"the {kind} is empty", f"input.{kind}")
            if len(value) > limit:
                text = f"a {kind} may have {limit} characters (got {len(value)})"
                raise Refused("too_long", text, f"input.{kind}")

    async def _load(self) -> None:
        """Query every model, one at a time, so that one that crashes the worker is known."""
        names = [served.name for served in self.settings.models]
        if self.settings.run is not None:
            run = await self._query("run")
            if isinstance(run, Refused):
                _log.warning("%s", run)
                self._run_problem = str(run)
            else:
                self._run = run
                names.append(run["model"])
        for name in names:
            await self._add_model(name)
        self.loaded.set()
        for model in self._models.values():
            # the encoder of sentences is large: it is loaded with the first sentence
            if model["examples"] and "sentence" not in model["inputs"]:
                self._warm_up(model["name"], model["examples"][0]["input"])
                break

    async def _add_model(self, name: str) -> None:
        if name in self._models:
            return
        known = await self._query("model", model=name)
        if isinstance(known, Refused):
            known = {"problem": str(known)}
        self._models[name] = model = {"name": name, "title": name, **UNKNOWN_MODEL, **known}
        for warning in model["warnings"]:
            _log.warning("warning about %s: %s", model["dataset"], warning)
        if model["skipped"]:
            listed = "; ".join(model["unreadable"])
            more = " ..." if model["skipped"] > len(model["unreadable"]) else ""
            words = "warning: %d rows of %s could not be read: %s%s"
            _log.warning(words, model["skipped"], model["dataset"], listed, more)

    def _warm_up(self, model: str, input: dict[str, Any]) -> None:
        """Score a selection in the background, so that the first real query is fast."""

        async def score() -> None:
            with suppress(Refused):
                await self.ask("score", model=model, input=input, target=None, nodes=[0])

        self._tasks.append(asyncio.create_task(score()))

    async def _query(self, query: str, **arguments: Any) -> Any:
        """The answer of the query worker, or the problem after several attempts."""
        problem = Refused("unavailable", "")
        for _ in range(_ATTEMPTS):
            await self._queries.ready.wait()
            try:
                return json.loads(await self.ask(query, **arguments))
            except Refused as error:
                problem = error
                if problem.code != "unavailable":
                    break
        return problem
