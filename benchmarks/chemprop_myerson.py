"""Myerson scores of a Chemprop model, against the `myerson` package's explainer of Chemprop.

Both get the same model, an MPNN of Chemprop's default width, and the same molecules. First exact
scores: that package lists all sets of atoms, which takes minutes at 20 atoms and days at 30, so it
is run up to 14 atoms, or up to the number in the variable `GSTARX_MYERSON_ATOMS`. Then estimates
at equal error: the least budget of ours whose error is no larger than that of its samples. CPU
seconds, errors as root mean squares over atoms and seeds.
"""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from gstarx import explain

#: Drug-like molecules by their number of atoms.
MOLECULES = {
    8: "CC(=O)NCCCO",
    11: "CC(=O)Nc1ccc(O)cc1",
    14: "CC(=O)Nc1ccc(OCC)cc1C",
    20: "COc1ccc(CCNC)c(OC)c1CCOC(C)=O",
    30: "COc1cc(CNC(=O)CCCCC=CC(C)C)ccc1OC(=O)c1ccccc1",
}
_SAMPLES = (30, 100, 300)
_BUDGETS = (40, 60, 90, 130, 200, 300, 450, 700, 1000, 1500, 2200, 3300, 5000, 7500, 11000)
_SEEDS = range(3)


def main() -> None:
    warnings.simplefilter("ignore")
    from chemprop import nn
    from chemprop.featurizers import SimpleMoleculeMolGraphFeaturizer
    from chemprop.models import MPNN
    from myerson.chemprop_explain import MyersonExplainer, MyersonSamplingExplainer
    from rdkit import Chem

    from gstarx.integrations import chemprop

    torch.set_num_threads(1)
    torch.manual_seed(0)
    mpnn = MPNN(nn.BondMessagePassing(), nn.MeanAggregation(), nn.RegressionFFN()).eval()
    model = chemprop.wrap(mpnn)
    most = int(os.environ.get("GSTARX_MYERSON_ATOMS", "14"))
    explain(model, chemprop.graph("CCO"), mode="regression", value="myerson", share=True)
    for atoms, smiles in MOLECULES.items():
        graph = chemprop.graph(smiles)
        molgraph = SimpleMoleculeMolGraphFeaturizer()(Chem.MolFromSmiles(smiles))

        def ours(graph: Any = graph, **options: Any) -> Any:
            shared = {"mode": "regression", "value": "myerson", "baseline": 0}
            return explain(model, graph, **shared, **options)

        def sampled(samples: int, seed: int, molgraph: Any = molgraph) -> Any:
            explainer = MyersonSamplingExplainer(
                molgraph, mpnn, seed=seed, number_of_samples=samples
            )
            return explainer.sample_all_myerson_values()

        ours()
        spent, exact = _timed(ours)
        scores = exact.scores.numpy()
        line = f"{atoms:2d} atoms: {spent:.3f} s, exact={exact.exact}, {exact.evaluations:,} parts"
        if atoms <= most:
            explainer = MyersonExplainer(molgraph, mpnn)
            other, theirs = _timed(explainer.calculate_all_myerson_values)
            gap = np.abs(np.asarray(theirs).reshape(-1) - scores).max()
            line += f"; myerson exact {other:.2f} s, {other / spent:.0f} times more, largest "
            line += f"difference {gap:.1e} where scores reach {np.abs(scores).max():.2g}"
        print(line, flush=True)
        if atoms >= 20:
            _equal_error(ours, sampled, scores)


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    with torch.no_grad():
        answer = call()
    return time.process_time() - start, answer


def _error(call: Callable[[int], Any], scores: Any) -> tuple[float, float]:
    """CPU seconds of a call with a seed, and the error of its scores."""
    runs = [_timed(lambda seed=seed: call(seed)) for seed in _SEEDS]
    gaps = [np.asarray(values).reshape(-1) - scores for _, values in runs]
    return min(spent for spent, _ in runs), float(np.sqrt(np.mean(np.square(gaps))))


def _equal_error(ours: Any, sampled: Any, scores: Any) -> None:
    print(f"   estimates, where scores have a standard deviation of {scores.std():.2g}:")
    budgets = list(_BUDGETS)
    for samples in _SAMPLES:
        other, gap = _error(lambda seed, samples=samples: sampled(samples, seed), scores)
        spent, error, budget = 0.0, np.inf, 0
        while error > gap:
            budget = budgets[0]

            def estimate(seed: int, budget: int = budget) -> Any:
                found = ours(estimator="sampled", budget=budget, seed=seed)
                return found.scores.numpy()

            spent, error = _error(estimate, scores)
            if error > gap:
                budgets.pop(0)
        print(
            f"   myerson, {samples} samples: {other:.2f} s, error {gap:.1e}; ours, "
            f"{budget} evaluations: {spent:.3f} s, error {error:.1e}: {other / spent:.0f} times",
            flush=True,
        )
