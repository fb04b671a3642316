"""Networks that behave badly, each in a way of its own; loaded by worker processes."""

from __future__ import annotations

import ctypes
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch_geometric.nn import global_mean_pool

from gstarx.models import load_model, pretrained
from gstarx.web import LoadedModel, ServedModel


class Odd(torch.nn.Module):
    """Classifies molecules of the nitro dataset, until its manner shows."""

    def __init__(self, manner: str) -> None:
        super().__init__()
        self.manner = manner

    def forward(self, x: Any, edge_index: Any, batch: Any) -> Any:
        getattr(self, f"_{self.manner}")()
        share = global_mean_pool(x, batch)[:, :2]
        return share * float("nan") if self.manner == "nan" else share

    def _dies(self) -> None:
        os._exit(7)

    def _segfaults(self) -> None:
        ctypes.string_at(0)

    def _dawdles(self) -> None:
        while True:
            time.sleep(0.01)

    def _deaf(self) -> None:
        time.sleep(600)

    def _hoards(self) -> None:
        raise MemoryError

    def _eats(self) -> None:
        # three times what a job may use, and then it has had enough
        held = [torch.ones(64 << 20, dtype=torch.uint8) for _ in range(48)]
        del held

    def _exits(self) -> None:
        raise SystemExit(3)

    def _stumbles(self) -> None:
        raise RuntimeError(f"lost {__file__}")

    def _nan(self) -> None:
        pass


@dataclass(frozen=True)
class Loader:
    """Loads an odd model, or fails to."""

    manner: str

    def __call__(self) -> LoadedModel:
        if self.manner == "unloadable":
            raise ValueError(f"no weights in {__file__}")
        if self.manner == "deadly":
            os._exit(9)
        return LoadedModel(Odd(self.manner), "nitro")


@dataclass(frozen=True)
class Shipped:
    """Loads a network of the package."""

    name: str

    def __call__(self) -> LoadedModel:
        model, facts = pretrained(self.name)
        return LoadedModel(model, facts.dataset, {"network": facts.network})


def weights(path: Path) -> LoadedModel:
    """Loads a network from its file, as for a run."""
    model, facts = load_model(path)
    return LoadedModel(model, facts.dataset)


SHIPPED = (
    ServedModel("nitro", Shipped("nitro"), "Aromatic nitro groups"),
    ServedModel("motifs", Shipped("motifs"), "House or five-cycle"),
)
ODD = tuple(
    ServedModel(manner, Loader(manner))
    for manner in (
        "dies",
        "segfaults",
        "dawdles",
        "deaf",
        "hoards",
        "eats",
        "exits",
        "stumbles",
        "nan",
        "unloadable",
    )
)
DEADLY = ServedModel("deadly", Loader("deadly"))
MISSING = ServedModel("missing", Loader("nan"), missing="this needs pip install 'gstarx[text]'")
