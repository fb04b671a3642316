"""Molecules to learn from, made up on the spot: some carry a nitro group."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import torch
from torch_geometric.data import Data

#: Atom behind each node feature.
ATOMS = ("C", "N", "O", "Cl")


@dataclass(frozen=True)
class Molecule:
    """Atoms, the bonds between them, and what part of the molecule each belongs to."""

    atoms: tuple[str, ...]
    parts: tuple[str, ...]
    bonds: tuple[tuple[int, int], ...]

    @property
    def has_nitro(self) -> bool:
        """What the network is to learn."""
        return "nitro" in self.parts

    @property
    def graph(self) -> Data:
        """The molecule as the network sees it: one-hot atoms, bonds both ways."""
        ends = torch.tensor(self.bonds).T
        return Data(
            x=torch.eye(len(ATOMS))[[ATOMS.index(atom) for atom in self.atoms]],
            edge_index=torch.cat([ends, ends.flip(0)], dim=1),
            y=torch.tensor([int(self.has_nitro)]),
        )


class _Draft:
    """A molecule that grows."""

    def __init__(self) -> None:
        self.atoms: list[str] = []
        self.parts: list[str] = []
        self.bonds: list[tuple[int, int]] = []

    def add(self, atom: str, part: str, *bound_to: int) -> int:
        """Add an atom with its bonds; returns its number."""
        self.atoms.append(atom)
        self.parts.append(part)
        self.bonds += [(other, len(self.atoms) - 1) for other in bound_to]
        return len(self.atoms) - 1

    def add_ring(self) -> list[int]:
        """Add six carbons in a ring; returns their numbers."""
        ring = [self.add("C", "ring")]
        for _ in range(5):
            ring.append(self.add("C", "ring", ring[-1]))
        self.bonds.append((ring[0], ring[-1]))
        return ring


def _add_the_same_atoms(draft: _Draft, places: Iterator[int], *, kind: int) -> None:
    """A nitrogen and two oxygens that are no nitro group."""
    if kind < 2:
        nitrogen = draft.add("N", "amine", next(places))
        draft.add("O", "amine" if kind else "hydroxyl", nitrogen if kind else next(places))
        draft.add("O", "hydroxyl", next(places))
    else:
        draft.add("N", "amine", next(places))
        carbon = draft.add("C", "carboxyl", next(places))
        draft.add("O", "carboxyl", carbon)
        draft.add("O", "carboxyl", carbon)


def draw_molecule(rng: np.random.Generator, *, nitro: bool, rings: int | None = None) -> Molecule:
    """One molecule: carbon rings and chains, with a nitro group or with its atoms bound otherwise.

    A molecule without the group has a nitrogen and two oxygens all the same: apart, or one oxygen
    at the nitrogen, or both at a carbon. Counting atoms does not tell the classes apart, nor does
    looking for one bond.

    Examples
    --------
    >>> molecule = draw_molecule(np.random.default_rng(0), nitro=True, rings=1)
    >>> [atom for atom, part in zip(molecule.atoms, molecule.parts) if part == "nitro"]
    ['N', 'O', 'O']
    """
    draft = _Draft()
    free = draft.add_ring()
    for _ in range((int(rng.integers(1, 3)) if rings is None else rings) - 1):
        ring = draft.add_ring()
        draft.bonds.append((free.pop(int(rng.integers(len(free)))), ring.pop(0)))
        free += ring
    places = iter(rng.permutation(free).tolist())
    if nitro:
        nitrogen = draft.add("N", "nitro", next(places))
        draft.add("O", "nitro", nitrogen)
        draft.add("O", "nitro", nitrogen)
    else:
        _add_the_same_atoms(draft, places, kind=int(rng.integers(3)))
    for _ in range(int(rng.integers(3))):
        atom, part = (("N", "amine"), ("O", "hydroxyl"), ("Cl", "chloride"))[int(rng.integers(3))]
        # an atom of a ring, or at the end of a short chain
        bound_to = next(places)
        for _ in range(int(rng.integers(2))):
            bound_to = draft.add("C", "chain", bound_to)
        draft.add(atom, part, bound_to)
    return Molecule(tuple(draft.atoms), tuple(draft.parts), tuple(draft.bonds))


def draw_molecules(count: int, *, seed: int) -> list[Molecule]:
    """As many molecules with the group as without, in turn.

    >>> [molecule.has_nitro for molecule in draw_molecules(4, seed=0)]
    [True, False, True, False]
    """
    rng = np.random.default_rng(seed)
    return [draw_molecule(rng, nitro=i % 2 == 0) for i in range(count)]
