"""A store of runs, as the page browses it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from gstarx._internal.imports import FactoryError
from gstarx._internal.messages import unknown
from gstarx.datasets import label_of, title_of
from gstarx.players import default_kind
from gstarx.registry import PARTS, DatasetSource
from gstarx_bench import runs
from gstarx_bench.runs import OF_A_RESULT, ModelSpec, Store, check_format, explanation_of
from gstarx_bench.summary import summarize
from gstarx_explorer.library import Loaded, Subject, matches, outputs_of, thumbnail
from gstarx_explorer.messages import Refused, public_message
from gstarx_explorer.settings import METRICS, PLAYERS, ServedModel, ServedRun, offered

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gstarx.explanation import Explanation
    from gstarx_explorer.library import Library

_COLUMNS = ("run", "graph", "sparsities", "error", "name", "smiles", *OF_A_RESULT, *METRICS)
#: Graphs of a run that are summarized, so that the page does not have to wait.
MAX_GRAPHS = 2_000
#: What graphs can be divided into, by the division that suits them best.
_DIVISIONS = {
    "functional_groups": tuple(name for name, kind in PARTS.items() if kind != "sentence"),
    "words": ("words",),
    "node_types": ("node_types",),
}


@dataclass(frozen=True)
class StoredRun:
    """One run: the rows of an explainer, by graph."""

    id: str
    explainer: str
    options: dict[str, Any]
    title: str
    removal: str
    target: int | None
    rows: dict[int, dict[str, Any]] = field(repr=False)

    @classmethod
    def read(cls, store: Path, run: str, spec: Mapping[str, Any], title: str) -> StoredRun:
        """Read the rows of a run from a store."""
        table = runs.read(store, run=run, columns=list(_COLUMNS))
        rows = {row["graph"]: row for row in table.to_pylist()}
        name, options = spec["explainer"]["name"], spec["explainer"]["options"]
        removal, target = spec.get("removal", "remove"), spec.get("target")
        return cls(run, name, options, title, removal, target, rows)

    @property
    def explained(self) -> list[dict[str, Any]]:
        """The rows of graphs that did not fail."""
        return [row for row in self.rows.values() if row["error"] is None]

    def entry(self) -> dict[str, Any]:
        """The entry in the list of runs."""
        return {
            "id": self.id,
            "explainer": self.explainer,
            "title": self.title,
            "options": self.options,
            "graphs": len(self.rows),
            "failed": len(self.rows) - len(self.explained),
            "seconds": sum(row["cpu_seconds"] or 0.0 for row in self.rows.values()),
        }


class StoreView:
    """The runs of a store that are about one dataset and one network.

    Attributes
    ----------
    runs
        The runs by ID.
    source
        The dataset.
    served
        The network, for requests about graphs of the dataset.
    """

    def __init__(
        self, served_run: ServedRun, library: Library, before: StoreView | None = None
    ) -> None:
        """Read the runs about the dataset of the settings, or about that with the most rows.

        A view that was read before determines the dataset and network, even if others have more.
        """
        store, dataset = served_run.store, served_run.dataset
        check_format(store)
        requests = {
            request["name"].partition("-")[0]: request["spec"]
            for request in Store(store).requests()
            # runs of nodes have neither selections nor metrics to browse
            if not request["spec"].get("nodes")
        }
        about = {run: _about(spec, library.names) for run, spec in requests.items()}
        rows = Counter(runs.read(store, columns=["run"]).column("run").to_pylist())
        counts: Counter[tuple[DatasetSource, ServedModel]] = Counter()
        for run in about.keys() & rows.keys():
            counts[about[run]] += rows[run]
        known = None if before is None else (before.source, before.served)
        matching = [
            one for one in counts if dataset in (None, one[0].title) and known in (None, one)
        ]
        if not matching:
            if not dataset:
                raise ValueError("the store has no rows of whole graphs")
            valid = sorted({source.title for source, _ in counts})
            raise ValueError(unknown("dataset in the store", dataset, valid))
        most = max(matching, key=lambda one: counts[one])
        ids = [run for run in about if about[run] == most and run in rows]
        titles = _titles({run: requests[run] for run in ids})
        self.runs = {run: StoredRun.read(store, run, requests[run], titles[run]) for run in ids}
        self.source: DatasetSource = most[0]
        self.served: ServedModel = most[1]
        self.dataset = self.source.title
        self.remark = _remark(self.dataset, counts[most], len(counts) - 1)
        self._library = library
        #: The graphs and the network, if they can be loaded.
        self._data: Any = None
        self._model: Loaded | None = None
        with suppress(OSError, ValueError, ImportError, FactoryError):
            self._data = library.dataset(self.source)
        with suppress(Refused):
            self._model = library.load(self.served)
        #: The class or target that the first run explains; None is the predicted class.
        self.target = next(iter(self.runs.values())).target
        #: What the network predicts.
        self.task = self.served.source.task or "classification"
        if self._model is not None:
            self.task = self._model.task
        levels = (row["sparsities"] for run in self.runs.values() for row in run.explained)
        #: The sparsities at which the runs evaluated their explanations.
        self.sparsities = sorted({level for row in levels for level in row})
        self._graphs = self._entries()
        self._summaries: dict[tuple[str, str], dict[str, Any]] = {}

    def _entries(self) -> dict[int, dict[str, Any]]:
        """The entries of all graphs that have a row in any run."""
        entries: dict[int, dict[str, Any]] = {}
        for run in self.runs.values():
            # without a target, a run explains the predicted class
            predicts = run.target is None and self.task in ("classification", "binary")
            for graph, row in run.rows.items():
                if graph not in entries:
                    entries[graph] = self._graph_entry(graph, row)
                if entries[graph]["prediction"] is None and predicts:
                    entries[graph]["prediction"] = row["target"]
        for entry in entries.values():
            if entry["label"] is not None and entry["prediction"] is not None:
                entry["correct"] = entry["label"] == entry["prediction"]
        return dict(sorted(entries.items()))

    def _graph_entry(self, graph: int, row: Mapping[str, Any]) -> dict[str, Any]:
        data = self._data[graph] if self._data is not None and graph < len(self._data) else None
        title = row["name"] or row["smiles"] or f"{self.dataset} {graph}"
        label = None
        if data is not None:
            model = self._model
            label = label_of(data) if model is None else self._library.label(model, data)
        return {
            "graph": graph,
            "title": title if data is None else title_of(data, title),
            "smiles": row["smiles"] or (None if data is None else data.get("smiles")),
            "nodes": row["num_nodes"],
            "prediction": None,
            "label": label,
            "correct": None,
        }

    def graph(self, position: int) -> Data:
        """A graph of the runs, or Refused."""
        field = "input.run_graph"
        if position not in self._graphs:
            text = f"the run does not include graph {position} of {self.dataset}"
            raise Refused("bad_graph", text, field)
        if self._data is None:
            own = self.source.name is None
            hint = "it was moved or changed" if own else "start the server with --data"
            text = f"the dataset {self.dataset} is not available: {hint}"
            raise Refused("no_data", text, field)
        data = cast("Data", self._data[position])
        rows = (run.rows.get(position) for run in self.runs.values())
        if not all(row is None or _is_graph_of(row, data) for row in rows):
            text = f"graph {position} of {self.dataset} has changed since the run"
            raise Refused("bad_graph", text, field)
        return data

    def results(self, position: int) -> list[tuple[StoredRun, Explanation | None, str | None]]:
        """The explanation of a graph by each run, or why there is none."""
        results = []
        for run in self.runs.values():
            row = run.rows.get(position)
            error = "this run has not reached the graph yet" if row is None else row["error"]
            explanation = explanation_of(row) if row is not None and error is None else None
            results.append((run, explanation, None if error is None else _first_line(error)))
        return results

    @property
    def players(self) -> str:
        """Who plays in all runs, by a name that the page knows; nodes if they differ."""
        chosen = [run.options.get("players", "nodes") for run in self.runs.values()]
        names = {str(name).replace("-", "_") for name in chosen}
        known = {name for by_kind in PLAYERS.values() for name in by_kind}
        return names.pop() if len(names) == 1 and names <= known else "nodes"

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes or targets."""
        if self._model is not None and (names := self._library.labels(self._model)):
            return names
        if self._data is None:
            return ()
        by_class = self.task in ("classification", "binary")
        return tuple(self._data.class_names if by_class else self._data.target_names)

    def summary(self) -> dict[str, Any]:
        """The runs, with the mean metrics at every sparsity."""
        known = [one["correct"] for one in self._graphs.values() if one["correct"] is not None]
        return {
            "title": f"{self.dataset}: {', '.join(run.title for run in self.runs.values())}"[:200],
            "dataset": self.dataset,
            "model": self.served.name,
            "runs": [run.entry() for run in self.runs.values()],
            "sparsities": self.sparsities,
            "curves": {run.id: self._curves(run) for run in self.runs.values()},
            "accuracy": sum(known) / len(known) if known else None,
            "task": self.task,
            "classes": list(self.names),
            "target": self.target,
            "remark": self.remark,
        }

    def _curves(self, run: StoredRun) -> dict[str, list[float | None]]:
        by_level = [[_metrics(row, level) for row in run.explained] for level in self.sparsities]
        kept = [[row for row in rows if row is not None] for rows in by_level]
        return {
            name: [float(np.mean([row[name] for row in rows])) if rows else None for rows in kept]
            for name in METRICS
        }

    def rows(
        self,
        *,
        sparsity: float,
        run: str | None,
        filter: str,
        sort: str,
        order: str,
        search: str = "",
        offset: int,
        limit: int,
    ) -> dict[str, Any]:
        """A page of the graphs, with the metrics of every run."""
        sort_run = self._known(run)
        level = min(self.sparsities, key=lambda level: abs(level - sparsity), default=None)
        wanted: Callable[[dict[str, Any]], bool] = {
            "wrong": lambda entry: entry["correct"] is False,
            "failed": lambda entry: entry["error"] is not None,
        }.get(filter, lambda _: True)
        entries = [self._row(graph, level) for graph in self._graphs]
        entries = [one for one in entries if wanted(one) and matches(search, one["graph"], one)]

        def value(entry: dict[str, Any]) -> Any:
            return entry[sort] if sort in entry else (entry["metrics"][sort_run] or {}).get(sort)

        sortable = [entry for entry in entries if value(entry) is not None]
        sortable.sort(key=value, reverse=order == "desc")
        # graphs without the value come last in either order
        listed = [*sortable, *(entry for entry in entries if value(entry) is None)]
        shown = listed[offset : offset + limit]
        return {
            "total": len(listed),
            "rows": [{**row, **self._preview(row["graph"])} for row in shown],
        }

    def _preview(self, graph: int) -> dict[str, Any]:
        """The picture of a graph, and the model's outputs for several targets or a value."""
        entry: dict[str, Any] = {"picture": None, "outputs": [], "measured": []}
        with suppress(Refused):  # opening the graph reports the reason
            data = self.graph(graph)
            entry["picture"] = thumbnail(data)
            if self._model is not None and not self._model.by_class:
                entry["outputs"] = outputs_of(self._model, Subject(data, "", graph, {}))
                entry["measured"] = self._library.measured(self._model, data)
        return entry

    def _row(self, graph: int, level: float | None) -> dict[str, Any]:
        rows = {run.id: run.rows.get(graph) for run in self.runs.values()}
        errors = [
            f"{self.runs[id].title}: {_first_line(row['error'])}"
            for id, row in rows.items()
            if row is not None and row["error"] is not None
        ]
        metrics = {id: None if row is None else _metrics(row, level) for id, row in rows.items()}
        return {**self._graphs[graph], "metrics": metrics, "error": "; ".join(errors) or None}

    def _known(self, run: str | None) -> str:
        """The ID of a run, by default of the first; or Refused."""
        if run is not None and run not in self.runs:
            raise Refused("bad_run", unknown("run", run[:50], self.runs), "run")
        return next(iter(self.runs)) if run is None else run

    def groups(self, run: str | None, by: str | None) -> dict[str, Any]:
        """The groups of the graphs that a run has explained, with their mean scores; or Refused."""
        stored = self.runs[self._known(run)]
        graphs = []
        for position, row in sorted(stored.rows.items()):
            if row["error"] is None and row["scores"] is not None:
                with suppress(Refused):  # it has changed since the run; opening it reports that
                    graphs.append((self.graph(position), row))
        if not graphs:
            text = f"{stored.title} has no scores to summarize, or the graphs are not available"
            raise Refused("no_data", text, "run")
        valid = _DIVISIONS.get(default_kind(graphs[0][0]), ("node_types",))
        by = valid[0] if by is None else by
        if by not in valid:
            raise Refused("bad_option", unknown("division", by[:50], valid), "by")
        key, shown = (stored.id, by), graphs[:MAX_GRAPHS]
        if key not in self._summaries:
            try:
                rows = summarize(
                    [graph for graph, _ in shown],
                    [explanation_of(row) for _, row in shown],
                    by=by,
                    mode=self.task,
                    class_names=self.names,
                    target_names=self.names,
                )
            except ValueError as error:
                raise Refused("failed", public_message(error), "by") from error
            self._summaries[key] = {
                "run": stored.id,
                "by": by,
                "divisions": list(valid),
                "graphs": len(shown),
                "total": len(graphs),
                "rows": [row.as_dict() for row in rows],
            }
        return self._summaries[key]


def _about(spec: Mapping[str, Any], taken: Sequence[str]) -> tuple[DatasetSource, ServedModel]:
    """The graphs and the network of a run by its specification, as a store has it.

    The network gets a name that is not taken by another.
    """
    graphs, model = spec["dataset"], ModelSpec.model_validate(spec["model"])
    source = {field: graphs.get(field) for field in ("name", "file", "graphs")}
    # the options of a named dataset determine its split, not its graphs
    named = source["name"] is not None
    more = {"root": graphs.get("root")} if named else graphs.get("options", {})
    dataset = DatasetSource(**source, **more)
    network = model.factory or Path(model.weights or "").stem
    served = ServedModel(
        f"{network} (run)" if network in taken else network,
        model.source,
        f"{network}, of the run",
        return_type=model.return_type,
        graphs=None if named else dataset,
    )
    return dataset, served


def _titles(specs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The titles of runs by ID: all different, with no more details than needed.

    What gets scores is always said, unless it is nodes.

    >>> explainer = {"name": "random", "options": {}}
    >>> _titles(
    ...     {"a": {"explainer": explainer, "seed": 0}, "b": {"explainer": explainer, "seed": 7}}
    ... )
    {'a': 'Random (seed 0)', 'b': 'Random (seed 7)'}
    """
    titles, details = {}, {}
    for run, spec in specs.items():
        name, options = spec["explainer"]["name"], spec["explainer"]["options"]
        titles[run] = offered()[name].title if name in offered() else name
        players = str(options.get("players") or "nodes").replace("_", " ").replace("-", " ")
        details[run] = [] if players == "nodes" else [players]

    def described(run: str) -> list[str]:
        spec = specs[run]
        options = spec["explainer"]["options"]
        told = [f"{name} {json.dumps(own)}" for name, own in options.items() if name != "players"]
        target = f"target {spec['target']}" if spec.get("target") is not None else ""
        seed = f"seed {spec['seed']}" if "seed" in spec else ""
        return [target, ", ".join(told), seed, run[:6]]

    for at in range(4):
        counts = Counter((titles[run], *details[run]) for run in specs)
        for run in [run for run in specs if counts[titles[run], *details[run]] > 1]:
            details[run] += [text] if (text := described(run)[at]) else []
    return {
        run: f"{title} ({', '.join(details[run])})" if details[run] else title
        for run, title in titles.items()
    }


def _remark(dataset: str, rows: int, others: int) -> str | None:
    if not others:
        return None
    return (
        f"These are the {rows:,} rows on {dataset}. The store also has rows on "
        f"{others} other {'pairs' if others > 1 else 'pair'} of dataset and network; choose the "
        "dataset with --run-dataset."
    )


def _metrics(row: Mapping[str, Any], level: float | None) -> dict[str, float] | None:
    """The metrics of a row at one sparsity, if it was evaluated there."""
    if row["error"] is not None or level not in row["sparsities"]:
        return None
    index = row["sparsities"].index(level)
    return {name: row[name][index] for name in METRICS}


def _is_graph_of(row: Mapping[str, Any], data: Data) -> bool:
    """Whether a row is about this graph, as far as the row shows."""
    if row["num_nodes"] is not None and row["num_nodes"] != data.num_nodes:
        return False
    return row["smiles"] is None or data.get("smiles") in (None, row["smiles"])


def _first_line(error: str) -> str:
    return public_message(error.splitlines()[0] if error else "")
