"""Calling a model whatever its signature, on any part of a graph.

A model may take ``(x, edge_index)``, ``(x, edge_index, batch)``, further arguments of any name that
the data carries, or one ``Data`` object.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import chain
from threading import get_ident
from types import FunctionType, MethodType
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.modules.module import register_module_forward_pre_hook
from torch.nn.parameter import is_lazy
from torch_geometric.data import Batch, Data
from torch_geometric.nn import SimpleConv

from gstarx.gnn.fields import FROM_BATCH, Roles, roles_of
from gstarx.gnn.hetero import hetero_of
from gstarx.gnn.hetero_call import HeteroCall
from gstarx.gnn.parameters import Arguments, is_annotation, match_arguments, warn_of_left_out
from gstarx.gnn.parameters import Model as Model
from gstarx.gnn.shared_rows import GatheredRows, gathered_now, own_copy

#: Networks are looked for in dictionaries and lists of up to so many entries: others are data.
_MOST_HELD = 256
#: What torch and PyG themselves note about a layer, except buffers, which a pass may set.
_REGISTRIES = vars(SimpleConv()).keys() - {"_buffers"}


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
    optional
        Those of them that the model can do without, because they have a default.
    roles
        What the fields of a ``Data`` object belong to, by name.
    hetero
        How the model of a heterogeneous graph is called, given the fields of its view.
    """

    takes_data: bool
    positional: tuple[str, ...] = ()
    keywords: tuple[str, ...] = ()
    optional: tuple[str, ...] = ()
    roles: tuple[tuple[str, str], ...] = ()
    hetero: HeteroCall | None = None

    @classmethod
    def of(cls, model: Model, data: Data, keywords: Iterable[str] | None = None) -> Signature:
        """Read the signature of a model and match it with what the data carries.

        ``keywords``, where given, are passed in any case and nothing else but ``batch`` is. They
        are needed where the signature leaves it open what the model takes.
        """
        graph = hetero_of(data)
        if graph is not None:
            call = HeteroCall.of(model, graph, keywords)
            taken = ("node_id", "edge_id", *(("batch",) if call.takes_batch else ()))
            return cls(False, ("x", "edge_index"), taken, hetero=call)
        matched = match_arguments(
            model,
            sorted(data.keys()),
            keywords,
            guesses=partial(_guesses, data),
            besides="x and edge_index",
            of_batch=FROM_BATCH,
        )
        if matched is None:
            return cls(True, roles=tuple(roles_of(data).items()))
        _refuse_copies(data, (*matched.positional, *matched.keywords))
        if matched.left_out:
            warn_of_left_out(model, matched.left_out, _unused(data, matched))
        return cls(False, matched.positional, matched.keywords, matched.optional)

    @property
    def takes_batch(self) -> bool:
        """Whether several graphs can go through the model at once."""
        return self.takes_data or "batch" in (*self.positional, *self.keywords)

    @property
    def inputs(self) -> tuple[str, ...]:
        """Names of the fields that the model is passed, in this order."""
        if self.hetero is not None:
            return self.hetero.inputs
        if self.takes_data:
            return (*(key for key, _ in self.roles), "edge_index", "batch")
        return (*self.positional, *self.keywords)


def _refuse_copies(data: Data, inputs: Iterable[str]) -> None:
    """Raise where the model gets the edges a second time, under a name that nothing is cut by."""
    edges = data.edge_index
    for name in inputs:
        value = data.get(name)
        if name == "edge_index" or "index" in name or not isinstance(value, Tensor):
            continue
        alike = value.dtype == edges.dtype and value.layout == edges.layout
        if alike and torch.equal(value.to(edges.device), edges):
            raise ValueError(
                f"data.{name} are the edges of the graph, and edge_index is their only name: leave "
                f"{name!r} out of the data. The first two arguments of a model get x and "
                "edge_index whatever they are called; pass a model with others in a function, such "
                f"as lambda x, edge_index: model(x, {name}=edge_index)"
            )


def _unused(data: Data, arguments: Arguments) -> dict[str, str]:
    """Fields of edges and of the graph that a model is not passed, and what they have."""
    taken = {*arguments.positional, *arguments.keywords, *FROM_BATCH}
    unused = {}
    for key, value in data:
        if key in taken or is_annotation(key) or not isinstance(value, Tensor):
            continue
        if value.layout == torch.strided and value.numel() and "index" not in key:
            if value.dim() and data.is_edge_attr(key):
                unused[key] = "weight" if value.shape[1:].numel() == 1 else "edge"
            elif value.is_floating_point() and not (value.dim() and data.is_node_attr(key)):
                unused[key] = "graph"
    return unused


def _guesses(data: Data, shown: set[str]) -> list[str]:
    """Fields that may be inputs or not; labels and masks of splits are not."""
    known = {"x", "edge_index", "y", "edge_label", *shown}
    return [
        key
        for key, value in data
        if isinstance(value, Tensor)
        and key not in known
        and not key.endswith("_mask")
        and (key not in FROM_BATCH or key == "edge_label_index")
    ]


def call_model(
    model: Model,
    signature: Signature,
    fields: dict[str, Any],
    ptr: Tensor | None = None,
    around: Callable[[], AbstractContextManager[Any]] = nullcontext,
) -> Any:
    """Call the model with fields by name.

    ``ptr`` says where the graphs of a batch begin. Where it is given, nodes belong to more than
    one graph, and a batch cannot be taken apart. The model gets a copy of every field, which it may
    write into: fields may be the user's own tensors, or be needed for other passes. A model that
    fails on rows that are gathered late, as it may where it leaves torch, is called again with
    ordinary tensors. Every call of the model is inside an ``around()`` of its own.
    """
    late = [value for value in fields.values() if isinstance(value, GatheredRows)]
    try:
        with around(), _nothing_hidden(model), _nothing_kept(model):
            return gathered_now(_called(model, signature, fields, ptr))
    except Exception:
        if not late:
            raise
    plain = {key: gathered_now(value) for key, value in fields.items()}
    with around(), _nothing_hidden(model), _nothing_kept(model):
        output = _called(model, signature, plain, ptr)
    for value in late:
        value.shared.usable = False
    return output


@contextmanager
def _nothing_hidden(model: Model) -> Iterator[None]:
    """Raise if a function runs a network that it does not show, before that network does anything.

    It could not be put into evaluation mode, be left as it was, or be asked how messages go.
    """
    if isinstance(model, nn.Module):
        yield
        return
    known, thread = {id(module) for module in submodules(model)}, get_ident()

    def look(module: nn.Module, inputs: Any) -> None:
        if id(module) in known or get_ident() != thread:
            return
        for part in module.modules():
            if id(part) not in known and (part._parameters or part._buffers):
                raise ValueError(
                    f"the function runs a network ({type(module).__name__}) that cannot be found "
                    "beforehand, as one that another function returns. It would not be left as it "
                    "was: pass the network itself, or make it a variable, an argument or an "
                    "attribute of what is explained"
                )

    handle = register_module_forward_pre_hook(look)
    try:
        yield
    finally:
        handle.remove()


@contextmanager
def _nothing_kept(model: Model) -> Iterator[None]:
    """Give layers back the attributes that they had before a call, and what is in their containers.

    What a model remembers of one coalition, such as degrees by the number of nodes, is wrong for
    every other one. A comparison may not show it, as it finds what is remembered as well.
    """
    held: list[Any] = [vars(module) for module in submodules(model)]
    held += [
        own[name]
        for own in held
        for name in own.keys() - _REGISTRIES
        if isinstance(own[name], (dict, list, set))  # a union of types takes longer
    ]
    before = [value.copy() for value in held]
    try:
        yield
    finally:
        for now, then in zip(held, before, strict=True):
            if not _holds(now, then):
                _hold(now, then)


def _holds(value: Any, before: Any) -> bool:
    """Whether a container still holds the same objects, at the speed of C where it does."""
    try:
        return bool(value == before)  # looks at identity before it compares
    except Exception:  # tensors and arrays that are not the same ones
        return False


def _hold(value: Any, before: Any) -> None:
    if isinstance(value, list):
        value[:] = before
        return
    # nothing is away meanwhile, for other threads that look
    for key in [key for key in value if key not in before]:
        value.pop(key) if isinstance(value, dict) else value.remove(key)
    value.update(before)


def _called(model: Model, signature: Signature, fields: dict[str, Any], ptr: Tensor | None) -> Any:
    if signature.hetero is not None:
        return signature.hetero(model, fields, watched=ptr is not None)
    apart = ptr is None
    names = (*signature.positional, *signature.keywords)
    if signature.takes_data or "ptr" in names:
        if ptr is None:
            sizes = torch.bincount(fields["batch"], minlength=fields["batch_size"])
            ptr = torch.cat([sizes.new_zeros(1), sizes.cumsum(0)])
        fields = {**fields, "ptr": ptr}
    # where ptr is given, it and batch have no content that could be copied
    shown = () if apart else ("batch", "ptr")
    given = {
        key: value if key in shown else own_copy(value)
        for key, value in fields.items()
        if signature.takes_data or key in names
    }
    if signature.takes_data:
        return model(_as_batch(given, dict(signature.roles) if apart else None))
    missing = [name for name in signature.positional if name not in given]
    if missing:
        raise ValueError(f"the model takes {missing[0]!r}, which the data does not have")
    positional = [given[name] for name in signature.positional]
    return model(*positional, **{n: given[n] for n in signature.keywords if n in given})


def _as_batch(fields: dict[str, Any], roles: Roles | None) -> Batch:
    """A batch like those of PyG's loaders, which ``to_data_list`` can take apart, given roles."""
    # who asks for the number of nodes then asks a tensor, which can be watched
    shown = {k: v for k, v in fields.items() if k not in ("batch_size", "num_nodes")}
    batch = Batch(_base_cls=Data, **shown)
    batch._num_graphs = fields["batch_size"]
    if roles is None:
        return batch
    owner, ptr, count = fields["batch"], fields["ptr"].cpu(), fields["batch_size"]

    def slices(owners: Tensor) -> Tensor:
        ends = torch.bincount(owners, minlength=count).cumsum(0).cpu()
        return torch.cat([ends.new_zeros(1), ends])

    edges = slices(owner[fields["edge_index"][0]])
    first = {"edge_index": edges}
    for key, role in roles.items():
        value = fields.get(key)
        if not isinstance(value, Tensor) or value.dim() == 0:
            continue
        if role == "ids":
            first[key] = slices(owner[value[None].flatten(0, -2)[0]])
        elif role == "edge_ids":
            first[key] = slices(owner[fields["edge_index"][0, value[None].flatten(0, -2)[0]]])
        elif role == "rest" and len(value) == count:
            first[key] = torch.arange(count + 1)
        elif role != "rest":
            first[key] = ptr if role == "node" else edges
    none = torch.zeros(count, dtype=torch.long)
    added = {"ids": ptr[:-1], "edge_ids": edges[:-1]}
    batch._slice_dict = first
    batch._inc_dict = {key: added.get(roles.get(key, ""), none) for key in first}
    batch._inc_dict["edge_index"] = ptr[:-1]
    batch.stores[0]._num_nodes = ptr.diff().tolist()
    return batch


def networks_of(model: Model) -> list[nn.Module]:
    """The networks that a callable runs, as far as it shows them.

    A module is its own. Partial calls, bound methods, functions and objects with ``__call__`` run
    those that they hold: as arguments, as attributes, or as variables that a function refers to,
    itself or through other functions of its file, and in dictionaries, lists and tuples of these.
    """
    if isinstance(model, nn.Module):
        return [model]
    networks: dict[int, nn.Module] = {}
    seen: set[int] = set()

    def look(held: Any, file: str | None) -> None:
        if isinstance(held, nn.Module):
            networks[id(held)] = held
        elif id(held) not in seen:
            seen.add(id(held))
            for inner in _held_by(held, file, outermost=held is model):
                look(inner, held.__module__ if isinstance(held, FunctionType) else file)

    look(model, None)
    return list(networks.values())


def _held_by(held: Any, file: str | None, *, outermost: bool) -> list[Any]:
    """What a callable holds that may be a network or lead to one."""
    if isinstance(held, dict | list | tuple):
        inner = held.values() if isinstance(held, dict) else held
        inner = inner if len(held) <= _MOST_HELD else ()
        return [value for value in inner if isinstance(value, nn.Module | dict | list | tuple)]
    if isinstance(held, partial):
        return [held.func, *held.args, *held.keywords.values()]
    if isinstance(held, MethodType):
        return [held.__func__, held.__self__, *getattr(held.__self__, "__dict__", {}).values()]
    if isinstance(held, FunctionType):
        if file is not None and held.__module__ != file:
            return []
        named = inspect.getclosurevars(held)
        defaults = [*(held.__defaults__ or ()), *(held.__kwdefaults__ or {}).values()]
        wrapped = [held.__wrapped__] if hasattr(held, "__wrapped__") else []
        return [*named.nonlocals.values(), *named.globals.values(), *defaults, *wrapped]
    return list(vars(held).values()) if outermost and hasattr(held, "__dict__") else []


def submodules(model: Model) -> list[nn.Module]:
    """All layers of the networks that a callable runs, each once."""
    networks = networks_of(model)
    if len(networks) == 1:
        return list(networks[0].modules())
    return list({id(m): m for network in networks for m in network.modules()}.values())


def require_initialized(model: Model) -> None:
    """Raise if a layer waits for its first input to know the shape of its weights.

    An explanation would fill them with random numbers, and with the width that it happens to see.
    """
    for network in networks_of(model):
        for name, tensor in chain(network.named_parameters(), network.named_buffers()):
            if is_lazy(tensor):
                raise ValueError(
                    f"the model has not been initialized: {name!r} gets its shape and numbers from "
                    "the first graph that the model sees. Run the model once, and load its trained "
                    "weights, before it is explained"
                )


def model_device(model: Model, fallback: torch.device) -> torch.device:
    """Device of the model's first parameter or buffer, or the fallback if it has none."""
    require_initialized(model)
    networks = networks_of(model)
    tensors = (chain(network.parameters(), network.buffers()) for network in networks)
    tensor = next(chain.from_iterable(tensors), None)
    return fallback if tensor is None else tensor.device
