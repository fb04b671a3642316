"""The published weights and the paper's data, which lie beside the repository or nowhere."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path

import pytest

from gstarx.datasets import GraphDataset, load
from gstarx.models import GCN, load_published_checkpoint

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
