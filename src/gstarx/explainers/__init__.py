"""Explainers of graph neural networks: GStarX, compared methods and baselines, one result type."""

from gstarx.explainers.base import NodeExplainer, graph_generator
from gstarx.explainers.baselines import LeaveOneOut, RandomNodes, SingleNode
from gstarx.explainers.explaining import FailedExplanation, explain, explain_many
from gstarx.explainers.gstarx import GStarX
from gstarx.explainers.many_nodes import attribute_node as attribute_node
from gstarx.explainers.many_nodes import explain_nodes, iter_explanations
from gstarx.explainers.options import with_objects as with_objects
from gstarx.explainers.registry import boolean_options_of as boolean_options_of
from gstarx.explainers.registry import create, names, options_of
from gstarx.explainers.registry import options_for as options_for
from gstarx.explainers.registry import packages_of as packages_of
from gstarx.explainers.registry import versions_of as versions_of
from gstarx.explainers.registry import with_settings as with_settings

__all__ = [
    "FailedExplanation",
    "GStarX",
    "LeaveOneOut",
    "NodeExplainer",
    "RandomNodes",
    "SingleNode",
    "create",
    "explain",
    "explain_many",
    "explain_nodes",
    "graph_generator",
    "iter_explanations",
    "names",
    "options_of",
]
