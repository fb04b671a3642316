"""Nitro, the molecules whose class is known by rule: how their file was made.

``python -m reproduction.nitro`` writes the file again, byte for byte.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from importlib.resources import files
from pathlib import Path
from typing import TypeVar

from rdkit import Chem

from gstarx.datasets.shipped import RULE

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


def build(size: int = _SIZE, *, seed: int = _SEED) -> str:
    """The file of molecules: a CSV text with the columns smiles, label and truth.

    ``truth`` lists the atoms of :data:`RULE`, in the order of the SMILES from zero. Classes
    alternate.
    """
    rule = Chem.MolFromSmarts(RULE)
    draws = random.Random(seed)  # its random() is the same in every version of Python
    seen: set[str] = set()
    lines = ["smiles,label,truth"]
    while len(lines) <= size:
        label = len(lines) % 2
        smiles = _draw(draws, nitro=bool(label))
        molecule = Chem.MolFromSmiles(smiles)
        truth = sorted({atom for match in molecule.GetSubstructMatches(rule) for atom in match})
        name = Chem.MolToSmiles(molecule)
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


if __name__ == "__main__":
    target = Path(str(files("gstarx.datasets"))) / "nitro.csv"
    target.write_text(build(), encoding="utf-8", newline="\n")
    print(f"wrote {target}")
