"""What the networks of the paper have in common."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from torch import Tensor, nn
from torch_geometric.nn import global_add_pool, global_max_pool, global_mean_pool

READOUTS: dict[str, Callable[[Tensor, Tensor | None, int | None], Tensor]] = {
    "mean": global_mean_pool,
    "max": global_max_pool,
    "sum": global_add_pool,
}


class Network(nn.Module):
    """Message passing, a readout, and one linear layer to the classes.

    A subclass keeps every argument of its constructor as an attribute of the same name, and has
    ``embed`` (node embeddings) and ``forward`` (logits).
    """

    readout: str | None
    classifier: nn.Linear

    def __init__(self, readout: str | None, **sizes: int) -> None:
        super().__init__()
        if readout is not None and readout not in READOUTS:
            valid = ", ".join(map(repr, READOUTS))
            raise ValueError(f"readout must be None or one of {valid} (got {readout!r})")
        for name, size in sizes.items():
            if size < 1:
                raise ValueError(f"{name} must be at least 1 (got {size})")
            setattr(self, name, size)
        self.readout = readout

    @property
    def config(self) -> dict[str, Any]:
        """The arguments of the constructor, by name: numbers, strings, booleans and ``None``.

        ``type(model)(**model.config)`` is the same network with other weights.
        """
        return {name: getattr(self, name) for name in inspect.signature(type(self)).parameters}

    def classify(self, hidden: Tensor, batch: Tensor | None, batch_size: int | None) -> Tensor:
        """Logits of every graph, (graphs, classes), or without a readout of every node."""
        if self.readout is not None:
            hidden = READOUTS[self.readout](hidden, batch, batch_size)
        logits: Tensor = self.classifier(hidden)
        return logits
