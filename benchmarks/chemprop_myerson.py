"""Myerson scores of a Chemprop model, against the `myerson` package's explainer of Chemprop.

Both get the same model, an MPNN of Chemprop's default width, and the same molecules. First exact
scores: that package lists all sets of atoms, and takes twice as long with every atom, so it is run
up to 14 atoms, or up to the number in the variable `GSTARX_MYERSON_ATOMS`. Then estimates
at equal error: the least budget of ours whose error is no larger than that of its samples. CPU
seconds, errors as root mean squares over atoms and seeds.

What is measured becomes a row of ``benchmarks/results/chemprop_myerson.csv`` at once, and what is
there is not measured again: remove the file to start anew.
"""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from benchmarks.players import add_row, rows_of
from gstarx import Myerson, explain

ROWS = Path(__file__).parent / "results" / "chemprop_myerson.csv"
_FIELDS = ("atoms", "method", "package", "evaluations", "cpu_seconds", "error")
#: Drug-like molecules by their number of atoms.
MOLECULES = {
    8: "CC(=O)NCCCO",
    11: "CC(=O)Nc1ccc(O)cc1",
    14: "CC(=O)Nc1ccc(OCC)cc1C",
    16: "CC(=O)Nc1ccc(OCCOC)cc1C",
    18: "COc1ccc(CCNC)c(OC)c1CCOC",
    20: "COc1ccc(CCNC)c(OC)c1CCOC(C)=O",
    30: "COc1cc(CNC(=O)CCCCC=CC(C)C)ccc1OC(=O)c1ccccc1",
}
_SAMPLES = (30, 100, 300)
_BUDGETS = (40, 60, 90, 130, 200, 300, 450, 700, 1000, 1500, 2200, 3300, 5000, 7500, 11000)
_SEEDS = range(5)


class Case:
    """One molecule, explained by both packages."""

    def __init__(self, atoms: int, mpnn: Any) -> None:
        from chemprop.featurizers import SimpleMoleculeMolGraphFeaturizer
        from rdkit import Chem

        from gstarx.integrations import chemprop

        self.atoms, self.mpnn = atoms, mpnn
        self.model, self.graph = chemprop.wrap(mpnn), chemprop.graph(MOLECULES[atoms])
        assert self.graph.num_nodes == atoms
        self.molgraph = SimpleMoleculeMolGraphFeaturizer()(Chem.MolFromSmiles(MOLECULES[atoms]))

    def ours(self, **options: Any) -> Any:
        options = {"value": "myerson", **options}
        return explain(self.model, self.graph, task="regression", baseline=0, **options)

    def theirs(self) -> Any:
        from myerson.chemprop_explain import MyersonExplainer

        return MyersonExplainer(self.molgraph, self.mpnn).calculate_all_myerson_values()

    def their_estimate(self, samples: int, seed: int) -> Any:
        from myerson.chemprop_explain import MyersonSamplingExplainer

        explainer = MyersonSamplingExplainer(
            self.molgraph, self.mpnn, seed=seed, number_of_samples=samples
        )
        return explainer.sample_all_myerson_values()


def main() -> None:
    warnings.simplefilter("ignore")
    from chemprop import nn
    from chemprop.models import MPNN

    torch.set_num_threads(1)
    torch.manual_seed(0)
    mpnn = MPNN(nn.BondMessagePassing(), nn.MeanAggregation(), nn.RegressionFFN()).eval()
    most = int(os.environ.get("GSTARX_MYERSON_ATOMS", "14"))
    done = {(int(row["atoms"]), row["method"], row["package"]) for row in rows_of(ROWS)}
    for atoms in MOLECULES:
        _measure(Case(atoms, mpnn), atoms <= most, done)
    print("\n".join([*exact_table(), "", *sampled_table()]))


def _measure(case: Case, with_theirs: bool, done: set[tuple[int, str, str]]) -> None:
    case.ours()  # compiled, and warm
    spent, exact = _timed(case.ours)
    assert exact.exact
    scores = exact.scores.numpy()
    if (case.atoms, "exact", "gstarx") not in done:
        _add(case.atoms, "exact", "gstarx", exact.evaluations, spent, 0.0)
    if with_theirs and (case.atoms, "exact", "myerson") not in done:
        spent, theirs = _timed(case.theirs)
        gap = float(np.abs(np.asarray(theirs).reshape(-1) - scores).max())
        _add(case.atoms, "exact", "myerson", 2**case.atoms, spent, gap)
    if case.atoms >= 20 and (case.atoms, "sampled", "gstarx") not in done:
        _equal_error(case, scores)


def _add(
    atoms: int, method: str, package: str, evaluations: int, spent: float, error: float
) -> None:
    row = dict(zip(_FIELDS, (atoms, method, package, evaluations, spent, error), strict=True))
    add_row(ROWS, _FIELDS, row)


def _timed(call: Callable[[], Any]) -> tuple[float, Any]:
    start = time.process_time()
    with torch.no_grad():
        answer = call()
    return time.process_time() - start, answer


def _error(call: Callable[[int], Any], scores: Any) -> tuple[float, float]:
    """Median CPU seconds of calls with a seed each, and the error of their scores."""
    runs = [_timed(lambda seed=seed: call(seed)) for seed in _SEEDS]
    gaps = [np.asarray(values).reshape(-1) - scores for _, values in runs]
    spent = float(np.median([spent for spent, _ in runs]))
    return spent, float(np.sqrt(np.mean(np.square(gaps))))


def _equal_error(case: Case, scores: Any) -> None:
    """Rows of its samples, and of our budgets until the error is below its least."""
    least = math.inf
    for samples in _SAMPLES:
        spent, error = _error(lambda seed, k=samples: case.their_estimate(k, seed), scores)
        _add(case.atoms, "sampled", "myerson", samples, spent, error)
        least = min(least, error)
    for budget in _BUDGETS:
        spent, error = _error(
            lambda seed, k=budget: case.ours(
                value=Myerson(estimator="sampled"), budget=k, seed=seed
            ).scores.numpy(),
            scores,
        )
        _add(case.atoms, "sampled", "gstarx", budget, spent, error)
        if error <= least:
            return


def _of(atoms: int, method: str, package: str) -> list[dict[str, float]]:
    """Stored rows."""
    return [
        {key: float(row[key]) for key in ("evaluations", "cpu_seconds", "error")}
        for row in rows_of(ROWS)
        if (int(row["atoms"]), row["method"], row["package"]) == (atoms, method, package)
    ]


def exact_table() -> list[str]:
    """Rows of Markdown: exact scores by both."""
    lines = [
        "| atoms | exact here | evaluations | exact with `myerson` | ratio | largest difference |",
        "|---|---|---|---|---|---|",
    ]
    for atoms in MOLECULES:
        (ours,) = _of(atoms, "exact", "gstarx")
        line = f"| {atoms} | {ours['cpu_seconds']:.2g} | {ours['evaluations']:,.0f} | "
        theirs = _of(atoms, "exact", "myerson")
        if theirs:
            ratio = theirs[0]["cpu_seconds"] / ours["cpu_seconds"]
            line += f"{theirs[0]['cpu_seconds']:.2g} | {ratio:,.0f} | {theirs[0]['error']:.0e} |"
        else:
            hours = _extrapolated(atoms) / 3600
            line += f"not run; extrapolated: {hours:.0f} hours | | |"
        lines.append(line)
    return lines


def _extrapolated(atoms: int) -> float:
    """CPU seconds of its exact scores, if they go on growing as between 14 and 20 atoms."""
    known = [14, 16, 18, 20]
    spent = [_of(n, "exact", "myerson")[0]["cpu_seconds"] for n in known]
    return float(np.exp(np.polyval(np.polyfit(known, np.log(spent), 1), atoms)))


def sampled_table() -> list[str]:
    """Rows of Markdown: its samples, and our least budget with an error that is no larger."""
    lines = [
        "| atoms | its samples | its seconds | its error | evaluations here | seconds | error | "
        "ratio |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for atoms in MOLECULES:
        for theirs in _of(atoms, "sampled", "myerson"):
            ours = next(
                row for row in _of(atoms, "sampled", "gstarx") if row["error"] <= theirs["error"]
            )
            lines.append(
                f"| {atoms} | {theirs['evaluations']:.0f} | {theirs['cpu_seconds']:.2f} | "
                f"{theirs['error']:.1e} | {ours['evaluations']:.0f} | {ours['cpu_seconds']:.3f} | "
                f"{ours['error']:.1e} | {theirs['cpu_seconds'] / ours['cpu_seconds']:.0f} |"
            )
    return lines


if __name__ == "__main__":
    main()
