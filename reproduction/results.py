"""What the experiments found: few columns of the runs' rows, small enough to be kept with the code.

One Parquet file for every setup. A row is a graph explained by a method; a method whose settings
changed is another one, and the rows of the old one are not read any more.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from gstarx._internal.atomic_write import write_whole, written_aside
from gstarx.metrics import entropy_sparsity
from reproduction.methods import Method

#: Metrics that are kept at every sparsity; where only positive scores are taken, the first of them.
KEPT = ("harmonic_fidelity", "fidelity", "inverse_fidelity", "sparsity")
_LEVELS = pa.list_(pa.float32())
SCHEMA = pa.schema(
    [
        ("method", pa.string()),
        ("settings", pa.string()),
        ("run", pa.string()),
        ("split", pa.string()),
        ("graph", pa.int32()),
        ("num_nodes", pa.int32()),
        ("exact", pa.bool_()),
        ("evaluations", pa.int64()),
        ("cpu_seconds", pa.float32()),
        ("entropy", pa.float32()),
        ("error", pa.string()),
        *((metric, _LEVELS) for metric in KEPT),
        ("positive_harmonic_fidelity", _LEVELS),
    ]
)


class Results:
    """The rows of one setup, in one file."""

    def __init__(self, folder: Path, setup: str) -> None:
        self.path = folder / "rows" / f"{setup}.parquet"
        self.listed = folder / "rows" / f"{setup}.json"
        self.table = SCHEMA.empty_table()
        if self.path.exists():
            self.table = pq.read_table(self.path, columns=SCHEMA.names)

    def graphs(self, split: str) -> tuple[int, ...] | None:
        """The graphs of a split that are explained, in their order; None if nothing was."""
        found = self._listed().get(split)
        return None if found is None else tuple(found)

    @property
    def missing(self) -> str | None:
        """Why nothing is explained; None where something is."""
        listed = self._listed()
        return None if "test" in listed else str(listed.get("missing", "nothing yet"))

    def note_graphs(self, graphs: Mapping[str, Sequence[int]]) -> None:
        """Write down which graphs are explained, so that tables can be made without the data."""
        if any(self.graphs(split) != tuple(own) for split, own in graphs.items()):
            self.listed.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.listed, (json.dumps(graphs) + "\n").encode())

    def note_missing(self, why: str) -> None:
        """Write down why nothing can be explained, unless something is already."""
        if self.missing is not None:
            self.listed.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self.listed, (json.dumps({"missing": why}) + "\n").encode())

    def done(self, method: Method, split: str) -> set[int]:
        """Graphs that the method, as it is set now, has explained."""
        rows = self._of(method, split)
        return set(rows["graph"].to_pylist())

    def rows(self, method: Method, split: str, graphs: Sequence[int]) -> dict[str, Any] | None:
        """Columns of a method for graphs in their order; None where one is missing or failed."""
        own = self._of(method, split)
        place = {graph: at for at, graph in enumerate(own["graph"].to_pylist())}
        if any(graph not in place for graph in graphs):
            return None
        own = own.take([place[graph] for graph in graphs])
        if any(error is not None for error in own["error"].to_pylist()):
            return None
        return {name: _array(own[name]) for name in SCHEMA.names}

    def add(self, method: Method, rows: pa.Table, tested: Container[int]) -> None:
        """Put rows of a run's store to the others, in place of older ones of the same graphs.

        Those of ``tested`` graphs are for testing, the others for choosing.
        """
        new = _kept(method, rows, tested)
        fresh = set(new["graph"].to_pylist())
        columns = (self.table[name].to_pylist() for name in ("method", "settings", "graph"))
        keep = [
            name != method.name or (of == method.digest and graph not in fresh)
            for name, of, graph in zip(*columns, strict=True)
        ]
        self.table = pa.concat_tables([self.table.filter(pa.array(keep, pa.bool_())), new])
        self.table = self.table.sort_by([(n, "ascending") for n in ("method", "split", "graph")])
        self.path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(self.path) as aside:
            pq.write_table(self.table, aside, compression="zstd", compression_level=19)

    def _listed(self) -> dict[str, Any]:
        if not self.listed.exists():
            return {}
        found: dict[str, Any] = json.loads(self.listed.read_text(encoding="utf-8"))
        return found

    def _of(self, method: Method, split: str) -> pa.Table:
        return self.table.filter(
            (pc.field("method") == method.name)
            & (pc.field("settings") == method.digest)
            & (pc.field("split") == split)
        )


def _kept(method: Method, rows: pa.Table, tested: Container[int]) -> pa.Table:
    count = rows.num_rows
    columns: dict[str, Any] = {
        "method": [method.name] * count,
        "settings": [method.digest] * count,
        "split": ["test" if graph in tested else "val" for graph in rows["graph"].to_pylist()],
        "entropy": [_entropy(scores) for scores in rows["scores"].to_pylist()],
    }
    for name in SCHEMA.names:
        if name not in columns:
            columns[name] = rows[name].to_pylist()
    return pa.table(
        {name: pa.array(columns[name], SCHEMA.field(name).type) for name in SCHEMA.names}
    )


def _entropy(scores: Iterable[float] | None) -> float | None:
    if scores is None:
        return None
    return float(entropy_sparsity(np.array(list(scores))))


def _array(column: pa.ChunkedArray) -> Any:
    """A column as numpy, lists of levels as rows."""
    values = column.to_pylist()
    if values and isinstance(values[0], list):
        return np.array(values)
    return values
