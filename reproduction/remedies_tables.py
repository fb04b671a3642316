"""Tables of the two remedies for HN and Myerson values, from what was judged."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from gstarx.metrics import Difference, paired_bootstrap, share_of_gap
from reproduction.grids import Cell, Grid, percent, thousandths
from reproduction.methods import METHODS
from reproduction.remedies import BUNDLED, SPLITS, VARIANTS, read, variant
from reproduction.results import SetupResults
from reproduction.setups import SETUPS

Numbers = NDArray[np.float64]
_COMPARED = ("Shapley", "Banzhaf", "Shapley of logits", "Banzhaf of logits", "random")
_DEFAULT = variant("Myerson", two_sided=False, rule="singletons")
#: The main variants: neither remedy, each alone, and both.
_MAIN = tuple(
    variant(value, two_sided=two_sided, rule=rule)
    for value in ("HN", "Myerson")
    for two_sided in (False, True)
    for rule in ("uniform", "singletons")
)
#: Other settings with the singleton baseline, on whole test splits.
_WHOLE = ("HN, singletons", "HN, two-sided, singletons", "Myerson, two-sided, singletons")


class Judged:
    """What was judged, by network, split and method; graphs in their order."""

    def __init__(self, folder: Path) -> None:
        table = read(folder)
        self._rows: dict[tuple[str, str, str], list[dict[str, object]]] = {}
        for row in [] if table is None else table.sort_by("graph").to_pylist():
            key = (row["network"], row["split"], row["method"])
            self._rows.setdefault(key, []).append(row)
        tested = {network for network, split, _ in self._rows if split == "test"}
        self.networks = tuple(name for name in (*SETUPS, *BUNDLED) if name in tested)

    def numbers(self, network: str, split: str, method: str, judge: str) -> Numbers:
        """Verdicts of a judge on every graph: (graphs,), or (graphs, sparsities)."""
        rows = self._rows[network, split, method]
        return np.array([row[judge] for row in rows], dtype=np.float64)

    def level(self, network: str, method: str) -> int:
        """The sparsity that is best on the validation graphs."""
        return int(self.numbers(network, "val", method, "harmonic").mean(axis=0).argmax())

    def tested(self, network: str, method: str) -> Numbers:
        """H-fidelity on the test graphs at the sparsity that was chosen on validation graphs."""
        level = self.level(network, method)
        tested: Numbers = self.numbers(network, "test", method, "harmonic")[:, level]
        return tested


def tables(folder: Path, results: Mapping[str, SetupResults]) -> list[Grid]:
    """All tables of the section; without anything judged they have no columns."""
    judged = Judged(folder)
    return [
        _all_variants(judged),
        _ablation(judged),
        _paired(judged, results),
        whole_splits(results),
        _shares(judged, results),
        _judges(judged),
    ]


def against(folder: Path, other: str) -> str:
    """Where the default is ahead of another value beyond doubt, and where not."""
    judged = Judged(folder)
    return _sides(
        {
            name: (judged.tested(name, _DEFAULT), judged.tested(name, other))
            for name in judged.networks
        }
    )


def leads(folder: Path, judge: str) -> str:
    """Where the better of Shapley and Banzhaf is ahead of all HN and Myerson rows, and where not.

    Each is the one with the highest mean on the test graphs, by ``"harmonic"`` or ``"robust"``.
    """
    judged = Judged(folder)

    def best(network: str, methods: tuple[str, ...]) -> Numbers:
        verdicts = (_verdicts(judged, network, method, judge) for method in methods)
        return max(verdicts, key=lambda own: float(own.mean()))

    return _sides(
        {name: (best(name, ("Shapley", "Banzhaf")), best(name, _MAIN)) for name in judged.networks}
    )


def found(folder: Path, network: str, method: str) -> str:
    """The AUROC against the planted truth, with its interval over test graphs."""
    judged = Judged(folder)
    if network not in judged.networks:
        return "not measured yet"
    own = judged.numbers(network, "test", method, "auroc")
    mean = paired_bootstrap(own, np.zeros_like(own), seed=0)
    return f"{mean.mean:.3f} [{mean.low:.3f}, {mean.high:.3f}]"


def rank_on_validation(folder: Path) -> str:
    """The rank of the default among all variants, by validation H-fidelity.

    Means over the networks of the paper, each variant at its best sparsity.
    """
    judged = Judged(folder)
    setups = [name for name in judged.networks if name in SETUPS]
    if not setups:
        return "not measured yet"
    means = {
        method: np.mean([_on_validation(judged, name, method) for name in setups])
        for method in VARIANTS
    }
    better = sum(mean > means[_DEFAULT] for mean in means.values())
    best = max(means, key=lambda method: means[method])
    return (
        f"number {better + 1} of {len(means)} ({means[_DEFAULT]:.4f}; the first is *{best}* "
        f"with {means[best]:.4f})"
    )


def counts(folder: Path) -> str:
    """How many graphs of each network were judged, in words."""
    judged = Judged(folder)
    sizes = {
        name: tuple(len(judged.numbers(name, split, "random", "harmonic")) for split in SPLITS)
        for name in judged.networks
    }
    return ", ".join(f"{name} {val} + {test}" for name, (val, test) in sizes.items()) or "none yet"


def _all_variants(judged: Judged) -> Grid:
    rows: list[tuple[Cell, ...]] = []
    best = {
        name: max(judged.tested(name, method).mean() for method in (*VARIANTS, *_COMPARED))
        for name in judged.networks
    }
    for method in (*VARIANTS, *_COMPARED):
        means = {name: float(judged.tested(name, method).mean()) for name in judged.networks}
        cells = [f"**{m:.4f}**" if m == best[name] else f"{m:.4f}" for name, m in means.items()]
        rows.append((method, *cells, float(np.mean([*means.values()])) if means else None))
    return Grid("remedies", ("method", *judged.networks, "mean"), tuple(rows))


def _ablation(judged: Judged) -> Grid:
    """What each remedy gives alone and what both give, averaged over sparsities."""
    rows: list[tuple[Cell, ...]] = []
    for value in ("HN", "Myerson"):
        before = variant(value, two_sided=False, rule="uniform")
        for label, two_sided, rule in (
            ("singletons", False, "singletons"),
            ("two-sided", True, "uniform"),
            ("both", True, "singletons"),
        ):
            after = variant(value, two_sided=two_sided, rule=rule)
            gains = [
                _gain(
                    judged.numbers(name, "test", after, "harmonic").mean(axis=1),
                    judged.numbers(name, "test", before, "harmonic").mean(axis=1),
                )
                for name in judged.networks
            ]
            rows.append((f"{value}: {label}", *gains))
    return Grid("remedies_ablation", ("remedy", *judged.networks), tuple(rows))


def _paired(judged: Judged, results: Mapping[str, SetupResults]) -> Grid:
    """The default, and the variant chosen on validation, against others."""
    rows: list[tuple[Cell, ...]] = []
    for label in ("default", "chosen variant"):
        own = {name: _choice(judged, name, label) for name in judged.networks}
        rows.append((f"{label}", *own.values()))
        for other in (_MAIN[0], "Banzhaf", "Shapley", "GraphSVX", "SubgraphX"):
            cells: list[Cell] = []
            for name, method in own.items():
                against = _others(judged, results, name, other)
                cells.append(
                    None if against is None else _gain(*_both(judged.tested(name, method), against))
                )
            rows.append((f"… minus {other}", *cells))
    return Grid("remedies_paired", ("method", *judged.networks), tuple(rows))


def whole_splits(results: Mapping[str, SetupResults]) -> Grid:
    """The default against others on whole test splits, from the rows of Table 1.

    Rule and sparsity of every method are chosen on validation graphs. Slow methods explain less.
    """
    own = {name: stored.choose([_DEFAULT]) for name, stored in results.items()}
    done = {name: choice for name, choice in own.items() if choice is not None}
    rows: list[tuple[Cell, ...]] = [
        ("graphs", *(len(choice.test) for choice in done.values())),
        ("default", *(choice.mean for choice in done.values())),
    ]
    for other in (*_WHOLE, "HN", "as published", "Banzhaf", "Shapley", "GraphSVX", "SubgraphX"):
        gains = (_whole_gain(results[name], other) for name in done)
        cells = [None if gain is None else thousandths(gain) for gain in gains]
        rows.append((f"… minus {other}", *cells))
    return Grid("remedies_whole", ("method", *done), tuple(rows) if done else ())


def ahead_on(results: Mapping[str, SetupResults], other: str) -> str:
    """On how many whole test splits the default is significantly ahead."""
    gains = [_whole_gain(stored, other) for stored in results.values()]
    measured = [gain for gain in gains if gain is not None]
    return f"{sum(gain.low > 0 for gain in measured)} of {len(measured)}"


def _whole_gain(stored: SetupResults, other: str) -> Difference | None:
    few = METHODS[other].slow
    own, against = (stored.choose([name], few=few) for name in (_DEFAULT, other))
    return None if own is None or against is None else stored.compare(own, against)


def _choice(judged: Judged, network: str, label: str) -> str:
    if label == "default":
        return _DEFAULT

    return max(VARIANTS, key=lambda method: _on_validation(judged, network, method))


def _on_validation(judged: Judged, network: str, method: str) -> float:
    """Mean H-fidelity on the validation graphs at the best sparsity."""
    return float(judged.numbers(network, "val", method, "harmonic").mean(axis=0).max())


def _verdicts(judged: Judged, network: str, method: str, judge: str) -> Numbers:
    """What the tables show the mean of: on test graphs, H-fidelity at the chosen sparsity."""
    if judge == "harmonic":
        return judged.tested(network, method)
    return judged.numbers(network, "test", method, judge)


def _others(
    judged: Judged, results: Mapping[str, SetupResults], network: str, method: str
) -> Numbers | None:
    """H-fidelity of a compared method on the same test graphs, its sparsity chosen likewise."""
    if method in (*VARIANTS, *_COMPARED):
        return judged.tested(network, method)
    stored = results.get(network)
    choice = None if stored is None else stored.choose([method], few=True)
    if choice is None:
        return None
    return choice.test


def _both(own: Numbers, other: Numbers) -> tuple[Numbers, Numbers]:
    """Verdicts on the first graphs, as many as both have: splits have one order."""
    common = min(len(own), len(other))
    return own[:common], other[:common]


def _shares(judged: Judged, results: Mapping[str, SetupResults]) -> Grid:
    """How much of the way from random to best found is covered, best of eight, on test graphs."""
    setups = [name for name in judged.networks if name in results]
    rows: list[tuple[Cell, ...]] = []
    for method in (*_MAIN, "Shapley", "Banzhaf"):
        cells: list[Cell] = []
        for name in setups:
            best = results[name].curves("best found")
            if best is None:
                cells.append(None)
                continue
            own, random = (
                judged.numbers(name, "test", one, "harmonic").mean(axis=0).max()
                for one in (method, "random")
            )
            top = best.harmonic[: len(judged.tested(name, method))].mean(axis=0).max()
            cells.append(percent(share_of_gap(float(own), random=float(random), best=float(top))))
        rows.append((method, *cells))
    return Grid("remedies_shares", ("method", *setups), tuple(rows))


def _judges(judged: Judged) -> Grid:
    """Three judges of the main variants on the test graphs; bold leads among explanations."""
    columns: list[tuple[str, list[float]]] = []
    methods = (*_MAIN, "Shapley", "Banzhaf", "random")
    for name in judged.networks:
        columns.append((f"{name}: H", [float(judged.tested(name, m).mean()) for m in methods]))
        for judge, title in (("robust", "robust H"), ("auroc", "AUROC")):
            means = [float(judged.numbers(name, "test", m, judge).mean()) for m in methods]
            if not np.isnan(means).any():
                columns.append((f"{name}: {title}", means))
    rows = [
        (
            method,
            *(
                f"**{means[at]:.3f}**" if means[at] == max(means) else f"{means[at]:.3f}"
                for _, means in columns
            ),
        )
        for at, method in enumerate(methods)
    ]
    return Grid("remedies_judges", ("method", *(title for title, _ in columns)), tuple(rows))


def _sides(verdicts: Mapping[str, tuple[Numbers, Numbers]]) -> str:
    """Networks where the first is ahead of the second, level with it and behind it, in words."""
    sides: dict[str, list[str]] = {"ahead": [], "level": [], "behind": []}
    for name, (own, other) in verdicts.items():
        gain = paired_bootstrap(own, other, seed=0)
        side = "ahead" if gain.low > 0 else "behind" if gain.high < 0 else "level"
        sides[side].append(f"{name} ({gain.mean:+.3f})")
    parts = [f"{side} on {', '.join(names)}" for side, names in sides.items() if names]
    return "; ".join(parts) or "not measured yet"


def _gain(own: Numbers, other: Numbers) -> str:
    """A mean difference paired over graphs with its interval, in thousandths."""
    return thousandths(paired_bootstrap(own, other, seed=0))
