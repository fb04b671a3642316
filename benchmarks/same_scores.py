"""Scores of every explainer on nitro, motifs and MUTAG, to compare two versions of the package.

``python -m benchmarks.same_scores write FILE`` with each version on the path, then
``python -m benchmarks.same_scores compare OLD NEW``: the largest difference of every explainer,
relative to the spread of its scores. Explainers with a budget are run with their default, which
may differ between versions so that one is exact where the other estimates, and with one budget for
both. The comparison says where only the former differs, and by how many standard errors.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch

from gstarx import datasets, expected_output
from gstarx.explainers import create, names
from gstarx.models import pretrained
from gstarx_bench.models import load_published_checkpoint

_GRAPHS = 4
#: One budget for both versions, for the explainers that have one.
_BUDGET = 20_000
_BUDGETED = ("gstarx", "hn", "myerson", "shapley", "banzhaf")
_QUICK: dict[str, dict[str, Any]] = {
    "gnnexplainer": {"epochs": 50},
    "orphicx": {"epochs": 3},
    "pgexplainer": {"epochs": 2},
    "subgraphx": {"rollouts": 5, "sample_num": 20},
}


def networks() -> list[tuple[str, Any, Any]]:
    found = [(name, pretrained(name)[0], datasets.load(name)) for name in ("nitro", "motifs")]
    data, weights = os.environ.get("GSTARX_DATA"), os.environ.get("GSTARX_CHECKPOINTS")
    if data and weights:
        checkpoint = Path(weights) / "mutag" / "gcn_3l_best.pth"
        found.append(("mutag", load_published_checkpoint(checkpoint), datasets.load("mutag", data)))
    return found


def runs() -> list[tuple[str, str, dict[str, Any]]]:
    """Label, name and options of everything that is compared."""
    every = [(name, name, _QUICK.get(name, {})) for name in names()]
    fixed = [(f"{name}@{_BUDGET}", name, {"budget": _BUDGET}) for name in _BUDGETED]
    return every + fixed


def row(explanation: Any) -> dict[str, Any]:
    """What is compared of an explanation, of either version of the package."""
    # the version before the redesign keeps these under details
    details = getattr(explanation, "details", None)
    if details is None:
        exact, errors = explanation.exact, explanation.std_errors
    else:
        exact, errors = details.get("exact"), details.get("node_std_error")
    scores = explanation.node_scores
    return {
        "scores": None if scores is None else np.asarray(scores, dtype=float).tolist(),
        "sets": sorted(sorted(map(int, nodes)) for nodes in explanation.sets),
        "exact": exact,
        "errors": None if errors is None else np.asarray(errors, dtype=float).tolist(),
    }


def write(path: Path) -> None:
    torch.set_num_threads(1)
    rows: dict[str, Any] = {}
    for dataset, model, graphs in networks():
        training = graphs.split("train")[:20]
        baseline = expected_output(model, training)
        for label, name, options in runs():
            if name == "gstarx_published":
                options = {**options, "baseline": baseline}
            explainer = create(name, dataset=dataset, **options)
            if explainer.requires_training:
                explainer.fit(model, training, seed=0)
            try:
                for at, data in enumerate(graphs.split("test")[:_GRAPHS]):
                    rows[f"{label} {dataset} {at}"] = row(explainer.explain(model, data, seed=at))
                print(f"{label} on {dataset}", flush=True)
            except ValueError as error:  # attention weights of a network without attention
                print(f"{label} on {dataset} is left out: {error}", flush=True)
            path.write_text(json.dumps(rows))


def difference(old: dict[str, Any], new: dict[str, Any]) -> float:
    """The largest difference of two results, relative to the spread of the old scores."""
    if old["scores"] is None:
        return 0.0 if new["sets"] == old["sets"] else float("inf")
    spread = float(np.std(old["scores"])) or 1.0
    return float(np.abs(np.subtract(new["scores"], old["scores"])).max()) / spread


def in_errors(old: dict[str, Any], new: dict[str, Any]) -> float:
    """The root mean square of the differences, in standard errors of both estimates together."""
    rounding = 1e-6 * (float(np.std(old["scores"])) or 1.0)
    variances = sum(np.square(np.array(one["errors"], dtype=float)) for one in (old, new))
    gaps = np.subtract(new["scores"], old["scores"])
    return float(np.sqrt(np.mean(np.square(gaps) / (variances + rounding**2))))


def compare(old: Path, new: Path) -> None:
    before, after = (json.loads(path.read_text()) for path in (old, new))
    shared = [key for key in before if key in after]
    columns = ("no estimate", "one is an estimate", "both are estimates")
    print("Largest differences relative to the spread of the scores, and in standard errors:")
    print(f"{'explainer':24}" + "".join(f"{column:>30}" for column in columns))
    worst = [0.0] * 3
    for label in dict.fromkeys(key.split()[0] for key in shared):
        cells: list[list[tuple[float, float]]] = [[], [], []]
        for key in (key for key in shared if key.split()[0] == label):
            one, other = before[key], after[key]
            estimates = (one["exact"] is False) + (other["exact"] is False)
            errors = in_errors(one, other) if estimates else 0.0
            cells[estimates].append((difference(one, other), errors))
        line = f"{label:24}"
        for at, cell in enumerate(cells):
            gap, errors = (max((pair[i] for pair in cell), default=0.0) for i in range(2))
            worst[at] = max(worst[at], gap)
            text = f"{gap:.1e}" + (f" ({errors:.2f} s.e.)" if at else "") + f" of {len(cell)}"
            line += f"{text if cell else '':>30}"
        print(line)
    print(
        f"{len(shared)} explanations. Largest difference where neither is an estimate: "
        f"{worst[0]:.1e}; where one is, because default budgets differ: {worst[1]:.1e}; where both "
        f"are: {worst[2]:.1e}."
    )


if __name__ == "__main__":
    command, *files = sys.argv[1:]
    {"write": write, "compare": compare}[command](*map(Path, files))
