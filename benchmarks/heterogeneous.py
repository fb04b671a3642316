"""Heterogeneous graphs: planted reasons found, against other explainers; large neighborhoods.

A paper is about theory because of one author or one venue (`bibliography`). Four
networks are trained on the same graph, and papers of the test split that they classify correctly as
theory are explained. AUROC: how well scores of the nodes around a paper tell its reason from all
others, its mean over papers, and a 95% interval by bootstrap over papers. Then single nodes of a
larger, denser graph, with hundreds of players: CPU seconds, memory and standard errors.
`HETEROGENEOUS_PAPERS` (20) says how many papers are explained.
"""

from __future__ import annotations

import os
import resource
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from torch_geometric.data import HeteroData
from torch_geometric.explain import CaptumExplainer, Explainer, GNNExplainer
from torch_geometric.nn import HANConv, HeteroConv, HGTConv, SAGEConv, to_hetero

from gstarx import GameOptions, Passes, explain
from gstarx_bench.datasets import bibliography, planted_reasons

Node = tuple[str, int]
_CONFIG = {"mode": "multiclass_classification", "task_level": "node", "return_type": "raw"}
_METHODS: dict[str, dict[str, Any]] = {
    "HN": {"value": "hn"},
    "Myerson": {"value": "myerson"},
    "Myerson, singletons": {"value": "myerson", "baseline": "singletons"},
    "Shapley": {"value": "shapley"},
    "Banzhaf": {"value": "banzhaf"},
}


class Convolved(nn.Module):
    """Layers of ``HeteroConv`` with the maximum over neighbors."""

    def __init__(self, data: HeteroData, width: int = 32, layers: int = 2) -> None:
        super().__init__()
        self.layers = nn.ModuleList(
            [
                HeteroConv(
                    {kind: SAGEConv((-1, -1), width, aggr="max") for kind in data.edge_types}
                )
                for _ in range(layers)
            ]
        )
        self.head = nn.Linear(width, 2)

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        for layer in self.layers:
            x_dict = {name: x.relu() for name, x in layer(x_dict, edge_index_dict).items()}
        return self.head(x_dict["paper"])


class _Plain(nn.Module):
    def __init__(self, width: int = 32) -> None:
        super().__init__()
        self.first = SAGEConv((-1, -1), width, aggr="max")
        self.second = SAGEConv((-1, -1), width, aggr="max")
        self.head = nn.Linear(width, 2)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        hidden = self.first(x, edge_index).relu()
        return self.head(self.second(hidden, edge_index).relu())


class Transformed(nn.Module):
    """The same by ``to_hetero``, of which papers are taken."""

    def __init__(self, data: HeteroData) -> None:
        super().__init__()
        self.inner = to_hetero(_Plain(), data.metadata())

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        return self.inner(x_dict, edge_index_dict)["paper"]


class Transformer(nn.Module):
    """Two layers of ``HGTConv``."""

    def __init__(self, data: HeteroData, width: int = 32) -> None:
        super().__init__()
        widths = {name: data[name].num_features for name in data.node_types}
        self.first = HGTConv(widths, width, data.metadata(), heads=2)
        self.second = HGTConv(width, width, data.metadata(), heads=2)
        self.head = nn.Linear(width, 2)

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        hidden = {n: x.relu() for n, x in self.first(x_dict, edge_index_dict).items()}
        return self.head(self.second(hidden, edge_index_dict)["paper"].relu())


class Attention(nn.Module):
    """One layer of ``HANConv``, whose weights of relations are means over all nodes."""

    def __init__(self, data: HeteroData, width: int = 32) -> None:
        super().__init__()
        widths = {name: data[name].num_features for name in data.node_types}
        self.conv = HANConv(widths, width, data.metadata(), heads=2)
        self.head = nn.Linear(width, 2)

    def forward(self, x_dict: Any, edge_index_dict: Any) -> Tensor:
        return self.head(self.conv(x_dict, edge_index_dict)["paper"].relu())


def train(model: nn.Module, data: HeteroData, *, epochs: int = 150) -> float:
    """Train on the papers of the training split; accuracy on those of the test split."""
    paper = data["paper"]
    with torch.no_grad():
        model(data.x_dict, data.edge_index_dict)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=1e-4)
    for _ in range(epochs):
        optimizer.zero_grad()
        output = model(data.x_dict, data.edge_index_dict)
        functional.cross_entropy(output[paper.train_mask], paper.y[paper.train_mask]).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        right = model(data.x_dict, data.edge_index_dict).argmax(-1) == paper.y
    return float(right[paper.test_mask].float().mean())


def trained(make: Callable[[HeteroData], nn.Module], data: HeteroData) -> tuple[nn.Module, float]:
    """A network with its accuracy, the same every time."""
    torch.manual_seed(0)
    model = make(data)
    return model, train(model, data)


def explained_papers(model: nn.Module, data: HeteroData, most: int) -> list[int]:
    """Papers about theory of the test split that the network recognizes."""
    paper = data["paper"]
    with torch.no_grad():
        theory = model(data.x_dict, data.edge_index_dict).argmax(-1) == 1
    chosen = theory & (paper.y == 1) & paper.test_mask
    return [int(node) for node in chosen.nonzero()[:most, 0]]


def auroc(scores: NDArray[np.float64], truth: NDArray[np.bool_]) -> float:
    """The probability that a reason has a higher score than another node; ties count half."""
    wins = scores[truth][:, None] - scores[~truth][None]
    return float(np.mean((wins > 0) + 0.5 * (wins == 0)))


def interval(values: list[float]) -> tuple[float, float, float]:
    """The mean and its 95% interval by bootstrap."""
    numbers, generator = np.array(values), np.random.default_rng(0)
    means = numbers[generator.integers(len(numbers), size=(2000, len(numbers)))].mean(axis=1)
    low, high = np.quantile(means, [0.025, 0.975])
    return float(numbers.mean()), float(low), float(high)


def _others(
    model: nn.Module, data: HeteroData, node: int
) -> dict[str, tuple[dict[str, Tensor], float]]:
    """Scores of all nodes by explainers of PyG and Captum, by type, and CPU seconds."""
    made = {}
    for name, algorithm, kind in (
        ("GNNExplainer", GNNExplainer(epochs=200), "object"),
        ("integrated gradients", CaptumExplainer("IntegratedGradients"), "attributes"),
    ):
        torch.manual_seed(node)
        start = time.process_time()
        explainer = Explainer(
            model,
            algorithm=algorithm,
            explanation_type="model",
            node_mask_type=kind,
            edge_mask_type="object" if name == "GNNExplainer" else None,
            model_config=_CONFIG,
        )
        masks = explainer(data.x_dict, data.edge_index_dict, index=node).node_mask_dict
        scores = {kind: mask.detach().sum(dim=-1) for kind, mask in masks.items()}
        made[name] = scores, time.process_time() - start
    return made


def compare(
    name: str,
    model: nn.Module,
    data: HeteroData,
    papers: list[int],
    *,
    others: bool,
    budget: int | None,
) -> None:
    """AUROC of every method on the nodes around the same papers, all but the paper itself."""
    found: dict[str, list[float]] = {}
    spent: dict[str, float] = {}
    for node in papers:
        reasons = planted_reasons(data, node)
        players: list[Node] = []
        for method, options in _METHODS.items():
            start = time.process_time()
            made = explain(
                model,
                data,
                index=node,
                target=1,
                budget=budget,
                seed=node,
                task={"task_level": "node", "node_type": "paper"},
                game=GameOptions(num_hops=2),
                **options,
            )
            spent[method] = spent.get(method, 0.0) + time.process_time() - start
            kept = [at for at, player in enumerate(made.players) if player != ("paper", node)]
            players = [made.players[at] for at in kept]
            truth = np.array([player in reasons for player in players])
            found.setdefault(method, []).append(auroc(made.scores.numpy()[kept], truth))
        for method, (masks, seconds) in (_others(model, data, node) if others else {}).items():
            scores = np.array([float(masks[kind][at]) for kind, at in players])
            found.setdefault(method, []).append(auroc(scores, truth))
            spent[method] = spent.get(method, 0.0) + seconds
    for method, values in found.items() if papers else ():
        mean, low, high = interval(values)
        first = np.mean([value == 1.0 for value in values])
        print(
            f"{name:12} {method:34} {mean:.3f} [{low:.3f}, {high:.3f}], reason first "
            f"{first:.2f}, {spent[method] / len(papers):.2f} CPU s a paper",
            flush=True,
        )


def neighborhoods() -> None:
    """Papers of a larger graph with hundreds of players: networks of three and four layers."""
    data = bibliography(papers=2000, seed=1)
    for layers in (3, 4):
        torch.manual_seed(0)
        model = Convolved(data, layers=layers)
        accuracy = train(model, data, epochs=60)
        print(f"\n2,000 papers, {layers} layers, accuracy {accuracy:.3f}", flush=True)
        node = explained_papers(model, data, 1)[0]
        for method in ("Shapley", "Banzhaf", "Myerson", "HN"):
            _neighborhood(model, data, node, method)
        _neighborhood(model, data, node, "Shapley", passes=Passes(share=False))


def _neighborhood(
    model: nn.Module, data: HeteroData, node: int, method: str, **options: Any
) -> None:
    start = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = explain(
            model,
            data,
            index=node,
            budget=10_000,
            seed=0,
            task={"task_level": "node", "node_type": "paper"},
            **_METHODS[method],
            **options,
        )
    seconds = time.process_time() - start
    others = [at for at, player in enumerate(made.players) if player != ("paper", node)]
    scores, errors = made.scores[others], made.std_errors[others]
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    rank = 1 + sorted(scores.tolist(), reverse=True).index(
        max(
            float(s)
            for s, at in zip(scores, others, strict=True)
            if made.players[at] in planted_reasons(data, node)
        )
    )
    print(
        f"{len(made.players):4} players {method:8} {made.evaluations:6,} evaluations "
        f"{seconds:6.2f} CPU s, largest error {float(errors.max()):.4f}, mean error "
        f"{float(errors.mean()):.4f}, highest score {float(scores.max()):.3f}, reason at rank "
        f"{rank}, process {memory:,.0f} MB, {made.sharing.reason or 'embeddings shared'}",
        flush=True,
    )


def main() -> None:
    """Print all figures."""
    data = bibliography()
    most = int(os.environ.get("HETEROGENEOUS_PAPERS", "20"))
    # layers that take dictionaries have no place for GNNExplainer's edge masks
    for name, make, count in (
        ("HeteroConv", Convolved, most),
        ("to_hetero", Transformed, most),
        ("HGTConv", Transformer, min(most, 3)),
        ("HANConv", Attention, min(most, 1)),
    ):
        start = time.process_time()
        model, accuracy = trained(make, data)
        papers = explained_papers(model, data, count)
        print(
            f"\n{name}: accuracy {accuracy:.3f}, trained in {time.process_time() - start:.1f} CPU "
            f"s, {len(papers)} papers explained",
            flush=True,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            budget = 1_000 if name == "HANConv" else None  # one coalition at a time
            compare(name, model, data, papers, others=count == most, budget=budget)
    neighborhoods()


if __name__ == "__main__":
    main()
