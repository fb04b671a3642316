"""One thing changed at a time, paired over graphs; and everybody with as many evaluations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from gstarx.metrics import paired_bootstrap
from reproduction.analysis import Found
from reproduction.grids import Cell, Grid


@dataclass(frozen=True)
class Change:
    """What is changed, from which method to which others."""

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
        "Truncated or exact inside subsets", "as published, f0 of training", ("HN, subsets of 10",)
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
    Change("What is shared (probabilities)", "HN", ("HN of logarithms", "HN of logits")),
    Change(
        "What is shared (probabilities)", "Banzhaf", ("Banzhaf of logarithms", "Banzhaf of logits")
    ),
    Change("Baseline f0 (training split)", "HN", ("HN, f0 of test", "HN, f0 = 0")),
    Change("Baseline f0 (training split)", "Shapley", ("Shapley, f0 = 0",)),
    Change(
        "Baseline f0 (test split), as published",
        "as published",
        ("as published, f0 of training", "as published, f0 = 0"),
    ),
    Change("OrphicX trained shortly or in full", "OrphicX", ("OrphicX, full training",)),
    Change("Seed, as published", "as published", ("as published, seed 1", "as published, seed 2")),
)


def changes(found: Mapping[str, Found], setups: Sequence[str]) -> Grid:
    """Mean over sparsities and graphs: what the change gains, with a paired bootstrap interval.

    In thousandths. Means over sparsities, because the best of eight of two methods may lie at
    different ones.
    """
    rows: list[tuple[Cell, ...]] = []
    for change in CHANGES:
        said = f"{change.title}: instead of *{change.reference}*"
        for other in change.others:
            cells = [_gain(found[name], change.reference, other) for name in setups]
            if any(cell is not None for cell in cells):
                rows.append((said, other, *cells))
                said = ""  # once for all of its rows
    return Grid("ablation", ("change", "to", *setups), tuple(rows))


def equal_evaluations(found: Mapping[str, Found], setups: Sequence[str]) -> Grid:
    """Best of eight sparsities where everybody may evaluate as many coalitions."""
    rows: list[tuple[Cell, ...]] = []
    for label in ("HN", "Myerson", "Shapley", "Banzhaf", "GraphSVX"):
        for budget in (300, 1_000, 2_000):
            method = label if budget == 2_000 else f"{label}, {budget:,} evaluations"
            if method == "GraphSVX":
                continue  # without a budget it has its own
            cells: list[Cell] = []
            for name in setups:
                curves = found[name].curves(method)
                spent = None if curves is None else float(np.mean(curves.evaluations))
                best = found[name].best(method)
                cells += [best, None if spent is None else round(spent)]
            rows.append((label, f"{budget:,}", *cells))
    header = [part for name in setups for part in (name, "spent")]
    return Grid("equal_evaluations", ("method", "evaluations at most", *header), tuple(rows))


def _gain(found: Found, reference: str, other: str) -> Cell:
    before, after = found.curves(reference), found.curves(other)
    if after is None:
        # a slow one has explained few graphs
        before, after = found.curves(reference, few=True), found.curves(other, few=True)
    if before is None or after is None:
        return None
    gain = paired_bootstrap(after.harmonic.mean(axis=1), before.harmonic.mean(axis=1), seed=0)
    mark = "**" if gain.low > 0 or gain.high < 0 else ""
    low, mean, high = (1_000 * bound for bound in (gain.low, gain.mean, gain.high))
    return f"{mark}{mean:+.1f}{mark} [{low:+.1f}, {high:+.1f}]"
