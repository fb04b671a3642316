"""Attribution tasks from SMILES: rules of substructures give labels and all alternative truths."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import combinations, product
from math import prod
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from gstarx._internal.imports import require
from gstarx._internal.messages import quoted
from gstarx._internal.molecules import rdkit_messages, read_molecule
from gstarx.datasets import GraphDataset, UnreadableRow, split_molecules
from gstarx_bench.datasets.attribution import BONDS, ELEMENTS, TruthData

#: A SMARTS, or several of which one is enough.
Fragment = str | Sequence[str]


def attribution_task(
    smiles: Iterable[str],
    rule: Fragment | Sequence[Fragment],
    *,
    name: str = "attribution",
    split: str = "random",
    split_indices: Mapping[str, Sequence[int]] | None = None,
    max_alternatives: int = 4095,
) -> GraphDataset:
    """Molecules whose class follows from substructures, with all atoms that may be the reason.

    A fragment that occurs k times explains the class in ``2**k - 1`` ways: every non-empty set of
    its occurrences is a full reason. An alternative truth is the union of one way for each
    fragment. Subsets come by size, so the last alternative is the union of all occurrences. A
    molecule of class 0 has one alternative, without atoms, even if some fragments occur in it.

    Parameters
    ----------
    smiles
        The molecules.
    rule
        A SMARTS pattern, or several that must all occur (AND). Instead of a pattern, a list of
        patterns of which one is enough (OR).
    name
        Name of the dataset.
    split
        ``"random"`` or ``"scaffold"``.
    split_indices
        Positions of the train, val and test graphs instead, among those that can be read.
    max_alternatives
        A molecule with more alternatives is left out.

    Returns
    -------
    GraphDataset
        Graphs with one-hot elements as ``x``, one-hot bond types as ``edge_attr``, ``truths``, and
        ``truth``, the last of them. What is left out is in ``unreadable``, with the reason.

    Examples
    --------
    >>> task = attribution_task(["FCC(C)=O", "FCF", "CCF.CC=O"], ["[FX1]", "[CX3]=O"])
    >>> task.y.tolist(), task[0].truths.tolist()
    ([1, 0, 1], [[True, False, True, False, True]])
    >>> either = attribution_task(["FCC(C)=O", "FCF"], [["[FX1]", "[CX3]=O"]])
    >>> either[0].truths.int().tolist()
    [[1, 0, 0, 0, 0], [0, 0, 1, 0, 1], [1, 0, 1, 0, 1]]
    """
    patterns = read_rule(rule)
    return _task(
        smiles,
        lambda text: labeled_molecule(text, patterns, max_alternatives),
        name,
        split,
        split_indices,
        source="labeled by this package",
        description=f"Molecules; does {describe(rule)} occur?",
        class_names=("no", "yes"),
    )


def contribution_task(
    smiles: Iterable[str],
    *,
    name: str = "crippen",
    split: str = "random",
    split_indices: Mapping[str, Sequence[int]] | None = None,
) -> GraphDataset:
    """Molecules with hydrogens and Crippen's logP, which is a sum of contributions of atoms.

    ``truths`` is one row, the contribution of every atom. The arguments are those of
    :func:`attribution_task`.

    Examples
    --------
    >>> graph = contribution_task(["C"])[0]
    >>> graph.num_nodes, round(float(graph.y), 4), round(float(graph.truths.sum()), 4)
    (5, 0.6361, 0.6361)
    """
    return _task(
        smiles,
        _contributions,
        name,
        split,
        split_indices,
        source="computed by RDKit",
        description="Molecules with hydrogens; what is Crippen's logP?",
        task="regression",
        target_names=("logP",),
    )


def _contributions(smiles: str) -> tuple[TruthData | None, str]:
    chem = require("rdkit.Chem", extra="molecules")
    crippen = require("rdkit.Chem.rdMolDescriptors", extra="molecules")
    molecule, reason = read_molecule(smiles)
    if molecule is None:
        return None, reason
    molecule = chem.AddHs(molecule)
    parts = [logp for logp, _ in crippen._CalcCrippenContribs(molecule)]
    graph = _atom_graph(molecule, smiles)
    graph.truths = torch.tensor([parts], dtype=torch.float)
    graph.y = torch.tensor([[sum(parts)]], dtype=torch.float)
    return graph, ""


def _task(
    smiles: Iterable[str],
    make: Callable[[str], tuple[TruthData | None, str]],
    name: str,
    split: str,
    split_indices: Mapping[str, Sequence[int]] | None,
    **about: Any,
) -> GraphDataset:
    """The dataset of the graphs that SMILES give; others are unreadable."""
    graphs, unreadable = [], []
    for line, text in enumerate(smiles, start=1):
        graph, reason = make(text)
        if graph is None:
            unreadable.append(UnreadableRow(line, text, reason))
        else:
            graphs.append(graph)
    if not graphs:
        why = f": {unreadable[0].reason}" if unreadable else ""
        raise ValueError(f"none of {len(unreadable)} SMILES gives a graph{why}")
    return GraphDataset(
        name,
        graphs,
        2 if "class_names" in about else 0,
        split_indices or split_molecules([graph.smiles for graph in graphs], split),
        unreadable=tuple(unreadable),
        **about,
    )


def _atom_graph(molecule: Any, smiles: str) -> TruthData:
    """A molecule of RDKit as a graph: one-hot elements and bond types, each bond both ways."""
    symbols = [atom.GetSymbol() for atom in molecule.GetAtoms()]
    kinds = [ELEMENTS.index(s) if s in ELEMENTS else len(ELEMENTS) - 1 for s in symbols]
    ends, bonds = [], []
    for bond in molecule.GetBonds():
        a, b = bond.GetBeginAtomIdx(), bond.GetEndAtomIdx()
        kind = str(bond.GetBondType()).lower()
        ends += [(a, b), (b, a)]
        bonds += 2 * [BONDS.index(kind) if kind in BONDS else len(BONDS) - 1]
    return TruthData(
        x=torch.eye(len(ELEMENTS))[kinds],
        edge_index=torch.tensor(ends, dtype=torch.long).reshape(-1, 2).t().contiguous(),
        edge_attr=torch.eye(len(BONDS))[bonds],
        smiles=smiles,
    )


def alternative_truths(
    occurrences: Sequence[Sequence[Sequence[int]]], num_nodes: int
) -> NDArray[np.bool_]:
    """All full reasons as masks, from the places where each fragment occurs.

    >>> alternative_truths([[(0,), (2,)], [(1, 3)]], 4).astype(int).tolist()
    [[1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]]
    """
    if not all(occurrences):
        return np.zeros((1, num_nodes), dtype=bool)
    ways = []
    for places in occurrences:
        masks = np.zeros((len(places), num_nodes), dtype=bool)
        for row, atoms in enumerate(places):
            masks[row, list(atoms)] = True
        sizes = range(1, len(places) + 1)
        subsets = (
            list(picked) for size in sizes for picked in combinations(range(len(places)), size)
        )
        ways.append([masks[subset].any(axis=0) for subset in subsets])
    return np.array([np.any(chosen, axis=0) for chosen in product(*ways)])


def describe(rule: Fragment | Sequence[Fragment]) -> str:
    """A rule in words.

    >>> describe(["F", ["C=O", "N"]])
    'F and (C=O or N)'
    """
    if isinstance(rule, str):
        return rule
    parts = [one if isinstance(one, str) else f"({' or '.join(one)})" for one in rule]
    return " and ".join(parts)


def read_rule(rule: Fragment | Sequence[Fragment]) -> list[list[Any]]:
    """The rule as patterns of RDKit: all of the outer list, one of each inner list."""
    fragments = [rule] if isinstance(rule, str) else list(rule)
    alternatives = [[one] if isinstance(one, str) else list(one) for one in fragments]
    if not alternatives or not all(alternatives):
        raise ValueError(f"a rule must have at least one SMARTS in each part (got {rule!r})")
    return [[_pattern(smarts) for smarts in one] for one in alternatives]


def _pattern(smarts: Any) -> Any:
    chem = require("rdkit.Chem", extra="molecules")
    if not isinstance(smarts, str):
        raise TypeError(f"a SMARTS must be a string (got {type(smarts).__name__})")
    with rdkit_messages() as reason:
        pattern = chem.MolFromSmarts(smarts)
    if pattern is None or not pattern.GetNumAtoms():
        why = reason() or "no atoms"
        raise ValueError(f"RDKit cannot read the SMARTS {quoted(smarts)}: {why}")
    return pattern


def labeled_molecule(
    smiles: str, patterns: Sequence[Sequence[Any]], most: int
) -> tuple[TruthData | None, str]:
    """A molecule with its label and truths, or ``None`` and why not."""
    molecule, reason = read_molecule(smiles)
    if molecule is None:
        return None, reason
    places = occurrences(molecule, patterns)
    count = prod(2 ** len(one) - 1 for one in places)
    if count > most:
        return None, f"a molecule may have {most:,} alternative truths (got {count:,})"
    graph = _atom_graph(molecule, smiles)
    graph.truths = torch.from_numpy(alternative_truths(places, molecule.GetNumAtoms()))
    graph.truth = graph.truths[-1].clone()
    graph.y = torch.tensor([int(count > 0)])
    return graph, ""


def occurrences(molecule: Any, patterns: Sequence[Sequence[Any]]) -> list[list[tuple[int, ...]]]:
    """Where each fragment of a rule occurs in a molecule: the atoms of every match."""
    return [
        [match for pattern in one for match in molecule.GetSubstructMatches(pattern)]
        for one in patterns
    ]
