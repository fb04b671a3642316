"""Explainers, datasets and networks by name: titles, descriptions, options and their types.

The library, the command line, the explorer, runs and the documentation all read it. It loads
nothing: what a name stands for is imported when it is needed.
"""

from gstarx.registry.explainers import (
    EDGES_TOO,
    EXACT_BUDGET,
    EXPLAINERS,
    GAME,
    RATE,
    REMOVAL,
    SAMPLED_BUDGET,
    epochs,
    explainer_factory,
    explainer_names,
)
from gstarx.registry.players import PARTS, PLAYERS, group_makers, kind_of_players
from gstarx.registry.sources import (
    DATASETS,
    FEATURIZERS,
    MODEL_FILES,
    MOLECULE_READERS,
    NETWORKS,
    TASKS,
    DatasetSource,
    ModelSource,
)
from gstarx.registry.specs import (
    EVERY,
    GROUP,
    DatasetSpec,
    ExplainerSpec,
    NetworkSpec,
    Option,
    PlayersSpec,
    commands,
    reader,
    resolve,
)

__all__ = [
    "DATASETS",
    "EDGES_TOO",
    "EVERY",
    "EXACT_BUDGET",
    "EXPLAINERS",
    "FEATURIZERS",
    "GAME",
    "GROUP",
    "MODEL_FILES",
    "MOLECULE_READERS",
    "NETWORKS",
    "PARTS",
    "PLAYERS",
    "RATE",
    "REMOVAL",
    "SAMPLED_BUDGET",
    "TASKS",
    "DatasetSource",
    "DatasetSpec",
    "ExplainerSpec",
    "ModelSource",
    "NetworkSpec",
    "Option",
    "PlayersSpec",
    "commands",
    "epochs",
    "explainer_factory",
    "explainer_names",
    "group_makers",
    "kind_of_players",
    "reader",
    "resolve",
]
