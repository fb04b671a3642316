"""The worker process that answers quick queries about models, graphs and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gstarx._internal.suggestions import unknown
from gstarx.datasets import label_of, title_of
from gstarx.web.catalog import model_entry
from gstarx.web.explaining import check_target, class_probabilities_of, score_selection
from gstarx.web.library import Library
from gstarx.web.memory import check_memory
from gstarx.web.messages import Refused
from gstarx.web.settings import Settings
from gstarx.web.subjects import SubjectCache

if TYPE_CHECKING:
    from gstarx.web.browsing import StoreView

#: Named molecules, for networks that know few elements and for those that know all.
_MOLECULES = {
    "nitro": (
        ("Nitrobenzene", "c1ccccc1[N+](=O)[O-]"),
        ("Nitrated acetaminophen", "CC(=O)Nc1ccc(O)c([N+](=O)[O-])c1"),
        ("Nitroglycerin", "C(C(CO[N+](=O)[O-])O[N+](=O)[O-])O[N+](=O)[O-]"),
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
    """Answers queries, one at a time."""

    def __init__(self, settings: Settings) -> None:
        self._library = Library(settings)
        self._subjects = SubjectCache(self._library, settings.limits)
        self._limits = settings.limits
        self._answers: dict[str, Callable[..., Any]] = {
            "model": self._model,
            "graphs": self._graphs,
            "check": self._check,
            "score": self._score,
            "run": self._run,
            "rows": self._rows,
        }

    def answer(self, query: Mapping[str, Any], send: Any) -> Any:
        """The answer to one query; nothing is sent before it is complete."""
        return self._answers[query["query"]](**query["arguments"])

    def _model(self, model: str) -> dict[str, Any]:
        """The entry of a model, with its problem if it has one."""
        served = self._library.served(model)
        entry = model_entry(served.name, served.title or served.name)
        try:
            loaded = self._library.get(model)
        except Refused as error:
            return {**entry, "problem": str(error)}
        dataset = self._library.local_dataset(loaded)
        inputs = self._library.inputs(loaded)
        return {
            **entry,
            "kind": self._library.kind(loaded),
            "inputs": inputs,
            "classes": list(self._library.classes(loaded)),
            "dataset": loaded.dataset,
            "graphs": 0 if dataset is None else len(dataset),
            "facts": {str(name): str(fact) for name, fact in loaded.facts.items()},
            "examples": _examples(loaded.dataset, inputs, dataset),
        }

    def _graphs(self, model: str, offset: int, limit: int, search: str) -> dict[str, Any]:
        dataset = self._library.local_dataset(self._library.get(model))
        if dataset is None:
            return {"total": 0, "graphs": []}
        splits = {i: name for name, indices in dataset.split_indices.items() for i in indices}
        text = search.strip().lower()
        graphs = [
            {
                "position": position,
                "title": title,
                "nodes": int(graph.num_nodes or 0),
                "label": label_of(graph),
                "split": splits.get(position),
            }
            for position, graph in enumerate(dataset)
            if text in (title := title_of(graph, f"{dataset.name} {position}")).lower()
            or text == str(position)
        ]
        return {"total": len(graphs), "graphs": graphs[offset : offset + limit]}

    def _check(
        self,
        model: str,
        input: dict[str, Any],
        target: int | None,
        explainers: list[dict[str, Any]],
    ) -> None:
        """Refuse at once what the job would refuse."""
        loaded = self._library.get(model)
        if "sentence" in input:
            return  # parsing the first one takes long: the job itself checks it
        subject = self._subjects.get(model, input)
        if "run_graph" not in input:
            check_memory(loaded, subject, explainers, self._limits)
        if target is not None:
            check_target(target, class_probabilities_of(loaded, subject))

    def _score(
        self, model: str, input: dict[str, Any], target: int | None, nodes: list[int]
    ) -> dict[str, Any]:
        loaded, subject = self._library.get(model), self._subjects.get(model, input)
        if len(set(nodes)) < len(nodes) or (nodes and max(nodes) >= subject.nodes):
            text = f"nodes must be distinct numbers in 0..{subject.nodes - 1}"
            raise Refused("bad_nodes", text, "nodes")
        check_target(target, class_probabilities_of(loaded, subject))
        return score_selection(loaded, subject, nodes, target)

    def _run(self) -> dict[str, Any]:
        return self._store_view().summary()

    def _rows(self, run: str | None, **view: Any) -> dict[str, Any]:
        store_view = self._store_view()
        if run is not None and run not in store_view.runs:
            raise Refused("bad_run", unknown("run", run[:50], store_view.runs), "run")
        return store_view.rows(run=run, **view)

    def _store_view(self) -> StoreView:
        store_view = self._library.store_view
        if store_view is None:
            raise Refused("no_run", self._library.run_problem)
        return store_view


def _examples(dataset: str | None, inputs: list[str], data: Any) -> list[dict[str, Any]]:
    """A few inputs for a model, each with a title."""
    examples: list[dict[str, Any]] = []
    if "smiles" in inputs:
        molecules = _MOLECULES["nitro" if dataset in ("nitro", "mutag") else ""]
        examples += [{"title": title, "input": {"smiles": smiles}} for title, smiles in molecules]
    if "sentence" in inputs:
        examples += [{"title": text, "input": {"sentence": text}} for text in _SENTENCES]
    if "graph" in inputs and not examples:
        positions = data.split_indices.get("test", range(len(data)))[:4]
        examples += [{"title": f"{dataset} {at}", "input": {"graph": int(at)}} for at in positions]
    return examples
