"""What a model does, in the words of PyG's ``ModelConfig``, as explainers pass it on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain.config import ModelMode, ModelTaskLevel

from gstarx.gnn.game import GNNGame
from gstarx.gnn.players import check_index

#: What everything random takes.
Seed = int | np.random.Generator | None
log = logging.getLogger("gstarx")


@dataclass(frozen=True)
class ModelTask:
    """Mode, level and return type of a model, the node or edge in question, and its inputs."""

    mode: str = "multiclass_classification"
    task_level: str = "graph"
    return_type: str = "raw"
    index: int | None = None
    keywords: Sequence[str] | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "index", check_index(self.index, self.task_level))

    @classmethod
    def of(cls, options: dict[str, Any]) -> ModelTask:
        """The task from keyword arguments, or an error that lists them."""
        valid = [field.name for field in fields(cls)]
        for name in options:
            if name not in valid:
                raise TypeError(f"there is no option {name!r}; valid are {', '.join(valid)}")
        return cls(**options)

    def game(self, model: Any, data: Data, target: int | None, **options: Any) -> GNNGame:
        """The game of one graph for this task; the model runs when it is first asked."""
        return GNNGame(model, data, target=target, lazy=True, **options, **asdict(self))

    def outputs_game(self, model: Any, data: Data, target: int | None, **options: Any) -> GNNGame:
        """The same, worth what the model says: a probability, or the output of a regression."""
        payoff = "raw" if self.mode == "regression" else "prob"
        return self.game(model, data, target, payoff=payoff, **options)


def target_of(target: Tensor, index: int | Tensor | None, config: Any) -> int | None:
    """The class to explain, from PyG's target tensor; which output, for regression, by itself."""
    if config.mode == ModelMode.regression:
        return None
    flat = target.reshape(-1)
    if config.task_level != ModelTaskLevel.graph and index is not None and flat.numel() > 1:
        flat = flat[int(index)].reshape(-1)
    if flat.numel() != 1:
        raise ValueError(f"explain one target at a time (got {flat.numel()})")
    return int(flat[0])
