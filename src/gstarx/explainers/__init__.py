"""Explainers of graph neural networks: GStarX, compared methods and baselines, one interface."""

from gstarx.explainers.base import NodeExplainer, NodeResult
from gstarx.explainers.baselines import LeaveOneOut, LocalShapley, RandomNodes, SingleNode
from gstarx.explainers.graphsvx import GraphSVX
from gstarx.explainers.gstarx import GStarX, explain
from gstarx.explainers.many import FailedExplanation, explain_many
from gstarx.explainers.registry import create, names
from gstarx.explainers.settings import ValueSettings
from gstarx.explainers.subgraphx import SubgraphX

__all__ = [
    "FailedExplanation",
    "GStarX",
    "GraphSVX",
    "LeaveOneOut",
    "LocalShapley",
    "NodeExplainer",
    "NodeResult",
    "RandomNodes",
    "SingleNode",
    "SubgraphX",
    "ValueSettings",
    "create",
    "explain",
    "explain_many",
    "names",
]
