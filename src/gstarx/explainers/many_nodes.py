"""Explaining many nodes of one graph: the model runs on the whole graph once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from gstarx._internal.arguments import taken_by
from gstarx._internal.progress import tqdm
from gstarx.explainers.base import graph_generator
from gstarx.explainers.explanation import Explanation
from gstarx.explainers.gstarx import GStarX
from gstarx.explainers.many import FailedExplanation, check_on_error, made_or_failed
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
    restored,
)
from gstarx.graphs import CommunicationGraph
from gstarx.players import PlayersLike


def explain_nodes(
    model: Any,
    data: Data,
    indices: Iterable[int] | Tensor,
    *,
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
    progress: bool = True,
    on_error: str = "raise",
) -> list[Explanation | FailedExplanation]:
    """Explain the model's output at many nodes of one graph, with a progress bar.

    The model runs on the whole graph once. Everything else is done for every node on the part of
    the graph that it hears of.

    Parameters
    ----------
    model
        Any PyG model or callable; left exactly as it was.
    data
        One graph.
    indices
        The nodes to explain, or a boolean mask of them.
    seed
        Every node gets its own random numbers from the seed and its number, whatever other nodes
        are explained with it: ``explain(..., seed=graph_generator(seed, node))`` gives the same.
    progress
        Show a bar.
    on_error
        ``"raise"``, or ``"record"`` to add a :class:`FailedExplanation` to the list, with the
        node as its position, and continue.

    All other parameters are those of :func:`explain`; by default every node's predicted class is
    explained.

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
    explainer = GStarX(**{**taken_by(GStarX, locals()), "seed": None, "progress": False})
    data = check_data(data)
    nodes = _nodes(indices, int(data.num_nodes or 0))
    task = ModelTask(mode, "node", return_type, target, None, keywords)
    with restored(model), tqdm(nodes, desc="explaining", disable=not progress) as bar:
        whole_graph = WholeGraph.of(model, data, task) if nodes else None

        def explained(node: int) -> Explanation:
            start, of_node = time.process_time(), replace(task, index=node)
            options = {**explainer.game_options, "whole_graph": whole_graph}
            game = GNNGame.for_task(model, data, of_node, **options)
            generator = graph_generator(seed, node)
            return explainer.explain_game(
                game, data, of_node, seed=generator, edge_mask=edge_mask, start=start
            )

        return [
            made_or_failed(partial(explained, node), node, f"node {node}", on_error) for node in bar
        ]


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
