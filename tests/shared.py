"""The published weights and the paper's data, which lie beside the repository or nowhere."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx.datasets import GraphDataset, load
from gstarx.models import GCN
from gstarx_bench.models import load_published_checkpoint

#: For tests of untrained networks, whose outputs are all about equal, and of graphs of one node.
UNTRAINED = [
    pytest.mark.filterwarnings("ignore:.*the outputs for all evaluated parts of the graph are"),
    pytest.mark.filterwarnings("ignore:there is only one player"),
]

SHARED = Path(__file__).parent.parent.parent / "shared"
CHECKPOINTS = SHARED / "checkpoints"
DATA = SHARED / "data"


def checkpoint(name: str) -> Path:
    """Path of a published checkpoint; skips the test where there is none."""
    path = CHECKPOINTS / name
    if not path.is_file():
        pytest.skip(f"the published weights are not at {path}")
    return path


@lru_cache(maxsize=1)
def _mutag() -> GraphDataset:
    return load("mutag", DATA)


def mutag() -> GraphDataset:
    """The MUTAG molecules; skips the test where there are none."""
    if not (DATA / "MUTAG" / "raw" / "MUTAG_A.txt").is_file():
        pytest.skip(f"MUTAG is not in {DATA}")
    return _mutag()


def mutag_gcn() -> GCN:
    """The published GCN on MUTAG."""
    return load_published_checkpoint(checkpoint("mutag/gcn_3l_best.pth"))


def ba_shapes() -> Data:
    """The 700 nodes of BA-Shapes; skips the test where they are missing."""
    path = DATA / "BA_Shapes" / "ba_shapes.npz"
    if not path.is_file():
        pytest.skip(f"BA-Shapes is not at {path}")
    with np.load(path) as stored:
        edges, labels = torch.from_numpy(stored["edge_index"]), torch.from_numpy(stored["y"])
    return Data(x=torch.ones(len(labels), 10), edge_index=edges.long(), y=labels.long())
