"""Nitro: molecules whose class is known by rule, shipped with the package.

``python -m gstarx.datasets.nitro`` writes the file again, byte for byte; only that needs RDKit.
"""

from __future__ import annotations

import csv
import io
import random
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

import torch
from torch_geometric.data import Data

from gstarx._internal.optional import require
from gstarx.datasets.dataset import GraphDataset, split_molecules
from gstarx.datasets.molecules import NITRO_FEATURES

#: The group that defines class 1, and whose atoms are the ground truth.
RULE = "c[N+](=O)[O-]"

_FILE = "nitro.csv"
_SIZE = 500
_SEED = 2
_ATOMS = range(8, 31)

# Rings and chains as SMILES; substituents go to {a}, on an aromatic atom, or {s}, on another.
_AROMATIC = (
    "c1{a}c{a}c{a}c{a}c{a}c1{a}",
    "c1{a}c{a}c{a}c2c{a}c{a}c{a}c{a}c2c1{a}",
    "c1{a}c{a}c{a}c(-c2c{a}c{a}c{a}c{a}c2)c{a}c1",
    "n1c{a}c{a}c{a}c{a}c1",
    "s1c{a}c{a}c{a}c1{a}",
    "o1c{a}c{a}c{a}c1{a}",
    "C{s}Cc1c{a}c{a}c{a}c{a}c1",
    "C{s}C{s}Cc1c{a}c{a}c{a}c{a}c1",
    "C{s}COc1c{a}c{a}c{a}c{a}c1",
    "C{s}(c1c{a}c{a}c{a}c{a}c1)c1c{a}c{a}c{a}c{a}c1",
    "C1{s}CC{s}CCC1c1c{a}c{a}c{a}c{a}c1",
    "C1{s}CC{s}CN1Cc1c{a}c{a}c{a}c{a}c1",
)
_ALIPHATIC = ("C1{s}CC{s}CC{s}C1", "C{s}CC{s}CCC{s}C", "C1{s}CC{s}CC1CCC{s}")
_NITRO = "[N+](=O)[O-]"
_PLAIN = ("C", "CC", "O", "OC", "N", "N(C)C", "F", "Cl", "Br", "SC", "C(F)(F)F")
# The same atoms bonded differently: nitro groups that are not on an aromatic carbon, ...
_NITRO_LIKE = ("C[N+](=O)[O-]", "CC[N+](=O)[O-]", "O[N+](=O)[O-]", "N[N+](=O)[O-]")
# ... and other groups of nitrogen and oxygen.
_OTHER = ("N=O", "NO", "C=NO", "C#N", "C(=O)O", "C(=O)[O-]", "C(N)=O", "S(N)(=O)=O")

_Item = TypeVar("_Item")


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
    text = files("gstarx.datasets").joinpath(_FILE).read_text(encoding="utf-8")
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


def build(size: int = _SIZE, *, seed: int = _SEED) -> str:
    """The file of molecules: a CSV text with the columns smiles, label and truth.

    ``truth`` lists the atoms of :data:`RULE`, in the order of the SMILES from zero. Classes
    alternate. Needs RDKit.
    """
    chem = require("rdkit.Chem", extra="molecules")
    rule = chem.MolFromSmarts(RULE)
    draws = random.Random(seed)  # its random() is the same in every version of Python
    seen: set[str] = set()
    lines = ["smiles,label,truth"]
    while len(lines) <= size:
        label = len(lines) % 2
        smiles = _draw(draws, nitro=bool(label))
        molecule = chem.MolFromSmiles(smiles)
        truth = sorted({atom for match in molecule.GetSubstructMatches(rule) for atom in match})
        name = chem.MolToSmiles(molecule)
        if molecule.GetNumAtoms() not in _ATOMS or bool(truth) != bool(label) or name in seen:
            continue
        seen.add(name)
        lines.append(f"{smiles},{label},{' '.join(map(str, truth))}")
    return "\n".join(lines) + "\n"


def _draw(draws: random.Random, *, nitro: bool) -> str:
    """A molecule with an aromatic nitro group, or one without it but with a similar group."""
    scaffold = _pick(draws, _AROMATIC if nitro or draws.random() < 0.85 else _ALIPHATIC)
    slots = re.findall(r"\{[as]\}", scaffold)
    groups = [""] * len(slots)
    if nitro:
        aromatic = [i for i, slot in enumerate(slots) if slot == "{a}"]
        groups[_pick(draws, aromatic)] = _NITRO
    else:
        place = _pick(draws, range(len(slots)))
        kind = _NITRO_LIKE if draws.random() < 0.6 else _OTHER
        onto_chain = slots[place] == "{s}" and draws.random() < 0.5
        groups[place] = _NITRO if onto_chain else _pick(draws, kind)
    for _ in range(int(4 * draws.random())):
        place = _pick(draws, range(len(slots)))
        if not groups[place]:
            more = (_PLAIN, _PLAIN, _OTHER, _NITRO_LIKE)
            groups[place] = _pick(draws, _pick(draws, more))
    parts = re.split(r"\{[as]\}", scaffold)
    filled = [f"({group})" if group else "" for group in groups]
    return "".join(part + group for part, group in zip(parts, [*filled, ""], strict=True))


def _pick(draws: random.Random, items: Sequence[_Item]) -> _Item:
    return items[int(len(items) * draws.random())]


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


if __name__ == "__main__":
    target = Path(__file__).with_name(_FILE)
    target.write_text(build(), encoding="utf-8", newline="\n")
    print(f"wrote {target}")
