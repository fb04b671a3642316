"""Ablations, one setting at a time and paired over graphs, and comparisons at equal budgets."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gstarx.metrics import paired_bootstrap
from reproduction.grids import Cell, Grid
from reproduction.results import SetupResults


@dataclass(frozen=True)
class Change:
    """An ablation: the reference method, and the methods that differ from it in one setting."""

    title: str
    reference: str
    others: tuple[str, ...]


CHANGES = (
    Change(
        "Size of the subsets, as published (10)",
        "as published",
        tuple(f"as published, subsets of {size}" for size in (4, 6, 8, 12)),
    ),
    Change(
        "Size of the subsets, exact values inside (10)",
        "HN, subsets of 10",
        tuple(f"HN, subsets of {size}" for size in (4, 6, 8, 12)),
    ),
    Change(
        "Number of subsets (as many as nodes)",
        "HN, subsets of 10",
        ("HN, 30 subsets", "HN, 100 subsets", "HN, 300 subsets"),
    ),
    Change("Random or k-hop subsets", "HN, subsets of 10", ("HN, subsets of 10, k-hop",)),
    Change(
        "Truncated or exact values inside subsets",
        "as published, f0 of training",
        ("HN, subsets of 10",),
    ),
    Change("Subsets or the whole graph", "HN, subsets of 10", ("HN",)),
    Change("Superadditive cover", "HN, subsets of 10", ("HN, subsets of 10, cover",)),
    Change(
        "The value, on the same subsets",
        "HN, subsets of 10",
        ("Myerson, subsets of 10", "Shapley, subsets of 10"),
    ),
    Change("The value, on the same subsets", "HN, subsets of 6", ("Shapley, subsets of 6",)),
    Change(
        "The value, on the whole graph",
        "HN",
        ("Myerson", "Shapley", "Banzhaf", "Banzhaf, presence 0.3", "Banzhaf, presence 0.7"),
    ),
    Change("L-hop cutoff", "Shapley", ("Shapley within 1 hops", "Shapley within 3 hops")),
    Change("Payoff (probabilities)", "HN", ("HN of logarithms", "HN of logits")),
    Change("Payoff (probabilities)", "Banzhaf", ("Banzhaf of logarithms", "Banzhaf of logits")),
    Change("Baseline f0 (training split)", "HN", ("HN, f0 of test", "HN, f0 = 0")),
    Change("Baseline f0 (training split)", "Shapley", ("Shapley, f0 = 0",)),
    Change(
        "Baseline f0 (test split), as published",
        "as published",
        ("as published, f0 of training", "as published, f0 = 0"),
    ),
    Change("OrphicX, short or full training", "OrphicX", ("OrphicX, full training",)),
    Change("Seed, as published", "as published", ("as published, seed 1", "as published, seed 2")),
)


def changes(results: Mapping[str, SetupResults], setups: Sequence[str]) -> Grid:
    """Gain of each change, averaged over sparsities and graphs, with a paired bootstrap interval.

    In thousandths. Averaged over sparsities because two methods may peak at different ones.
    """
    rows: list[tuple[Cell, ...]] = []
    for change in CHANGES:
        title = f"{change.title}: instead of *{change.reference}*"
        for other in change.others:
            cells = [_gain(results[name], change.reference, other) for name in setups]
            if any(cell is not None for cell in cells):
                rows.append((title, other, *cells))
                title = ""  # shown in the first row only
    return Grid("ablation", ("change", "to", *setups), tuple(rows))


def equal_evaluations(results: Mapping[str, SetupResults], setups: Sequence[str]) -> Grid:
    """Best of eight sparsities with the same budget of evaluated coalitions for every method."""
    rows: list[tuple[Cell, ...]] = []
    for label in ("HN", "Myerson", "Shapley", "Banzhaf", "GraphSVX"):
        for budget in (300, 1_000, 2_000):
            method = label if budget == 2_000 else f"{label}, {budget:,} evaluations"
            if method == "GraphSVX":
                continue  # without a budget GraphSVX uses its own number of samples
            cells: list[Cell] = []
            for name in setups:
                curves = results[name].curves(method)
                spent = None if curves is None else float(np.mean(curves.evaluations))
                best = results[name].best(method)
                cells += [best, None if spent is None else round(spent)]
            rows.append((label, f"{budget:,}", *cells))
    header = [part for name in setups for part in (name, "evaluations")]
    return Grid("equal_evaluations", ("method", "budget", *header), tuple(rows))


def _gain(results: SetupResults, reference: str, other: str) -> Cell:
    before, after = results.curves(reference), results.curves(other)
    if after is None:
        # slow methods have explained a subset of the graphs
        before, after = results.curves(reference, few=True), results.curves(other, few=True)
    if before is None or after is None:
        return None
    gain = paired_bootstrap(after.harmonic.mean(axis=1), before.harmonic.mean(axis=1), seed=0)
    mark = "**" if gain.low > 0 or gain.high < 0 else ""
    low, mean, high = (1_000 * bound for bound in (gain.low, gain.mean, gain.high))
    return f"{mark}{mean:+.1f}{mark} [{low:+.1f}, {high:+.1f}]"
