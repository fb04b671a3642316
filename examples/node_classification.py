"""By whom a network knows the group of a member of the karate club.

Zachary's karate club comes with PyG: 34 members, 78 acquaintances, four groups. The group of one
member of each is given away; a GCN that sees nothing but who those four are places the others, and
GStarX explains where it places one of them, from the part of the club that can matter for him.
Run it with ``python examples/node_classification.py``.
"""

import torch
from torch_geometric.datasets import KarateClub

import gstarx
from gstarx.models import GCN


def train(model, data, epochs=200):
    """Fit the groups of the four."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()


def main():
    """Train, explain one member, print."""
    torch.manual_seed(0)
    data = KarateClub()[0]
    known = data.train_mask.nonzero()[:, 0]
    data.x = torch.eye(data.num_nodes)[:, known]
    model = GCN(len(known), 16, 4, num_layers=3, readout=None)
    train(model, data)
    print(f"The groups of members {known.tolist()} are known: {data.y[known].tolist()}.")

    member = 16
    friends = data.edge_index[1, data.edge_index[0] == member].tolist()
    found = gstarx.explain(model, data, task_level="node", index=member, budget=5_000, seed=0)
    group = found.explained[0]
    print(f"Member {member}, who knows members {friends}, is placed in group {group}:")
    print(f"{found.worth.item():+.2f} more probable than without acquaintances. By whom:")
    errors = dict(zip(found.players.tolist(), found.std_errors.tolist(), strict=True))
    for node in found.top(5).tolist():
        who = "himself" if node == member else "knows him" if node in friends else ""
        who = f"his group, {data.y[node]}, is known" if node in known else who
        print(f"  member {node:2d}  {found.node_scores[node]:+.3f} +/- {errors[node]:.3f}  {who}")
    print(f"(out of {len(found.players)} members who can matter, from {found.evaluations:,} sets)")


if __name__ == "__main__":
    main()
