"""Who plays and on which part of the graph: all of it, or what is around a node or pair."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.gnn.baseline import BaselineLike
from gstarx.gnn.evaluator import Change, Evaluator, default_batch_nodes
from gstarx.gnn.fields import GraphTensors, Roles, cut, roles_of
from gstarx.gnn.hetero import disturbed, hetero_of
from gstarx.gnn.k_hop import Propagation, grow_hops, watch_propagation
from gstarx.gnn.known_layers import scales_by_degree
from gstarx.gnn.local_part import (
    LocalPart,
    WholeGraph,
    local_kind,
    local_part,
)
from gstarx.gnn.model_state import masked_layers, untouched
from gstarx.gnn.model_task import ModelTask
from gstarx.gnn.options import GameOptions
from gstarx.gnn.own_code import looks_across, wants_all
from gstarx.gnn.removal import RemovalLike, removal_of, resolve_removal
from gstarx.gnn.self_check import difference, refuse_random, rounding, size_of
from gstarx.gnn.signature import Model, Signature, model_device
from gstarx.graphs import Masks, pack
from gstarx.players import (
    Edges,
    Features,
    NoPlayersError,
    PlayerKind,
    PlayerSet,
    player_set,
    reference_rows,
)

#: From the player of each unit of the graph, on all of it or (the second) on some of its nodes.
_MakeEvaluator = Callable[[NDArray[np.int64], NDArray[np.bool_] | None], Evaluator]
#: Coalitions in which others must not matter, of a model whose code looks at several nodes at once.
_MOST_TRIED = 64
log = logging.getLogger("gstarx")


@dataclass(frozen=True)
class Playing:
    """Who plays, how coalitions are evaluated, and the model's output for the whole graph.

    Attributes
    ----------
    evaluator
        Evaluates coalitions of players on the part of the graph that decides the output.
    players
        Those of the graph that play.
    prediction
        Output (1, columns) for the whole graph, where it had to be found out already.
    node_outputs
        Outputs (N, columns) for all nodes of the whole graph, for node tasks.
    propagation
        How messages went when the prediction was found out.
    """

    evaluator: Evaluator
    players: PlayerSet
    prediction: Tensor | None = None
    node_outputs: Tensor | None = None
    propagation: Propagation | None = None


def choose_players(
    model: Model,
    data: Data,
    task_level: str,
    anchors: NDArray[np.int64],
    num_hops: int | None,
    evaluator: _MakeEvaluator,
    players: PlayerSet,
) -> Playing:
    """All players of a graph, or those around the node or pair (the anchors) explained."""
    on_all = evaluator(players.player_of, None)
    if task_level == "graph":
        if num_hops is not None:
            raise ValueError(
                f"num_hops is for task='node' or 'edge': all nodes of a graph play (got {num_hops})"
            )
        return Playing(on_all, players)
    with untouched(model):
        around = _Surroundings(model, data, evaluator, on_all, anchors, players)
        return around.playing(num_hops)


class _Surroundings:
    """A node or pair of a graph, and how far away others matter to it."""

    def __init__(
        self,
        model: Model,
        data: Data,
        evaluator: _MakeEvaluator,
        on_all: Evaluator,
        anchors: NDArray[np.int64],
        players: PlayerSet,
    ) -> None:
        self.model, self.data, self.anchors = model, data, anchors
        self.evaluator, self.on_all, self.all_players = evaluator, on_all, players
        self.edges = data.edge_index.cpu().numpy()
        self.num_nodes = int(data.num_nodes or 0)
        with watch_propagation(model) as self.seen:
            if on_all.task_level == "node":
                self.node_outputs: Tensor | None = on_all.node_outputs().clone()
                self.prediction = self.node_outputs[torch.from_numpy(anchors)]
            else:
                self.node_outputs = None
            if self.node_outputs is None or on_all.removal.entire is not on_all.removal:
                self.prediction = self._full_graph()
        self.scale = size_of(self.prediction)

    def playing(self, num_hops: int | None) -> Playing:
        """Players that can change the output, or within some hops; all others stay as they are."""
        field, players = self._players(num_hops)
        on_all = self.evaluator(players.player_of, None)
        # the model's output without half of the players, and with one of them, for comparison
        half = pack(np.random.default_rng(0).random((1, len(players))) < 0.5)
        known = [(on_all.everybody, self.prediction.repeat(1, on_all.removal.draws))]
        for mask in (half, on_all.one_player) if len(players) else ():
            with suppress(Exception):  # what the model does not take is met again later
                known.append((mask, on_all.outputs(mask)))
        for part in self._contexts(field):
            on_part = self.evaluator(players.player_of, part)
            if all(self._gives(on_part, mask, expected) for mask, expected in known):
                return Playing(on_part, players, self.prediction, self.node_outputs, self.seen)
        return Playing(on_all, players, self.prediction, self.node_outputs, self.seen)

    def _players(self, num_hops: int | None) -> tuple[NDArray[np.bool_], PlayerSet]:
        """The part of the graph that decides the output, and who plays."""
        players = self.all_players
        if players.kind == "edges":
            players = self._playing_edges(num_hops)
            field = self._within(self.seen.hops, "both")
            field[self.edges[:, players.player_of >= 0]] = True
            return field, players
        if num_hops is None or not players.of_nodes:
            field = nodes = self._field()
        else:
            nodes = self._within(num_hops, self.seen.flow)
            field = self._within(self.seen.hops, "both") | nodes
        return field, players.restricted(nodes) if players.of_nodes else players

    def _playing_edges(self, num_hops: int | None) -> PlayerSet:
        """Edges that can change the output, found by the number of hops and checked."""
        players = self.all_players
        if num_hops is not None:
            return self._some_edges(self._carrying(num_hops))
        inside = self._within(self.seen.hops, self.seen.flow)
        ends = inside[self.edges]
        # those whose messages arrive; those between nodes whose messages do, and those at such
        # nodes, for networks that look at degrees
        for units in (self._carrying(self.seen.hops), ends.all(axis=0), ends.any(axis=0)):
            tried = players.restricted(units)
            if len(tried) and self._edges_decide(tried):
                return tried
        return self._some_edges(np.ones(self.edges.shape[1], dtype=np.bool_))

    def _some_edges(self, units: NDArray[np.bool_]) -> PlayerSet:
        players = self.all_players.restricted(units)
        if not len(players):
            raise NoPlayersError(
                f"no edge is near enough to {self.anchors.tolist()} to change the output: there "
                "are no players"
            )
        return players

    def _carrying(self, hops: int) -> NDArray[np.bool_]:
        """Edges along which a message can reach the target within some hops."""
        inside = self._within(max(hops - 1, 0), self.seen.flow) & (hops > 0)
        source, target = inside[self.edges]
        flow = self.seen.flow
        if flow == "both":
            return np.asarray(source | target)
        return np.asarray(target if flow == "source_to_target" else source)

    def _edges_decide(self, players: PlayerSet) -> bool:
        """Whether the output stays the same without all other edges, and so without some more."""
        playing, always = players.player_of >= 0, self.all_players.player_of < 0
        by_edge = self.evaluator(np.arange(len(playing)), None)

        def row(kept: NDArray[np.bool_]) -> Tensor:
            return by_edge.outputs(pack(kept[None]))

        drawn = np.random.default_rng(0).random(len(players)) < 0.5
        try:
            if not self._same(row(playing | always), self.prediction):
                return False
            for some in self._tried(drawn, np.ones_like(drawn)):
                kept = some[players.player_of] & playing
                if not self._same(row(kept | always), row(kept | ~playing)):
                    return False
        except Exception:
            return False
        return True

    def _tried(
        self, drawn: NDArray[np.bool_], among: NDArray[np.bool_]
    ) -> Iterator[NDArray[np.bool_]]:
        """What is absent of ``among``, or present, where others must not matter: what was drawn.

        Where the model's own code looks at several nodes at once, those far away may matter in few
        coalitions, as in a maximum: also nobody, everybody and coalitions of all sizes, or all of
        them where there are few.
        """
        yield drawn & among
        if not looks_across(self.model):
            return
        units = np.flatnonzero(among)
        if 1 << min(len(units), 62) <= _MOST_TRIED:
            rows = (np.arange(1 << len(units))[:, None] >> np.arange(len(units)) & 1).astype(bool)
        else:
            draws = np.random.default_rng(0).random((_MOST_TRIED, len(units)))
            rows = draws <= np.linspace(0, 1, _MOST_TRIED)[:, None]
        for row in rows:
            some = np.zeros_like(among)
            some[units] = row
            yield some

    def _contexts(self, start: NDArray[np.bool_]) -> Iterator[NDArray[np.bool_]]:
        """Parts of the graph that may decide the output: the start, and one and two hops more.

        Normalized convolutions look at degrees, which need the edges one hop further out. A removal
        of the user's own is always given the whole graph, and so is a model whose own code looks at
        several nodes at once, if the graph is small.
        """
        if wants_all(self.model, self.num_nodes) or self.on_all.removal.function is not None:
            return iter(())
        grown = grow_hops(self.edges, self.num_nodes, np.flatnonzero(start))
        return (part for part in islice(grown, 3) if not part.all())

    def _field(self) -> NDArray[np.bool_]:
        """Nodes that can change the output, found by the number of hops and checked."""
        tried = self._within(self.seen.hops, self.seen.flow)
        if self._decides(tried):
            return tried
        around = grow_hops(self.edges, self.num_nodes, self.anchors)
        for hop, tried in enumerate(around):
            if hop >= self.seen.hops and self._decides(tried):
                return tried
        log.info("nodes without a connection to the target change its output: all nodes play")
        return np.ones(self.num_nodes, dtype=np.bool_)

    def _within(self, hops: int, flow: str) -> NDArray[np.bool_]:
        reached = islice(grow_hops(self.edges, self.num_nodes, self.anchors, flow), hops + 1)
        return list(reached)[-1]

    def _decides(self, inside: NDArray[np.bool_]) -> bool:
        """Whether the output stays the same whatever becomes of the nodes outside."""
        if inside.all():
            return True
        return (
            self._features_decide(inside)
            and self._nodes_decide(inside)
            and self._neighbors_are_alike(inside)
        )

    def _features_decide(self, inside: NDArray[np.bool_]) -> bool:
        """Whether the output stays the same when all features of the nodes outside change."""
        try:
            changed = self._full_graph(self._disturbing(~inside, noise=True))
        except Exception:
            # features that noise makes invalid, such as logarithms of something
            changed = self._full_graph(self._disturbing(~inside, noise=False))
        if self._same(changed, self.prediction):
            return True

        again = self._full_graph
        refuse_random(self.model, again, again(), self.prediction, self.scale)
        return False

    def _nodes_decide(self, inside: NDArray[np.bool_]) -> bool:
        """Whether the output stays the same when nodes outside are taken away.

        All of them, and half of them; and all of them where half of the nodes inside are absent
        too, or others of them (:meth:`_tried`). Layers of PyG that scale messages by degrees see
        how many neighbors the outermost nodes inside have: with such a layer, these neighbors are
        left alone.
        """
        if not self.all_players.of_nodes:  # all nodes stay
            return True
        if scales_by_degree(self.model):
            hops = grow_hops(self.edges, self.num_nodes, np.flatnonzero(inside))
            inside = list(islice(hops, 2))[-1]
        outside = ~inside & (self.all_players.player_of >= 0)
        if not outside.any():
            return True
        by_node = self.evaluator(np.arange(self.num_nodes), None)
        drawn = np.random.default_rng(0).random(self.num_nodes) < 0.5
        if not all(
            self._gives(by_node, pack(~gone[None]), self.prediction)
            for gone in (outside, outside & drawn)
        ):
            return False
        within = ~outside & (self.all_players.player_of >= 0)
        return all(
            self._same_without(by_node, outside, fewer) for fewer in self._tried(drawn, within)
        )

    def _same_without(
        self, by_node: Evaluator, outside: NDArray[np.bool_], fewer: NDArray[np.bool_]
    ) -> bool:
        """Whether nodes outside can be taken away where fewer of those inside are there."""
        try:
            expected = by_node.outputs(pack(~fewer[None]))
        except Exception:  # a coalition that the model does not take is met again later
            return True
        return self._gives(by_node, pack(~(fewer | outside)[None]), expected)

    def _neighbors_are_alike(self, inside: NDArray[np.bool_]) -> bool:
        """Whether it does not matter which nodes outside are the neighbors of those inside.

        Layers that scale messages by degrees may count these neighbors, which is why they are left
        alone above. Where the model's own code looks at several nodes at once, it may do more: the
        output has to stay the same when the neighbors change places, which changes no degree
        inside.
        """
        scaled = scales_by_degree(self.model) and looks_across(self.model)
        if not scaled or hetero_of(self.data) is not None or self.on_all.removal.draws > 1:
            return True
        outside = np.flatnonzero(~inside)
        if len(outside) < 2:  # a single neighbor has nobody to change places with
            return not (inside[self.edges].sum(axis=0) == 1).any()
        places = np.arange(self.num_nodes)
        drawn = np.random.default_rng(0).permutation(outside)
        places[drawn] = np.roll(drawn, 1)
        moved, known = torch.from_numpy(places), torch.from_numpy(inside)

        def change(fields: dict[str, Any]) -> dict[str, Any]:
            edges = fields["edge_index"]
            across = known.to(edges.device)[edges].sum(dim=0) == 1
            return {**fields, "edge_index": edges.where(~across, moved.to(edges.device)[edges])}

        return self._same(self._full_graph(change), self.prediction)

    def _gives(self, evaluator: Evaluator, mask: Masks, expected: Tensor) -> bool:
        """Whether a coalition has this output, and the model does not fail on it."""
        try:
            return self._same(evaluator.outputs(mask), expected)
        except Exception:
            return False

    def _disturbing(self, outside: NDArray[np.bool_], *, noise: bool) -> Change:
        """A change of inputs: other rows, and noise where they are real, for the nodes outside."""
        graph = hetero_of(self.data)
        if graph is not None:
            return lambda fields: disturbed(graph, fields, outside, noise=noise)
        rows = torch.from_numpy(np.flatnonzero(outside))
        source = torch.Generator().manual_seed(0)
        others = torch.randint(len(outside), rows.shape, generator=source)

        def change(fields: dict[str, Any]) -> dict[str, Any]:
            changed = dict(fields)
            for key in self.on_all.removal.tensors.node:
                value: Tensor = fields[key].clone()
                there = rows.to(value.device)
                drawn = value[others.to(value.device)]
                if noise and value.is_floating_point():
                    added = torch.randn(drawn.shape, generator=source).to(drawn)
                    drawn = drawn + added * (1 + value.abs().mean())
                value[there] = drawn
                changed[key] = value
            return changed

        return change

    def _full_graph(self, change: Change | None = None) -> Tensor:
        """The output for the full graph, of the first draw if there are several."""
        outputs = self.on_all.outputs(self.on_all.everybody, change)
        return outputs[:, : outputs.shape[1] // self.on_all.removal.draws]

    def _same(self, a: Tensor, b: Tensor) -> bool:
        return difference(a, b) <= rounding(b.dtype) * max(self.scale, size_of(b))


def set_up(
    model: Model,
    data: Data,
    task: ModelTask,
    kind: PlayerKind,
    game: GameOptions,
    *,
    baseline: BaselineLike,
    whole_graph: WholeGraph | None,
    batch_nodes: int | None,
) -> tuple[Playing, ModelTask]:
    """Who plays and how coalitions are evaluated, and the task with the target that is explained.

    The game of a node is played on the part of the graph that sends it messages, if that can be cut
    out; its players are then those of the whole graph again.
    """
    roles, communication, removal = roles_of(data), game.communication, game.removal
    gnnshap = game.computation_graph == "gnnshap"
    if gnnshap and task.task_level != "node":
        raise ValueError(
            f"computation_graph='gnnshap' is for task='node' (got task={task.task_level!r})"
        )
    part: LocalPart | None = None
    if task.task_level == "node" and local_kind(kind, communication, removal, gnnshap):
        node = int(task.anchors(data)[0])
        whole_graph = whole_graph or WholeGraph.of(model, data, task)
        part = local_part(model, data, task, roles, whole_graph, node, game.num_hops, gnnshap)
    if part is not None:
        if isinstance(kind, Edges) and not part.data.edge_index.numel():
            raise NoPlayersError(f"no edge brings a message to node {node}: there are no players")
        data, task = part.data, replace(task, index=part.index)
    everyone = player_set(data, kind, communication, one_way=gnnshap)
    everyone = replace(everyone, anchored=task.task_level != "graph")
    if not everyone.of_nodes:
        _refuse_node_options(everyone, removal, baseline)
    if masked_layers(model):
        log.warning("the model carries edge masks of another explainer: they are set aside")
    anchors = task.anchors(data)
    if task.task_level == "edge" and not everyone.touched:  # the position value has its definition
        everyone = replace(everyone, pair=tuple(anchors.tolist()))
    evaluators = _Evaluators(model, data, task, roles, anchors, removal, everyone, batch_nodes)
    if gnnshap:
        assert part is not None
        assert whole_graph is not None
        task = replace(task, target=whole_graph.target(task, node))
        on_part = evaluators(everyone.player_of)
        playing = Playing(on_part, everyone, propagation=whole_graph.propagation)
    else:
        playing = choose_players(
            model, data, task.task_level, anchors, game.num_hops, evaluators, everyone
        )
    if part is not None and whole_graph is not None:
        lifted, outputs = part.lifted(playing.players), whole_graph.node_outputs
        playing = replace(playing, players=lifted, node_outputs=outputs)
    return playing, task


class _Evaluators:
    """Makes evaluators of coalitions on one graph and on parts of it.

    What absent features are replaced by is that of the whole graph on every part of it.
    """

    def __init__(
        self,
        model: Model,
        data: Data,
        task: ModelTask,
        roles: Roles,
        anchors: NDArray[np.int64],
        removal: RemovalLike,
        players: PlayerSet,
        batch_nodes: int | None,
    ) -> None:
        self.model, self.data, self.task, self.roles = model, data, task, roles
        self.anchors, self.removal, self.players = anchors, removal, players
        self.signature = Signature.of(model, data, task.keywords)
        self.device = model_device(model, data.edge_index.device)
        self.batch_nodes = batch_nodes or default_batch_nodes(model, self.device)
        spec = players.spec
        self.reference = reference_rows(spec, data) if isinstance(spec, Features) else None

    def __call__(
        self, player_of: NDArray[np.int64], inside: NDArray[np.bool_] | None = None
    ) -> Evaluator:
        """The evaluator on the graph or on some of its nodes, with the player of every unit."""
        part, anchors, reference = self.data, self.anchors, self.reference
        if inside is not None:
            ends = inside[self.data.edge_index.cpu().numpy()].all(axis=0)
            part = cut(self.data, self.roles, np.flatnonzero(inside), np.flatnonzero(ends))
            anchors = np.searchsorted(np.flatnonzero(inside), self.anchors)
            rows = inside
            if self.players.kind in ("edges", "edge_features"):
                rows = ends
            if reference is None:
                player_of = player_of[rows]
            else:
                reference = reference[:, torch.from_numpy(rows).to(reference.device)]
        tensors = GraphTensors(part, self.device, self.roles)
        if self.players.of_nodes:
            removal = resolve_removal(self.removal, part, tensors, anchors)
        else:
            removal = removal_of(self.players.spec, part, tensors, anchors, reference)
        return Evaluator(
            self.model,
            self.signature,
            removal,
            task_level=self.task.task_level,
            batch_nodes=self.batch_nodes,
            player_of=player_of,
        )


def _refuse_node_options(players: PlayerSet, removal: Any, baseline: Any) -> None:
    """Raise where a game of edges or features is given options of a game of nodes."""
    if removal != "remove":
        raise ValueError(
            f"removal says how nodes are taken away, and the players are {players.kind} "
            f"(got removal={removal!r})"
        )
    if baseline is not None and players.without_baseline:
        raise ValueError(
            f"for players={players.kind!r} the baseline is the output with no player present, and "
            f"no other is accepted (got baseline={baseline!r})"
        )
