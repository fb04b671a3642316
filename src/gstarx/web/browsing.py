"""Inside a worker: a store of runs, as it is browsed."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gstarx import runs
from gstarx._internal.suggestions import unknown
from gstarx.datasets import label_of, title_of
from gstarx.registry import ModelSource
from gstarx.runs import OF_A_RESULT, Store, check_format, explanation_of
from gstarx.web.catalog import METRICS, OFFER
from gstarx.web.messages import Refused
from gstarx.web.settings import ServedModel, ServedRun

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gstarx.explainers import Explanation
    from gstarx.web.networks import Networks

_COLUMNS = (
    *("run", "graph", "sparsities", "error"),
    *OF_A_RESULT,
    *METRICS,
)
#: What rows are sorted by that is no metric.
_PLAIN = ("graph", "nodes")


@dataclass(frozen=True)
class StoredRun:
    """One run: an explainer on the graphs."""

    id: str
    explainer: str
    options: dict[str, Any]
    title: str
    removal: str = "remove"
    rows: dict[int, dict[str, Any]] = field(default_factory=dict, repr=False)

    @property
    def explained(self) -> list[dict[str, Any]]:
        """The rows of graphs that did not fail."""
        return [row for row in self.rows.values() if row["error"] is None]

    def entry(self) -> dict[str, Any]:
        """As it is listed."""
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
class Browsed:
    """The runs of a store that are about one dataset and one network.

    Attributes
    ----------
    dataset
        Its name.
    runs
        The runs by id.
    served
        Their network, to be asked about graphs of the dataset.
    remark
        What was left out, where something was.
    about
        The dataset and the file of the network that they are about.
    """

    dataset: str
    runs: dict[str, StoredRun]
    served: ServedModel
    remark: str | None
    about: tuple[str, str]
    networks: Networks = field(repr=False)

    @classmethod
    def of(
        cls, asked: ServedRun, networks: Networks, about: tuple[str, str] | None = None
    ) -> Browsed:
        """Read the store; of several datasets the one that is asked for, or has most rows.

        With ``about``, runs about that dataset and network, whatever else there is by now.
        """
        check_format(asked.store)
        requests = {
            one["name"].partition("-")[0]: one["spec"] for one in Store(asked.store).requests()
        }
        subjects = {
            run: (spec["dataset"]["name"], spec["model"]["weights"])
            for run, spec in requests.items()
        }
        rows = runs.read(asked.store, columns=["run"]).column("run").to_pylist()
        counts = Counter(subjects[run] for run in rows if run in subjects)
        wanted = [pair for pair in counts if asked.dataset in (None, pair[0])]
        wanted = [pair for pair in wanted if about in (None, pair)]
        if not wanted:
            known = sorted({dataset for dataset, _ in counts})
            what = "dataset in the store"
            raise ValueError(
                unknown(what, asked.dataset, known) if asked.dataset else "the store has no rows"
            )
        dataset, weights = chosen = max(wanted, key=lambda pair: counts[pair])
        found = [run for run, pair in subjects.items() if pair == chosen and run in set(rows)]
        titles = _titles({run: requests[run] for run in found})
        stem = Path(weights).stem
        name = f"{stem} (run)" if stem in networks.names else stem
        served = ServedModel(name, ModelSource(weights=Path(weights)), f"{stem}, of the run")
        return cls(
            dataset,
            {run: _stored(asked.store, run, requests[run], titles[run]) for run in found},
            served,
            _remark(chosen, counts),
            chosen,
            networks,
        )

    @property
    def model(self) -> str:
        """The name of the network."""
        return self.served.name

    @cached_property
    def _data(self) -> Any:
        """The dataset, where it can be loaded."""
        try:
            return self.networks.dataset(self.dataset)
        except (OSError, ValueError, ImportError):
            return None

    @cached_property
    def _graphs(self) -> dict[int, dict[str, Any]]:
        """What is known of every graph that some run is about."""
        found: dict[int, dict[str, Any]] = {}
        for run in self.runs.values():
            for graph, row in run.rows.items():
                if graph not in found:
                    found[graph] = self._known(graph, row)
                if found[graph]["prediction"] is None:
                    found[graph]["prediction"] = row["target"]
        for entry in found.values():
            if entry["label"] is not None and entry["prediction"] is not None:
                entry["correct"] = entry["label"] == entry["prediction"]
        return dict(sorted(found.items()))

    def _known(self, graph: int, row: Mapping[str, Any]) -> dict[str, Any]:
        data = self._data[graph] if self._data is not None and graph < len(self._data) else None
        number = f"{self.dataset} {graph}"
        return {
            "graph": graph,
            "title": number if data is None else title_of(data, number),
            "nodes": row["num_nodes"],
            "prediction": row["target"],
            "label": None if data is None else label_of(data),
            "correct": None,
        }

    def graph(self, position: int) -> Data:
        """A graph that some run is about, or Refused."""
        if position not in self._graphs:
            text = f"the run is not about a graph {position} of {self.dataset}"
            raise Refused("bad_graph", text, "input.run_graph")
        if self._data is None:
            text = f"the dataset {self.dataset} is not here: start the server with --data"
            raise Refused("no_data", text, "input.run_graph")
        found: Data = self._data[position]
        return found

    def results(self, position: int) -> list[tuple[StoredRun, Explanation | None, str | None]]:
        """What each run found of a graph, or why it failed."""
        listed = []
        for run in self.runs.values():
            row = run.rows.get(position)
            error = "this run has not come to the graph yet" if row is None else row["error"]
            found = explanation_of(row) if row is not None and error is None else None
            listed.append((run, found, _first_line(error)))
        return listed

    @cached_property
    def sparsities(self) -> list[float]:
        """Where the runs judged their explanations."""
        found = {
            level
            for run in self.runs.values()
            for row in run.explained
            for level in row["sparsities"]
        }
        return sorted(found)

    def summary(self) -> dict[str, Any]:
        """The runs as they are listed, with the means at every sparsity."""
        judged = [
            entry["correct"] for entry in self._graphs.values() if entry["correct"] is not None
        ]
        return {
            "title": f"{self.dataset}: {', '.join(run.title for run in self.runs.values())}"[:200],
            "dataset": self.dataset,
            "model": self.model,
            "runs": [run.entry() for run in self.runs.values()],
            "sparsities": self.sparsities,
            "curves": {run.id: self._curves(run) for run in self.runs.values()},
            "accuracy": sum(judged) / len(judged) if judged else None,
            "classes": [] if self._data is None else list(self._data.class_names),
            "remark": self.remark,
        }

    def _curves(self, run: StoredRun) -> dict[str, list[float | None]]:
        points = [[_at(row, level) for row in run.explained] for level in self.sparsities]
        return {
            name: [_mean([one[name] for one in point if one is not None]) for point in points]
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
        offset: int,
        limit: int,
    ) -> dict[str, Any]:
        """A page of the graphs, with the metrics of every run beside each other."""
        level = min(self.sparsities, key=lambda one: abs(one - sparsity), default=None)
        entries = [self._row(graph, level) for graph in self._graphs]
        if filter == "wrong":
            entries = [entry for entry in entries if entry["correct"] is False]
        elif filter == "failed":
            entries = [entry for entry in entries if entry["error"] is not None]
        by = next(iter(self.runs)) if run is None else run
        known: list[tuple[Any, dict[str, Any]]] = []
        without: list[tuple[Any, dict[str, Any]]] = []
        for entry in entries:
            value = entry[sort] if sort in _PLAIN else (entry["metrics"][by] or {}).get(sort)
            (without if value is None else known).append((value, entry))
        known.sort(key=lambda pair: pair[0], reverse=order == "desc")
        # graphs without that number come last, whichever way the others are sorted
        listed = [entry for _, entry in (*known, *without)]
        return {"total": len(listed), "rows": listed[offset : offset + limit]}

    def _row(self, graph: int, level: float | None) -> dict[str, Any]:
        own = {run.id: run.rows.get(graph) for run in self.runs.values()}
        errors = [
            f"{self.runs[id].title}: {_first_line(row['error'])}"
            for id, row in own.items()
            if row is not None and row["error"] is not None
        ]
        return {
            **self._graphs[graph],
            "metrics": {id: None if row is None else _at(row, level) for id, row in own.items()},
            "error": "; ".join(errors) or None,
        }


def _stored(store: Path, run: str, spec: Mapping[str, Any], title: str) -> StoredRun:
    explainer, options = spec["explainer"]["name"], spec["explainer"]["options"]
    found = runs.read(store, run=run, columns=list(_COLUMNS)).to_pylist()
    rows = {row["graph"]: row for row in found}
    return StoredRun(run, explainer, options, title, spec.get("removal", "remove"), rows)


def _titles(specs: Mapping[str, Mapping[str, Any]]) -> dict[str, str]:
    """What to call runs, by id: all differently, and with no more words than that takes.

    >>> explainer = {"name": "random", "options": {}}
    >>> _titles(
    ...     {"a": {"explainer": explainer, "seed": 0}, "b": {"explainer": explainer, "seed": 7}}
    ... )
    {'a': 'Random (seed 0)', 'b': 'Random (seed 7)'}
    """
    names = {run: spec["explainer"]["name"] for run, spec in specs.items()}
    found = {run: OFFER[name].title if name in OFFER else name for run, name in names.items()}
    words: dict[str, list[str]] = {run: [] for run in specs}
    for more in (_options_in_words, _seed_in_words, lambda run, _: run[:6]):
        shown = Counter((found[run], *words[run]) for run in specs)
        for run in [run for run in specs if shown[found[run], *words[run]] > 1]:
            words[run] += [text] if (text := more(run, specs[run])) else []
    return {
        run: f"{title} ({', '.join(words[run])})" if words[run] else title
        for run, title in found.items()
    }


def _options_in_words(_: str, spec: Mapping[str, Any]) -> str:
    options = spec["explainer"]["options"]
    return ", ".join(f"{name} {json.dumps(value)}" for name, value in options.items())


def _seed_in_words(_: str, spec: Mapping[str, Any]) -> str:
    return f"seed {spec['seed']}" if "seed" in spec else ""


def _remark(chosen: tuple[str, str], counts: Counter[tuple[str, str]]) -> str | None:
    others = len(counts) - 1
    if not others:
        return None
    several = f"{others} other {'sets' if others > 1 else 'set'}"
    return (
        f"The store also has rows on {several} of graphs or networks, which are not shown; these "
        f"are the {counts[chosen]:,} on {chosen[0]}. Choose by --run-dataset."
    )


def _at(row: Mapping[str, Any], level: float | None) -> dict[str, float] | None:
    """The metrics of a row at one sparsity, where it was judged there."""
    if row["error"] is not None or level not in row["sparsities"]:
        return None
    at = row["sparsities"].index(level)
    return {name: row[name][at] for name in METRICS}


def _mean(values: list[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _first_line(error: str | None) -> str | None:
    from gstarx.web.messages import said

    return None if error is None else said(RuntimeError(error.splitlines()[0] if error else ""))
