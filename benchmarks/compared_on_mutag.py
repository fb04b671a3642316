"""All explainers on the paper's 20 MUTAG test molecules and GCN, by one evaluator.

Best harmonic fidelity of the paper's eight sparsities under both rules of selection, beside the
paper's own column, CPU seconds per molecule (training apart), and for SubgraphX the bare forward
passes over the very node sets it evaluated.
"""

from __future__ import annotations

import time

import numpy as np
from torch_geometric.data import Data

from benchmarks.forward import best_forward_seconds
from benchmarks.published import mutag
from gstarx import GNNGame, Judge, datasets, expected_output
from gstarx.explainers import create, names
from gstarx.explanation import Explanation
from gstarx.gnn import game as games
from gstarx.metrics import SPARSITIES, average, share_of_gap
from gstarx.metrics.selection import selection_size
from reproduction.paper import paper

#: Table 1 of the paper, the MUTAG row.
_TABLE = paper()["table_1"]
_PAPER = {
    {"GStarX": "gstarx_published"}.get(name, name.lower()): figure
    for name, figure in zip(_TABLE["methods"], _TABLE["mutag"], strict=True)
}
_WITH_BASELINE = ("hn", "gstarx_published", "myerson", "shapley", "leave_one_out")


def main() -> None:
    if (found := mutag()) is None:
        return
    model, graphs, _ = found
    baseline = expected_output(model, graphs)
    training = datasets.load("mutag").split("train")
    best = _best(model, graphs)
    rows = []
    for name in names():
        if name == "random":
            continue
        options = {"baseline": baseline} if name in (*_WITH_BASELINE, "single_node") else {}
        explainer = create(name, dataset="mutag", **options)
        start = time.process_time()
        if explainer.requires_training:
            explainer.fit(model, training, seed=0)
        trained = time.process_time() - start
        start = time.process_time()
        answers = [explainer.explain(model, data, seed=i) for i, data in enumerate(graphs)]
        spent = (time.process_time() - start) / len(graphs)
        rows.append((name, answers, trained, spent))
        print(f"{name} done", flush=True)
    draws = [
        [create("random").explain(model, data, seed=[turn, i]) for i, data in enumerate(graphs)]
        for turn in range(20)
    ]
    random = float(np.mean([_means(model, graphs, own, "top") for own in draws], axis=0).max())
    print(f"\n{'explainer':22} {'top k':>7} {'positive':>9} {'paper':>7} {'gap':>5}  CPU s (train)")
    for name, answers, trained, spent in rows:
        top, positive = (max(_means(model, graphs, answers, rule)) for rule in ("top", "positive"))
        share = share_of_gap(top, random=random, best=best)
        paper = f"{_PAPER[name]:.4f}" if name in _PAPER else ""
        train = f" ({trained:.0f})" if trained > 0.5 else ""
        print(f"{name:22} {top:7.4f} {positive:9.4f} {paper:>7} {share:5.0%}  {spent:.3f}{train}")
    print(f"{'random, mean of 20':22} {random:7.4f}")
    print(f"{'best found':22} {best:7.4f}")
    _search_cost(model, graphs)


def _means(model: object, graphs: list[Data], answers: list[Explanation], rule: str) -> list[float]:
    selections = [
        [answer.select(sparsity=level, rule=rule) for level in SPARSITIES] for answer in answers
    ]
    found = Judge(model).many(graphs, selections)
    return [average(row[at] for row in found).harmonic_fidelity for at in range(len(SPARSITIES))]


def _best(model: object, graphs: list[Data]) -> float:
    means = []
    for level in (0.5, 0.7):
        found = [
            Judge(model).best(data, selection_size(int(data.num_nodes or 0), level), seed=0)
            for data in graphs
        ]
        means.append(average(one.evaluation for one in found).harmonic_fidelity)
    return max(means)


def _search_cost(model: object, graphs: list[Data]) -> None:
    """SubgraphX against the bare forward passes over its distinct node sets."""
    kept: list[GNNGame] = []

    class Kept(GNNGame):
        def __init__(self, *arguments: object, **options: object) -> None:
            super().__init__(*arguments, **options)  # type: ignore[arg-type]
            kept.append(self)

    import gstarx.explainers.base as module

    module.GNNGame = Kept  # type: ignore[misc]
    try:
        explainer = create("subgraphx", dataset="mutag")
        start = time.process_time()
        for i, data in enumerate(graphs):
            explainer.explain(model, data, seed=i)
        spent = time.process_time() - start
    finally:
        module.GNNGame = games.GNNGame  # type: ignore[misc]
    work = [(game, game._scores.cache.masks(0, game.evaluations)) for game in kept]
    bare, size = best_forward_seconds(work, repeats=1)
    sets = sum(game.evaluations for game in kept)
    print(
        f"\nSubgraphX: {spent / len(graphs):.2f} CPU s per molecule for "
        f"{sets / len(graphs):,.0f} distinct node sets; bare forward passes over them "
        f"{bare / len(graphs):.2f} s in batches of {size} nodes; ratio {spent / bare:.2f}"
    )
