"""What the truths say for and against the default, paired over graphs."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from gstarx.metrics import Difference, paired_bootstrap
from reproduction.grids import Cell, Grid, thousandths
from reproduction.ground_truth import TASKS
from reproduction.ground_truth.methods import METHODS
from reproduction.ground_truth.outcomes import Outcome

DEFAULT = "Myerson, singletons"
_COMPARED = ("HN", "Myerson", "HN, singletons", "Shapley", "Banzhaf", "leave one out", "GraphSVX")
#: Settings of the values that respect the graph.
RESPECTING = tuple(name for name in METHODS if name.startswith(("HN", "Myerson")))
#: The network that is built like the published ones.
_THEIRS = "edge"

Outcomes = Mapping[str, Mapping[str, Outcome]]


def difference(own: Outcome, other: Outcome) -> Difference:
    """The mean difference of two methods on the graphs that both explained."""
    common = sorted(set(own.graphs) & set(other.graphs))
    one, two = (
        np.array([dict(zip(o.graphs, o.agreement, strict=True))[at] for at in common])
        for o in (own, other)
    )
    return paired_bootstrap(one, two, seed=0)


def paired_table(outcomes: Outcomes) -> Grid:
    """The default minus other values, in thousandths; bold excludes zero."""
    rows: list[tuple[Cell, ...]] = []
    for setup, own in outcomes.items():
        if DEFAULT not in own:
            continue
        cells: list[Cell] = []
        for name in _COMPARED:
            gain = difference(own[DEFAULT], own[name]) if name in own else None
            cells.append(None if gain is None else thousandths(gain))
        rows.append((setup, len(own[DEFAULT].graphs), *cells))
    header = ("network", "graphs", *(f"minus {name}" for name in _COMPARED))
    return Grid("truth_paired", header, tuple(rows))


def verdict(outcomes: Outcomes, other: str) -> str:
    """Where the default is ahead of another method beyond doubt, and where not."""
    places: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
    for setup, own in outcomes.items():
        if DEFAULT in own and other in own:
            gain = difference(own[DEFAULT], own[other])
            side = "ahead" if gain.low > 0 else "behind" if gain.high < 0 else "level"
            places[side].append(setup)
    parts = [f"{side} on {_counted(names)}" for side, names in places.items() if names]
    return "; ".join(parts) or "not measured yet"


def best_of_respecting(outcomes: Outcomes) -> str:
    """How often the default agrees best with the truth, of HN and Myerson settings."""
    counts: dict[bool, list[bool]] = {True: [], False: []}
    for setup, own in outcomes.items():
        means = {name: own[name].mean for name in RESPECTING if name in own}
        if DEFAULT in means:
            leads = means[DEFAULT] == max(means.values())
            counts[setup.startswith("crippen")].append(leads)
    return (
        f"{sum(counts[False])} of {len(counts[False])} classifiers and "
        f"{sum(counts[True])} of {len(counts[True])} networks of Crippen"
    )


def _counted(names: list[str]) -> str:
    return f"{len(names)} ({', '.join(names)})"


def published_table(
    outcomes: Outcomes, published: Mapping[tuple[str, str, str], tuple[float, ...]]
) -> Grid:
    """The best published median of every task, and what explains the bond network best."""
    rows: list[tuple[Cell, ...]] = []
    for task in TASKS:
        own = outcomes.get(f"{task}-{_THEIRS}", {})
        quick = {name: one for name, one in own.items() if not METHODS[name].slow}
        medians = {key[1:]: q[1] for key, q in published.items() if key[0] == task}
        if not quick or not medians:
            continue
        block, technique = max(medians, key=lambda key: medians[key])
        best = max(quick, key=lambda name: quick[name].mean)
        top = medians[block, technique]
        cells = [
            _against(name, quick[name], top) if name in quick else None for name in (best, DEFAULT)
        ]
        rows.append((task, f"{top:.3f} ({technique}, {block})", *cells))
    header = ("task", "best published median", "best here", "default")
    return Grid("truth_published", header, tuple(rows))


def _against(name: str, outcome: Outcome, top: float) -> str:
    """A mean with its interval, and on which side of a published median that lies."""
    low, high = outcome.interval
    side = "above" if low > top else "below" if high < top else "level"
    return f"{name} {outcome.mean:.3f} [{low:.3f}, {high:.3f}], {side}"
