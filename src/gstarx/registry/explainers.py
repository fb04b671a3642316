"""The explainers of the library: titles, descriptions, options and their types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from gstarx.registry.specs import EVERY, ExplainerSpec, Option, RegisteredExplainers, resolve

#: How many coalitions are evaluated where no budget is given: by an estimator, and for exact values
#: where coalitions share embeddings, which makes one of them cost a tenth or less.
SAMPLED_BUDGET, EXACT_BUDGET = 20_000, 1_000_000


def explainer_factory(name: str) -> Callable[..., Any] | None:
    """The class or function behind the name of an explainer, or ``None`` if there is none."""
    return resolve(EXPLAINERS[name].home) if name in EXPLAINERS else None


def explainer_names(*, oracles: bool = False) -> tuple[str, ...]:
    """All explainers, those of other packages last; with ``oracles`` also the oracles.

    >>> explainer_names()[:3]
    ('gstarx', 'hn', 'gstarx_published')
    """
    found = tuple(name for name, spec in EXPLAINERS.items() if not spec.oracle)
    last = tuple(name for name, spec in EXPLAINERS.items() if spec.oracle)
    return (*found, *(last if oracles else ()))


_BUDGET = Option.integer(
    "budget",
    "The largest number of parts of the graph to evaluate.",
    None,
    10,
    1_000_000,
    counted=True,
)
_PAYOFF = Option.choice(
    "payoff",
    "How the worth of a part of the graph is computed.",
    "auto",
    "norm_prob",
    "prob",
    "log_prob",
    "raw",
)
REMOVAL = Option.choice("removal", "How nodes are removed.", "remove", "split", "zero_filling")
GAME = (_PAYOFF, REMOVAL)
_TWO_SIDED = Option(
    "two_sided", "Also count what is lost without a part of the graph.", "boolean", False
)
_BASELINE = Option(
    "baseline",
    "The baseline that is subtracted from outputs.",
    "choice",
    None,
    ("singletons", "uniform"),
)
#: Of explainers that play a game, and of those that learn a mask of edges.
_ANY_PLAYERS = ("nodes", "groups", "edges", "features")
EDGES_TOO = ("nodes", "edges")


def _estimator(*others: str) -> Option:
    about = "How the value is computed; by default exact if the budget allows."
    return Option.choice("estimator", about, "auto", "exact", *others)


def epochs(default: int, high: int) -> Option:
    """How long an explainer is trained."""
    return Option.integer("epochs", "Number of training steps.", default, 1, high)


RATE = Option.number("lr", "Learning rate.", None, 1e-6, 1.0)

#: All explainers by name.
EXPLAINERS = RegisteredExplainers(
    "EXPLAINERS",
    (
        ExplainerSpec(
            "gstarx",
            "gstarx.explainers.gstarx:GStarX",
            "GStarX",
            "The contribution of each node to connected parts, relative to single nodes.",
            (_estimator("sampled", "subgraphs"), _BUDGET, _TWO_SIDED, _BASELINE, *GAME),
            default=True,
            players=_ANY_PLAYERS,
        ),
        ExplainerSpec(
            "hn",
            "gstarx.explainers.gstarx:GStarX",
            "HN value",
            "The paper's value of connected parts, relative to single nodes.",
            (_estimator("growth", "subgraphs"), _BUDGET, _TWO_SIDED, _BASELINE, *GAME),
            players=_ANY_PLAYERS,
            presets={EVERY: {"value": "hn"}},
        ),
        ExplainerSpec(
            "gstarx_published",
            "gstarx.explainers.gstarx:GStarX.as_published",
            "GStarX as published",
            "GStarX with the settings of the paper's experiments.",
        ),
        ExplainerSpec(
            "myerson",
            "gstarx.explainers.gstarx:GStarX",
            "Myerson value",
            "The value that GStarX computes by default: the Shapley value of connected parts.",
            (_estimator("sampled", "subgraphs"), _BUDGET, _TWO_SIDED, _BASELINE, *GAME),
            players=_ANY_PLAYERS,
            presets={EVERY: {"value": "myerson"}},
        ),
        ExplainerSpec(
            "shapley",
            "gstarx.explainers.gstarx:GStarX",
            "Shapley value",
            "The average contribution over all orders of nodes; edges are ignored.",
            (_estimator("sampled", "subgraphs"), _BUDGET, _BASELINE, *GAME),
            players=_ANY_PLAYERS,
            presets={EVERY: {"value": "shapley"}},
        ),
        ExplainerSpec(
            "banzhaf",
            "gstarx.explainers.gstarx:GStarX",
            "Banzhaf value",
            "The average contribution over all sets of nodes; edges are ignored.",
            (
                _estimator("sampled"),
                _BUDGET,
                Option.number(
                    "presence", "Probability that another node is present.", 0.5, 0.01, 0.99
                ),
                _BASELINE,
                *GAME,
            ),
            default=True,
            players=_ANY_PLAYERS,
            presets={EVERY: {"value": "banzhaf"}},
        ),
        ExplainerSpec(
            "gnnexplainer",
            "gstarx.explainers.gnn_explainer:GNNExplainer",
            "GNNExplainer",
            "An edge mask learned for this graph by gradient descent.",
            (epochs(1000, 2000), RATE),
            players=EDGES_TOO,
            presets={EVERY: {"epochs": 1000, "lr": 0.01}},
        ),
        ExplainerSpec(
            "gradient_x_input",
            "gstarx.explainers.gradients:GradientXInput",
            "Gradient × input",
            "The gradient times the features of a node.",
        ),
        ExplainerSpec(
            "integrated_gradients",
            "gstarx.explainers.gradients:IntegratedGradients",
            "Integrated gradients",
            "Gradients on the path from zero features to those of the node.",
            (Option.integer("steps", "Points on the path.", 50, 1, 500),),
        ),
        ExplainerSpec(
            "smoothgrad",
            "gstarx.explainers.gradients:SmoothGrad",
            "SmoothGrad",
            "Gradient × input, averaged over copies of the graph with noisy features.",
            (
                Option.integer("samples", "Noisy copies.", 50, 1, 1_000),
                Option.number(
                    "noise", "Spread of the noise, relative to the features.", 0.15, 0.0, 10.0
                ),
            ),
        ),
        ExplainerSpec(
            "occlusion",
            "gstarx.explainers.baselines:Occlusion",
            "Occlusion",
            "How much the prediction drops without the neighborhood of the node.",
            (Option.integer("hops", "Radius of a neighborhood.", 1, 0, 10), *GAME),
        ),
        ExplainerSpec(
            "leave_one_out",
            "gstarx.explainers.baselines:LeaveOneOut",
            "Leave one out",
            "How much the prediction drops without the node.",
            GAME,
            players=_ANY_PLAYERS,
        ),
        ExplainerSpec(
            "single_node",
            "gstarx.explainers.baselines:SingleNode",
            "Single node",
            "The prediction for the node by itself.",
            GAME,
            players=_ANY_PLAYERS,
        ),
        ExplainerSpec(
            "random",
            "gstarx.explainers.baselines:RandomNodes",
            "Random",
            "A random order, which every explainer should beat.",
            players=_ANY_PLAYERS,
        ),
    ),
)
