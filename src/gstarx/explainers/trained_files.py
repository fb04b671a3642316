"""Explainers that were trained, on disk: weights and settings in one safetensors file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from gstarx.whole_files import write_whole

_FORMAT = 1


def write_trained(
    path: str | os.PathLike[str],
    method: str,
    settings: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
) -> None:
    """Write weights, with the settings as JSON in the header, whole or not at all."""
    path = _checked(path)
    header = json.dumps(
        {"format": _FORMAT, "method": method, "settings": dict(settings)}, allow_nan=False
    )
    content = to_bytes(
        {name: t.detach().cpu().contiguous() for name, t in tensors.items()},
        metadata={"gstarx": header},
    )
    write_whole(path, content)


def read_trained(
    path: str | os.PathLike[str], method: str
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Settings and weights of a method from its file, or an error that says what the file is."""
    path = _checked(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no trained explainer at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get("gstarx", "null")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        content = json.loads(header)
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is not a readable safetensors file: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        got = content.get("format") if isinstance(content, dict) else None
        raise ValueError(f"{path} must hold an explainer in format {_FORMAT} (got {got!r})")
    if content.get("method") != method or not isinstance(content.get("settings"), dict):
        raise ValueError(f"{path} must hold a trained {method} (got {content.get('method')!r})")
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise ValueError(f"{path} holds weights that are not finite")
    return content["settings"], tensors


def _checked(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"the path of an explainer must end in '.safetensors' (got {str(path)!r})")
    return path
