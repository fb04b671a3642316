"""The explainers as the page offers them: in words, with the options that a request may set.

Only what is listed here is accepted. So every option has bounds, and none names a file or code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from gstarx._internal.suggestions import unknown
from gstarx.web.problems import Refused

#: The metrics that the page shows.
METRICS = ("fidelity", "inverse_fidelity", "harmonic_fidelity")


def listed_model(name: str, title: str, problem: str | None = None) -> dict[str, Any]:
    """A model as it is listed where nothing more is known of it."""
    return {
        "name": name,
        "title": title,
        "kind": "graph",
        "inputs": [],
        "classes": [],
        "dataset": None,
        "graphs": 0,
        "facts": {},
        "examples": [],
        "problem": problem,
    }


@dataclass(frozen=True)
class Option:
    """An option of an explainer.

    Attributes
    ----------
    name, about
        What it is called, and what it does.
    type
        ``"integer"``, ``"number"``, ``"boolean"`` or ``"choice"``.
    default
        What holds where nothing is said; None where that depends on the graph or dataset.
    choices
        Of a choice.
    minimum, maximum
        Of a number.
    counted
        How many coalitions are held at once for each that it counts; the server's own limit of
        evaluations holds for it too. 0 where it counts none.
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

    def within(self, budget: int) -> Option:
        """The same, no more than the server allows."""
        if not self.counted or self.maximum is None:
            return self
        default = self.default if self.default is None else min(self.default, budget)
        return replace(self, maximum=min(self.maximum, budget), default=default)

    def value(self, options: Mapping[str, Any], nodes: int) -> int:
        """What one that counts stands at for a graph of so many nodes."""
        found = options.get(self.name, self.default)
        return _fewest(nodes) if found is None else int(found)

    def coalitions(self, nodes: int) -> int:
        """Coalitions for each that it counts."""
        return self.counted * (nodes if self.per_node else 1)

    def checked(self, value: Any, field: str) -> Any:
        """The value, or Refused with what is valid."""
        if self.type == "boolean":
            if isinstance(value, bool):
                return value
            raise Refused("bad_option", f"{self.name} must be true or false", field)
        if self.type == "choice":
            if isinstance(value, str) and value in self.choices:
                return value
            valid = ", ".join(self.choices)
            raise Refused("bad_option", f"{self.name} must be one of {valid}", field)
        whole = self.type == "integer"
        fits = isinstance(value, int) or (isinstance(value, float) and not whole)
        low = -float("inf") if self.minimum is None else self.minimum
        high = float("inf") if self.maximum is None else self.maximum
        if isinstance(value, bool) or not fits or not low <= value <= high:
            kind = "a whole number" if whole else "a number"
            text = f"{self.name} must be {kind} between {low:g} and {high:,.10g}"
            raise Refused("bad_option", text, field)
        return value


@dataclass(frozen=True)
class Offer:
    """An explainer as the page offers it.

    Attributes
    ----------
    name, title, about
        What it is called, by programs and by people, and what it does.
    options
        What a request may set.
    trains
        Whether it has to be trained on a dataset first.
    default
        Whether it is ticked where nothing is said.
    """

    name: str
    title: str
    about: str
    options: tuple[Option, ...] = ()
    trains: bool = False
    default: bool = False

    @property
    def counted(self) -> Option | None:
        """The option that says how many coalitions there are."""
        return next((option for option in self.options if option.counted), None)

    def coalitions(self, options: Mapping[str, Any], nodes: int) -> int:
        """The most coalitions of a graph that it holds at once."""
        counted, judged = self.counted, 2 * (nodes + 1)
        if counted is None:
            return judged
        return max(judged, counted.value(options, nodes) * counted.coalitions(nodes))

    def as_dict(self, budget: int) -> dict[str, Any]:
        """As it goes over the wire."""
        options = [asdict(option.within(budget)) for option in self.options]
        for option in options:
            option["choices"] = list(option["choices"])
            del option["counted"], option["per_node"]
        return {**asdict(self), "options": options}

    def checked(self, given: Mapping[str, Any], budget: int, field: str) -> dict[str, Any]:
        """The options, all of them valid, or Refused."""
        known = {option.name: option.within(budget) for option in self.options}
        found = {}
        for name, value in given.items():
            if name not in known:
                what = f"option of {self.name!r}"
                raise Refused("bad_option", unknown(what, name[:50], known), field)
            found[name] = known[name].checked(value, f"{field}.{name}")
        for own in self.options:
            allowed = known[own.name].default
            if own.counted and allowed != own.default:
                found.setdefault(own.name, allowed)  # its own default is more than may be asked for
        return found


def _fewest(nodes: int) -> int:
    """Samples that are taken where nobody says how many."""
    return max(2 * nodes + 2, 200)


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


_BUDGET = _count("budget", "The most parts of the graph to evaluate.", 20_000, 10, 1_000_000)
_PAYOFF = _choice(
    "payoff", "What a part of the graph is worth.", "auto", "norm_prob", "prob", "log_prob", "raw"
)
_REMOVAL = _choice(
    "removal", "What it means that a node is not there.", "remove", "split", "zero_filling"
)
_GAME = (_PAYOFF, _REMOVAL)


def _estimator(*others: str) -> Option:
    about = "How the value is found; by itself exact where that fits the budget."
    return _choice("estimator", about, "auto", "exact", *others)


def _epochs(default: int, high: int) -> Option:
    return _integer("epochs", "Steps of training.", default, 1, high)


_RATE = _number("lr", "Size of a step of training.", None, 1e-6, 1.0)

OFFERS = (
    Offer(
        "gstarx",
        "GStarX",
        "What each node contributes within connected parts of the graph (HN value).",
        (_estimator("growth", "subgraphs"), _BUDGET, *_GAME),
        default=True,
    ),
    Offer(
        "gstarx_published",
        "GStarX as published",
        "GStarX with the settings of the paper's experiments.",
    ),
    Offer(
        "myerson",
        "Myerson value",
        "Shares among connected parts only: parts that do not touch add up.",
        (_estimator("sampled", "subgraphs"), _BUDGET, *_GAME),
    ),
    Offer(
        "shapley",
        "Shapley value",
        "The average contribution over all orders of nodes; edges are ignored.",
        (_estimator("sampled", "subgraphs"), _BUDGET, *_GAME),
    ),
    Offer(
        "banzhaf",
        "Banzhaf value",
        "The average contribution over all sets of nodes; edges are ignored.",
        (
            _estimator("sampled"),
            _BUDGET,
            _number("presence", "How likely another node is to be there.", 0.5, 0.01, 0.99),
            *_GAME,
        ),
        default=True,
    ),
    Offer(
        "subgraphx",
        "SubgraphX",
        "A search for the connected part that matters most; it has no scores.",
        (
            _integer("rollouts", "Walks of the search.", 20, 1, 100),
            _integer("min_atoms", "Size of a set at which a walk ends.", None, 1, 50),
            _integer("expand_atoms", "Nodes considered at each step.", None, 1, 50),
            _number("c_puct", "Weight of exploration.", None, 0.0, 100.0),
            # a set comes and goes in each, and up to 50 sets are judged together
            _count("sample_num", "Samples for the worth of a set.", 100, 1, 1_000, each=100),
            _REMOVAL,
        ),
    ),
    Offer(
        "graphsvx",
        "GraphSVX",
        "A linear surrogate fitted to parts of the graph, close to Shapley values.",
        (
            _count("num_samples", "Parts of the graph to evaluate.", None, 10, 50_000),
            _integer("max_size", "Largest set taken systematically.", 3, 1, 5),
            _choice("efficiency", "Whether scores add up.", "hard", "soft", "none"),
            _REMOVAL,
        ),
        default=True,
    ),
    Offer(
        "orphicx",
        "OrphicX",
        "A generator of causal masks, trained on the dataset first.",
        (_epochs(300, 300), _RATE),
        trains=True,
    ),
    Offer(
        "gnnexplainer",
        "GNNExplainer",
        "A mask of edges learnt for this graph by gradient descent.",
        (_epochs(1000, 2000), _RATE),
    ),
    Offer(
        "pgexplainer",
        "PGExplainer",
        "A small network of masks, trained on the dataset first.",
        (_epochs(20, 100), _RATE),
        trains=True,
    ),
    Offer("gradient_x_input", "Gradient × input", "The gradient times the features of a node."),
    Offer(
        "integrated_gradients",
        "Integrated gradients",
        "Gradients along the way from no features to those of the node.",
        (_integer("steps", "Points on the way.", 50, 1, 500),),
    ),
    Offer(
        "local_shapley",
        "Local Shapley value",
        "Shapley values among the nodes within some hops.",
        (
            _integer("hops", "How far around a node.", 3, 0, 10),
            replace(
                _count("sample_num", "Random orders for each node.", 50, 1, 1_000, each=2),
                per_node=True,
            ),
            *_GAME,
        ),
    ),
    Offer("leave_one_out", "Leave one out", "What the prediction loses without the node.", _GAME),
    Offer("single_node", "Single node", "What the node says alone.", _GAME),
    Offer("random", "Random", "A random order: what an explainer must do better than."),
)
OFFER = {offer.name: offer for offer in OFFERS}


def offered(name: str, field: str) -> Offer:
    """The offer of that name, or Refused."""
    if name not in OFFER:
        raise Refused("unknown_explainer", unknown("explainer", name[:50], OFFER), field)
    return OFFER[name]
