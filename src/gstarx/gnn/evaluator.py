"""Running a model over many coalitions, in batches of bounded size."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from gstarx.gnn.batching import coalition_sizes
from gstarx.gnn.model_state import remembered
from gstarx.gnn.payoff import outputs_matrix
from gstarx.gnn.removal import Removal
from gstarx.gnn.signature import Model, Signature, call_model, submodules
from gstarx.graphs import Masks, pack, unpack

#: Numbers of one activation that stay in a core's cache; more nodes per batch cost, fewer too.
_CPU_ACTIVATION = 3 << 16
_CPU_NODES = (512, 8192)
_OTHER_NODES = 1 << 18
#: Coalitions whose sizes are counted at once.
_BLOCK = 4096
#: From the model's inputs by name to others.
Change = Callable[[dict[str, Any]], dict[str, Any]]


@remembered
def default_batch_nodes(model: Model, device: torch.device) -> int:
    """Nodes per batch: a fixed rule by device and model width, never tuned while running.

    On a CPU the activations of a layer should stay in cache: the widest layer decides, between 512
    and 8,192 nodes. On other devices, 262,144 nodes.
    """
    if device.type != "cpu":
        return _OTHER_NODES
    # the rows of an embedding are its vocabulary, its width is that of a row
    widths = [
        parameter.shape[1] if isinstance(module, torch.nn.Embedding) else parameter.shape[0]
        for module in submodules(model)
        for parameter in module._parameters.values()
        if parameter is not None and parameter.dim() > 1
    ]
    width = max(widths, default=64)
    fewest, most = _CPU_NODES
    return min(max(_CPU_ACTIVATION // width, fewest), most)


@remembered
def takes_batch_statistics(model: Model) -> bool:
    """Whether a layer normalizes by all that is in a batch, even in evaluation mode."""
    return any(
        isinstance(module, _BatchNorm) and module.running_mean is None
        for module in submodules(model)
    )


class Evaluator:
    """A model, a graph and a removal: from packed coalitions of players to outputs.

    The players may be some of the nodes only (``players``): the others are always there.
    """

    def __init__(
        self,
        model: Model,
        signature: Signature,
        removal: Removal,
        *,
        task_level: str,
        batch_nodes: int,
        players: NDArray[np.int64] | None = None,
    ) -> None:
        self.model = model
        self.signature = signature
        self.removal = removal
        self.task_level = task_level
        self.batch_nodes = batch_nodes
        nodes = removal.tensors.num_nodes
        self.players = np.arange(nodes) if players is None else players
        self.all_play = len(self.players) == nodes
        #: Whether several coalitions can go through the model at once.
        self.batched = task_level != "graph" or signature.takes_batch
        self.batched &= not takes_batch_statistics(model)

    @property
    def everybody(self) -> Masks:
        """The coalition of all players, packed (1, words)."""
        return pack(np.ones((1, len(self.players)), dtype=np.bool_))

    def batches(self, masks: Masks) -> Iterator[slice]:
        """Consecutive coalitions with at most ``batch_nodes`` nodes together, at least one each."""
        sizes = np.concatenate(
            [
                coalition_sizes(self.nodes_of(masks[i : i + _BLOCK]), self.removal.present)
                for i in range(0, len(masks), _BLOCK)
            ]
        )
        ends = np.cumsum(sizes)
        start = 0
        while start < len(masks):
            before = int(ends[start - 1]) if start else 0
            stop = start + 1
            if self.batched:
                stop = max(stop, int(np.searchsorted(ends, before + self.batch_nodes, "right")))
            yield slice(start, stop)
            start = stop

    def outputs(self, masks: Masks, change: Change | None = None) -> Tensor:
        """Outputs (k, columns) of one batch of packed coalitions.

        ``change`` is applied to the model's inputs before it is called.
        """
        found, anchors, nodes = self._run(masks, change)
        if self.task_level == "node":
            found = outputs_matrix(found, nodes)[anchors[0]]
        return outputs_matrix(found, len(masks))

    def node_outputs(self) -> Tensor:
        """Outputs (N, columns) of a node-level model for all nodes, with everybody present."""
        found, _, nodes = self._run(self.everybody, None)
        return outputs_matrix(found, nodes)

    def _run(self, masks: Masks, change: Change | None) -> tuple[Any, Tensor, int]:
        """What the model returns for a batch, the places of the targets, the number of nodes."""
        fields, places = self.removal.fields(self.nodes_of(masks))
        anchors = torch.from_numpy(places.T.copy()).to(self.removal.tensors.device)
        if self.task_level == "edge":
            fields["edge_label_index"] = anchors
        if change is not None:
            fields = change(fields)
        return call_model(self.model, self.signature, fields), anchors, fields["num_nodes"]

    def nodes_of(self, masks: Masks) -> Masks:
        """Packed coalitions of nodes from those of players: all who do not play are in them."""
        if self.all_play:
            return masks
        nodes = np.ones((len(masks), self.removal.tensors.num_nodes), dtype=np.bool_)
        nodes[:, self.players] = unpack(masks, len(self.players))
        return pack(nodes)
