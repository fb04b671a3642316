"""How much every atom adds to a predicted number.

Made-up molecules whose solubility rises with every oxygen and falls with every chlorine, and falls
once more where two chlorines are neighbors. A network learns the number; the scores of the atoms
add up to what it says of the molecule, less what it says on average. Run it with
``python examples/regression.py``.
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
    """One convolution, and the sum over atoms."""

    def __init__(self):
        super().__init__()
        self.conv = GraphConv(len(ATOMS), 32)
        self.out = nn.Linear(32, 1)

    def forward(self, x, edge_index, batch=None):
        """The solubility of every molecule, (molecules, 1)."""
        return self.out(global_add_pool(self.conv(x, edge_index).relu(), batch))


def molecule():
    """A random tree of atoms and its solubility."""
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
    """Fit the solubilities."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in DataLoader(graphs, batch_size=32, shuffle=True):
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index, batch.batch)
            nn.functional.mse_loss(out, batch.y).backward()
            optimizer.step()


def main():
    """Train, explain one molecule, print."""
    random.seed(0)
    torch.manual_seed(0)
    graphs = [molecule() for _ in range(300)]
    model = Network()
    train(model, graphs)

    baseline = gstarx.expected_output(model, graphs, mode="regression")
    graph = next(g for g in (molecule() for _ in range(1000)) if g.y < -3)
    found = gstarx.explain(model, graph, mode="regression", baseline=baseline)
    print(f"solubility {graph.y.item():+.2f}, predicted {found.prediction.item():+.2f}, ", end="")
    print(f"{baseline.item():+.2f} on average; what the atoms add:")
    for atom, name in enumerate(graph.atoms):
        near = graph.edge_index[1, graph.edge_index[0] == atom].tolist()
        bonded = ", ".join(graph.atoms[other] for other in near)
        print(f"  {name:2}  {found.node_scores[atom].item():+.2f}  bonded to {bonded}")
    print(f"  sum {found.scores.sum().item():+.2f}")


if __name__ == "__main__":
    main()
