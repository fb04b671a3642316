"""Inside a worker: quick questions, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gstarx._internal.suggestions import unknown
from gstarx.datasets import label_of, title_of
from gstarx.web.catalog import listed_model
from gstarx.web.estimating import check_memory
from gstarx.web.examples import examples_for
from gstarx.web.explaining import checked_target, probabilities_of, scored
from gstarx.web.networks import Networks
from gstarx.web.problems import Refused
from gstarx.web.settings import Settings
from gstarx.web.subjects import Subjects


class QueryWorker:
    """Answers questions about models, graphs and runs."""

    def __init__(self, settings: Settings) -> None:
        self._networks = Networks(settings)
        self._subjects = Subjects(self._networks, settings.limits)
        self._limits = settings.limits
        self._answers: dict[str, Callable[..., Any]] = {
            "model": self._model,
            "graphs": self._graphs,
            "check": self._check,
            "score": self._score,
            "run": self._run,
            "rows": self._rows,
        }

    def answer(self, question: Mapping[str, Any], say: Any) -> Any:
        """The answer to one question."""
        return self._answers[question["ask"]](**question["with"])

    def _model(self, model: str) -> dict[str, Any]:
        """A model as it is listed, with its problem where it has one."""
        served = self._networks.served(model)
        entry = listed_model(served.name, served.title or served.name)
        try:
            found = self._networks.get(model)
        except Refused as error:
            return {**entry, "problem": str(error)}
        data = self._networks.at_hand(found)
        inputs = self._networks.inputs(found)
        return {
            **entry,
            "kind": self._networks.kind(found),
            "inputs": inputs,
            "classes": list(self._networks.classes(found)),
            "dataset": found.dataset,
            "graphs": 0 if data is None else len(data),
            "facts": {str(name): str(fact) for name, fact in found.facts.items()},
            "examples": examples_for(found.dataset, inputs, data),
        }

    def _graphs(self, model: str, offset: int, limit: int, search: str) -> dict[str, Any]:
        found = self._networks.get(model)
        data = self._networks.at_hand(found)
        if data is None:
            return {"total": 0, "graphs": []}
        part = {at: name for name, positions in data.split_indices.items() for at in positions}
        wanted = search.strip().lower()
        rows = [
            {
                "position": at,
                "title": title,
                "nodes": int(graph.num_nodes or 0),
                "label": label_of(graph),
                "split": part.get(at),
            }
            for at, graph in enumerate(data)
            if wanted in (title := title_of(graph, f"{data.name} {at}")).lower()
            or wanted == str(at)
        ]
        return {"total": len(rows), "graphs": rows[offset : offset + limit]}

    def _check(
        self,
        model: str,
        input: dict[str, Any],
        target: int | None,
        explainers: list[dict[str, Any]],
    ) -> None:
        """Refuse early what a job would refuse."""
        if "sentence" in input:
            # reading one takes long the first time: the job itself says what is wrong with it
            self._networks.get(model)
            return
        found, subject = self._networks.get(model), self._subjects.get(model, input)
        if "run_graph" not in input:
            check_memory(found, subject, explainers, self._limits)
        if target is not None:
            checked_target(target, probabilities_of(found, subject))

    def _score(
        self, model: str, input: dict[str, Any], target: int | None, nodes: list[int]
    ) -> dict[str, Any]:
        found, subject = self._networks.get(model), self._subjects.get(model, input)
        if len(set(nodes)) < len(nodes) or (nodes and max(nodes) >= subject.nodes):
            text = f"nodes must be distinct numbers in 0..{subject.nodes - 1}"
            raise Refused("bad_nodes", text, "nodes")
        checked_target(target, probabilities_of(found, subject))
        return scored(found, subject, nodes, target)

    def _run(self) -> dict[str, Any]:
        run = self._networks.browsed
        if run is None:
            raise Refused("no_run", self._networks.run_problem)
        return run.summary()

    def _rows(self, run: str | None, **chosen: Any) -> dict[str, Any]:
        browsed = self._networks.browsed
        if browsed is None:
            raise Refused("no_run", self._networks.run_problem)
        if run is not None and run not in browsed.runs:
            raise Refused("bad_run", unknown("run", run[:50], browsed.runs), "run")
        return browsed.rows(run=run, **chosen)
