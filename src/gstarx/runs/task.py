"""One graph, one row: explained, evaluated at every sparsity, timed, with failures recorded."""

from __future__ import annotations

import copy
import json
import platform
import socket
import time
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from typing import Any, NamedTuple

from torch_geometric.data import Data

from gstarx._version import __version__
from gstarx.evaluation import Pipeline, recorded
from gstarx.explainers import NodeExplainer, versions_of
from gstarx.gnn import restored
from gstarx.metrics import METRICS
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
        pipeline = Pipeline(self.model, seed=self.seed, removal=self.removal)
        with restored(self.model):
            start = time.perf_counter()
            explanation = pipeline.explain(self.explainer, data, position)
            wall = time.perf_counter() - start
            evaluated = pipeline.evaluate(
                data, explanation, sparsities=self.sparsities, rules=list(RULES)
            )
        row: dict[str, Any] = {**recorded(explanation), "wall_seconds": wall}
        for rule, prefix in RULES.items():
            row[f"{prefix}selected"] = [nodes.tolist() for nodes in evaluated[rule].selections]
            for metric in METRICS:
                row[prefix + metric] = [getattr(one, metric) for one in evaluated[rule].metrics]
        return row


def on_device(data: Data, device: str) -> Data:
    """The graph on a device; the one given stays where it is."""
    return data if device == "cpu" else copy.copy(data).to(device)


@cache
def package_versions() -> dict[str, str]:
    """Versions of the packages that can change a number, where this is called."""
    others = ("numba", "numpy", "torch", "torch_geometric")
    return {"gstarx": __version__, **{name: version(name) for name in others}}


@cache
def _versions(packages: tuple[str, ...]) -> str:
    versions = {**versions_of(packages), **package_versions()}
    return json.dumps({"python": platform.python_version(), **versions})


def _said(error: Exception) -> str:
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return f"{type(error).__name__}, which cannot say what it is"
