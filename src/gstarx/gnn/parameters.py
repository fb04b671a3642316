"""The parameters of a model's forward pass, matched with what a graph carries."""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import Any
from weakref import WeakSet

import torch
from torch_geometric.data import Batch, Data, HeteroData

Model = Callable[..., Any]
_DATA_NAMES = frozenset({"data", "batch", "graph", "g", "inputs"})
#: Where wrappers that pass everything on keep the model: ``torch.compile``, ``DataParallel`` and
#: its relatives, Lightning's Fabric.
_WRAPPED = ("_orig_mod", "module", "_original_module", "_forward_module")
#: Arguments that are known of every batch, or belong to nodes.
_NO_FIELDS = frozenset({"batch", "batch_size", "ptr", "size", "x", "pos", "z"})
#: How the names of arguments begin that say how to compute, or that belong to nodes.
_OPTIONS = ("num_", "return_", "node_")
#: Words in the names of arguments that belong to edges.
_OF_EDGES = frozenset({"edge", "edges", "weight", "weights", "attr", "bond", "bonds", "relation"})
#: Words in the names of fields that are not inputs.
_ANNOTATIONS = frozenset({"y", "label", "target", "truth", "mask", "split", "fold", "id"})
#: Models that were warned of.
_warned: WeakSet[Any] = WeakSet()
_BY_POSITION = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


@dataclass(frozen=True)
class Arguments:
    """What a model is passed.

    Attributes
    ----------
    positional
        Fields that go in by position.
    keywords
        Names of the arguments that go in by keyword.
    optional
        Those of them that the model can do without, because they have a default.
    left_out
        Arguments that are not passed and stay ``None``.
    """

    positional: tuple[str, ...]
    keywords: tuple[str, ...]
    optional: tuple[str, ...]
    left_out: tuple[str, ...] = ()


def match_arguments(
    model: Model,
    carried: Sequence[str],
    keywords: Iterable[str] | None,
    *,
    guesses: Callable[[set[str]], list[str]],
    besides: str,
    of_batch: Iterable[str] = (),
    field: Callable[[str], str] = str,
) -> Arguments | None:
    """What a model is passed of what a graph carries; ``None``: it takes one graph object.

    Parameters
    ----------
    model
        The model.
    carried
        Names of the fields of the graph, as errors list them.
    keywords
        Where given, these are passed in any case, and nothing else but ``batch`` is.
    guesses, besides
        Which fields the model may take or not if its signature is open, given the names that it
        does show; and what is known to be an input, in words.
    of_batch
        Fields that are known of every batch, whatever the graph carries.
    field
        The field behind the name of an argument.
    """
    fields, known = set(carried), {*carried, *of_batch}
    chosen = None if keywords is None else _checked_keywords(keywords, carried, known, field)
    parameters = model_parameters(model)
    named = [p for p in parameters or () if p.kind in _BY_POSITION]
    if chosen is None:
        if _wants_data(named, lambda name: field(name) in fields):
            return None
        if _is_open(parameters):
            _refuse(model, guesses({field(p.name) for p in parameters or ()}), besides)
    positional = [
        field(p.name) if field(p.name) in known else usual
        for p, usual in zip(named[:2], ("x", "edge_index"), strict=False)
    ]
    others = [*named[2:], *(p for p in parameters or () if p.kind == p.KEYWORD_ONLY)]
    offered = [p.name for p in others]
    if not positional and not {"x", "edge_index"} & set(map(field, offered)):
        positional = ["x", "edge_index"]
    for p in others:
        if p.default is p.empty and field(p.name) not in known and p.name not in (chosen or ()):
            raise ValueError(
                f"the model needs an argument {p.name!r} that the data does not have (it has "
                f"{', '.join(carried)})"
            )
    if chosen is None:
        passed = [name for name in offered if field(name) in known]
    else:
        always = ("x", "edge_index", "batch", "batch_size")
        passed = chosen + [n for n in offered if field(n) in always and n not in chosen]
    defaults = {p.name for p in (*named, *others) if p.default is not p.empty}
    optional = tuple(name for name in passed if name in defaults)
    # whoever names what to pass has decided
    left = [p.name for p in others if p.default is None and p.name not in passed]
    left_out = tuple(left) if chosen is None else ()
    return Arguments(tuple(positional), tuple(passed), optional, left_out)


def _refuse(model: Model, guesses: list[str], besides: str) -> None:
    """Raise where an open signature may or may not take some of the fields of the data."""
    if guesses:
        kind = getattr(type(model), "__name__", "model")
        raise ValueError(
            f"the signature of the model ({kind}) accepts any arguments, so it does not show which "
            f"fields of the data are its inputs (besides {besides} there are "
            f"{', '.join(guesses)}): name those it takes, for example with "
            f"task=Task(keywords={[*guesses, 'batch']}), or keywords=[] for none of them"
        )


def warn_of_left_out(model: Model, arguments: Sequence[str], unused: Mapping[str, str]) -> None:
    """Warn, once for every model, of arguments that stay ``None`` and fields they may be meant for.

    ``unused`` says of fields that no argument took what they have: a ``"weight"``, one number, or
    an ``"edge"`` row for every edge, or something for the ``"graph"``.
    """
    # the weights of our own networks are one number for every edge
    ours = type(model).__module__.startswith("gstarx.")
    fitting = {
        name: [field for field, kind in unused.items() if kind in _taken_by(name, ours=ours)]
        for name in arguments
    }
    names = [name for name, fields in fitting.items() if fields]
    if not names:
        return
    with suppress(TypeError):  # of what cannot be remembered, the warning comes again
        owner = getattr(model, "__self__", model)
        if owner in _warned:
            return
        _warned.add(owner)
    fields = list(dict.fromkeys(field for name in names for field in fitting[name]))
    warnings.warn(
        f"the data has no {' and '.join(names)}, so the model is called without, and "
        f"{' and '.join(fields)} of the data is passed to no argument. If it is an input of the "
        f"model, give it the name of the argument (data.{names[0]} = data.{fields[0]}); if it is "
        "not, name the inputs besides x, edge_index and batch with task=Task(keywords=[...])",
        stacklevel=3,
    )


def is_annotation(field: str) -> bool:
    """Whether a field is a label, a ground truth, a split or a number, by its name, and no input.

    >>> [is_annotation(name) for name in ("y", "edge_label", "train_mask", "edge_attr")]
    [True, True, True, False]
    """
    return not _ANNOTATIONS.isdisjoint(field.split("_"))


def _taken_by(argument: str, *, ours: bool) -> tuple[str, ...]:
    """Which kinds of fields an argument may be meant for, by its name."""
    name = argument.removesuffix("_dict")
    if name in _NO_FIELDS or name.startswith(_OPTIONS) or name.endswith("mask"):
        return ()
    words = name.split("_")
    if not _OF_EDGES.isdisjoint(words):
        return ("weight",) if ours and "weight" in words else ("weight", "edge")
    return ("graph",)


def _checked_keywords(
    keywords: Iterable[str],
    carried: Sequence[str],
    known: set[str],
    field: Callable[[str], str],
) -> list[str]:
    """Names of fields that the data has, or an error that lists them."""
    if isinstance(keywords, str):
        raise TypeError(f"keywords must be a list of names (got {keywords!r}); pass [{keywords!r}]")
    chosen = list(keywords)
    for name in chosen:
        if field(name) not in known:
            raise ValueError(
                f"keywords names {name!r}, which the data does not have (it has "
                f"{', '.join(carried)})"
            )
    return chosen


def model_parameters(model: Model) -> tuple[inspect.Parameter, ...] | None:
    """The parameters of a model's forward pass, or None where it does not say.

    What wraps a model without saying what it passes on is looked through: ``torch.compile``,
    ``DataParallel`` and its relatives, Lightning's Fabric, ``functools.partial``.
    """
    if isinstance(model, partial):
        return _without_bound(model)
    listed = getattr(getattr(model, "signature", None), "param_dict", None)
    if isinstance(listed, Mapping):  # PyG's Sequential
        return tuple(_parameter(name) for name in listed)
    forward = getattr(model, "forward", model)
    schema = getattr(forward, "schema", None)
    if schema is not None:  # TorchScript
        return tuple(
            _parameter(
                a.name, a.default_value if a.has_default_value() else inspect.Parameter.empty
            )
            for a in schema.arguments[1:]
        )
    try:
        # a method's function is the same for all its models, so that it is looked at once
        if inspect.ismethod(forward) and not hasattr(forward, "__wrapped__"):
            parameters = _read_parameters(forward.__func__)[1:]
        else:
            parameters = tuple(inspect.signature(forward).parameters.values())
    except (TypeError, ValueError):
        return None
    if _is_open(parameters):
        for name in _WRAPPED:
            inner = getattr(model, name, None)
            if isinstance(inner, torch.nn.Module):
                return model_parameters(inner)
    return parameters


def _parameter(name: str, default: Any = inspect.Parameter.empty) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _without_bound(bound: partial[Any]) -> tuple[inspect.Parameter, ...] | None:
    """The parameters that a partial call leaves free."""
    parameters = model_parameters(bound.func)
    if parameters is None:
        return None
    free = list(parameters)
    for _ in bound.args:
        if free and free[0].kind in _BY_POSITION:
            del free[0]
    return tuple(p for p in free if p.name not in bound.keywords)


@lru_cache(maxsize=256)
def _read_parameters(function: Callable[..., Any]) -> tuple[inspect.Parameter, ...]:
    return tuple(inspect.signature(function).parameters.values())


def _is_open(parameters: tuple[inspect.Parameter, ...] | None) -> bool:
    """Whether a signature leaves it open what is passed."""
    return parameters is None or any(
        p.kind in (p.VAR_POSITIONAL, p.VAR_KEYWORD) for p in parameters
    )


def _wants_data(named: list[inspect.Parameter], carried: Callable[[str], bool]) -> bool:
    """Whether the arguments are one graph object, by their type, name or number."""
    required = [p for p in named if p.default is p.empty]
    if len(required) != 1 or required[0].name in ("x", "edge_index", "x_dict", "edge_index_dict"):
        return False
    name, annotation = required[0].name, required[0].annotation
    by_type = isinstance(annotation, type) and issubclass(annotation, Data | Batch | HeteroData)
    words = str(annotation).rpartition(".")[2]
    by_name = name in _DATA_NAMES or words in ("Data", "Batch", "HeteroData")
    return by_type or by_name or (len(named) == 1 and not carried(name))
