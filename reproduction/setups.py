"""Setups: the paper's datasets with its networks, and which of their graphs are explained."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path

import numpy as np

from gstarx import datasets
from gstarx.datasets import GraphDataset
from gstarx.models import Network, load_model
from gstarx_bench.models import load_published_checkpoint


class Missing(FileNotFoundError):
    """Data or weights of a setup are missing; the other setups do not need them."""


@dataclass(frozen=True)
class Setup:
    """A dataset with a network, and how many of its graphs are explained.

    Attributes
    ----------
    dataset, network
        By name.
    published
        The file of published weights; None for the weights that ship with the package.
    test, val
        At most so many graphs of each split, a fixed random subset; None for all.
    few
        How many of the test graphs, the first ones, slow methods explain.
    """

    dataset: str
    network: str
    published: str | None = None
    test: int | None = None
    val: int | None = 60
    few: int = 30

    @property
    def name(self) -> str:
        """Dataset and network, as in file names."""
        return f"{self.dataset}-{self.network}"

    def weights(self) -> Path:
        """The file of the weights, or :class:`Missing`."""
        if self.published is None:
            shipped = Path(str(files("gstarx.models") / "trained" / f"{self.name}.safetensors"))
            if not shipped.is_file():
                raise Missing(f"there are no trained weights of {self.name} in this installation")
            return shipped
        folder = os.environ.get("GSTARX_CHECKPOINTS")
        if folder and (path := Path(folder) / self.published).is_file():
            return path
        raise Missing(
            f"the published weights of {self.name} are missing: set GSTARX_CHECKPOINTS to the "
            f"directory that holds {self.published} (got {folder or 'nothing'})"
        )

    def data(self) -> GraphDataset:
        """The dataset, or :class:`Missing`."""
        return _load(self.dataset)

    def graphs(self, split: str) -> tuple[int, ...]:
        """Positions of the graphs of a split, in a fixed random order.

        If the validation split has too few, graphs of the training split are added.
        """
        splits = self.data().split_indices
        if split == "test":
            return chosen(splits["test"], self.test)
        graphs = chosen(splits["val"], self.val)
        return graphs + chosen(splits["train"], max(0, (self.val or 0) - len(graphs)))

    def few_graphs(self, graphs: Sequence[int], split: str) -> tuple[int, ...]:
        """The graphs of a split that slow methods explain.

        Half as many of the validation split, which only serves to choose a sparsity.
        """
        return tuple(graphs[: self.few if split == "test" else self.few // 2])


def chosen(positions: Sequence[int], most: int | None) -> tuple[int, ...]:
    """A fixed random subset of the positions; a larger subset starts with the smaller one.

    >>> chosen((4, 5, 6, 7), 2) == chosen((4, 5, 6, 7), 3)[:2]
    True
    """
    order = np.random.default_rng(0).permutation(len(positions))
    return tuple(int(positions[at]) for at in order[:most])


def load_weights(path: Path) -> Network:
    """The network in a file of published weights or of weights trained here."""
    return load_published_checkpoint(path) if path.suffix == ".pth" else load_model(path)[0]


@cache
def _load(name: str) -> GraphDataset:
    try:
        return datasets.load(name)
    except (OSError, ImportError) as error:
        raise Missing(str(error).splitlines()[0]) from error


#: The rows of Tables 1 and 2.
SETUPS = {
    setup.name: setup
    for setup in (
        Setup("mutag", "gcn", "mutag/gcn_3l_best.pth", few=20),
        Setup("ba_2motifs", "gcn", "ba_2motifs/gcn_3l_best.pth", few=100),
        Setup("bbbp", "gcn", "bbbp/gcn_3l_best.pth"),
        Setup("bace", "gcn", "bace/gcn_3l_best.pth"),
        Setup("sst2", "gcn", test=100),
        Setup("tweets", "gcn", test=100),
        Setup("mutag", "gin", "mutag/gin_3l_best.pth", few=20),
        Setup("sst2", "gat", test=100),
    )
}
