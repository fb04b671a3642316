"""Evaluating coalitions by states: each distinct embedding is computed once for a block of them.

States are the colors of Weisfeiler-Leman color refinement (:mod:`gstarx.graphs.color_refinement`).
That a model allows it is established in three ways, and all of them must agree: the model reads
edges by message passing only (:mod:`gstarx.gnn.watched_edges`) and ``batch`` by its readout only
(:mod:`gstarx.gnn.readout`); a change of some states is noticed by those that messages reach, and by
no others (:mod:`gstarx.gnn.disturbance`); outputs are compared with those of the ordinary path,
first and at random places later on. Where anything speaks against sharing, :class:`NotShareable`
says what, and the ordinary path has to compute all numbers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from gstarx.gnn.disturbance import Disturbance, is_due, suspect
from gstarx.gnn.evaluator import Ends, Evaluator
from gstarx.gnn.hetero import hetero_of
from gstarx.gnn.k_hop import Propagation, grow_hops, watch_propagation
from gstarx.gnn.known_layers import ordered_aggregation, read_by_messages, scales_by_degree
from gstarx.gnn.needed_messages import needed_messages
from gstarx.gnn.options import ShareLike
from gstarx.gnn.own_code import opaque_part
from gstarx.gnn.payoff import outputs_matrix
from gstarx.gnn.readout import Members, StandIn, rows_for_aggregations
from gstarx.gnn.removal import TouchedRemoval
from gstarx.gnn.self_check import Scale, SelfCheck, difference, doubled, doubled_fields
from gstarx.gnn.signature import call_model
from gstarx.gnn.watched_edges import NotShareable, refusals_stand, watch
from gstarx.graphs import ALL_BITS, Block, Masks, StateRules, StateTable, pack

#: Worth it: at least so many nodes of coalitions, so many of them for every state of the first
#: block, and, where that is the only one, so many that need no pass. A rule on counts, so that the
#: same question is always answered the same way.
_FEWEST_NODES = 2048
_FEWEST_PER_STATE = 2.0
_FEWEST_SAVED = 1024
#: States of a block for every node of an ordinary batch; at most so many on a CPU, whose cache
#: holds their table, and elsewhere; nodes of coalitions for every state.
_STATES_PER_NODE = 4
_MOST_STATES, _MOST_ELSEWHERE = 1 << 13, 1 << 16
_MEMBERS_PER_STATE = 64
#: Where all nodes are present in every coalition, a block takes at least so many graphs.
_BLOCK_GRAPHS = 4
#: Features of so many bytes are taken to be different for all nodes, without looking.
_MOST_COMPARED = 1024
#: Beyond this many nodes that all count, hardly any coalitions agree on enough of them.
_MOST_NODES = 4096
#: Coalitions of the first block, and of all later ones together, that also go the ordinary way. If
#: there are few coalitions in all, every one of them does.
_COMPARED, _FEW = 32, 128
#: A model that cannot share shows it at once, in so many coalitions from everywhere.
_GLANCED = 24
#: Random coalitions that show whether sharing is possible.
_TRIED = 1024
#: Players that are some of the nodes only: coalitions turned into nodes at once.
_CHUNK = 1 << 16


@dataclass(frozen=True)
class Sharing:
    """Whether coalitions shared embeddings, and how many, or why they did not.

    Attributes
    ----------
    used
        Whether any worth was computed from shared embeddings.
    nodes
        Nodes of the coalitions that shared: what the ordinary path sends through the model.
    states
        Nodes that went through the model instead.
    reason
        Why nothing was shared; empty where something was.
    """

    used: bool = False
    nodes: int = 0
    states: int = 0
    reason: str = ""

    def as_dict(self) -> dict[str, Any]:
        """What an explanation records."""
        return asdict(self)


class SharedPasses:
    """The coalitions of one game, evaluated by states.

    Attributes
    ----------
    reason
        Why coalitions cannot share, or did not the last time.
    possible
        Whether nothing is known that speaks against sharing.
    """

    def __init__(self, evaluator: Evaluator, share: ShareLike, check: SelfCheck) -> None:
        self._evaluator, self._share, self._check = evaluator, share, check
        self.reason = _reason_against(evaluator) if share is not False else "share=False"
        self.possible = not self.reason
        self.propagation: Propagation | None = None
        self._rules: StateRules | None = None
        self._table: StateTable | None = None
        self._trusted = False
        self._blocks = self._nodes = self._states = 0
        self._random = np.random.default_rng(0)
        self._waiting: list[tuple[Masks, Tensor]] = []
        self._ends = Ends(evaluator)
        self._scale: Scale | None = None
        self._bits = ALL_BITS
        if self.reason and share is True:
            raise ValueError(f"share=True: coalitions cannot share embeddings: {self.reason}")

    @property
    def sharing(self) -> Sharing:
        """What happened so far."""
        used = self._nodes > 0
        return Sharing(used, self._nodes, self._states, "" if used else self.reason)

    def consider(self, masks: Masks) -> bool:
        """Whether so many coalitions may be worth it, before anything is computed of them."""
        if self.possible and not self._evaluator.batched:
            self.possible, self.reason = False, self._check.one_by_one
        if not self.possible:
            return False
        if self._share is not True:
            units = self._evaluator.units_of(masks[:_FEWEST_NODES])
            if int(self._evaluator.removal.sizes(units).sum()) < _FEWEST_NODES:
                self.reason = "there are few coalitions"
                return False
        return True

    def outputs(self, masks: Masks, full_output: Tensor | None = None) -> Iterator[Tensor]:
        """Outputs of packed coalitions, block by block, in order.

        ``full_output`` (1, columns) is that of all players, if it is known. Where sharing is not
        worth it, nothing is yielded at all. After :class:`NotShareable` no output from here is to
        be trusted, not even an earlier one.
        """
        first, before, self._table = 0, self._blocks, None
        due = not self._trusted and is_due(self._evaluator.model)
        fresh = np.array([] if due else self._ends.fresh(masks), dtype=np.int64)
        while first < len(masks):
            rows = masks[first:]
            try:
                block = self._block(rows)
                if first == 0 and not self._worth_it(block, len(masks)):
                    break
                if self._trusted:
                    outputs = self._run(block)
                else:
                    outputs = self._first_outputs(masks, block, full_output, due=due)
                for row in fresh[(fresh >= first) & (fresh < first + block.coalitions)] - first:
                    everybody = np.array_equal(rows[row], self._evaluator.everybody[0])
                    known = full_output if everybody else None
                    self._require_same(rows[row : row + 1], outputs[[row]], known)
                self._note(rows[: block.coalitions], outputs, full_output)
            except Exception as error:
                raise _as_reason(error) from error
            self._nodes += len(block.members)
            self._states += len(block.nodes)
            first += block.coalitions
            # after calls of one block only now and then, as each costs a pass
            often = self._blocks > before + 1 or not self._blocks & (self._blocks - 1)
            if len(self._waiting) >= _COMPARED or (first == len(masks) and often):
                self._compare_waiting()
            yield outputs
        self._table = None

    def try_out(self, full_output: Tensor) -> bool:
        """Whether random coalitions can share and it is worth it; the output as for outputs."""
        if not self.possible:
            return False
        if not self._trusted:
            chosen = np.random.default_rng(0).random((_TRIED, self._evaluator.num_players)) < 0.5
            masks = pack(chosen[chosen.any(axis=1)])
            try:
                block = self._block(masks)
                if self._worth_it(block, len(masks)):
                    due = is_due(self._evaluator.model)
                    self._first_outputs(masks, block, full_output, due=due)
            except Exception as error:
                self.forget(str(_as_reason(error)))
        return self._trusted

    def forget(self, reason: str) -> None:
        """Stop sharing for good; later games of this model begin with a glance again."""
        suspect(self._evaluator.model)
        self.possible, self.reason = False, reason
        self._nodes = self._states = 0
        self._waiting.clear()
        if self._share is True:
            raise ValueError(f"share=True: coalitions cannot share embeddings: {reason}")
        self._table = None

    def _worth_it(self, block: Block, coalitions: int) -> bool:
        nodes, states = len(block.members), len(block.nodes)
        enough = nodes - states >= _FEWEST_SAVED or block.coalitions < coalitions
        if self._share is True or (enough and nodes >= _FEWEST_PER_STATE * states):
            return True
        self.reason = f"little is shared: {nodes:,} nodes have {states:,} states"
        return False

    def _first_outputs(
        self, masks: Masks, block: Block, full_output: Tensor | None, *, due: bool
    ) -> Tensor:
        """Outputs of a first block, after all that has to hold before any is given out.

        A model that shared before is glanced at now and then, if that is ``due``.
        """
        if due:
            self._glance(masks, full_output)
        outputs = self._run(block)
        self._scale = Scale.of(outputs)
        few = len(masks) <= _FEW
        # in another order than in the block
        chosen = self._random.permutation(block.coalitions)[: None if few else _COMPARED]
        self._require_same(masks[chosen], outputs[chosen])
        self._trusted = True
        return outputs

    def _glance(self, masks: Masks, full_output: Tensor | None) -> None:
        """Require of some coalitions from everywhere that they can share.

        In front are those that a model may treat in a way of its own: everybody, a single player
        and the extremes. They share with the others, and are compared with themselves alone.
        """
        # several graphs at once are never there all together
        everybody = self._evaluator.everybody[: 0 if full_output is None else 1]
        ends = masks[self._ends.fresh(masks)]
        extremes = np.concatenate([everybody, self._evaluator.one_player, ends])
        extremes = extremes[np.sort(np.unique(extremes, axis=0, return_index=True)[1])]
        spread = np.linspace(0, len(masks) - 1, min(_GLANCED, len(masks))).astype(np.int64)
        rows, first = np.concatenate([extremes, masks[np.unique(spread)]]), 0
        while first < len(extremes):
            # in a table of its own: the block stays as it is
            glance = self._block(rows[first:], self._new_table(len(rows)))
            outputs = self._run(glance) if first else self._require_local(glance)
            for at in range(first, min(first + glance.coalitions, len(extremes))):
                known = full_output if at < len(everybody) else None
                self._require_same(rows[at : at + 1], outputs[[at - first]], known)
            first += glance.coalitions

    def _require_local(self, block: Block) -> Tensor:
        """Outputs of a block; raise unless changes show only where messages carry them."""
        evaluator, rules = self._evaluator, self._rules
        assert rules is not None
        assert self.propagation is not None
        read: list[Tensor] = []
        shapes: list[tuple[int, ...]] = []
        outputs = self._run(block, read=read, shapes=shapes)
        self._scale = Scale.of(outputs)
        plan = Disturbance.of(
            block, self.propagation.calls, _types(evaluator), self._random, counted=rules.counted
        )
        if plan is None:
            return outputs
        same = self._notices_nothing(block, plan, outputs, read, shapes)
        if same is None:
            try:
                with doubled(evaluator.model):
                    again: list[Tensor] = []
                    in_double = self._run(block, double=True, read=again)
                    same = self._notices_nothing(block, plan, in_double, again, double=True)
            except NotShareable:
                raise
            except Exception:  # a function, or a model that fixes its precision
                same = False
        if not same:
            raise NotShareable(
                "the embedding of a node depends on more than the messages that reach it: it "
                "changes with nodes or edges that are farther away"
            )
        return outputs

    def _notices_nothing(
        self,
        block: Block,
        plan: Disturbance,
        outputs: Tensor,
        before: list[Tensor],
        shapes: Sequence[tuple[int, ...]] = (),
        *,
        double: bool = False,
    ) -> bool | None:
        """Whether embeddings stay the same where nothing changed; ``None`` in doubt.

        ``outputs`` are those of the block itself, ``before`` what its readout was given, and
        ``shapes`` those of what its layers were given.
        """
        after: list[Tensor] = []
        new: list[tuple[int, ...]] = []
        try:
            changed = self._run(plan.block, plan, double=double, read=after, shapes=new)
        except NotShareable:
            raise
        except Exception:  # features that noise makes invalid, such as logarithms of something
            after.clear()
            quiet = replace(plan, noisy=np.zeros_like(plan.noisy))
            new.clear()
            changed = self._run(plan.block, quiet, double=double, read=after, shapes=new)
        if plan.depends_on_count(shapes, new):
            return False
        if self._evaluator.task_level != "graph":
            asked = torch.from_numpy(plan.unchanged[block.asked].all(axis=1))
            return Scale.of(outputs).same(outputs[asked], changed[asked])
        if [a.shape[1:] for a in before] != [b.shape[1:] for b in after]:
            return False
        place, rows = torch.from_numpy(plan.place), torch.from_numpy(plan.unchanged)
        answers = []
        for a, b in zip(before, after, strict=True):
            one, two = a.reshape(len(a), -1), b[place.to(b.device)].reshape(len(a), -1)
            answers.append(Scale.of(one).same(one[rows.to(one.device)], two[rows.to(two.device)]))
        return False if False in answers else None if None in answers else True

    def _note(self, rows: Masks, outputs: Tensor, full_output: Tensor | None) -> None:
        """Compare what is not finite, and remember a coalition of the block to be compared."""
        if full_output is not None and outputs.shape[1] != full_output.shape[1]:
            raise NotShareable("the number of outputs changes")
        bad = (~outputs.isfinite().all(dim=1)).nonzero()[:_COMPARED, 0].cpu().numpy()
        if len(bad):
            self._require_same(rows[bad], outputs[bad])
        self._blocks += 1
        if self._blocks > 1:
            chosen = self._random.integers(len(rows), size=1)
            self._waiting.append((rows[chosen].copy(), outputs[chosen].clone()))

    def _compare_waiting(self) -> None:
        if not self._waiting:
            return
        masks = np.concatenate([mask for mask, _ in self._waiting])
        outputs = torch.cat([output for _, output in self._waiting])
        self._waiting.clear()
        self._require_same(masks, outputs)

    def _require_same(self, masks: Masks, shared: Tensor, known: Tensor | None = None) -> None:
        """Raise unless the ordinary path gives the same outputs."""
        if known is None:
            known = self._ordinary_outputs(masks)
        assert self._scale is not None
        scale = self._scale
        same = self._check.same(shared, known, scale)
        if same is None:
            same = self._same_in_double(masks)
        if not same:
            raise NotShareable(
                "the embedding of a node depends on more than the messages that reach it: outputs "
                f"differ by {difference(shared, known):.3g}, where they spread over "
                f"{float(scale.spread.max()):.3g}"
            )

    def _same_in_double(self, masks: Masks) -> bool:
        """Whether both paths give the same outputs in double precision, as far as can be had."""
        try:
            with doubled(self._evaluator.model):
                shared = self._shared_outputs(masks, double=True)
                known = self._ordinary_outputs(masks, double=True)
        except Exception:  # a function, or a model that fixes its precision
            return False
        if {shared.dtype, known.dtype} != {torch.float64}:
            return False
        # one coalition has no spread: its size is the scale
        scale = Scale.of(shared if len(shared) > 1 else torch.cat([shared, 0 * shared]))
        return scale.same(shared, known) is True

    def _shared_outputs(self, masks: Masks, *, double: bool = False) -> Tensor:
        """Outputs of a few coalitions from blocks of their own."""
        parts: list[Tensor] = []
        while len(masks):
            block = self._block(masks, self._new_table(len(masks)))
            parts.append(self._run(block, double=double))
            masks = masks[block.coalitions :]
        return torch.cat(parts)

    def _ordinary_outputs(self, masks: Masks, *, double: bool = False) -> Tensor:
        """Outputs of a few coalitions by the ordinary path."""
        change = doubled_fields if double else None
        try:
            batches = self._evaluator.batches(masks)
            return torch.cat([self._evaluator.outputs(masks[at], change) for at in batches])
        except Exception as error:
            raise NotShareable("the ordinary path fails where this one does not") from error

    def _block(self, masks: Masks, table: StateTable | None = None) -> Block:
        """The states of the first coalitions, in the table for blocks or another one."""
        evaluator, removal = self._evaluator, self._evaluator.removal
        if self._rules is None:
            self._prepare(counted=scales_by_degree(evaluator.model))
        if table is None:
            table = self._table = self._table or self._new_table(len(masks))
        tensors = removal.tensors
        linked = np.zeros_like(removal.present) if removal.linked is None else removal.linked
        units = masks
        if not evaluator.all_play:
            # no more coalitions fit into a block, by the nodes that are present in all of them
            always = int((evaluator.player_of < 0).sum())
            always = tensors.num_nodes if removal.by_edges else max(always, 1)
            units = evaluator.units_of(masks[: min(table.members // always + 1, _CHUNK)])
        return table.block(units, removal.present, linked, removal.anchors, self._bits)

    def _prepare(self, *, counted: bool) -> None:
        """Find out what decides the state of a node."""
        evaluator = self._evaluator
        if self.propagation is None:
            with watch_propagation(evaluator.model) as self.propagation:
                evaluator.outputs(evaluator.everybody)
        flow, tensors = self.propagation.flow, evaluator.removal.tensors
        edges = tensors.edge_index
        if flow == "both" and self.propagation.calls:
            raise NotShareable("its layers pass messages both ways along an edge")
        if flow == "target_to_source":
            edges = np.ascontiguousarray(edges[::-1])
        self._rules, self._table = None, None
        self._rules = StateRules.of(
            edges,
            _kinds(tensors.node, evaluator, tensors.num_nodes),
            _kinds(tensors.edge, evaluator, edges.shape[1]),
            _levels(evaluator, self.propagation.calls, flow),
            counted=counted,
            by_edges=evaluator.removal.by_edges,
            types=_types(evaluator),
        )

    def _new_table(self, coalitions: int) -> StateTable:
        """A table for blocks of so many coalitions, or as many as a block may hold."""
        assert self._rules is not None
        tensors = self._evaluator.removal.tensors
        most = _MOST_STATES if tensors.device.type == "cpu" else _MOST_ELSEWHERE
        states = min(_STATES_PER_NODE * self._evaluator.batch_nodes, most)
        if self._evaluator.removal.by_edges or self._evaluator.task_level != "graph":
            states = max(states, _BLOCK_GRAPHS * tensors.num_nodes)
        members = min(_MEMBERS_PER_STATE * states, coalitions * tensors.num_nodes)
        return StateTable(self._rules, min(states, members), members)

    def _run(
        self,
        block: Block,
        plan: Disturbance | None = None,
        *,
        double: bool = False,
        read: list[Tensor] | None = None,
        shapes: list[tuple[int, ...]] | None = None,
    ) -> Tensor:
        """Outputs of the coalitions of a block, from one pass over its states.

        ``plan`` says that it is disturbed; what the readout is given is added to ``read``, and the
        shapes of what ``propagate`` is given to ``shapes``.
        """
        evaluator, removal = self._evaluator, self._evaluator.removal
        assert self.propagation is not None
        ends = block.ends
        if self.propagation.flow == "target_to_source":
            ends = ends[::-1].copy()  # torch takes no array that is read backward
        fields = removal.tensors.chosen(
            block.nodes if plan is None else plan.features,
            block.edges,
            np.ascontiguousarray(ends),
            block.coalitions,
        )
        hetero = evaluator.signature.hetero is not None
        if plan is not None and not hetero:
            fields = plan.noise(fields, list(removal.tensors.node))
        if double:
            fields = doubled_fields(fields)
        if not hetero:
            fields = watch(fields, removal.tensors.edge)
        device = removal.tensors.device
        members = Members(len(block.nodes), block.members, block.begins, device)
        fields |= {"batch": StandIn.of(members), "batch_size": block.coalitions}
        if removal.name == "zero_filling":
            fields["x"] = _zeroed(fields["x"], block, removal.anchors)
        places = torch.from_numpy(block.asked.T.copy()).to(device)
        if evaluator.task_level == "edge":
            fields["edge_label_index"] = places
        ptr = StandIn.forbidden(block.coalitions + 1, device)
        assert self._rules is not None
        level = self._rules.level[block.nodes]
        if hetero or self.propagation.calls != self.propagation.total:
            # relations number their nodes by themselves, and calls side by side are one round
            level = np.full_like(level, self.propagation.total)
        around = partial(needed_messages, evaluator.model, level, self.propagation.total)
        model, shapes = evaluator.model, [] if shapes is None else shapes
        with refusals_stand(), rows_for_aggregations(model), read_by_messages(model, shapes):
            output = call_model(model, evaluator.signature, fields, ptr, around)
        if evaluator.task_level == "node":
            output = outputs_matrix(output, len(block.nodes))[places[0]]
        if isinstance(output, StandIn):
            raise NotShareable("the model returns batch")
        if read is not None:
            read += members.read
        return outputs_matrix(output, block.coalitions)


def _reason_against(evaluator: Evaluator) -> str:
    """Why coalitions cannot share embeddings, as far as it shows without running the model."""
    removal, signature = evaluator.removal, evaluator.signature
    if not evaluator.batched:
        return "the model does not take batch, or normalizes by the batch"
    if evaluator.batch_nodes == 1:
        return "batch_nodes=1 asks for one coalition at a time"
    if signature.hetero is not None and evaluator.task_level == "graph":
        return "readouts of heterogeneous graphs are computed coalition by coalition"
    if removal.name == "features":
        return "features are the players: every coalition changes all nodes"
    if isinstance(removal, TouchedRemoval):
        return "edges are the players and bring their nodes with them"
    if removal.function is not None:
        return "what a removal of your own leaves of the graph is not known beforehand"
    wanted = (*signature.positional, *signature.keywords)
    if len(removal.tensors.named) and (
        signature.takes_data or any(name in wanted for name in removal.tensors.ids)
    ):
        return "the model takes a field that names nodes"
    # what has a default is left out, and outputs are compared as always
    if removal.tensors.edge_ids and (
        signature.takes_data
        or any(
            name in wanted and name not in signature.optional for name in removal.tensors.edge_ids
        )
    ):
        return "the model takes a field that names edges"
    whole = evaluator.task_level == "graph" and not removal.by_edges
    if removal.tensors.num_nodes > _MOST_NODES and whole:
        return (
            f"the graph has more than {_MOST_NODES:,} nodes; groups of nodes as players, or a "
            "smaller budget, need fewer evaluations"
        )
    opaque = opaque_part(evaluator.model)
    if opaque:
        return opaque
    ordered = ordered_aggregation(evaluator.model)
    if ordered:
        return f"{ordered} may depend on the order of nodes"
    return ""


def _kinds(fields: dict[str, Tensor], evaluator: Evaluator, count: int) -> NDArray[np.int64]:
    """A number for every node or edge, the same where all fields that the model takes are."""
    signature = evaluator.signature
    wanted = {*signature.positional, *signature.keywords}
    rows = [
        np.ascontiguousarray(value.detach().cpu().reshape(count, -1).numpy()).view(np.uint8)
        for name, value in fields.items()
        if (signature.takes_data or name in wanted) and value.numel()
    ]
    if not rows:
        return np.zeros(count, dtype=np.int64)
    if sum(row.shape[1] for row in rows) > _MOST_COMPARED:
        return np.arange(count)
    joined = np.ascontiguousarray(np.concatenate(rows, axis=1))
    as_bytes = joined.view(np.dtype((np.void, joined.shape[1]))).reshape(-1)
    return np.unique(as_bytes, return_inverse=True)[1].reshape(-1).astype(np.int64)


def _levels(evaluator: Evaluator, rounds: int, flow: str) -> NDArray[np.int64]:
    """How many rounds of messages count for every node: fewer, the further from what is asked.

    -1 for nodes that no message comes from in time, not even from one that is heard at the end.
    """
    tensors, anchors = evaluator.removal.tensors, evaluator.removal.anchors
    if evaluator.task_level == "graph":
        return np.full(tensors.num_nodes, rounds)
    level = np.zeros(tensors.num_nodes, dtype=np.int64)
    around = grow_hops(tensors.edge_index, tensors.num_nodes, anchors, flow)
    inside = np.zeros(tensors.num_nodes, dtype=np.bool_)
    for _ in range(rounds):
        # messages go on where there is nobody new to reach
        inside = next(around, inside)
        level += inside
    return np.where(next(around, inside), level, -1)


def _types(evaluator: Evaluator) -> NDArray[np.int64]:
    """The type of every node of a heterogeneous graph, (n,)."""
    removal = evaluator.removal
    graph = hetero_of(removal.data)
    if graph is None:
        return np.zeros(removal.tensors.num_nodes, dtype=np.int64)
    return np.asarray(graph.type_of[removal.data.node_id.cpu().numpy()])


def _zeroed(x: Tensor, block: Block, anchors: NDArray[np.int64]) -> Tensor:
    """Features with those of absent nodes set to zero."""
    gone = torch.from_numpy(block.absent & ~np.isin(block.nodes, anchors)).to(x.device)
    return x.masked_fill(gone.reshape(-1, *[1] * (x.dim() - 1)), 0)


def _as_reason(error: Exception) -> NotShareable:
    if isinstance(error, NotShareable):
        return error
    words = (str(error).strip() or repr(error)).splitlines()
    reason = next((line for line in words if "batch for more than" in line), words[0])
    return NotShareable(f"the model fails on shared nodes: {type(error).__name__}: {reason}")
