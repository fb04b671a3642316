"""The paper's published weights, read into our models."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from gstarx.models.gcn import GCN

#: What the published configuration files say and the tensors do not, by (input, hidden, classes).
_GCN_OPTIONS: dict[tuple[int, int, int], dict[str, Any]] = {
    (7, 128, 2): {"readout": "mean"},
    (9, 128, 2): {"readout": "max"},
    (768, 128, 2): {"readout": "max"},
    (768, 128, 3): {"readout": "max"},
    (10, 20, 2): {"readout": "mean", "normalize": False},
    (10, 20, 4): {"readout": None, "normalize": False, "normalize_embeddings": True},
}


def load_published_checkpoint(path: str | os.PathLike[str], **options: Any) -> GCN:
    """Load a published GCN checkpoint (a ``.pth`` file) into :class:`GCN`, in evaluation mode.

    Number of layers and widths are read off the tensors. Readout and normalisation, which the
    tensors do not show, follow from these shapes for the published models.

    Parameters
    ----------
    path
        The file. Only tensors and plain containers are read from it, never pickled code.
    **options
        Options of :class:`GCN` that say otherwise: ``readout``, ``normalize``,
        ``normalize_embeddings``. Needed for shapes that were not published.

    Raises
    ------
    FileNotFoundError, ValueError
        When the file is missing, unreadable, or not such a checkpoint.
    """
    state = _read(Path(path))
    layers = sum(key.startswith("convs.") and key.endswith(".bias") for key in state)
    wanted = {f"convs.{i}.{part}" for i in range(layers) for part in ("weight", "bias")}
    wanted |= {"mlps.0.weight", "mlps.0.bias"}
    if not layers or set(state) != wanted:
        raise ValueError(
            f"{path} does not hold a published GCN: expected keys like 'convs.0.weight' and "
            f"'mlps.0.weight' (got {', '.join(sorted(state)[:6]) or 'none'})"
        )
    widths = (*state["convs.0.weight"].shape, *state["mlps.0.bias"].shape)
    if len(widths) != 3:
        raise ValueError(f"the tensors in {path} do not fit together (got shapes {widths})")
    width, hidden, classes = widths
    known = _GCN_OPTIONS.get((width, hidden, classes))
    if known is None and "readout" not in options:
        raise ValueError(
            f"{path} has shapes that were not published ({width} features, {hidden} hidden, "
            f"{classes} classes): say readout=... and, where it applies, normalize=..."
        )
    model = GCN(width, hidden, classes, num_layers=layers, **{**(known or {}), **options})
    weights = {f"convs.{i}.lin.weight": state[f"convs.{i}.weight"].T for i in range(layers)}
    weights |= {f"convs.{i}.bias": state[f"convs.{i}.bias"] for i in range(layers)}
    weights |= {f"classifier.{part}": state[f"mlps.0.{part}"] for part in ("weight", "bias")}
    try:
        model.load_state_dict(weights)
    except RuntimeError as error:
        raise ValueError(f"the tensors in {path} do not fit together: {error}") from error
    return model.eval()


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise FileNotFoundError(f"there is no checkpoint at {path}")
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        raise ValueError(f"{path} is not a readable checkpoint: {error}") from error
    state = content.get("net") if isinstance(content, dict) else None
    if not isinstance(state, dict) or not all(isinstance(t, Tensor) for t in state.values()):
        raise ValueError(f"{path} must hold a dictionary with a state dictionary under 'net'")
    return state
