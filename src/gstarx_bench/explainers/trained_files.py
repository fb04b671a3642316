"""Trained explainers on disk: weights and settings in one safetensors file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor

from gstarx._internal.files import write_atomically

_FORMAT = 1


def write_trained(
    path: str | os.PathLike[str],
    method: str,
    settings: Mapping[str, Any],
    tensors: Mapping[str, Tensor],
) -> None:
    """Write weights, with the settings as JSON in the header, atomically."""
    path = _checked(path)
    stored = {name: t.detach().cpu().contiguous() for name, t in tensors.items()}
    about = {"format": _FORMAT, "method": method, "settings": dict(settings)}
    header = json.dumps({**about, "digest": _digest(about, stored)}, allow_nan=False)
    write_atomically(path, to_bytes(stored, metadata={"gstarx": header}))


def read_trained(
    path: str | os.PathLike[str], method: str
) -> tuple[dict[str, Any], dict[str, Tensor]]:
    """Read the settings and weights of a method from its file; raises if it is another file."""
    path = _checked(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no trained explainer at {path}")
    try:
        with safe_open(path, framework="pt") as file:
            header = (file.metadata() or {}).get("gstarx", "null")
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        content = json.loads(header)
    except (SafetensorError, OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not a readable safetensors file: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        got = content.get("format") if isinstance(content, dict) else None
        raise ValueError(f"{path} must hold an explainer in format {_FORMAT} (got {got!r})")
    if content.get("method") != method or not isinstance(content.get("settings"), dict):
        raise ValueError(f"{path} must hold a trained {method} (got {content.get('method')!r})")
    if not all(torch.isfinite(tensor).all() for tensor in tensors.values()):
        raise ValueError(f"{path} holds weights that are not finite")
    if content.pop("digest", None) != _digest(content, tensors):
        raise ValueError(f"{path} is damaged: it does not hold what was written")
    return content["settings"], tensors


def _digest(about: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    sha = hashlib.sha256(json.dumps(about, sort_keys=True).encode())
    for name, tensor in sorted(tensors.items()):
        sha.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        sha.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def _checked(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"the path of an explainer must end in '.safetensors' (got {str(path)!r})")
    return path
