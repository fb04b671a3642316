"""Explainers, datasets and networks by name: titles, descriptions, options and their types.

The library, the command line, the explorer, runs and the documentation all read it. It loads
nothing: what a name stands for is imported when it is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any

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


@dataclass(frozen=True)
class DatasetSpec:
    """A dataset by name: title, what it is about, and where its loader is.

    ``classes`` are named if they have to be known where the data is not.
    """

    name: str
    title: str
    about: str
    home: str
    shipped: bool = False
    classes: tuple[str, ...] = ()


@dataclass(frozen=True)
class NetworkSpec:
    """A network that ships with the package."""

    name: str
    dataset: str
    architecture: str


@dataclass(frozen=True)
class ModelSource:
    """Where a model comes from; :func:`gstarx.models.load_source` loads it, in any process.

    Attributes
    ----------
    model
        The name of a network that ships, ``module:factory``, or ``None``.
    weights
        A file of weights: ``.safetensors`` of :func:`gstarx.models.save_model`, a published
        ``.pth``, a file of another package in :data:`MODEL_FILES`, or the state dictionary of a
        custom model; or ``None``.
    dataset
        For a custom model: the dataset whose features it reads.
    task
        What the model does, one of :data:`TASKS`; by default what its file says, or else
        ``"classification"``.
    trust
        Whether to run what a file of another package asks for while it is read.
    """

    model: str | None = None
    weights: Path | None = None
    dataset: str | None = None
    task: str | None = None
    trust: bool = False


@dataclass(frozen=True)
class DatasetSource:
    """Which graphs are meant; :func:`gstarx.datasets.load_source` loads them, in any process.

    Exactly one of ``name``, ``file`` and ``graphs`` is set.

    Attributes
    ----------
    name
        The name of a dataset in :data:`DATASETS`.
    root
        The directory of that dataset.
    file
        A table of molecules: ``.csv``, ``.tsv``, ``.smi``, ``.sdf`` or ``.parquet``.
    graphs
        ``module:factory``, a function that returns a PyG dataset or a list of ``Data``.
    smiles_column, name_column
        Columns of the table; by default found by their usual names.
    label
        The column of labels, or several separated by commas; without it and without a column of a
        usual name, molecules have no label.
    task
        ``"classification"``, ``"binary"``, ``"multilabel"`` or ``"regression"``; by default what
        the labels look like.
    split
        ``"random"``, ``"scaffold"``, or a column of the table that names the split of each row.
    limit
        The first rows only.
    sample
        So many rows, drawn at random by ``seed``.
    salts
        ``"keep"`` all parts of a molecule, keep the ``"largest"`` part, or keep all and ``"warn"``.
    features
        What is read of a molecule, one of :data:`gstarx.datasets.MOLECULE_FEATURES`.
    class_names
        The classes of the network that is to read the graphs, in order; empty if it has none.
        Labels are then read as these classes, or as numbers, and one that does not fit is left
        out. ``None`` to train on the labels, which therefore have to be right.
    """

    name: str | None = None
    root: str | None = None
    file: str | None = None
    graphs: str | None = None
    smiles_column: str | None = None
    name_column: str | None = None
    label: str | None = None
    task: str | None = None
    split: str = "random"
    limit: int | None = None
    sample: int | None = None
    seed: int = 0
    salts: str = "warn"
    features: str = "molecule"
    class_names: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        if self.class_names is not None:  # a list, where it comes from JSON
            object.__setattr__(self, "class_names", tuple(self.class_names))
        sources = [self.name, self.file, self.graphs]
        if sum(source is not None for source in sources) != 1:
            raise ValueError(
                f"a dataset is a name, a file or a factory: exactly one of them (got {sources})"
            )

    @property
    def title(self) -> str:
        """What to call the dataset."""
        if self.file is not None:
            path = Path(self.file)
            # a file may be named like a dataset of the package, and is another one
            return path.name if path.stem in DATASETS else path.stem
        return self.name or (self.graphs or "").replace(":", ".")


#: What the labels of a dataset can be, and the name that PyG has for such a model.
TASKS = {
    "classification": "multiclass_classification",
    "binary": "binary_classification",
    "multilabel": "binary_classification",
    "regression": "regression",
}


#: Files of models that other packages write, by suffix, and what loads them.
MODEL_FILES = dict.fromkeys((".pt", ".ckpt"), "gstarx.integrations.chemprop:load")
#: Features of molecules that other packages compute, and what computes them.
FEATURIZERS = {
    f"chemprop{suffix}": "gstarx.integrations.chemprop:graph"
    for suffix in ("", "-v1", "-organic", "-rigr")
}


def resolve(home: str) -> Any:
    """Import what is at ``module:attribute``."""
    module, _, path = home.partition(":")
    target: Any = import_module(module)
    for part in path.split("."):
        target = getattr(target, part)
    return target


def explainer_factory(name: str) -> Callable[..., Any] | None:
    """The class or function behind the name of an explainer, or ``None`` if there is none."""
    if name in EXPLAINERS:
        return resolve(EXPLAINERS[name].home)  # type: ignore[no-any-return]
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    return points[0].load() if points else None


def explainer_names(*, oracles: bool = False) -> tuple[str, ...]:
    """All explainers, those of other packages last; with ``oracles`` also the oracles.

    >>> explainer_names()[:3]
    ('gstarx_recommended', 'gstarx', 'gstarx_published')
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


_BUDGET = _count("budget", "The most parts of the graph to evaluate.", None, 10, 1_000_000)
_PAYOFF = _choice(
    "payoff", "What a part of the graph is worth.", "auto", "norm_prob", "prob", "log_prob", "raw"
)
_REMOVAL = _choice(
    "removal", "What it means that a node is not there.", "remove", "split", "zero_filling"
)
_GAME = (_PAYOFF, _REMOVAL)
_SIDES = (
    Option("two_sided", "Also count what is lost without a part of the graph.", "boolean", False),
    Option(
        "baseline", "What parts of the graph are compared with.", "choice", None, ("singletons",)
    ),
)
#: Of explainers that play a game, and of those that learn a mask of edges.
_ANY_PLAYERS = ("nodes", "groups", "edges", "features")
_EDGES_TOO = ("nodes", "edges")


def _estimator(*others: str) -> Option:
    about = "How the value is found; by itself exact where that fits the budget."
    return _choice("estimator", about, "auto", "exact", *others)


def _epochs(default: int, high: int) -> Option:
    return _integer("epochs", "Steps of training.", default, 1, high)


_RATE = _number("lr", "Size of a step of training.", None, 1e-6, 1.0)

_EXPLAINERS = (
    ExplainerSpec(
        "gstarx_recommended",
        "gstarx.explainers.gstarx:GStarX.recommended",
        "GStarX, recommended",
        "What each node contributes within connected parts, compared with single nodes.",
        (_estimator("sampled"), _BUDGET, *_GAME),
        default=True,
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "gstarx",
        "gstarx.explainers.gstarx:GStarX",
        "GStarX",
        "What each node contributes within connected parts of the graph (HN value).",
        (_estimator("growth", "subgraphs"), _BUDGET, *_SIDES, *_GAME),
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
        "Shares among connected parts only: parts that do not touch add up.",
        (_estimator("sampled", "subgraphs"), _BUDGET, *_SIDES, *_GAME),
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
            _number("presence", "How likely another node is to be there.", 0.5, 0.01, 0.99),
            *_GAME,
        ),
        default=True,
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "subgraphx",
        "gstarx.explainers.subgraphx:SubgraphX",
        "SubgraphX",
        "A search for the connected part that matters most; it has no scores.",
        (
            _integer("rollouts", "Walks of the search.", 20, 1, 100),
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
            _choice("efficiency", "Whether scores add up.", "hard", "soft", "none"),
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
        "gstarx.explainers.pyg:GNNExplainer",
        "GNNExplainer",
        "A mask of edges learned for this graph by gradient descent.",
        (_epochs(1000, 2000), _RATE),
        players=_EDGES_TOO,
    ),
    ExplainerSpec(
        "pgexplainer",
        "gstarx.explainers.pyg:PGExplainer",
        "PGExplainer",
        "A small network of masks, trained on the dataset first.",
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
        "Gradients along the way from no features to those of the node.",
        (_integer("steps", "Points on the way.", 50, 1, 500),),
    ),
    ExplainerSpec(
        "smoothgrad",
        "gstarx.explainers.gradients:SmoothGrad",
        "SmoothGrad",
        "Gradient × input, averaged over copies of the graph with noise on their features.",
        (
            _integer("samples", "Noisy copies.", 50, 1, 1_000),
            _number("noise", "Spread of the noise, relative to the features.", 0.15, 0.0, 10.0),
        ),
    ),
    ExplainerSpec(
        "cam",
        "gstarx.explainers.activations:CAM",
        "CAM",
        "What the embedding of each node adds to the logit (class activation mapping).",
    ),
    ExplainerSpec(
        "gradcam",
        "gstarx.explainers.activations:GradCAM",
        "GradCAM",
        "Embeddings of nodes, weighted by their mean gradients.",
        (_choice("layers", "Which layers count.", "last", "all"),),
    ),
    ExplainerSpec(
        "attention",
        "gstarx.explainers.activations:Attention",
        "Attention weights",
        "How much attention is paid to a node; for networks with attention layers.",
    ),
    ExplainerSpec(
        "occlusion",
        "gstarx.explainers.baselines:Occlusion",
        "Occlusion",
        "What the prediction loses without the neighborhood of the node.",
        (_integer("hops", "Radius of a neighborhood.", 1, 0, 10), *_GAME),
    ),
    ExplainerSpec(
        "local_shapley",
        "gstarx.explainers.baselines:LocalShapley",
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
    ExplainerSpec(
        "leave_one_out",
        "gstarx.explainers.baselines:LeaveOneOut",
        "Leave one out",
        "What the prediction loses without the node.",
        _GAME,
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "single_node",
        "gstarx.explainers.baselines:SingleNode",
        "Single node",
        "What the node says alone.",
        _GAME,
        players=_ANY_PLAYERS,
    ),
    ExplainerSpec(
        "random",
        "gstarx.explainers.baselines:RandomNodes",
        "Random",
        "A random order: what an explainer must do better than.",
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
        "Selections of another explainer after a search by the metric.",
        oracle=True,
    ),
)

#: All explainers of the package by name.
EXPLAINERS = {spec.name: spec for spec in _EXPLAINERS}

#: All datasets by name.
DATASETS = {
    spec.name: spec
    for spec in (
        DatasetSpec(
            "mutag",
            "MUTAG",
            "188 nitroaromatic molecules: mutagenic?",
            "gstarx.datasets.mutag:load_mutag",
        ),
        DatasetSpec(
            "bbbp",
            "BBBP",
            "2,039 molecules: do they pass the blood-brain barrier?",
            "gstarx.datasets.moleculenet:load_bbbp",
        ),
        DatasetSpec(
            "bace",
            "BACE",
            "1,513 molecules: do they inhibit beta-secretase 1?",
            "gstarx.datasets.moleculenet:load_bace",
        ),
        DatasetSpec(
            "ba_2motifs",
            "BA-2Motifs",
            "1,000 random graphs: house or five-cycle?",
            "gstarx.datasets.synthetic:load_ba_2motifs",
        ),
        DatasetSpec(
            "ba_shapes",
            "BA-Shapes",
            "one graph of 700 nodes: which part of a house is a node?",
            "gstarx.datasets.synthetic:load_ba_shapes",
        ),
        DatasetSpec(
            "graph_sst2",
            "Graph-SST2",
            "the paper's graphs of film reviews: positive?",
            "gstarx.datasets.sentigraph:load_graph_sst2",
        ),
        DatasetSpec(
            "twitter",
            "Graph-Twitter",
            "the paper's graphs of tweets: negative, neutral or positive?",
            "gstarx.datasets.sentigraph:load_twitter",
        ),
        DatasetSpec(
            "sst2",
            "SST-2",
            "70,042 phrases of film reviews, parsed again: positive?",
            "gstarx.datasets.text:load_sst2",
            classes=("negative", "positive"),
        ),
        DatasetSpec(
            "tweets",
            "Tweets",
            "6,940 tweets, parsed again: negative, neutral or positive?",
            "gstarx.datasets.text:load_tweets",
            classes=("negative", "neutral", "positive"),
        ),
        DatasetSpec(
            "benzene",
            "Benzene",
            "12,000 molecules with known truths: a benzene ring?",
            "gstarx.datasets.attribution:load_benzene",
        ),
        DatasetSpec(
            "logic7",
            "Logic 7",
            "4,326 molecules with known truths: fluoride and carbonyl?",
            "gstarx.datasets.attribution:load_logic7",
        ),
        DatasetSpec(
            "logic8",
            "Logic 8",
            "8,671 molecules with known truths: unbranched alkane and carbonyl?",
            "gstarx.datasets.attribution:load_logic8",
        ),
        DatasetSpec(
            "crippen",
            "Crippen",
            "1,127 molecules with known truths: what do atoms add to logP?",
            "gstarx.datasets.attribution:load_crippen",
        ),
        DatasetSpec(
            "cora",
            "Cora",
            "one graph of 2,708 papers that cite each other: which topic?",
            "gstarx.datasets.citation:load_cora",
        ),
        DatasetSpec(
            "citeseer",
            "CiteSeer",
            "one graph of 3,327 papers that cite each other: which topic?",
            "gstarx.datasets.citation:load_citeseer",
        ),
        DatasetSpec(
            "coauthor_cs",
            "Coauthor-CS",
            "one graph of 18,333 computer scientists: which field?",
            "gstarx.datasets.citation:load_coauthor_cs",
        ),
        DatasetSpec(
            "coauthor_physics",
            "Coauthor-Physics",
            "one graph of 34,493 physicists: which field?",
            "gstarx.datasets.citation:load_coauthor_physics",
        ),
        DatasetSpec(
            "motifs",
            "Motifs",
            "400 random trees with a motif: house or five-cycle?",
            "gstarx.datasets.synthetic:load_motifs",
            shipped=True,
        ),
        DatasetSpec(
            "nitro",
            "Nitro",
            "500 molecules: an aromatic nitro group?",
            "gstarx.datasets.nitro:load_nitro",
            shipped=True,
        ),
    )
}

#: All networks that ship, by name; the name of a dataset alone stands for its GCN.
NETWORKS = {
    f"{dataset}-{architecture}": NetworkSpec(f"{dataset}-{architecture}", dataset, architecture)
    for dataset, architecture in (
        ("motifs", "gcn"),
        ("nitro", "gcn"),
        ("sst2", "gat"),
        ("sst2", "gcn"),
        ("tweets", "gcn"),
    )
}
