"""User-supplied molecules with the features that a network was trained on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import torch
from torch_geometric.data import Data

from gstarx._internal.optional import require
from gstarx._internal.quoting import quoted
from gstarx.datasets.molecules import graph_or_reason
from gstarx.datasets.mutag import MUTAG_ATOMS
from gstarx.datasets.nitro import FEATURES

_AROMATIC = 7  # column of PyG's atom features


def smiles_graph(
    smiles: str | Any, dataset: str | None = None, *, bond_features: bool = False
) -> Data:
    """A molecule as a graph that a network trained on a dataset can read.

    Parameters
    ----------
    smiles
        The molecule, as SMILES or as a ``Mol`` of RDKit. Hydrogens are not nodes. Nodes are in the
        order of the atoms in the SMILES; for a ``Mol``, node ``i`` is atom ``atom_order[i]``.
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
    order = None
    if not isinstance(smiles, str):
        smiles, order = _written(smiles)
    graph, reason = graph_or_reason(smiles.strip(), bond_features=bond_features)
    if graph is None:
        raise ValueError(f"this is no molecule to RDKit: {quoted(smiles)} ({reason})")
    if order is not None:
        graph.atom_order = torch.tensor(order)
    if dataset == "nitro":
        atoms = _one_hot(graph, FEATURES[:-1], dataset)
        graph.x = torch.cat([atoms, graph.x[:, _AROMATIC : _AROMATIC + 1]], dim=1)
    elif dataset == "mutag":
        graph.x = _one_hot(graph, MUTAG_ATOMS, dataset)
    return graph


def _written(molecule: Any) -> tuple[str, list[int]]:
    """The SMILES of a ``Mol`` without hydrogens, and which of its atoms each atom of it is."""
    chem = require("rdkit.Chem", extra="molecules")
    if not isinstance(molecule, chem.Mol):
        raise TypeError(
            f"a molecule must be a SMILES or a Mol of RDKit (got {type(molecule).__name__})"
        )
    numbered = chem.Mol(molecule)
    for atom in numbered.GetAtoms():
        atom.SetIntProp("_original", atom.GetIdx())
    bare = chem.RemoveHs(numbered)
    smiles = chem.MolToSmiles(bare)
    order = json.loads(bare.GetProp("_smilesAtomOutputOrder").replace(",]", "]"))
    return smiles, [bare.GetAtomWithIdx(at).GetIntProp("_original") for at in order]


def _one_hot(graph: Data, elements: Sequence[str], dataset: str) -> torch.Tensor:
    for atom in graph.atoms:
        if atom not in elements:
            raise ValueError(
                f"{quoted(graph.smiles)} has {atom}, and networks of {dataset!r} know "
                f"{', '.join(elements)} only"
            )
    return torch.eye(len(elements))[[elements.index(atom) for atom in graph.atoms]]
