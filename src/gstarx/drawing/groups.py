"""Scores of functional groups, for those who think in groups rather than atoms."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike
from torch_geometric.data import Data

from gstarx._internal.optional import require
from gstarx.drawing.atoms import as_molecule
from gstarx.metrics import as_scores


@dataclass(frozen=True)
class GroupScore:
    """One functional group of a molecule.

    Attributes
    ----------
    name
        What the group is called.
    atoms
        Its atoms, ascending.
    score
        The sum of their scores.
    """

    name: str
    atoms: tuple[int, ...]
    score: float


def aggregate(
    scores: ArrayLike, smarts: str | Sequence[str] | Mapping[str, str], molecule: Data | str
) -> list[GroupScore]:
    """Scores of atoms summed over every functional group that is found.

    Parameters
    ----------
    scores
        A score per atom.
    smarts
        The groups: one SMARTS, several, or a dictionary from names to SMARTS. Without names, a
        group is called by its SMARTS.
    molecule
        A SMILES, or a graph with ``smiles`` or ``atoms``; see :func:`draw_molecule`. A group of
        aromatic atoms is only found where the molecule has a SMILES or states its ``bonds``.

    Returns
    -------
    list of GroupScore
        An entry for each match, highest score first. Matches of one SMARTS over the same atoms
        count once. Where matches overlap, an atom counts in each of them: the entries of a list
        need not sum to the sum of the scores.

    Raises
    ------
    ValueError
        For what is no SMARTS, a wrong number of scores, or a molecule that cannot be read.

    Examples
    --------
    >>> scores = [0.1, 0.0, 0.0, 0.0, 0.0, 0.2, 0.5, 0.4, 0.3]
    >>> aggregate(scores, {"nitro": "[N+](=O)[O-]", "amine": "[NX3;H2]"}, "c1ccccc1[N+](=O)[O-]")
    [GroupScore(name='nitro', atoms=(6, 7, 8), score=1.2)]
    """
    chem = require("rdkit.Chem", extra="drawing")
    found = as_molecule(molecule)
    values = as_scores(scores, found.GetNumAtoms())
    groups: list[GroupScore] = []
    for name, pattern in _named(smarts).items():
        with require("rdkit.rdBase", extra="drawing").BlockLogs():
            query = chem.MolFromSmarts(str(pattern))
        if query is None or not query.GetNumAtoms():
            raise ValueError(f"smarts must be patterns that RDKit can read (got {pattern!r})")
        # RDKit stops at a thousand matches unless told
        matches = found.GetSubstructMatches(query, uniquify=True, maxMatches=1 << 20)
        groups += [
            GroupScore(name, atoms, float(values[list(atoms)].sum()))
            for atoms in sorted({tuple(sorted(match)) for match in matches})
        ]
    return sorted(groups, key=lambda group: -group.score)


def _named(smarts: str | Sequence[str] | Mapping[str, str]) -> dict[str, str]:
    if isinstance(smarts, str):
        return {smarts: smarts}
    if isinstance(smarts, Mapping):
        return dict(smarts)
    return {pattern: pattern for pattern in smarts}
