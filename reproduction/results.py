"""Stored results: few columns of the runs' rows, kept with the code, and statistics over them.

One Parquet file per setup. A row is one graph explained by one method. A method whose settings
changed counts as another method, and the rows of the old one are no longer read.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from gstarx._internal.files import atomic_path, write_atomically
from gstarx.metrics import Difference, entropy_sparsity, paired_bootstrap, share_of_gap
from reproduction.methods import METHODS, Method
from reproduction.setups import Setup

#: Metrics stored at every sparsity; for the selection of positive scores only the first of them.
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
#: Column prefixes by selection rule: Algorithm 1's top k, and positive scores only.
RULES = {"top k": "", "positive": "positive_"}
RANDOM = tuple(name for name in METHODS if name.startswith("random ") and "refined" not in name)


class RowStore:
    """The rows of one setup, in one file."""

    def __init__(self, folder: Path, setup: str) -> None:
        self.path = folder / "rows" / f"{setup}.parquet"
        self.listed = folder / "rows" / f"{setup}.json"
        self.table = SCHEMA.empty_table()
        if self.path.exists():
            self.table = pq.read_table(self.path, columns=SCHEMA.names)

    def graphs(self, split: str) -> tuple[int, ...] | None:
        """The graphs of a split that are explained, in their order; None if nothing was."""
        graphs = self._listed().get(split)
        return None if graphs is None else tuple(graphs)

    @property
    def missing(self) -> str | None:
        """Why nothing is explained; None where something is."""
        listed = self._listed()
        return None if "test" in listed else str(listed.get("missing", "nothing yet"))

    def note_graphs(self, graphs: Mapping[str, Sequence[int]]) -> None:
        """Record which graphs are explained, so that tables can be made without the data."""
        if any(self.graphs(split) != tuple(own) for split, own in graphs.items()):
            self.listed.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.listed, (json.dumps(graphs) + "\n").encode())

    def note_missing(self, why: str) -> None:
        """Record why nothing can be explained, unless something already is."""
        if self.missing is not None:
            self.listed.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(self.listed, (json.dumps({"missing": why}) + "\n").encode())

    def done(self, method: Method, split: str) -> set[int]:
        """Graphs that the method with its current settings has explained."""
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
        """Add rows of a run's store, replacing older ones of the same graphs.

        ``tested`` graphs belong to the test split, all others to the validation split.
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
        with atomic_path(self.path) as aside:
            pq.write_table(self.table, aside, compression="zstd", compression_level=19)

    def _listed(self) -> dict[str, Any]:
        if not self.listed.exists():
            return {}
        listed: dict[str, Any] = json.loads(self.listed.read_text(encoding="utf-8"))
        return listed

    def _of(self, method: Method, split: str) -> pa.Table:
        return self.table.filter(
            (pc.field("method") == method.name)
            & (pc.field("settings") == method.digest)
            & (pc.field("split") == split)
        )


@dataclass(frozen=True)
class Curves:
    """Metrics of one method, arrays of shape (graphs, sparsities).

    ``rule`` is the selection rule of the harmonic fidelity; the other metrics are of Algorithm 1's.
    """

    method: Method
    rule: str
    harmonic: NDArray[np.float64]
    fidelity: NDArray[np.float64]
    inverse: NDArray[np.float64]
    sparsity: NDArray[np.float64]
    cpu_seconds: NDArray[np.float64]
    evaluations: NDArray[np.float64]
    entropy: NDArray[np.float64]
    exact: NDArray[np.bool_]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean harmonic fidelity at every sparsity."""
        means: NDArray[np.float64] = self.harmonic.mean(axis=0)
        return means

    @property
    def best(self) -> float:
        """The figure the paper reports: the best mean over the sparsities."""
        return float(self.means.max())


@dataclass(frozen=True)
class Choice:
    """A method with rule and sparsity chosen on validation, evaluated once on the test split."""

    method: Method
    rule: str
    level: int
    validation: float
    test: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean over test graphs."""
        return float(self.test.mean())


class SetupResults:
    """The stored results of one setup, read once."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.setup = setup
        self.store = RowStore(folder, setup.name)
        self.missing = self.store.missing
        self._graphs = {split: self.store.graphs(split) or () for split in ("val", "test")}
        self._curves: dict[tuple[str, str, str, bool], Curves | None] = {}

    def graphs(self, split: str) -> tuple[int, ...]:
        """The graphs of a split that are explained."""
        return self._graphs[split]

    def curves(
        self, name: str, *, split: str = "test", rule: str = "top k", few: bool = False
    ) -> Curves | None:
        """A method's metrics on all of its graphs, or on the subset for slow methods.

        None if the method has not explained all of these graphs.
        """
        key = (name, split, rule, few)
        if key not in self._curves:  # the tables ask for the same curves many times
            self._curves[key] = self._read_curves(name, split, rule, few)
        return self._curves[key]

    def _read_curves(self, name: str, split: str, rule: str, few: bool) -> Curves | None:
        method = METHODS[name]
        if self.missing or split not in method.splits:
            return None
        if method.only and self.setup.name not in method.only:
            return None
        graphs = self.graphs(split)
        if few:
            graphs = self.setup.few_graphs(graphs, split)
        elif method.slow and len(graphs) > self.setup.few:
            return None
        rows = self.store.rows(method, split, graphs)
        if rows is None:
            return None
        start = RULES[rule]
        return Curves(
            method,
            rule,
            harmonic=_numbers(rows[start + "harmonic_fidelity"]),
            fidelity=_numbers(rows["fidelity"]),
            inverse=_numbers(rows["inverse_fidelity"]),
            sparsity=_numbers(rows["sparsity"]),
            cpu_seconds=_numbers(rows["cpu_seconds"]),
            evaluations=_numbers(rows["evaluations"]),
            entropy=_numbers(rows["entropy"]),
            exact=np.array([bool(one) for one in rows["exact"]]),
        )

    def best(self, name: str, *, few: bool = False) -> float | None:
        """Best harmonic fidelity over sparsities and rules on the test split."""
        curves = [self.curves(name, rule=rule, few=few) for rule in RULES]
        return max((one.best for one in curves if one is not None), default=None)

    def random(self, *, few: bool = False, split: str = "test") -> NDArray[np.float64] | None:
        """Mean harmonic fidelity of random selections at every sparsity, over their seeds."""
        curves = [self.curves(name, few=few, split=split) for name in RANDOM]
        means = [one.means for one in curves if one is not None]
        return np.mean(means, axis=0) if means else None

    def share(self, value: float, *, few: bool = False) -> float | None:
        """Share of the gap between random and best-found selections that a figure closes."""
        random, best = self.random(few=few), self.best("best found", few=few)
        if random is None or best is None:
            return None
        return share_of_gap(value, random=float(random.max()), best=best)

    def choose(self, names: Iterable[str], *, few: bool = False) -> Choice | None:
        """The combination of method, rule and sparsity that is best on the validation graphs."""
        best: Choice | None = None
        for name in names:
            for rule in RULES:
                val = self.curves(name, split="val", rule=rule, few=few or METHODS[name].slow)
                test = self.curves(name, rule=rule, few=few)
                if val is None or test is None:
                    continue
                level = int(np.argmax(val.means))
                mean = float(val.means[level])
                if best is None or mean > best.validation + 1e-9:
                    best = Choice(METHODS[name], rule, level, mean, test.harmonic[:, level])
        return best

    def compare(self, one: Choice, other: Choice) -> Difference:
        """The difference of two choices, paired over graphs."""
        return paired_bootstrap(one.test, other.test, seed=0)


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


def _numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([np.nan if one is None else one for one in values], dtype=np.float64)
