"""Do summaries find what is known: a network that learns Crippen's logP, against his contributions.

``python -m benchmarks.logp_summary [table.csv]`` trains a network on the logP that RDKit computes
for the molecules of a table (by default those of the shipped ``nitro`` dataset), explains test
molecules, and compares the scores of functional groups, elements and atoms with Crippen's
contributions.
"""

from __future__ import annotations

import csv
import sys
import tempfile
from pathlib import Path

import numpy as np
from rdkit import Chem
from rdkit.Chem import Crippen, rdMolDescriptors

from gstarx.datasets import load
from gstarx.explainers import create
from gstarx.models import GIN
from gstarx_bench.datasets import from_table
from gstarx_bench.models import TrainingSettings, train
from gstarx_bench.summary import summarize


def table_of(path: str | None, folder: Path) -> Path:
    """A table of molecules and their logP."""
    if path is None:
        smiles = [graph.smiles for graph in load("nitro")]
    else:
        smiles = [graph.smiles for graph in from_table(path, label=None)]
    made = folder / "logp.csv"
    with made.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["smiles", "logP"])
        for text in smiles:
            writer.writerow([text, Crippen.MolLogP(Chem.MolFromSmiles(text))])
    return made


def contributions(smiles: str) -> np.ndarray:
    """Crippen's contribution of every heavy atom, its hydrogens included."""
    molecule = Chem.AddHs(Chem.MolFromSmiles(smiles))
    of_atoms = np.array([pair[0] for pair in rdMolDescriptors._CalcCrippenContribs(molecule)])
    heavy = Chem.MolFromSmiles(smiles).GetNumAtoms()
    total = of_atoms[:heavy].copy()
    for atom in list(molecule.GetAtoms())[heavy:]:
        total[atom.GetNeighbors()[0].GetIdx()] += of_atoms[atom.GetIdx()]
    return total


def main() -> None:
    """Print how well scores agree with Crippen's contributions."""
    with tempfile.TemporaryDirectory() as folder:
        path = table_of(sys.argv[1] if len(sys.argv) > 1 else None, Path(folder))
        dataset = from_table(path, label="logP", task="regression")
    settings = TrainingSettings(epochs=150, learning_rate=3e-3, patience=30)
    # logP is a sum over atoms, and so is this readout
    network = GIN(9, 64, 1, readout="sum")
    result = train(network, dataset, settings=settings, progress=True)
    print("R2 by split:", {part: round(own["r2"], 3) for part, own in result.metrics.items()})
    graphs = dataset.split("test")[:100]
    for method in ("gstarx", "hn", "shapley", "banzhaf"):
        explainer = create(method, budget=3_000)
        explanations = [
            explainer.explain(result.model, graph, seed=0, task="regression") for graph in graphs
        ]
        truth = [contributions(graph.smiles) for graph in graphs]
        of_atoms = [
            np.corrcoef(own.node_scores, true)[0, 1]
            for own, true in zip(explanations, truth, strict=True)
            if np.std(true) > 0
        ]
        groups = []
        for by in ("functional_groups", "node_types"):
            options = {"by": by, "mode": "regression"}
            rows = {row.name: row for row in summarize(graphs, explanations, **options)}
            groups += [
                (by, row.name, rows[row.name].mean, row.mean)
                for row in summarize(graphs, truth, **options)
                if row.graphs > 5
            ]
        ours, theirs = (np.array([group[column] for group in groups]) for column in (2, 3))
        signs = np.sign(ours) == np.sign(theirs)
        print(
            f"{method}: correlation with the contributions of atoms, mean over molecules "
            f"{np.mean(of_atoms):.3f}; of {len(groups)} groups and elements "
            f"{np.corrcoef(ours, theirs)[0, 1]:.3f}, {np.mean(signs):.0%} of their signs agree"
        )
        for by, name, mine, crippen in groups:
            print(f"    {by:18} {name:24} {mine:+.3f}   Crippen {crippen:+.3f}")


if __name__ == "__main__":
    main()
