"""Datasets that come with the package, with exact ground truth: motifs in trees, and nitro groups.

``reproduction/nitro.py`` writes the file of molecules again, byte for byte.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files
from pathlib import Path

import numpy as np
import torch
from torch_geometric.data import Data
from torch_geometric.datasets import ExplainerDataset
from torch_geometric.datasets.graph_generator import BAGraph
from torch_geometric.datasets.motif_generator import CycleMotif, HouseMotif, MotifGenerator
from torch_geometric.utils import coalesce

from gstarx.datasets.dataset import GraphDataset, random_split_indices, split_molecules
from gstarx.datasets.molecules import NITRO_FEATURES

#: The group that defines class 1 of nitro, and whose atoms are the ground truth.
RULE = "c[N+](=O)[O-]"

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


def load_nitro(root: Path | None = None, *, split: str = "random") -> GraphDataset:
    """500 molecules of 8 to 28 atoms, class 1 if a nitro group sits on an aromatic carbon.

    Molecules of class 0 have the same atoms bonded differently: nitro groups on chains, nitrates,
    nitramines, nitroso groups, oximes, nitriles, carboxyl groups, amides. So do molecules of
    class 1, in addition to their nitro group. ``truth`` marks the atoms of aromatic nitro groups
    with the carbon they sit on; in class 0 it is empty. Features are the one-hot element and
    whether the atom is aromatic; each graph has its ``smiles`` and ``atoms``.

    Parameters
    ----------
    root
        Not used: the file comes with the package.
    split
        ``"random"`` as in the paper, or ``"scaffold"``, which needs RDKit.

    Examples
    --------
    >>> graph = load_nitro()[0]
    >>> graph.smiles, int(graph.y)
    ('C1CCCN1Cc1cccc([N+](=O)[O-])c1', 1)
    >>> [graph.atoms[i] for i in graph.truth.nonzero().flatten()]
    ['C', 'N', 'O', 'O']
    """
    text = files("gstarx.datasets").joinpath("nitro.csv").read_text(encoding="utf-8")
    rows = list(csv.DictReader(io.StringIO(text)))
    graphs = [_graph(row["smiles"], int(row["label"]), row["truth"]) for row in rows]
    return GraphDataset(
        "nitro",
        tuple(graphs),
        2,
        split_molecules([graph.smiles for graph in graphs], split),
        source="made by this package, labeled by RDKit",
        license="MIT, as this package",
        description="Small molecules; is there a nitro group on an aromatic carbon?",
        class_names=("no aromatic nitro group", "aromatic nitro group"),
    )


_TOKEN = re.compile(
    r"\[(?P<charged>[A-Z][a-z]?)[+-]\]|(?P<atom>Cl|Br|[CNOFS]|[cnos])|(?P<ring>\d)|(?P<other>[()=#-])"
)


def _read_smiles(smiles: str) -> tuple[list[str], list[tuple[int, int]]]:
    """Atoms, aromatic ones in lowercase, and bonds of a SMILES that :func:`build` wrote."""
    atoms: list[str] = []
    bonds: list[tuple[int, int]] = []
    previous, branches, rings = -1, list[int](), dict[str, int]()
    for token in _TOKEN.finditer(smiles):
        if atom := token["charged"] or token["atom"]:
            if atoms:
                bonds.append((previous, len(atoms)))
            previous = len(atoms)
            atoms.append(atom)
        elif ring := token["ring"]:
            if ring in rings:
                bonds.append((rings.pop(ring), previous))
            else:
                rings[ring] = previous
        elif token["other"] == "(":
            branches.append(previous)
        elif token["other"] == ")":
            previous = branches.pop()
    return atoms, bonds


def _graph(smiles: str, label: int, truth: str) -> Data:
    atoms, bonds = _read_smiles(smiles)
    x = torch.zeros(len(atoms), len(NITRO_FEATURES))
    for number, atom in enumerate(atoms):
        x[number, NITRO_FEATURES.index(atom.capitalize())] = 1
        x[number, -1] = atom.islower()
    marked = torch.zeros(len(atoms), dtype=torch.bool)
    marked[[int(number) for number in truth.split()]] = True
    ends = sorted([*bonds, *((b, a) for a, b in bonds)])
    return Data(
        x=x,
        edge_index=torch.tensor(ends).T.contiguous(),
        y=torch.tensor([label]),
        smiles=smiles,
        atoms=[atom.capitalize() for atom in atoms],
        truth=marked,
    )
