"""Edge attributes: explain a network that recognizes double bonds.

The molecules are generated chains and rings of equal atoms that differ only in their bonds: a
molecule is "reactive" if one of its bonds is double. A GINE network learns this from ``edge_attr``.
GStarX passes the attributes of the remaining edges to the network with every coalition of atoms,
and finds the two atoms of the double bond. Run it with ``python examples/edge_attributes.py``.
"""

import random

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.explain import Explainer
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GINEConv, global_max_pool

from gstarx import GStarX


class BondNetwork(nn.Module):
    """Two layers that use the bond types; ``forward`` takes ``edge_attr`` by name."""

    def __init__(self):
        super().__init__()
        self.first = GINEConv(nn.Linear(4, 16), edge_dim=2)
        self.second = GINEConv(nn.Linear(16, 16), edge_dim=2)
        self.out = nn.Linear(16, 2)

    def forward(self, x, edge_index, edge_attr, batch=None):
        """Return the logits of every molecule."""
        x = self.first(x, edge_index, edge_attr).relu()
        x = self.second(x, edge_index, edge_attr).relu()
        return self.out(global_max_pool(x, batch))


def molecule(reactive):
    """Generate a chain or ring of six to nine atoms; if reactive, one of its bonds is double."""
    n = random.randint(6, 9)
    bonds = [(i, i + 1) for i in range(n - 1)] + [(n - 1, 0)] * random.randint(0, 1)
    double = random.choice(bonds) if reactive else None
    kinds = torch.eye(2)[[int(bond == double) for bond in bonds]]
    ends = torch.tensor(bonds).T
    return Data(
        x=torch.ones(n, 4),
        edge_index=torch.cat([ends, ends.flip(0)], dim=1),
        edge_attr=torch.cat([kinds, kinds]),
        y=torch.tensor([int(reactive)]),
        double=double,
    )


def train(model, graphs, epochs=20):
    """Train the classifier."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    for _ in range(epochs):
        for batch in DataLoader(graphs, batch_size=32, shuffle=True, exclude_keys=["double"]):
            optimizer.zero_grad()
            out = model(batch.x, batch.edge_index, batch.edge_attr, batch.batch)
            nn.functional.cross_entropy(out, batch.y).backward()
            optimizer.step()


def main():
    """Train the network, explain three molecules, and print the scores."""
    random.seed(2)
    torch.manual_seed(0)
    model = BondNetwork()
    train(model, [molecule(reactive=i % 2 == 0) for i in range(200)])

    # PyG's own Explainer passes edge_attr on; the score of an edge is the mean of its two ends
    explainer = Explainer(
        model,
        algorithm=GStarX(),
        explanation_type="model",
        node_mask_type="object",
        edge_mask_type="object",
        model_config={
            "mode": "multiclass_classification",
            "task_level": "graph",
            "return_type": "raw",
        },
    )
    for _ in range(3):
        graph = molecule(reactive=True)
        explanation = explainer(graph.x, graph.edge_index, edge_attr=graph.edge_attr)
        best = graph.edge_index[:, explanation.edge_mask.argmax()].tolist()
        scores = " ".join(f"{score:+.2f}" for score in explanation.node_scores)
        print(f"double bond {sorted(graph.double)}, highest edge {sorted(best)}, atoms {scores}")


if __name__ == "__main__":
    main()
