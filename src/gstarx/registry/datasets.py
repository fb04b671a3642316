"""The datasets by name, and the networks that ship with the package."""

from __future__ import annotations

from dataclasses import dataclass


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
