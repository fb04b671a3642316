"""Molecules as graphs: atoms are nodes, bonds are edges."""

from __future__ import annotations

import json
from typing import Any

import torch
from torch_geometric.data import Data

from gstarx._internal.imports import require
from gstarx._internal.messages import quoted
from gstarx._internal.molecules import rdkit_messages, read_molecule
from gstarx.registry import FEATURIZERS, MOLECULE_READERS, resolve

#: What a network can read of a molecule: PyG's nine numbers for each atom, these and PyG's numbers
#: for each bond, the few elements of a dataset, or what another package computes.
MOLECULE_FEATURES = (*MOLECULE_READERS, *FEATURIZERS)

#: The atom that each of the seven node features of MUTAG stands for.
MUTAG_ATOMS = ("C", "N", "O", "F", "I", "Cl", "Br")
#: The node features of nitro: the element, and whether the atom is aromatic.
NITRO_FEATURES = ("C", "N", "O", "F", "S", "Cl", "Br", "aromatic")

_AROMATIC = 7  # column of PyG's atom features


def graph_or_reason(
    smiles: str, features: str = "molecule", *, bond_features: bool = False
) -> tuple[Data | None, str]:
    """A molecule with the features that a network reads, or ``None`` and why not.

    Parameters
    ----------
    smiles
        The molecule.
    features
        One of :data:`MOLECULE_FEATURES`.
    bond_features
        Keep PyG's bond features with any of them.
    """
    chem = require("rdkit.Chem", extra="molecules")
    from torch_geometric.utils import from_rdmol

    molecule, reason = read_molecule(smiles)
    if molecule is None:
        return None, reason
    if features in FEATURIZERS:
        kind = features.partition("-")[2] or "v2"
        return resolve(FEATURIZERS[features])(smiles, features=kind), ""
    try:
        with rdkit_messages():  # it prints what it thinks of hydrogens, salts and more
            parsed = from_rdmol(molecule)
    except ValueError as error:
        return None, f"an atom or bond that PyG has no features for ({error})"
    symbol = chem.GetPeriodicTable().GetElementSymbol
    atoms = [symbol(number) for number in parsed.x[:, 0].tolist()]
    x = parsed.x.float()
    if features in ("nitro", "mutag"):
        elements = MUTAG_ATOMS if features == "mutag" else NITRO_FEATURES[:-1]
        unknown = next((atom for atom in atoms if atom not in elements), None)
        if unknown is not None:
            return None, f"networks of {features!r} know {', '.join(elements)} only (got {unknown})"
        one_hot = torch.eye(len(elements))[[elements.index(atom) for atom in atoms]]
        aromatic = x[:, _AROMATIC : _AROMATIC + 1]
        x = one_hot if features == "mutag" else torch.cat([one_hot, aromatic], dim=1)
    graph = Data(x=x, edge_index=parsed.edge_index, smiles=smiles, atoms=atoms)
    if bond_features or features == "molecule+bonds":
        graph.edge_attr = parsed.edge_attr.float()
    return graph, ""


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
        molecules gets PyG's nine numbers for each atom: atomic number, chirality, degree,
        charge + 5, hydrogens, radical electrons, hybridization, aromatic, in a ring.
    bond_features
        Whether to keep PyG's bond features as ``edge_attr``.

    Returns
    -------
    Data
        Edges run both ways, ordered by source and target. ``atoms`` are the symbols.

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
    ValueError: networks of 'mutag' know C, N, O, F, I, Cl, Br only (got Si): 'CC[Si]'
    """
    order = None
    if not isinstance(smiles, str):
        smiles, order = _written(smiles)
    features = dataset if dataset in MOLECULE_FEATURES else "molecule"
    graph, reason = graph_or_reason(smiles.strip(), features, bond_features=bond_features)
    if graph is None:
        raise ValueError(f"{reason}: {quoted(smiles)}")
    if order is not None:
        graph.atom_order = torch.tensor(order)
    return graph


def largest_part(smiles: str) -> str:
    """The part of a molecule with the most heavy atoms, as SMILES; what cannot be read stays.

    >>> largest_part("CC(=O)[O-].[Na+]"), largest_part("CCO")
    ('CC(=O)[O-]', 'CCO')
    """
    molecule, _ = read_molecule(smiles) if "." in smiles else (None, "")
    if molecule is None:
        return smiles
    chem = require("rdkit.Chem", extra="molecules")
    parts = chem.GetMolFrags(molecule, asMols=True)
    best = max(parts, key=lambda part: (part.GetNumHeavyAtoms(), chem.MolToSmiles(part)))
    return str(chem.MolToSmiles(best))


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
