"""How graphs are split for training, validation and test."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from gstarx._internal.optional import require

_SEED = 2


def random_split_indices(count: int) -> dict[str, list[int]]:
    """The paper's random split: 80 % train, 10 % val, the rest test, by a generator seeded 2.

    >>> [len(part) for part in random_split_indices(188).values()]
    [150, 18, 20]
    """
    train, val = int(0.8 * count), int(0.1 * count)
    # what torch's random_split does, which warns of empty parts
    order = torch.randperm(count, generator=torch.Generator().manual_seed(_SEED)).tolist()
    ends = {"train": (0, train), "val": (train, train + val), "test": (train + val, count)}
    return {name: order[start:end] for name, (start, end) in ends.items()}


def scaffold_split_indices(smiles: Sequence[str]) -> dict[str, list[int]]:
    """Split molecules so that no Bemis–Murcko scaffold is on two sides.

    Molecules of one scaffold stay together; those without rings share the empty scaffold. Groups
    are assigned from the largest to the smallest, ties by their first molecule: to train while it
    holds at most 80 % of all molecules, then to val up to 10 %, the rest to test. Chirality is
    ignored. Nothing is random; the order of molecules matters only between groups of equal size.

    Examples
    --------
    >>> rings = ["c1ccccc1C", "c1ccccc1N", "c1ccccc1O", "c1ccccc1Cl", "C1CC1", "c1ccncc1"]
    >>> scaffold_split_indices([*rings[:4], *rings])
    {'train': [0, 1, 2, 3, 4, 5, 6, 7], 'val': [8], 'test': [9]}

    Notes
    -----
    Needs RDKit: ``pip install 'gstarx[molecules]'``.
    """
    murcko = require("rdkit.Chem.Scaffolds.MurckoScaffold", extra="molecules")
    groups: dict[str, list[int]] = {}
    for number, molecule in enumerate(smiles):
        groups.setdefault(murcko.MurckoScaffoldSmiles(molecule), []).append(number)
    count = len(smiles)
    split: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for group in sorted(groups.values(), key=lambda group: (-len(group), group[0])):
        if len(split["train"]) + len(group) <= int(0.8 * count):
            split["train"] += group
        elif len(split["val"]) + len(group) <= int(0.1 * count):
            split["val"] += group
        else:
            split["test"] += group
    return {name: sorted(part) for name, part in split.items()}


def split_molecules(smiles: Sequence[str], split: str) -> dict[str, list[int]]:
    """The split of molecules by its name: ``"random"`` (the paper's) or ``"scaffold"``."""
    if split == "random":
        return random_split_indices(len(smiles))
    if split == "scaffold":
        return scaffold_split_indices(smiles)
    raise ValueError(f"split must be one of 'random', 'scaffold' (got {split!r})")
