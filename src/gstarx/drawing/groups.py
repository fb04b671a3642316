"""Scores of nodes summed over named parts of a graph."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from numpy.typing import ArrayLike
from torch_geometric.data import Data

from gstarx.metrics import as_scores
from gstarx.players import as_molecule, groups_of


@dataclass(frozen=True)
class GroupScore:
    """One part of a graph, such as a functional group of a molecule.

    Attributes
    ----------
    name
        What the group is called.
    atoms
        Its atoms, or nodes, ascending.
    score
        The sum of their scores.
    """

    name: str
    atoms: tuple[int, ...]
    score: float


def group_scores(
    scores: ArrayLike, data: Data | str, *, by: str | Mapping[str, str] | None = None
) -> list[GroupScore]:
    """Scores of nodes summed over every named part of a graph, highest first.

    Parameters
    ----------
    scores
        A score per node.
    data
        The graph, or a SMILES.
    by
        What the parts are. ``"functional_groups"``: those that RDKit lists; ``"rings"``: systems of
        rings that share atoms, and ``"brics"``: fragments between the bonds that BRICS breaks, both
        named by their SMILES; ``"words"``; ``"node_types"``: elements, or ``labels``, ``node_type``
        or one-hot rows of ``x``. A dictionary maps names to your own SMARTS patterns. By default
        the functional groups of a molecule, the words of a sentence, else node types.

    Returns
    -------
    list of GroupScore
        An entry for each occurrence. Rings, fragments, words and types do not overlap. Functional
        groups may: an atom counts in each, so that the sums need not add up.

    Examples
    --------
    >>> scores = [0.1, 0.0, 0.0, 0.0, 0.0, 0.2, 0.5, 0.4, 0.3]
    >>> for group in group_scores(scores, "c1ccccc1[N+](=O)[O-]"):
    ...     print(group.name, group.atoms, round(group.score, 3))
    nitro (6, 7, 8) 1.2
    >>> [group.name for group in group_scores(scores, "c1ccccc1[N+](=O)[O-]", by="rings")]
    ['c1ccccc1']
    """
    groups = list(groups_of(data, by))
    count = as_molecule(data).GetNumAtoms() if isinstance(data, str) else int(data.num_nodes or 0)
    values = as_scores(scores, count)
    summed = [GroupScore(name, atoms, float(values[list(atoms)].sum())) for name, atoms in groups]
    return sorted(summed, key=lambda group: -group.score)


def aggregate(
    scores: ArrayLike, smarts: str | Sequence[str] | Mapping[str, str], molecule: Data | str
) -> list[GroupScore]:
    """Scores of atoms, summed over every match of your own SMARTS patterns.

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
        For an invalid SMARTS, a wrong number of scores, or a molecule that cannot be read.

    Examples
    --------
    >>> scores = [0.1, 0.0, 0.0, 0.0, 0.0, 0.2, 0.5, 0.4, 0.3]
    >>> aggregate(scores, {"nitro": "[N+](=O)[O-]", "amine": "[NX3;H2]"}, "c1ccccc1[N+](=O)[O-]")
    [GroupScore(name='nitro', atoms=(6, 7, 8), score=1.2)]
    """
    listed = [smarts] if isinstance(smarts, str) else smarts
    named = listed if isinstance(listed, Mapping) else {pattern: pattern for pattern in listed}
    return group_scores(scores, molecule, by=named)
