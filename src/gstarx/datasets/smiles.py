"""User-supplied molecules with the features that a network was trained on."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch_geometric.data import Data

from gstarx._internal.optional import require
from gstarx._internal.quoting import quoted
from gstarx.datasets.molecules import molecule_graph
from gstarx.datasets.mutag import MUTAG_ATOMS
from gstarx.datasets.nitro import FEATURES

_AROMATIC = 7  # column of PyG's atom features


def smiles_graph(smiles: str, dataset: str | None = None, *, bond_features: bool = False) -> Data:
    """A molecule as a graph that a network trained on a dataset can read.

    Parameters
    ----------
    smiles
        The molecule. Hydrogens are not nodes.
    dataset
        Name of the dataset. ``"nitro"`` and ``"mutag"`` know few elements; every other network of
        molecules gets PyG's nine numbers for each atom, see
        :func:`gstarx.datasets.molecules.molecule_graph`.
    bond_features
        Whether to keep PyG's bond features as ``edge_attr``.

    Raises
    ------
    ValueError
        When RDKit cannot read it, or it has an element that the dataset has no feature for.

    Examples
    --------
    >>> smiles_graph("Cc1ccccc1", "nitro").x.shape
    torch.Size([7, 8])
    >>> smiles_graph("CC[Si]", "mutag")
    Traceback (most recent call last):
    ...
    ValueError: 'CC[Si]' has Si, and networks of 'mutag' know C, N, O, F, I, Cl, Br only
    """
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        graph = molecule_graph(smiles.strip(), bond_features=bond_features)
    if graph is None:
        raise ValueError(f"this is no molecule to RDKit: {quoted(smiles)}")
    if dataset == "nitro":
        atoms = _one_hot(graph, FEATURES[:-1], dataset)
        graph.x = torch.cat([atoms, graph.x[:, _AROMATIC : _AROMATIC + 1]], dim=1)
    elif dataset == "mutag":
        graph.x = _one_hot(graph, MUTAG_ATOMS, dataset)
    return graph


def _one_hot(graph: Data, elements: Sequence[str], dataset: str) -> torch.Tensor:
    for atom in graph.atoms:
        if atom not in elements:
            raise ValueError(
                f"{quoted(graph.smiles)} has {atom}, and networks of {dataset!r} know "
                f"{', '.join(elements)} only"
            )
    return torch.eye(len(elements))[[elements.index(atom) for atom in graph.atoms]]
