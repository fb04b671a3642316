"""Explaining many nodes of one graph: the model runs on the whole graph once."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx._internal.arguments import one_of
from gstarx._internal.processes import forked_map
from gstarx._internal.progress import check_progress
from gstarx.explainers.base import graph_generator
from gstarx.explainers.explaining import (
    ON_ERROR,
    Attributed,
    FailedExplanation,
    check_workers,
    one_by_one,
)
from gstarx.explainers.gstarx import GStarX
from gstarx.explainers.outputs import chosen_rows, numbered
from gstarx.explanation import Attribution, Explanation, as_explained
from gstarx.gnn import (
    BaselineLike,
    GameOptions,
    ModelTask,
    Passes,
    PayoffLike,
    TargetLike,
    Task,
    TaskLike,
    WholeGraph,
    as_task,
    check_data,
    refuse_unknown,
    restored,
    with_view,
)
from gstarx.players import PlayersLike
from gstarx.values import Imprecise, ValueLike, collect_imprecise, summarize_imprecise


@refuse_unknown
def explain_nodes(
    model: Any,
    data: Data | HeteroData,
    nodes: Iterable[int] | Tensor,
    *,
    target: TargetLike = None,
    task: TaskLike = "node",
    value: ValueLike = "myerson",
    players: PlayersLike = "nodes",
    payoff: PayoffLike = "auto",
    baseline: BaselineLike = None,
    budget: int | None = None,
    seed: int | None = None,
    game: GameOptions | None = None,
    passes: Passes | None = None,
    progress: bool | None = None,
    workers: int = 1,
    on_error: str = "raise",
) -> list[Explanation | FailedExplanation]:
    """Explain the model's output at many nodes of one graph, with a progress bar.

    The model runs on the whole graph once. Everything else is done for every node on the part of
    the graph whose messages reach it. By default every node's predicted class is
    explained. Parameters that are not listed here are those of :func:`explain`.

    If the scores of some nodes are imprecise, one warning at the end says how many they are.

    The graph and the ``prediction`` for all nodes are the same tensors in all results, and scores
    and masks of all nodes or edges are made anew whenever they are asked for: a result takes as
    much memory as its players. :func:`iter_explanations` gives out one result at a time.

    Parameters
    ----------
    model
        Any PyG model or callable; left exactly as it was.
    data
        One graph.
    nodes
        The nodes to explain, or a boolean mask of them.
    task
        As for :func:`explain`, with the ``node_type`` of these nodes for heterogeneous graphs. It
        is a task of nodes in any case.
    seed
        Every node gets its own random numbers from the seed and its number, whatever other nodes
        are explained with it: ``explain(..., seed=graph_generator(seed, node))`` gives the same.
    workers
        Number of processes over which the nodes are distributed; the scores do not change. They are
        forked from this process, so that nothing is copied. This requires a model on the CPU, and
        does not work on Windows.
    progress
        Whether to show a bar, as by default.
    on_error
        ``"raise"``, or ``"record"`` to add a :class:`FailedExplanation` to the list, with the
        node as its position, and continue.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.nn import GCNConv
    >>> ring = torch.arange(6)
    >>> data = Data(x=torch.eye(6), edge_index=torch.stack([ring, (ring + 1) % 6]))
    >>> model = GCNConv(6, 2)
    >>> explanations = explain_nodes(model, data, [1, 4], progress=False)
    >>> [int(explanation.index) for explanation in explanations]
    [1, 4]
    """
    results = iter_explanations(
        model,
        data,
        nodes,
        target=target,
        task=task,
        value=value,
        players=players,
        payoff=payoff,
        baseline=baseline,
        budget=budget,
        seed=seed,
        game=game,
        passes=passes,
        progress=progress,
        workers=workers,
        on_error=on_error,
    )
    with restored(model), closing(results):
        return list(results)


def iter_explanations(
    model: Any,
    data: Data | HeteroData,
    nodes: Iterable[int] | Tensor,
    *,
    target: TargetLike = None,
    task: TaskLike = "node",
    seed: int | None = None,
    progress: bool | None = None,
    workers: int = 1,
    on_error: str = "raise",
    **options: Any,
) -> Generator[Explanation | FailedExplanation]:
    """Explain nodes like :func:`explain_nodes`, but one at a time, when the next one is asked for.

    Nothing is kept of those that were given out. Arguments are checked and the model runs on the
    whole graph when the function is called; between two nodes, the model is as it was.

    Parameters
    ----------
    model, data, nodes, target, task, seed, progress, workers, on_error
        As in :func:`explain_nodes`.
    **options
        The options of :class:`gstarx.GStarX`, as in :func:`explain_nodes`.

    Examples
    --------
    >>> import torch
    >>> from torch_geometric.nn import GCNConv
    >>> ring = torch.arange(6)
    >>> data = Data(x=torch.eye(6), edge_index=torch.stack([ring, (ring + 1) % 6]))
    >>> for explanation in iter_explanations(GCNConv(6, 2), data, [1, 4], progress=False):
    ...     print(int(explanation.index), explanation.exact)
    1 True
    4 True
    """
    one_of(on_error, ON_ERROR, name="on_error")
    shown = None if check_progress(progress) is not False else False
    explainer = GStarX(**options, progress=shown)
    view, own = with_view(model, data, ModelTask.of(model, _of_nodes(task), target))
    view = check_data(view)
    check_workers(workers, model, view)
    first, count = numbered(view, own)
    rows = chosen_rows(nodes, count, "nodes", "nodes")
    with restored(model):
        whole_graph = WholeGraph.of(model, view, own) if rows else None

    def attributed(node: int) -> Attributed:
        assert whole_graph is not None
        of_node = replace(own, index=first + node)
        generator = graph_generator(seed, node)
        with restored(model), collect_imprecise() as found:
            made = attribute_node(explainer, model, view, of_node, whole_graph, generator)
        return *made, found

    def explained(node: int, scores: Attributed) -> Explanation:
        attribution, seconds, _ = scores
        assert whole_graph is not None
        attribution = replace(attribution, prediction=whole_graph.node_outputs)
        of_node = replace(own, index=first + node)
        made = explainer._made(attribution, model, view, of_node, seconds)
        return as_explained(made, data)  # type: ignore[no-any-return]

    def calls() -> Generator[Callable[[], Attributed]]:
        if workers > 1 and len(rows) > 1:
            with closing(forked_map(attributed, rows, workers)) as outcomes:
                yield from (outcome.get for outcome in outcomes)
        else:
            yield from (partial(attributed, node) for node in rows)

    def results() -> Generator[Explanation | FailedExplanation]:
        imprecise: dict[str, list[Imprecise]] = {}
        shown = progress is not False
        how: dict[str, Any] = {"what": "node", "on_error": on_error, "progress": shown}
        with closing(one_by_one(calls(), explained, rows, imprecise, **how)) as made:
            yield from made
        summarize_imprecise(imprecise, len(rows), "nodes")

    return results()


def _of_nodes(task: TaskLike) -> Task:
    """The task with nodes as what is explained, which need not be said."""
    given = as_task(task)
    if given.task_level not in (None, "node"):
        raise ValueError(f"explain_nodes explains nodes (got task={given.task_level!r})")
    return replace(given, task_level="node")


def attribute_node(
    explainer: GStarX,
    model: Any,
    data: Data,
    task: ModelTask,
    whole_graph: WholeGraph,
    generator: np.random.Generator,
) -> tuple[Attribution, float]:
    """Scores of the players of a node without the prediction for all nodes, and CPU seconds."""
    start = time.process_time()
    game = explainer.game(model, data, task, whole_graph=whole_graph)
    attribution = explainer.attribute_game(game, generator)
    return replace(attribution, prediction=None), time.process_time() - start
