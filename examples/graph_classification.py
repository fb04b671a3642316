"""Which atoms made a network call a molecule toxic.

Molecules made up on the spot, all of the same atoms: a carbon ring and a nitrogen, two oxygens and
a carbon more. In the toxic ones nitrogen and oxygens are bonded to a nitro group (NO2), in the
others they hang from the ring one by one. A GCN learns it, and GStarX says which atoms it went by.
Run it with ``python examples/graph_classification.py``.
"""

import random

import torch
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader

import gstarx
from gstarx.models import GCN

ATOMS = ("C", "N", "O")


def molecule(toxic):
    """Ten atoms: a ring of six carbons, and N, O, O, C bonded to it or to each other."""
    atoms = ["C"] * 6 + ["N", "O", "O", "C"]
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
    """Fit the classes."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in DataLoader(graphs, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index, batch.batch)
            torch.nn.functional.cross_entropy(out, batch.y).backward()
            optimizer.step()


def main():
    """Train, explain one molecule, print."""
    random.seed(0)
    torch.manual_seed(0)
    graphs = [molecule(toxic=i % 2 == 0) for i in range(200)]
    model = GCN(len(ATOMS), 16, 2)
    train(model, graphs[:150])
    correct = [model(g.x, g.edge_index).argmax().item() == g.y.item() for g in graphs[150:]]
    print(
        f"accuracy on {len(correct)} molecules it has not seen: {sum(correct) / len(correct):.2f}"
    )

    # the paper's payoff: how much more probable the class is than on average
    baseline = gstarx.expected_output(model, graphs[:150])
    found = gstarx.explain(model, graphs[150], target=1, baseline=baseline)
    print(f"With a nitro group, toxic is {found.worth.item():+.3f} more probable than on average.")
    print(f"Exact scores from {found.evaluations} connected sets of atoms:")
    for atom in found.node_mask[:, 0].argsort(descending=True).tolist():
        score = found.node_mask[atom, 0].item()
        print(f"  {found.atoms[atom]:2} {atom:2d}  {score:+.3f}  {'#' * round(100 * abs(score))}")
    print(f"  sum    {found.node_mask.sum().item():+.3f}")


if __name__ == "__main__":
    main()
