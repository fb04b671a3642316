"""Which functional group a network goes by: a SMILES, two values, a picture.

The network comes with the package and tells molecules with an aromatic nitro group from others. The
molecule is 4-nitroacetanilide, explained by the paper's value (HN) and by the Banzhaf value, both
exact. Scores of atoms are added up over functional groups, and ``molecule.svg`` shows both. Run it
with ``python examples/molecules.py``, or ``python examples/molecules.py somewhere.svg``; it needs
``pip install 'gstarx[drawing]'``.
"""

import sys

import gstarx
from gstarx import drawing
from gstarx.datasets import smiles_graph
from gstarx.models import pretrained

SMILES = "CC(=O)Nc1ccc([N+](=O)[O-])cc1"
GROUPS = {"nitro": "c[N+](=O)[O-]", "ring": "c1ccccc1", "amide": "[CX3](=O)[NX3]"}
VALUES = {"HN value": "hn", "Banzhaf value": "banzhaf"}


def main():
    """Explain twice, print groups, draw."""
    network, _ = pretrained("nitro")
    graph = smiles_graph(SMILES, "nitro")
    found = {name: gstarx.explain(network, graph, value=value) for name, value in VALUES.items()}
    for name, explanation in found.items():
        print(f"{name}, exact from {explanation.evaluations:,} sets of atoms:")
        for group in drawing.aggregate(explanation.node_scores, GROUPS, SMILES):
            print(f"  {group.name:6} {group.score:+.3f}  atoms {list(group.atoms)}")
    picture = drawing.compare(
        graph,
        found,
        model=network,
        sparsity=2 / 3,
        title="Is there an aromatic nitro group? One network, two values",
    )
    path = sys.argv[1] if len(sys.argv) > 1 else "molecule.svg"
    picture.save(path)
    print(f"The picture is in {path}.")


if __name__ == "__main__":
    main()
