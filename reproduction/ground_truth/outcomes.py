"""What the rows say about every method: agreement with the truth, fidelity and cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from reproduction.ground_truth import FOLDER, NETWORKS, TASKS
from reproduction.ground_truth.methods import METHODS
from reproduction.ground_truth.rows import TruthRows

_RESAMPLES = 2_000


@dataclass(frozen=True)
class Outcome:
    """One method on one setup: its rows that have a defined agreement, and those that failed."""

    graphs: tuple[int, ...]
    agreement: NDArray[np.float64]
    fidelity: NDArray[np.float64]
    robust: NDArray[np.float64]
    evaluations: float | None
    seconds: float
    failed: int

    @property
    def mean(self) -> float:
        """The figure of the tables."""
        return float(self.agreement.mean())

    @property
    def interval(self) -> tuple[float, float]:
        """95 % percentile interval of the mean, by resampling graphs."""
        draws = np.random.default_rng(0).integers(
            len(self.agreement), size=(_RESAMPLES, len(self.agreement))
        )
        low, high = np.quantile(self.agreement[draws].mean(axis=1), (0.025, 0.975))
        return float(low), float(high)

    @property
    def best_fidelity(self) -> float:
        """H-fidelity as the paper reports it: the best mean over the sparsities."""
        return float(np.nanmean(self.fidelity, axis=0).max())


def read_outcomes(folder: Path = FOLDER) -> dict[str, dict[str, Outcome]]:
    """Outcomes by setup and method; methods are compared on the graphs of the sample."""
    outcomes: dict[str, dict[str, Outcome]] = {}
    for task in TASKS:
        for network in NETWORKS:
            setup = f"{task}-{network}"
            rows = TruthRows(setup, folder)
            every = {name: rows.of(method) for name, method in METHODS.items()}
            explained = {name: own for name, own in every.items() if own}
            quick = [set(own) for name, own in explained.items() if not METHODS[name].slow]
            if not quick:
                continue
            common = set.intersection(*quick)
            outcomes[setup] = {}
            for name, own in explained.items():
                outcome = outcome_of([own[at] for at in sorted(own) if at in common])
                if outcome is not None:
                    outcomes[setup][name] = outcome
    return outcomes


def outcome_of(rows: Sequence[Mapping[str, Any]]) -> Outcome | None:
    """What rows of a method say; None where no agreement is defined."""
    defined = [
        row for row in rows if row["agreement"] is not None and np.isfinite(row["agreement"])
    ]
    if not defined:
        return None
    counted = [row["evaluations"] for row in defined if row["evaluations"] is not None]
    robust = [row["robust_fidelity"] for row in defined if row["robust_fidelity"] is not None]
    return Outcome(
        tuple(row["graph"] for row in defined),
        np.array([row["agreement"] for row in defined], dtype=np.float64),
        np.array([row["harmonic_fidelity"] for row in defined], dtype=np.float64),
        np.array(robust, dtype=np.float64),
        float(np.mean(counted)) if counted else None,
        float(np.mean([row["cpu_seconds"] for row in defined])),
        sum(row["error"] is not None for row in rows),
    )
