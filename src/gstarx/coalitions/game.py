"""A graph neural network as a game played by the nodes of one graph (section 4.3 of the paper)."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.data import Data
from tqdm import tqdm

from gstarx.coalitions.cache import WorthCache
from gstarx.coalitions.evaluator import Evaluator, default_batch_nodes
from gstarx.coalitions.guard import masked_layers, untouched
from gstarx.coalitions.payoff import (
    Payoff,
    PayoffLike,
    TargetLike,
    check_task,
    looks_like_probabilities,
    resolve_payoff,
)
from gstarx.coalitions.players import check_data, check_level, choose_players, whole_output
from gstarx.coalitions.removal import RemovalLike, resolve_removal
from gstarx.coalitions.signature import GraphTensors, Model, Signature, model_device, roles_of
from gstarx.games.protocol import Worths, describe
from gstarx.graphs.bitmasks import Coalitions, Masks, pack, unpack, words_for
from gstarx.graphs.communication import CommunicationGraph, as_coalitions

log = logging.getLogger("gstarx")


class GNNGame:
    """The game that a model plays on the nodes of one graph.

    The worth of a coalition of nodes is what the model says of the graph when only they are there.
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
    baseline
        What is subtracted from the payoff: a number, or one per class such as
        :func:`gstarx.expected_output` computes. By default the uniform probability for
        ``"norm_prob"``, the output of the isolated target for node and edge tasks, else nothing.
    removal
        ``"remove"``, ``"split"``, ``"zero_filling"``, or a function from the graph and a coalition
        to the graph that is left.
    index
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    num_hops
        For node and edge tasks: how far around the target nodes are players. By default grown from
        the number of message-passing layers until the prediction is that of the whole graph.
    batch_nodes
        Nodes per forward pass. The default is a fixed rule by device and model width.
    fallback
        Worth of coalitions on which the model raises or returns NaN. Without one, that is an error.
    keywords
        Names of the fields to pass to the model by keyword, instead of those its signature names.
    lazy
        Run the model only when the game is first asked for worths, together with the coalitions.
        By default it is run on the whole graph at once, so that what is wrong is said here.

    Attributes
    ----------
    graph
        The communication structure of the players.
    nodes
        Node of ``data`` behind every player.
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
        payoff: PayoffLike = "auto",
        baseline: float | ArrayLike | Tensor | None = None,
        removal: RemovalLike = "remove",
        index: int | Tensor | None = None,
        num_hops: int | None = None,
        batch_nodes: int | None = None,
        fallback: float | None = None,
        keywords: Iterable[str] | None = None,
        lazy: bool = False,
    ) -> None:
        if not callable(model):
            raise TypeError(f"model must be callable (got {type(model).__name__})")
        mode, return_type = check_task(mode, return_type)
        task_level = check_level(task_level)
        data = check_data(data)
        signature = Signature.of(model, data, keywords)
        roles = roles_of(data)
        device = model_device(model, data.edge_index.device)
        self.model = model
        self.batch_nodes = _checked_batch_nodes(batch_nodes, model, device)
        self.fallback = fallback
        self.task_level = task_level
        self.num_nodes = int(data.num_nodes or 0)
        self._show = False
        self._question = _Question(target, payoff, baseline, mode, return_type)
        self._settled: tuple[Tensor, Payoff] | None = None

        def evaluator(part: Data, anchors: NDArray[np.int64]) -> Evaluator:
            tensors = GraphTensors(part, device, roles)
            return Evaluator(
                model,
                signature,
                resolve_removal(removal, part, tensors, anchors),
                task_level=task_level,
                batch_nodes=self.batch_nodes,
            )

        if masked_layers(model):
            log.warning("the model carries edge masks of another explainer: they are set aside")
        self._evaluator, self.nodes, whole = choose_players(
            model, data, task_level, index, num_hops, roles, evaluator
        )
        self.data = self._evaluator.removal.data
        self.graph = CommunicationGraph.from_edge_index(self.data.edge_index, len(self.nodes))
        self.n = self.graph.num_nodes
        self._cache = WorthCache(words_for(self.n))
        self._check_batching(signature)
        if whole is not None or not lazy:
            self.settle(whole)

    def _check_batching(self, signature: Signature) -> None:
        """Evaluate coalitions one by one where a model without ``batch`` would mix them."""
        if self._evaluator.batched and not signature.takes_batch:
            with untouched(self.model):
                self._evaluator.batched = not self._evaluator.mixes()
        if not self._evaluator.batched:
            log.info("the model does not keep coalitions apart: they are evaluated one by one")

    @property
    def evaluations(self) -> int:
        """Distinct coalitions that went through the model."""
        return self._cache.count

    @property
    def settled(self) -> bool:
        """Whether the model has been run, so that what is explained is known."""
        return self._settled is not None

    @property
    def prediction(self) -> Tensor:
        """The model's output for the whole graph, (columns,)."""
        return self.settle()[0]

    @property
    def payoff(self) -> Payoff:
        """The payoff in force, with its columns and baseline."""
        return self.settle()[1]

    @property
    def single(self) -> bool:
        """Whether worths come as (k,) rather than (k, q)."""
        target = self._question.target
        return not (
            isinstance(target, str | Sequence)
            or (isinstance(target, Tensor) and target.numel() > 1)
            or self._games() > 1
        )

    def __call__(self, coalitions: Coalitions) -> Worths:
        """Worths of boolean coalitions (k, n): (k,), or (k, q) for several targets."""
        asked = as_coalitions(coalitions, self.n, name="coalitions")
        some = asked.any(axis=1)
        rows = self._cache.rows_of(pack(asked[some]))
        known, top = self._cache.count, int(rows.max(initial=-1)) + 1
        if top > known:
            try:
                self._evaluate(self._cache.masks(known, top))
            finally:
                # whatever stopped us, Ctrl-C included: what was evaluated stays, the rest goes
                if self._cache.count < top:
                    self._cache.forget_unknown()
        worths = np.zeros((len(asked), self._games()))
        if len(rows):
            worths[some] = self._cache.worths(rows)
        return worths[:, 0] if self.single else worths

    def learn(self, coalitions: Coalitions, outputs: Tensor) -> None:
        """Take outputs for distinct coalitions, everybody first, from passes shared with others.

        For a game that has not been asked yet. Where a worth is not finite nothing is kept: asking
        for it will say what is wrong.
        """
        worths = self.settle(outputs[:1])[1].worths(outputs)
        if np.isfinite(worths).all():
            self._cache.rows_of(pack(coalitions))
            self._cache.add(worths)

    def settle(self, whole: Tensor | None = None) -> tuple[Tensor, Payoff]:
        """What is explained, from the output (1, columns) for the whole graph; found out once."""
        if self._settled is None:
            if whole is None:
                with untouched(self.model):
                    whole = whole_output(self._evaluator)
            asked = self._question
            payoff = resolve_payoff(
                asked.payoff,
                asked.target,
                whole,
                mode=asked.mode,
                return_type=asked.return_type,
            )
            if asked.return_type == "raw" and self._seem_probabilities(whole, asked.mode):
                warnings.warn(
                    # without the numbers, so that a whole dataset gives one warning
                    "outputs were declared raw but look like probabilities (between 0 and 1, and "
                    "of all classes 1 together): if they are, say return_type='probs'",
                    stacklevel=3,
                )
            payoff = self._with_baseline(payoff, asked.baseline, whole)
            with torch.inference_mode(False):
                # so that it is a tensor like any other
                self._settled = whole[0].clone(), payoff
        return self._settled

    def _games(self) -> int:
        return len(self.payoff.baseline)

    @contextmanager
    def progress(self, show: bool = True) -> Iterator[None]:
        """Show a bar over coalitions while they are evaluated inside this block."""
        before, self._show = self._show, show
        try:
            yield
        finally:
            self._show = before

    def _evaluate(self, masks: Masks) -> None:
        """Send packed coalitions through the model, batch by batch, into the cache."""
        bar = tqdm(total=len(masks), desc="coalitions") if self._show else nullcontext()
        with untouched(self.model), bar:
            for batch in self._evaluator.batches(masks):
                outputs = None if self._settled else self._settling_outputs(masks[batch])
                self._cache.add(self._worths(masks[batch], outputs))
                if isinstance(bar, tqdm):
                    bar.update(batch.stop - batch.start)

    def _settling_outputs(self, masks: Masks) -> Tensor | None:
        """Outputs of a first batch that has the whole graph in front, or None if that fails."""
        outputs = None
        if self._evaluator.batched:
            everybody = pack(np.ones((1, self.n), dtype=np.bool_))
            try:
                outputs = self._evaluator.outputs(np.concatenate([everybody, masks]))
            except Exception:
                log.debug("the first batch failed: the whole graph is evaluated alone")
        self.settle(None if outputs is None else outputs[:1])
        return None if outputs is None else outputs[1:]

    def _worths(self, masks: Masks, outputs: Tensor | None = None) -> NDArray[np.float64]:
        try:
            worths = self.payoff.worths(self._outputs(masks) if outputs is None else outputs)
        except Exception as error:
            if len(masks) > 1:
                # find the one at fault, or give each of the others its own worth
                log.info("one by one, because of a batch of %d: %r", len(masks), error)
                return np.concatenate([self._worths(masks[i : i + 1]) for i in range(len(masks))])
            if self.fallback is None:
                error.add_note(
                    f"raised on coalition {self._describe(masks[0])}; fallback=... gives such "
                    "coalitions a worth of their own"
                )
                raise
            return np.full((1, self._games()), float(self.fallback))
        bad = ~np.isfinite(worths).all(axis=1)
        if bad.any():
            if self.fallback is None:
                raise ValueError(
                    f"the model's output for coalition {self._describe(masks[bad][0])} gives a "
                    f"worth of {worths[bad][0].tolist()}; fallback=... gives such coalitions one"
                )
            worths[bad] = float(self.fallback)
        return worths

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
        if outputs.shape[1] != len(self.prediction):
            raise ValueError(
                f"the model must return {len(self.prediction)} columns, as for the whole graph "
                f"(got {outputs.shape[1]})"
            )
        return outputs

    def _describe(self, mask: NDArray[np.uint64]) -> str:
        inside = np.zeros(int(self.nodes.max(initial=-1)) + 1, dtype=np.bool_)
        inside[self.nodes[unpack(mask[None], self.n)[0]]] = True
        return describe(inside)

    def _with_baseline(
        self, payoff: Payoff, baseline: float | ArrayLike | Tensor | None, whole: Tensor
    ) -> Payoff:
        """The payoff with the baseline that was given, or the default one."""
        function = payoff.function is not None
        games = payoff.scores(whole).shape[1] if function else len(payoff.columns)
        if baseline is not None:
            return replace(
                payoff,
                baseline=_given_baseline(payoff, baseline, whole, games),
                baseline_source="given",
            )
        if payoff.name == "norm_prob" and self.task_level == "graph":
            classes = 2 if payoff.mode == "binary_classification" else whole.shape[1]
            log.info("no baseline given: using the uniform probability 1/%d", classes)
            uniform = (1 / classes,) * games
            return replace(payoff, baseline=uniform, baseline_source="uniform")
        if self.task_level != "graph" and payoff.name in ("norm_prob", "raw"):
            nobody = pack(np.zeros((1, self.n), dtype=np.bool_))
            with untouched(self.model):
                alone = payoff.scores(self._evaluator.outputs(nobody))[0]
            found = tuple(float(score) for score in alone)
            return replace(payoff, baseline=found, baseline_source="isolated target")
        return replace(payoff, baseline=(0.0,) * games)

    def __repr__(self) -> str:
        return (
            f"GNNGame({self.n} players, payoff={self.payoff.name!r}, "
            f"columns={list(self.payoff.columns)}, {self.evaluations:,} evaluations)"
        )


@dataclass(frozen=True)
class _Question:
    """What is to be explained, as it was asked for."""

    target: TargetLike
    payoff: PayoffLike
    baseline: float | ArrayLike | Tensor | None
    mode: str
    return_type: str


def _checked_batch_nodes(batch_nodes: int | None, model: Model, device: torch.device) -> int:
    """Nodes per forward pass: what was asked for, or the rule by device and model width."""
    if batch_nodes is None:
        return default_batch_nodes(model, device)
    if not isinstance(batch_nodes, int | np.integer):
        raise TypeError(f"batch_nodes must be an integer (got {batch_nodes!r})")
    if batch_nodes < 1:
        raise ValueError(f"batch_nodes must be at least 1 (got {batch_nodes})")
    return int(batch_nodes)


def _given_baseline(
    payoff: Payoff, baseline: float | ArrayLike | Tensor, whole: Tensor, games: int
) -> tuple[float, ...]:
    """The baseline of every game: one number for all, or picked from one per class."""
    if isinstance(baseline, Tensor):
        baseline = baseline.detach().cpu().numpy()
    numbers = np.asarray(baseline, dtype=np.float64).reshape(-1)
    if not np.isfinite(numbers).all():
        raise ValueError(f"baseline must be finite (got {numbers.tolist()})")
    if len(numbers) == 1:
        return (float(numbers[0]),) * games
    classes = games if payoff.function is not None else payoff.classes(whole)
    if len(numbers) != classes:
        raise ValueError(
            f"baseline must be one number or one for each of {classes} classes "
            f"(got {len(numbers)} numbers)"
        )
    if payoff.function is not None:
        return tuple(numbers.tolist())
    chosen = numbers[list(payoff.columns)]
    if payoff.against is not None:
        chosen = chosen - numbers[payoff.against]
    return tuple(chosen.tolist())
