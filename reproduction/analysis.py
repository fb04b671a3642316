"""From the rows to the figures of the tables: means over graphs, choices, and intervals."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx.metrics import SPARSITIES, Difference, paired_bootstrap, share_of_gap
from reproduction.methods import METHODS, Method
from reproduction.results import Results
from reproduction.setups import Setup

#: Prefixes of columns by rule of selection: Algorithm 1's, and positive scores only.
RULES = {"top k": "", "positive": "positive_"}
RANDOM = tuple(name for name in METHODS if name.startswith("random ") and "refined" not in name)


@dataclass(frozen=True)
class Curves:
    """Metrics of one method on some graphs: (graphs, sparsities).

    The rule of selection is that of the harmonic fidelity; the others are of Algorithm 1's.
    """

    method: Method
    rule: str
    harmonic: NDArray[np.float64]
    fidelity: NDArray[np.float64]
    inverse: NDArray[np.float64]
    sparsity: NDArray[np.float64]
    cpu_seconds: NDArray[np.float64]
    evaluations: NDArray[np.float64]
    entropy: NDArray[np.float64]
    exact: NDArray[np.bool_]

    @property
    def means(self) -> NDArray[np.float64]:
        """Mean harmonic fidelity at every sparsity."""
        found: NDArray[np.float64] = self.harmonic.mean(axis=0)
        return found

    @property
    def best(self) -> float:
        """The paper's figure: the best of the sparsities."""
        return float(self.means.max())


@dataclass(frozen=True)
class Chosen:
    """A method with rule and sparsity chosen on the validation split, judged once on the test."""

    method: Method
    rule: str
    level: int
    validation: float
    test: NDArray[np.float64]

    @property
    def mean(self) -> float:
        """Mean over test graphs."""
        return float(self.test.mean())


class Found:
    """What there is of one setup, as it was stored when this was made."""

    def __init__(self, setup: Setup, folder: Path) -> None:
        self.setup = setup
        self.results = Results(folder, setup.name)
        self.missing = self.results.missing
        self._graphs = {split: self.results.graphs(split) or () for split in ("val", "test")}
        self._curves: dict[tuple[str, str, str, bool], Curves | None] = {}

    def graphs(self, split: str) -> tuple[int, ...]:
        """The graphs of a split that are explained."""
        return self._graphs[split]

    def curves(
        self, name: str, *, split: str = "test", rule: str = "top k", few: bool = False
    ) -> Curves | None:
        """A method's metrics on all graphs it was asked for, or on the few; None if not there."""
        key = (name, split, rule, few)
        if key not in self._curves:  # the tables ask for the same curves many times
            self._curves[key] = self._read_curves(name, split, rule, few)
        return self._curves[key]

    def _read_curves(self, name: str, split: str, rule: str, few: bool) -> Curves | None:
        method = METHODS[name]
        if self.missing or split not in method.splits:
            return None
        if method.only and self.setup.name not in method.only:
            return None
        graphs = self.graphs(split)
        if few:
            graphs = self.setup.few_graphs(graphs, split)
        elif method.slow and len(graphs) > self.setup.few:
            return None
        rows = self.results.rows(method, split, graphs)
        if rows is None:
            return None
        start = RULES[rule]
        return Curves(
            method,
            rule,
            harmonic=_numbers(rows[start + "harmonic_fidelity"]),
            fidelity=_numbers(rows["fidelity"]),
            inverse=_numbers(rows["inverse_fidelity"]),
            sparsity=_numbers(rows["sparsity"]),
            cpu_seconds=_numbers(rows["cpu_seconds"]),
            evaluations=_numbers(rows["evaluations"]),
            entropy=_numbers(rows["entropy"]),
            exact=np.array([bool(one) for one in rows["exact"]]),
        )

    def best(self, name: str, *, few: bool = False) -> float | None:
        """Best harmonic fidelity over sparsities and rules on the test split."""
        found = [self.curves(name, rule=rule, few=few) for rule in RULES]
        there = [one.best for one in found if one is not None]
        return max(there) if there else None

    def random(self, *, few: bool = False, split: str = "test") -> NDArray[np.float64] | None:
        """Mean harmonic fidelity of random selections at every sparsity, over their seeds."""
        found = [self.curves(name, few=few, split=split) for name in RANDOM]
        there = [one.means for one in found if one is not None]
        return np.mean(there, axis=0) if there else None

    def share(self, value: float, *, few: bool = False) -> float | None:
        """How much of the way from random to best found a figure goes."""
        random, best = self.random(few=few), self.best("best found", few=few)
        if random is None or best is None:
            return None
        return share_of_gap(value, random=float(random.max()), best=best)

    def choose(self, names: Iterable[str], *, few: bool = False) -> Chosen | None:
        """The one of some methods, rules and sparsities that is best on the validation graphs."""
        best: Chosen | None = None
        for name in names:
            for rule in RULES:
                val = self.curves(name, split="val", rule=rule, few=few or METHODS[name].slow)
                test = self.curves(name, rule=rule, few=few)
                if val is None or test is None:
                    continue
                level = int(np.argmax(val.means))
                mean = float(val.means[level])
                if best is None or mean > best.validation + 1e-9:
                    best = Chosen(METHODS[name], rule, level, mean, test.harmonic[:, level])
        return best

    def compare(self, one: Chosen, other: Chosen) -> Difference:
        """One less the other, paired over graphs."""
        return paired_bootstrap(one.test, other.test, seed=0)


def of_role(role: str) -> tuple[str, ...]:
    """Names of the methods with a role."""
    return tuple(name for name, method in METHODS.items() if method.role == role)


def _numbers(values: Sequence[Any]) -> NDArray[np.float64]:
    return np.array([np.nan if one is None else one for one in values], dtype=np.float64)


__all__ = ["RANDOM", "RULES", "SPARSITIES", "Chosen", "Curves", "Found", "of_role"]
