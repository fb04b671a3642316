"""Cooperative games on graphs, and structure-aware explanations of graph neural networks.

Names are imported when they are first used, so ``import gstarx`` is fast and loads only what a
program needs.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from gstarx._version import __version__

if TYPE_CHECKING:
    from gstarx import datasets as datasets
    from gstarx import drawing as drawing
    from gstarx import evaluation as evaluation
    from gstarx import explainers as explainers
    from gstarx import explanation as explanation
    from gstarx import games as games
    from gstarx import gnn as gnn
    from gstarx import graphs as graphs
    from gstarx import integrations as integrations
    from gstarx import metrics as metrics
    from gstarx import models as models
    from gstarx import players as players
    from gstarx import values as values
    from gstarx.explainers import GStarX, explain, explain_many, explain_nodes
    from gstarx.explanation import Explanation, HeteroExplanation, schema
    from gstarx.games import TableGame
    from gstarx.gnn import Contrast, GameOptions, GNNGame, Passes, Task, expected_output
    from gstarx.graphs import CommunicationGraph
    from gstarx.metrics import Judge
    from gstarx.values import (
        HN,
        Allocation,
        Banzhaf,
        Myerson,
        Position,
        Shapley,
        Subgraphs,
        hn_value,
        myerson_value,
        shapley_value,
    )


__all__ = [
    "HN",
    "Allocation",
    "Banzhaf",
    "CommunicationGraph",
    "Contrast",
    "Explanation",
    "GNNGame",
    "GStarX",
    "GameOptions",
    "HeteroExplanation",
    "Judge",
    "Myerson",
    "Passes",
    "Position",
    "Shapley",
    "Subgraphs",
    "TableGame",
    "Task",
    "__version__",
    "expected_output",
    "explain",
    "explain_many",
    "explain_nodes",
    "hn_value",
    "myerson_value",
    "schema",
    "shapley_value",
]

_PACKAGES = frozenset(
    {
        "gnn",
        "datasets",
        "evaluation",
        "drawing",
        "explainers",
        "explanation",
        "games",
        "graphs",
        "integrations",
        "metrics",
        "models",
        "players",
        "values",
    }
)

_HOME = {
    **dict.fromkeys(
        ("HN", "Banzhaf", "Myerson", "Position", "Shapley", "Subgraphs"), "gstarx.values"
    ),
    **dict.fromkeys(("GameOptions", "Passes", "Task"), "gstarx.gnn"),
    "Allocation": "gstarx.values",
    "CommunicationGraph": "gstarx.graphs",
    "Contrast": "gstarx.gnn",
    "Explanation": "gstarx.explanation",
    "GNNGame": "gstarx.gnn",
    "GStarX": "gstarx.explainers",
    "HeteroExplanation": "gstarx.explanation",
    "Judge": "gstarx.metrics",
    "TableGame": "gstarx.games",
    "expected_output": "gstarx.gnn",
    "explain": "gstarx.explainers",
    "explain_many": "gstarx.explainers",
    "explain_nodes": "gstarx.explainers",
    "hn_value": "gstarx.values",
    "myerson_value": "gstarx.values",
    "schema": "gstarx.explanation",
    "shapley_value": "gstarx.values",
}


def __getattr__(name: str) -> Any:
    if name in _PACKAGES:
        return import_module(f"gstarx.{name}")
    if name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
        globals()[name] = value  # the next lookup does not come here
        return value
    raise AttributeError(f"module 'gstarx' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, *_PACKAGES})
