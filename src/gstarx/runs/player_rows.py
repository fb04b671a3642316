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

#: Columns of rows whose players are not nodes; empty in all others.
FIELDS = (
    # the kind of players and their options, as JSON
    pa.field("players", pa.string()),
    pa.field("player_names", pa.list_(pa.string())),
    # the nodes of a group, the ends of an edge, or the columns of a feature
    pa.field("player_units", pa.list_(pa.list_(pa.int64()))),
    pa.field("player_scores", pa.list_(pa.float64())),
    pa.field("player_errors", pa.list_(pa.float64())),
)
COLUMNS = tuple(field.name for field in FIELDS)


def player_columns(explanation: Explanation) -> dict[str, Any]:
    """The columns of an explanation; none if its players are nodes."""
    if explanation.player_kind == "nodes":
        return {}
    spec, errors = explanation.player_spec, explanation.std_errors
    options = {"kind": explanation.player_kind}
    if isinstance(spec, Edges):
        options |= {"directed": spec.directed, "touched": spec.touched}
        units = explanation.player_edges.tolist()
    elif isinstance(spec, Features):
        reference = spec.reference if isinstance(spec.reference, str) else _rows(spec.reference)
        options |= {"reference": reference, "draws": spec.draws}
        units = _members(explanation)
    else:
        units = _members(explanation)
    return {
        "players": json.dumps(options),
        "player_names": explanation.player_names,
        "player_units": units,
        "player_scores": explanation.scores.tolist(),
        "player_errors": None if bool(errors.isnan().all()) else errors.tolist(),
    }


def _members(explanation: Explanation) -> list[list[int]]:
    owner = explanation.unit_players.numpy()
    return [np.flatnonzero(owner == at).tolist() for at in range(len(explanation.players))]


def _rows(reference: Any) -> Any:
    return reference.tolist() if hasattr(reference, "tolist") else reference


def stored_players(row: Mapping[str, Any]) -> PlayerSet | None:
    """The players of a row; ``None`` if they are nodes."""
    if row.get("players") is None:
        return None
    options = json.loads(row["players"])
    kind, units = options.pop("kind"), row["player_units"]
    names, ids = tuple(row["player_names"] or ()), np.arange(len(units))
    no_links = np.zeros((0, 2), dtype=np.int64)
    if kind == "edges":
        edges = np.array(units, dtype=np.int64)
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
