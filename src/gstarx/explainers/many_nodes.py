"""Explaining many nodes of one graph: the model runs on the whole graph once."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx._internal.arguments import as_flag, one_of, taken_by
from gstarx._internal.processes import forked_map
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
    ModelTask,
    PayoffLike,
    RemovalLike,
    ShareLike,
    TargetLike,
    WholeGraph,
    check_data,
    mode_of,
    restored,
    with_view,
)
from gstarx.graphs import CommunicationGraph
from gstarx.players import PlayersLike
from gstarx.values import Imprecise, collect_imprecise, summarize_imprecise


def explain_nodes(
    model: Any,
    data: Data | HeteroData,
    indices: Iterable[int] | Tensor,
    *,
    node_type: str | None = None,
    target: TargetLike = None,
    mode: str | None = None,
    return_type: str = "raw",
    keywords: Sequence[str] | None = None,
    value: str = "myerson",
    estimator: str = "auto",
    budget: int | None = None,
    max_sample_size: int = 10,
    num_samples: int | None = None,
    sampling: str = "random",
    inner: str = "exact",
    tau: float = 0.01,
    superadditive: bool = False,
    presence: float = 0.5,
    two_sided: bool = False,
    players: PlayersLike = "nodes",
    directed: bool = False,
    rest: str = "players",
    feature_groups: Mapping[str, Sequence[int]] | None = None,
    reference: Any = "zero",
    draws: int = 16,
    communication: CommunicationGraph | None = None,
    player_types: Sequence[str] | None = None,
    relations: Sequence[Any] | None = None,
    payoff: PayoffLike = "auto",
    baseline: BaselineLike = None,
    removal: RemovalLike = "remove",
    num_hops: int | None = None,
    computation_graph: str = "exact",
    batch_nodes: int | None = None,
    fallback: float | None = None,
    check: bool = True,
    share: ShareLike = "auto",
    edge_mask: bool = False,
    seed: int | None = None,
    workers: int = 1,
    progress: bool = True,
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
    indices
        The nodes to explain, or a boolean mask of them.
    node_type
        For heterogeneous graphs: the type of these nodes.
    seed
        Every node gets its own random numbers from the seed and its number, whatever other nodes
        are explained with it: ``explain(..., seed=graph_generator(seed, node))`` gives the same.
    workers
        Number of processes over which the nodes are distributed; the scores do not change. They are
        forked from this process, so that nothing is copied. This requires a model on the CPU, and
        does not work on Windows.
    progress
        Show a bar.
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
    given = locals()
    with restored(model), closing(_one_by_one(given)) as results:
        return list(results)


def iter_explanations(
    model: Any, data: Data | HeteroData, indices: Iterable[int] | Tensor, **options: Any
) -> Iterator[Explanation | FailedExplanation]:
    """Explain nodes like :func:`explain_nodes`, but one at a time, when the next one is asked for.

    Nothing is kept of those that were given out. Arguments are checked and the model runs on the
    whole graph when the function is called; between two nodes, the model is as it was.

    Parameters
    ----------
    model, data, indices
        As in :func:`explain_nodes`.
    **options
        The other parameters of :func:`explain_nodes`.

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
    given = signature(explain_nodes).bind(model, data, indices, **options)
    given.apply_defaults()
    return _one_by_one(given.arguments)


def _one_by_one(given: Mapping[str, Any]) -> Generator[Explanation | FailedExplanation]:
    """Explanations of nodes from the arguments of :func:`explain_nodes`, each when asked for."""
    model, workers = given["model"], given["workers"]
    one_of(given["on_error"], ON_ERROR, name="on_error")
    for name in ("edge_mask", "progress"):
        as_flag(given[name], name=name)
    shown = None if given["progress"] else False
    explainer = GStarX(**{**taken_by(GStarX, given), "seed": None, "progress": shown})
    mode = mode_of(model, given["mode"])
    task = ModelTask(task_level="node", **{**taken_by(ModelTask, given), "mode": mode})
    view, task = with_view(model, given["data"], task)
    view = check_data(view)
    check_workers(workers, model, view)
    first, count = numbered(view, task)
    nodes = chosen_rows(given["indices"], count, "indices", "nodes")
    with restored(model):
        whole_graph = WholeGraph.of(model, view, task) if nodes else None

    def attributed(node: int) -> Attributed:
        assert whole_graph is not None
        of_node = replace(task, index=first + node)
        generator = graph_generator(given["seed"], node)
        with restored(model), collect_imprecise() as found:
            made = attribute_node(explainer, model, view, of_node, whole_graph, generator)
        return *made, found

    def explained(node: int, scores: Attributed) -> Explanation:
        attribution, seconds, _ = scores
        assert whole_graph is not None
        attribution = replace(attribution, prediction=whole_graph.node_outputs)
        of_node = replace(task, index=first + node)
        made = explainer._made(attribution, model, view, of_node, seconds, given["edge_mask"])
        return as_explained(made, given["data"])  # type: ignore[no-any-return]

    def calls() -> Generator[Callable[[], Attributed]]:
        if workers > 1 and len(nodes) > 1:
            with closing(forked_map(attributed, nodes, workers)) as outcomes:
                yield from (outcome.get for outcome in outcomes)
        else:
            yield from (partial(attributed, node) for node in nodes)

    def results() -> Generator[Explanation | FailedExplanation]:
        imprecise: dict[str, list[Imprecise]] = {}
        how = {"on_error": given["on_error"], "progress": given["progress"]}
        with closing(one_by_one(calls(), explained, nodes, imprecise, what="node", **how)) as made:
            yield from made
        summarize_imprecise(imprecise, len(nodes), "nodes")

    return results()


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
