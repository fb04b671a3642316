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
from gstarx.gnn.own_code import looks_across
from gstarx.gnn.payoff import outputs_matrix
from gstarx.gnn.removal import Removal
from gstarx.gnn.self_check import doubled, doubled_fields
from gstarx.gnn.signature import Model, Signature, call_model, submodules
from gstarx.graphs import Masks, pack, unpack

#: Numbers of one activation that stay in a core's cache; more nodes per batch cost, fewer too.
_CPU_ACTIVATION = 3 << 16
_CPU_NODES = (512, 8192)
_OTHER_NODES = 1 << 18
#: Coalitions whose sizes are counted at once.
_BLOCK = 4096
#: Coalitions of one game that are evaluated by themselves at most.
_MOST_ALONE = 256
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

    What a removal takes away are units: nodes, edges or columns. ``player_of`` names the player of
    every unit, -1 for one that is always there; by default every unit is a player.
    """

    def __init__(
        self,
        model: Model,
        signature: Signature,
        removal: Removal,
        *,
        task_level: str,
        batch_nodes: int,
        player_of: NDArray[np.int64] | None = None,
    ) -> None:
        self.model = model
        self.signature = signature
        self.removal = removal
        self.task_level = task_level
        self.batch_nodes = batch_nodes
        units = np.arange(removal.num_units)
        self.player_of = units if player_of is None else player_of
        self.num_players = int(self.player_of.max(initial=-1)) + 1
        #: Whether every unit is a player, in the same order.
        self.all_play = bool(np.array_equal(self.player_of, units))
        #: Whether several coalitions can go through the model at once.
        self.batched = task_level != "graph" or signature.takes_batch
        self.batched &= not takes_batch_statistics(model)

    @property
    def everybody(self) -> Masks:
        """The coalition of all players, packed (1, words)."""
        return pack(np.ones((1, self.num_players), dtype=np.bool_))

    @property
    def one_player(self) -> Masks:
        """A single player, packed (1, words): the target, if that is one."""
        alone = 0
        anchors = self.removal.anchors
        if len(anchors) and self.removal.num_units == self.removal.tensors.num_nodes:
            alone = max(alone, int(self.player_of[anchors[0]]))
        return pack(np.arange(self.num_players)[None] == alone)

    def batches(self, masks: Masks) -> Iterator[slice]:
        """Consecutive coalitions with at most ``batch_nodes`` nodes together, at least one each."""
        sizes = np.concatenate(
            [
                self.removal.sizes(self.units_of(masks[i : i + _BLOCK]))
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

        Where a removal draws what absent features are replaced by, the columns of all draws are
        behind each other. A coalition that comes alone is evaluated draw by draw, so that it is
        really alone. ``change`` is applied to the model's inputs before it is called.
        """
        draws = self.removal.draws
        if draws > 1 and len(masks) == 1:
            apart = [self._outputs(self.removal.of_draw(at), masks, change) for at in range(draws)]
            return torch.cat(apart, dim=1)
        return self._outputs(self.removal, masks, change)

    def _outputs(self, removal: Removal, masks: Masks, change: Change | None) -> Tensor:
        outputs, anchors, nodes = self._run(removal, masks, change)
        if self.task_level == "node":
            outputs = outputs_matrix(outputs, nodes)[anchors[0]]
        return outputs_matrix(outputs, len(masks) * removal.draws).reshape(len(masks), -1)

    def double_outputs(self, masks: Masks) -> Tensor:
        """The same as :meth:`outputs`, in double precision."""
        with doubled(self.model):
            return self.outputs(masks, doubled_fields)

    def node_outputs(self) -> Tensor:
        """Outputs (N, columns) of a node-level model for all nodes, with everybody present."""
        outputs, _, nodes = self._run(self.removal.entire.of_draw(0), self.everybody, None)
        return outputs_matrix(outputs, nodes)

    def _run(
        self, removal: Removal, masks: Masks, change: Change | None
    ) -> tuple[Any, Tensor, int]:
        """What the model returns for a batch, the places of the targets, the number of nodes."""
        fields, places = removal.fields(self.units_of(masks))
        anchors = torch.from_numpy(places.T.copy()).to(self.removal.tensors.device)
        if self.task_level == "edge":
            fields["edge_label_index"] = anchors
        if change is not None:
            fields = change(fields)
        return call_model(self.model, self.signature, fields), anchors, fields["num_nodes"]

    def units_of(self, masks: Masks) -> Masks:
        """Packed coalitions of units from those of players: what does not play is in them."""
        if self.all_play:
            return masks
        playing = self.player_of >= 0
        units = np.ones((len(masks), len(self.player_of)), dtype=np.bool_)
        units[:, playing] = unpack(masks, self.num_players)[:, self.player_of[playing]]
        return pack(units)


class Ends:
    """Which coalitions to evaluate by themselves: the extremes, and of some models many more.

    The smallest, the largest, one without edges, and the smallest with an edge: a model may treat
    them in a way of its own, which shows only when they are alone. Each is named once: a later one
    only if it is more extreme. Where the model's own code looks at several nodes at once
    (:mod:`gstarx.gnn.own_code`), many coalitions are named, or all where there are few.
    """

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._extremes: dict[str, int] = {}
        self._left = _MOST_ALONE

    def fresh(self, masks: Masks) -> list[int]:
        """Rows of packed coalitions that are more extreme than all before, each once.

        In number of players, in number of nodes, and in having no edges or hardly any.
        """
        rows = dict[str, int]()
        for first in range(0, len(masks), _BLOCK):
            self._look(masks[first : first + _BLOCK], first, rows)
        small = [row for kind, row in rows.items() if kind.startswith("fewest")]
        if "no edges" in rows and small:
            # the smallest may serve for both
            units = self._evaluator.units_of(masks[small])
            alone = np.flatnonzero(~self._evaluator.removal.with_edges(units))
            rows["no edges"] = small[alone[0]] if len(alone) else rows["no edges"]
        more = self._many(masks) if looks_across(self._evaluator.model) else []
        return list(dict.fromkeys([*rows.values(), *more]))

    def all_alone(self, masks: Masks) -> bool:
        """Whether all coalitions are to be compared with themselves alone, as there are few."""
        alone = len(masks) <= self._left and looks_across(self._evaluator.model)
        self._left -= len(masks) * alone
        return alone

    def _look(self, masks: Masks, first: int, rows: dict[str, int]) -> None:
        """Note rows of some coalitions, the first of which has this number."""
        removal, units = self._evaluator.removal, self._evaluator.units_of(masks)
        players, nodes = coalition_sizes(masks, np.zeros_like(masks[:1])), removal.sizes(units)
        kinds = {"fewest players": -players, "fewest nodes": -nodes, "most nodes": nodes}
        for kind, sizes in kinds.items():
            self._note(kind, sizes, np.arange(len(masks)), first, rows)
        least = -self._extremes.get("some edges", -np.iinfo(np.int64).max)
        wanted = np.flatnonzero(nodes < least)
        if "no edges" not in self._extremes:
            wanted = np.arange(len(masks))
        if len(wanted):
            linked = removal.with_edges(units[wanted])
            if "no edges" not in self._extremes:
                self._note("no edges", np.zeros_like(nodes), wanted[~linked], first, rows)
            self._note("some edges", -nodes, wanted[linked], first, rows)

    def _note(
        self,
        kind: str,
        sizes: NDArray[np.int64],
        among: NDArray[np.int64],
        first: int,
        rows: dict[str, int],
    ) -> None:
        if not len(among):
            return
        row = int(among[sizes[among].argmax()])
        if sizes[row] > self._extremes.get(kind, sizes[row] - 1):
            self._extremes[kind], rows[kind] = int(sizes[row]), first + row

    def _many(self, masks: Masks) -> list[int]:
        """All rows if few are left to be named, else one of every size and some others."""
        chosen = np.arange(len(masks))
        if len(masks) > self._left:
            sizes = self._evaluator.removal.sizes(self._evaluator.units_of(masks))
            each = np.unique(sizes, return_index=True)[1]
            others = np.random.default_rng(len(masks)).permutation(len(masks))[: self._left // 2]
            chosen = np.concatenate([each, others])[: self._left]
        self._left -= len(chosen)
        return [int(row) for row in chosen]
