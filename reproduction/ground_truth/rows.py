"""Rows of the ground-truth benchmark: one graph, explained by one method, against its truth.

One Parquet file per task and network. A method whose settings changed counts as another method.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx._internal.files import atomic_path
from gstarx.metrics import attribution_auroc, attribution_tau
from reproduction.ground_truth import FOLDER
from reproduction.methods import Method

SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("settings", pa.string()),
        ("run", pa.string()),
        ("graph", pa.int32()),
        ("num_nodes", pa.int32()),
        ("exact", pa.bool_()),
        ("evaluations", pa.int64()),
        ("cpu_seconds", pa.float32()),
        ("agreement", pa.float32()),
        ("harmonic_fidelity", pa.list_(pa.float32())),
        ("robust_fidelity", pa.float32()),
        ("scores", pa.list_(pa.float32())),
        ("error", pa.string()),
    ]
)


class TruthRows:
    """The rows of one task and network, in one file."""

    def __init__(self, setup: str, folder: Path = FOLDER) -> None:
        self.path = folder / "rows" / f"{setup}.parquet"
        self.table = SCHEMA.empty_table()
        if self.path.exists():
            self.table = pq.read_table(self.path, columns=SCHEMA.names)

    def of(self, method: Method) -> dict[int, dict[str, Any]]:
        """Rows of a method with its current settings, by graph."""
        own = self.table.filter(
            (pc.field("method") == method.name) & (pc.field("settings") == method.digest)
        )
        return {row["graph"]: row for row in own.to_pylist()}

    def add(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Add rows, replacing older ones of the same method and graph."""
        settings = {row["method"]: row["settings"] for row in rows}
        fresh = {(row["method"], row["graph"]) for row in rows}
        kept = [
            row
            for row in self.table.to_pylist()
            if settings.get(row["method"], row["settings"]) == row["settings"]
            and (row["method"], row["graph"]) not in fresh
        ]
        table = pa.Table.from_pylist([*kept, *rows], schema=SCHEMA)
        self.table = table.sort_by([("method", "ascending"), ("graph", "ascending")])
        with atomic_path(self.path) as temporary:
            pq.write_table(self.table, temporary, compression="zstd", compression_level=19)


def new_row(method: Method, row: Mapping[str, Any], graph: Data) -> dict[str, Any]:
    """What is kept of a run's row, with the agreement of its scores with the truth."""
    scores = node_scores(row)
    kept = {name: row.get(name) for name in SCHEMA.names if name in row}
    return kept | {
        "method": method.name,
        "settings": method.digest,
        "scores": None if scores is None else scores.tolist(),
        "agreement": None if scores is None else agreement(scores, graph),
        "robust_fidelity": None,
    }


def agreement(scores: Any, graph: Data) -> float:
    """AUROC against the best alternative truth, or tau-b for contributions."""
    metric = attribution_tau if graph.truths.is_floating_point() else attribution_auroc
    return metric(scores, graph.truths)


def node_scores(row: Mapping[str, Any]) -> NDArray[np.float64] | None:
    """Scores in a run's row; of a method that selects sets, how many of them hold a node."""
    if row["scores"] is not None:
        return np.array(row["scores"], dtype=np.float64)
    if not row.get("selected"):
        return None
    counts = np.zeros(row["num_nodes"])
    for nodes in row["selected"]:
        counts[nodes] += 1
    return counts
