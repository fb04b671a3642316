"""Edges as players: ground truth, fidelity and cost, with the paper's networks.

Needs ``GSTARX_DATA`` and ``GSTARX_CHECKPOINTS``. Edge explainers are judged on edges: the AUROC of
the true edges, and fidelities of the best fifth of the edges, where all nodes stay and edges leave.
Every measured graph becomes a row of ``benchmarks/results/players.csv`` at once, and what is there
is not measured again; the tables are made of the rows. Intervals are 95 % bootstrap intervals over
graphs. ``GSTARX_PARTS`` chooses among ``tune cost mutag ba_2motifs ba_shapes tables``, and
``GSTARX_METHODS`` among the methods.
"""

from __future__ import annotations

import csv
import os
import time
import warnings
from collections import defaultdict
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch_geometric.utils import k_hop_subgraph

from gstarx import HN, CommunicationGraph, datasets, explain, metrics
from gstarx.explainers.gnn_explainer import GNNExplainer
from gstarx_bench.explainers.pg_explainer import PGExplainer
from gstarx_bench.models import load_published_checkpoint

ROWS = Path(__file__).parent / "results" / "players.csv"
_FIELDS = (
    "data",
    "graph",
    "method",
    "edge_auroc",
    "node_auroc",
    "fidelity",
    "inverse_fidelity",
    "harmonic_fidelity",
    "evaluations",
    "cpu_seconds",
)
_PARTS = "tune cost mutag ba_2motifs ba_shapes tables"
_KEPT = 0.2
_BUDGET = 5_000
#: GNNExplainer: (edge_size, edge_ent, feature_mask), 200 steps of size 0.1.
_SETTINGS = [(s, e, f) for s in (0.005, 0.05) for e in (1.0, 0.1) for f in (False, True)]
#: What did best on validation graphs, see :func:`tune`.
TUNED = {
    "mutag": (0.005, 0.1, True),
    "ba_2motifs": (0.05, 0.1, True),
    "ba_shapes": (0.005, 0.1, False),
}


def main() -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    for part in os.environ.get("GSTARX_PARTS", _PARTS).split():
        if part in ("mutag", "ba_2motifs"):
            graphs_of(part)
        else:
            {"tune": tune, "cost": cost, "ba_shapes": shapes, "tables": tables}[part]()


@cache
def loaded(name: str) -> tuple[Any, Any]:
    """A dataset of the paper and its published network."""
    weights = Path(os.environ["GSTARX_CHECKPOINTS"]) / name / "gcn_3l_best.pth"
    return datasets.load(name), load_published_checkpoint(weights)


def interval(values: Any) -> tuple[float, float, float]:
    """The mean, and the two ends of its bootstrap interval."""
    numbers = np.array([v for v in values if np.isfinite(v)])
    draws = np.random.default_rng(0).integers(len(numbers), size=(4000, len(numbers)))
    low, high = np.quantile(numbers[draws].mean(axis=1), [0.025, 0.975])
    return float(numbers.mean()), float(low), float(high)


def rows_of(path: Path) -> list[dict[str, str]]:
    """What was measured so far."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def add_row(path: Path, fields: tuple[str, ...], row: dict[str, Any]) -> None:
    """Add what was measured of one graph."""
    path.parent.mkdir(exist_ok=True)
    new = not path.exists()
    with path.open("a", newline="") as file:
        writer = csv.DictWriter(file, fields, lineterminator="\n")
        if new:
            writer.writeheader()
        writer.writerow({k: f"{v:.5g}" if isinstance(v, float) else v for k, v in row.items()})


def _nitro_atoms(data: Any) -> list[int]:
    """Atoms of the nitro groups of a MUTAG molecule."""
    near: dict[int, list[int]] = {}
    for a, b in data.edge_index.t().tolist():
        near.setdefault(a, []).append(b)
    atoms: set[int] = set()
    for atom, others in near.items():
        oxygens = [o for o in others if data.atoms[o] == "O" and len(near[o]) == 1]
        if data.atoms[atom] == "N" and len(oxygens) == 2:
            atoms |= {atom, *oxygens}
    return sorted(atoms)


def true_nodes(name: str, data: Any) -> list[int]:
    """The nodes between which edges are true."""
    if name == "mutag":
        return _nitro_atoms(data)
    return [int(node) for node in data.truth.nonzero()[:, 0]]


def graphs_with_truth(name: str, splits: tuple[str, ...]) -> list[tuple[str, Any]]:
    """Graphs predicted right that have true edges; of MUTAG those of the mutagenic class."""
    dataset, model = loaded(name)
    chosen = []
    for split in splits:
        for at, data in enumerate(dataset.split(split)):
            right = int(model(data.x, data.edge_index).argmax()) == int(data.y)
            wanted = name != "mutag" or int(data.y) == 1
            if right and wanted and 0 < len(true_nodes(name, data)) < data.num_nodes:
                chosen.append((f"{split}-{at}", data))
    return chosen


def tune() -> None:
    """Which settings of GNNExplainer find the true edges of ten validation graphs."""
    for name in ("mutag", "ba_2motifs"):
        graphs = graphs_with_truth(name, ("val",))[:10]
        _, model = loaded(name)
        for size, entropy, features in _SETTINGS:
            explainer = _gnn_explainer((size, entropy, features))
            found = [
                metrics.edge_auroc(
                    explainer.explain(model, data, seed=0).edge_mask,
                    data.edge_index,
                    true_nodes(name, data),
                )
                for _, data in graphs
            ]
            print(f"{name} {size} {entropy} {features}: {np.mean(found):.3f}", flush=True)
    dataset, model = loaded("ba_shapes")
    data = dataset[0]
    nodes = (data.val_mask & data.truth).nonzero()[:, 0].tolist()[:10]
    for setting in _SETTINGS:
        explainer = _gnn_explainer(setting)
        found = []
        for node in nodes:
            mask = explainer.explain(model, data, index=node, seed=0, task="node").edge_mask
            found.append(_shapes_auroc(mask, data, node))
        print("ba_shapes", *setting, f"{np.mean(found):.3f}", flush=True)


def _gnn_explainer(setting: tuple[float, float, bool]) -> GNNExplainer:
    size, entropy, features = setting
    return GNNExplainer(epochs=200, lr=0.1, edge_size=size, edge_ent=entropy, feature_mask=features)


#: From a graph, a seed and a node to an explanation and its edge mask.
_Method = Callable[..., tuple[Any, Any]]


def methods(name: str, train: Callable[[], Any], task: str = "graph") -> dict[str, _Method]:
    """Edge explainers by name."""
    _, model = loaded(name)

    def ours(value: str) -> _Method:
        def mask(data: Any, seed: int, **where: Any) -> tuple[Any, Any]:
            options = {"players": "edges", "value": value, "budget": _BUDGET, "seed": seed}
            explanation = explain(model, data, task=task, **options, **where)
            return explanation, explanation.edge_mask

        return mask

    def means(value: str) -> _Method:
        def mask(data: Any, seed: int, **where: Any) -> tuple[Any, Any]:
            options = {"value": value, "budget": _BUDGET, "seed": seed}
            if task == "graph":
                options["baseline"] = "uniform"
            explanation = explain(model, data, task=task, **options, **where)
            return explanation, explanation.score_edges().edge_mask

        return mask

    def learned(explainer: Any) -> _Method:
        def mask(data: Any, seed: int, **where: Any) -> tuple[Any, Any]:
            explanation = explainer.explain(model, data, seed=seed, task=task, **where)
            return explanation, explanation.edge_mask

        return mask

    @cache
    def trained() -> PGExplainer:
        return PGExplainer().fit(model, train(), seed=0, task=task)

    def predicted(data: Any, seed: int, **where: Any) -> tuple[Any, Any]:
        explanation = trained().explain(model, data, seed=seed, task=task, **where)
        # its weights are 0 or 1 to the last digit: what ranks edges are their logits
        return explanation, explanation.distinct_edge_mask

    every = {
        "edge Shapley": ours("shapley"),
        "edge Banzhaf": ours("banzhaf"),
        "edge Myerson": ours("myerson"),
        "edge HN": ours("hn"),
        "position value": ours("position"),
        "mean of ends, node HN": means("hn"),
        "mean of ends, node Shapley": means("shapley"),
        "GNNExplainer, defaults": learned(GNNExplainer()),
        "GNNExplainer, tuned": learned(_gnn_explainer(TUNED[name])),
        "PGExplainer": predicted,
    }
    chosen = os.environ.get("GSTARX_METHODS", "").split("|")
    return {m: f for m, f in every.items() if chosen == [""] or m in chosen}


def graphs_of(name: str) -> None:
    """Rows of the graphs of MUTAG (validation and test) or BA-2Motifs (test)."""
    dataset, model = loaded(name)
    graphs = graphs_with_truth(name, ("test", "val") if name == "mutag" else ("test",))
    done = {(row["data"], row["graph"], row["method"]) for row in rows_of(ROWS)}
    by_name = methods(name, lambda: dataset.split("train")[:300])
    for seed, (graph, data) in enumerate(graphs):
        for method, mask_of in by_name.items():
            if (name, graph, method) in done:
                continue
            start = time.process_time()
            explanation, mask = mask_of(data, seed)
            row = {
                "data": name,
                "graph": graph,
                "method": method,
                "cpu_seconds": time.process_time() - start,
                "evaluations": explanation.evaluations or "",
                "edge_auroc": metrics.edge_auroc(mask, data.edge_index, true_nodes(name, data)),
                **_node_auroc(explanation, true_nodes(name, data)),
            }
            add_row(ROWS, _FIELDS, row | _fidelities(model, data, mask))


def _node_auroc(explanation: Any, truth: list[int], inside: Any = None) -> dict[str, float]:
    """How well scores of nodes rank the true nodes, if there are any."""
    if explanation.node_scores is None:
        return {}
    scores = explanation.node_scores.numpy()
    marked = np.isin(np.arange(len(scores)), truth)
    if inside is not None:
        scores, marked = scores[inside], marked[inside]
    return {"node_auroc": metrics.auroc(scores, np.flatnonzero(marked))}


def _fidelities(model: Any, data: Any, mask: Any, **where: Any) -> dict[str, float]:
    """Of the best fifth of the edges that play."""
    scores, edges = metrics.edge_player_scores(mask, data.edge_index)
    if where:  # the players are the edges that can change the output
        played = explain(
            model, data, players="edges", value="banzhaf", budget=200, seed=0, **where
        ).player_edges.tolist()
        place = {tuple(pair): at for at, pair in enumerate(edges.tolist())}
        scores = scores[[place[tuple(pair)] for pair in played]]
    kept = np.argsort(-scores, kind="stable")[: max(1, round(_KEPT * len(scores)))]
    judged = metrics.evaluate(model, data, kept, players="edges", **where)
    names = ("fidelity", "inverse_fidelity", "harmonic_fidelity")
    return {name: getattr(judged, name) for name in names}


def field_of(data: Any, node: int) -> Any:
    """The nodes within three hops, which decide the output of three layers."""
    inside, _, _, _ = k_hop_subgraph(node, 3, data.edge_index, num_nodes=data.num_nodes)
    mask = torch.zeros(data.num_nodes, dtype=torch.bool)
    mask[inside] = True
    return mask


def _shapes_auroc(mask: Any, data: Any, node: int) -> float:
    """The edges of the node's house among those within three hops."""
    house = data.motif == data.motif[node]
    inside = field_of(data, node)[data.edge_index].all(dim=0)
    true = house[data.edge_index].all(dim=0)
    return metrics.edge_auroc(mask[inside], data.edge_index[:, inside], true[inside])


def shapes() -> None:
    """Rows of the test nodes in houses of BA-Shapes that are predicted right."""
    dataset, model = loaded("ba_shapes")
    data = dataset[0]
    right = model(data.x, data.edge_index).argmax(dim=1) == data.y
    nodes = (data.test_mask & data.truth & right).nonzero()[:, 0].tolist()
    done = {(row["data"], row["graph"], row["method"]) for row in rows_of(ROWS)}
    by_name = methods("ba_shapes", lambda: [data], "node")
    for node in nodes:
        inside = field_of(data, node)
        house = (data.motif == data.motif[node]).nonzero()[:, 0].tolist()
        if int(inside.sum()) == len(house):
            continue  # nothing but the house can matter
        for method, mask_of in by_name.items():
            if ("ba_shapes", f"node-{node}", method) in done:
                continue
            start = time.process_time()
            explanation, mask = mask_of(data, node, index=node)
            row = {
                "data": "ba_shapes",
                "graph": f"node-{node}",
                "method": method,
                "cpu_seconds": time.process_time() - start,
                "evaluations": explanation.evaluations or "",
                "edge_auroc": _shapes_auroc(mask, data, node),
                **_node_auroc(explanation, house, inside.numpy()),
            }
            where = {"task": "node", "index": node}
            add_row(ROWS, _FIELDS, row | _fidelities(model, data, mask, **where))


def cost() -> None:
    """Exact HN of edges against exact HN of nodes on the MUTAG test molecules."""
    dataset, model = loaded("mutag")
    counted, spent = [], []
    for data in dataset.split("test"):
        nodes = CommunicationGraph.from_edge_index(data.edge_index, data.num_nodes)
        edges = CommunicationGraph.line_graph(nodes.edges)
        counted.append([g.count_connected_coalitions(10**8) for g in (nodes, edges)])
        row: list[float] = []
        for players in ("nodes", "edges"):
            start = time.process_time()
            value = HN(estimator="exact")
            explained = explain(model, data, players=players, value=value, budget=10**8)
            row += [explained.evaluations, time.process_time() - start]
        spent.append(row)
        print("cost", *counted[-1], *(f"{number:.4g}" for number in row), flush=True)
    every, table = np.array(counted), np.array(spent[1:])  # the first compiles
    ratio = every[:, 1] / every[:, 0]
    print(
        f"{len(every)} molecules: connected sets of nodes median "
        f"{np.median(every[:, 0]):.0f}, most "
        f"{every[:, 0].max()}; of edges median {np.median(every[:, 1]):.0f}, most "
        f"{every[:, 1].max()}; ratio {ratio.min():.1f} to {ratio.max():.1f}, median "
        f"{np.median(ratio):.1f}. CPU s of {len(table)}: nodes "
        f"median {np.median(table[:, 1]):.3f}, "
        f"sum {table[:, 1].sum():.2f}; edges median {np.median(table[:, 3]):.3f}, sum "
        f"{table[:, 3].sum():.2f}; ratio of sums {table[:, 3].sum() / table[:, 1].sum():.1f}"
    )


#: Columns of the table on the page, and the data that has them.
_SHOWN = {"edge_auroc": "AUROC", "fidelity": "fidelity"}
_DATA = {"mutag": "MUTAG", "ba_2motifs": "BA-2Motifs", "ba_shapes": "BA-Shapes"}


def tables() -> None:
    """The table of the page, as Markdown."""
    print("\n".join(edge_table()))


def edge_table() -> list[str]:
    """Means and intervals over the graphs of every dataset, a line for every method."""
    found: dict[str, dict[str, list[dict[str, str]]]] = defaultdict(lambda: defaultdict(list))
    for row in rows_of(ROWS):
        found[row["method"]][row["data"]].append(row)
    graphs = {name: max(len(by_data[name]) for by_data in found.values()) for name in _DATA}
    columns = [f"{_DATA[n]} ({graphs[n]}): {title}" for n in _DATA for title in _SHOWN.values()]
    lines = [f"| method | {' | '.join(columns)} |", "|---|" + "---|" * len(columns)]
    for method, by_data in found.items():
        cells = []
        for name in _DATA:
            for metric in _SHOWN:
                numbers = [float(row[metric]) for row in by_data[name]]
                mean, low, high = interval(numbers) if numbers else (0.0, 0.0, 0.0)
                cells.append(f"{mean:.2f} [{low:.2f}, {high:.2f}]" if numbers else "–")
        lines.append(f"| {method} | {' | '.join(cells)} |")
    return lines


if __name__ == "__main__":
    main()
