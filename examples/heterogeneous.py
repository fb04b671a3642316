"""Heterogeneous graphs: which author or venue makes a network classify a paper as theory.

The graph is generated: authors, papers and venues. A paper belongs to the class theory if one of
its authors is a theorist or its venue is a theory venue; its own features do not reveal the class.
A network with a layer for every relation learns this, and GStarX explains two papers of the test
split. With a file name, the script also draws the first explanation:
``python examples/heterogeneous.py [picture.svg]``.
"""

import sys

import torch
from torch_geometric.nn import HeteroConv, SAGEConv

import gstarx
from gstarx_bench.datasets import bibliography, planted_reasons


class Network(torch.nn.Module):
    """Two message-passing layers along all relations, and a classifier for papers."""

    def __init__(self, edge_types, width=32):
        super().__init__()
        self.layers = torch.nn.ModuleList(
            HeteroConv({kind: SAGEConv((-1, -1), width, aggr="max") for kind in edge_types})
            for _ in range(2)
        )
        self.head = torch.nn.Linear(width, 2)

    def forward(self, x_dict, edge_index_dict):
        """Return the logits of the two classes for every paper."""
        for layer in self.layers:
            x_dict = {name: x.relu() for name, x in layer(x_dict, edge_index_dict).items()}
        return self.head(x_dict["paper"])


def train(model, data, epochs=100):
    """Train on the papers of the training split; return the accuracy on the test split."""
    model(data.x_dict, data.edge_index_dict)  # initializes lazy layers
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    paper = data["paper"]
    for _ in range(epochs):
        optimizer.zero_grad()
        out = model(data.x_dict, data.edge_index_dict)[paper.train_mask]
        torch.nn.functional.cross_entropy(out, paper.y[paper.train_mask]).backward()
        optimizer.step()
    with torch.no_grad():
        right = model(data.x_dict, data.edge_index_dict).argmax(-1) == paper.y
    return right[paper.test_mask].float().mean().item()


def main():
    """Train the network, explain a paper for each kind of reason, and print the scores."""
    torch.manual_seed(0)
    data = bibliography(papers=300)
    model = Network(data.edge_types)
    print(f"{train(model, data):.0%} of the papers in the test split are classified correctly.")
    theory = data["paper"].test_mask & (data["paper"].y == 1)
    for kind in ("author", "venue"):
        papers = theory.nonzero()[:, 0].tolist()
        paper = next(p for p in papers if planted_reasons(data, p)[0][0] == kind)
        explanation = gstarx.explain(
            model,
            data,
            index=paper,
            task=gstarx.Task(task_level="node", node_type="paper"),
            value="shapley",
            seed=0,
        )
        reasons = planted_reasons(data, paper)
        chance = explanation.prediction[paper].softmax(-1)[1].item()
        print(f"Paper {paper} is theory with probability {chance:.2f}, because of:")
        errors = dict(zip(explanation.players, explanation.std_errors.tolist(), strict=True))
        for name, node in explanation.top(3):
            planted = "the planted reason" if (name, node) in reasons else ""
            itself = "the paper itself" if (name, node) == ("paper", paper) else planted
            score = explanation[name].node_scores[node].item()
            error = errors[name, node]
            print(f"  {name:6} {node:3d}  {score:+.3f} +/- {error:.3f}  {itself}".rstrip())
        players, evaluations = len(explanation.players), explanation.evaluations
        print(f"({players} players, {evaluations:,} evaluated coalitions)")
        if kind == "author" and len(sys.argv) > 1:
            explanation.draw(sparsity=0.9, names=("other", "theory")).save(sys.argv[1])
            print(f"The picture is in {sys.argv[1]}.")


if __name__ == "__main__":
    main()
