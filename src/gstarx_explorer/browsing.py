"""A store of runs, as the page browses it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gstarx._internal.factories import FactoryError
from gstarx._internal.messages import unknown
from gstarx.datasets import label_of, title_of
from gstarx.registry import DatasetSource, ModelSource
from gstarx_bench import runs
from gstarx_bench.runs import OF_A_RESULT, Store, check_format, explanation_of
from gstarx_explorer.catalog import METRICS, OFFERED, PLAYERS
from gstarx_explorer.messages import Refused, public_message
from gstarx_explorer.settings import LoadedModel, ServedModel, ServedRun
from gstarx_explorer.subjects import Subject, matches, outputs_of, thumbnail

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gstarx.explanation import Explanation
    from gstarx_explorer.library import Library

_COLUMNS = ("run", "graph", "sparsities", "error", "name", "smiles", *OF_A_RESULT, *METRICS)


@dataclass(frozen=True)
class StoredRun:
    """One run: the rows of an explainer, by graph."""

    id: str
    explainer: str
    options: dict[str, Any]
    title: str
    removal: str = "remove"
    target: int | None = None
    rows: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False)

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


@dataclass(frozen=True)
class StoreSubject:
    """What runs are about: the graphs and the network."""

    source: DatasetSource
    model: ModelSource
    return_type: str = "raw"

    @classmethod
    def of(cls, spec: Mapping[str, Any]) -> StoreSubject:
        """The subject of the specification of a run, as a store has it."""
        graphs, model = spec["dataset"], spec["model"]
        if graphs.get("name") is not None:
            # the options of a named dataset determine its split, not its graphs
            source = DatasetSource(name=graphs["name"], root=graphs.get("root"))
        else:
            source = DatasetSource(
                file=graphs.get("file"), graphs=graphs.get("graphs"), **graphs.get("options", {})
            )
        weights = model.get("weights")
        return cls(
            source,
            ModelSource(
                model.get("factory"),
                None if weights is None else Path(weights),
                task=model.get("task"),
            ),
            model.get("return_type", "raw"),
        )

    @property
    def network(self) -> str:
        """What to call the network."""
        factory, weights = self.model.model, self.model.weights
        return factory or ("" if weights is None else weights.stem)

    def served(self, used_names: Sequence[str]) -> ServedModel:
        """The network of the runs, under a name that is not in ``used_names``."""
        name = f"{self.network} (run)" if self.network in used_names else self.network
        return ServedModel(
            name,
            self.model,
            f"{self.network}, of the run",
            return_type=self.return_type,
            graphs=None if self.source.name is not None else self.source,
        )


@dataclass(frozen=True)
class StoreView:
    """The runs of a store that are about one dataset and one network.

    Attributes
    ----------
    runs
        The runs by ID.
    served
        The network, for requests about graphs of the dataset.
    remark
        What is not shown, if anything.
    subject
        The dataset and the network.
    library
        Loads the dataset.
    """

    runs: dict[str, StoredRun]
    served: ServedModel
    remark: str | None
    subject: StoreSubject
    library: Library = field(repr=False)

    @classmethod
    def of(
        cls, served_run: ServedRun, library: Library, subject: StoreSubject | None = None
    ) -> StoreView:
        """Read the runs about the dataset of the settings, or about that with the most rows.

        With ``subject``, read those about this dataset and network, even if others have more rows.
        """
        store = served_run.store
        check_format(store)
        requests = {
            request["name"].partition("-")[0]: request["spec"]
            for request in Store(store).requests()
            # runs of nodes have neither selections nor metrics to browse
            if not request["spec"].get("nodes")
        }
        subjects = {run: StoreSubject.of(spec) for run, spec in requests.items()}
        rows = runs.read(store, columns=["run"]).column("run").to_pylist()
        counts = Counter(subjects[run] for run in rows if run in subjects)
        matching = [
            candidate
            for candidate in counts
            if served_run.dataset in (None, candidate.source.title) and subject in (None, candidate)
        ]
        if not matching:
            if not served_run.dataset:
                raise ValueError("the store has no rows of whole graphs")
            valid = sorted({candidate.source.title for candidate in counts})
            raise ValueError(unknown("dataset in the store", served_run.dataset, valid))
        chosen = max(matching, key=lambda candidate: counts[candidate])
        with_rows = set(rows)
        ids = [run for run, about in subjects.items() if about == chosen and run in with_rows]
        titles = _titles({run: requests[run] for run in ids})
        return cls(
            {run: _read_run(store, run, requests[run], titles[run]) for run in ids},
            chosen.served(library.names),
            _remark(chosen.source.title, counts[chosen], len(counts) - 1),
            chosen,
            library,
        )

    @property
    def dataset(self) -> str:
        """The name of the dataset."""
        return self.subject.source.title

    @property
    def target(self) -> int | None:
        """The class or target that the first run explains; ``None`` is the predicted class."""
        return next(iter(self.runs.values())).target

    @property
    def model(self) -> str:
        """The name of the network."""
        return self.served.name

    @cached_property
    def _data(self) -> Any:
        """The dataset, if it can be loaded."""
        try:
            return self.library.dataset(self.subject.source)
        except (OSError, ValueError, ImportError, FactoryError):
            return None

    @cached_property
    def _model(self) -> LoadedModel | None:
        """The network, if it can be loaded."""
        try:
            return self.library.get(self.model)
        except Refused:
            return None

    @property
    def task(self) -> str:
        """What the network predicts."""
        if self._model is not None:
            return self._model.task
        return self.subject.model.task or "classification"

    @cached_property
    def _graphs(self) -> dict[int, dict[str, Any]]:
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
            label = label_of(data) if self._model is None else self.library.label(self._model, data)
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
        if position not in self._graphs:
            text = f"the run does not include graph {position} of {self.dataset}"
            raise Refused("bad_graph", text, "input.run_graph")
        if self._data is None:
            is_own_data = self.subject.source.name is None
            hint = "it was moved or changed" if is_own_data else "start the server with --data"
            text = f"the dataset {self.dataset} is not available: {hint}"
            raise Refused("no_data", text, "input.run_graph")
        data: Data = self._data[position]
        for run in self.runs.values():
            row = run.rows.get(position)
            if row is not None and not _is_graph_of(row, data):
                text = f"graph {position} of {self.dataset} has changed since the run"
                raise Refused("bad_graph", text, "input.run_graph")
        return data

    def results(self, position: int) -> list[tuple[StoredRun, Explanation | None, str | None]]:
        """The explanation of a graph by each run, or why there is none."""
        results = []
        for run in self.runs.values():
            row = run.rows.get(position)
            error = "this run has not reached the graph yet" if row is None else row["error"]
            explanation = explanation_of(row) if row is not None and error is None else None
            results.append((run, explanation, _first_line(error)))
        return results

    @property
    def players(self) -> str:
        """Who plays in all runs, by a name that the page knows; nodes if they differ."""
        chosen = [run.options.get("players", "nodes") for run in self.runs.values()]
        names = {str(name).replace("-", "_") for name in chosen}
        known = {name for by_kind in PLAYERS.values() for name in by_kind}
        return names.pop() if len(names) == 1 and names <= known else "nodes"

    @cached_property
    def sparsities(self) -> list[float]:
        """The sparsities at which the runs evaluated their explanations."""
        rows = [row for run in self.runs.values() for row in run.explained]
        return sorted({level for row in rows for level in row["sparsities"]})

    def summary(self) -> dict[str, Any]:
        """The runs, with the mean metrics at every sparsity."""
        correct = [
            entry["correct"] for entry in self._graphs.values() if entry["correct"] is not None
        ]
        return {
            "title": f"{self.dataset}: {', '.join(run.title for run in self.runs.values())}"[:200],
            "dataset": self.dataset,
            "model": self.model,
            "runs": [run.entry() for run in self.runs.values()],
            "sparsities": self.sparsities,
            "curves": {run.id: self._curves(run) for run in self.runs.values()},
            "accuracy": sum(correct) / len(correct) if correct else None,
            "task": self.task,
            "classes": list(self.names),
            "target": self.target,
            "remark": self.remark,
        }

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes or targets."""
        by_class = self.task in ("classification", "binary")
        if self._model is not None:
            named = self.library.classes if by_class else self.library.targets
            if names := named(self._model):
                return names
        if self._data is None:
            return ()
        names = self._data.class_names if by_class else self._data.target_names
        return tuple(names)

    def _curves(self, run: StoredRun) -> dict[str, list[float | None]]:
        by_level = [[_metrics(row, level) for row in run.explained] for level in self.sparsities]
        return {
            name: [_mean([row[name] for row in rows if row is not None]) for rows in by_level]
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
        level = min(self.sparsities, key=lambda level: abs(level - sparsity), default=None)
        entries = [self._row(graph, level) for graph in self._graphs]
        if filter == "wrong":
            entries = [entry for entry in entries if entry["correct"] is False]
        elif filter == "failed":
            entries = [entry for entry in entries if entry["error"] is not None]
        entries = [entry for entry in entries if matches(search, entry["graph"], entry)]
        sort_run = next(iter(self.runs)) if run is None else run

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
        try:
            data = self.graph(graph)
        except Refused:
            return entry  # opening the graph reports the reason
        entry["picture"] = thumbnail(data)
        if self._model is not None and self.task in ("multilabel", "regression"):
            with suppress(Refused):
                subject = Subject(data, "", graph, {})
                entry["outputs"] = outputs_of(self._model, subject)
                entry["measured"] = self.library.measured(self._model, data)
        return entry

    def _row(self, graph: int, level: float | None) -> dict[str, Any]:
        rows = {run.id: run.rows.get(graph) for run in self.runs.values()}
        errors = [
            f"{self.runs[id].title}: {_first_line(row['error'])}"
            for id, row in rows.items()
            if row is not None and row["error"] is not None
        ]
        return {
            **self._graphs[graph],
            "metrics": {
                id: None if row is None else _metrics(row, level) for id, row in rows.items()
            },
            "error": "; ".join(errors) or None,
        }


def _read_run(store: Path, run: str, spec: Mapping[str, Any], title: str) -> StoredRun:
    explainer, options = spec["explainer"]["name"], spec["explainer"]["options"]
    table = runs.read(store, run=run, columns=list(_COLUMNS))
    rows = {row["graph"]: row for row in table.to_pylist()}
    removal, target = spec.get("removal", "remove"), spec.get("target")
    return StoredRun(run, explainer, options, title, removal, target, rows)


def _titles(specs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """The titles of runs by ID: all different, with no more details than needed.

    What gets scores is always said, unless it is nodes.

    >>> explainer = {"name": "random", "options": {}}
    >>> _titles(
    ...     {"a": {"explainer": explainer, "seed": 0}, "b": {"explainer": explainer, "seed": 7}}
    ... )
    {'a': 'Random (seed 0)', 'b': 'Random (seed 7)'}
    """
    names = {run: spec["explainer"]["name"] for run, spec in specs.items()}
    titles = {run: OFFERED[name].title if name in OFFERED else name for run, name in names.items()}
    players = {run: _played_by(spec) for run, spec in specs.items()}
    details: dict[str, list[str]] = {run: [text] if (text := players[run]) else [] for run in specs}
    for describe in (_describe_target, _describe_options, _describe_seed, lambda run, _: run[:6]):
        counts = Counter((titles[run], *details[run]) for run in specs)
        for run in [run for run in specs if counts[titles[run], *details[run]] > 1]:
            details[run] += [text] if (text := describe(run, specs[run])) else []
    return {
        run: f"{title} ({', '.join(details[run])})" if details[run] else title
        for run, title in titles.items()
    }


def _describe_target(_: str, spec: Mapping[str, Any]) -> str:
    return f"target {spec['target']}" if spec.get("target") is not None else ""


def _describe_options(_: str, spec: Mapping[str, Any]) -> str:
    options = spec["explainer"]["options"]
    told = {name: value for name, value in options.items() if name != "players"}
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in told.items())


def _played_by(spec: Mapping[str, Any]) -> str:
    players = str(spec["explainer"]["options"].get("players") or "nodes")
    return "" if players == "nodes" else players.replace("_", " ").replace("-", " ")


def _describe_seed(_: str, spec: Mapping[str, Any]) -> str:
    return f"seed {spec['seed']}" if "seed" in spec else ""


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


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _first_line(error: str | None) -> str | None:
    if error is None:
        return None
    return public_message(RuntimeError(error.splitlines()[0] if error else ""))
