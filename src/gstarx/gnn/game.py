"""A graph neural network as a game played on one graph (section 4.3 of the paper)."""

from __future__ import annotations

import copy
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx._internal.arguments import as_flag
from gstarx._internal.progress import GrowingBar
from gstarx.games import Worths
from gstarx.gnn.baseline import (
    SINGLETONS,
    BaselineLike,
    check_baseline,
    singleton_mean,
    singletons_by_default,
    warn_if_constant,
    with_baseline,
)
from gstarx.gnn.coalition_scores import CoalitionScores
from gstarx.gnn.evaluator import Evaluator
from gstarx.gnn.fields import check_data
from gstarx.gnn.hetero import hetero_of
from gstarx.gnn.k_hop import watch_propagation
from gstarx.gnn.local_part import WholeGraph
from gstarx.gnn.model_state import untouched
from gstarx.gnn.model_task import ModelTask, TaskLike, with_view
from gstarx.gnn.options import GameOptions, Passes, as_options, refuse_unknown
from gstarx.gnn.payoff import (
    Payoff,
    PayoffLike,
    TargetLike,
    looks_like_probabilities,
    resolve_payoff,
)
from gstarx.gnn.removal import Removal
from gstarx.gnn.self_check import SelfCheck
from gstarx.gnn.sharing import Sharing
from gstarx.gnn.signature import Model
from gstarx.gnn.surroundings import set_up
from gstarx.graphs import Coalitions, CommunicationGraph, Masks, as_coalitions, pack
from gstarx.players import Nodes, PlayerSet, PlayersLike, as_players


class GNNGame:
    """A model and one graph as a cooperative game.

    The worth of a coalition is the model's output when only its players are present.
    Players are the nodes, unless ``players`` says otherwise: groups of nodes, edges or features.
    Call the game with boolean coalitions (k, n) to get worths (k,), or (k, q) for several targets.

    Parameters
    ----------
    model
        Any PyG model or callable: ``model(x, edge_index)``, with ``batch``, with other arguments
        that are fields of the data (``edge_attr``, ``pos``, ...), or one that takes a ``Data``
        object; for a heterogeneous graph ``model(x_dict, edge_index_dict)``, with ``batch_dict``
        and so on. It is run in evaluation mode without gradients and left unchanged.
    data
        One graph: a ``Data`` or a ``HeteroData``. In the latter, nodes of all types are numbered
        consecutively, see :mod:`gstarx.gnn.hetero`.
    target
        What to explain: a class (default: the predicted one), a list of them or ``"all"`` for
        several games at once. For multi-label and multi-output models, which output.
    index
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    task
        What the model does: a word such as ``"node"`` or ``"regression"``, PyG's ``ModelConfig`` or
        its dictionary, or a :class:`gstarx.Task`.
    players
        The players: ``"nodes"``; groups of nodes, as sets, a mapping from names to sets, a label
        per node, the name of a function of :mod:`gstarx.players` such as ``"brics"``, or a function
        of the graph; ``"edges"``; ``"features"``, the columns of ``x``, or ``"edge_features"``; or,
        with options, :class:`gstarx.players.Nodes`, :class:`~gstarx.players.Groups`,
        :class:`~gstarx.players.Edges` or :class:`~gstarx.players.Features`.
    payoff
        ``"auto"`` (``"norm_prob"`` for classifiers, the raw output less the baseline for
        regression), ``"norm_prob"`` (probability less baseline, the paper's), ``"prob"``,
        ``"log_prob"``, ``"raw"``, a :class:`Contrast` of two classes, or a function of the outputs.
    baseline
        What is subtracted from the payoff: a number, one per class such as
        :func:`gstarx.expected_output` computes, ``"singletons"``, the mean payoff of single
        players on this graph (for node and edge tasks, together with the target), which are
        evaluated and count toward the budget, or ``"uniform"``, one divided by the number of
        classes. By default, unless a value chooses another, the uniform probability for
        ``"norm_prob"``, the output of the isolated target for node and edge tasks, and zero
        otherwise. For edges and features it is the output with no player present, and no other is
        accepted, except for the position value of whole graphs, whose baseline is that of nodes.
    game
        How nodes are removed and other rare options, a :class:`gstarx.GameOptions`.
    passes
        Batch size, self-check and shared embeddings, a :class:`gstarx.Passes`.
    whole_graph
        For node tasks: the state that the games of several nodes of one graph share, which saves a
        forward pass over the whole graph for each of them.
    lazy
        Run the model only when worths are first needed, together with the coalitions.
        By default it is run on the whole graph at once, so that errors are raised here.

    Attributes
    ----------
    graph
        The communication structure of the players.
    players
        The players, a :class:`gstarx.gnn.PlayerSet`.
    nodes
        Node of ``data`` behind every player, if players are nodes.
    num_nodes
        Number of nodes of ``data``.
    prediction
        The model's output for the whole graph, (columns,).
    payoff
        The :class:`Payoff` in use, with its columns and baseline.
    evaluations
        Distinct coalitions that went through the model.
    batch_nodes
        Nodes per forward pass.
    check
        What the self-check compared and found, a :class:`SelfCheck`.
    fixed
        Names of fields of the whole graph that the model takes: the same in every coalition.
    sharing
        Whether coalitions shared embeddings and how many, or why not: a :class:`Sharing`.
    """

    @refuse_unknown
    def __init__(
        self,
        model: Model,
        data: Data | HeteroData,
        *,
        target: TargetLike = None,
        index: int | Tensor | None = None,
        task: TaskLike = None,
        players: PlayersLike = "nodes",
        payoff: PayoffLike = "auto",
        baseline: BaselineLike = None,
        game: GameOptions | None = None,
        passes: Passes | None = None,
        whole_graph: WholeGraph | None = None,
        lazy: bool = False,
    ) -> None:
        if not callable(model):
            raise TypeError(f"model must be callable (got {type(model).__name__})")
        data, own = with_view(model, data, ModelTask.of(model, task, target, index))
        data = check_data(data)
        options = as_options(game, GameOptions, "game")
        self._passes = as_options(passes, Passes, "passes")
        self.num_nodes = int(data.num_nodes or 0)
        playing, self._task = set_up(
            model,
            data,
            own,
            as_players(players),
            options,
            baseline=baseline,
            whole_graph=whole_graph,
            batch_nodes=self._passes.batch_nodes,
        )
        self.model, self.fallback, self.task_level = model, options.fallback, own.task_level
        self._payoff, self._baseline = payoff, check_baseline(baseline)
        self._settled: tuple[Tensor, Payoff] | None = None
        self._evaluator, self.players = playing.evaluator, playing.players
        self._node_outputs = playing.node_outputs
        self.batch_nodes = self._evaluator.batch_nodes
        self.data = self._evaluator.removal.data
        self.n = len(self.players)
        self._scores = self._scores_of(self._evaluator, self.players)
        self._scores.shared.propagation = playing.propagation
        self._learned: Sharing | None = None
        if playing.prediction is not None or not as_flag(lazy, name="lazy"):
            self.settle(playing.prediction)

    def _scores_of(self, evaluator: Evaluator, players: PlayerSet) -> CoalitionScores:
        how = self._passes
        return CoalitionScores(
            evaluator, players, fallback=self.fallback, check=how.check, share=how.share
        )

    @classmethod
    def for_value(
        cls, model: Model, data: Data, task: ModelTask, *, graph: bool, **options: Any
    ) -> Self:
        """The game of a task with the default baseline of a value, unless ``options`` have one.

        ``graph`` says whether the value follows the graph.
        """
        game = cls.for_task(model, data, task, **options)
        if game._baseline is None:
            # before anything is evaluated: who plays is known only now
            by_default = singletons_by_default(game.players, task.task_level, task.mode, graph)
            game._baseline = SINGLETONS if by_default else None
        return game

    @classmethod
    def for_task(
        cls, model: Model, data: Data, task: ModelTask, *, lazy: bool = True, **options: Any
    ) -> Self:
        """The game of a task; ``options`` are those of the class that the task does not say."""
        return cls(model, data, lazy=lazy, task=task, **options)

    @property
    def graph(self) -> CommunicationGraph:
        """The communication structure of the players."""
        return self.players.graph

    @property
    def nodes(self) -> NDArray[np.int64]:
        """Node of ``data`` behind every player."""
        if self.players.kind != "nodes":
            raise AttributeError(f"the players of this game are {self.players.kind}, not nodes")
        return self.players.ids

    @property
    def evaluations(self) -> int:
        """Distinct coalitions that went through the model."""
        return self._scores.cache.count

    @property
    def sharing(self) -> Sharing:
        """Whether coalitions shared embeddings and how many, or why not."""
        return self._learned or self._scores.shared.sharing

    @property
    def check(self) -> SelfCheck:
        """What the self-check compared and found."""
        return self._scores.check

    @property
    def fixed(self) -> list[str]:
        """Fields of the whole graph that the model takes: the same in every coalition."""
        signature, rest = self._evaluator.signature, self._evaluator.removal.tensors.rest
        if signature.hetero is not None:
            return signature.hetero.fixed
        taken = (*signature.positional, *signature.keywords)
        return [name for name in taken if isinstance(rest.get(name), Tensor)]

    def shares(self) -> bool:
        """Whether coalitions share embeddings and that is worth it, tried on random ones.

        Nothing of them is kept.
        """
        return self._scores.can_share(self.settle)

    @property
    def settled(self) -> bool:
        """Whether the model has been run, so that what is explained is known."""
        return self._settled is not None

    @property
    def prediction(self) -> Tensor:
        """The model's output for the whole graph, (columns,)."""
        return self.settle()[0]

    @property
    def model_output(self) -> Tensor:
        """The output for the whole graph as the model returns it: a row, or one for every node.

        The rows of all nodes are those that the games of all nodes have in common, not a copy.
        """
        if self._node_outputs is None:
            return self.prediction[None]
        return self._node_outputs

    @property
    def payoff(self) -> Payoff:
        """The payoff in force, with its columns and baseline."""
        payoff = self.settle()[1]
        if not self.baseline_from_singletons or not self.n:
            return payoff
        if self._scores.singleton_baseline is None:
            scores = self._scores.of(self._singletons(), self.settle)
            self._scores.singleton_baseline = singleton_mean(scores)
            self._scores.give_out()
        return replace(payoff, baseline=self._scores.singleton_baseline)

    @property
    def baseline_from_singletons(self) -> bool:
        """Whether single players are evaluated because the baseline is their mean."""
        return isinstance(self._baseline, str) and self._baseline == SINGLETONS

    def warn_if_constant(self, share: float = 1.0) -> None:
        """Warn if the baseline leaves a constant in the outputs of all evaluated coalitions.

        ``share`` is how much of it the scores of all players sum to.
        """
        if self._scores.cache.count > 1:
            warn_if_constant(self.payoff, *self._scores.cache.span(), share)

    def _singletons(self) -> Masks:
        return pack(np.eye(self.n, dtype=np.bool_))

    @property
    def single(self) -> bool:
        """Whether worths come as (k,) rather than (k, q)."""
        target = self._task.target
        return not (
            isinstance(target, str | Sequence)
            or (isinstance(target, Tensor) and target.numel() > 1)
            or self._games() > 1
        )

    def __call__(self, coalitions: Coalitions) -> Worths:
        """Worths of boolean coalitions (k, n): (k,), or (k, q) for several targets."""
        members = as_coalitions(coalitions, self.n, name="coalitions")
        nonempty = members.any(axis=1)
        masks = pack(members[nonempty])
        needed = masks
        if self.baseline_from_singletons and self._scores.singleton_baseline is None:
            # in the same passes
            needed = np.concatenate([masks, self._singletons()])
        scores = self._scores.of(needed, self.settle)[: len(masks)]
        worths = np.zeros((len(members), self._games()))
        if len(masks):
            worths[nonempty] = scores - np.array(self.payoff.baseline)
            if self.fallback is not None:
                worths[np.isnan(worths)] = float(self.fallback)
        self._scores.give_out()
        return worths[:, 0] if self.single else worths

    def learn(
        self,
        coalitions: Coalitions,
        outputs: Tensor,
        *,
        compared: int = 0,
        sharing: Sharing | None = None,
    ) -> None:
        """Take outputs for distinct coalitions, everybody first, from passes shared with others.

        For a game that has not been asked yet. Where a worth is not finite nothing is kept: asking
        for it will say what is wrong. ``compared`` says how many outputs of these passes were
        compared with those of the same graphs alone, and ``sharing`` whether embeddings were shared
        in them, counted over all graphs.
        """
        scores = self.settle(outputs[:1])[1].scores_array(outputs)
        if np.isfinite(scores).all():
            self._scores.cache.rows_of(pack(coalitions))
            self._scores.cache.add(scores)
            self.check.comparisons += compared
            self._learned = sharing

    def settle(self, full_output: Tensor | None = None) -> tuple[Tensor, Payoff]:
        """What is explained, from the output (1, columns) for the whole graph; found out once."""
        if self._settled is None:
            draws = self._evaluator.removal.draws
            if full_output is None:
                evaluator = self._on_nodes() if self.players.touched else self._evaluator
                with untouched(self.model), watch_propagation(self.model) as seen:
                    outputs = evaluator.outputs(evaluator.everybody)
                self._scores.shared.propagation = seen
                # everybody is the full graph in every draw
                full_output = outputs[:, : outputs.shape[1] // draws]
                self._refuse_outputs_of_nodes(full_output.shape[1])
            task = self._task
            payoff = resolve_payoff(
                self._payoff,
                task.target,
                full_output,
                mode=task.mode,
                return_type=task.return_type,
            )
            if task.return_type == "raw":
                self._warn_of_probabilities(full_output)
            payoff = with_baseline(
                payoff, self._baseline, full_output, self._evaluator, self.players
            )
            self._settled = full_output[0].clone(), replace(payoff, draws=draws)
        return self._settled

    def _refuse_outputs_of_nodes(self, columns: int) -> None:
        """Raise if the outputs for a graph are one for each of its nodes, and not its own.

        Where a removal keeps all nodes, nothing else tells such outputs from those of classes.
        """
        data, nodes = self._evaluator.removal.data, self._evaluator.removal.tensors.num_nodes
        alone = self._task.task_level == "graph" and not self._evaluator.batched
        if not alone or columns != nodes or nodes < 2 or hetero_of(data) is not None:
            return
        try:
            part = self._task.raw_output(self.model, data.subgraph(torch.arange(1, nodes)))
        except Exception:  # the model needs what is there
            return
        if isinstance(part, Tensor) and part.numel() == nodes - 1:
            raise ValueError(
                f"the model gives one output for each of the {nodes} nodes, and not for the graph: "
                "pass task='node' and index=..., a node"
            )

    def _warn_of_probabilities(self, full_output: Tensor) -> None:
        """Warn if outputs look like probabilities, of the whole and, where in doubt, of parts."""
        mode = self._task.mode
        declared = getattr(self.model, "return_type", None) == "raw"  # by the model itself
        if declared or not looks_like_probabilities(full_output, mode):
            return
        multiclass = mode == "multiclass_classification"
        if not multiclass:
            # a logit between 0 and 1 is common: those of single nodes will not all be
            alone = pack(np.eye(min(self.n, 64), self.n, dtype=np.bool_))
            try:
                with untouched(self.model):
                    outputs = [self._evaluator.outputs(mask[None]) for mask in alone]
            except Exception:
                return
            if not all(looks_like_probabilities(output, mode) for output in outputs):
                return
        together = ", with a sum of 1" if multiclass else ""
        warnings.warn(
            # without the numbers, so that a whole dataset gives one warning
            "outputs were declared raw but look like probabilities (all lie between 0 and "
            f"1{together}): if they are, say task=Task(return_type='probs')",
            stacklevel=4,
        )

    def _games(self) -> int:
        return len(self.settle()[1].baseline)

    def on_nodes(self) -> GNNGame:
        """The same game played by the nodes: same payoff and baseline, nothing evaluated yet.

        For games of groups, or of edges that bring the nodes they touch, on whole graphs.
        """
        if self.task_level != "graph" or not (self.players.of_nodes or self.players.touched):
            raise ValueError(f"no nodes leave in a game of {self.players.kind} of this task")
        if self.players.of_nodes:
            _ = self.payoff  # the baseline of single players, if it is that, stays theirs
        self.settle()
        game = copy.copy(self)
        game._evaluator = self._on_nodes()
        nodes = np.arange(game._evaluator.removal.tensors.num_nodes)
        game.players = PlayerSet("nodes", nodes, nodes, self.players.links, Nodes())
        game.n = len(nodes)
        game._scores = self._scores_of(game._evaluator, game.players)
        game._scores.bar = self._scores.bar
        game._learned = None
        if self.players.touched and self.baseline_from_singletons:
            self._scores.singleton_baseline = game.payoff.baseline
        else:
            game._scores.singleton_baseline = self._scores.singleton_baseline
        return game

    def _on_nodes(self) -> Evaluator:
        """Evaluates coalitions of all nodes."""
        own = self._evaluator
        removal = own.removal
        if self.players.touched:
            removal = Removal("remove", removal.data, removal.tensors, removal.anchors)
        evaluator = Evaluator(
            self.model,
            own.signature,
            removal,
            task_level=self.task_level,
            batch_nodes=self.batch_nodes,
        )
        evaluator.batched = own.batched
        return evaluator

    @contextmanager
    def progress(self, show: bool | None = True) -> Iterator[None]:
        """Show a bar over coalitions while they are evaluated inside this block.

        With ``None`` after two seconds, on a terminal or in a notebook.
        """
        before = self._scores.bar
        self._scores.bar = bar = GrowingBar(show, "coalitions", " coalitions")
        try:
            yield
        finally:
            bar.close()
            self._scores.bar = before

    def expect(self, evaluations: int) -> None:
        """Say how many coalitions will be asked for at most, for the bar."""
        self._scores.bar.expect(evaluations)

    def __repr__(self) -> str:
        return (
            f"GNNGame({self.n} players, payoff={self.payoff.name!r}, "
            f"columns={list(self.payoff.columns)}, {self.evaluations:,} evaluations)"
        )
