"""Networks that misbehave in different ways; loaded by worker processes."""

from __future__ import annotations

import ctypes
import os
import time
from functools import partial
from typing import Any

import torch
from torch_geometric.nn import global_mean_pool

from gstarx.registry import ModelSource
from gstarx_explorer import ServedModel


class Odd(torch.nn.Module):
    """Classifies molecules of the nitro dataset, and misbehaves in one way."""

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
        # three times what a job may use
        held = [torch.ones(64 << 20, dtype=torch.uint8) for _ in range(48)]
        del held

    def _exits(self) -> None:
        raise SystemExit(3)

    def _stumbles(self) -> None:
        raise RuntimeError(f"lost {__file__}")

    def _nan(self) -> None:
        pass


def _create(manner: str) -> Odd:
    if manner == "unloadable":
        raise ValueError(f"no weights in {__file__}")
    if manner == "deadly":
        os._exit(9)
    return Odd(manner)


class Factory:
    """Has a factory for each way to misbehave, such as ``tests.web.odd_models:Factory.dies``."""


MANNERS = (
    *("dies", "segfaults", "dawdles", "deaf", "hoards", "eats", "exits", "stumbles", "nan"),
    *("unloadable", "deadly"),
)
for _manner in MANNERS:
    setattr(Factory, _manner, staticmethod(partial(_create, _manner)))


def odd(manner: str) -> ModelSource:
    """The source of a model that misbehaves."""
    return ModelSource(f"{__name__}:Factory.{manner}", dataset="nitro")


SHIPPED = (
    ServedModel("nitro", ModelSource("nitro"), "Aromatic nitro groups"),
    ServedModel("motifs", ModelSource("motifs"), "House or five-cycle"),
)
ODD = tuple(ServedModel(manner, odd(manner)) for manner in MANNERS[:-1])
DEADLY = ServedModel("deadly", odd("deadly"))
MISSING = ServedModel("missing", odd("nan"), missing="this needs pip install 'gstarx[text]'")
