"""Explainers with a trained network, and their safetensors files of weights and settings."""

from __future__ import annotations

import hashlib
import json
import os
from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Generic, Self, TypeVar

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save as to_bytes
from torch import Tensor, nn

from gstarx._internal.files import write_atomically
from gstarx.explainers import with_objects
from gstarx.explainers.base import NodeExplainer

_FORMAT = 1
Trained = TypeVar("Trained", bound=nn.Module)


class TrainedExplainer(NodeExplainer, Generic[Trained]):
    """An explainer with a network that :meth:`fit` trains once, and that a file can hold."""

    requires_training = True

    def __init__(self) -> None:
        super().__init__()
        #: The trained network, or ``None``.
        self.trained: Trained | None = None

    @abstractmethod
    def _stored(self) -> dict[str, Any]:
        """All settings by plain names, as JSON has them."""

    @abstractmethod
    def _empty(self, tensors: Mapping[str, Tensor]) -> Trained:
        """A network that these weights fit."""

    def _ready(self) -> Trained:
        if self.trained is None:
            name = type(self).__name__
            raise RuntimeError(
                f"{name} has to be trained before it can explain: call fit(model, graphs), or "
                f"{name}.load(path)"
            )
        return self.trained

    def save(self, path: str | os.PathLike[str]) -> None:
        """Store the trained network and all settings in one ``.safetensors`` file."""
        name = type(self).__name__
        if self.trained is None:
            raise RuntimeError(f"{name} has to be trained before it can be saved")
        write_trained(path, name, self._stored(), self.trained.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The explainer that :meth:`save` has stored."""
        settings, tensors = read_trained(path, cls.__name__)
        try:
            explainer = cls(**with_objects(cls, settings))
            trained = explainer._empty(tensors)
            trained.load_state_dict(tensors)
        except (TypeError, ValueError, KeyError, IndexError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold a trained {cls.__name__}: {error}") from error
        explainer.trained = trained
        return explainer


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
