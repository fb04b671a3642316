"""Who plays: all players of a graph, or those around the node or pair that is explained."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx.gnn.evaluator import Change, Evaluator
from gstarx.gnn.fields import graphs_in
from gstarx.gnn.hetero import disturbed, hetero_of, view_of
from gstarx.gnn.k_hop import Propagation, grow_hops, watch_propagation
from gstarx.gnn.known_layers import scales_by_degree
from gstarx.gnn.model_state import untouched
from gstarx.gnn.own_code import wants_all
from gstarx.gnn.self_check import difference, refuse_random, rounding, size_of
from gstarx.gnn.signature import Model
from gstarx.graphs import Masks, as_size, pack
from gstarx.players import NoPlayersError, PlayerSet

TASK_LEVELS = ("graph", "node", "edge")
#: From the player of each unit of the graph, on all of it or (the second) on some of its nodes.
_MakeEvaluator = Callable[[NDArray[np.int64], NDArray[np.bool_] | None], Evaluator]
log = logging.getLogger("gstarx")


def check_data(data: Any) -> Data:
    """One homogeneous graph with nodes, or an error that says what it is instead.

    Of a heterogeneous graph, its homogeneous view.
    """
    if isinstance(data, HeteroData):
        return view_of(data)
    if not isinstance(data, Data):
        raise TypeError(
            f"data must be a torch_geometric.data.Data or HeteroData (got {type(data).__name__})"
        )
    if data.get("x") is not None and not isinstance(data.x, Tensor):
        raise TypeError(
            f"data.x must be a tensor (got {type(data.x).__name__}): use torch.as_tensor(x) or "
            "torch_geometric.data.Data(x=torch.as_tensor(x), ...)"
        )
    edge_index = data.edge_index
    if not isinstance(edge_index, Tensor) or edge_index.layout != torch.strided:
        raise TypeError(
            "data.edge_index must be a dense tensor of shape (2, E) (got "
            f"{_kind_of(edge_index)}){_from_adj_t(data)}"
        )
    if edge_index.dim() != 2 or edge_index.shape[0] != 2:
        raise ValueError(f"data.edge_index must have shape (2, E) (got {tuple(edge_index.shape)})")
    if edge_index.is_floating_point() or edge_index.dtype == torch.bool:
        raise TypeError(f"data.edge_index must be integers (got {edge_index.dtype})")
    count = _num_nodes(data)
    for node in (int(edge_index.min()), int(edge_index.max())) if edge_index.numel() else ():
        if not 0 <= node < count:
            raise ValueError(f"data.edge_index names node {node} of {count} nodes")
    if graphs_in(data) > 1:
        raise ValueError(
            f"data holds {graphs_in(data)} graphs: explain one at a time, or use explain_many"
        )
    return data


def _kind_of(edge_index: Any) -> str:
    sparse = isinstance(edge_index, Tensor) and edge_index.layout != torch.strided
    return f"a tensor of layout {edge_index.layout}" if sparse else type(edge_index).__name__


def _from_adj_t(data: Data) -> str:
    """How to go on where the graph has a sparse adjacency matrix instead."""
    if "adj_t" not in data:
        return ""
    return (
        ". The data has adj_t: give it edge_index with "
        "torch_geometric.utils.to_edge_index(data.adj_t)[0].flip(0), and let the model take "
        "edge_index, or wrap it in a function that builds adj_t from edge_index"
    )


def check_level(task_level: str) -> str:
    """A task level by PyG's name, or an error that lists them."""
    level = str(getattr(task_level, "value", task_level))
    if level not in TASK_LEVELS:
        valid = ", ".join(map(repr, TASK_LEVELS))
        raise ValueError(f"task_level must be one of {valid} (got {level!r})")
    return level


def _num_nodes(data: Data) -> int:
    """Number of nodes, which has to be known: isolated nodes are in no edge."""
    try:
        count = int(data.num_nodes or 0) if "x" in data else _guessed_num_nodes(data)
    except UserWarning:
        raise ValueError(
            f"the number of nodes is not known: give the data x or num_nodes (it has "
            f"{', '.join(sorted(data.keys()))})"
        ) from None
    if not count:
        raise ValueError("the graph has no nodes: there is nothing to explain")
    return count


def _guessed_num_nodes(data: Data) -> int:
    """PyG's count, with its warning that it only guessed turned into an error."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return int(data.num_nodes or 0)


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
                "num_hops is for task_level='node' or 'edge': all nodes of a graph play "
                f"(got {num_hops})"
            )
        return Playing(on_all, players)
    if num_hops is not None:
        num_hops = as_size(num_hops, name="num_hops")
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
        half = (np.random.default_rng(0).random(len(players)) < 0.5)[players.player_of] & playing
        by_edge = self.evaluator(np.arange(len(playing)), None)
        try:
            rows = [
                by_edge.outputs(pack(kept[None]))
                for kept in (playing | always, half | always, half | ~playing)
            ]
        except Exception:
            return False
        return self._same(rows[0], self.prediction) and self._same(rows[1], rows[2])

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
        return self._features_decide(inside) and self._nodes_decide(inside)

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
        too. Layers of PyG that scale messages by degrees see how many neighbors the outermost nodes
        inside have: with such a layer, these neighbors are left alone.
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
        fewer = ~outside & drawn & (self.all_players.player_of >= 0)
        try:
            expected = by_node.outputs(pack(~fewer[None]))
        except Exception:  # a coalition that the model does not take is met again later
            return True
        return self._gives(by_node, pack(~(fewer | outside)[None]), expected)

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


def target_nodes(data: Data, task_level: str, index: int | Tensor | None) -> NDArray[np.int64]:
    """The target node, the two ends of the target pair, or nobody."""
    if task_level == "graph":
        check_index(index, task_level)
        return np.zeros(0, dtype=np.int64)
    if index is None:
        raise ValueError(f"task_level={task_level!r} needs index=..., the {task_level} to explain")
    pairs = data.get("edge_label_index")
    if task_level == "edge" and not isinstance(pairs, Tensor):
        raise ValueError("task_level='edge' needs data.edge_label_index of shape (2, K)")
    count = int(data.num_nodes or 0) if task_level == "node" else int(pairs.shape[1])
    chosen = _one_index(index, task_level, count)
    if task_level == "node":
        return np.array([chosen])
    ends: NDArray[np.int64] = pairs[:, chosen].cpu().numpy().astype(np.int64)
    return ends


def _one_index(index: Any, task_level: str, count: int) -> int:
    """One position as an integer, or an error that says what came instead."""
    what = "a node" if task_level == "node" else "a column of edge_label_index"
    chosen = as_index(index, f" in 0..{count - 1}, {what}")
    if not 0 <= chosen < count:
        raise ValueError(f"index must lie in 0..{count - 1} (got {chosen})")
    return chosen


def as_index(index: Any, valid: str = "") -> int:
    """An index as an integer, whatever integer type it has, or an error that says what came."""
    if isinstance(index, Tensor | np.ndarray) and np.prod(index.shape) == 1:
        index = index.item()
    if isinstance(index, bool | np.bool_) or not isinstance(index, int | np.integer):
        raise TypeError(
            f"index must be one integer{valid} (got {index!r}); explain several nodes with "
            "explain_nodes, and several edges by calling once for each"
        )
    return int(index)


def check_index(index: Any, task_level: str) -> int | None:
    """An index where the task has one, or an error."""
    if index is None:
        return None
    if task_level == "graph":
        raise ValueError(
            "index is for task_level='node' or 'edge', and this is task_level='graph' "
            f"(got index={index!r})"
        )
    return as_index(index)
