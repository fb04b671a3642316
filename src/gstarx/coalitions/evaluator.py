"""Running a model over many coalitions, in batches of bounded size."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from torch import Tensor
from torch.nn.modules.batchnorm import _BatchNorm

from gstarx.coalitions.batching import coalition_sizes
from gstarx.coalitions.guard import remembered
from gstarx.coalitions.payoff import outputs_matrix
from gstarx.coalitions.removal import Removal
from gstarx.coalitions.signature import Model, Signature, call_model
from gstarx.graphs.bitmasks import Masks, pack

#: Numbers of one activation that stay in a core's cache; more nodes per batch cost, fewer too.
_CPU_ACTIVATION = 3 << 16
_CPU_NODES = (512, 8192)
_OTHER_NODES = 1 << 18


@remembered
def default_batch_nodes(model: Model, device: torch.device) -> int:
    """Nodes per batch: a fixed rule by device and model width, never tuned while running.

    On a CPU the activations of a layer should stay in cache: the widest layer decides, between 512
    and 8,192 nodes. On other devices, 262,144 nodes.
    """
    if device.type != "cpu":
        return _OTHER_NODES
    modules = model.modules() if isinstance(model, torch.nn.Module) else []
    # the rows of an embedding are its vocabulary, its width is that of a row
    widths = [
        parameter.shape[1] if isinstance(module, torch.nn.Embedding) else parameter.shape[0]
        for module in modules
        for parameter in module._parameters.values()
        if parameter is not None and parameter.dim() > 1
    ]
    width = max(widths, default=64)
    fewest, most = _CPU_NODES
    return min(max(_CPU_ACTIVATION // width, fewest), most)


@remembered
def takes_batch_statistics(model: Model) -> bool:
    """Whether a layer normalises by all that is in a batch, even in evaluation mode."""
    modules = model.modules() if isinstance(model, torch.nn.Module) else ()
    return any(isinstance(module, _BatchNorm) and module.running_mean is None for module in modules)


class Evaluator:
    """A model, a graph and a removal: from packed coalitions to outputs."""

    def __init__(
        self,
        model: Model,
        signature: Signature,
        removal: Removal,
        *,
        task_level: str,
        batch_nodes: int,
    ) -> None:
        self.model = model
        self.signature = signature
        self.removal = removal
        self.task_level = task_level
        self.batch_nodes = batch_nodes
        #: Whether several coalitions can go through the model at once.
        self.batched = task_level != "graph" or signature.takes_batch
        self.batched &= not takes_batch_statistics(model)

    def batches(self, masks: Masks) -> Iterator[slice]:
        """Consecutive coalitions with at most ``batch_nodes`` nodes together, at least one each."""
        sizes = coalition_sizes(masks, self.removal.present)
        ends = np.cumsum(sizes)
        start = 0
        while start < len(masks):
            before = int(ends[start - 1]) if start else 0
            stop = start + 1
            if self.batched:
                stop = max(stop, int(np.searchsorted(ends, before + self.batch_nodes, "right")))
            yield slice(start, stop)
            start = stop

    def outputs(self, masks: Masks) -> Tensor:
        """Outputs (k, columns) of one batch of packed coalitions."""
        fields, places = self.removal.fields(masks)
        anchors = torch.from_numpy(places.T.copy()).to(self.removal.tensors.device)
        if self.task_level == "edge":
            fields["edge_label_index"] = anchors
        found = call_model(self.model, self.signature, fields)
        if self.task_level == "node":
            found = outputs_matrix(found, fields["num_nodes"])[anchors[0]]
        return outputs_matrix(found, len(masks))

    def mixes(self) -> bool:
        """Whether outputs depend on what else is in the batch, as with norms over all nodes."""
        masks = pack(np.array([[True], [False]]).repeat(self.removal.tensors.num_nodes, axis=1))
        try:
            apart = torch.cat([self.outputs(masks[:1]), self.outputs(masks[1:])])
            together = self.outputs(masks)
        except Exception:
            return True  # one by one it will be said which coalition the model does not take
        return not torch.allclose(together, apart, rtol=1e-4, atol=1e-5, equal_nan=True)
