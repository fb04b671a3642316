"""Explaining many nodes of one graph: the model runs on the whole graph once."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx._internal.arguments import as_flag, taken_by
from gstarx._internal.processes import can_fork, forked_map
from gstarx._internal.progress import tqdm
from gstarx.explainers.attribution import Attribution
from gstarx.explainers.base import graph_generator
from gstarx.explainers.explaining import FailedExplanation, check_on_error, made_or_failed
from gstarx.explainers.explanation import Explanation
from gstarx.explainers.gstarx import GStarX
from gstarx.explainers.hetero_explanation import as_explained
from gstarx.gnn import (
    BaselineLike,
    GNNGame,
    ModelTask,
    PayoffLike,
    RemovalLike,
    ShareLike,
    TargetLike,
    WholeGraph,
    check_data,
    hetero_of,
    model_device,
    restored,
    with_view,
)
from gstarx.graphs import CommunicationGraph
from gstarx.players import PlayersLike


def explain_nodes(
    model: Any,
    data: Data | HeteroData,
    indices: Iterable[int] | Tensor,
    *,
    node_type: str | None = None,
    target: TargetLike = None,
    mode: str = "multiclass_classification",
    return_type: str = "raw",
    keywords: Sequence[str] | None = None,
    value: str = "hn",
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
    check_on_error(on_error)
    for name, flag in (("edge_mask", edge_mask), ("progress", progress)):
        as_flag(flag, name=name)
    explainer = GStarX(**{**taken_by(GStarX, locals()), "seed": None, "progress": False})
    task = ModelTask(mode, "node", return_type, target, None, keywords, node_type)
    view, task = with_view(model, data, task)
    view = check_data(view)
    _check_workers(workers, model, view)
    first, count = 0, int(view.num_nodes or 0)
    graph = hetero_of(view)
    if graph is not None and graph.output_type is not None:
        first, count = graph.rows(graph.output_type).start, graph.count(graph.output_type)
    nodes = _nodes(indices, count)
    with restored(model):
        whole_graph = WholeGraph.of(model, view, task) if nodes else None

        def attributed(node: int) -> tuple[Attribution, float]:
            assert whole_graph is not None
            of_node = replace(task, index=first + node)
            generator = graph_generator(seed, node)
            return attribute_node(explainer, model, view, of_node, whole_graph, generator)

        def explained(node: int, attribute: Callable[[], Any]) -> Explanation:
            attribution, seconds = attribute()
            assert whole_graph is not None
            made = Explanation.of(
                replace(attribution, prediction=whole_graph.node_outputs),
                model,
                view,
                replace(task, index=first + node),
                method=explainer.method or "gstarx",
                seconds=seconds,
                edge_mask=edge_mask,
            )
            return as_explained(made, data)  # type: ignore[no-any-return]

        calls: Generator[Callable[[], Any]]
        if workers > 1 and len(nodes) > 1:
            calls = (outcome.get for outcome in forked_map(attributed, nodes, workers))
        else:
            calls = (partial(attributed, node) for node in nodes)
        with closing(calls), tqdm(nodes, desc="explaining", disable=not progress) as bar:
            return [
                made_or_failed(partial(explained, node, call), node, f"node {node}", on_error)
                for node, call in zip(bar, calls, strict=True)
            ]


def attribute_node(
    explainer: GStarX,
    model: Any,
    data: Data,
    task: ModelTask,
    whole_graph: WholeGraph,
    generator: np.random.Generator,
) -> tuple[Attribution, float]:
    """Scores of the players of the node that a task names, and CPU seconds.

    The prediction, which is that of ``whole_graph``, is left out.
    """
    start = time.process_time()
    options = {**explainer.game_options, "whole_graph": whole_graph}
    game = GNNGame.for_task(model, data, task, **options)
    attribution = explainer.attribute_game(game, generator)
    return replace(attribution, prediction=None), time.process_time() - start


def _check_workers(workers: Any, model: Any, data: Data) -> None:
    """Raise unless nodes can be shared among so many processes."""
    if isinstance(workers, bool) or not isinstance(workers, int | np.integer) or workers < 1:
        raise ValueError(f"workers must be an integer of at least 1 (got {workers!r})")
    if workers == 1:
        return
    device = model_device(model, data.edge_index.device)
    if device.type != "cpu":
        raise ValueError(f"workers are for models on a CPU (got workers={workers} on {device})")
    if not can_fork():
        raise ValueError(
            f"workers need a system whose processes can be forked, which this one is not (got "
            f"workers={workers}): gstarx evaluate --workers runs on any system"
        )


def _nodes(indices: Any, count: int) -> list[int]:
    """Numbers of nodes, or an error that says what came instead."""
    listed = indices.detach().cpu().numpy() if isinstance(indices, Tensor) else indices
    numbers = np.asarray(listed if isinstance(listed, np.ndarray) else list(listed))
    if numbers.dtype == np.bool_:
        if numbers.shape != (count,):
            raise ValueError(
                f"a mask of nodes must have {count} entries (got shape {numbers.shape})"
            )
        return [int(node) for node in np.flatnonzero(numbers)]
    if numbers.size and (numbers.ndim != 1 or numbers.dtype.kind not in "iu"):
        raise TypeError(
            f"indices must be a list of integers or a boolean mask of nodes (got {indices!r})"
        )
    wrong = [int(node) for node in numbers if not 0 <= node < count]
    if wrong:
        raise ValueError(f"indices must lie in 0..{count - 1} (got {wrong[0]})")
    return [int(node) for node in numbers]
