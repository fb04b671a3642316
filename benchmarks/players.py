"""Edges and fragments as players: ground truth, fidelity and cost, with the paper's networks.

Needs ``GSTARX_DATA`` and ``GSTARX_CHECKPOINTS``. Edge explainers are judged on edges: the AUROC of
the true edges, and the harmonic fidelity of the best fifth of the edges, where all nodes stay and
edges leave. Samples are small and stated; intervals are 95 % bootstrap intervals over graphs.
``GSTARX_PARTS`` chooses among ``cost edges shapes brics``.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gstarx import CommunicationGraph, datasets, explain, metrics
from gstarx.explainers.pyg import GNNExplainer, PGExplainer
from gstarx.models import load_published_checkpoint
from gstarx.players import brics

_GRAPHS = int(os.environ.get("GSTARX_GRAPHS", "20"))
_KEPT = 0.2
#: Molecules with more connected sets of edges are not timed.
_MOST = 20_000
_BUDGET = int(os.environ.get("GSTARX_BUDGET", "5000"))


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    parts = os.environ.get("GSTARX_PARTS", "cost edges shapes brics").split()
    for part in parts:
        {"cost": _cost, "edges": _edges, "shapes": _shapes, "brics": _brics}[part]()


def _loaded(name: str) -> tuple[Any, Any]:
    weights = Path(os.environ["GSTARX_CHECKPOINTS"]) / name / "gcn_3l_best.pth"
    return datasets.load(name), load_published_checkpoint(weights)


def _interval(values: list[float]) -> str:
    numbers = np.array([v for v in values if np.isfinite(v)])
    draws = np.random.default_rng(0).integers(len(numbers), size=(2000, len(numbers)))
    low, high = np.quantile(numbers[draws].mean(axis=1), [0.025, 0.975])
    return f"{numbers.mean():.3f} [{low:.3f}, {high:.3f}] (n={len(numbers)})"


def _nitro_edges(data: Any) -> list[int]:
    """Atoms of nitro groups of a MUTAG molecule."""
    near: dict[int, list[int]] = {}
    for a, b in data.edge_index.t().tolist():
        near.setdefault(a, []).append(b)
    atoms: set[int] = set()
    for atom, others in near.items():
        oxygens = [o for o in others if data.atoms[o] == "O" and len(near[o]) == 1]
        if data.atoms[atom] == "N" and len(oxygens) == 2:
            atoms |= {atom, *oxygens}
    return sorted(atoms)


def _cost() -> None:
    dataset, model = _loaded("mutag")
    rows: list[list[float]] = []
    counted = []
    for data in dataset.split("test"):
        nodes = CommunicationGraph.from_edge_index(data.edge_index, data.num_nodes)
        edges = CommunicationGraph.line_graph(nodes.edges)
        counts = [g.count_connected_coalitions(10**7) for g in (nodes, edges)]
        counted.append(counts)
        if counts[1] > _MOST or len(rows) == _GRAPHS:
            continue
        row: list[float] = []
        for players in ("nodes", "edges"):
            start = time.process_time()
            explained = explain(
                model, data, players=players, estimator="exact", budget=300_000, share=False
            )
            row += [explained.evaluations, time.process_time() - start]
        rows.append(row)
    table, every = np.array(rows), np.array(counted)
    ratio = every[:, 1] / every[:, 0]
    print(
        f"cost, {len(every)} MUTAG test molecules: connected node sets median "
        f"{np.median(every[:, 0]):.0f}, most {every[:, 0].max()}; connected edge sets median "
        f"{np.median(every[:, 1]):.0f}, most {every[:, 1].max()}; ratio {ratio.min():.1f} to "
        f"{ratio.max():.1f}, median {np.median(ratio):.1f}"
    )
    print(
        f"exact HN, {len(rows)} of them with at most {_MOST} edge sets, share=False: nodes "
        f"{table[:, 0].mean():.0f} evaluations {table[:, 1].mean():.2f} CPU s, edges "
        f"{table[:, 2].mean():.0f} evaluations {table[:, 3].mean():.2f} CPU s; "
        f"ratio of seconds {table[:, 3].sum() / table[:, 1].sum():.1f}",
        flush=True,
    )


def _methods(model: Any, train: Any, **task: Any) -> dict[str, Callable[[Any, int], Any]]:
    """From a graph and a seed to an edge mask, by name."""
    trained = PGExplainer().fit(model, train, seed=0, **{k: v for k, v in task.items() if v})
    learned = GNNExplainer(epochs=200)

    def ours(value: str) -> Callable[..., Any]:
        return lambda g, s, **where: (
            explain(
                model, g, players="edges", value=value, budget=_BUDGET, seed=s, **task, **where
            ).edge_mask
        )

    def means(g: Any, s: int, **where: Any) -> Any:
        return explain(model, g, edge_mask=True, budget=_BUDGET, seed=s, **task, **where).edge_mask

    return {
        "edge HN": ours("hn"),
        "edge Myerson": ours("myerson"),
        "edge Shapley": ours("shapley"),
        **({} if task else {"position": ours("position")}),
        "mean of ends (node HN)": means,
        "GNNExplainer": lambda g, s, **w: learned.explain(model, g, seed=s, **task, **w).edge_mask,
        # its weights are 0 or 1 to the last digit: what ranks edges are their logits
        "PGExplainer": lambda g, s, **w: (
            trained.explain(model, g, seed=s, **task, **w).distinct_edge_mask
        ),
    }


def _edges() -> None:
    for name, truth in (("mutag", _nitro_edges), ("ba_2motifs", None)):
        dataset, model = _loaded(name)
        graphs = [
            g
            for g in dataset.split("test")
            if truth is None or (0 < len(truth(g)) < g.num_nodes and int(g.y) == 1)
        ][:_GRAPHS]
        methods = _methods(model, dataset.split("train")[:150])
        for method, edge_mask in methods.items():
            found: dict[str, list[float]] = {"auroc": [], "fidelity": [], "h": []}
            start = time.process_time()
            for at, data in enumerate(graphs):
                mask = edge_mask(data, at)
                nodes = truth(data) if truth else data.truth.nonzero()[:, 0].tolist()
                found["auroc"].append(metrics.edge_auroc(mask, data.edge_index, nodes))
                _judge(model, data, mask, found)
            spent = (time.process_time() - start) / len(graphs)
            _say(name, method, found, spent)


def _judge(model: Any, data: Any, mask: Any, found: dict[str, list[float]], **where: Any) -> None:
    scores, _ = metrics.edge_player_scores(mask, data.edge_index)
    kept = np.argsort(-scores, kind="stable")[: max(1, round(_KEPT * len(scores)))]
    judged = metrics.evaluate(model, data, kept, players="edges", **where)
    found["fidelity"].append(judged.fidelity)
    found["h"].append(judged.harmonic_fidelity)


def _say(name: str, method: str, found: dict[str, list[float]], spent: float) -> None:
    words = "; ".join(f"{key} {_interval(values)}" for key, values in found.items() if values)
    print(f"{name:10} {method:24} {words}; {spent:.2f} CPU s", flush=True)


def _shapes() -> None:
    dataset, model = _loaded("ba_shapes")
    data = dataset[0]
    nodes = [int(n) for n in (data.test_mask & data.truth).nonzero()[:, 0]][: _GRAPHS // 2]
    methods = _methods(model, [data], task_level="node")
    for method, edge_mask in methods.items():
        found: dict[str, list[float]] = {"auroc": []}
        start = time.process_time()
        for node in nodes:
            mask = edge_mask(data, node, index=node)
            # among the edges that can matter
            field = explain_field(model, data, node)
            house = data.motif == data.motif[node]
            true = house[data.edge_index].all(dim=0)
            inside = field[data.edge_index].all(dim=0)
            found["auroc"].append(
                metrics.edge_auroc(mask[inside], data.edge_index[:, inside], true[inside])
            )
        _say("ba_shapes", method, found, (time.process_time() - start) / len(nodes))


def explain_field(model: Any, data: Any, node: int) -> Any:
    """The nodes within three hops, which decide the output of three layers."""
    from torch_geometric.utils import k_hop_subgraph

    inside, _, _, _ = k_hop_subgraph(node, 3, data.edge_index, num_nodes=data.num_nodes)
    mask = torch.zeros(data.num_nodes, dtype=torch.bool)
    mask[inside] = True
    return mask


def _brics() -> None:
    for name in ("bbbp", "bace"):
        dataset, model = _loaded(name)
        graphs = [g for g in dataset.split("test") if g.get("smiles")]
        counted = [len(brics(g)) for g in graphs]
        atoms = [g.num_nodes for g in graphs]
        exact, evaluations, seconds = [], [], []
        group_h, atom_h = [], []
        for at, data in enumerate(graphs[:_GRAPHS]):
            start = time.process_time()
            groups = explain(model, data, players="brics", seed=at)
            seconds.append(time.process_time() - start)
            exact.append(bool(groups.exact))
            evaluations.append(groups.evaluations)
            best = groups.select(size=max(1, round(_KEPT * len(groups.players))))
            nodes = sorted(node for group in best for node in groups.groups[group])
            by_atom = explain(model, data, seed=at, budget=5_000)
            chosen = by_atom.select(size=len(nodes))
            for selected, values in ((nodes, group_h), (chosen, atom_h)):
                judged = metrics.evaluate(model, data, selected)
                values.append(judged.harmonic_fidelity)
        print(
            f"{name}: {len(graphs)} test molecules, {np.mean(atoms):.1f} atoms, "
            f"{np.mean(counted):.1f} fragments (most {max(counted)}); explained {len(exact)}: "
            f"{np.mean(exact):.0%} exact, {np.mean(evaluations):.0f} evaluations, "
            f"{np.mean(seconds):.2f} CPU s; H-fidelity at equal atoms: fragments "
            f"{_interval(group_h)}, atoms {_interval(atom_h)}, difference "
            f"{_interval(list(np.subtract(group_h, atom_h)))}",
            flush=True,
        )


if __name__ == "__main__":
    main()
