"""Node classification: which members determine the predicted group of another member.

Zachary's karate club ships with PyG: 34 members, 78 acquaintances, four groups. One member of each
group has a known label, and the only feature of a node is which of these four members it is, if
any. A GCN predicts the groups of the others, and GStarX explains the prediction for one of them by
the members whose messages reach it. Run it with ``python examples/node_classification.py``.
"""

import torch
from torch_geometric.datasets import KarateClub

import gstarx
from gstarx.models import GCN


def train(model, data, epochs=200):
    """Train on the four known labels."""
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        out = model(data.x, data.edge_index)
        torch.nn.functional.cross_entropy(out[data.train_mask], data.y[data.train_mask]).backward()
        optimizer.step()


def main():
    """Train the network, explain one member, and print the scores."""
    torch.manual_seed(0)
    data = KarateClub()[0]
    known = data.train_mask.nonzero()[:, 0]
    data.x = torch.eye(data.num_nodes)[:, known]
    model = GCN(len(known), 16, 4, num_layers=3, readout=None)
    train(model, data)
    print(f"The groups of members {known.tolist()} are known: {data.y[known].tolist()}.")

    member = 16
    friends = data.edge_index[1, data.edge_index[0] == member].tolist()
    explanation = gstarx.explain(model, data, task="node", index=member, budget=5_000, seed=0)
    group, worth = explanation.explained[0], explanation.worth.item()
    print(f"Member {member}, who knows members {friends}, is placed in group {group}.")
    print(f"The probability is {worth:+.2f} higher than without acquaintances, because of:")
    errors = dict(zip(explanation.players.tolist(), explanation.std_errors.tolist(), strict=True))
    for node in explanation.top(5).tolist():
        who = "acquaintance" if node in friends else "itself" if node == member else ""
        who = f"known to be in group {data.y[node]}" if node in known else who
        score = explanation.node_scores[node]
        print(f"  member {node:2d}  {score:+.3f} +/- {errors[node]:.3f}  {who}".rstrip())
    print(f"({len(explanation.players)} players, {explanation.evaluations:,} evaluated coalitions)")


if __name__ == "__main__":
    main()
