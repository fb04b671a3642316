"""One graph, one row: the columns, how a row is computed, and how it is encoded."""

from __future__ import annotations

import copy
import hashlib
import json
import os
import platform
import socket
import sys
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

import pyarrow as pa
from pydantic_core import from_json, to_json
from torch_geometric.data import Data

from gstarx._internal.messages import encodable
from gstarx._internal.progress import no_bars
from gstarx._version import __version__
from gstarx.evaluation import Pipeline, recorded
from gstarx.explainers import GStarX, NodeExplainer, attribute_node, graph_generator, versions_of
from gstarx.explanation import Explanation
from gstarx.gnn import ModelTask, WholeGraph, restored
from gstarx.metrics import METRICS
from gstarx.models import load_source
from gstarx.registry import ModelSource
from gstarx.values import Imprecise, collect_imprecise

#: Increased whenever the meaning of existing rows would change.
FORMAT = 1
#: Columns that may differ between two runs of the same specification.
VOLATILE = ("cpu_seconds", "wall_seconds", "finished", "host", "versions")
#: How nodes are selected at a sparsity, and the prefix of the columns of each rule.
RULES = {"top": "", "positive": "positive_"}

_NUMBERS = pa.list_(pa.float64())
SCHEMA = pa.schema(
    [
        pa.field("key", pa.string(), nullable=False),
        pa.field("run", pa.string(), nullable=False),
        pa.field("dataset", pa.string(), nullable=False),
        pa.field("split", pa.string()),
        pa.field("graph", pa.int64(), nullable=False),
        pa.field("explainer", pa.string(), nullable=False),
        pa.field("num_nodes", pa.int64()),
        pa.field("target", pa.int64()),
        pa.field("scores", _NUMBERS),
        pa.field("std_errors", _NUMBERS),
        pa.field("exact", pa.bool_()),
        pa.field("estimator", pa.string()),
        pa.field("evaluations", pa.int64()),
        pa.field("sparsities", _NUMBERS),
        *(
            pa.field(name, kind)
            for rule in RULES.values()
            for name, kind in [
                (f"{rule}selected", pa.list_(pa.list_(pa.int64()))),
                *((f"{rule}{metric}", _NUMBERS) for metric in METRICS),
            ]
        ),
        pa.field("error", pa.string()),
        pa.field("traceback", pa.string()),
        pa.field("cpu_seconds", pa.float64()),
        pa.field("wall_seconds", pa.float64()),
        pa.field("finished", pa.float64()),
        pa.field("host", pa.string()),
        pa.field("versions", pa.string()),
        pa.field("name", pa.string()),
        pa.field("smiles", pa.string()),
        # of the selections above, for a regression
        pa.field("clipped", _NUMBERS),
        # of a run of nodes, in which the column graph has the node too
        pa.field("node", pa.int64()),
        # the explanation as Explanation.to_dict() has it, as JSON
        pa.field("explanation", pa.string()),
    ]
)
#: Columns that :func:`explanation_of` reads, and those that are shown beside it.
OF_A_RESULT = (
    "explanation",
    "cpu_seconds",
    "explainer",
    "num_nodes",
    "scores",
    "selected",
    "target",
)
#: What the nodes of the graph of a run have in common: of the last run in this process.
_WHOLE_GRAPHS: dict[str, WholeGraph] = {}


def row_key(run: str, graph: int) -> str:
    """The key of a row: a digest of its run and its graph.

    >>> row_key("0" * 32, 1) == row_key("0" * 32, 2)
    False
    """
    return hashlib.sha256(f"{run} {graph}".encode()).hexdigest()[:32]


def digest_of(content: Any) -> str:
    """A digest of JSON content that does not depend on the order of keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def request_name(run: str, spec: Mapping[str, Any]) -> str:
    """The name of a request in a store: the run and a digest of its graphs."""
    graphs = json.dumps([spec["split"], spec["graphs"], *filter(None, [spec.get("nodes")])])
    return f"{run}-{hashlib.sha256(graphs.encode()).hexdigest()[:8]}"


def identity_in(request: Mapping[str, Any]) -> dict[str, Any]:
    """The part of a request whose digest is the run."""
    return {k: v for k, v in request.items() if k not in ("name", "spec", "spec_digest")}


def explanation_of(row: Mapping[str, Any]) -> Explanation:
    """The explanation in a row."""
    stored = json.loads(row["explanation"])
    return Explanation.from_dict({**stored, "seconds": row["cpu_seconds"]})


def _stored(explanation: Explanation) -> str:
    """The explanation as JSON, which is the same whenever it is computed."""
    stored = {**explanation.to_dict(all_outputs=False), "seconds": None}
    # how much was compared depends on what the process explained before
    stored.pop("check", None)
    return json.dumps(stored, allow_nan=False)


def encoded(row: dict[str, Any]) -> bytes:
    """A row as one line of JSON that preserves every number exactly, also infinity and NaN.

    Text that cannot be encoded in UTF-8, as in the name of a file, is written with escapes.
    """
    plain = {name: encodable(value) for name, value in row.items()}
    return to_json(plain, inf_nan_mode="constants")


def decoded(line: bytes) -> dict[str, Any]:
    """The row that :func:`encoded` wrote."""
    row: dict[str, Any] = from_json(line, allow_inf_nan=True)
    return row


def as_table(lines: Sequence[bytes], schema: pa.Schema) -> pa.Table:
    """Encoded rows as a table of these columns."""
    rows = [decoded(line) for line in lines]
    columns = [pa.array([row.get(field.name) for row in rows], type=field.type) for field in schema]
    return pa.Table.from_arrays(columns, schema=schema)


class TaskResult(NamedTuple):
    """The encoded row of a graph, whether it failed, and the worst of its precision, if any."""

    position: int
    failed: bool
    row: bytes
    imprecise: Imprecise | None = None


@dataclass(frozen=True, eq=False)
class RowTask:
    """Explains the graphs of a run, in the same way in every worker.

    A row depends only on the task, the position and the graph: neither on the worker nor on what
    it did before.
    """

    run_id: str
    dataset: str
    explainer_name: str
    pipeline: Pipeline
    explainer: NodeExplainer
    sparsities: tuple[float, ...]
    device: str
    splits: dict[int, str]
    #: Versions of the packages that can change a number, as of the start of the run.
    versions: Mapping[str, str | None]
    #: A model of the user's own, which other machines import instead of receiving a pickle.
    factory: ModelSource | None = None
    #: Whether positions are nodes of one graph.
    of_nodes: bool = False

    def __getstate__(self) -> dict[str, Any]:
        if self.factory is None:
            return self.__dict__
        without = replace(self.pipeline, model=None)
        return {**vars(self), "pipeline": without, "_path": [p or os.getcwd() for p in sys.path]}

    def __setstate__(self, state: dict[str, Any]) -> None:
        sys.path.extend(entry for entry in state.pop("_path", ()) if entry not in sys.path)
        self.__dict__.update(state)
        if self.factory is not None:
            model = load_source(self.factory).model
            model = model.to(self.device) if hasattr(model, "to") else model
            self.__dict__["pipeline"] = replace(self.pipeline, model=model)

    def run(self, position: int, data: Data) -> TaskResult:
        """Explain one graph; an error becomes part of the row."""
        row = self._empty_row(position, data)
        try:
            with no_bars(), collect_imprecise() as imprecise:
                result = self._explain(position, on_device(data, self.device))
            line = encoded({**row, **result, "finished": time.time()})
            return TaskResult(position, False, line, max(imprecise, default=None))
        except Exception as error:
            row |= {"error": _describe(error), "traceback": traceback.format_exc()}
        return TaskResult(position, True, encoded({**row, "finished": time.time()}))

    def lost(self, position: int, data: Data, reason: str) -> TaskResult:
        """The row of a graph that crashed its workers."""
        row = self._empty_row(position, data)
        row |= {"error": f"WorkerLost: {reason}", "finished": time.time()}
        return TaskResult(position, True, encoded(row))

    def _empty_row(self, position: int, data: Data) -> dict[str, Any]:
        row = {
            "key": row_key(self.run_id, position),
            "run": self.run_id,
            "dataset": self.dataset,
            "split": self.splits.get(position),
            "graph": position,
            "explainer": self.explainer_name,
            "num_nodes": int(data.num_nodes or 0),
            "sparsities": self.sparsities,
            "host": socket.gethostname(),
            "versions": _versions(tuple(self.versions)),
            "name": data.get("name") or None,
            "smiles": data.get("smiles") or None,
        }
        return {**row, "node": position} if self.of_nodes else row

    def _explain_node(self, node: int, data: Data) -> dict[str, Any]:
        """Scores of the players of a node, as :func:`gstarx.explain_nodes` computes them."""
        assert isinstance(self.explainer, GStarX)
        model = self.pipeline.model
        task = replace(self.pipeline.model_task, target=self.pipeline.target, index=node)
        start = time.perf_counter()
        with restored(model):
            whole_graph = _whole_graph_of(self.run_id, model, data, task)
            generator = graph_generator(self.pipeline.seed, node)
            attribution, seconds = attribute_node(
                self.explainer, model, data, task, whole_graph, generator
            )
            explanation = Explanation.of(
                replace(attribution, prediction=whole_graph.node_outputs),
                model,
                data,
                task,
                method=self.explainer.method or "gstarx",
                seconds=seconds,
            )
        found = recorded(explanation)
        # of all nodes of a large graph, there would be as many for every row
        del found["scores"], found["std_errors"]
        wall = time.perf_counter() - start
        return {**found, "explanation": _stored(explanation), "wall_seconds": wall}

    def _explain(self, position: int, data: Data) -> dict[str, Any]:
        if self.of_nodes:
            return self._explain_node(position, data)
        with restored(self.pipeline.model):
            start = time.perf_counter()
            explanation = self.pipeline.explain(self.explainer, data, position)
            wall = time.perf_counter() - start
            evaluated = self.pipeline.evaluate(
                data, explanation, sparsities=self.sparsities, rules=list(RULES)
            )
        row: dict[str, Any] = {**recorded(explanation), "wall_seconds": wall}
        row["explanation"] = _stored(explanation)
        for rule, prefix in RULES.items():
            # of edges and groups, the nodes that they touch or contain
            row[f"{prefix}selected"] = [
                explanation.nodes_of(players).tolist() for players in evaluated[rule].selections
            ]
            for metric in METRICS:
                row[prefix + metric] = [getattr(m, metric) for m in evaluated[rule].metrics]
        if self.pipeline.reference is not None:
            row["clipped"] = [m.clipped for m in evaluated["top"].metrics]
        return row


def _whole_graph_of(run: str, model: Any, data: Data, task: ModelTask) -> WholeGraph:
    if run not in _WHOLE_GRAPHS:
        _WHOLE_GRAPHS.clear()
        _WHOLE_GRAPHS[run] = WholeGraph.of(model, data, replace(task, index=None))
    return _WHOLE_GRAPHS[run]


def on_device(data: Data, device: str) -> Data:
    """A copy of the graph on a device, or the graph itself if it is there."""
    return data if device == "cpu" else copy.copy(data).to(device)


@cache
def package_versions() -> dict[str, str]:
    """Installed versions of the packages that can change a number."""
    packages = ("numba", "numpy", "torch", "torch_geometric")
    return {"gstarx": __version__, **{name: version(name) for name in packages}}


@cache
def _versions(packages: tuple[str, ...]) -> str:
    versions = {**versions_of(packages), **package_versions()}
    return json.dumps({"python": platform.python_version(), **versions})


def _describe(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, whose message cannot be printed"
