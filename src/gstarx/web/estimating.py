"""Inside a worker: how much memory a request is going to take, before it takes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from gstarx.gnn import default_batch_nodes
from gstarx.registry import ExplainerSpec
from gstarx.web.catalog import (
    OFFER,
    coalitions_each,
    count_of,
    counted_option,
    most_coalitions,
)
from gstarx.web.memory import LARGER, in_gb
from gstarx.web.problems import Refused
from gstarx.web.settings import Limits, LoadedModel
from gstarx.web.subjects import Subject

#: Bytes of a node in a coalition, which is there as booleans, as asked and as evaluated, and as
#: numbers for a regression and its solver.
_NODE = 4 * 1 + 2 * 8
#: Bytes of a bitmask's word, of a worth, and of a number in the model.
_WORD, _WORTH, _NUMBER = 8, 8, 4
#: Activations of a layer that there are at a time: what goes in, what comes out, and one more.
_ACTIVATIONS = 3
#: Whatever the request: coalitions that are listed with their weights before some of them are
#: drawn, kernels that are compiled, drawings.
_ANYWAY = 256 << 20


@dataclass(frozen=True)
class Estimate:
    """The memory that explaining a graph takes, as a line: so much anyway, so much a coalition.

    Every coalition is a row of booleans and numbers, a bitmask, and a worth. A forward pass holds
    a batch of nodes, or the graph where that is larger, times the widest layer of the model, and as
    much for every edge.
    """

    anyway: int
    each: int

    @classmethod
    def of(cls, *, nodes: int, edges: int, width: int, batch_nodes: int) -> Estimate:
        """The estimate for a graph of so many nodes and directed edges.

        >>> found = Estimate.of(nodes=150, edges=300, width=64, batch_nodes=3072)
        >>> found.anyway >> 20, found.each, found.total(50_000) >> 20
        (259, 3032, 404)
        """
        bitmask = _WORD * -(-nodes // 64)
        layers = max(batch_nodes, nodes) * (_ACTIVATIONS + edges / max(nodes, 1))
        return cls(_ANYWAY + int(layers * width * _NUMBER), _NODE * nodes + bitmask + _WORTH)

    def total(self, coalitions: int) -> int:
        """Bytes for so many coalitions."""
        return self.anyway + self.each * coalitions

    def most(self, memory: int) -> int:
        """The most coalitions that fit."""
        return max(0, memory - self.anyway) // self.each


def check_memory(
    model: LoadedModel, subject: Subject, chosen: Sequence[Mapping[str, Any]], limits: Limits
) -> None:
    """Refuse what would not fit, with what would."""
    estimate = Estimate.of(
        nodes=subject.nodes,
        edges=subject.data.edge_index.shape[1],
        width=_width(model),
        batch_nodes=default_batch_nodes(model.model, torch.device("cpu")),
    )
    for at, one in enumerate(chosen):
        offer = OFFER[one["name"]]
        coalitions = most_coalitions(offer, one["options"], subject.nodes)
        if estimate.total(coalitions) > limits.memory:
            _refuse(offer, one["options"], subject.nodes, estimate, limits.memory, at)


def _refuse(
    offer: ExplainerSpec,
    options: Mapping[str, Any],
    nodes: int,
    estimate: Estimate,
    memory: int,
    at: int,
) -> None:
    counted = counted_option(offer)
    field, asked, fits = f"explainers.{at}", "", 0
    if counted is not None:
        value = count_of(counted, options, nodes)
        asked, field = f" with {counted.name} {value:,}", f"{field}.options.{counted.name}"
        fits = estimate.most(memory) // coalitions_each(counted, nodes)
    needed = in_gb(estimate.total(most_coalitions(offer, options, nodes)))
    if counted is not None and fits >= (counted.minimum or 1):
        valid = f"{counted.name} up to {fits:,} is accepted for this graph"
    else:
        valid = f"ask for a smaller graph, or {LARGER}"
    text = (
        f"{offer.title}{asked} for {nodes:,} nodes would take about {needed} of memory, and a job "
        f"may use {in_gb(memory)}: {valid}"
    )
    raise Refused("too_much_memory", text, field)


def _width(model: LoadedModel) -> int:
    """Numbers of a node in the widest layer, as far as the weights say."""
    modules = model.model.modules() if isinstance(model.model, torch.nn.Module) else ()
    widths = [
        weight.shape[0]
        for module in modules
        # the rows of an embedding are its vocabulary
        if not isinstance(module, torch.nn.Embedding)
        for weight in module.parameters(recurse=False)
        if weight.dim() > 1
    ]
    return max(widths, default=64)
