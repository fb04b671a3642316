"""Names that help and completion show without loading the rooms they belong to.

Tests compare them with what the rooms say.
"""

from __future__ import annotations

from importlib.metadata import entry_points

#: Datasets by name, with a word on each.
DATASETS = {
    "mutag": "188 nitroaromatic molecules: mutagenic?",
    "bbbp": "2,039 molecules: do they pass the blood-brain barrier?",
    "bace": "1,513 molecules: do they inhibit beta-secretase 1?",
    "ba_2motifs": "1,000 random graphs: house or five-cycle?",
    "ba_shapes": "one graph of 700 nodes: which part of a house is a node?",
    "graph_sst2": "the paper's graphs of film reviews: positive?",
    "twitter": "the paper's graphs of tweets: negative, neutral or positive?",
    "sst2": "70,042 phrases of film reviews, parsed anew: positive?",
    "tweets": "6,940 tweets, parsed anew: negative, neutral or positive?",
    "motifs": "400 random trees with a motif: house or five-cycle? Comes with the package",
    "nitro": "500 molecules: an aromatic nitro group? Comes with the package",
}

#: Explainers by name, with a word on each; other packages can add some.
EXPLAINERS = {
    "gstarx": "the HN value, exact where it fits the budget",
    "gstarx_published": "GStarX as in the paper's experiments",
    "myerson": "the Myerson value",
    "shapley": "the Shapley value, which ignores edges",
    "banzhaf": "the Banzhaf value, which ignores edges",
    "subgraphx": "a search over connected subgraphs",
    "graphsvx": "a linear surrogate of Shapley values",
    "orphicx": "a trained causal generator of masks",
    "gnnexplainer": "a mask per graph, by gradient descent",
    "pgexplainer": "a trained network of masks",
    "gradient_x_input": "gradient times input",
    "integrated_gradients": "gradients along a path",
    "local_shapley": "Shapley values among the nodes within some hops",
    "leave_one_out": "what is lost without each node",
    "single_node": "what each node says alone",
    "random": "a random order, to compare with",
}

#: Networks that come with the package; the name of a dataset alone stands for its GCN.
NETWORKS = ("motifs-gcn", "nitro-gcn", "sst2-gat", "sst2-gcn", "tweets-gcn")

#: Datasets that come with the package.
SHIPPED_DATASETS = ("motifs", "nitro")

#: What the classes of the text networks stand for: their datasets may not be there.
TEXT_CLASSES = {"sst2": ("negative", "positive"), "tweets": ("negative", "neutral", "positive")}

#: Entry points under which other packages add explainers.
_ADDED = "gstarx.explainers"


def explainer_names() -> tuple[str, ...]:
    """All explainers, those of other packages last."""
    added = sorted({point.name for point in entry_points(group=_ADDED)} - set(EXPLAINERS))
    return (*EXPLAINERS, *added)
