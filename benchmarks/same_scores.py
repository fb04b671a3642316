"""Scores of every explainer on nitro, motifs and MUTAG, to compare two versions of the package.

``python -m benchmarks.same_scores write FILE`` with each version on the path, then
``python -m benchmarks.same_scores compare OLD NEW``: the largest difference of every explainer,
relative to the spread of its scores.
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


def write(path: Path) -> None:
    torch.set_num_threads(1)
    scores: dict[str, Any] = {}
    for dataset, model, graphs in networks():
        training = graphs.split("train")[:20]
        baseline = expected_output(model, training)
        for name in names():
            options = dict(_QUICK.get(name, {}))
            if name == "gstarx_published":
                options["baseline"] = baseline
            explainer = create(name, dataset=dataset, **options)
            if explainer.requires_training:
                explainer.fit(model, training, seed=0)
            for at, data in enumerate(graphs.split("test")[:_GRAPHS]):
                found = explainer.explain(model, data, seed=at)
                own = found.node_scores
                listed = None if own is None else np.asarray(own, dtype=float).tolist()
                sets = sorted(sorted(map(int, nodes)) for nodes in found.sets)
                scores[f"{name} {dataset} {at}"] = listed if listed is not None else sets
            print(f"{name} on {dataset}", flush=True)
    path.write_text(json.dumps(scores))


def compare(old: Path, new: Path) -> None:
    before, after = (json.loads(path.read_text()) for path in (old, new))
    worst: dict[str, float] = {}
    for key, reference in before.items():
        name = " ".join(key.split()[:2])
        if reference and isinstance(reference[0], list):
            gap = 0.0 if after[key] == reference else float("inf")
        else:
            spread = float(np.std(reference)) or 1.0
            gap = float(np.abs(np.subtract(after[key], reference)).max()) / spread
        worst[name] = max(worst.get(name, 0.0), gap)
    for name, gap in worst.items():
        print(f"{name:32} {gap:.1e}")
    print(f"largest difference of {len(before)} explanations: {max(worst.values()):.1e}")


if __name__ == "__main__":
    command, *files = sys.argv[1:]
    {"write": write, "compare": compare}[command](*map(Path, files))
