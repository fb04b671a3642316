"""Predictions for parts of graphs, which every metric is computed from, and their reference."""

from __future__ import annotations

import operator
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data

from gstarx.gnn import (
    BatchMixing,
    GameOptions,
    GNNGame,
    ManyGraphs,
    Model,
    ModelTask,
    Passes,
    RemovalLike,
    Signature,
    TaskLike,
    choose_columns,
    class_scores,
    graph_outputs,
    looks_like_probabilities,
    outputs_and_sharing,
    refuse_unknown,
    restored,
    with_view,
)
from gstarx.graphs import Coalitions
from gstarx.players import Nodes, PlayersLike, as_players

#: Numbers of one output, or of every output.
Numbers = float | tuple[float, ...]


@dataclass(frozen=True)
class Reference:
    """The usual range of a regression model's outputs, which makes its metrics comparable.

    Attributes
    ----------
    range
        From the 5 % to the 95 % quantile of the outputs on reference data; one number, or one for
        every output.
    mean
        Their mean, which is used as the output for an empty graph.

    Examples
    --------
    >>> Reference(range=2.5, mean=1.0)
    Reference(range=2.5, mean=1.0)
    >>> Reference(**{"range": [2.5, 1.0], "mean": [1.0, 0.0]})  # as JSON has it
    Reference(range=(2.5, 1.0), mean=(1.0, 0.0))
    """

    range: Numbers
    mean: Numbers

    def __post_init__(self) -> None:
        for name in ("range", "mean"):
            object.__setattr__(self, name, _numbers(getattr(self, name), name))
        lengths = [len(part) if isinstance(part, tuple) else None for part in self._parts]
        if lengths[0] != lengths[1]:
            raise ValueError(
                "range and mean of a reference must be of the same outputs "
                f"(got {self.range!r} and {self.mean!r})"
            )
        if min(np.atleast_1d(self.range)) < 0:
            raise ValueError(f"range must be at least 0 (got {self.range!r})")

    @classmethod
    def of(cls, outputs: torch.Tensor) -> Reference:
        """The reference from a model's outputs (graphs, outputs).

        >>> Reference.of(torch.arange(21.0)[:, None])
        Reference(range=18.0, mean=10.0)
        """
        rows = outputs.detach().double().cpu().numpy()
        if not np.isfinite(rows).all():
            at = int(np.argmin(np.isfinite(rows).all(axis=1)))
            raise ValueError(
                f"the model's outputs for graph {at} are {rows[at].tolist()}: they must be finite"
            )
        low, high = np.quantile(rows, [0.05, 0.95], axis=0)
        ranges, means = (high - low).tolist(), rows.mean(axis=0).tolist()
        return cls(ranges[0], means[0]) if len(means) == 1 else cls(tuple(ranges), tuple(means))

    @property
    def _parts(self) -> tuple[Numbers, Numbers]:
        return self.range, self.mean

    def of_output(self, output: int, outputs: int) -> tuple[float, float]:
        """Range and mean of one of a model's outputs; raises where they cannot be used."""
        if isinstance(self.range, tuple) and len(self.range) != outputs:
            raise ValueError(
                f"reference must have a range and a mean for each of the model's {outputs} outputs "
                f"(got {len(self.range)})"
            )
        width, mean = (part[output] if isinstance(part, tuple) else part for part in self._parts)
        if width == 0:
            raise ValueError(
                f"range of the reference must be above 0 (got 0 for output {output}): the model's "
                "outputs do not vary on the reference data, so differences have no scale"
            )
        return width, mean


def as_reference(reference: Any) -> Reference | None:
    """A reference, also from the mapping that JSON has of it."""
    if reference is None or isinstance(reference, Reference):
        return reference
    if not isinstance(reference, Mapping) or set(reference) != {"range", "mean"}:
        raise TypeError(
            "reference must be a metrics.Reference, or a mapping with range and mean "
            f"(got {reference!r})"
        )
    return Reference(**reference)


@refuse_unknown
def reference_of(
    model: Model,
    graphs: Iterable[Data],
    *,
    task: TaskLike = "regression",
) -> Reference:
    """The reference of a regression model from its outputs for some graphs.

    Parameters
    ----------
    model
        A graph-level model.
    graphs
        Reference data, for instance the training graphs.
    task
        What the model does, as for :func:`gstarx.explain`; only regression has a reference.

    Examples
    --------
    >>> from torch_geometric.nn import global_add_pool
    >>> def model(x, edge_index, batch):  # the number of nodes
    ...     return global_add_pool(x, batch)
    >>> none = torch.zeros(2, 0, dtype=torch.long)
    >>> graphs = [Data(x=torch.ones(n, 1), edge_index=none) for n in range(1, 22)]
    >>> reference_of(model, graphs)
    Reference(range=18.0, mean=11.0)
    """
    known = ModelTask.of(model, task)
    if known.mode != "regression":
        raise ValueError(
            f"only regression needs a reference: probabilities do not (got {known.mode!r})"
        )
    batches = [outputs.cpu() for outputs in graph_outputs(model, graphs, keywords=known.keywords)]
    if not batches:
        raise ValueError("there are no graphs to take a reference from")
    return Reference.of(torch.cat(batches))


def _numbers(given: Any, name: str) -> Numbers:
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu().numpy()
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(1, np.nan)
    if given is None or numbers.ndim > 1 or not numbers.size or not np.isfinite(numbers).all():
        raise ValueError(
            f"{name} of a reference must be a finite number, or one for every output "
            f"(got {given!r})"
        )
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist())


@dataclass(frozen=True)
class Judging:
    """What :class:`gstarx.Judge` holds, which every metric starts from."""

    model: Any
    _: KW_ONLY
    task: TaskLike = None
    removal: RemovalLike = "remove"
    players: PlayersLike = "nodes"
    reference: Reference | None = None
    num_hops: int | None = None
    batch_nodes: int | None = None

    def __post_init__(self) -> None:
        self.of(None)  # raises for what does not fit

    def of(self, index: int | None) -> PartTask:
        """The task with the node or edge that is judged."""
        task = ModelTask.of(self.model, self.task)
        return PartTask(
            **{**vars(task), "index": index},
            removal=self.removal,
            num_hops=self.num_hops,
            batch_nodes=self.batch_nodes,
            reference=self.reference,
            players=self.players,
        )


@dataclass(frozen=True)
class PartTask(ModelTask):
    """What the model does, and how parts of a graph are made and evaluated."""

    removal: RemovalLike = "remove"
    num_hops: int | None = None
    batch_nodes: int | None = None
    reference: Reference | None = None
    players: Any = "nodes"

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "players", as_players(self.players))
        object.__setattr__(self, "reference", as_reference(self.reference))
        if (self.mode == "regression") != (self.reference is not None):
            raise ValueError(
                "metrics of a regression model need reference=, the range and the mean of its "
                "outputs: metrics.reference_of(model, training_graphs) computes them, and "
                "for nodes or edges metrics.Reference.of(outputs), from outputs (rows, columns)"
                if self.reference is None
                else f"reference is for regression (got mode={self.mode!r})"
            )
        if self.batch_nodes is not None and self.batch_nodes < 1:
            raise ValueError(f"batch_nodes must be at least 1 (got {self.batch_nodes})")

    @property
    def worths(self) -> dict[str, Any]:
        """Options of a game whose worths, less its baseline, are what the metrics compare."""
        if self.mode != "regression":
            return {"payoff": "prob"}
        # where some nodes are always there, what is said of no player is known
        nothing = self.of_nodes and self.players.types is None
        return {"payoff": "raw", "baseline": 0.0} if nothing else {"payoff": "raw"}

    @property
    def of_nodes(self) -> bool:
        """Whether selections are sets of nodes."""
        return isinstance(self.players, Nodes)

    def game(self, model: Model, data: Data, target: Any, *, lazy: bool = True) -> GNNGame:
        """The game whose worths the metrics compare."""
        return GNNGame(
            model,
            data,
            target=target,
            players=self.players,
            **self.worths,
            index=self.index,
            task=self,
            game=GameOptions(removal=self.removal, num_hops=self.num_hops),
            passes=Passes(batch_nodes=self.batch_nodes),
            lazy=lazy,
        )

    def signed_range(
        self, prediction: float, target: int, outputs: int
    ) -> tuple[float | None, float]:
        """What differences of an output are divided by, and what counts for no nodes at all.

        For probabilities ``None`` and 0. For regression the reference's range, negative where the
        prediction is below the reference's mean and nan where it is that mean; and the mean.
        """
        if self.reference is None:
            return None, 0.0
        width, mean = self.reference.of_output(target, outputs)
        return (
            np.nan if prediction == mean else float(np.copysign(width, prediction - mean))
        ), mean


@dataclass(frozen=True)
class Parts:
    """Probabilities of one graph and of parts of it; for regression the model's outputs.

    Attributes
    ----------
    players
        What can be removed: all nodes of a graph, those around the explained node, or all players
        of another kind.
    whole
        Probability of every class for the full graph, (classes,).
    parts
        The same for every part, (k, classes); 0 for a part without nodes, of a regression the
        mean of the reference.
    target
        The class or output that the metrics are about.
    signed_range
        For regression, what differences are divided by before they are clipped, see
        :meth:`PartTask.signed_range`.
    """

    players: NDArray[np.int64]
    whole: NDArray[np.float64]
    parts: NDArray[np.float64]
    target: int
    signed_range: float | None = None


def part_probabilities(
    model: Model,
    graphs: Sequence[Data],
    parts: Sequence[Coalitions],
    targets: Sequence[int | None],
    task: PartTask,
) -> list[Parts]:
    """Probabilities of graphs and of boolean parts (k, n) of them, in few forward passes."""
    viewed = [with_view(model, graph, task) for graph in graphs]
    graphs = [graph for graph, _ in viewed]
    with restored(model):
        shared = None
        if task.task_level == "graph":
            shared = ManyGraphs.sharing(model, graphs, task.removal, task.keywords)
        if shared is not None:
            with suppress(BatchMixing):
                return _shared(model, *shared, parts, targets, task)
        return [
            _from_game(model, graph, part, target, own)
            for (graph, own), part, target in zip(viewed, parts, targets, strict=True)
        ]


def _shared(
    model: Model,
    graphs: ManyGraphs,
    signature: Signature,
    parts: Sequence[Coalitions],
    targets: Sequence[int | None],
    task: PartTask,
) -> list[Parts]:
    # the full graph goes before its parts; a part without nodes is not evaluated
    coalitions = [np.concatenate([np.ones((1, p.shape[1]), bool), p[p.any(axis=1)]]) for p in parts]
    outputs, _ = outputs_and_sharing(
        model, graphs, signature, coalitions, str(task.removal), task.batch_nodes
    )
    _check_outputs(outputs, task)
    scores = class_scores(outputs, task.mode, task.return_type, "prob")
    probabilities = scores.double().cpu().numpy()
    _check_finite(probabilities, task.mode)
    ends = np.cumsum([len(rows) for rows in coalitions])
    columns = outputs.shape[1]
    return [
        _from_rows(rows, part, _target(rows[0], target, task.mode, columns), task)
        for rows, part, target in zip(
            np.split(probabilities, ends[:-1]), parts, targets, strict=True
        )
    ]


def _from_rows(rows: NDArray[np.float64], part: Coalitions, target: int, task: PartTask) -> Parts:
    signed_range, nothing = task.signed_range(rows[0][target], target, rows.shape[1])
    inside = np.full((len(part), rows.shape[1]), nothing)
    inside[part.any(axis=1)] = rows[1:]
    return Parts(np.arange(part.shape[1]), rows[0], inside, target, signed_range)


def _from_game(
    model: Model, graph: Data, part: Coalitions, target: int | None, task: PartTask
) -> Parts:
    game = task.game(model, graph, "all")
    return parts_of_game(game, part[:, game.nodes], target, task)


def parts_of_game(game: GNNGame, inside: Coalitions, target: int | None, task: PartTask) -> Parts:
    """Probabilities of boolean coalitions (k, n) of the players of a game for all targets."""
    everybody = np.ones((1, game.n), dtype=np.bool_)
    rows = absolute_worths(game, np.concatenate([everybody, inside]))
    chosen = _target(rows[0], target, task.mode, len(game.prediction))
    signed_range, nothing = task.signed_range(rows[0][chosen], chosen, rows.shape[1])
    parts = rows[1:]
    if not game.players.some_always_present:
        parts = np.where(inside.any(axis=1, keepdims=True), parts, nothing)
    return Parts(game.players.ids, rows[0], parts, chosen, signed_range)


def absolute_worths(game: GNNGame, coalitions: Coalitions) -> NDArray[np.float64]:
    """Worths with the baseline added: what the model says, also of no player at all."""
    baseline = game.payoff.baseline
    return np.asarray(game(coalitions) + (baseline[0] if game.single else np.array(baseline)))


def _target(full_graph: NDArray[np.float64], target: int | None, mode: str, columns: int) -> int:
    """The requested class, or the predicted one, for a model with ``columns`` outputs."""
    if target is None and mode == "multiclass_classification":
        return int(full_graph.argmax())
    # one binary output has become two classes by now
    single = mode == "binary_classification" and columns == 1
    scores = torch.from_numpy(full_graph.copy())[None]
    return choose_columns(as_target(target), scores, mode, single)[0]


def as_target(target: Any) -> int | None:
    """One class, or None for the predicted one; metrics do not take several."""
    try:
        return None if target is None else operator.index(target)
    except TypeError:
        raise TypeError(f"target must be one class (got {target!r})") from None


def _check_outputs(outputs: Tensor, task: PartTask) -> None:
    """Check that outputs are of several classes and not already probabilities, as games do."""
    if task.mode != "multiclass_classification":
        return
    if outputs.shape[1] == 1:
        raise ValueError(
            "the model returns one output: pass task='binary', or for nodes "
            "task=Task(mode='binary', task_level='node') (got 'multiclass_classification')"
        )
    if task.return_type == "raw" and looks_like_probabilities(outputs, task.mode):
        warnings.warn(
            "outputs were declared raw but look like probabilities: if they are, say "
            "task=Task(return_type='probs')",
            stacklevel=2,
        )


def _check_finite(probabilities: NDArray[np.float64], mode: str) -> None:
    if not np.isfinite(probabilities).all():
        row = int(np.argmin(np.isfinite(probabilities).all(axis=1)))
        what = "values" if mode == "regression" else "probabilities"
        raise ValueError(
            f"the model's output gives {what} {probabilities[row].tolist()}: they must be finite"
        )
