"""What the store knows of one graph: the columns, and a row of them as bytes."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from pydantic_core import from_json, to_json

from gstarx.explainers import Explanation
from gstarx.metrics import METRICS

#: Changes whenever rows written before would mean something else.
FORMAT = 1
#: Columns that may differ between two runs of one specification.
VOLATILE = ("cpu_seconds", "wall_seconds", "finished", "host", "versions")
#: How nodes are selected at a sparsity, and what the columns of the rule begin with.
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
    ]
)


def row_key(run: str, graph: int) -> str:
    """The key of a row: of everything that can change a number in it, and the graph.

    >>> row_key("0" * 32, 1) == row_key("0" * 32, 2)
    False
    """
    return hashlib.sha256(f"{run} {graph}".encode()).hexdigest()[:32]


def digest_of(content: Any) -> str:
    """A digest of whatever JSON can hold, which does not depend on the order of keys."""
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def request_name(run: str, spec: Mapping[str, Any]) -> str:
    """The name under which a store remembers what was asked for: the run and its graphs."""
    asked = json.dumps([spec["split"], spec["graphs"]])
    return f"{run}-{hashlib.sha256(asked.encode()).hexdigest()[:8]}"


def identity_in(request: Mapping[str, Any]) -> dict[str, Any]:
    """What the run of a request is the digest of."""
    return {k: v for k, v in request.items() if k not in ("name", "spec", "spec_digest")}


#: Columns that :func:`explanation_of` reads.
OF_A_RESULT = (
    *("scores", "selected", "target", "evaluations", "cpu_seconds"),
    *("std_errors", "exact", "estimator", "explainer", "num_nodes"),
)


def explanation_of(row: Mapping[str, Any]) -> Explanation:
    """What the explainer answered, from the row that was kept of it."""
    scores, errors = row["scores"], row["std_errors"]
    # a search without scores has left what it selected at every sparsity
    sets = {tuple(nodes) for nodes in row["selected"]} if scores is None else set()
    return Explanation.from_scores(
        None if scores is None else np.array(scores, dtype=np.float64),
        num_nodes=row["num_nodes"],
        std_errors=None if errors is None else np.array(errors, dtype=np.float64),
        sets=[np.array(nodes, dtype=np.int64) for nodes in sorted(sets, key=len)[::-1]],
        method=row["explainer"],
        target=row["target"],
        exact=row["exact"],
        estimator=row["estimator"],
        evaluations=row["evaluations"],
        seconds=row["cpu_seconds"],
    )


def encoded(row: dict[str, Any]) -> bytes:
    """A row as one line of JSON; numbers come back bit by bit, infinite ones and NaN too.

    Text that UTF-8 has no bytes for, as in the name of a file, is written with escapes.
    """
    plain = {
        name: value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value
        for name, value in row.items()
    }
    return to_json(plain, inf_nan_mode="constants")


def decoded(line: bytes) -> dict[str, Any]:
    """The row that :func:`encoded` wrote."""
    row: dict[str, Any] = from_json(line, allow_inf_nan=True)
    return row


def as_table(lines: Sequence[bytes]) -> pa.Table:
    """Encoded rows as a table of the store's columns."""
    rows = [decoded(line) for line in lines]
    columns = [pa.array([row.get(field.name) for row in rows], type=field.type) for field in SCHEMA]
    return pa.Table.from_arrays(columns, schema=SCHEMA)
