"""What scores are by definition: every coalition by itself, one forward pass each.

Nothing of the package is used here. Of an explanation, only the list of players is taken, because
whose scores come first is the package's choice, and because in the game of one node it says who
plays; that everybody who matters does is checked by :meth:`Game.overlooked`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from tests.differential import values

Numbers = NDArray[np.float64]
Run = Callable[[Data], Tensor]


def mean_filling(data: Data, kept: Tensor) -> Data:
    """A removal of one's own: absent nodes get the mean features of the graph."""
    changed = data.clone()
    changed.x = torch.where(kept[:, None], data.x, data.x.mean(dim=0))
    return changed


@dataclass
class Game:
    """The game that the options of an explanation describe.

    Attributes
    ----------
    run
        The model on one graph alone.
    data, options
        The graph and the options of the explanation.
    players
        The units of every player: nodes, columns of ``edge_index``, or columns of features.
    links
        Who communicates with whom, pairs of players.
    """

    run: Run
    data: Data
    options: dict[str, Any]
    players: Sequence[Collection[int]] = ()
    links: Collection[tuple[int, int]] = ()
    known: dict[frozenset[int], Numbers] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.level = self.options.get("task_level", "graph")
        self.kind = kind_of(self.options)
        self.touching = self.options.get("value") == "position"
        self.ends: list[tuple[int, int]] = [
            tuple(pair) for pair in self.data.edge_index.t().tolist()
        ]
        self.anchors: list[int] = []
        if self.level == "node":
            self.anchors = [self.options["index"]]
        elif self.level == "edge":
            self.anchors = self.data.edge_label_index[:, self.options["index"]].tolist()

    # --- one coalition as a graph ---------------------------------------------------------------

    @cached_property
    def fixed(self) -> set[int]:
        """Units that are nobody's and always there."""
        counts = {"nodes": self.data.num_nodes, "edges": len(self.ends)}
        playing = {unit for units in self.players for unit in units}
        return set(range(counts.get(self.kind, 0))) - playing

    def outputs(self, units: set[int]) -> list[Tensor]:
        """The rows of output with some units present, one for every draw of a reference."""
        if self.kind == "nodes":
            graphs = [self._of_nodes(units)]
        elif self.kind == "edges":
            graphs = [self._of_edges(units)]
        else:
            graphs = self._of_features(units)
        with torch.no_grad():
            return [self._row(graph) for graph in graphs]

    def _row(self, graph: Data) -> Tensor:
        out = self.run(graph)
        if self.level == "node":
            return out[graph.places[0]].reshape(-1)
        return out.reshape(-1)  # of one graph, or of one pair

    def _part(self, nodes: Iterable[int], columns: Iterable[int], **changed: Tensor) -> Data:
        """Some nodes, and some of the columns of ``edge_index`` between them, as a new graph."""
        kept, edges = sorted(nodes), sorted(columns)
        place = {node: at for at, node in enumerate(kept)}
        ends = [(place[self.ends[e][0]], place[self.ends[e][1]]) for e in edges]
        source = {
            key: changed.get(key, self.data[key]) for key in ("x", "edge_attr", "edge_weight")
        }
        return Data(
            x=source["x"][kept].clone(),
            edge_index=torch.tensor(ends, dtype=torch.long).reshape(-1, 2).t().contiguous(),
            edge_attr=source["edge_attr"][edges].clone(),
            edge_weight=source["edge_weight"][edges].clone(),
            places=[place[node] for node in self.anchors],
        )

    def _of_nodes(self, inside: set[int]) -> Data:
        removal, anchors = self.options.get("removal", "remove"), set(self.anchors)
        everybody, absent = range(self.data.num_nodes), anchors - inside
        within = [e for e, (a, b) in enumerate(self.ends) if a in inside and b in inside]
        if removal == "remove":
            return self._part(inside | anchors, within)
        if removal == "split":
            return self._part(everybody, within)
        loose = [e for e, pair in enumerate(self.ends) if not absent & set(pair)]
        kept = torch.tensor([node in inside | anchors for node in everybody])
        if removal == "zero_filling":
            return self._part(everybody, loose, x=torch.where(kept[:, None], self.data.x, 0.0))
        return self._part(everybody, loose, x=removal(self.data, kept).x)

    def _of_edges(self, inside: set[int]) -> Data:
        if not self.touching:
            return self._part(range(self.data.num_nodes), inside)
        joining = [e for e in inside if self.ends[e][0] != self.ends[e][1]]
        nodes = {node for e in joining for node in self.ends[e]} | set(self.anchors)
        return self._part(nodes, [e for e in inside if set(self.ends[e]) <= nodes])

    def _of_features(self, inside: set[int]) -> list[Data]:
        key = "x" if self.kind == "features" else "edge_attr"
        own: Tensor = self.data[key]
        kept = torch.tensor([column in inside for column in range(own.shape[1])])
        return [
            self._part(
                range(self.data.num_nodes),
                range(len(self.ends)),
                **{key: torch.where(kept, own, reference)},
            )
            for reference in self._references(own)
        ]

    def _references(self, own: Tensor) -> list[Tensor]:
        """What replaces absent columns, as many rows as there are, for every draw."""
        reference = self.options.get("reference", "zero")
        if isinstance(reference, str):
            return [torch.zeros_like(own) if reference == "zero" else own.mean(0).expand_as(own)]
        if reference.dim() == 1:
            return [reference.expand_as(own)]
        # which rows are drawn is part of the definition: always the same ones
        shape = (self.options["draws"], len(own))
        return [
            reference[rows]
            for rows in np.random.default_rng(0).integers(len(reference), size=shape)
        ]

    # --- what it is worth -----------------------------------------------------------------------

    @cached_property
    def everything(self) -> Tensor:
        """The row of output for the whole graph."""
        with torch.no_grad():
            return self._row(self._part(range(self.data.num_nodes), range(len(self.ends))))

    @cached_property
    def columns(self) -> list[int]:
        """The classes or outputs that are explained."""
        target = self.options.get("target")
        scores = class_scores(self.everything, self.options, "prob")
        if target is None:
            return [int(scores.argmax())] if len(scores) > 1 else [0]
        if target == "all":
            return list(range(len(scores)))
        return [target] if isinstance(target, int) else list(target)

    def payoffs(self, units: set[int]) -> Numbers:
        """Payoffs of the explained columns, the mean over draws."""
        present = frozenset(units)
        if present not in self.known:
            rows = [self.payoff_of(row) for row in self.outputs(units)]
            self.known[present] = np.mean(rows, axis=0)
        return self.known[present]

    def payoff_of(self, row: Tensor) -> Numbers:
        """Payoffs of the explained columns of one row of output."""
        payoff = self.options.get("payoff", "auto")
        if callable(payoff):
            return payoff(row[None]).reshape(-1).numpy()
        if not isinstance(payoff, str):  # of two classes, the first less the second
            scores = class_scores(row, self.options, "prob")
            return np.array([float(scores[payoff.a] - scores[payoff.b])])
        kind = payoff if payoff in ("raw", "log_prob") else "prob"
        return class_scores(row, self.options, kind)[self.columns].numpy()

    @cached_property
    def baseline(self) -> Numbers:
        """What is taken off, for every target."""
        return np.broadcast_to(self._taken_off(), self.payoff_of(self.everything).shape)

    def _taken_off(self) -> Numbers:
        given, payoff = self.options.get("baseline"), self.options.get("payoff", "auto")
        named = payoff if isinstance(payoff, str) else "other"
        normalized = named in ("auto", "norm_prob") and self.options.get("mode") != "regression"
        apart = self.kind in ("nodes", "edges") and (self.kind == "nodes" or self.touching)
        if not apart or (self.touching and self.anchors) or (given is None and self._keeps_some):
            return self.payoffs(set(self.fixed))
        if given is None and not self.anchors:
            follows = self.options.get("value", "myerson") in ("hn", "myerson")
            if self.options.get("mode") == "regression" or (follows and self.kind == "nodes"):
                given = "singletons"
        if isinstance(given, str):
            singles = (
                self.players if self.kind == "nodes" else [{i} for i in range(self.data.num_nodes)]
            )
            alone = [self._alone(units) for units in singles]
            return np.mean(alone, axis=0) if alone else np.zeros(1)
        if given is not None:
            return self._given(given)
        if not self.anchors:
            classes = max(2, len(self.everything))
            if self.options.get("mode") in ("binary_classification", "multilabel"):
                classes = 2
            return np.full(1, 1 / classes if normalized else 0.0)
        if normalized or named in ("auto", "raw"):
            return self.payoffs(set(self.fixed))
        return np.zeros(1)

    def _given(self, given: Any) -> Numbers:
        numbers = np.asarray(given, dtype=np.float64).reshape(-1)
        payoff = self.options.get("payoff", "auto")
        if len(numbers) == 1 or callable(payoff):
            return numbers
        if not isinstance(payoff, str):
            return numbers[[payoff.a]] - numbers[payoff.b]
        return numbers[self.columns]

    @property
    def _keeps_some(self) -> bool:
        """Whether groups leave nodes that are always present by the user's wish."""
        named = {node for nodes in _sets(self.options.get("players")) for node in nodes}
        return self.options.get("rest") == "present" and len(named) < self.data.num_nodes

    def _alone(self, nodes: Collection[int]) -> Numbers:
        """The payoff of some nodes, whoever the players are."""
        if self.kind == "nodes":
            return self.payoffs(set(nodes) | self.fixed)
        loops = [e for e, (a, b) in enumerate(self.ends) if a == b and a in nodes]
        with torch.no_grad():
            return self.payoff_of(self._row(self._part(nodes, loops)))

    def worth(self, mask: int) -> Numbers:
        """The worth of a coalition of players, a bit for each; nobody is worth nothing."""
        return self._worth_of(mask, self.players)

    def _worth_of(self, mask: int, players: Sequence[Collection[int]]) -> Numbers:
        inside = {unit for at in values.members(mask) for unit in players[at]}
        if not inside:
            return np.zeros_like(self.baseline)
        return self.payoffs(self.fixed | inside) - self.baseline

    def component_worth(self) -> Numbers:
        """The worths of the components, all together."""
        near = values.neighbors(len(self.players), self.links)
        worth, left = self._played(self.worth), 2 ** len(self.players) - 1
        total = np.zeros_like(self.baseline)
        while left:
            first = values.component(left, near)
            total, left = total + worth(first), left ^ first
        return total

    # --- scores ---------------------------------------------------------------------------------

    def scores(self) -> Numbers:
        """The score of every player, (P, targets)."""
        beyond = self.touching and not self.anchors
        return self._scores_of(self._beyond_alone if beyond else self.worth)

    def _scores_of(self, worth: values.Worth) -> Numbers:
        value, n = self.options.get("value", "myerson"), len(self.players)
        if value == "shapley":
            return values.shapley(worth, n)
        if value == "banzhaf":
            return values.banzhaf(worth, n, self.options.get("presence", 0.5))
        compute = values.hn if value == "hn" else values.myerson
        return compute(self._played(worth), n, self.links)

    def _played(self, worth: values.Worth) -> values.Worth:
        two_sided = self.options.get("two_sided", False)
        return values.two_sided(worth, len(self.players)) if two_sided else worth

    def inside_groups(self) -> tuple[Numbers, Numbers]:
        """What every node gets of the score of its group, and what is left of every group.

        A group's nodes share the score that it has if only some of its nodes are there.
        """
        nodes = np.zeros((self.data.num_nodes, len(self.baseline)))
        left = np.zeros((len(self.players), len(self.baseline)))
        for at, group in enumerate(self.players):
            inside, shown = list(group), []
            for mask in range(2 ** len(inside)):
                players = list(self.players)
                players[at] = [inside[k] for k in values.members(mask)]
                shown.append(self._scores_of(lambda m, p=tuple(players): self._worth_of(m, p))[at])
            left[at] = shown[0]
            nodes[inside] = values.shapley(lambda m, s=tuple(shown): s[m] - s[0], len(inside))
        return nodes, left

    @cached_property
    def singles(self) -> Numbers:
        """For the position value: what single nodes are worth, (N, targets)."""
        count = self.data.num_nodes
        if self.anchors:
            return np.zeros((count, len(self.baseline)))
        return np.array([self._alone({node}) - self.baseline for node in range(count)])

    def _beyond_alone(self, mask: int) -> Numbers:
        if not mask:
            return self.worth(0)
        linked = [unit for at, units in enumerate(self.players) if mask >> at & 1 for unit in units]
        touched = sorted({node for e in linked for node in self.ends[e]})
        return self.worth(mask) - self.singles[touched].sum(axis=0)

    def node_scores(self, scores: Numbers) -> Numbers:
        """For the position value: the own worth of every node, and half of its edges' scores."""
        shares = self.singles.copy()
        for units, score in zip(self.players, scores, strict=True):
            for node in set(self.ends[min(units)]):
                shares[node] += score / 2
        return shares

    # --- who does not play ----------------------------------------------------------------------

    def overlooked(self, could: set[int], tolerance: float) -> list[int]:
        """Nodes or edges that could play and do not, although the output changes without one."""
        everybody = self.fixed.union(*self.players)
        whole = self.outputs(everybody)[0]
        return [
            unit
            for unit in sorted(self.fixed & could)
            if float((self.outputs(everybody - {unit})[0] - whole).abs().max()) > tolerance
        ]


def kind_of(options: dict[str, Any]) -> str:
    """Whether players are made of nodes, edges or columns of features."""
    players = options.get("players", "nodes")
    named = isinstance(players, str) and players in ("edges", "features", "edge_features")
    return players if named else "nodes"


def _sets(players: Any) -> list[Collection[int]]:
    """Groups of nodes as they are given."""
    if players is None or isinstance(players, str):
        return []
    return list(players.values()) if isinstance(players, dict) else list(players)


def class_scores(row: Tensor, options: dict[str, Any], kind: str) -> Tensor:
    """Probabilities, their logarithms or raw outputs, one for every class, label or output."""
    mode, returned = (
        options.get("mode", "multiclass_classification"),
        options.get("return_type", "raw"),
    )
    if mode == "regression":
        return row
    if mode in ("binary_classification", "multilabel"):
        if returned == "probs":
            shares = torch.cat([1 - row, row]) if len(row) == 1 else row
            return shares.log() if kind == "log_prob" else shares
        logits = torch.cat([-row, row]) if len(row) == 1 else row
        if kind == "raw":
            return logits
        shares = 1 / (1 + (-logits).exp())
    elif kind == "raw":
        return row
    elif returned == "raw":
        shares = row.exp() / row.exp().sum()
    else:
        shares = row.exp() if returned == "log_probs" else row
    return shares.log() if kind == "log_prob" else shares


def linked(game: Game, communication: Any = None) -> set[tuple[int, int]]:
    """Pairs of players that communicate, by the edges of the graph unless they are given."""
    if communication is not None:
        return {tuple(pair) for pair in communication}
    count = len(game.players)
    if game.kind in ("features", "edge_features"):
        return {(i, j) for i in range(count) for j in range(i)}
    # the model brings the ends of a link together; the position value has its own definition
    pair = game.anchors if game.level == "edge" and not game.touching else []
    if game.kind == "edges":
        ends = [{node for e in units for node in game.ends[e]} for units in game.players]
        ends = [nodes | (set(pair) if nodes & set(pair) else set()) for nodes in ends]
        return {(i, j) for i in range(count) for j in range(i) if ends[i] & ends[j]}
    owner = {node: at for at, nodes in enumerate(game.players) for node in nodes}
    joined = [*game.ends, tuple(pair)] if pair else game.ends
    pairs = {(owner.get(a, -1), owner.get(b, -1)) for a, b in joined}
    return {(i, j) for i, j in pairs if i != j and min(i, j) >= 0}
