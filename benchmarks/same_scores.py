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
from gstarx.models import load_published_checkpoint, pretrained

_GRAPHS = 4
#: One budget for both versions, for the explainers that have one.
_BUDGET = 20_000
_BUDGETED = ("gstarx", "myerson", "shapley", "banzhaf")
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
    """The root mean square of the differences, in standard errors of the two estimates together."""
    variances = sum(np.square(np.array(one["errors"], dtype=float)) for one in (old, new))
    gaps = np.subtract(new["scores"], old["scores"])[variances > 0]
    return float(np.sqrt(np.mean(np.square(gaps) / variances[variances > 0]))) if len(gaps) else 0.0


def compare(old: Path, new: Path) -> None:
    before, after = (json.loads(path.read_text()) for path in (old, new))
    shared = [key for key in before if key in after]
    labels = list(dict.fromkeys(key.split()[0] for key in shared))
    print(f"{'explainer':28} {'equally exact':>14} {'only one exact':>20}")
    for label in labels:
        alike, unlike = [], []
        for key in (key for key in shared if key.split()[0] == label):
            one, other = before[key], after[key]
            pair = (difference(one, other), key)
            if one["exact"] == other["exact"]:
                alike.append(pair)
            else:
                unlike.append((*pair, in_errors(one, other)))
        equal = f"{max(alike)[0]:.1e} of {len(alike)}" if alike else ""
        rest = f"{max(unlike)[0]:.1e} of {len(unlike)}" if unlike else ""
        errors = f", {max(gap for *_, gap in unlike):.2f} standard errors" if unlike else ""
        print(f"{label:28} {equal:>14} {rest:>20}{errors}")
    alike = [
        difference(before[key], after[key])
        for key in shared
        if before[key]["exact"] == after[key]["exact"]
    ]
    print(f"{len(shared)} explanations; {len(shared) - len(alike)} are exact in one version only")
    print(f"largest difference of the {len(alike)} others: {max(alike):.1e} of the spread")


if __name__ == "__main__":
    command, *files = sys.argv[1:]
    {"write": write, "compare": compare}[command](*map(Path, files))
