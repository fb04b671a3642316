"""Fidelity and related metrics of the paper (section 5.1 and Appendix A.3).

One evaluator serves every method: the model, the graph, the nodes and the removal are arguments,
and nothing is taken from the explainer.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, astuple, dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from torch_geometric.data import Data, HeteroData

from gstarx.gnn import (
    GNNGame,
    HeteroGraph,
    Model,
    RemovalLike,
    TaskLike,
    check_data,
    hetero_of,
    refuse_unknown,
)
from gstarx.metrics.probabilities import (
    Judging,
    Parts,
    PartTask,
    Reference,
    part_probabilities,
    parts_of_game,
)
from gstarx.metrics.selection import SPARSITIES, as_mask, as_scores, select_nodes
from gstarx.players import PlayersLike

#: One set of nodes: ids, a boolean mask, or pairs of a type and a node.
NodesLike = ArrayLike | Sequence[tuple[str, int]] | Mapping[str, Any]


@dataclass(frozen=True)
class Faithfulness:
    """How faithful a set of nodes is to the model's prediction; each field is a metric.

    Attributes
    ----------
    fidelity
        How much of the prediction is lost without the nodes (are they necessary?); higher is
        better.
    inverse_fidelity
        How much is lost if only they are kept (are they sufficient?); lower is better.
    sparsity
        The share of nodes left out; higher is better at equal fidelity.
    normalized_fidelity, normalized_inverse_fidelity
        Fidelity times sparsity, and inverse fidelity times one minus sparsity.
    harmonic_fidelity
        Both in one number between 0 and 1. An uninformative selection scores about 0.5.
    clipped
        For regression: 1 if one of the two fidelities was beyond the range of the reference and so
        was clipped, else 0; the share of such selections in an average.
    undefined
        For regression: 1 if the prediction is the mean of the reference, so that nothing can be
        lost or kept and the fidelities are nan, else 0; in an average, which leaves such graphs
        out, their share.
    """

    fidelity: float
    inverse_fidelity: float
    sparsity: float
    normalized_fidelity: float
    normalized_inverse_fidelity: float
    harmonic_fidelity: float
    clipped: float = 0.0
    undefined: float = 0.0

    @classmethod
    def of(
        cls,
        whole: float,
        without: float,
        alone: float,
        sparsity: float,
        signed_range: float | None = None,
    ) -> Faithfulness:
        """Metrics from the probabilities of the full graph, without the nodes, and of them alone.

        For regression, from outputs and what their differences are divided by.

        >>> Faithfulness.of(whole=0.9, without=0.3, alone=0.8, sparsity=0.75).harmonic_fidelity
        0.583...
        """
        return cls(*(float(m) for m in metrics_of(whole, without, alone, sparsity, signed_range)))


#: The metrics themselves; the other fields say how reliable they are.
METRICS = tuple(field.name for field in fields(Faithfulness) if field.default is MISSING)


def metrics_of(
    full_graph: Any, without: Any, alone: Any, sparsity: Any, signed_range: float | None = None
) -> tuple[Any, ...]:
    """All fields of :class:`Faithfulness`, in order, from numbers or equally long arrays."""
    lost = [full_graph - without, full_graph - alone]
    fidelity, inverse = (losses(difference, signed_range) for difference in lost)
    necessary, sufficient = fidelity * sparsity, inverse * (1 - sparsity)
    harmonic = harmonic_mean_of(necessary, sufficient)
    clipped = undefined = np.zeros_like(sparsity, dtype=np.float64)
    if signed_range is not None:
        clipped = clipped + np.any(np.abs(lost) > abs(signed_range), axis=0)
        undefined = undefined + np.isnan(signed_range)
    return fidelity, inverse, sparsity, necessary, sufficient, harmonic, clipped, undefined


def losses(differences: Any, signed_range: float | None) -> Any:
    """What a prediction loses, from differences of probabilities, or of a regression's outputs."""
    if signed_range is None:
        return differences
    return np.clip(differences / signed_range, -1.0, 1.0)


def harmonic_mean_of(necessary: Any, sufficient: Any) -> Any:
    """The paper's H-fidelity from its normalized fidelity and inverse fidelity, both in [-1, 1].

    The harmonic mean of ``(1 + necessary) / 2`` and ``(1 - sufficient) / 2``.

    >>> harmonic_mean_of(0.0, 0.0), harmonic_mean_of(1.0, -1.0), harmonic_mean_of(-1.0, 0.3)
    (0.5, 1.0, 0.0)
    """
    up, down = 1 + np.asarray(necessary), 1 - np.asarray(sufficient)
    total = up + down
    # if both are at their worst, numerator and denominator are 0
    mean = up * down / np.where(total > 0, total, 1.0)
    return float(mean) if mean.ndim == 0 else mean


@refuse_unknown
def evaluate(
    model: Model,
    data: Data,
    nodes: NodesLike,
    *,
    target: int | None = None,
    index: int | None = None,
    task: TaskLike = None,
    removal: RemovalLike = "remove",
    players: PlayersLike = "nodes",
    reference: Reference | None = None,
    num_hops: int | None = None,
    batch_nodes: int | None = None,
) -> Faithfulness:
    """All metrics of a set of nodes, or of other players: the short form of :class:`Judge`.

    >>> import torch
    >>> from torch_geometric.nn import global_mean_pool
    >>> def model(x, edge_index, batch):  # the mean feature is the chance of class 1
    ...     chance = global_mean_pool(x, batch)
    ...     return torch.cat([1 - chance, chance], 1).log()
    >>> data = Data(x=torch.tensor([[1.0], [0.5]]), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> metrics = evaluate(model, data, [0])
    >>> round(metrics.fidelity, 6), round(metrics.inverse_fidelity, 6), metrics.sparsity
    (0.25, -0.25, 0.5)
    """
    judge = Judging(
        model,
        task=task,
        removal=removal,
        players=players,
        reference=reference,
        num_hops=num_hops,
        batch_nodes=batch_nodes,
    )
    return evaluated(judge, data, nodes, target=target, index=index)


def evaluated(
    judge: Judging,
    data: Data,
    nodes: NodesLike,
    *,
    target: int | None = None,
    index: int | None = None,
) -> Faithfulness:
    """All metrics of a set of nodes, or of other players.

    Parameters
    ----------
    data
        One graph.
    nodes
        Node ids, or a boolean mask over the nodes; of other players their numbers, as
        :meth:`gstarx.Explanation.select` returns them, or a mask over them. Of a heterogeneous
        graph, pairs of a type and a node, or nodes or a mask by type.
    target
        The class whose probability counts, by default the predicted one; of a model with several
        targets, which of them.
    index
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    """
    return _evaluated(judge.model, [data], [[nodes]], [target], judge.of(index))[0][0]


def evaluate_many(
    judge: Judging,
    graphs: Iterable[Data],
    selections: Iterable[Any],
    *,
    target: int | Sequence[int | None] | None = None,
    index: int | None = None,
) -> list[Any]:
    """All metrics of many sets of nodes of many graphs, in few forward passes.

    Parameters
    ----------
    graphs
        The graphs.
    selections
        For every graph a set of nodes, or a list of sets (for example one for every sparsity).
    target
        The class for all graphs, or one for each; by default the predicted one.
    index
        The node, or the column of ``edge_label_index``, for node and edge tasks.

    Returns
    -------
    list
        For every graph a :class:`Faithfulness`, or a list of them if it had a list of sets.
    """
    listed, entries = list(graphs), list(selections)
    if len(listed) != len(entries):
        raise ValueError(
            f"selections must have an entry for each of {len(listed)} graphs (got {len(entries)})"
        )
    targets = _one_for_each(target, len(listed))
    several = [_are_sets(entry) for entry in entries]
    sets = [list(e) if many else [e] for e, many in zip(entries, several, strict=True)]
    found = _evaluated(judge.model, listed, sets, targets, judge.of(index))
    return [metrics if many else metrics[0] for metrics, many in zip(found, several, strict=True)]


def average(results: Iterable[Faithfulness]) -> Faithfulness:
    """The mean of every metric over graphs, as the paper averages.

    Graphs whose metrics are undefined are left out; their share is ``undefined``.

    >>> average([Faithfulness.of(1.0, 0.0, 1.0, 0.5), Faithfulness.of(1.0, 1.0, 1.0, 0.5)]).fidelity
    0.5
    """
    rows = np.array([astuple(result) for result in results])
    if not len(rows):
        raise ValueError("there is nothing to average: got no results")
    undefined = rows[:, -1]
    kept = rows[undefined < 1]
    means = np.mean(kept if len(kept) else rows, axis=0)
    means[-1] = undefined.mean()
    return Faithfulness(*(float(mean) for mean in means))


def sparsity(data: Data, nodes: NodesLike) -> float:
    """The share of nodes left out: ``1 - |S| / |V|`` (section 5.1).

    >>> sparsity(Data(num_nodes=4), [2])
    0.75
    """
    count = int(data.num_nodes or 0)
    if isinstance(data, HeteroData):
        nodes = HeteroGraph.of(data).numbers(nodes)
    return 1 - int(as_mask(nodes, count).sum()) / max(count, 1)


def require_nodes(judge: Judging, what: str) -> None:
    """Raise unless selections are sets of nodes."""
    if not judge.of(None).of_nodes:
        raise ValueError(f"{what} is for sets of nodes (got players={judge.players!r})")


def as_parts(data: Data, sets: Sequence[NodesLike]) -> NDArray[np.bool_]:
    """Sets of nodes of a graph as boolean rows (k, n); validates the graph."""
    checked = check_data(data)
    count, graph = int(checked.num_nodes or 0), hetero_of(checked)
    listed = sets if graph is None else [graph.numbers(nodes) for nodes in sets]
    return np.array([as_mask(nodes, count) for nodes in listed]).reshape(len(sets), count)


def metrics_of_sets(probabilities: Parts, inside: NDArray[np.bool_]) -> list[Faithfulness]:
    """The metrics of boolean sets (k, n), from the parts of all sets and then all complements."""
    kept = inside[:, probabilities.players]
    full_graph = probabilities.whole[probabilities.target]
    alone, without = (
        probabilities.parts[: len(kept), probabilities.target],
        probabilities.parts[len(kept) :, probabilities.target],
    )
    shares = 1 - kept.sum(axis=1) / max(kept.shape[1], 1)
    metrics = metrics_of(full_graph, without, alone, shares, probabilities.signed_range)
    rows = np.stack(metrics, axis=1)
    return [Faithfulness(*row) for row in rows.tolist()]


def _evaluated(
    model: Model,
    graphs: list[Data],
    sets: list[list[NodesLike]],
    targets: Sequence[int | None],
    task: PartTask,
) -> list[list[Faithfulness]]:
    if not task.of_nodes:
        return [
            _of_players(model, data, selections, target, task)
            for data, selections, target in zip(graphs, sets, targets, strict=True)
        ]
    inside = [as_parts(data, selections) for data, selections in zip(graphs, sets, strict=True)]
    both = [np.concatenate([rows, ~rows]) for rows in inside]
    probabilities = part_probabilities(model, graphs, both, targets, task)
    return [metrics_of_sets(parts, rows) for parts, rows in zip(probabilities, inside, strict=True)]


def _of_players(
    model: Model, data: Data, sets: Sequence[Any], target: int | None, task: PartTask
) -> list[Faithfulness]:
    """The metrics of sets of players that are groups, edges or features."""
    game = task.game(model, data, "all")
    inside = np.array([as_mask(chosen, game.n) for chosen in sets]).reshape(len(sets), game.n)
    return _metrics_in_game(game, inside, target, task)


def _metrics_in_game(
    game: GNNGame, inside: NDArray[np.bool_], target: int | None, task: PartTask
) -> list[Faithfulness]:
    """The metrics of boolean sets (k, n) of the players of a game."""
    parts = parts_of_game(game, np.concatenate([inside, ~inside]), target, task)
    return metrics_of_sets(replace(parts, players=np.arange(game.n)), inside)


def random_selections(
    judge: Judging,
    data: Data,
    size: int,
    *,
    count: int = 20,
    seed: int | np.random.Generator | None = None,
    target: int | None = None,
    index: int | None = None,
) -> Faithfulness:
    """The mean metrics of random selections of ``size`` players, which explainers must beat.

    Parameters
    ----------
    data, target, index
        As for one selection.
    size
        How many players are selected.
    count
        How many selections are drawn.
    seed
        The same seed draws the same selections.
    """
    task = judge.of(index)
    game = task.game(judge.model, data, "all")
    if not 0 <= size <= game.n:
        raise ValueError(f"size must lie in 0..{game.n}, the number of players (got {size})")
    generator = np.random.default_rng(seed)
    inside = np.zeros((count, game.n), dtype=np.bool_)
    for row in inside:
        row[generator.permutation(game.n)[:size]] = True
    return average(_metrics_in_game(game, inside, target, task))


def _one_for_each(target: Any, count: int) -> list[Any]:
    # not isinstance(target, int): it may be a number of numpy or torch
    targets = [target] * count if np.ndim(target) == 0 else list(target)
    if len(targets) != count:
        raise ValueError(
            f"target must be a class or one for each of {count} graphs (got {len(targets)})"
        )
    return targets


def _are_sets(entry: Any) -> bool:
    """Whether an entry is a list of sets of nodes, rather than one set."""
    if not isinstance(entry, list | tuple) or not entry:
        return False
    return all(map(_is_set, entry))


def _is_set(item: Any) -> bool:
    """Whether it is one set of nodes: not a number, and not a type with a number."""
    if isinstance(item, set | frozenset | Mapping):
        return True
    if isinstance(item, list | tuple) and item:
        if isinstance(item[0], str):
            return False
        if isinstance(item[0], list | tuple):  # nodes of a heterogeneous graph
            return isinstance(item[0][0], str)
    return np.ndim(item) == 1


@dataclass(frozen=True)
class FidelityCurve:
    """The metrics at every sparsity, each the mean over the graphs.

    Attributes
    ----------
    sparsities
        The requested sparsities, ascending. Those achieved are ``curve["sparsity"]``.
    points
        The means at each of them.
    graphs
        For every sparsity the metrics of every graph.
    """

    sparsities: tuple[float, ...]
    points: tuple[Faithfulness, ...]
    graphs: tuple[tuple[Faithfulness, ...], ...]

    def __getitem__(self, metric: str) -> NDArray[np.float64]:
        """The means of one metric, by its name."""
        if metric not in METRICS:
            valid = ", ".join(map(repr, METRICS))
            raise KeyError(f"metric must be one of {valid} (got {metric!r})")
        return np.array([getattr(point, metric) for point in self.points])

    def area(self, metric: str = "harmonic_fidelity") -> float:
        """The mean height of a metric over the range of sparsities (trapezoids)."""
        values = self[metric]
        if len(values) == 1:
            return float(values[0])
        span = self.sparsities[-1] - self.sparsities[0]
        heights = (values[1:] + values[:-1]) / 2
        return float(heights @ np.diff(self.sparsities) / span)

    def best(self, metric: str = "harmonic_fidelity") -> tuple[float, float]:
        """The sparsity at which a mean is highest, and that mean: the paper's headline number."""
        values = self[metric]
        place = int(np.argmax(values))
        return self.sparsities[place], float(values[place])


def fidelity_curve(
    judge: Judging,
    data: Data | Iterable[Data],
    scores: Any,
    *,
    sparsities: Sequence[float] = SPARSITIES,
    positive_only: bool = False,
    target: int | Sequence[int | None] | None = None,
    index: int | None = None,
) -> FidelityCurve:
    """The metrics of scores of nodes at many sparsities, for one graph or averaged over many.

    Parameters
    ----------
    data
        One graph, or many.
    scores
        The scores of its nodes, or a list of scores with an entry for every graph; of a
        heterogeneous graph by type, or all of them one after the other.
    sparsities
        The sparsities; by default the paper's eight.
    positive_only
        The rule of :func:`select_nodes`.
    target, index
        As for many selections.
    """
    require_nodes(judge, "a curve")
    if not len(sparsities):
        raise ValueError("sparsities must name at least one (got none)")
    single = isinstance(data, Data | HeteroData)
    graphs = [data] if isinstance(data, Data | HeteroData) else list(data)
    listed = [scores] if single else list(scores)
    if len(graphs) != len(listed):
        raise ValueError(
            f"scores must have an entry for each of {len(graphs)} graphs (got {len(listed)})"
        )
    if not graphs:
        raise ValueError("data must be at least one graph (got none)")
    levels = tuple(sorted({float(level) for level in sparsities}))
    selections = []
    for graph, node_scores in zip(graphs, listed, strict=True):
        if isinstance(graph, HeteroData) and isinstance(node_scores, Mapping):
            by_type = [as_scores(node_scores[name]) for name in graph.node_types]
            node_scores = np.concatenate(by_type)
        checked = as_scores(node_scores, int(graph.num_nodes or 0))
        selections.append(
            [select_nodes(checked, level, positive_only=positive_only) for level in levels]
        )
    found = evaluate_many(judge, graphs, selections, target=target, index=index)
    by_level = tuple(tuple(column) for column in zip(*found, strict=True))
    return FidelityCurve(levels, tuple(average(column) for column in by_level), by_level)
