"""The paper's published weights, read into our models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gstarx._internal.files import check_expanded_size
from gstarx.models import GAT, GCN, GIN, Network

#: Options from the published configuration files that the tensors do not show, by network and
#: widths: input, hidden (for GAT all heads together) and classes.
_OPTIONS: dict[type[Network], dict[tuple[int, int, int], dict[str, Any]]] = {
    GCN: {
        (7, 128, 2): {"readout": "mean"},
        (9, 128, 2): {"readout": "max"},
        (768, 128, 2): {"readout": "max"},
        (768, 128, 3): {"readout": "max"},
        (10, 20, 2): {"readout": "mean", "normalize": False},
        (10, 20, 4): {"readout": None, "normalize": False, "normalize_embeddings": True},
    },
    GIN: {(7, 128, 2): {"readout": "max"}},
    GAT: {(768, 100, 2): {"readout": "max"}},
}
#: A tensor that only this network has, the first of its layers.
_FIRST: dict[type[Network], str] = {
    GAT: "gnn_layers.0.att_l",
    GIN: "convs.0.eps",
    GCN: "convs.0.weight",
}
#: Stored names and ours.
_RENAMED = {"mlps.0.": "classifier.", "gnn_layers.": "convs.", ".lin_l.": ".lin."}
_RENAMED |= {".att_l": ".att_src", ".att_r": ".att_dst"}


def load_published_checkpoint(path: str | os.PathLike[str], **options: Any) -> Network:
    """Load a published checkpoint (a ``.pth`` file), in evaluation mode.

    The names of its tensors tell whether it is a :class:`GCN`, a :class:`GIN` or a :class:`GAT`;
    their shapes give the number of layers and the widths. Readout and normalization, which the
    tensors do not show, follow from these shapes for the published models.

    Parameters
    ----------
    path
        The file. Only tensors and plain containers are read from it, never pickled code.
    **options
        Options of the network to override, for instance ``readout``; for a GCN also
        ``normalize`` and ``normalize_embeddings``. ``readout`` is needed for shapes that were not
        published.

    Raises
    ------
    FileNotFoundError, ValueError
        When the file is missing, unreadable, or not such a checkpoint.
    """
    state = _read(Path(path))
    kind = next((kind for kind, first in _FIRST.items() if first in state), None)
    if kind is None:
        raise _not_published(path, f"it has none of {', '.join(_FIRST.values())}")
    try:
        sizes, weights = _sizes(kind, state), _renamed(kind, state)
    except (KeyError, ValueError) as error:
        raise _not_published(path, str(error)) from error
    width, hidden, classes = sizes["in_channels"], sizes["hidden_channels"], sizes["out_channels"]
    hidden *= sizes.get("heads", 1)
    known = _OPTIONS[kind].get((width, hidden, classes))
    if known is None and "readout" not in options:
        further = " and, where it applies, normalize=..." if kind is GCN else ""
        raise ValueError(
            f"{path} has shapes that were not published ({width} features, {hidden} hidden, "
            f"{classes} classes): pass readout=...{further}"
        )
    model = kind(**{**sizes, **(known or {}), **options})
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise _not_published(path, str(error)) from error
    return model.eval()


def _sizes(kind: type[Network], state: dict[str, Tensor]) -> dict[str, int]:
    """The arguments of the constructor that follow from the shapes."""
    prefix, _, part = _FIRST[kind].split(".")
    sizes = {"num_layers": sum(f"{prefix}.{i}.{part}" in state for i in range(len(state)))}
    if kind is GCN:
        sizes["in_channels"], sizes["hidden_channels"] = state["convs.0.weight"].shape
    elif kind is GIN:
        sizes["hidden_channels"], sizes["in_channels"] = state["convs.0.nn.0.weight"].shape
    else:
        _, sizes["heads"], sizes["hidden_channels"] = state["gnn_layers.0.att_l"].shape
        _, sizes["in_channels"] = state["gnn_layers.0.lin_l.weight"].shape
    (sizes["out_channels"],) = state["mlps.0.bias"].shape
    return sizes


def _renamed(kind: type[Network], state: dict[str, Tensor]) -> dict[str, Tensor]:
    """The tensors by our names."""
    weights = {}
    for name, tensor in state.items():
        if kind is GAT and name.endswith(".lin_r.weight"):
            if not torch.equal(tensor, state[name.replace("lin_r", "lin_l")]):
                raise ValueError(f"{name} differs from lin_l, where a GAT has one map")
            continue
        for theirs, ours in _RENAMED.items():
            name = name.replace(theirs, ours)
        if kind is GCN and name.startswith("convs.") and name.endswith(".weight"):
            # only a GCN is stored input first
            name, tensor = name.replace(".weight", ".lin.weight"), tensor.t()
        weights[name] = tensor
    return weights


def _not_published(path: object, why: str) -> ValueError:
    return ValueError(f"{path} does not hold a published GCN, GIN or GAT: {why}")


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
    check_expanded_size(path)
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"{path} is not a readable checkpoint: {error}") from error
    state = content.get("net") if isinstance(content, dict) else None
    if not isinstance(state, dict) or not all(map(_is_entry, state.items())):
        raise ValueError(
            f"{path} must hold a dictionary with a state dictionary under 'net', of dense real "
            "tensors by name"
        )
    return state


def _is_entry(pair: tuple[Any, Any]) -> bool:
    """Whether a key and a value can be those of a state dictionary."""
    name, tensor = pair
    dense = isinstance(tensor, Tensor) and tensor.layout == torch.strided
    return isinstance(name, str) and dense and not tensor.is_complex()
