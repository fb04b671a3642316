"""A table such as users have: molecules with names and labels, and rows that cannot be read."""

from __future__ import annotations

import csv
import re
from pathlib import Path

from gstarx.datasets import load

#: The page of the documentation that shows a project of one's own.
PAGE = Path(__file__).parent.parent.parent / "docs" / "own_data.md"
#: Rows that cannot be read, by their place in the table.
BAD = {3: ("open ring", "C1CC"), 9: ("valence", "CN(C)(C)C"), 20: ("nothing", "")}


def write_own_table(path: Path) -> None:
    """60 molecules with names, three of them bad, with two classes, a number and two targets."""
    from rdkit import Chem
    from rdkit.Chem import Crippen

    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["name", "smiles", "toxic", "logP", "oxygen", "chlorine"])
        for at, graph in enumerate(load("nitro")[:57]):
            if at in BAD:
                writer.writerow([*BAD[at], 1, 0.5, 0, 1])
            value = Crippen.MolLogP(Chem.MolFromSmiles(graph.smiles))
            chlorine = "" if at % 7 == 0 else int("Cl" in graph.atoms)
            row = [f"molecule {at}", graph.smiles, int(graph.y), round(value, 4)]
            writer.writerow([*row, int("O" in graph.atoms), chlorine])


def write_own_project(path: Path) -> None:
    """The module of the documentation: a model with bonds and one output, and graphs."""
    text = PAGE.read_text(encoding="utf-8")
    (project,) = re.findall(r"^```python\n(# my_project.py\n.*?)^```", text, re.M | re.S)
    path.write_text(project)
