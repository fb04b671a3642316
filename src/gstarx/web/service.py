"""The server without HTTP: its worker processes, its jobs, and what it knows of its models."""

from __future__ import annotations

import asyncio
import json
import logging
from contextlib import suppress
from typing import Any

from gstarx._internal.suggestions import unknown
from gstarx.web.catalog import OFFERS, as_dict, checked_options, listed_model, offered
from gstarx.web.jobs import Job, JobQueue
from gstarx.web.messages import Problem, Refused, as_json
from gstarx.web.processes import JobRunner, QueryClient
from gstarx.web.settings import VERSION, Settings

_log = logging.getLogger("gstarx.web")
#: Times that a model may take the desk down before it is given up.
_ATTEMPTS = 2


class ExplorerService:
    """Everything that goes on behind the routes."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.book = JobQueue(settings.limits)
        self.desk = QueryClient(settings)
        self.lanes = [JobRunner(settings, self.book) for _ in range(settings.workers)]
        self._models: dict[str, dict[str, Any]] = {}
        self._explainers: list[dict[str, Any]] = []
        self._run: dict[str, Any] | None = None
        self._run_problem: str | None = None
        self._ready = False
        self._reads_sentences = False
        self._tasks: list[asyncio.Task[None]] = []

    async def open(self) -> None:
        """Start the workers and ask what there is; does not wait for them."""
        runs = [self.desk.run(), self._enquire(), *(lane.run() for lane in self.lanes)]
        self._tasks = [asyncio.create_task(run) for run in runs]

    async def close(self) -> None:
        """End all jobs and all workers."""
        self.book.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    @property
    def pids(self) -> list[int]:
        """The numbers of the worker processes."""
        found = [self.desk.pid, *(lane.pid for lane in self.lanes)]
        return [pid for pid in found if pid is not None]

    def about(self) -> str:
        """What this server has, as JSON."""
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

    async def start_job(self, request: dict[str, Any]) -> Job:
        """A job, after everything about it that can be checked at once."""
        limits = self.settings.limits
        self._check_input(request)
        stored = "run_graph" in request["input"]
        if not stored and not request["explainers"]:
            raise Refused("invalid", "choose at least one explainer", "explainers")
        if len(request["explainers"]) > limits.explainers:
            text = f"a job may have {limits.explainers} explainers"
            raise Refused("too_many_explainers", text, "explainers")
        for at, chosen in enumerate(request["explainers"]):
            field = f"explainers.{at}"
            spec = offered(chosen["name"], f"{field}.name")
            given = chosen["options"]
            chosen["options"] = checked_options(spec, given, limits.budget, f"{field}.options")
        self.book.check_room()  # before the desk is bothered
        question = {name: request[name] for name in ("model", "input", "target", "explainers")}
        await self.desk.ask("check", **question)
        job = await self.book.add(request)
        if "sentence" in request["input"] and not self._reads_sentences:
            self._reads_sentences = True
            self._warm_up(request["model"], request["input"])
        return job

    async def score(self, request: dict[str, Any]) -> str:
        """The metrics of a selection, as JSON."""
        self._check_input(request)
        return await self.desk.ask("score", **request)

    async def run(self) -> str:
        """The run that can be browsed, as it is now, as JSON."""
        content = await self.desk.ask("run")
        if self._ready:
            self._run, self._run_problem = json.loads(content), None
            await self._add_model(self._run["model"])
        return content

    def check_model(self, name: str) -> None:
        """Refuse a model that is not there or cannot be asked."""
        if not self._ready:
            raise Refused("unavailable", "the server is still loading its models")
        found = self._models.get(name)
        if found is None:
            raise Refused("unknown_model", unknown("model", name[:50], self._models), "model")
        if found["problem"] is not None:
            raise Refused("no_model", found["problem"], "model")

    def _check_input(self, request: dict[str, Any]) -> None:
        self.check_model(request["model"])
        ((way, value),) = request["input"].items()
        if way == "run_graph" and (self._run is None or self._run["model"] != request["model"]):
            valid = None if self._run is None else self._run["model"]
            text = "there is no run to browse" if valid is None else f"its model is {valid!r}"
            raise Refused("no_run", text, "model")
        inputs = self._models[request["model"]]["inputs"]
        if way not in (*inputs, "run_graph"):
            valid = " or ".join(inputs) or "nothing that is here"
            text = f"the model {request['model']!r} can be asked by {valid}, not by {way}"
            raise Refused("bad_input", text, "input")
        if not isinstance(value, str):
            return
        field = f"input.{way}"
        if not value.strip():
            raise Refused(f"bad_{way}", f"the {way} is empty", field)
        if len(value) > self.settings.limits.text:
            text = f"a {way} may have {self.settings.limits.text} characters (got {len(value)})"
            raise Refused("too_long", text, field)

    async def _enquire(self) -> None:
        """Ask the desk about every model, one by one: one that kills it shall be known."""
        budget = self.settings.limits.budget
        explainers = [as_dict(spec, budget) for spec in OFFERS]
        names = [served.name for served in self.settings.models]
        run = None
        if self.settings.run is not None:
            run = await self._asked("run")
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
        for found in self._models.values():
            # the encoder of sentences is large: it is loaded when the first one comes
            if found["examples"] and "sentence" not in found["inputs"]:
                self._warm_up(found["name"], found["examples"][0]["input"])
                break

    async def _add_model(self, name: str) -> None:
        """Ask what a model is, where nobody knows yet."""
        if name not in self._models:
            found = await self._asked("model", model=name)
            if isinstance(found, Problem):
                found = listed_model(name, name, found.message)
            self._models[name] = found

    def _warm_up(self, model: str, input: dict[str, Any]) -> None:
        """Let the desk judge a selection that nobody asked for: the next one is quick."""

        async def ask() -> None:
            with suppress(Refused):
                await self.desk.ask("score", model=model, input=input, target=None, nodes=[0])

        self._tasks.append(asyncio.create_task(ask()))

    async def _asked(self, ask: str, **content: Any) -> Any:
        """An answer of the desk, or its problem after some attempts."""
        problem = Problem("unavailable", "")
        for _ in range(_ATTEMPTS):
            await self.desk.ready()
            try:
                return json.loads(await self.desk.ask(ask, **content))
            except Refused as error:
                problem = error.problem
                if problem.code != "unavailable":
                    break
        return problem
