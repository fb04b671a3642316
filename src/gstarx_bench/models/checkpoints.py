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

_GIN_PARTS = ["eps", "nn.0.weight", "nn.0.bias", "nn.3.weight", "nn.3.bias"]
_GIN_PARTS += [f"nn.1.{part}" for part in ("weight", "bias", "running_mean", "running_var")]
_GIN_PARTS += ["nn.1.num_batches_tracked"]
#: The stored tensors of one layer, and where they go in ours (``None``: nowhere).
_LAYERS: dict[type[Network], tuple[str, dict[str, str | None]]] = {
    GCN: ("convs", {"weight": "lin.weight", "bias": "bias"}),
    GIN: ("convs", {part: part for part in _GIN_PARTS}),
    GAT: (
        "gnn_layers",
        {
            "att_l": "att_src",
            "att_r": "att_dst",
            "bias": "bias",
            "lin_l.weight": "lin.weight",
            "lin_r.weight": None,
        },
    ),
}


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
    kind = _recognized(state, path)
    try:
        sizes = _sizes(kind, state)
        weights = _renamed(kind, state)
    except ValueError as error:
        raise ValueError(f"the tensors in {path} do not fit together: {error}") from error
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
        raise ValueError(f"the tensors in {path} do not fit together: {error}") from error
    return model.eval()


def _recognized(state: dict[str, Tensor], path: object) -> type[Network]:
    """The network whose tensors these are."""
    for kind, (prefix, parts) in _LAYERS.items():
        layers = _count(kind, state)
        expected = {f"{prefix}.{i}.{part}" for i in range(layers) for part in parts}
        if layers and set(state) == expected | {"mlps.0.weight", "mlps.0.bias"}:
            return kind
    raise ValueError(
        f"{path} does not hold a published GCN, GIN or GAT: expected keys like 'convs.0.weight', "
        "'convs.0.eps' or 'gnn_layers.0.att_l', and 'mlps.0.weight' "
        f"(got {', '.join(sorted(state)[:6]) or 'none'})"
    )


def _count(kind: type[Network], state: dict[str, Tensor]) -> int:
    """Number of layers: how many have the first of their tensors."""
    prefix, parts = _LAYERS[kind]
    first = next(iter(parts))
    return sum(key.startswith(f"{prefix}.") and key.split(".", 2)[2:] == [first] for key in state)


def _sizes(kind: type[Network], state: dict[str, Tensor]) -> dict[str, int]:
    """The arguments of the constructor that follow from the shapes."""
    sizes = {"num_layers": _count(kind, state)}
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
    prefix, parts = _LAYERS[kind]
    weights = {f"classifier.{part}": state[f"mlps.0.{part}"] for part in ("weight", "bias")}
    for i in range(_count(kind, state)):
        stored = {part: state[f"{prefix}.{i}.{part}"] for part in parts}
        if kind is GAT and not torch.equal(stored["lin_l.weight"], stored["lin_r.weight"]):
            raise ValueError(f"lin_l and lin_r of layer {i} differ, where a GAT has one map")
        for part, ours in parts.items():
            if ours is not None:
                # only a GCN is stored input first
                transpose = kind is GCN and stored[part].dim() == 2
                weights[f"convs.{i}.{ours}"] = stored[part].T if transpose else stored[part]
    return weights


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
