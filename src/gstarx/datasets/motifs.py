"""Random trees with one of two motifs, made where they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph
from torch_geometric.datasets.motif_generator import CycleMotif, HouseMotif, MotifGenerator
from torch_geometric.utils import coalesce

from gstarx.datasets.dataset import GraphDataset, random_split_indices

_BASE_NODES = 20
_CHUNK = 100


def load_motifs(root: Path | None = None, *, size: int = 400, seed: int = 0) -> GraphDataset:
    """Graphs of 25 nodes, class 0 with a five-cycle, class 1 with a house, in turn.

    The motif is joined by one edge to a Barabási–Albert tree of 20 nodes. ``truth`` marks the five
    nodes of the motif. All ten features are 0.1 and carry no information: only the structure does.
    Every graph is connected.

    Parameters
    ----------
    root
        Not used: nothing is read.
    size
        Number of graphs.
    seed
        The same seed gives the same graphs. PyG's generators draw from the global states of numpy
        and torch, which are restored afterwards.
    """
    if size < 10:
        raise ValueError(f"size must be at least 10, to be split (got {size})")
    with _seeded(seed):
        cycles = _connected(CycleMotif(5), (size + 1) // 2, label=0)
        houses = _connected(HouseMotif(), size // 2, label=1)
    graphs = [(houses if i % 2 else cycles)[i // 2] for i in range(size)]
    return GraphDataset(
        "motifs",
        tuple(graphs),
        2,
        random_split_indices(size),
        source="made by this package with the generators of PyG",
        license="MIT, as this package",
        description="A random tree of 20 nodes with a motif of five; which motif is it?",
        class_names=("five-cycle", "house"),
    )


def _connected(motif: MotifGenerator, count: int, *, label: int) -> list[Data]:
    """The first ``count`` connected graphs that PyG draws."""
    # A node that draws itself gets no edge to the earlier nodes, so a graph with one edge too few
    # is disconnected.
    edges = 2 * (_BASE_NODES - 1 + 1) + int(motif().num_edges)
    graphs: list[Data] = []
    while len(graphs) < count:
        drawn = ExplainerDataset(BAGraph(_BASE_NODES, 1), motif, num_motifs=1, num_graphs=_CHUNK)
        graphs += [
            Data(
                x=torch.full((int(graph.num_nodes), 10), 0.1),
                edge_index=coalesce(graph.edge_index),
                y=torch.tensor([label]),
                truth=graph.node_mask.bool(),
            )
            for graph in drawn
            if graph.num_edges == edges
        ]
    return graphs[:count]


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed the global generators of numpy and torch, and restore them afterwards."""
    numpy_state = np.random.get_state()  # noqa: NPY002
    torch_state = torch.get_rng_state()
    try:
        np.random.seed(seed)  # noqa: NPY002
        torch.default_generator.manual_seed(seed)
        yield
    finally:
        np.random.set_state(numpy_state)  # noqa: NPY002
        torch.set_rng_state(torch_state)
