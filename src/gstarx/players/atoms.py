"""The RDKit molecule of a graph: one atom for each node, in order."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx._internal.imports import require

#: Bond orders that a graph may state, as numbers.
_ORDERS = (1.0, 1.5, 2.0, 3.0)


def is_molecule(data: Any) -> bool:
    """Whether a graph states the atoms of its nodes."""
    return isinstance(data, Data) and any(
        getattr(data, field, None) is not None for field in ("smiles", "atoms")
    )


def as_molecule(molecule: Any) -> Any:
    """An RDKit molecule with an atom for each node, in the order of the nodes.

    Parameters
    ----------
    molecule
        A molecule of RDKit, which is returned as it is; a SMILES; a graph that carries one as
        ``smiles``; or a graph with ``atoms``, the symbol of each node, whose edges are the bonds.
        Such a graph may state its ``bonds``: the order (1,
        1.5 for aromatic, 2, 3) of each column of ``edge_index``. Otherwise bonds are single except
        in nitro groups, which can be recognized.

    Raises
    ------
    ValueError
        When RDKit cannot read it, or the SMILES has more or fewer atoms than the graph has nodes.
    """
    if isinstance(molecule, str):
        return _from_smiles(molecule)
    if hasattr(molecule, "GetAtoms"):
        return molecule
    if not isinstance(molecule, Data):
        raise TypeError(f"molecule must be a SMILES or a PyG Data (got {type(molecule).__name__})")
    if getattr(molecule, "smiles", None) is not None:
        parsed = _from_smiles(molecule.smiles)
        if parsed.GetNumAtoms() != molecule.num_nodes:
            raise ValueError(
                f"smiles must have one atom for each of {molecule.num_nodes} nodes "
                f"(got {molecule.smiles!r} with {parsed.GetNumAtoms()})"
            )
        return parsed
    if getattr(molecule, "atoms", None) is not None:
        return _from_graph(molecule)
    raise ValueError(
        "a molecule must be a SMILES or a graph with smiles or atoms "
        f"(got a graph with {', '.join(molecule.keys()) or 'nothing'})"
    )


def atom_names(molecule: Any) -> list[str]:
    """Symbol and number of every atom, as in ``N7``."""
    return [f"{atom.GetSymbol()}{atom.GetIdx()}" for atom in molecule.GetAtoms()]


def _from_smiles(smiles: object) -> Any:
    chem = require("rdkit.Chem", extra="drawing")
    if not isinstance(smiles, str):
        raise TypeError(f"smiles must be a string (got {smiles!r})")
    with require("rdkit.rdBase", extra="drawing").BlockLogs():
        parsed = chem.MolFromSmiles(smiles)
    if parsed is None:
        raise ValueError(f"smiles must be a molecule that RDKit can read (got {smiles!r})")
    if not parsed.GetNumAtoms():
        raise ValueError("there is nothing to draw: the molecule has no atoms")
    return parsed


def _from_graph(data: Data) -> Any:
    chem = require("rdkit.Chem", extra="drawing")
    symbols = list(data.atoms)
    if len(symbols) != data.num_nodes:
        raise ValueError(
            f"atoms must be a symbol for each of {data.num_nodes} nodes (got {len(symbols)})"
        )
    if not symbols:
        raise ValueError("there is nothing to draw: the graph has no nodes")
    molecule = chem.RWMol()
    for place, symbol in enumerate(symbols):
        try:
            atom = chem.Atom(str(symbol))
        except RuntimeError:
            raise ValueError(
                f"atoms must be symbols of elements (got {symbol!r} at {place})"
            ) from None
        atom.SetNoImplicit(True)  # the graph does not state the number of hydrogens
        molecule.AddAtom(atom)
    orders = _orders(data)
    for (a, b), order in orders.items():
        molecule.AddBond(a, b, _bond_type(chem, order))
        if order == 1.5:
            molecule.GetBondBetweenAtoms(a, b).SetIsAromatic(True)
            molecule.GetAtomWithIdx(a).SetIsAromatic(True)
            molecule.GetAtomWithIdx(b).SetIsAromatic(True)
    _charge_nitro_groups(chem, molecule)
    finished = molecule.GetMol()
    finished.UpdatePropertyCache(strict=False)
    chem.FastFindRings(finished)
    return finished


def _orders(data: Data) -> dict[tuple[int, int], float]:
    """The order of every bond, by its two atoms, the smaller first."""
    ends = data.edge_index.cpu().numpy()
    stated = getattr(data, "bonds", None)
    orders = np.ones(ends.shape[1]) if stated is None else np.asarray(stated, dtype=np.float64)
    if orders.shape != (ends.shape[1],):
        raise ValueError(
            f"bonds must be an order for each of {ends.shape[1]} columns of edge_index "
            f"(got {orders.shape})"
        )
    for order in orders:
        if float(order) not in _ORDERS:
            valid = ", ".join(f"{known:g}" for known in _ORDERS)
            raise ValueError(f"bonds must be among {valid} (got {order:g})")
    pairs: Iterable[tuple[int, int]] = zip(*ends.tolist(), strict=True)
    return {
        (min(a, b), max(a, b)): float(order)
        for (a, b), order in zip(pairs, orders, strict=True)
        if a != b
    }


def _bond_type(chem: Any, order: float) -> Any:
    kinds = chem.BondType
    return {1.0: kinds.SINGLE, 1.5: kinds.AROMATIC, 2.0: kinds.DOUBLE, 3.0: kinds.TRIPLE}[order]


def _charge_nitro_groups(chem: Any, molecule: Any) -> None:
    """Write nitro groups in the usual form: one double bond, and charges."""
    for nitrogen in molecule.GetAtoms():
        if nitrogen.GetSymbol() != "N" or nitrogen.GetDegree() != 3:
            continue
        ends = [a for a in nitrogen.GetNeighbors() if a.GetSymbol() == "O" and a.GetDegree() == 1]
        if len(ends) != 2:
            continue
        for oxygen, kind in zip(ends, (chem.BondType.DOUBLE, chem.BondType.SINGLE), strict=True):
            molecule.GetBondBetweenAtoms(nitrogen.GetIdx(), oxygen.GetIdx()).SetBondType(kind)
        ends[1].SetFormalCharge(-1)
        nitrogen.SetFormalCharge(1)
