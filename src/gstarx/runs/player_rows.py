"""Players that are not nodes in the rows of a run: who they are, and their scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from gstarx.explainers import Explanation
from gstarx.gnn import PlayerSet
from gstarx.players import Edges, Features, Groups

#: Columns of rows of graphs whose players are not nodes; empty in all others.
FIELDS = (
    # the kind of players and their options, as JSON
    pa.field("player_spec", pa.string()),
    pa.field("player_names", pa.list_(pa.string())),
    # the nodes of a group, or the columns of a feature
    pa.field("player_units", pa.list_(pa.list_(pa.int64()))),
)
#: All columns that are read to have the players back.
COLUMNS = ("player_edges", "player_scores", "player_std_errors", *(f.name for f in FIELDS))


def player_columns(explanation: Explanation) -> dict[str, Any]:
    """The columns of an explanation; none if its players are nodes."""
    if explanation.player_kind == "nodes":
        return {}
    spec, errors = explanation.player_spec, explanation.std_errors
    options: dict[str, Any] = {"kind": explanation.player_kind}
    columns: dict[str, Any] = {
        "player_names": explanation.player_names,
        "player_scores": explanation.scores.tolist(),
        "player_std_errors": None if bool(errors.isnan().all()) else errors.tolist(),
    }
    if isinstance(spec, Edges):
        options |= {"directed": spec.directed, "touched": spec.touched}
        columns["player_edges"] = explanation.player_edges.tolist()
    else:
        columns["player_units"] = _members(explanation)
    if isinstance(spec, Features):
        reference = spec.reference if isinstance(spec.reference, str) else _rows(spec.reference)
        options |= {"reference": reference, "draws": spec.draws}
    return {"player_spec": json.dumps(options), **columns}


def _members(explanation: Explanation) -> list[list[int]]:
    owner = explanation.unit_players.numpy()
    return [np.flatnonzero(owner == at).tolist() for at in range(len(explanation.players))]


def _rows(reference: Any) -> Any:
    return reference.tolist() if hasattr(reference, "tolist") else reference


def stored_players(row: Mapping[str, Any]) -> PlayerSet | None:
    """The players of a row; ``None`` if they are nodes."""
    if row.get("player_spec") is None:
        return None
    options = json.loads(row["player_spec"])
    kind, names = options.pop("kind"), tuple(row["player_names"] or ())
    ids, units = np.arange(len(row["player_scores"])), row["player_units"]
    no_links = np.zeros((0, 2), dtype=np.int64)
    if kind == "edges":
        edges = np.array(row["player_edges"], dtype=np.int64)
        # which columns of edge_index they are is known where the graph is
        return PlayerSet(kind, ids[:0], ids, no_links, Edges(**options), (), edges)
    count = row["num_nodes"] if kind == "groups" else 1 + max(max(unit) for unit in units)
    owner = np.full(count, -1)
    for at, unit in enumerate(units):
        owner[unit] = at
    spec: Groups | Features
    if kind == "groups":
        # nodes in no group were made players, or are always there
        spec = Groups(tuple(map(tuple, units)), names, "present")
    else:
        field = "edge_attr" if kind == "edge_features" else "x"
        named = dict(zip(names, units, strict=True))
        spec = Features(groups=named, field=field, **options)
    return PlayerSet(kind, owner, ids, no_links, spec, names)
