"""The worker process that answers quick queries about models, graphs and runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from gstarx._internal.messages import unknown
from gstarx.datasets import title_of
from gstarx.gnn import hetero_of
from gstarx.players import default_kind
from gstarx.registry import PARTS
from gstarx_bench.summary import summarize
from gstarx_explorer.catalog import model_entry, player_entries
from gstarx_explorer.explaining import explained_target, score_selection
from gstarx_explorer.library import Library
from gstarx_explorer.memory import check_memory
from gstarx_explorer.messages import Refused, public_message
from gstarx_explorer.settings import LoadedModel, Settings
from gstarx_explorer.subjects import SubjectCache, matches, outputs_of, thumbnail

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gstarx_explorer.browsing import StoredRun, StoreView

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
#: Characters of the title of an example.
_MAX_TITLE = 40
#: Rows of a table that are listed because they cannot be read.
_MAX_UNREADABLE = 5
_GIVE_GRAPHS = "give the graphs it reads with --file or --graphs"
_SENTENCES = (
    "a gripping and wonderfully acted film",
    "the plot is thin but the cast is a delight",
    "it is not a bad film, just a long one",
)

#: Graphs of a run that are summarized, so that the page does not have to wait.
MAX_GRAPHS = 2_000
#: What graphs can be divided into, by the division that suits them best.
_DIVISIONS = {
    "functional_groups": tuple(name for name, kind in PARTS.items() if kind != "sentence"),
    "words": ("words",),
    "node_types": ("node_types",),
}


class QueryWorker:
    """Answers queries, one at a time."""

    def __init__(self, settings: Settings) -> None:
        self._library = Library(settings)
        self._subjects = SubjectCache(self._library, settings.limits)
        self._limits = settings.limits
        self._summaries: dict[tuple[Any, ...], dict[str, Any]] = {}
        self._answers: dict[str, Callable[..., Any]] = {
            "model": self._model,
            "graphs": self._graphs,
            "check": self._check,
            "score": self._score,
            "run": self._run,
            "rows": self._rows,
            "groups": self._groups,
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
            outputs = self._count_outputs(model, loaded) if served.required else None
            return {**entry, **self._known(loaded, outputs)}
        except Refused as error:
            return {**entry, "problem": str(error)}

    def _known(self, loaded: LoadedModel, outputs: int | None) -> dict[str, Any]:
        library = self._library
        dataset, inputs = library.local_dataset(loaded), library.inputs(loaded)
        has_own_graphs = dataset is not None and loaded.graphs is not None
        unreadable = dataset.unreadable if has_own_graphs and dataset is not None else ()
        by_class = loaded.task in ("classification", "binary")
        names = library.classes(loaded) if by_class else library.targets(loaded)
        players = player_entries(library.kind(loaded))
        if has_own_graphs and dataset is not None and len(dataset) and hetero_of(dataset[0]):
            players = players[:1]  # nodes: graphs with types have no others
        return {
            "kind": library.kind(loaded),
            "players": players,
            "inputs": inputs,
            "task": loaded.task,
            "classes": list(names),
            "outputs": max(len(names), outputs or 0),
            "dataset": loaded.dataset if loaded.graphs is None else loaded.graphs.title,
            "graphs": 0 if dataset is None else len(dataset),
            "skipped": len(unreadable),
            "unreadable": [public_message(ValueError(row)) for row in unreadable[:_MAX_UNREADABLE]],
            "warnings": library.said_of.get(loaded.graphs.title, []) if loaded.graphs else [],
            "facts": {str(name): str(fact) for name, fact in loaded.facts.items()},
            "examples": _examples(loaded, inputs, dataset),
        }

    def _count_outputs(self, name: str, model: LoadedModel) -> int:
        """How many classes or targets the model has, after a first prediction; or Refused."""
        inputs = self._library.inputs(model)
        if not inputs:
            raise Refused("no_model", f"there are no graphs for {name}: {_GIVE_GRAPHS}")
        if inputs == ["sentence"]:
            return 0  # parsing the first sentence takes long
        input: dict[str, Any] = {"graph": 0} if "graph" in inputs else {"smiles": "CCO"}
        outputs = len(outputs_of(model, self._subjects.get(name, input)))
        if model.task == "classification" and outputs == 1:
            text = "has one output: use --task binary (one logit) or --task regression"
        elif model.task == "binary" and outputs != 2:
            text = f"has {outputs} outputs, but --task binary is for one: use --task multilabel"
        elif self._library.classes(model)[outputs:] and model.task == "classification":
            classes = ", ".join(self._library.classes(model)[:5])
            text = f"has {outputs} outputs, which are too few for the classes {classes}"
        else:
            return outputs
        raise Refused("no_model", f"it {text}")

    def _graphs(self, model: str, offset: int, limit: int, search: str) -> dict[str, Any]:
        loaded = self._library.get(model)
        dataset = self._library.local_dataset(loaded)
        if dataset is None:
            return {"total": 0, "graphs": []}
        splits = {i: name for name, indices in dataset.split_indices.items() for i in indices}
        matching: list[dict[str, Any]] = []
        for position, graph in enumerate(dataset):
            smiles = graph.get("smiles")
            entry: dict[str, Any] = {
                "position": position,
                "title": title_of(graph, f"{dataset.name} {position}"),
                "smiles": smiles if isinstance(smiles, str) else None,
            }
            if matches(search, position, entry):
                matching.append(entry)
        shown = matching[offset : offset + limit]
        for entry in shown:
            graph = dataset[entry["position"]]
            entry["nodes"] = int(graph.num_nodes or 0)
            entry["label"] = self._library.label(loaded, graph)
            entry["measured"] = self._library.measured(loaded, graph)
            entry["split"] = splits.get(entry["position"])
            entry["picture"] = thumbnail(graph)
        return {"total": len(matching), "graphs": shown}

    def _check(
        self,
        model: str,
        input: dict[str, Any],
        target: int | None,
        explainers: list[dict[str, Any]],
        players: str = "nodes",
    ) -> None:
        """Refuse at once what the job would refuse."""
        loaded = self._library.get(model)
        if "sentence" in input:
            return  # parsing the first one takes long: the job itself checks it
        subject = self._subjects.get(model, input)
        count = len(subject.players(players, self._limits.nodes))
        if "run_graph" not in input:
            check_memory(loaded, subject, explainers, self._limits, players=count)
        if target is not None or loaded.task in ("multilabel", "regression"):
            explained_target(self._library, loaded, input, target, outputs_of(loaded, subject))

    def _score(
        self,
        model: str,
        input: dict[str, Any],
        target: int | None,
        nodes: list[int],
        players: str = "nodes",
    ) -> dict[str, Any]:
        loaded, subject = self._library.get(model), self._subjects.get(model, input)
        count = len(subject.players(players, self._limits.nodes))
        if len(set(nodes)) < len(nodes) or (nodes and max(nodes) >= count):
            text = f"nodes must be distinct numbers in 0..{count - 1}"
            raise Refused("bad_nodes", text, "nodes")
        outputs = outputs_of(loaded, subject)
        target = explained_target(self._library, loaded, input, target, outputs)
        reference, _ = self._library.reference(loaded)
        return score_selection(loaded, subject, nodes, target, reference, (players, count))

    def _run(self) -> dict[str, Any]:
        return self._store_view().summary()

    def _rows(self, run: str | None, **view: Any) -> dict[str, Any]:
        store_view = self._store_view()
        return store_view.rows(run=_known_run(store_view, run), **view)

    def _groups(self, run: str | None, by: str | None) -> dict[str, Any]:
        store_view = self._store_view()
        run = _known_run(store_view, run) or next(iter(store_view.runs))
        counts = tuple(len(stored.rows) for stored in store_view.runs.values())
        key = (run, by, counts)  # a run may grow
        if key not in self._summaries:
            self._summaries[key] = group_summary(store_view, run, by)
        return self._summaries[key]

    def _store_view(self) -> StoreView:
        store_view = self._library.store_view
        if store_view is None:
            raise Refused("no_run", self._library.run_problem)
        return store_view


def _known_run(store_view: StoreView, run: str | None) -> str | None:
    if run is not None and run not in store_view.runs:
        raise Refused("bad_run", unknown("run", run[:50], store_view.runs), "run")
    return run


def _examples(model: LoadedModel, inputs: list[str], data: Any) -> list[dict[str, Any]]:
    """A few inputs for a model, each with a title."""
    examples: list[dict[str, Any]] = []
    if "smiles" in inputs and model.graphs is None:
        molecules = _MOLECULES["nitro" if model.dataset in ("nitro", "mutag") else ""]
        examples += [{"title": title, "input": {"smiles": smiles}} for title, smiles in molecules]
    if "sentence" in inputs:
        examples += [{"title": text, "input": {"sentence": text}} for text in _SENTENCES]
    if "graph" in inputs and not examples:
        positions = (data.split_indices.get("test") or range(len(data)))[:4]
        examples += [_example(data, int(position), "smiles" in inputs) for position in positions]
    return examples


def _example(data: Any, position: int, as_smiles: bool) -> dict[str, Any]:
    graph = data[position]
    name, smiles = graph.get("name"), graph.get("smiles")
    title = name if isinstance(name, str) and name else f"{data.name} {position}"
    by_smiles = as_smiles and isinstance(smiles, str)
    return {
        "title": title[:_MAX_TITLE],
        "input": {"smiles": smiles} if by_smiles else {"graph": position},
    }


def group_summary(view: StoreView, run: str, by: str | None) -> dict[str, Any]:
    """The groups of the graphs that a run has explained, with their mean scores; or Refused."""
    from gstarx_bench.runs import explanation_of  # only where runs can be read

    stored = view.runs[run]
    graphs = _explained(view, stored)
    if not graphs:
        text = f"{stored.title} has no scores to summarize, or the graphs are not available"
        raise Refused("no_data", text, "run")
    data = [graph for graph, _ in graphs]
    valid = _DIVISIONS.get(default_kind(data[0]), ("node_types",))
    by = valid[0] if by is None else by
    if by not in valid:
        raise Refused("bad_option", unknown("division", by[:50], valid), "by")
    shown = graphs[:MAX_GRAPHS]
    try:
        rows = summarize(
            [graph for graph, _ in shown],
            [explanation_of(row) for _, row in shown],
            by=by,
            mode=view.task,
            class_names=view.names,
            target_names=view.names,
        )
    except ValueError as error:
        raise Refused("failed", public_message(error), "by") from error
    return {
        "run": run,
        "by": by,
        "divisions": list(valid),
        "graphs": len(shown),
        "total": len(graphs),
        "rows": [row.as_dict() for row in rows],
    }


def _explained(view: StoreView, run: StoredRun) -> list[tuple[Data, dict[str, Any]]]:
    """The graphs that have scores, with their rows."""
    graphs = []
    for position, row in sorted(run.rows.items()):
        if row["error"] is not None or row["scores"] is None:
            continue
        try:
            graphs.append((view.graph(position), row))
        except Refused:
            continue  # it has changed since the run; opening the graph reports that
    return graphs
