"""Presets: the settings of the paper's tables, for all datasets and by dataset.

They are those of the published configurations, except where these handicap a method: then a
sensible value is used, and a comment states the published one.
"""

from __future__ import annotations

from typing import Any

from gstarx._internal.suggestions import unknown

#: Stands for all datasets.
EVERY = "*"

#: Datasets that are not in the paper and use the settings of one that is.
SAME_AS = {
    "sst2": "graph_sst2",
    "tweets": "twitter",
    "motifs": "ba_2motifs",
    "nitro": "mutag",
    **dict.fromkeys(("benzene", "logic7", "logic8", "crippen"), "bbbp"),
}

PRESETS: dict[str, dict[str, dict[str, Any]]] = {
    "myerson": {EVERY: {"value": "myerson"}},
    "shapley": {EVERY: {"value": "shapley"}},
    "banzhaf": {EVERY: {"value": "banzhaf"}},
    "subgraphx": {
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
    },
    # published with 10 samples for 18 to 34 unknowns; by default there are at least 200
    "graphsvx": {EVERY: {"max_size": 3}},
    "gnnexplainer": {EVERY: {"epochs": 1000, "lr": 0.01}},
    "pgexplainer": {
        EVERY: {"epochs": 20, "temperature": (5.0, 1.0), "edge_size": 0.01},
        "mutag": {"lr": 0.05, "edge_ent": 0.01},
        "bbbp": {"lr": 0.05, "edge_ent": 0.01},
        "bace": {"lr": 0.05, "edge_ent": 0.01},
        "graph_sst2": {"lr": 0.003, "edge_ent": 5e-4},
        "twitter": {"lr": 0.005, "edge_ent": 5e-4},
        "ba_2motifs": {"lr": 0.003, "edge_size": 0.03, "edge_ent": 5e-4},
        "ba_shapes": {"lr": 0.003, "edge_ent": 5e-4},
    },
    "orphicx": {
        EVERY: {"epochs": 300, "lr": 0.01, "batch_size": 128, "latent": 16, "causal": 8},
        "graph_sst2": {"latent": 64, "batch_size": 32, "patience": 30},
        "twitter": {"latent": 64, "batch_size": 32, "patience": 30},
    },
}


def datasets() -> tuple[str, ...]:
    """The datasets that :func:`options_for` knows, whether a method has settings for them or not.

    >>> "mutag" in datasets(), "sst2" in datasets()
    (True, True)
    """
    named = {name for presets in PRESETS.values() for name in presets} - {EVERY}
    return tuple(sorted(named | set(SAME_AS)))


def with_settings(dataset: str | None) -> str | None:
    """A dataset's name if the paper has settings for it, else None."""
    return dataset if dataset in datasets() else None


def options_for(name: str, dataset: str | None = None) -> dict[str, Any]:
    """The options of an explainer for a dataset of the paper, or for any other graphs (None).

    >>> options_for("subgraphx", "sst2") == options_for("subgraphx", "graph_sst2")
    True
    >>> options_for("random")
    {}
    """
    presets = PRESETS.get(name, {})
    general = presets.get(EVERY, {})
    if dataset is None:
        return dict(general)
    if dataset not in datasets():
        raise ValueError(
            f"{unknown('dataset with settings of the paper', str(dataset), datasets())}; leave "
            "dataset out for graphs of your own"
        )
    return {**general, **presets.get(SAME_AS.get(dataset, dataset), {})}
