"""Molecules: which functional group a network relies on, from a SMILES to a picture.

The network ships with the package and recognizes molecules with an aromatic nitro group. The
molecule is 4-nitroacetanilide, explained by default, and by the paper's value (HN) with the uniform
baseline, both exactly. The script sums the scores of atoms over functional groups, and draws both
explanations to ``molecule.svg``. Run it with ``python examples/molecules.py``, or with
``python examples/molecules.py somewhere.svg``; it needs ``pip install 'gstarx[drawing]'``.
"""

import sys

import gstarx
from gstarx import Judge, drawing
from gstarx.datasets import load, smiles_graph
from gstarx.models import pretrained

SMILES = "CC(=O)Nc1ccc([N+](=O)[O-])cc1"
GROUPS = {"nitro": "c[N+](=O)[O-]", "ring": "c1ccccc1", "amide": "[CX3](=O)[NX3]"}
SETTINGS = {
    "GStarX": {},  # the Myerson value, relative to single atoms
    "HN value, uniform baseline": {"value": "hn", "baseline": "uniform"},
}


def main():
    """Explain one molecule with two settings, print the scores of groups, and draw both."""
    network, _ = pretrained("nitro")
    graph = smiles_graph(SMILES, "nitro")
    explanations = {
        name: gstarx.explain(network, graph, **settings) for name, settings in SETTINGS.items()
    }
    for name, explanation in explanations.items():
        print(f"{name}, exact from {explanation.evaluations:,} sets of atoms:")
        for group in drawing.group_scores(explanation.node_scores, SMILES, by=GROUPS):
            print(f"  {group.name:6} {group.score:+.3f}  atoms {list(group.atoms)}")
    picture = drawing.compare(
        graph,
        explanations,
        judge=Judge(network),
        sparsity=2 / 3,
        names=load("nitro").class_names,
        title="Is there an aromatic nitro group? One network, two settings",
    )
    path = sys.argv[1] if len(sys.argv) > 1 else "molecule.svg"
    picture.save(path)
    print(f"The picture is in {path}.")


if __name__ == "__main__":
    main()
