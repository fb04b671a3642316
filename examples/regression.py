"""Regression: how much each atom contributes to a predicted number.

The molecules are generated. Their solubility increases with every oxygen and decreases with every
chlorine and with every bond between two chlorines. A network learns to predict it, and the scores
of the atoms sum to the prediction minus the average prediction.
Run it with ``python examples/regression.py``.
"""

import random

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GraphConv, global_add_pool

import gstarx

ATOMS = ("C", "O", "Cl")


class Network(nn.Module):
    """One convolution and a sum over atoms."""

    def __init__(self):
        super().__init__()
        self.conv = GraphConv(len(ATOMS), 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x, edge_index, batch=None):
        """Return the solubility of every molecule, (molecules, 1)."""
        return self.out(global_add_pool(self.conv(x, edge_index).relu(), batch))


def molecule():
    """Generate a random tree of atoms with its solubility."""
    n = random.randint(6, 10)
    atoms = [random.choice(ATOMS) for _ in range(n)]
    bonds = [(random.randrange(i), i) for i in range(1, n)]
    pairs = sum(atoms[a] == atoms[b] == "Cl" for a, b in bonds)
    solubility = atoms.count("O") - atoms.count("Cl") - pairs
    ends = torch.tensor(bonds).T
    return Data(
        x=torch.eye(len(ATOMS))[[ATOMS.index(atom) for atom in atoms]],
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        y=torch.tensor([[float(solubility)]]),
        atoms=atoms,
    )


def train(model, graphs, epochs=60):
    """Train the regression."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in DataLoader(graphs, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index, batch.batch)
            nn.functional.mse_loss(out, batch.y).backward()
            optimizer.step()


def main():
    """Train the network, explain one molecule, and print the scores."""
    random.seed(0)
    torch.manual_seed(0)
    graphs = [molecule() for _ in range(300)]
    model = Network()
    train(model, graphs)

    baseline = gstarx.expected_output(model, graphs, task="regression")
    graph = next(g for g in (molecule() for _ in range(1000)) if g.y < -3)
    explanation = gstarx.explain(model, graph, task="regression", baseline=baseline)
    predicted = explanation.prediction.item()
    print(f"solubility {graph.y.item():+.2f}, predicted {predicted:+.2f}, ", end="")
    print(f"{baseline.item():+.2f} on average; contributions of the atoms:")
    for atom, name in enumerate(graph.atoms):
        near = graph.edge_index[1, graph.edge_index[0] == atom].tolist()
        bonded = ", ".join(graph.atoms[other] for other in near)
        print(f"  {name:2}  {explanation.node_scores[atom].item():+.2f}  bonded to {bonded}")
    print(f"  sum {explanation.scores.sum().item():+.2f}")


if __name__ == "__main__":
    main()
