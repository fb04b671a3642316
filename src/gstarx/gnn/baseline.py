"""Baselines of a payoff: numbers, a model's mean output over a dataset, or a rule."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from gstarx.gnn.evaluator import Evaluator, takes_batch_statistics
from gstarx.gnn.fields import batched
from gstarx.gnn.hetero import hetero_of, view_of
from gstarx.gnn.model_state import untouched
from gstarx.gnn.model_task import ModelTask, TaskLike
from gstarx.gnn.options import refuse_unknown
from gstarx.gnn.payoff import Payoff, class_scores, outputs_matrix
from gstarx.gnn.self_check import (
    BatchMixing,
    SelfCheck,
    doubled,
    doubled_fields,
    refuse_random,
    require_apart,
    say_one_by_one,
    size_of,
    smallest_and_largest,
)
from gstarx.gnn.signature import Model, Signature
from gstarx.graphs import pack
from gstarx.players import PlayerSet

log = logging.getLogger("gstarx")
_GRAPHS_PER_BATCH = 64

#: The rules for a baseline of every graph: the mean payoff of single players, and the probability
#: that all classes share.
SINGLETONS, UNIFORM = "singletons", "uniform"
RULES = (SINGLETONS, UNIFORM)
#: The source of the baseline of single players if there is only one, whose worth is then 0.
ONLY_PLAYER = "the only player"
#: What can be given as ``baseline``.
BaselineLike = float | ArrayLike | Tensor | str | None


def check_baseline(baseline: BaselineLike) -> BaselineLike:
    """The baseline, if it is one by its type: numbers, or the name of a rule."""
    if baseline is None or (isinstance(baseline, str) and baseline in RULES):
        return baseline
    rules = " or ".join(map(repr, RULES))
    message = f"baseline must be a number, one per class, {rules} (got {baseline!r})"
    if isinstance(baseline, str):
        raise ValueError(message)
    if not isinstance(baseline, Tensor):
        try:
            np.asarray(baseline, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise TypeError(message) from error
    return baseline


def singleton_mean(scores: NDArray[np.float64]) -> tuple[float, ...]:
    """The mean of scores (players, games), of those players for which the model has one."""
    known = np.isfinite(scores).all(axis=1)
    if not known.any():
        raise ValueError(
            f"baseline={SINGLETONS!r}: the model fails on each of {len(scores)} single nodes, so "
            "their mean is not known; give baseline a number or 'uniform'"
        )
    return tuple(scores[known].mean(axis=0).tolist())


def singletons_by_default(players: PlayerSet, task_level: str, mode: str, graph: bool) -> bool:
    """Whether single players are the default baseline of a value.

    They are where the output with no player present is not known, so that any other baseline may
    leave a constant: for values that follow the graph (``graph``), which would divide it by the
    shape of the graph, and for regressions, whose outputs may all be far from zero.
    """
    if task_level != "graph" or players.some_always_present:
        return False
    return mode == "regression" or (graph and players.of_nodes)


def warn_if_constant(
    payoff: Payoff, low: NDArray[np.float64], high: NDArray[np.float64], share: float
) -> None:
    """Warn if payoffs of coalitions differ by less than what their baseline leaves of all of them.

    Such a constant is most of what is divided, by the shape of the graph or equally; ``share`` is
    how much of it the scores of all players sum to. If the baseline is the output with no player
    present or that of the isolated target, nothing is left that the model did not say. The words
    are always the same, so that many graphs are warned of once.
    """
    if payoff.baseline_source not in ("none", "given", UNIFORM):
        return
    baseline = np.array(payoff.baseline)
    least = np.maximum(np.maximum(low - baseline, baseline - high), 0.0)
    if (share * least > high - low).any():
        given = payoff.baseline_source != "none"
        warnings.warn(
            ("" if given else "no baseline was given, and ")
            + "the outputs for all evaluated parts of the graph are about equal and far from "
            + (f"the baseline ({payoff.baseline_source})" if given else "zero")
            + ": most of what players share is this constant, which the number of players or the "
            f"shape of the graph divides, not the model. Pass baseline={SINGLETONS!r}",
            stacklevel=2,
        )


@refuse_unknown
def expected_output(
    model: Model,
    dataset: Iterable[Data],
    *,
    task: TaskLike = None,
) -> Tensor:
    """The mean probability of every class (or mean output, for regression) over a set of graphs.

    This is the normalization term of equation 8 of the paper. You choose the graphs: the paper
    mentions the dataset, its published code uses the test split, and a clean experiment uses the
    training split.

    Parameters
    ----------
    model
        A graph-level model.
    dataset
        Graphs, or a PyG loader of batches.
    task
        What the model does, as for :func:`gstarx.explain`.

    Returns
    -------
    Tensor
        A number per class, on the CPU.
    """
    known = ModelTask.of(model, task)
    total, count = torch.zeros(0, dtype=torch.float64), 0
    for outputs in graph_outputs(model, dataset, keywords=known.keywords):
        scores = class_scores(outputs, known.mode, known.return_type, "prob")
        summed = scores.double().sum(dim=0).cpu()
        total = summed if not count else total + summed
        count += len(outputs)
    if not count:
        raise ValueError("the dataset has no graphs to average over")
    return total / count


def graph_outputs(
    model: Model, dataset: Iterable[Data], *, keywords: Sequence[str] | None = None
) -> Iterator[Tensor]:
    """Outputs (graphs, columns) of a graph-level model, batch by batch, in order.

    The first batch is compared with graphs alone: those of a model that mixes the graphs of a batch
    are evaluated one at a time, and a random model is refused.
    """
    columns: int | None = None
    for typed, graphs in groupby(dataset, _is_typed):
        if typed:
            found: Iterator[Tensor] = (_typed_output(model, graph, keywords) for graph in graphs)
        else:
            found = _plain_outputs(model, graphs, keywords)
        for outputs in found:
            columns = outputs.shape[1] if columns is None else columns
            if outputs.shape[1] != columns:
                raise ValueError(
                    "the model must give all graphs the same number of outputs (got "
                    f"{columns} and {outputs.shape[1]}): has it one for every node?"
                )
            yield outputs


def _is_typed(graph: Any) -> bool:
    return isinstance(graph, HeteroData) or hetero_of(graph) is not None


def _typed_output(model: Model, graph: Any, keywords: Sequence[str] | None) -> Tensor:
    """The output for one heterogeneous graph, or those of a batch of them."""
    if isinstance(graph, Batch):
        parts = [_typed_output(model, part, keywords) for part in graph.to_data_list()]
        return torch.cat(parts)
    view = view_of(graph) if isinstance(graph, HeteroData) else graph
    return outputs_matrix(ModelTask(keywords=keywords).raw_output(model, view), 1)


def _plain_outputs(
    model: Model, dataset: Iterable[Data], keywords: Sequence[str] | None
) -> Iterator[Tensor]:
    """Outputs of homogeneous graphs, batch by batch."""
    apart: bool | None = True if takes_batch_statistics(model) else None
    for batch in _batches(dataset, model, keywords):
        if apart is None and batch.num_graphs > 1:
            with untouched(model):
                apart = _mixes(model, batch, keywords)
        graphs = batch.to_data_list() if apart and batch.num_graphs > 1 else [batch]
        yield from (_outputs(model, batched([g]) if apart else g, keywords) for g in graphs)


def _outputs(model: Model, batch: Batch, keywords: Sequence[str] | None) -> Tensor:
    output = ModelTask(keywords=keywords).raw_output(model, batch)
    return outputs_matrix(output, batch.num_graphs)


def _mixes(model: Model, batch: Batch, keywords: Sequence[str] | None) -> bool:
    """Whether outputs of a batch are not those of its graphs in other company."""

    def again(rows: NDArray[np.int64]) -> Tensor:
        graphs = [batch.get_example(int(row)) for row in rows]
        return _outputs(model, batched(graphs), keywords)

    def in_double(rows: NDArray[np.int64]) -> Tensor:
        graphs = batched([batch.get_example(int(row)) for row in rows])
        for key, value in doubled_fields(dict(graphs)).items():
            graphs[key] = value
        with doubled(model):
            return _outputs(model, graphs, keywords)

    together = _outputs(model, batch, keywords)
    try:
        ends = smallest_and_largest(batch.ptr.diff().numpy())
        require_apart(together, ends, again, SelfCheck(), in_double)
    except BatchMixing as mixing:
        alone = np.array([mixing.row])
        refuse_random(model, lambda: again(alone), again(alone), again(alone), size_of(together))
        say_one_by_one()
        return True
    return False


def _batches(
    dataset: Iterable[Data], model: Model, keywords: Sequence[str] | None
) -> Iterable[Batch]:
    """Batches of graphs, whether single graphs or batches come in; one by one if need be."""
    waiting: list[Data] = []
    for item in dataset:
        together = Signature.of(model, item, keywords).takes_batch
        if isinstance(item, Batch) and together:
            if waiting:
                yield batched(waiting)
                waiting = []
            yield item
            continue
        waiting += item.to_data_list() if isinstance(item, Batch) else [item]
        while len(waiting) >= (size := _GRAPHS_PER_BATCH if together else 1):
            yield batched(waiting[:size])
            del waiting[:size]
    if waiting:
        yield batched(waiting)


def with_baseline(
    payoff: Payoff,
    baseline: BaselineLike,
    full_output: Tensor,
    evaluator: Evaluator,
    players: PlayerSet,
) -> Payoff:
    """The payoff with the baseline that was given, or the default one."""
    custom = payoff.function is not None
    games = payoff.scores(full_output).shape[1] if custom else len(payoff.columns)
    if isinstance(baseline, str) and baseline == SINGLETONS:
        # what it is shows when the single players have been evaluated
        source = ONLY_PLAYER if players.of_nodes and len(players) == 1 else SINGLETONS
        return replace(payoff, baseline=(0.0,) * games, baseline_source=source)
    if isinstance(baseline, str):
        return _with_uniform(payoff, full_output)
    if baseline is not None:
        numbers = _given_baseline(payoff, baseline, full_output, games)
        return replace(payoff, baseline=numbers, baseline_source="given")
    of_graph = evaluator.task_level == "graph"
    if not players.some_always_present and payoff.name == "norm_prob" and of_graph:
        uniform = _with_uniform(payoff, full_output)
        log.info("no baseline given: using the uniform probability 1/%.0f", 1 / uniform.baseline[0])
        return uniform
    if players.some_always_present:
        source = "no player present"
    elif not of_graph and payoff.name in ("norm_prob", "raw"):
        source = "isolated target"
    else:
        return replace(payoff, baseline=(0.0,) * games)
    return replace(
        payoff, baseline=_without_players(payoff, evaluator, len(players)), baseline_source=source
    )


def _with_uniform(payoff: Payoff, full_output: Tensor) -> Payoff:
    """The payoff with the probability that all classes share as its baseline."""
    if payoff.name not in ("norm_prob", "prob"):
        raise ValueError(
            f"baseline={UNIFORM!r} is a probability, for payoff='norm_prob' or 'prob' of a "
            f"classifier (got payoff={payoff.name!r}, mode={payoff.mode!r})"
        )
    classes = 2 if payoff.mode == "binary_classification" else full_output.shape[1]
    uniform = (1 / classes,) * len(payoff.columns)
    return replace(payoff, baseline=uniform, baseline_source=UNIFORM)


def _without_players(payoff: Payoff, evaluator: Evaluator, count: int) -> tuple[float, ...]:
    """Scores of the output with no player present."""
    nobody = pack(np.zeros((1, count), dtype=np.bool_))
    with untouched(evaluator.model):
        outputs = evaluator.outputs(nobody)
    scores = replace(payoff, draws=evaluator.removal.draws).scores(outputs)[0].tolist()
    if not np.isfinite(scores).all():
        raise ValueError(
            f"the default baseline is the model's output with no player present, and it gives a "
            f"worth of {scores}: give baseline a number"
        )
    return tuple(scores)


def _given_baseline(
    payoff: Payoff, baseline: float | ArrayLike | Tensor, full_output: Tensor, games: int
) -> tuple[float, ...]:
    """The baseline of every game: one number for all, or picked from one per class."""
    if isinstance(baseline, Tensor):
        baseline = baseline.detach().cpu().numpy()
    numbers = np.asarray(baseline, dtype=np.float64).reshape(-1)
    if not np.isfinite(numbers).all():
        raise ValueError(f"baseline must be finite (got {numbers.tolist()})")
    if len(numbers) == 1:
        return (float(numbers[0]),) * games
    classes = games if payoff.function is not None else payoff.classes(full_output)
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
