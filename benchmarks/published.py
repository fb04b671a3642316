"""The paper's MUTAG model and test molecules, where the user has them."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import torch
from torch_geometric.data import Data

from gstarx import datasets
from gstarx.gnn import expected_output
from gstarx.models import GCN
from gstarx_bench.models import load_published_checkpoint


def mutag_files() -> tuple[Path, Path] | None:
    """The directory ``GSTARX_DATA`` and the checkpoint in ``GSTARX_CHECKPOINTS``.

    None, with a message, if either variable is unset or MUTAG or the checkpoint is missing.
    """
    data, weights = os.environ.get("GSTARX_DATA"), os.environ.get("GSTARX_CHECKPOINTS")
    if data and weights and (Path(data) / "MUTAG" / "raw").is_dir():
        checkpoint = Path(weights) / "mutag" / "gcn_3l_best.pth"
        if checkpoint.is_file():
            return Path(data), checkpoint
    print("skipped: needs MUTAG in GSTARX_DATA and the published weights in GSTARX_CHECKPOINTS")
    return None


@cache
def mutag() -> tuple[GCN, list[Data], torch.Tensor] | None:
    """The published GCN, the 20 test molecules, and the mean probabilities over the training split.

    None if they are not there, see :func:`mutag_files`.
    """
    if (files := mutag_files()) is None:
        return None
    data, checkpoint = files
    torch.set_num_threads(1)
    dataset = datasets.load("mutag", data)
    model = load_published_checkpoint(checkpoint)
    return model, dataset.split("test"), expected_output(model, dataset.split("train"))
