"""Every metric on the paper's 20 MUTAG test molecules and GCN, random below and best above.

Means over molecules. The baseline of the games is the mean probability over the test split, as in
the published code. Two rules of selection: Algorithm 1's, and no more nodes than have a positive
score. Refined rows are told the metric, and stand apart.
"""

from __future__ import annotations

import numpy as np
from torch_geometric.data import Data

from benchmarks.published import mutag
from gstarx import GStarX, Judge, expected_output, explain_many
from gstarx.metrics import (
    METRICS,
    SPARSITIES,
    FidelityCurve,
    average,
    paired_bootstrap,
    select_nodes,
    share_of_gap,
)
from gstarx.metrics.selection import selection_size

_SEEDS = 3
_RANDOM = 20
_REFINING = 500


def main() -> None:
    if (found := mutag()) is None:
        return
    model, graphs, _ = found
    baseline = expected_output(model, graphs)
    scores = _scores(model, graphs, baseline)
    curves: dict[str, FidelityCurve] = {}
    for positive_only in (False, True):
        rule = "positive scores only" if positive_only else "Algorithm 1's top k"
        print(f"{rule}: H-fidelity at sparsity {', '.join(map(str, SPARSITIES))}")
        for name, own in scores.items():
            curve = Judge(model).curve(graphs, own, positive_only=positive_only)
            curves[f"{name}, {rule}"] = curve
            _show(name, curve["harmonic_fidelity"])
        print()
    randoms = _random_curves(model, graphs)
    random = np.mean([curve["harmonic_fidelity"] for curve in randoms], axis=0)
    best, optimal = _best(model, graphs)
    _show(f"random, mean of {_RANDOM}", random)
    _show(f"best found ({optimal} of {len(graphs) * len(SPARSITIES)} proved optimal)", best)
    print("\ntold the metric, at most 500 evaluations each:")
    rng = np.random.default_rng(0)
    chance = [rng.random(int(data.num_nodes or 0)) for data in graphs]
    for name, own in (("exact HN, refined", scores["exact HN"]), ("random, refined", chance)):
        _show(name, _refined(model, graphs, own))
    print("\nall metrics at each one's best sparsity (positive scores only):")
    print(" " * 28, "  ".join(f"{name.replace('_', ' '):>27}" for name in METRICS))
    for name in scores:
        curve = curves[f"{name}, positive scores only"]
        point = curve.points[int(np.argmax(curve["harmonic_fidelity"]))]
        share = share_of_gap(point.harmonic_fidelity, random=random.max(), best=best.max())
        numbers = "  ".join(f"{getattr(point, metric):27.4f}" for metric in METRICS)
        print(f"{name:28} {numbers}  {share:.0%} of the way from random to best")
    at = SPARSITIES.index(0.7)
    one, other = (
        [g.harmonic_fidelity for g in curves[f"{name}, positive scores only"].graphs[at]]
        for name in ("exact Myerson", "exact HN")
    )
    print(f"\nMyerson less HN at 0.7, paired: {paired_bootstrap(one, other, seed=0)}")


def _scores(model: object, graphs: list[Data], baseline: object) -> dict[str, list]:
    exact = {"baseline": baseline, "budget": 1_000_000, "progress": False}
    found = {
        "exact HN": explain_many(model, graphs, value="hn", **exact),
        "exact Myerson": explain_many(model, graphs, value="myerson", **exact),
    }
    assert all(e.exact for own in found.values() for e in own)
    published = GStarX.as_published(baseline=baseline)
    options = {"value": published.value, **published.game_options}
    for seed in range(_SEEDS):
        name = f"as published, seed {seed}"
        found[name] = explain_many(model, graphs, seed=seed, progress=False, **options)
    return {name: [e.scores for e in own] for name, own in found.items()}


def _random_curves(model: object, graphs: list[Data]) -> list[FidelityCurve]:
    rng = np.random.default_rng(0)
    return [
        Judge(model).curve(graphs, [rng.random(int(data.num_nodes or 0)) for data in graphs])
        for _ in range(_RANDOM)
    ]


def _best(model: object, graphs: list[Data]) -> tuple[np.ndarray, int]:
    found = [
        [
            Judge(model).best(data, selection_size(int(data.num_nodes or 0), level), seed=0)
            for data in graphs
        ]
        for level in SPARSITIES
    ]
    optimal = sum(one.optimal for row in found for one in row)
    means = [average(one.evaluation for one in row).harmonic_fidelity for row in found]
    return np.array(means), optimal


def _refined(model: object, graphs: list[Data], scores: list) -> list[float]:
    means = []
    for level in SPARSITIES:
        found = [
            Judge(model).refine(data, select_nodes(own, level), budget=_REFINING).after
            for data, own in zip(graphs, scores, strict=True)
        ]
        means.append(average(found).harmonic_fidelity)
    return means


def _show(name: str, values: object) -> None:
    print(f"{name:48}", "  ".join(f"{value:.4f}" for value in values))
