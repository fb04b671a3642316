"""The explainers by name: titles, descriptions, options and their types."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Any

from gstarx.registry.sources import resolve

#: How many coalitions are evaluated where no budget is given: by an estimator, and for exact values
#: where coalitions share embeddings, which makes one of them cost a tenth or less.
SAMPLED_BUDGET, EXACT_BUDGET = 20_000, 1_000_000

#: Other packages add explainers under this entry-point group: a name and a class or function.
GROUP = "gstarx.explainers"


@dataclass(frozen=True)
class Option:
    """An option of an explainer that people set most.

    Attributes
    ----------
    name, about
        Its name, and what it does.
    type
        ``"integer"``, ``"number"``, ``"boolean"`` or ``"choice"``.
    default
        Its default; ``None`` if that depends on the graph or the dataset.
    choices
        Of a choice.
    minimum, maximum
        Of a number, as the explorer accepts it.
    counted
        How many coalitions are held in memory for each one that the option counts; 0 if it counts
        none.
    per_node
        Whether that is for every node.
    """

    name: str
    about: str
    type: str
    default: Any = None
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    counted: int = 0
    per_node: bool = False


@dataclass(frozen=True)
class ExplainerSpec:
    """An explainer by name.

    Attributes
    ----------
    name, home
        Its name, and where it is: ``module:attribute``.
    title, about
        Its title, and what it does in a sentence.
    options
        The options that people set most; :func:`gstarx.explainers.options_of` lists all.
    trains
        Whether it has to be trained on a dataset first.
    default
        Whether the explorer selects it.
    oracle
        Whether it optimizes the metric itself: a reference, not an explanation.
    players
        What it can score: nodes, groups of nodes, edges, features.
    """

    name: str
    home: str
    title: str
    about: str
    options: tuple[Option, ...] = ()
    trains: bool = False
    default: bool = False
    oracle: bool = False
    players: tuple[str, ...] = ("nodes",)


def kind_of_players(name: str) -> str:
    """What players of a name are: nodes, edges, features, or groups of nodes.

    >>> kind_of_players("edges"), kind_of_players("brics"), kind_of_players("edge-features")
    ('edges', 'groups', 'features')
    """
    plain = name.replace("-", "_").removeprefix("edge_")
    return plain if plain in ("nodes", "edges", "features") else "groups"


def explainer_factory(name: str) -> Callable[..., Any] | None:
    """The class or function behind the name of an explainer, or ``None`` if there is none."""
    if name in EXPLAINERS:
        return resolve(EXPLAINERS[name].home)  # type: ignore[no-any-return]
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    return points[0].load() if points else None


def explainer_names(*, oracles: bool = False) -> tuple[str, ...]:
    """All explainers, those of other packages last; with ``oracles`` also the oracles.

    >>> explainer_names()[:3]
    ('gstarx', 'hn', 'gstarx_published')
    """
    built_in = tuple(name for name, spec in EXPLAINERS.items() if not spec.oracle)
    added = sorted({point.name for point in entry_points(group=GROUP)} - set(EXPLAINERS))
    last = tuple(name for name, spec in EXPLAINERS.items() if spec.oracle)
    return (*built_in, *added, *(last if oracles else ()))


def _integer(name: str, about: str, default: int | None, low: int, high: int) -> Option:
    return Option(name, about, "integer", default, minimum=low, maximum=high)


def _count(
    name: str, about: str, default: int | None, low: int, high: int, *, each: int = 1
) -> Option:
    return replace(_integer(name, about, default, low, high), counted=each)


def _number(name: str, about: str, default: float | None, low: float, high: float) -> Option:
    return Option(name, about, "number", default, minimum=low, maximum=high)


def _choice(name: str, about: str, default: str, *others: str) -> Option:
    return Option(name, about, "choice", default, (default, *others))


_BUDGET = _count(
    "budget", "The largest number of parts of the graph to evaluate.", None, 10, 1_000_000
)
_PAYOFF = _choice(
    "payoff",
    "How the worth of a part of the graph is computed.",
    "auto",
    "norm_prob",
    "prob",
    "log_prob",
    "raw",
)
_REMOVAL = _choice("removal", "How nodes are removed.", "remove", "split", "zero_filling")
_GAME = (_PAYOFF, _REMOVAL)
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
_EDGES_TOO = ("nodes", "edges")


def _estimator(*others: str) -> Option:
    about = "How the value is computed; by default exact if the budget allows."
    return _choice("estimator", about, "auto", "exact", *others)


def _epochs(default: int, high: int) -> Option:
    return _integer("epochs", "Number of training steps.", default, 1, high)


_RATE = _number("lr", "Learning rate.", None, 1e-6, 1.0)

_EXPLAINERS = (
    ExplainerSpec(
        "gstarx",
        "gstarx.explainers.gstarx:GStarX",
        "GStarX",
        "The contribution of each node to connected parts, relative to single nodes.",
        (_estimator("sampled", "subgraphs"), _BUDGET, _TWO_SIDED, _BASELINE, *_GAME),
        default=True,
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "hn",
        "gstarx.explainers.gstarx:GStarX",
        "HN value",
        "The paper's value of connected parts, relative to single nodes.",
        (_estimator("growth", "subgraphs"), _BUDGET, _TWO_SIDED, _BASELINE, *_GAME),
        players=_ANY_PLAYERS,
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
        (_estimator("sampled", "subgraphs"), _BUDGET, _TWO_SIDED, _BASELINE, *_GAME),
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "shapley",
        "gstarx.explainers.gstarx:GStarX",
        "Shapley value",
        "The average contribution over all orders of nodes; edges are ignored.",
        (_estimator("sampled", "subgraphs"), _BUDGET, *_GAME),
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "banzhaf",
        "gstarx.explainers.gstarx:GStarX",
        "Banzhaf value",
        "The average contribution over all sets of nodes; edges are ignored.",
        (
            _estimator("sampled"),
            _BUDGET,
            _number("presence", "Probability that another node is present.", 0.5, 0.01, 0.99),
            *_GAME,
        ),
        default=True,
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "subgraphx",
        "gstarx.explainers.subgraphx:SubgraphX",
        "SubgraphX",
        "A search for the most important connected part; it gives no scores.",
        (
            _integer("rollouts", "Number of search walks.", 20, 1, 100),
            _integer("min_atoms", "Size of a set at which a walk ends.", None, 1, 50),
            _integer("expand_atoms", "Nodes considered at each step.", None, 1, 50),
            _number("c_puct", "Weight of exploration.", None, 0.0, 100.0),
            # each sample has a set in and out, and up to 50 sets are scored together
            _count("sample_num", "Samples for the worth of a set.", 100, 1, 1_000, each=100),
            _REMOVAL,
        ),
    ),
    ExplainerSpec(
        "graphsvx",
        "gstarx.explainers.graphsvx:GraphSVX",
        "GraphSVX",
        "A linear surrogate fitted to parts of the graph, close to Shapley values.",
        (
            _count("num_samples", "Parts of the graph to evaluate.", None, 10, 50_000),
            _integer("max_size", "Largest set taken systematically.", 3, 1, 5),
            _choice(
                "efficiency",
                "Whether scores sum to the worth of the graph.",
                "hard",
                "soft",
                "none",
            ),
            _REMOVAL,
        ),
        default=True,
    ),
    ExplainerSpec(
        "orphicx",
        "gstarx.explainers.orphicx:OrphicX",
        "OrphicX",
        "A generator of causal masks, trained on the dataset first.",
        (_epochs(300, 300), _RATE),
        trains=True,
    ),
    ExplainerSpec(
        "gnnexplainer",
        "gstarx.explainers.gnn_explainer:GNNExplainer",
        "GNNExplainer",
        "An edge mask learned for this graph by gradient descent.",
        (_epochs(1000, 2000), _RATE),
        players=_EDGES_TOO,
    ),
    ExplainerSpec(
        "pgexplainer",
        "gstarx.explainers.pg_explainer:PGExplainer",
        "PGExplainer",
        "A small network that predicts edge masks, trained on the dataset first.",
        (_epochs(20, 100), _RATE),
        trains=True,
        players=_EDGES_TOO,
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
        (_integer("steps", "Points on the path.", 50, 1, 500),),
    ),
    ExplainerSpec(
        "smoothgrad",
        "gstarx.explainers.gradients:SmoothGrad",
        "SmoothGrad",
        "Gradient × input, averaged over copies of the graph with noisy features.",
        (
            _integer("samples", "Noisy copies.", 50, 1, 1_000),
            _number("noise", "Spread of the noise, relative to the features.", 0.15, 0.0, 10.0),
        ),
    ),
    ExplainerSpec(
        "cam",
        "gstarx.explainers.activations:CAM",
        "CAM",
        "The contribution of each node's embedding to the logit (class activation mapping).",
    ),
    ExplainerSpec(
        "gradcam",
        "gstarx.explainers.activations:GradCAM",
        "GradCAM",
        "Node embeddings, weighted by their mean gradients.",
        (_choice("layers", "Which layers count.", "last", "all"),),
    ),
    ExplainerSpec(
        "attention",
        "gstarx.explainers.activations:Attention",
        "Attention weights",
        "The attention that a node receives; for networks with attention layers.",
    ),
    ExplainerSpec(
        "occlusion",
        "gstarx.explainers.baselines:Occlusion",
        "Occlusion",
        "How much the prediction drops without the neighborhood of the node.",
        (_integer("hops", "Radius of a neighborhood.", 1, 0, 10), *_GAME),
    ),
    ExplainerSpec(
        "local_shapley",
        "gstarx.explainers.baselines:LocalShapley",
        "Local Shapley value",
        "Shapley values among the nodes within some hops.",
        (
            _integer("hops", "Radius of the neighborhood.", 3, 0, 10),
            replace(
                _count("sample_num", "Random orders for each node.", 50, 1, 1_000, each=2),
                per_node=True,
            ),
            *_GAME,
        ),
    ),
    ExplainerSpec(
        "leave_one_out",
        "gstarx.explainers.baselines:LeaveOneOut",
        "Leave one out",
        "How much the prediction drops without the node.",
        _GAME,
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "single_node",
        "gstarx.explainers.baselines:SingleNode",
        "Single node",
        "The prediction for the node by itself.",
        _GAME,
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "random",
        "gstarx.explainers.baselines:RandomNodes",
        "Random",
        "A random order, which every explainer should beat.",
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "best_found",
        "gstarx.explainers.oracles:BestFound",
        "Best selection found",
        "The sets with the highest H-fidelity that a search finds.",
        oracle=True,
    ),
    ExplainerSpec(
        "refined",
        "gstarx.explainers.oracles:Refined",
        "Refined selection",
        "Selections of another explainer, improved by a search that optimizes the metric.",
        oracle=True,
    ),
)

#: All explainers of the package by name.
EXPLAINERS = {spec.name: spec for spec in _EXPLAINERS}
