"""The paper's MUTAG model and test molecules, where the user has them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import torch
from torch_geometric.data import Data

from gstarx import datasets
from gstarx.gnn import expected_output
from gstarx.models import GCN, load_published_checkpoint

_SHARED = Path(__file__).resolve().parents[2] / "shared"


@cache
def mutag() -> tuple[GCN, list[Data], torch.Tensor] | None:
    """The published GCN, the 20 test molecules, and the mean probabilities over the training split.

    Data in ``GSTARX_DATA`` and weights in ``GSTARX_CHECKPOINTS``; by default beside the repository.
    """
    data = Path(os.environ.get("GSTARX_DATA") or _SHARED / "data")
    weights = Path(os.environ.get("GSTARX_CHECKPOINTS") or _SHARED / "checkpoints")
    checkpoint = weights / "mutag" / "gcn_3l_best.pth"
    if not (data / "MUTAG" / "raw").is_dir() or not checkpoint.is_file():
        print("skipped: needs MUTAG in GSTARX_DATA and the published weights in GSTARX_CHECKPOINTS")
        return None
    torch.set_num_threads(1)
    dataset = datasets.load("mutag", data)
    model = load_published_checkpoint(checkpoint)
    return model, dataset.split("test"), expected_output(model, dataset.split("train"))
