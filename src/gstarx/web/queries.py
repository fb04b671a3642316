"""Inside a worker: quick questions, one after the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from gstarx._internal.suggestions import unknown
from gstarx.datasets import label_of, title_of
from gstarx.web.catalog import listed_model
from gstarx.web.explaining import checked_target, probabilities_of, scored
from gstarx.web.memory import check_memory
from gstarx.web.messages import Refused
from gstarx.web.networks import Networks
from gstarx.web.settings import Settings
from gstarx.web.subjects import Subjects

#: Molecules with a name, for networks that know few elements and for those that know all.
_MOLECULES = {
    "nitro": (
        ("Nitrobenzene", "c1ccccc1[N+](=O)[O-]"),
        ("Paracetamol, nitrated", "CC(=O)Nc1ccc(O)c([N+](=O)[O-])c1"),
        ("Nitroglycerine", "C(C(CO[N+](=O)[O-])O[N+](=O)[O-])O[N+](=O)[O-]"),
        ("Chloramphenicol", "OCC(NC(=O)C(Cl)Cl)C(O)c1ccc([N+](=O)[O-])cc1"),
        ("Nifedipine", "COC(=O)C1=C(C)NC(C)=C(C1c1ccccc1[N+](=O)[O-])C(=O)OC"),
    ),
    "": (
        ("Aspirin", "CC(=O)Oc1ccccc1C(=O)O"),
        ("Caffeine", "Cn1cnc2c1c(=O)n(C)c(=O)n2C"),
        ("Ibuprofen", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"),
    ),
}
_SENTENCES = (
    "a gripping and wonderfully acted film",
    "the plot is thin but the cast is a delight",
    "it is not a bad film, just a long one",
)


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


def examples_for(dataset: str | None, inputs: list[str], data: Any) -> list[dict[str, Any]]:
    """Some inputs for a model, each with a title."""
    found: list[dict[str, Any]] = []
    if "smiles" in inputs:
        listed = _MOLECULES["nitro" if dataset in ("nitro", "mutag") else ""]
        found += [{"title": title, "input": {"smiles": smiles}} for title, smiles in listed]
    if "sentence" in inputs:
        found += [{"title": text, "input": {"sentence": text}} for text in _SENTENCES]
    if "graph" in inputs and not found:
        positions = data.split_indices.get("test", range(len(data)))[:4]
        found += [{"title": f"{dataset} {at}", "input": {"graph": int(at)}} for at in positions]
    return found
