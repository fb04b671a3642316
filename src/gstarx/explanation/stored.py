"""Explanations without their graphs, as dictionaries and files, and back."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from pickle import UnpicklingError
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import HeteroData

from gstarx._internal.files import atomic_path, check_expanded_size
from gstarx.explanation.attribution import Attribution, score_fields, unit_masks
from gstarx.explanation.export import columns_of_parallel, plain
from gstarx.explanation.on_request import Labels
from gstarx.gnn import HeteroGraph, Sharing, hetero_of

if TYPE_CHECKING:
    from gstarx.explanation.explanation import Explanation

_FIELDS = (
    *("method", "scores", "std_errors", "players", "node_scores", "sets", "edge_mask"),
    *("player_names", "player_edges", "groups", "group_remainder", "unit_players", "symmetric"),
    *("explained", "prediction", "mode", "return_type", "index", "worth", "component_worth"),
    *("baseline", "baseline_source", "value", "two_sided", "payoff", "exact", "estimator"),
    *("evaluations", "seconds", "check", "sharing", "inputs"),
)
_DOUBLE = ("scores", "std_errors", "node_scores", "group_remainder", "worth", "component_worth")
#: What tensors are made of; one that is not says so under ``"dtypes"``.
_DTYPES = {
    **dict.fromkeys(_DOUBLE, torch.float64),
    **dict.fromkeys(("edge_mask", "prediction"), torch.float32),
    **dict.fromkeys(("players", "index", "player_edges", "unit_players"), torch.int64),
}


def to_dict(explanation: Explanation) -> dict[str, Any]:
    """Everything but the graph, ready for JSON."""
    return {name: plain(value) for name, value in _fields(explanation).items()}


def save(explanation: Explanation, path: str | os.PathLike[str]) -> None:
    """Write everything but the graph to a file that holds tensors and plain values only."""
    fields = _fields(explanation)
    if explanation.player_kind == "nodes":
        fields.pop("node_scores", None)  # follow from those of the players
    kept = {name: _kept(value) for name, value in fields.items()}
    with atomic_path(Path(path)) as temporary:
        torch.save(kept, temporary)


def load(path: str | os.PathLike[str]) -> dict[str, Any]:
    """What :func:`save` wrote; code in a file is never run."""
    check_expanded_size(path)
    try:
        found = torch.load(path, map_location="cpu", weights_only=True)
    except (UnpicklingError, EOFError, RuntimeError) as error:
        # without torch's advice to run the code in the file
        reason = str(error).partition(".")[0]
        raise ValueError(
            f"{os.fspath(path)} holds no explanation that save() wrote ({reason})"
        ) from None
    if not isinstance(found, dict) or not {"players", "explained"} <= found.keys():
        raise ValueError(f"{os.fspath(path)} holds no explanation that save() wrote")
    return found


def _fields(explanation: Explanation) -> dict[str, Any]:
    """Fields by name, with tensors as they are."""
    fields = {name: explanation.get(name) for name in _FIELDS}
    fields |= {"player_kind": explanation.player_kind, "num_nodes": explanation.num_nodes}
    others = {
        name: str(fields[name].dtype).removeprefix("torch.")
        for name, usual in _DTYPES.items()
        if fields[name] is not None and fields[name].dtype != usual
    }
    if others:
        fields["dtypes"] = others
    if explanation.get("fixed"):
        fields["fixed"] = list(explanation.fixed)
    columns = columns_of_parallel(explanation)
    if columns is not None:
        fields["player_columns"] = columns
    graph = hetero_of(explanation)
    return fields if graph is None else {**fields, **_typed(explanation, graph, fields)}


def _typed(explanation: Explanation, graph: HeteroGraph, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields in which the nodes of a heterogeneous graph have types."""

    def pairs(nodes: Any) -> list[list[Any]]:
        return [list(graph.pair(node)) for node in nodes.tolist()]

    types, scores, mask = graph.node_types, fields["node_scores"], fields["edge_mask"]
    typed: dict[str, Any] = {
        "node_types": list(types),
        "num_nodes": {name: graph.count(name) for name in types},
        "players": pairs(fields["players"]),
        "sets": fields["sets"] and [pairs(nodes) for nodes in fields["sets"]],
    }
    if scores is not None:
        typed["node_scores"] = {name: scores[graph.rows(name)] for name in types}
    if mask is not None:
        ends = graph.first_edge.tolist()
        typed["edge_types"] = [list(relation) for relation in graph.edge_types]
        typed["edge_mask"] = {
            "__".join(relation): mask[ends[at] : ends[at + 1]]
            for at, relation in enumerate(graph.edge_types)
        }
    if explanation.get("index") is not None:
        numbers = explanation.index.tolist()
        typed["node_type"] = graph.pair(numbers[0])[0]
        typed["index"] = [graph.pair(number)[1] for number in numbers]
        typed["prediction"] = fields["prediction"][graph.rows(typed["node_type"])]
    return typed


def _kept(value: Any) -> Any:
    """A value of tensors, plain containers, numbers and strings."""
    if isinstance(value, np.ndarray):
        value = torch.from_numpy(value)
    if isinstance(value, Tensor):
        return value.detach().cpu().clone()  # of its own, because files hold whole storages
    if isinstance(value, Sharing):
        value = value.as_dict()
    if isinstance(value, Mapping):
        return {str(name): _kept(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [_kept(one) for one in value]
    return value.item() if isinstance(value, np.generic) else value


def fields_of(stored: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a homogeneous explanation from what :func:`to_dict` or a file holds."""
    if "node_types" in stored:
        raise ValueError(
            "these are scores of a heterogeneous graph, with nodes of the types "
            f"{', '.join(stored['node_types'])}: read them with HeteroExplanation"
        )
    missing = [name for name in ("players", "num_nodes", "explained") if name not in stored]
    if missing:
        raise ValueError(f"the fields of an explanation are those of to_dict(): no {missing[0]!r}")
    fields = {name: value for name, value in stored.items() if value is not None}
    others = fields.pop("dtypes", {})
    for name, usual in _DTYPES.items():
        if name in fields:
            dtype = getattr(torch, others[name]) if name in others else usual
            fields[name] = _tensor(fields[name], dtype)
    if "player_edges" in fields:
        fields["player_edges"] = fields["player_edges"].reshape(-1, 2)
    if "inputs" in fields:
        fields["inputs"] = tuple(fields["inputs"])
    if isinstance(fields.get("sharing"), Mapping):
        fields["sharing"] = Sharing(**fields["sharing"])
    if "prediction" in fields and "mode" in fields:
        fields["target"] = Labels()
    fields.pop("player_columns", None)  # follows from the players
    kind = fields.get("player_kind", "nodes")
    if kind == "nodes":
        found = [np.asarray(nodes, dtype=np.int64) for nodes in fields.get("sets", ())]
        scores, errors = (
            fields[name].numpy() if name in fields else None for name in ("scores", "std_errors")
        )
        attribution = Attribution(scores, errors, sets=tuple(found))
        fields |= score_fields(attribution, fields["num_nodes"])
        fields.pop("player_kind", None)
    elif "unit_players" in fields and fields["scores"].dim() == 1:
        fields |= unit_masks(kind)
    return fields


def _tensor(value: Any, dtype: torch.dtype) -> Tensor:
    """A tensor, or one from lists in which ``None`` stands for what is not finite."""
    if isinstance(value, Tensor):
        return value
    numbers = np.array(value, dtype=np.float64 if dtype.is_floating_point else np.int64)
    return torch.from_numpy(numbers).to(dtype)


def hetero_fields_of(stored: Mapping[str, Any]) -> tuple[dict[str, Any], HeteroGraph]:
    """The fields of the homogeneous view from a heterogeneous explanation, and the numbers in it.

    The graph has nodes but no edges, which are not stored.
    """
    if "node_types" not in stored:
        raise ValueError(
            "these are not scores of a heterogeneous graph: read them with Explanation"
        )
    fields = {name: value for name, value in stored.items() if value is not None}
    counts, masks = fields.pop("num_nodes"), fields.pop("edge_mask", {})
    data = HeteroData()
    for name, count in counts.items():
        data[name].num_nodes = count
    sizes = [len(mask) for mask in masks.values()]
    graph = HeteroGraph(
        data,
        tuple(fields.pop("node_types")),
        np.concatenate([[0], np.cumsum(list(counts.values()))]).astype(np.int64),
        tuple(tuple(relation) for relation in fields.pop("edge_types", ())),
        np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64),
        fields.get("node_type"),
    )
    fields.pop("node_scores", None)  # follow from those of the players
    fields |= {"num_nodes": graph.num_nodes, "players": graph.numbers(fields["players"])}
    fields["players"] = torch.from_numpy(np.asarray(fields["players"], dtype=np.int64))
    if "sets" in fields:
        fields["sets"] = [graph.numbers(nodes) for nodes in fields["sets"]]
    if masks:
        fields["edge_mask"] = torch.cat([_tensor(mask, torch.float32) for mask in masks.values()])
    if "node_type" in fields:
        rows = graph.rows(fields.pop("node_type"))
        fields["index"] = [rows.start + int(node) for node in fields["index"]]
        dtype = getattr(torch, fields.get("dtypes", {}).get("prediction", "float32"))
        given = _tensor(fields["prediction"], dtype)
        # nodes of other types have no outputs
        fields["prediction"] = given.new_zeros(graph.num_nodes, given.shape[1])
        fields["prediction"][rows] = given
    return fields_of(fields), graph
