"""A graph neural network as a game played on one graph (section 4.3 of the paper)."""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx._internal.progress import tqdm
from gstarx.games import Worths, describe
from gstarx.gnn.baseline import (
    SINGLETONS,
    BaselineLike,
    check_baseline,
    given_baseline,
    singleton_mean,
)
from gstarx.gnn.batching import coalition_sizes
from gstarx.gnn.cache import WorthCache
from gstarx.gnn.evaluator import Evaluator, default_batch_nodes
from gstarx.gnn.fields import GraphTensors, roles_of
from gstarx.gnn.k_hop import watch_propagation
from gstarx.gnn.local_part import (
    LocalPart,
    WholeGraph,
    check_computation_graph,
    local_kind,
    local_part,
)
from gstarx.gnn.model_state import masked_layers, untouched
from gstarx.gnn.model_task import ModelTask
from gstarx.gnn.payoff import (
    Payoff,
    PayoffLike,
    TargetLike,
    looks_like_probabilities,
    resolve_payoff,
)
from gstarx.gnn.player_sets import PlayerSet, player_set
from gstarx.gnn.players import Playing, check_data, choose_players, target_nodes
from gstarx.gnn.readout import NotShareable
from gstarx.gnn.removal import Removal, RemovalLike, removal_of, resolve_removal
from gstarx.gnn.self_check import (
    BatchMixing,
    SelfCheck,
    refuse_random,
    require_apart,
    say_one_by_one,
    size_of,
)
from gstarx.gnn.sharing import SharedPasses, ShareLike, Sharing, check_share
from gstarx.gnn.sharing_order import sharing_order
from gstarx.gnn.signature import Model, Signature, model_device
from gstarx.graphs import (
    Coalitions,
    CommunicationGraph,
    Masks,
    as_coalitions,
    pack,
    unpack,
    words_for,
)
from gstarx.players import Edges, Nodes, PlayersLike, as_players

log = logging.getLogger("gstarx")
#: Coalitions of so many edges at most are put in an order in which they share more.
_MOST_ORDERED = 64


class GNNGame:
    """The game that a model plays on one graph.

    The worth of a coalition is what the model says of the graph when only its players are there.
    Players are the nodes, unless ``players`` says otherwise: groups of nodes, edges or features.
    Call the game with boolean coalitions (k, n) to get worths (k,), or (k, q) for several targets.

    Parameters
    ----------
    model
        Any PyG model or callable: ``model(x, edge_index)``, with ``batch``, with further arguments
        that the data carries (``edge_attr``, ``pos``, ...), or one that takes a ``Data`` object.
        It is run in evaluation mode without gradients and left exactly as it was.
    data
        One homogeneous graph.
    target
        What to explain: a class (default: the predicted one), a list of them or ``"all"`` for
        several games at once. For multi-label and multi-output models, which output.
    mode, task_level, return_type
        As in PyG's ``ModelConfig``.
    payoff
        ``"auto"`` (``"norm_prob"`` for classifiers, the raw output less the baseline for
        regression), ``"norm_prob"`` (probability less baseline, the paper's), ``"prob"``,
        ``"log_prob"``, ``"raw"``, a :class:`Contrast` of two classes, or a function of the outputs.
    players
        Who plays: ``"nodes"``; groups of nodes, as sets, a mapping from names to sets, a label per
        node, :class:`gstarx.players.Groups`, the name of a maker such as ``"brics"``, or a function
        of the graph; ``"edges"``; ``"features"``, the columns of ``x``, or ``"edge_features"``.
    directed
        For edges: every direction is a player of its own. By default both leave together.
    rest
        For groups: nodes in no group are ``"players"`` of their own, or always ``"present"``.
    feature_groups
        For features: names of groups and their columns, which are present or absent together;
        columns in no group are players of their own.
    reference
        For features: what absent columns are replaced by, ``"zero"``, ``"mean"`` (over the rows of
        this graph), a row of values, or graphs or rows to draw from.
    draws
        For features: rows drawn from reference data for every node; payoffs are averaged.
    communication
        Who communicates with whom, a :class:`gstarx.CommunicationGraph` of the players. By default
        nodes along edges, groups where an edge joins them, edges where they share a node, and
        features all with all.
    baseline
        What is subtracted from the payoff: a number, one per class such as
        :func:`gstarx.expected_output` computes, or ``"singletons"``, the mean payoff of single
        players on this graph (for node and edge tasks, together with the target), which are
        evaluated and counted. By default the uniform probability for ``"norm_prob"``, the output
        of the isolated target for node and edge tasks, else nothing.
        For edges and features it is the output with no player present, and no other is accepted.
    removal
        How nodes are taken away: ``"remove"``, ``"split"``, ``"zero_filling"``, or a function from
        the graph and a coalition to the graph that is left.
    index
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    num_hops
        For node and edge tasks: how far around the target nodes are players. By default as far as
        the model sees: the number of times it propagates messages, checked by changing the features
        of all other nodes. Nodes that do not play are always there.
    computation_graph
        For node tasks: ``"exact"``, where everybody together gives the prediction on the whole
        graph, or ``"gnnshap"``, the game of Akkas and Azad (GNNShap, WWW 2024) on nothing but the
        edges that carry messages to the node and the nodes they touch. The prediction is still that
        on the whole graph, and the class explained by default the one predicted there.
    whole_graph
        For node tasks: what the games of several nodes have in common, which saves a pass over the
        whole graph for every node.
    batch_nodes
        Nodes per forward pass. The default is a fixed rule by device and model width. With 1 every
        coalition goes through the model on its own.
    fallback
        Worth of coalitions on which the model raises or returns NaN. Without one, that is an error.
        Single players among them do not count for ``baseline="singletons"``.
    keywords
        Names of the fields to pass to the model by keyword, instead of those its signature names.
        Needed where a signature with ``*args`` or ``**kwargs`` leaves it open.
    check
        Compare outputs of batches with those of the same coalitions alone, in a few places. A model
        that mixes the graphs of a batch is then evaluated one coalition at a time, and a random one
        is refused.
    share
        Compute an embedding that many coalitions have in common once for all of them. ``"auto"``
        does so where it saves enough and outputs agree with those of the ordinary path, which is
        compared; ``True`` wherever they agree, and raises where they do not; ``False`` never.
    lazy
        Run the model only when the game is first asked for worths, together with the coalitions.
        By default it is run on the whole graph at once, so that what is wrong is said here.

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
        The :class:`Payoff` in force, with its columns and baseline.
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

    def __init__(
        self,
        model: Model,
        data: Data,
        *,
        target: TargetLike = None,
        mode: str = "multiclass_classification",
        task_level: str = "graph",
        return_type: str = "raw",
        players: PlayersLike = "nodes",
        directed: bool = False,
        rest: str = "players",
        feature_groups: Mapping[str, Sequence[int]] | None = None,
        reference: Any = "zero",
        draws: int = 16,
        communication: CommunicationGraph | None = None,
        payoff: PayoffLike = "auto",
        baseline: BaselineLike = None,
        removal: RemovalLike = "remove",
        index: int | Tensor | None = None,
        num_hops: int | None = None,
        computation_graph: str = "exact",
        whole_graph: WholeGraph | None = None,
        batch_nodes: int | None = None,
        fallback: float | None = None,
        keywords: Iterable[str] | None = None,
        check: bool = True,
        share: ShareLike = "auto",
        lazy: bool = False,
    ) -> None:
        if not callable(model):
            raise TypeError(f"model must be callable (got {type(model).__name__})")
        data = check_data(data)
        kind = as_players(
            players,
            directed=directed,
            rest=rest,
            feature_groups=feature_groups,
            reference=reference,
            draws=draws,
        )
        # the index is checked against the graph by whoever finds the players
        task = ModelTask(mode, task_level, return_type, target)
        task_level = task.task_level
        roles = roles_of(data)
        gnnshap = check_computation_graph(computation_graph, task_level) == "gnnshap"
        self.num_nodes = int(data.num_nodes or 0)
        part: LocalPart | None = None
        if task_level == "node" and local_kind(kind, communication, gnnshap):
            keyed = replace(task, keywords=None if keywords is None else list(keywords))
            node = int(target_nodes(data, task_level, index)[0])
            whole_graph = whole_graph or WholeGraph.of(model, data, keyed)
            part = local_part(model, data, keyed, roles, whole_graph, node, num_hops, gnnshap)
        if part is not None:
            if isinstance(kind, Edges) and not part.data.edge_index.numel():
                raise ValueError(f"no edge brings a message to node {node}: there are no players")
            data, index = part.data, part.index
        everyone = player_set(data, kind, communication, one_way=gnnshap)
        if not everyone.of_nodes:
            _refuse_node_options(everyone, removal, baseline)
        if gnnshap:
            assert whole_graph is not None
            task = replace(task, target=whole_graph.target(task, node))
        signature = Signature.of(model, data, keywords)
        device = model_device(model, data.edge_index.device)
        self.model = model
        self.batch_nodes = _checked_batch_nodes(batch_nodes, model, device)
        self.fallback = fallback
        self.task_level = task_level
        self._show = False
        self._task, self._payoff, self._baseline = task, payoff, check_baseline(baseline)
        self._settled: tuple[Tensor, Payoff] | None = None
        #: The payoff with the mean of single players as its baseline, once it is known.
        self._centered: Payoff | None = None

        def evaluator(
            part: Data, anchors: NDArray[np.int64], player_of: NDArray[np.int64]
        ) -> Evaluator:
            tensors = GraphTensors(part, device, roles)
            return Evaluator(
                model,
                signature,
                resolve_removal(removal, part, tensors, anchors)
                if everyone.of_nodes
                else removal_of(everyone.spec, part, tensors, anchors),
                task_level=task_level,
                batch_nodes=self.batch_nodes,
                player_of=player_of,
            )

        if masked_layers(model):
            log.warning("the model carries edge masks of another explainer: they are set aside")
        if gnnshap:
            assert part is not None
            assert whole_graph is not None
            on_part = evaluator(part.data, np.array([part.index]), everyone.player_of)
            chosen = Playing(on_part, everyone, propagation=whole_graph.propagation)
        else:
            chosen = choose_players(
                model, data, task_level, index, num_hops, roles, evaluator, everyone
            )
        self._evaluator, self.players = chosen.evaluator, chosen.players
        self._node_outputs = chosen.node_outputs
        if part is not None and whole_graph is not None:
            self.players = part.lifted(self.players)
            self._node_outputs = whole_graph.node_outputs
        self.data = self._evaluator.removal.data
        self.n = len(self.players)
        self._cache = WorthCache(words_for(self.n))
        self.check = SelfCheck(enabled=check)
        self._share = check_share(share)
        self._shared = SharedPasses(self._evaluator, self._share, self.check)
        self._shared.propagation = chosen.propagation
        self._learned: Sharing | None = None
        #: Batches of several coalitions that went through the model, and whether worths of any
        #: of them have been given out.
        self._batches, self._answered = 0, False
        self._fallbacks = 0
        if not self._evaluator.batched:
            self.check.one_by_one = "the model does not take batch, or normalizes by the batch"
            log.info("the model does not keep coalitions apart: they are evaluated one by one")
        if chosen.prediction is not None or not lazy:
            self.settle(chosen.prediction)

    @classmethod
    def for_task(
        cls, model: Model, data: Data, task: ModelTask, *, lazy: bool = True, **options: Any
    ) -> Self:
        """The game of a task; ``options`` are those of the class that the task does not say."""
        return cls(model, data, lazy=lazy, **options, **vars(task))

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
        return self._cache.count

    @property
    def sharing(self) -> Sharing:
        """Whether coalitions shared embeddings and how many, or why not."""
        return self._learned or self._shared.sharing

    @property
    def fixed(self) -> list[str]:
        """Fields of the whole graph that the model takes: the same in every coalition."""
        signature, rest = self._evaluator.signature, self._evaluator.removal.tensors.rest
        taken = (*signature.positional, *signature.keywords)
        return [name for name in taken if isinstance(rest.get(name), Tensor)]

    def shares(self) -> bool:
        """Whether coalitions share embeddings and that is worth it, tried on random ones.

        Nothing of them is kept.
        """
        with untouched(self.model):
            self.settle()
            return self._shared.try_out(self._everybody_output())

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
        """The output for the whole graph as the model returns it: a row, or one for every node."""
        if self._node_outputs is None:
            return self.prediction[None]
        with torch.inference_mode(False):
            return self._node_outputs.clone()

    @property
    def payoff(self) -> Payoff:
        """The payoff in force, with its columns and baseline."""
        payoff = self.settle()[1]
        if not self.baseline_from_singletons or not self.n:
            return payoff
        if self._centered is None:
            baseline = singleton_mean(self._scores(self._singletons()))
            self._centered = replace(payoff, baseline=baseline)
            self._answered |= self._batches > 0
        return self._centered

    @property
    def baseline_from_singletons(self) -> bool:
        """Whether single players are evaluated because the baseline is their mean."""
        return isinstance(self._baseline, str)

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
        asked = as_coalitions(coalitions, self.n, name="coalitions")
        some = asked.any(axis=1)
        masks = pack(asked[some])
        if self.baseline_from_singletons and self._centered is None:
            # in the same passes
            scores = self._scores(np.concatenate([masks, self._singletons()]))[: len(masks)]
        else:
            scores = self._scores(masks)
        worths = np.zeros((len(asked), self._games()))
        if len(masks):
            worths[some] = scores - np.array(self.payoff.baseline)
            if self.fallback is not None:
                worths[np.isnan(worths)] = float(self.fallback)
        self._answered |= self._batches > 0
        return worths[:, 0] if self.single else worths

    def _scores(self, masks: Masks) -> NDArray[np.float64]:
        """Payoffs (k, q) of packed coalitions before the baseline; ``nan`` where the model fails.

        Those that are not known yet go through the model.
        """
        rows = self._cache.rows_of(masks)
        known, top = self._cache.count, int(rows.max(initial=-1)) + 1
        if top > known:
            try:
                if self._evaluate(known, top):
                    rows = self._cache.rows_of(masks)
            finally:
                # whatever stopped us, Ctrl-C included: what was evaluated stays, the rest goes
                if self._cache.count < top:
                    self._cache.forget_unknown()
        return self._cache.worths(rows)

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
            self._cache.rows_of(pack(coalitions))
            self._cache.add(scores)
            self.check.comparisons += compared
            self._learned = sharing

    def settle(self, whole: Tensor | None = None) -> tuple[Tensor, Payoff]:
        """What is explained, from the output (1, columns) for the whole graph; found out once."""
        if self._settled is None:
            if whole is None:
                evaluator = self._on_nodes() if self.players.touched else self._evaluator
                with untouched(self.model), watch_propagation(self.model) as seen:
                    whole = evaluator.outputs(evaluator.everybody)
                self._shared.propagation = seen
                # everybody is the full graph in every draw
                whole = whole[:, : whole.shape[1] // self._evaluator.removal.draws]
            task = self._task
            payoff = resolve_payoff(
                self._payoff,
                task.target,
                whole,
                mode=task.mode,
                return_type=task.return_type,
            )
            if task.return_type == "raw" and self._seem_probabilities(whole, task.mode):
                multiclass = task.mode == "multiclass_classification"
                together = ", with a sum of 1" if multiclass else ""
                warnings.warn(
                    # without the numbers, so that a whole dataset gives one warning
                    "outputs were declared raw but look like probabilities (all lie between 0 and "
                    f"1{together}): if they are, say return_type='probs'",
                    stacklevel=3,
                )
            payoff = self._with_baseline(payoff, self._baseline, whole)
            payoff = replace(payoff, draws=self._evaluator.removal.draws)
            with torch.inference_mode(False):
                # so that it is a tensor like any other
                self._settled = whole[0].clone(), payoff
        return self._settled

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
        game._cache = WorthCache(words_for(game.n))
        game.check = SelfCheck(enabled=self.check.enabled)
        game._shared = SharedPasses(game._evaluator, self._share, game.check)
        game._learned = None
        game._batches, game._answered, game._fallbacks = 0, False, 0
        if self.players.touched and self.baseline_from_singletons:
            game._centered = None
            self._centered = replace(self.settle()[1], baseline=game.payoff.baseline)
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
    def progress(self, show: bool = True) -> Iterator[None]:
        """Show a bar over coalitions while they are evaluated inside this block."""
        before, self._show = self._show, show
        try:
            yield
        finally:
            self._show = before

    def _evaluate(self, known: int, top: int) -> bool:
        """Send coalitions through the model into the cache; whether its rows got another order."""
        bar = tqdm(total=top - known, desc="coalitions") if self._show else nullcontext()
        with untouched(self.model), bar:
            self.settle()
            arranged = self._shared.consider(self._cache.masks(known, top))
            if arranged:
                masks = self._cache.masks(known, top)
                if self.players.kind != "edges" or self.n <= _MOST_ORDERED:
                    self._cache.arrange(known, sharing_order(masks, self.graph.edges.T, self.n))
                self._evaluate_shared(known, top, bar)
            if self._cache.count < top:
                self._evaluate_batches(self._cache.masks(self._cache.count, top), bar)
        return arranged

    def _evaluate_shared(self, known: int, top: int, bar: Any) -> None:
        """Worths of coalitions that share embeddings; none of them where they cannot."""
        masks = self._cache.masks(known, top)
        try:
            for outputs in self._shared.outputs(masks, self._everybody_output()):
                self._batches += not self._batches
                rows = self._cache.masks(self._cache.count, self._cache.count + len(outputs))
                self._cache.add(self._coalition_scores(rows, outputs))
                if isinstance(bar, tqdm):
                    bar.update(len(outputs))
        except NotShareable as error:
            used = self._shared.sharing.used
            if used:
                # earlier ones are not to be trusted either
                self._cache.count = self._batches = 0
            self._shared.forget(str(error))
            log.info("coalitions do not share embeddings: %s", error)
            if used:
                self._forget_answers(str(error))

    def _evaluate_batches(self, masks: Masks, bar: Any) -> None:
        """Send packed coalitions through the model, batch by batch, into the cache."""
        known = self._cache.count
        singly = not self._evaluator.batched or self.batch_nodes == 1
        if self.check.enabled and singly and not self.check.comparisons:
            self._compare_alone(self._evaluator.everybody, self._everybody_output())
        # in front of the first batch the whole graph, to be compared with itself alone
        first = self.check.enabled and self._evaluator.batched and not self._batches
        asked = np.concatenate([self._evaluator.everybody, masks]) if first else masks
        for batch in self._evaluator.batches(asked):
            rows = asked[batch]
            try:
                scores = self._batch_scores(rows)
            except BatchMixing:
                self._start_over(known + len(masks))
                return
            new = scores[1:] if first and batch.start == 0 else scores
            self._cache.add(new)
            if isinstance(bar, tqdm):
                bar.update(len(new))

    def _batch_scores(self, masks: Masks) -> NDArray[np.float64]:
        """Payoffs of one batch, compared with those of single coalitions now and then.

        In the first batch of several coalitions, and in the 2nd, 4th, 8th and so on.
        """
        self._batches += len(masks) > 1
        if len(masks) == 1 or not self.check.enabled or self._batches & (self._batches - 1):
            return self._coalition_scores(masks)
        try:
            outputs = self._outputs(masks)
        except Exception as error:
            return self._one_by_one(masks, error)
        if not self._compared(masks, outputs):
            return self._one_by_one(masks)
        return self._coalition_scores(masks, outputs)

    def _one_by_one(self, masks: Masks, error: Exception | None = None) -> NDArray[np.float64]:
        """Payoffs of the coalitions of a batch that failed as a whole, or is not to be trusted."""
        before = self._fallbacks
        if error is not None:
            log.info("one by one, because of a batch of %d: %r", len(masks), error)
        rows = range(len(masks))
        scores = np.concatenate([self._coalition_scores(masks[i : i + 1]) for i in rows])
        if error is not None and self._fallbacks == before:
            # nothing is wrong with any of them
            self._evaluator.batched = False
            self.check.one_by_one = f"the model fails on a batch: {error!r}"
        return scores

    def _compared(self, masks: Masks, outputs: Tensor) -> bool:
        """Whether the outputs of a batch are to be trusted, by comparing some of them."""
        sizes = coalition_sizes(masks, np.zeros_like(masks[:1]))

        def again(rows: NDArray[np.int64]) -> Tensor:
            known = len(rows) == 1 and sizes[rows[0]] == self.n
            return self._everybody_output() if known else self._outputs(masks[rows])

        try:
            require_apart(outputs, sizes, again, self.check)
        except BatchMixing as mixing:
            if mixing.__cause__ is None:
                mask = masks[mixing.row : mixing.row + 1]
                self._compare_alone(mask, self._evaluator.outputs(mask))
                say_one_by_one()
            # from now on one at a time; worths of earlier batches are not to be trusted
            self._evaluator.batched = False
            self.check.one_by_one = str(mixing)
            if self._batches > 1:
                raise
            return False
        return True

    def _compare_alone(self, mask: Masks, known: Tensor) -> None:
        """Raise if the model says something else of the same coalition a second time."""

        def again() -> Tensor:
            return self._evaluator.outputs(mask)

        self.check.comparisons += 1
        torch.rand(1)  # the guard gave random numbers back that the first output may have used
        refuse_random(self.model, again, known, again(), size_of(known))

    def _start_over(self, top: int) -> None:
        """Evaluate everything again one by one, unless worths have been given out already."""
        self._forget_answers(
            "the model mixes the graphs of a batch", "one at a time", "batch_nodes=1"
        )
        for mask in self._cache.masks(0, top):
            self._cache.add(self._coalition_scores(mask[None]))

    def _forget_answers(
        self, reason: str, how: str = "the ordinary way", option: str = "share=False"
    ) -> None:
        """Forget all worths, which are not to be trusted; raise if some were given out."""
        self._cache.count = 0
        self._centered = None
        if self._answered:
            raise BatchMixing(
                f"{reason}, and this showed only after some worths had been given out. Ask for "
                f"everything again: coalitions are evaluated {how} from now on, as {option} does "
                "from the start"
            )

    def _coalition_scores(self, masks: Masks, outputs: Tensor | None = None) -> NDArray[np.float64]:
        """Payoffs (k, q) before the baseline, ``nan`` where the model fails and may."""
        try:
            scores = self.settle()[1].scores_array(
                self._outputs(masks) if outputs is None else outputs
            )
        except Exception as error:
            if len(masks) > 1:
                # find the one at fault, or give each of the others its own worth
                return self._one_by_one(masks, error)
            if self.fallback is None:
                error.add_note(
                    f"raised on coalition {self._describe(masks[0])}; fallback=... gives such "
                    "coalitions a worth of their own"
                )
                raise
            self._fallbacks += 1
            return np.full((1, self._games()), np.nan)
        bad = ~np.isfinite(scores).all(axis=1)
        if bad.any():
            if self.fallback is None:
                raise ValueError(
                    f"the model's output for coalition {self._describe(masks[bad][0])} gives a "
                    f"worth of {scores[bad][0].tolist()}; fallback=... gives such coalitions one"
                )
            scores[bad] = np.nan
        return scores

    def _seem_probabilities(self, whole: Tensor, mode: str) -> bool:
        """Whether outputs look like probabilities, of the whole and, where in doubt, of parts."""
        suspicious = looks_like_probabilities(whole, mode)
        if not suspicious or mode == "multiclass_classification":
            return suspicious
        # a logit between 0 and 1 is common: those of single nodes will not all be
        alone = pack(np.eye(min(self.n, 64), self.n, dtype=np.bool_))
        try:
            with untouched(self.model):
                outputs = [self._evaluator.outputs(alone[i : i + 1]) for i in range(len(alone))]
        except Exception:
            return False
        return all(looks_like_probabilities(output, mode) for output in outputs)

    def _outputs(self, masks: Masks) -> Tensor:
        outputs = self._evaluator.outputs(masks)
        columns = outputs.shape[1] // self._evaluator.removal.draws
        if columns != len(self.prediction):
            raise ValueError(
                f"the model must return {len(self.prediction)} columns, as for the whole graph "
                f"(got {columns})"
            )
        return outputs

    def _everybody_output(self) -> Tensor:
        """The output for everybody, as the evaluator returns it."""
        if self.players.touched:  # nodes that no edge touches are not there
            return self._evaluator.outputs(self._evaluator.everybody)
        return self.prediction.repeat(self._evaluator.removal.draws)[None]

    def _describe(self, mask: NDArray[np.uint64]) -> str:
        inside = unpack(mask[None], self.n)[0]
        if self.players.kind != "nodes":
            return self.players.describe(inside)
        nodes = np.zeros(int(self.nodes.max(initial=-1)) + 1, dtype=np.bool_)
        nodes[self.nodes[inside]] = True
        return describe(nodes)

    def _with_baseline(self, payoff: Payoff, baseline: BaselineLike, whole: Tensor) -> Payoff:
        """The payoff with the baseline that was given, or the default one."""
        function = payoff.function is not None
        games = payoff.scores(whole).shape[1] if function else len(payoff.columns)
        if isinstance(baseline, str):
            # what it is shows when the single players have been evaluated
            return replace(payoff, baseline=(0.0,) * games, baseline_source=SINGLETONS)
        if baseline is not None:
            return replace(
                payoff,
                baseline=given_baseline(payoff, baseline, whole, games),
                baseline_source="given",
            )
        if self.players.some_always_present:
            source = "no player present"
            return replace(payoff, baseline=self._without_players(payoff), baseline_source=source)
        if payoff.name == "norm_prob" and self.task_level == "graph":
            classes = 2 if payoff.mode == "binary_classification" else whole.shape[1]
            log.info("no baseline given: using the uniform probability 1/%d", classes)
            uniform = (1 / classes,) * games
            return replace(payoff, baseline=uniform, baseline_source="uniform")
        if self.task_level != "graph" and payoff.name in ("norm_prob", "raw"):
            source = "isolated target"
            return replace(payoff, baseline=self._without_players(payoff), baseline_source=source)
        return replace(payoff, baseline=(0.0,) * games)

    def _without_players(self, payoff: Payoff) -> tuple[float, ...]:
        """Scores of the output with no player present."""
        nobody = pack(np.zeros((1, self.n), dtype=np.bool_))
        with untouched(self.model):
            outputs = self._evaluator.outputs(nobody)
        alone = replace(payoff, draws=self._evaluator.removal.draws).scores(outputs)[0]
        return tuple(float(score) for score in alone)

    def __repr__(self) -> str:
        return (
            f"GNNGame({self.n} players, payoff={self.payoff.name!r}, "
            f"columns={list(self.payoff.columns)}, {self.evaluations:,} evaluations)"
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


def _checked_batch_nodes(batch_nodes: int | None, model: Model, device: torch.device) -> int:
    """Nodes per forward pass: what was asked for, or the rule by device and model width."""
    if batch_nodes is None:
        return default_batch_nodes(model, device)
    if not isinstance(batch_nodes, int | np.integer):
        raise TypeError(f"batch_nodes must be an integer (got {batch_nodes!r})")
    if batch_nodes < 1:
        raise ValueError(f"batch_nodes must be at least 1 (got {batch_nodes})")
    return int(batch_nodes)
