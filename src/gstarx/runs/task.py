"""One graph, one row: explained, judged at every sparsity, timed, and failures written down."""

from __future__ import annotations

import copy
import json
import platform
import socket
import sys
import time
import traceback
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache
from importlib.metadata import version
from operator import index
from typing import Any, NamedTuple

import numpy as np
from torch_geometric.data import Data

from gstarx.explainers import NodeExplainer, NodeResult
from gstarx.explainers.packages import versions_of
from gstarx.gnn.model_state import restored
from gstarx.metrics import METRICS, evaluate_many
from gstarx.metrics.selection import selection_size
from gstarx.models import Network
from gstarx.runs.rows import RULES, encoded, row_key


class Done(NamedTuple):
    """A graph that was seen to: its row as bytes, and whether it failed."""

    position: int
    failed: bool
    row: bytes


@dataclass(frozen=True, eq=False)
class Task:
    """What explains the graphs of a run, the same in every worker.

    A row depends on the work, the position and the graph alone: neither on the worker nor on what
    it did before.
    """

    run_id: str
    dataset: str
    explainer_name: str
    model: Network
    explainer: NodeExplainer
    removal: str
    sparsities: tuple[float, ...]
    seed: int
    device: str
    splits: dict[int, str]
    #: Of the packages that can change a number, as the run was begun with.
    versions: Mapping[str, str | None]

    def run(self, position: int, data: Data) -> Done:
        """Explain one graph. An error of its own becomes part of the row."""
        row = self._about(position, data)
        try:
            found = self._explained(position, on_device(data, self.device))
            return Done(position, False, encoded({**row, **found, "finished": time.time()}))
        except Exception as error:
            row |= {"error": _said(error), "traceback": traceback.format_exc()}
        return Done(position, True, encoded({**row, "finished": time.time()}))

    def lost(self, position: int, data: Data, reason: str) -> Done:
        """The row of a graph whose worker was lost, time and again."""
        row = self._about(position, data)
        row |= {"error": f"WorkerLost: {reason}", "finished": time.time()}
        return Done(position, True, encoded(row))

    def _about(self, position: int, data: Data) -> dict[str, Any]:
        return {
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
        }

    def _explained(self, position: int, data: Data) -> dict[str, Any]:
        generator = np.random.default_rng(np.random.SeedSequence([self.seed, position]))
        with restored(self.model):
            start = time.perf_counter()
            found = self.explainer.explain(self.model, data, seed=generator)
            wall = time.perf_counter() - start
            judged = self._judged(data, found)
        scores, errors = found.node_scores, found.details.get("node_std_error")
        exact, estimator = found.details.get("exact"), found.details.get("estimator")
        return {
            # of the types that the store has, whatever an explainer of somebody else says
            "target": None if found.target is None else index(found.target),
            "scores": None if scores is None else scores.tolist(),
            "std_errors": None if errors is None else np.asarray(errors, np.float64).tolist(),
            "exact": None if exact is None else bool(exact),
            "estimator": None if estimator is None else str(estimator),
            "evaluations": None if found.evaluations is None else index(found.evaluations),
            "cpu_seconds": found.cpu_seconds,
            "wall_seconds": wall,
            **judged,
        }

    def _judged(self, data: Data, found: NodeResult) -> dict[str, Any]:
        """Selected nodes and all metrics at every sparsity, under both rules, in one pass."""
        count = int(data.num_nodes or 0)
        sizes = [selection_size(count, level) for level in self.sparsities]
        chosen = {
            rule: [found.select(size, positive_only=positive) for size in sizes]
            for rule, positive in RULES.items()
        }
        # most selections of the two rules are the same nodes, and are asked for once
        distinct = {nodes.tobytes(): nodes for sets in chosen.values() for nodes in sets}
        (judged,) = evaluate_many(
            self.model,
            [data],
            [list(distinct.values())],
            target=found.target,
            removal=self.removal,
        )
        metrics = {key: asdict(one) for key, one in zip(distinct, judged, strict=True)}
        row: dict[str, Any] = {}
        for rule, sets in chosen.items():
            row[f"{rule}selected"] = [nodes.tolist() for nodes in sets]
            for metric in METRICS:
                row[rule + metric] = [metrics[nodes.tobytes()][metric] for nodes in sets]
        return row


def on_device(data: Data, device: str) -> Data:
    """The graph on a device; the one given stays where it is."""
    return data if device == "cpu" else copy.copy(data).to(device)


@cache
def package_versions() -> dict[str, str]:
    """Versions of the packages that can change a number, where this is called."""
    # not imported: a room does not use the front door, through which everybody came
    own = sys.modules["gstarx"].__version__
    others = ("numba", "numpy", "torch", "torch_geometric")
    return {"gstarx": own, **{name: version(name) for name in others}}


@cache
def _versions(packages: tuple[str, ...]) -> str:
    versions = {**versions_of(packages), **package_versions()}
    return json.dumps({"python": platform.python_version(), **versions})


def _said(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, which cannot say what it is"
