"""The state of a training, in memory and on disk."""

from __future__ import annotations

import io
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, astuple, dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim import Adam

from gstarx._internal.files import check_expanded_size, write_atomically
from gstarx_bench.models.recipes import TrainingSettings

_FORMAT = 1


@dataclass(frozen=True)
class Epoch:
    """The results of one pass over the training graphs.

    Attributes
    ----------
    number
        Its number, from 0.
    train_loss
        Mean loss over the training labels, each computed when its mini-batch was used: the
        cross-entropy, or for regression the squared error of standardized targets.
    val_loss, val_score
        Loss and score on the validation labels afterwards. The score is the accuracy of a
        classification, the AUROC of a binary or multilabel task (nan where no target has labels of
        both kinds), and minus the RMSE of the standardized targets of a regression.
    """

    number: int
    train_loss: float
    val_loss: float
    val_score: float

    def better_than(self, other: Epoch | None) -> bool:
        """Whether its score is higher, or the same (or nan) with a lower loss."""
        if other is None or self.val_score > other.val_score:
            return True
        return not self.val_score < other.val_score and self.val_loss < other.val_loss


@dataclass
class Run:
    """The mutable state of a training, with everything needed to resume it."""

    model: nn.Module
    optimizer: Adam
    settings: TrainingSettings
    #: Order of the training graphs.
    shuffle: torch.Generator
    history: list[Epoch] = field(default_factory=list)
    best: Epoch | None = None
    best_weights: dict[str, Tensor] = field(default_factory=dict)
    seconds: float = 0.0

    @classmethod
    def start(cls, model: nn.Module, settings: TrainingSettings, seed: int) -> Run:
        """A new training."""
        optimizer = Adam(
            model.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        return cls(model, optimizer, settings, torch.Generator().manual_seed(seed))

    @property
    def finished(self) -> bool:
        """Whether all epochs are done, or patience has run out."""
        done, patience = len(self.history), self.settings.patience
        if patience is not None and self.best is not None:
            return done >= self.settings.epochs or done - 1 - self.best.number >= patience
        return done >= self.settings.epochs

    def record(self, epoch: Epoch) -> None:
        """Record an epoch, and its weights if they are the best so far."""
        self.history.append(epoch)
        if epoch.better_than(self.best):
            self.best = epoch
            self.best_weights = deepcopy(dict(self.model.state_dict()))

    def save(self, path: Path, identity: Mapping[str, Any], device: torch.device) -> None:
        """Write a checkpoint, with what identifies this training."""
        content = {
            "format": _FORMAT,
            "identity": dict(identity),
            "model": dict(self.model.state_dict()),
            "best_model": self.best_weights,
            "best": None if self.best is None else self.best.number,
            "optimizer": self.optimizer.state_dict(),
            "shuffle": self.shuffle.get_state(),
            "random": random_state(device),
            "history": [list(astuple(epoch)) for epoch in self.history],
            "seconds": self.seconds,
        }
        stream = io.BytesIO()
        torch.save(content, stream)
        write_atomically(path, stream.getvalue())

    def restore(self, path: Path, identity: Mapping[str, Any], device: torch.device) -> None:
        """Resume the training at ``path``; raises if it is a different one."""
        check_expanded_size(path)
        try:
            content = torch.load(path, map_location="cpu", weights_only=True)
            stored = content["identity"]
            if content["format"] != _FORMAT:
                raise ValueError(f"its format must be {_FORMAT} (got {content['format']!r})")
        except Exception as error:
            raise _unreadable(path, error) from error
        _check_identity(path, stored, identity)
        try:
            if content["best"] is not None:
                self.model.load_state_dict(content["best_model"])  # to see that it fits
            self.model.load_state_dict(content["model"])
            self.optimizer.load_state_dict(content["optimizer"])
            self.shuffle.set_state(content["shuffle"])
            set_random_state(content["random"], device)
            self.history = [Epoch(*entries) for entries in content["history"]]
            self.best = None if content["best"] is None else self.history[content["best"]]
            self.best_weights = content["best_model"]
            self.seconds = float(content["seconds"])
        except Exception as error:
            raise _unreadable(path, error) from error


def identity_of(settings: TrainingSettings, **facts: Any) -> dict[str, Any]:
    """What identifies a training, by name."""
    return {**facts, **asdict(settings)}


def random_state(device: torch.device) -> dict[str, Tensor]:
    """The states of torch's generators: of the CPU, and of the device."""
    state = {"cpu": torch.get_rng_state()}
    if device.type != "cpu":
        state["device"] = torch.get_device_module(device).get_rng_state(device)
    return state


def set_random_state(state: Mapping[str, Tensor], device: torch.device) -> None:
    """Restore what :func:`random_state` returned."""
    torch.set_rng_state(state["cpu"])
    if "device" in state:
        torch.get_device_module(device).set_rng_state(state["device"], device)


def _check_identity(path: Path, stored: Any, wanted: Mapping[str, Any]) -> None:
    if not isinstance(stored, dict):
        raise _unreadable(path, "it does not say what training it is of")
    names = [*wanted, *(name for name in stored if name not in wanted)]
    different = [
        f"{name} was {stored.get(name)!r} and is {wanted.get(name)!r}"
        for name in names
        if stored.get(name) != wanted.get(name)
    ]
    if different:
        raise ValueError(
            f"{path} holds another training: {'; '.join(different)}. Train with what it was "
            "begun with, pass another checkpoint, or delete the file to begin anew"
        )


def _unreadable(path: Path, error: object) -> ValueError:
    if isinstance(error, UnpicklingError):
        # torch's message is long, and explains how to run the code in the file
        error = "it is damaged, or holds more than tensors and plain values"
    return ValueError(
        f"{path} is not a readable checkpoint of a training: {error}. Delete the file to begin anew"
    )
