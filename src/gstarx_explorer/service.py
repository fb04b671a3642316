"""The server without HTTP: its worker processes, its jobs, and what it knows of its models."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import Any

from gstarx._internal.messages import unknown
from gstarx_explorer.catalog import (
    OFFERED,
    check_players,
    checked_options,
    explainer_entry,
    find_explainer,
    model_entry,
)
from gstarx_explorer.jobs import Job, JobQueue
from gstarx_explorer.messages import Problem, Refused, as_json
from gstarx_explorer.processes import JobRunner, QueryClient
from gstarx_explorer.settings import VERSION, Settings

_log = logging.getLogger("gstarx_explorer")
#: How often a model may crash the query worker before it is listed with a problem.
_ATTEMPTS = 2


class ExplorerService:
    """Everything behind the routes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.job_queue = JobQueue(settings.limits)
        self.query_client = QueryClient(settings)
        self.job_runners = [JobRunner(settings, self.job_queue) for _ in range(settings.workers)]
        self._models: dict[str, dict[str, Any]] = {}
        self._explainers: list[dict[str, Any]] = []
        self._run: dict[str, Any] | None = None
        self._run_problem: str | None = None
        self._ready = False
        self.loaded = asyncio.Event()
        self._reads_sentences = False
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Start the workers and the loading of models, without waiting for them."""
        runners = [self.query_client.run(), self._load(), *(r.run() for r in self.job_runners)]
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
        pids = [self.query_client.pid, *(runner.pid for runner in self.job_runners)]
        return [pid for pid in pids if pid is not None]

    def about(self) -> str:
        """Models, explainers, limits and the run that can be browsed, as JSON."""
        limits = self.settings.limits
        names = ("nodes", "text", "budget", "seconds", "queue", "explainers", "graphs_per_page")
        return as_json(
            {
                "version": VERSION,
                "ready": self._ready,
                "limits": {name: getattr(limits, name) for name in names},
                "models": list(self._models.values()) if self._ready else [],
                "explainers": self._explainers,
                "run": self._run,
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
        limits = self.settings.limits
        self._check_input(request)
        explainers = request["explainers"]
        if "run_graph" not in request["input"] and not explainers:
            raise Refused("invalid", "choose at least one explainer", "explainers")
        if len(explainers) > limits.explainers:
            text = f"a job may have {limits.explainers} explainers"
            raise Refused("too_many_explainers", text, "explainers")
        specs = [
            find_explainer(one["name"], f"explainers.{i}.name") for i, one in enumerate(explainers)
        ]
        if "run_graph" not in request["input"]:
            kind = self._models[request["model"]]["kind"]
            check_players(request["players"], kind, specs)
        for index, (spec, explainer) in enumerate(zip(specs, explainers, strict=True)):
            field = f"explainers.{index}"
            explainer["options"] = checked_options(
                spec, explainer["options"], limits.budget, f"{field}.options"
            )
        self.job_queue.check_capacity()  # before the query worker is asked
        names = ("model", "input", "target", "explainers", "players")
        checked = {name: request[name] for name in names}
        await self.query_client.ask("check", **checked)
        job = await self.job_queue.add(request)
        if "sentence" in request["input"] and not self._reads_sentences:
            self._reads_sentences = True
            self._warm_up(request["model"], request["input"])
        return job

    async def score(self, request: dict[str, Any]) -> str:
        """The metrics of a selection, as JSON."""
        self._check_input(request)
        return await self.query_client.ask("score", **request)

    async def run(self) -> str:
        """The run that can be browsed, in its current state, as JSON."""
        content = await self.query_client.ask("run")
        if self._ready:
            self._run, self._run_problem = json.loads(content), None
            await self._add_model(self._run["model"])
        return content

    def check_model(self, name: str) -> None:
        """Raise Refused if there is no such model or it cannot be used."""
        if not self._ready:
            raise Refused("unavailable", "the server is still loading its models")
        model = self._models.get(name)
        if model is None:
            raise Refused("unknown_model", unknown("model", name[:50], self._models), "model")
        if model["problem"] is not None:
            raise Refused("no_model", model["problem"], "model")

    def _check_input(self, request: dict[str, Any]) -> None:
        self.check_model(request["model"])
        ((kind, value),) = request["input"].items()
        if kind == "run_graph" and (self._run is None or self._run["model"] != request["model"]):
            valid = None if self._run is None else self._run["model"]
            text = "there is no run to browse" if valid is None else f"its model is {valid!r}"
            raise Refused("no_run", text, "model")
        inputs = self._models[request["model"]]["inputs"]
        if kind not in (*inputs, "run_graph"):
            valid = " or ".join(inputs) or "no input that is available here"
            text = f"the model {request['model']!r} accepts {valid} (got {kind})"
            raise Refused("bad_input", text, "input")
        if not isinstance(value, str):
            return
        field = f"input.{kind}"
        if not value.strip():
            raise Refused(f"bad_{kind}", f"the {kind} is empty", field)
        if len(value) > self.settings.limits.text:
            text = f"a {kind} may have {self.settings.limits.text} characters (got {len(value)})"
            raise Refused("too_long", text, field)

    async def _load(self) -> None:
        """Query every model, one at a time, so that one that crashes the worker is known."""
        budget = self.settings.limits.budget
        explainers = [explainer_entry(spec, budget) for spec in OFFERED.values()]
        names = [served.name for served in self.settings.models]
        run = None
        if self.settings.run is not None:
            run = await self._query("run")
            if isinstance(run, Problem):
                _log.warning("%s", run.message)
                self._run_problem = run.message
            else:
                names.append(run["model"])
        for name in names:
            await self._add_model(name)
        self._explainers = explainers
        self._run = None if isinstance(run, Problem) else run
        self._ready = True
        self.loaded.set()
        for model in self._models.values():
            # the encoder of sentences is large: it is loaded with the first sentence
            if model["examples"] and "sentence" not in model["inputs"]:
                self._warm_up(model["name"], model["examples"][0]["input"])
                break

    async def _add_model(self, name: str) -> None:
        if name not in self._models:
            model = await self._query("model", model=name)
            if isinstance(model, Problem):
                model = model_entry(name, name, model.message)
            self._models[name] = model
            if model["warnings"]:
                said = "; ".join(model["warnings"])  # one message: the log counts more as repeats
                _log.warning("warning about %s: %s", model["dataset"], said)
            if model["skipped"]:
                listed = "; ".join(model["unreadable"])
                _log.warning(
                    "warning: %d rows of %s could not be read: %s%s",
                    model["skipped"],
                    model["dataset"],
                    listed,
                    " ..." if model["skipped"] > len(model["unreadable"]) else "",
                )

    def _warm_up(self, model: str, input: dict[str, Any]) -> None:
        """Score a selection in the background, so that the first real query is fast."""

        async def score() -> None:
            with suppress(Refused):
                await self.query_client.ask(
                    "score", model=model, input=input, target=None, nodes=[0]
                )

        self._tasks.append(asyncio.create_task(score()))

    async def _query(self, query: str, **arguments: Any) -> Any:
        """The answer of the query worker, or the problem after several attempts."""
        problem = Problem("unavailable", "")
        for _ in range(_ATTEMPTS):
            await self.query_client.ready()
            try:
                return json.loads(await self.query_client.ask(query, **arguments))
            except Refused as error:
                problem = error.problem
                if problem.code != "unavailable":
                    break
        return problem
