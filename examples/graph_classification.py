"""Graph classification: which atoms make a network classify a molecule as toxic.

The molecules are generated: a carbon ring with a nitrogen, two oxygens and a chlorine. In toxic
molecules, the oxygens are bonded to the nitrogen and form a nitro group (NO2); in the others, all
four atoms are bonded to the ring. Both classes have the same atoms, so only the bonds differ. A GCN
learns the difference, and GStarX shows which atoms it relies on.
Run it with ``python examples/graph_classification.py``.
"""

import random

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

import gstarx
from gstarx.models import GCN

ATOMS = ("C", "N", "O", "Cl")


def molecule(toxic):
    """Generate a ring of six carbons, with N, O, O, Cl bonded to it or to each other."""
    atoms = ["C"] * 6 + ["N", "O", "O", "Cl"]
    bonds = [(i, (i + 1) % 6) for i in range(6)]
    places = random.sample(range(6), 4)
    bonds += [(places[0], 6), (places[3], 9)]
    bonds += [(6, 7), (6, 8)] if toxic else [(places[1], 7), (places[2], 8)]
    ends = torch.tensor(bonds).T
    return Data(
        x=torch.eye(len(ATOMS))[[ATOMS.index(atom) for atom in atoms]],
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        y=torch.tensor([int(toxic)]),
        atoms=atoms,
    )


def train(model, graphs, epochs=30):
    """Train the classifier."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in DataLoader(graphs, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index, batch.batch)
            torch.nn.functional.cross_entropy(out, batch.y).backward()
            optimizer.step()


def main():
    """Train the network, explain one molecule, and print the scores."""
    random.seed(0)
    torch.manual_seed(1)
    graphs = [molecule(toxic=i % 2 == 0) for i in range(400)]
    model = GCN(len(ATOMS), 16, 2, readout="max")
    train(model, graphs[:300])
    correct = [model(g.x, g.edge_index).argmax().item() == g.y.item() for g in graphs[300:]]
    print(f"{sum(correct)} of {len(correct)} molecules of the test set are classified correctly.")

    # the paper's payoff: the probability of the class minus its average
    baseline = gstarx.expected_output(model, graphs[:300])
    explanation = gstarx.explain(model, graphs[300], target=1, baseline=baseline)
    worth = explanation.worth.item()
    print(f"With the nitro group, the probability of toxic is {worth:+.3f} above average.")
    print(f"Exact scores from {explanation.evaluations} connected sets of atoms:")
    for atom, name in enumerate(explanation.atoms):
        score = explanation.node_scores[atom].item()
        print(f"  {name:2} {atom:2d}  {score:+.3f}  {'#' * round(100 * abs(score))}")
    print(f"  sum    {explanation.scores.sum().item():+.3f}")


if __name__ == "__main__":
    main()
