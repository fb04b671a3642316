"""What is known of PyG's layers: how they use edges, and whether the order of nodes matters.

Everything here was read off the definition of a layer, and is tested against it. A layer of one's
own, even one derived from these, is not known: it may do anything in its ``forward``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch_geometric.nn as pyg
from torch import Tensor
from torch_geometric.nn import aggr
from torch_geometric.nn.aggr.fused import FusedAggregation

from gstarx.gnn.signature import Model, submodules
from gstarx.gnn.watched_edges import UsesEdges, WatchedEdges, bare, holds_ends

#: Layers in which every call of ``propagate`` brings a node what its neighbors have, and nothing
#: from farther away. Before that they may add or remove self-loops, count the edges that arrive at
#: a node, and normalize by these counts.
_ONE_HOP = (
    "AGNNConv", "CGConv", "ClusterGCNConv", "EdgeConv", "FastRGCNConv", "FeaStConv",
    "FiLMConv", "GATConv", "GATv2Conv", "GENConv", "GINConv", "GINEConv", "GMMConv",
    "GatedGraphConv", "GeneralConv", "GraphConv", "HEATConv", "HGTConv", "LEConv", "MFConv",
    "NNConv", "PNAConv", "PPFConv", "PointGNNConv", "PointNetConv", "PointTransformerConv",
    "RGATConv", "RGCNConv", "ResGatedGraphConv", "SAGEConv", "SignedConv", "SimpleConv",
    "SplineConv", "SuperGATConv", "TransformerConv",
)  # fmt: skip
#: Layers that scale a message by the degree of the node it comes from, so that they look one hop
#: farther than their messages come from: at the edges, not at the nodes.
_SCALING = (
    "APPNP", "ARMAConv", "DNAConv", "EGConv", "FAConv", "GCN2Conv", "GCNConv", "LGConv",
    "MixHopConv", "PDNConv", "SGConv", "SSGConv", "TAGConv",
)  # fmt: skip
#: Aggregations that do not depend on the order of what they aggregate.
_UNORDERED = (
    "AttentionalAggregation", "DeepSetsAggregation", "DegreeScalerAggregation",
    "GraphMultisetTransformer", "MaxAggregation", "MeanAggregation",
    "MedianAggregation", "MinAggregation", "MulAggregation", "MultiAggregation",
    "PowerMeanAggregation", "QuantileAggregation", "Set2Set", "SetTransformerAggregation",
    "SoftmaxAggregation", "StdAggregation", "SumAggregation", "VarAggregation",
    "VariancePreservingAggregation",
)  # fmt: skip
#: What messages of a layer that is not known may not ask ``propagate`` for: where they come from.
_SOURCES = frozenset({"edge_index", "adj_t", "edge_index_j", "size", "size_j"})
#: Methods that no instance of a known layer may replace.
_METHODS = frozenset({"forward", "propagate", "message", "aggregate", "update", "edge_update"})


def _classes(names: tuple[str, ...], home: Any) -> frozenset[type]:
    """The classes of these names, as far as this version of PyG has them."""
    return frozenset(getattr(home, name) for name in names if hasattr(home, name))


_SCALING_CLASSES = _classes(_SCALING, pyg)
_KNOWN_CLASSES = _SCALING_CLASSES | _classes(_ONE_HOP, pyg)
_UNORDERED_CLASSES = _classes(_UNORDERED, aggr) | {FusedAggregation}


def is_known(layer: Any) -> bool:
    """Whether a layer does nothing with edges but what is written here, in its whole forward."""
    if type(layer) not in _KNOWN_CLASSES or _METHODS & vars(layer).keys():
        return False
    if _hooked(layer) or layer._propagate_forward_pre_hooks:
        return False  # somebody's own function sees the edges
    # other layers may take the second row for the targets whatever the flow, as GATConv does where
    # it gives self-loops the mean of the attributes
    return type(layer) in _SCALING_CLASSES or layer.flow == "source_to_target"


def _hooked(layer: Any) -> bool:
    """Whether a function of somebody's own is called after a layer, with all that it was given."""
    return bool(layer._forward_hooks or getattr(layer, "_propagate_forward_hooks", None))


def scales_by_degree(model: Model) -> bool:
    """Whether a layer of PyG looks at the degree of the node that a message comes from."""
    scaling = (*_SCALING_CLASSES, pyg.ChebConv)
    return any(
        isinstance(layer, scaling) and getattr(layer, "normalize", True)
        for layer in submodules(model)
    )


def ordered_aggregation(model: Model) -> str:
    """The name of an aggregation that may depend on the order of nodes or edges; or nothing."""
    for layer in submodules(model):
        if isinstance(layer, aggr.Aggregation) and type(layer) not in _UNORDERED_CLASSES:
            return type(layer).__name__
    return ""


def declares_rounds(layer: Any) -> bool:
    """Whether a layer that is none of PyG's says how many rounds of messages a call stands for."""
    return isinstance(getattr(layer, "message_rounds", None), int)


@contextmanager
def read_by_messages(model: Model, shapes: list[tuple[int, ...]]) -> Iterator[None]:
    """Let the layers of a model read watched edges inside this block, and nothing else of it.

    The shapes of all tensors that are passed to ``propagate`` are added to ``shapes``.
    """
    nodes = 0

    def propagate(layer: Any, inputs: Any) -> Any:
        nonlocal nodes
        edges = inputs[0]
        nodes = edges.edges.nodes if isinstance(edges, WatchedEdges) else -1
        return _propagate(layer, inputs)

    def returned(layer: Any, _: Any, output: Any) -> None:
        parts = output if isinstance(output, tuple | list) else [output]
        # of two types of nodes, the number of those that hear is not known
        if nodes >= 0 and not all(_by_node(part, layer.node_dim, nodes) for part in parts):
            raise UsesEdges(f"what messages of {type(layer).__name__} leave besides embeddings")

    def note(layer: Any, inputs: Any) -> None:
        for value in inputs[2].values():
            parts = value if isinstance(value, tuple | list) else (value,)
            shapes.extend(tuple(part.shape) for part in parts if isinstance(part, Tensor))

    with ExitStack() as stack:
        for layer in submodules(model):
            handles: list[Any] = []
            if is_known(layer) or (declares_rounds(layer) and not _hooked(layer)):
                handles.append(layer.register_forward_pre_hook(_enter, with_kwargs=True))
                handles.append(layer.register_forward_hook(_leave))
            elif isinstance(layer, pyg.MessagePassing) and not layer._propagate_forward_hooks:
                handles.append(layer.register_propagate_forward_pre_hook(propagate))
                handles.append(layer.register_propagate_forward_hook(returned))
            if isinstance(layer, pyg.MessagePassing):
                handles.append(layer.register_propagate_forward_pre_hook(note))
            for handle in handles:
                stack.callback(handle.remove)
        yield


def _by_node(value: Any, dim: int, nodes: int) -> bool:
    """Whether a tensor has a row for every node, or it is none."""
    if not isinstance(value, Tensor):
        return value is None
    return -value.dim() <= dim < value.dim() and value.shape[dim] == nodes


def _enter(layer: Any, args: Any, kwargs: Any) -> tuple[Any, Any]:
    return bare(args), bare(kwargs)


def _leave(layer: Any, _: Any, output: Any) -> None:
    """Nothing but embeddings may leave a layer: it knew the edges."""
    parts = output.values() if isinstance(output, dict) else [output]
    if not all(isinstance(part, Tensor) or part is None for part in parts):
        raise UsesEdges(f"what {type(layer).__name__} returns besides embeddings")


def _propagate(layer: Any, inputs: Any) -> Any:
    asked = layer.inspector.get_flat_param_names(["message", "aggregate", "update"])
    sources = _SOURCES.intersection(asked)
    if sources:
        raise UsesEdges(f"messages of {type(layer).__name__} ask for {', '.join(sorted(sources))}")
    _, *others = inputs
    if holds_ends(others):
        raise UsesEdges(f"messages of {type(layer).__name__} are passed the ends of edges")
    return bare(inputs)
