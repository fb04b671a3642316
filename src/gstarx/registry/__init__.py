"""Explainers, datasets and networks by name: titles, descriptions, options and their types.

The library, the command line, the explorer, runs and the documentation all read it. It loads
nothing: what a name stands for is imported when it is needed.
"""

from gstarx.registry.explainers import (
    EXACT_BUDGET,
    EXPLAINERS,
    GROUP,
    SAMPLED_BUDGET,
    ExplainerSpec,
    Option,
    explainer_factory,
    explainer_names,
)
from gstarx.registry.explainers import kind_of_players as kind_of_players
from gstarx.registry.sources import (
    DATASETS,
    FEATURIZERS,
    MODEL_FILES,
    NETWORKS,
    TASKS,
    DatasetSource,
    DatasetSpec,
    ModelSource,
    NetworkSpec,
    resolve,
)

__all__ = [
    "DATASETS",
    "EXACT_BUDGET",
    "EXPLAINERS",
    "FEATURIZERS",
    "GROUP",
    "MODEL_FILES",
    "NETWORKS",
    "SAMPLED_BUDGET",
    "TASKS",
    "DatasetSource",
    "DatasetSpec",
    "ExplainerSpec",
    "ModelSource",
    "NetworkSpec",
    "Option",
    "explainer_factory",
    "explainer_names",
    "resolve",
]
