"""What this package adds to GStarX: datasets, networks, compared methods, readers and commands."""

from __future__ import annotations

from typing import Any

from gstarx.registry import (
    EDGES_TOO,
    EVERY,
    GAME,
    RATE,
    REMOVAL,
    DatasetSpec,
    ExplainerSpec,
    NetworkSpec,
    Option,
    epochs,
)

#: The settings of the paper's tables, for all datasets and by dataset. They are those of the
#: published configurations, except where these handicap a method: then a sensible value is used,
#: and a comment states the published one.
_Settings = dict[str, dict[str, Any]]
_SUBGRAPHX: _Settings = {
    EVERY: {"rollouts": 20, "c_puct": 10.0, "min_atoms": 5, "expand_atoms": 12},
    "mutag": {"min_atoms": 3},
    "bbbp": {"min_atoms": 3, "c_puct": 5.0},
    # published with 2 rollouts, which is hardly a search
    "bace": {},
    "graph_sst2": {"min_atoms": 3, "c_puct": 5.0},
    # published with 2 rollouts
    "twitter": {"c_puct": 5.0, "expand_atoms": 20},
    "ba_2motifs": {"expand_atoms": 20, "high2low": True},
    "ba_shapes": {"rollouts": 10, "expand_atoms": 10, "high2low": True},
}
# published with 10 samples for 18 to 34 unknowns; by default there are at least 200
_GRAPHSVX: _Settings = {EVERY: {"max_size": 3}}
_PGEXPLAINER: _Settings = {
    EVERY: {"epochs": 20, "temperature": (5.0, 1.0), "edge_size": 0.01},
    "mutag": {"lr": 0.05, "edge_ent": 0.01},
    "bbbp": {"lr": 0.05, "edge_ent": 0.01},
    "bace": {"lr": 0.05, "edge_ent": 0.01},
    "graph_sst2": {"lr": 0.003, "edge_ent": 5e-4},
    "twitter": {"lr": 0.005, "edge_ent": 5e-4},
    "ba_2motifs": {"lr": 0.003, "edge_size": 0.03, "edge_ent": 5e-4},
    "ba_shapes": {"lr": 0.003, "edge_ent": 5e-4},
}
_ORPHICX: _Settings = {
    EVERY: {"epochs": 300, "lr": 0.01, "batch_size": 128, "latent": 16, "causal": 8},
    "graph_sst2": {"latent": 64, "batch_size": 32, "patience": 30},
    "twitter": {"latent": 64, "batch_size": 32, "patience": 30},
}


EXPLAINERS = (
    ExplainerSpec(
        "subgraphx",
        "gstarx_bench.explainers.subgraphx:SubgraphX",
        "SubgraphX",
        "A search for the most important connected part; it gives no scores.",
        (
            Option.integer("rollouts", "Number of search walks.", 20, 1, 100),
            Option.integer("min_atoms", "Size of a set at which a walk ends.", None, 1, 50),
            Option.integer("expand_atoms", "Nodes considered at each step.", None, 1, 50),
            Option.number("c_puct", "Weight of exploration.", None, 0.0, 100.0),
            Option.integer(
                "sample_num", "Samples for the worth of a set.", 100, 1, 1_000, counted=True
            ),
            REMOVAL,
        ),
        presets=_SUBGRAPHX,
    ),
    ExplainerSpec(
        "graphsvx",
        "gstarx_bench.explainers.graphsvx:GraphSVX",
        "GraphSVX",
        "A linear surrogate fitted to parts of the graph, close to Shapley values.",
        (
            Option.integer(
                "num_samples", "Parts of the graph to evaluate.", None, 10, 50_000, counted=True
            ),
            Option.integer("max_size", "Largest set taken systematically.", 3, 1, 5),
            Option.choice(
                "efficiency",
                "Whether scores sum to the worth of the graph.",
                "hard",
                "soft",
                "none",
            ),
            REMOVAL,
        ),
        default=True,
        presets=_GRAPHSVX,
    ),
    ExplainerSpec(
        "orphicx",
        "gstarx_bench.explainers.orphicx:OrphicX",
        "OrphicX",
        "A generator of causal masks, trained on the dataset first.",
        (epochs(300, 300), RATE),
        trains=True,
        presets=_ORPHICX,
    ),
    ExplainerSpec(
        "pgexplainer",
        "gstarx_bench.explainers.pg_explainer:PGExplainer",
        "PGExplainer",
        "A small network that predicts edge masks, trained on the dataset first.",
        (epochs(20, 100), RATE),
        trains=True,
        players=EDGES_TOO,
        presets=_PGEXPLAINER,
    ),
    ExplainerSpec(
        "cam",
        "gstarx_bench.explainers.activations:CAM",
        "CAM",
        "The contribution of each node's embedding to the logit (class activation mapping).",
    ),
    ExplainerSpec(
        "gradcam",
        "gstarx_bench.explainers.activations:GradCAM",
        "GradCAM",
        "Node embeddings, weighted by their mean gradients.",
        (Option.choice("layers", "Which layers count.", "last", "all"),),
    ),
    ExplainerSpec(
        "attention",
        "gstarx_bench.explainers.activations:Attention",
        "Attention weights",
        "The attention that a node receives; for networks with attention layers.",
    ),
    ExplainerSpec(
        "local_shapley",
        "gstarx_bench.explainers.subgraphx:LocalShapley",
        "Local Shapley value",
        "Shapley values among the nodes within some hops.",
        (
            Option.integer("hops", "Radius of the neighborhood.", 3, 0, 10),
            Option.integer(
                "sample_num", "Random orders for each node.", 50, 1, 1_000, counted=True
            ),
            *GAME,
        ),
    ),
    ExplainerSpec(
        "best_found",
        "gstarx_bench.explainers.oracles:BestFound",
        "Best selection found",
        "The sets with the highest H-fidelity that a search finds.",
        oracle=True,
    ),
    ExplainerSpec(
        "refined",
        "gstarx_bench.explainers.oracles:Refined",
        "Refined selection",
        "Selections of another explainer, improved by a search that optimizes the metric.",
        oracle=True,
    ),
)

DATASETS = (
    DatasetSpec(
        "mutag",
        "MUTAG",
        "188 nitroaromatic molecules: mutagenic?",
        "gstarx_bench.datasets.published:load_mutag",
    ),
    DatasetSpec(
        "bbbp",
        "BBBP",
        "2,039 molecules: do they pass the blood-brain barrier?",
        "gstarx_bench.datasets.published:load_bbbp",
    ),
    DatasetSpec(
        "bace",
        "BACE",
        "1,513 molecules: do they inhibit beta-secretase 1?",
        "gstarx_bench.datasets.published:load_bace",
    ),
    DatasetSpec(
        "ba_2motifs",
        "BA-2Motifs",
        "1,000 random graphs: house or five-cycle?",
        "gstarx_bench.datasets.published:load_ba_2motifs",
    ),
    DatasetSpec(
        "ba_shapes",
        "BA-Shapes",
        "one graph of 700 nodes: which part of a house is a node?",
        "gstarx_bench.datasets.published:load_ba_shapes",
    ),
    DatasetSpec(
        "graph_sst2",
        "Graph-SST2",
        "the paper's graphs of film reviews: positive?",
        "gstarx_bench.datasets.text:load_graph_sst2",
    ),
    DatasetSpec(
        "twitter",
        "Graph-Twitter",
        "the paper's graphs of tweets: negative, neutral or positive?",
        "gstarx_bench.datasets.text:load_twitter",
    ),
    DatasetSpec(
        "sst2",
        "SST-2",
        "70,042 phrases of film reviews, parsed again: positive?",
        "gstarx_bench.datasets.text:load_sst2",
        classes=("negative", "positive"),
        like="graph_sst2",
    ),
    DatasetSpec(
        "tweets",
        "Tweets",
        "6,940 tweets, parsed again: negative, neutral or positive?",
        "gstarx_bench.datasets.text:load_tweets",
        classes=("negative", "neutral", "positive"),
        like="twitter",
    ),
    DatasetSpec(
        "benzene",
        "Benzene",
        "12,000 molecules with known truths: a benzene ring?",
        "gstarx_bench.datasets.attribution:load_benzene",
        like="bbbp",
    ),
    DatasetSpec(
        "logic7",
        "Logic 7",
        "4,326 molecules with known truths: fluoride and carbonyl?",
        "gstarx_bench.datasets.attribution:load_logic7",
        like="bbbp",
    ),
    DatasetSpec(
        "logic8",
        "Logic 8",
        "8,671 molecules with known truths: unbranched alkane and carbonyl?",
        "gstarx_bench.datasets.attribution:load_logic8",
        like="bbbp",
    ),
    DatasetSpec(
        "crippen",
        "Crippen",
        "1,127 molecules with known truths: what do atoms add to logP?",
        "gstarx_bench.datasets.attribution:load_crippen",
        like="bbbp",
    ),
    DatasetSpec(
        "cora",
        "Cora",
        "one graph of 2,708 papers that cite each other: which topic?",
        "gstarx_bench.datasets.graph_files:load_cora",
    ),
    DatasetSpec(
        "citeseer",
        "CiteSeer",
        "one graph of 3,327 papers that cite each other: which topic?",
        "gstarx_bench.datasets.graph_files:load_citeseer",
    ),
    DatasetSpec(
        "coauthor_cs",
        "Coauthor-CS",
        "one graph of 18,333 computer scientists: which field?",
        "gstarx_bench.datasets.graph_files:load_coauthor_cs",
    ),
    DatasetSpec(
        "coauthor_physics",
        "Coauthor-Physics",
        "one graph of 34,493 physicists: which field?",
        "gstarx_bench.datasets.graph_files:load_coauthor_physics",
    ),
)

NETWORKS = tuple(
    NetworkSpec(f"{dataset}-{architecture}", dataset, architecture, "gstarx_bench.models")
    for dataset, architecture in (("sst2", "gat"), ("sst2", "gcn"), ("tweets", "gcn"))
)

READERS = {
    "table": "gstarx_bench.datasets.molecule_tables:read_table",
    "rows": "gstarx_bench.datasets.tables:open_table",
    "columns": "gstarx_bench.datasets.tables:present_columns",
    "graphs": "gstarx_bench.datasets.graph_files:read_graphs",
    "sentences": "gstarx_bench.datasets.sentences:text_graphs",
    ".pth": "gstarx_bench.models.checkpoints:load_published_checkpoint",
}

COMMANDS = {
    "demo": "gstarx_bench.cli.demo_command:demo",
    "compare": "gstarx_bench.cli.compare_command:compare",
    "evaluate": "gstarx_bench.cli.evaluate_command:evaluate",
    "report": "gstarx_bench.cli.report_command:report",
    "summarize": "gstarx_bench.cli.summarize_command:summarize",
    "train": "gstarx_bench.cli.train_command:train",
    "datasets": "gstarx_bench.cli.datasets_command:app",
    "runs": "gstarx_bench.cli.runs_command:app",
}
