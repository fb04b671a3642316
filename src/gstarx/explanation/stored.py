"""The one dictionary of an explanation, and the explanation of a dictionary.

It holds everything but the graph. The command, runs, reports and the explorer have no other form of
an explanation; :func:`schema` describes it.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx.explanation.attribution import (
    Attribution,
    OnRequest,
    labels,
    result_fields,
    units_of,
)
from gstarx.gnn import HeteroGraph, Sharing, hetero_of
from gstarx.players import Edges, Features, Groups, Nodes, PlayerSet

if TYPE_CHECKING:
    from gstarx.explanation.explanation import Explanation

#: Increased whenever a dictionary means something else.
FORMAT = 1
#: Fields that every dictionary has, ``None`` where they are unknown.
_ALWAYS = ("method", "explained", "exact", "estimator", "evaluations", "seconds")
#: Fields that are there where the method has them, as they are.
_PLAIN = (
    *("value", "two_sided", "payoff", "baseline", "baseline_source", "mode", "return_type"),
    *("inputs", "fixed", "check", "sharing", "rewards", "converged", "residual", "batch_nodes"),
)
#: The same, for tensors, with their types.
_TENSORS = {
    **dict.fromkeys(("worth", "component_worth", "group_remainder"), torch.float64),
    **dict.fromkeys(("node_scores", "edge_scores"), torch.float64),
    **dict.fromkeys(("edge_mask", "feature_mask", "distinct_edge_mask"), torch.float32),
    "index": torch.int64,
}
#: The kinds of players by the name that a dictionary has for them.
_KINDS: dict[str, Any] = {"nodes": Nodes, "groups": Groups, "edges": Edges, "features": Features}


def schema() -> dict[str, Any]:
    """The JSON schema of what ``Explanation.to_dict()`` returns and ``gstarx explain`` prints.

    Its ``"$defs"`` have the ``"explanation"``, which is the schema itself, and the ``"record"`` of
    the command.

    >>> schema()["$defs"]["record"]["required"]
    ['graph']
    """
    text = files("gstarx.explanation").joinpath("schema.json").read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found


def to_dict(explanation: Explanation, *, all_outputs: bool = True) -> dict[str, Any]:
    """Everything but the graph, ready for JSON."""
    from gstarx.drawing import at_stake_in

    fields: dict[str, Any] = {name: explanation.get(name) for name in _ALWAYS}
    fields |= {name: value for name in _PLAIN if (value := explanation.get(name)) is not None}
    fields |= _players(explanation)
    on_request = explanation._store._mapping.on_request
    for name in _TENSORS:
        # what follows from the scores without the graph is left out
        follows = on_request(name) and (name == "node_scores" or fields["player_kind"] == "edges")
        if not follows and explanation.get(name) is not None:
            fields[name] = explanation[name]
    if (at_stake := at_stake_in(explanation)) is not None:
        fields["at_stake"] = at_stake
    if (graph := hetero_of(explanation)) is not None:
        fields |= _typed(fields, graph)
    if explanation.get("prediction") is not None:
        fields |= _outputs(explanation, fields, graph, all_outputs)
    return {"format": FORMAT, **{name: plain(value) for name, value in fields.items()}}


def _players(explanation: Explanation) -> dict[str, Any]:
    """What the players are, with their scores, or the sets that were found instead."""
    scores, errors, kind = explanation.scores, explanation.std_errors, explanation.player_kind
    known = errors is not None and not bool(errors.isnan().all())
    fields: dict[str, Any] = {
        "player_kind": kind,
        "num_nodes": explanation.num_nodes,
        "players": explanation.players,
        "scores": scores,
        "std_errors": errors if known else None,
    }
    if scores is None:
        fields["sets"] = explanation.sets
    if kind != "nodes":
        owner = explanation.unit_players.numpy()
        fields |= {"player_units": units_of(owner, len(scores)), "num_units": len(owner)}
        for name in ("player_names", "player_edges"):
            if explanation.get(name) is not None:
                fields[name] = explanation[name]
    if (spec := explanation.get("player_spec")) is not None:
        fields["player_spec"] = _spec(spec)
    return fields


def _spec(spec: Nodes | Groups | Edges | Features) -> dict[str, Any]:
    """A kind of players with its options."""
    kind = next(name for name, type_ in _KINDS.items() if isinstance(spec, type_))
    options = dict(vars(spec))
    if isinstance(spec, Features) and not isinstance(spec.reference, str):
        graphs = [spec.reference] if isinstance(spec.reference, Data) else spec.reference
        of_graphs = all(isinstance(graph, Data) for graph in graphs)
        rows = [row for graph in graphs for row in graph[spec.field]] if of_graphs else graphs
        options["reference"] = plain(rows)
    return {"kind": kind, **{name: value for name, value in options.items() if value is not None}}


def _typed(fields: Mapping[str, Any], graph: HeteroGraph) -> dict[str, Any]:
    """The fields in which the nodes of a heterogeneous graph have types."""

    def pairs(nodes: Any) -> list[list[Any]]:
        return [list(graph.pair(node)) for node in nodes.tolist()]

    types, ends = graph.node_types, graph.first_edge.tolist()
    typed: dict[str, Any] = {
        # JSON does not promise to keep the order of the types
        "node_types": list(types),
        "num_nodes": {name: graph.count(name) for name in types},
        "players": pairs(fields["players"]),
    }
    if "sets" in fields:
        typed["sets"] = [pairs(nodes) for nodes in fields["sets"]]
    for name in ("edge_mask", "edge_scores"):
        if name in fields:
            typed["edge_types"] = [list(relation) for relation in graph.edge_types]
            typed[name] = {
                "__".join(relation): fields[name][ends[at] : ends[at + 1]]
                for at, relation in enumerate(graph.edge_types)
            }
    if "index" in fields:
        nodes = pairs(fields["index"])
        typed |= {"node_type": nodes[0][0], "index": [node for _, node in nodes]}
    return typed


def _outputs(
    explanation: Explanation, fields: Mapping[str, Any], graph: HeteroGraph | None, every: bool
) -> dict[str, Any]:
    """The model's output: all of it, or only the rows that are explained."""
    output = explanation.prediction
    if graph is not None and "node_type" in fields:
        output = output[graph.rows(fields["node_type"])]  # nodes of other types have no outputs
    made = {}
    if output.dtype != torch.float32:
        made["dtype"] = str(output.dtype).removeprefix("torch.")
    if every or "index" not in fields:
        return {**made, "prediction": output}
    return {**made, "output": output[fields["index"]], "num_outputs": len(output)}


def plain(value: Any) -> Any:
    """A value as plain JSON, in which ``None`` is not a number, and infinity a string."""
    if isinstance(value, Tensor | np.ndarray):
        value = value.tolist()
    if isinstance(value, Sharing):
        value = value.as_dict()
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def fields_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the explanation that a dictionary holds."""
    if "node_types" in stored:
        raise ValueError(
            "these are scores of a heterogeneous graph, with nodes of the types "
            f"{', '.join(stored['node_types'])}: read them with HeteroExplanation"
        )
    return _fields(_checked(stored))


def hetero_fields_of(stored: Mapping[str, Any]) -> tuple[dict[str, Any], HeteroGraph]:
    """The fields of the homogeneous view from a heterogeneous explanation, and the numbers in it.

    The graph has nodes but no edges, which are not stored.
    """
    if "node_types" not in stored:
        raise ValueError(
            "these are not scores of a heterogeneous graph: read them with Explanation"
        )
    stored = dict(_checked(stored))
    counts = {name: stored["num_nodes"][name] for name in stored["node_types"]}
    relations = [tuple(relation) for relation in stored.get("edge_types", ())]
    sizes: list[int] = []
    for name in {"edge_mask", "edge_scores"} & stored.keys():
        masks = [stored[name]["__".join(relation)] for relation in relations]
        sizes = [len(mask) for mask in masks]
        stored[name] = [score for mask in masks for score in mask]
    data = HeteroData()
    for name, count in counts.items():
        data[name].num_nodes = count
    graph = HeteroGraph(
        data,
        tuple(counts),
        np.concatenate([[0], np.cumsum(list(counts.values()))]).astype(np.int64),
        tuple(relations),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        stored.get("node_type"),
    )
    stored |= {"num_nodes": graph.num_nodes, "players": graph.numbers(stored["players"])}
    if "sets" in stored:
        stored["sets"] = [graph.numbers(nodes) for nodes in stored["sets"]]
    fields = _fields(stored)
    if "node_type" in stored:
        rows = graph.rows(fields.pop("node_type"))
        fields["index"] = fields["index"] + rows.start
        given = fields["prediction"]
        fields["prediction"] = given.new_zeros(graph.num_nodes, given.shape[1])
        fields["prediction"][rows] = given
    return fields, graph


def _checked(stored: Mapping[str, Any]) -> Mapping[str, Any]:
    required = ("format", "player_kind", "num_nodes", "players", "scores", "std_errors", *_ALWAYS)
    missing = [name for name in required if name not in stored]
    if missing:
        raise ValueError(f"the fields of an explanation are those of to_dict(): no {missing[0]!r}")
    if stored["format"] != FORMAT:
        raise ValueError(
            f"the explanation has format {stored['format']!r}, and this version reads {FORMAT}"
        )
    return stored


def _fields(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of an explanation from those of a dictionary, of a homogeneous graph."""
    kept = (*_ALWAYS, *_PLAIN, "num_nodes", "at_stake", "node_type")
    fields = {name: stored[name] for name in kept if name in stored}
    if "inputs" in fields:
        fields["inputs"] = tuple(fields["inputs"])
    if "sharing" in fields:
        fields["sharing"] = Sharing(**fields["sharing"])
    scores, errors = (
        None if stored[name] is None else _numbers(stored[name], torch.float64).numpy()
        for name in ("scores", "std_errors")
    )
    sets = tuple(np.asarray(nodes, dtype=np.int64) for nodes in stored.get("sets", ()))
    spec = _read_spec(stored["player_spec"]) if "player_spec" in stored else None
    attribution = Attribution(scores, errors, _player_set(stored, spec), sets)
    fields |= result_fields(attribution, stored["num_nodes"])
    for name in _TENSORS.keys() & stored.keys():
        fields[name] = _numbers(stored[name], _TENSORS[name])
    dtype = getattr(torch, stored.get("dtype", "float32"))
    if "prediction" in stored:
        fields["prediction"] = _numbers(stored["prediction"], dtype)
    elif "output" in stored:
        rows = _numbers(stored["output"], dtype)
        fields["prediction"] = rows.new_full((stored["num_outputs"], rows.shape[1]), torch.nan)
        fields["prediction"][stored["index"]] = rows
    if "prediction" in fields and "mode" in fields:
        fields["target"] = OnRequest(labels)
    return fields


def _player_set(stored: Mapping[str, Any], spec: Any) -> PlayerSet:
    """The players of a dictionary."""
    kind, players = stored["player_kind"], np.array(stored["players"], dtype=np.int64)
    owner = np.full(stored.get("num_units", 0), -1)
    for player, units in enumerate(stored.get("player_units", ())):
        owner[units] = player
    edges = stored.get("player_edges")
    return PlayerSet(
        kind,
        owner,
        players,
        np.zeros((0, 2), dtype=np.int64),
        spec,
        tuple(stored.get("player_names", ())),
        None if edges is None else np.array(edges, dtype=np.int64).reshape(-1, 2),
    )


def _read_spec(stored: Mapping[str, Any]) -> Any:
    options = dict(stored)
    kind = options.pop("kind")
    if "relations" in options:
        options["relations"] = [
            relation if isinstance(relation, str) else tuple(relation)
            for relation in options["relations"]
        ]
    return _KINDS[kind](**options)


def _numbers(value: Any, dtype: torch.dtype) -> Tensor:
    """A tensor from lists in which ``None`` is not a number, and infinity a string."""
    numbers = np.array(value, dtype=np.float64 if dtype.is_floating_point else np.int64)
    return torch.from_numpy(numbers).to(dtype)
