"""Calling a model whatever its signature, on any part of a graph.

A model may take ``(x, edge_index)``, ``(x, edge_index, batch)``, further arguments of any name that
the data carries, or one ``Data`` object. Which tensors belong to nodes and which to edges, and so
have to be cut down with a coalition, follows PyG's own conventions for ``Data``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from itertools import chain
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data

from gstarx.coalitions.batching import UnionBatch

Model = Callable[..., Any]
_DATA_NAMES = frozenset({"data", "batch", "graph", "g", "inputs"})
#: Set by the batch, never taken from the data.
_FROM_BATCH = frozenset(
    {"batch", "batch_size", "ptr", "num_nodes", "edge_index", "edge_label_index"}
)
#: What every field of a graph belongs to: ``"node"``, ``"edge"``, ``"ids"`` or ``"rest"``.
Roles = dict[str, str]


@dataclass(frozen=True)
class Signature:
    """How a model wants its arguments.

    Attributes
    ----------
    takes_data
        Whether it takes one ``Data`` object.
    positional
        Names of what goes in by position.
    keywords
        Names of what goes in by keyword.
    """

    takes_data: bool
    positional: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()

    @classmethod
    def of(cls, model: Model, data: Data, keywords: Iterable[str] | None = None) -> Signature:
        """Read the signature of a model and match it with what the data carries.

        ``keywords``, where given, are passed in any case and nothing else but ``batch`` is.
        """
        parameters = _parameters(model)
        if parameters is None:
            return cls(False, ("x", "edge_index"), tuple(keywords or ()))
        named = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
        extra = [p.name for p in parameters if p.kind == p.KEYWORD_ONLY]
        required = [p for p in named if p.default is p.empty]
        if keywords is None and _wants_data(named, data):
            return cls(True)
        names = [p.name for p in named]
        positional = [
            name if name in data or name in _FROM_BATCH else usual
            for name, usual in zip(names[:2], ("x", "edge_index"), strict=False)
        ] or ["x", "edge_index"]
        missing = [
            p.name
            for p in [*required[2:], *[q for q in parameters if q.kind == q.KEYWORD_ONLY]]
            if p.default is p.empty and p.name not in data and p.name not in _FROM_BATCH
        ]
        if missing and not set(missing) <= set(keywords or ()):
            raise ValueError(
                f"the model needs an argument {missing[0]!r} that the data does not carry "
                f"(it has {', '.join(sorted(data.keys()))})"
            )
        offered = [*names[2:], *extra]
        if keywords is None:
            chosen = [n for n in offered if n in data or n in _FROM_BATCH]
        else:
            chosen = list(keywords)
            chosen += [n for n in offered if n in ("batch", "batch_size") and n not in chosen]
        return cls(False, tuple(positional), tuple(chosen))

    @property
    def takes_batch(self) -> bool:
        """Whether several graphs can go through the model at once."""
        return self.takes_data or "batch" in (*self.positional, *self.keywords)


def _parameters(model: Model) -> tuple[inspect.Parameter, ...] | None:
    """The parameters of a model's forward pass, or None where it does not say."""
    forward = getattr(model, "forward", model)
    try:
        # a method's function is the same for all its models, so that it is looked at once
        if inspect.ismethod(forward):
            return _read_parameters(forward.__func__)[1:]
        return tuple(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return None


@lru_cache(maxsize=256)
def _read_parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def _wants_data(named: list[inspect.Parameter], data: Data) -> bool:
    """Whether the arguments are one ``Data`` object, by their type, name or number."""
    required = [p for p in named if p.default is p.empty]
    if len(required) != 1 or required[0].name in ("x", "edge_index"):
        return False
    name, annotation = required[0].name, required[0].annotation
    by_type = isinstance(annotation, type) and issubclass(annotation, Data | Batch)
    by_name = name in _DATA_NAMES or str(annotation).rpartition(".")[2] in ("Data", "Batch")
    return by_type or by_name or (len(named) == 1 and name not in data)


def roles_of(data: Data) -> Roles:
    """What every field of a graph belongs to, by PyG's conventions for ``Data``.

    To be asked of the whole graph only: the sizes of a part of it may coincide.
    """
    roles: Roles = {}
    for key, value in data:
        if key in _FROM_BATCH:
            continue
        dense = isinstance(value, Tensor) and value.layout == torch.strided
        if dense and ("index" in key or key == "face") and not value.is_floating_point():
            roles[key] = "ids"
        elif dense and value.dim() > 0 and data.is_node_attr(key):
            roles[key] = "node"
        elif dense and value.dim() > 0 and data.is_edge_attr(key):
            roles[key] = "edge"
        else:
            roles[key] = "rest"
    return roles


class GraphTensors:
    """The tensors of one graph on a device, sorted by what they belong to."""

    def __init__(self, data: Data, device: torch.device, roles: Roles) -> None:
        self.num_nodes = int(data.num_nodes or 0)
        self.device = device
        self.edge_index = np.ascontiguousarray(data.edge_index.cpu().numpy(), dtype=np.int64)
        fields: dict[str, dict[str, Any]] = {"node": {}, "edge": {}, "ids": {}, "rest": {}}
        for key, role in roles.items():
            value = data[key]
            fields[role][key] = value.to(device) if isinstance(value, Tensor) else value
        self.node, self.edge, self.rest = fields["node"], fields["edge"], fields["rest"]
        #: Nodes that some field names.
        self.named: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        if fields["ids"]:
            listed = [ids.cpu().numpy().reshape(-1) for ids in fields["ids"].values()]
            self.named = np.unique(np.concatenate(listed)).astype(np.int64)
        # a field of ids, in positions of ``named``
        lookup = torch.from_numpy(self.named).to(device)
        self._ids = {
            key: torch.searchsorted(lookup, ids.reshape(1) if ids.dim() == 0 else ids.contiguous())
            for key, ids in fields["ids"].items()
        }

    def part(self, batch: UnionBatch, named: NDArray[np.int64]) -> dict[str, Any]:
        """All fields for a batch of coalitions by name, given the places (k, m) of named nodes."""
        count = len(named)
        nodes, edges, owner, ends = (
            torch.from_numpy(array).to(self.device)
            for array in (batch.nodes, batch.edges, batch.owner, batch.ends)
        )
        fields: dict[str, Any] = {
            key: value.expand(count, *value.shape[1:])
            if isinstance(value, Tensor) and value.dim() > 0 and len(value) == 1
            else value
            for key, value in self.rest.items()
        }
        fields |= {key: value.index_select(0, nodes) for key, value in self.node.items()}
        fields |= {key: value.index_select(0, edges) for key, value in self.edge.items()}
        if self._ids:
            places = torch.from_numpy(np.ascontiguousarray(named)).to(self.device)
            fields |= {key: _inside(value, places) for key, value in self._ids.items()}
        fields |= {"edge_index": ends, "batch": owner, "batch_size": count}
        return fields | {"num_nodes": len(nodes)}


def _inside(ids: Tensor, places: Tensor) -> Tensor:
    """Node ids (K,) or (r, K) in the batch's numbering, where all of a column are present."""
    moved = places[:, ids[None].flatten(0, -2)]
    kept = moved.permute(1, 0, 2)[:, (moved >= 0).all(dim=1)]
    return kept.reshape(*ids.shape[:-1], -1)


def call_model(model: Model, signature: Signature, fields: dict[str, Any]) -> Any:
    """Call the model with fields by name."""
    if signature.takes_data or "ptr" in (*signature.positional, *signature.keywords):
        sizes = torch.bincount(fields["batch"], minlength=fields["batch_size"])
        fields = {**fields, "ptr": torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])}
    if signature.takes_data:
        given = {key: value for key, value in fields.items() if key != "batch_size"}
        return model(Batch(_base_cls=Data, **given))
    missing = [name for name in signature.positional if name not in fields]
    if missing:
        raise ValueError(f"the model takes {missing[0]!r}, which the data does not carry")
    positional = [fields[name] for name in signature.positional]
    return model(*positional, **{n: fields[n] for n in signature.keywords if n in fields})


def model_device(model: Model, fallback: torch.device) -> torch.device:
    """Device of the model's first parameter or buffer, or the fallback if it has none."""
    if not isinstance(model, torch.nn.Module):
        return fallback
    tensor = next(chain(model.parameters(), model.buffers()), None)
    return fallback if tensor is None else tensor.device
