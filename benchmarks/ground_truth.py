"""Do explainers find what was planted: AUROC on the two datasets that ship, with their networks.

The motif's nodes in `motifs`, the nitro group and the carbon it sits on in `nitro` (molecules that
have one). A search that gives sets instead of scores is judged by how often a node is selected over
all sizes. The network decides as it likes, so this measures network and explainer together.
"""

from __future__ import annotations

import os
import time

import numpy as np
import torch

from gstarx import datasets
from gstarx.explainers import create, names
from gstarx.explanation import Explanation
from gstarx.metrics import auroc
from gstarx.models import pretrained

_GRAPHS = 20
#: Less work where the published amount takes minutes.
_QUICK = {
    "gnnexplainer": {"epochs": 300},
    "orphicx": {"epochs": 100, "alphas": 10, "betas": 20},
    "subgraphx": {"rollouts": 10, "sample_num": 30},
    "gstarx_published": {"baseline": 0.5},
}


def main() -> None:
    torch.set_num_threads(1)
    only = os.environ.get("GSTARX_EXPLAINERS", "").split() or names()
    for name in ("motifs", "nitro"):
        dataset = datasets.load(name)
        model, _ = pretrained(name)
        graphs = [g for g in dataset.split("test") if bool(g.truth.any())][:_GRAPHS]
        print(f"{name}: {len(graphs)} graphs of {np.mean([g.num_nodes for g in graphs]):.1f} nodes")
        found = {}
        for explainer_name in only:
            explainer = create(explainer_name, dataset=name, **_QUICK.get(explainer_name, {}))
            if explainer.requires_training:
                explainer.fit(model, dataset.split("train")[:100], seed=0)
            start = time.process_time()
            found[explainer_name] = np.array(
                [
                    auroc(_scores(explainer.explain(model, g, seed=i), g.num_nodes), g.truth)
                    for i, g in enumerate(graphs)
                ]
            )
            spent = (time.process_time() - start) / len(graphs)
            error = found[explainer_name].std(ddof=1) / np.sqrt(len(graphs))
            print(
                f"  {explainer_name:22} {found[explainer_name].mean():.3f} ± {error:.3f}  "
                f"{spent:.3f} CPU s",
                flush=True,
            )


def _scores(answer: Explanation, num_nodes: int) -> np.ndarray:
    if answer.node_scores is not None:
        return answer.node_scores.numpy()
    scores = np.zeros(num_nodes)
    for size in range(1, num_nodes):
        scores[answer.select(size=size)] += 1
    return scores
