"""Explainers of graph neural networks: GStarX, compared methods and baselines, one result type."""

from gstarx.explainers.attribution import Attribution
from gstarx.explainers.base import NodeExplainer, graph_generator
from gstarx.explainers.baselines import LeaveOneOut, LocalShapley, RandomNodes, SingleNode
from gstarx.explainers.explaining import FailedExplanation, explain, explain_many
from gstarx.explainers.explanation import Explanation
from gstarx.explainers.graphsvx import GraphSVX
from gstarx.explainers.gstarx import GStarX
from gstarx.explainers.hetero_explanation import HeteroExplanation
from gstarx.explainers.many_nodes import attribute_node as attribute_node
from gstarx.explainers.many_nodes import explain_nodes, iter_explanations
from gstarx.explainers.registry import boolean_options_of as boolean_options_of
from gstarx.explainers.registry import create, names, options_of
from gstarx.explainers.registry import options_for as options_for
from gstarx.explainers.registry import packages_of as packages_of
from gstarx.explainers.registry import versions_of as versions_of
from gstarx.explainers.registry import with_settings as with_settings
from gstarx.explainers.settings import ValueSettings
from gstarx.explainers.subgraphx import SubgraphX

__all__ = [
    "Attribution",
    "Explanation",
    "FailedExplanation",
    "GStarX",
    "GraphSVX",
    "HeteroExplanation",
    "LeaveOneOut",
    "LocalShapley",
    "NodeExplainer",
    "RandomNodes",
    "SingleNode",
    "SubgraphX",
    "ValueSettings",
    "create",
    "explain",
    "explain_many",
    "explain_nodes",
    "graph_generator",
    "iter_explanations",
    "names",
    "options_of",
]
