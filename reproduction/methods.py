"""Methods: every explainer of the tables and ablations, with all its settings."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from typing import Any

#: Evaluations of estimated values; where all coalitions fit into them, values are exact.
BUDGET = 2_000


@dataclass(frozen=True)
class Method:
    """An explainer with its options.

    Attributes
    ----------
    name
        Its name in the tables, and its key in the stored rows.
    explainer, options
        As :func:`gstarx.explainers.create` takes them.
    role
        ``"ours"`` (variants of this library, among which one is chosen on validation),
        ``"compared"`` (the other methods of the paper), ``"control"``, ``"ablation"``,
        ``"oracle"`` (optimizes the metric itself), ``"refined"`` (an oracle search from an
        explanation).
    baseline
        The split whose mean output is the baseline of the payoff, numbers, a rule such as
        ``"singletons"``, or None.
    slow
        Whether it explains only the small subset of a setup's graphs.
    splits
        The splits it explains.
    only
        The setups it explains; all if empty.
    seed
        Of the run.
    """

    name: str
    explainer: str
    options: dict[str, Any] = field(default_factory=dict)
    role: str = "ablation"
    baseline: str | tuple[float, ...] | None = "train"
    slow: bool = False
    splits: tuple[str, ...] = ("test",)
    only: tuple[str, ...] = ()
    seed: int = 0

    @property
    def digest(self) -> str:
        """A digest of all settings, so that a changed setting makes another method."""
        text = json.dumps([self.explainer, self.options, self.baseline, self.seed], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


_BOTH = ("val", "test")


def _value(name: str, value: str, role: str = "ours", **options: Any) -> Method:
    splits = _BOTH if role == "ours" else ("test",)
    return Method(
        name, "gstarx", {"value": value, "budget": BUDGET, **options}, role, splits=splits
    )


def _subsets(name: str, role: str = "ablation", *, slow: bool = False, **options: Any) -> Method:
    """Algorithm 3 with exact values inside subsets, unless options say otherwise."""
    splits = _BOTH if role == "ours" else ("test",)
    chosen = {"value": "hn", "estimator": "subgraphs", **options}
    return Method(name, "gstarx", chosen, role, slow=slow, splits=splits)


#: The main comparison: values, the published procedure, controls and the oracle.
HEADLINE = (
    Method("as published", "gstarx_published", role="ours", baseline="test", splits=_BOTH),
    *(Method(f"random {i}", "random", role="control", seed=i, splits=_BOTH) for i in range(5)),
    Method("leave one out", "leave_one_out", role="control", splits=_BOTH),
    Method("single nodes", "single_node", role="control", splits=_BOTH),
    Method("GraphSVX", "graphsvx", role="compared", splits=_BOTH),
    _subsets("HN, subsets of 6", "ours", max_sample_size=6),
    _value("Shapley", "shapley"),
    _value("Banzhaf", "banzhaf"),
    _value("HN", "hn"),
    _value("Banzhaf, presence 0.7", "banzhaf", presence=0.7),
    _value("Banzhaf of logarithms", "banzhaf", payoff="log_prob"),
    _value("Banzhaf of logarithms, presence 0.7", "banzhaf", payoff="log_prob", presence=0.7),
    # as many as fit into a few seconds; SubgraphX takes ten times as many
    _value("Banzhaf, 10,000 evaluations", "banzhaf", budget=10_000),
    _value(
        "Banzhaf of logarithms, 10,000 evaluations",
        "banzhaf",
        budget=10_000,
        payoff="log_prob",
    ),
    Method("best found", "best_found", role="oracle", baseline=None),
    _value("Myerson", "myerson"),
    _subsets("Shapley, subsets of 6", "ours", value="shapley", max_sample_size=6),
    _subsets("HN, subsets of 10, cover", "ours", superadditive=True),
)


def _remedy(name: str, value: str, **options: Any) -> Method:
    """A value with the mean over single nodes as its baseline."""
    chosen = {"value": value, "budget": BUDGET, **options}
    return Method(name, "gstarx", chosen, "ours", "singletons", splits=_BOTH)


#: The default of GStarX with a budget, HN likewise, and both sides of the game; all other
#: variants are in :mod:`reproduction.remedies`.
REMEDIES = (
    _remedy("Myerson, singletons", "myerson"),
    _remedy("HN, singletons", "hn"),
    _remedy("HN, two-sided, singletons", "hn", two_sided=True),
    _remedy("Myerson, two-sided, singletons", "myerson", two_sided=True),
)
#: The other methods of the paper: slow ones, and those that train; and gradients.
COMPARED = (
    Method("GNNExplainer", "gnnexplainer", role="compared", slow=True, splits=_BOTH),
    Method("PGExplainer", "pgexplainer", role="compared", splits=_BOTH),
    Method("SubgraphX", "subgraphx", role="compared", slow=True, splits=_BOTH),
    Method("gradient × input", "gradient_x_input", role="control", splits=_BOTH),
    Method("integrated gradients", "integrated_gradients", role="control", splits=_BOTH),
)
#: Its published settings train for hours: shorter ones everywhere, and the published ones where
#: they take minutes, to see what the difference costs.
ORPHICX = (
    Method(
        "OrphicX",
        "orphicx",
        {"max_graphs": 1_000, "epochs": 100, "patience": 30, "alphas": 10, "betas": 20},
        role="compared",
        splits=_BOTH,
    ),
    Method(
        "OrphicX, full training",
        "orphicx",
        role="ablation",
        splits=_BOTH,
        only=("mutag-gcn",),
    ),
)
REFINED = (
    Method("HN, refined", "refined", {"of": "hn", "options": {"budget": BUDGET}}, "refined"),
    Method(
        "Banzhaf, refined",
        "refined",
        {"of": "banzhaf", "options": {"budget": BUDGET}},
        "refined",
    ),
    Method("random, refined", "refined", {"of": "random"}, "refined"),
)

#: One setting changed at a time, from the published procedure and from the values.
ABLATION = (
    *(_subsets(f"HN, subsets of {size}", max_sample_size=size) for size in (4, 8, 10, 12)),
    *(
        Method(
            f"as published, seed {seed}",
            "gstarx_published",
            baseline="test",
            seed=seed,
        )
        for seed in (1, 2)
    ),
    *(
        Method(
            f"as published, subsets of {size}",
            "gstarx_published",
            {"max_sample_size": size},
            baseline="test",
        )
        for size in (4, 6, 8, 12)
    ),
    Method("as published, f0 of training", "gstarx_published", baseline="train"),
    Method("as published, f0 = 0", "gstarx_published", baseline=(0.0,)),
    _subsets("HN, subsets of 10, k-hop", sampling="khop"),
    _subsets("HN, 30 subsets", num_samples=30),
    _subsets("HN, 100 subsets", num_samples=100),
    _subsets("HN, 300 subsets", num_samples=300),
    _subsets("Myerson, subsets of 10", value="myerson"),
    _subsets("Shapley, subsets of 10", value="shapley", slow=True),
    Method("HN, f0 = 0", "gstarx", {"value": "hn", "budget": BUDGET}, baseline=(0.0,)),
    Method("HN, f0 of test", "gstarx", {"value": "hn", "budget": BUDGET}, baseline="test"),
    Method("Shapley, f0 = 0", "gstarx", {"value": "shapley", "budget": BUDGET}, baseline=(0.0,)),
    _value("Banzhaf, presence 0.3", "banzhaf", "ablation", presence=0.3),
    *(
        Method(f"Shapley within {hops} hops", "local_shapley", {"hops": hops}, slow=True)
        for hops in (1, 3)
    ),
    _value("Banzhaf of logits", "banzhaf", "ablation", payoff="raw"),
    _value("HN of logits", "hn", "ablation", payoff="raw"),
    _value("HN of logarithms", "hn", "ablation", payoff="log_prob"),
)
#: The same number of evaluations for every method.
EQUAL = tuple(
    Method(
        f"{label}, {budget:,} evaluations",
        "gstarx",
        {"value": value, "budget": budget},
        only=("mutag-gcn", "bbbp-gcn", "ba_2motifs-gcn"),
    )
    for budget in (300, 1_000)
    for label, value in (
        ("HN", "hn"),
        ("Myerson", "myerson"),
        ("Shapley", "shapley"),
        ("Banzhaf", "banzhaf"),
    )
) + tuple(
    Method(
        f"GraphSVX, {budget:,} evaluations",
        "graphsvx",
        {"num_samples": budget},
        only=("mutag-gcn", "bbbp-gcn", "ba_2motifs-gcn"),
    )
    for budget in (300, 1_000)
)

STAGES = {
    "headline": HEADLINE,
    "remedies": REMEDIES,
    "compared": COMPARED,
    "ablation": ABLATION,
    "refined": REFINED,
    "equal": EQUAL,
    "orphicx": ORPHICX,
}
METHODS = {method.name: method for stage in STAGES.values() for method in stage}


def of_role(role: str) -> tuple[str, ...]:
    """Names of the methods with a role."""
    return tuple(name for name, method in METHODS.items() if method.role == role)
