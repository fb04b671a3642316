"""Explaining many nodes of one graph: the model runs on the whole graph once."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from torch import Tensor
from torch_geometric.data import Data

from gstarx._internal.progress import tqdm
from gstarx.explainers.explanation import Explanation
from gstarx.explainers.gstarx import GStarX
from gstarx.explainers.many import FailedExplanation
from gstarx.explainers.seeds import graph_generator
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
    target, mode, return_type, keywords
        As for :func:`explain`; by default every node's predicted class is explained.
    value, estimator, budget, max_sample_size, num_samples, sampling, inner, tau, superadditive,
    presence, two_sided
        As for :func:`explain`.
    players, directed, rest, feature_groups, reference, draws, communication
        As for :func:`explain`.
    payoff, baseline, removal, num_hops, computation_graph, batch_nodes, fallback, check, share
        As for :func:`explain`.
    edge_mask
        As for :func:`explain`.
    seed
        Every node gets its own random numbers from the seed and its number, whatever other nodes
        are explained with it: ``explain(..., seed=graph_generator(seed, node))`` gives the same.
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
    if on_error not in ("raise", "record"):
        raise ValueError(f"on_error must be 'raise' or 'record' (got {on_error!r})")
    explainer = GStarX(
        value=value,
        estimator=estimator,
        budget=budget,
        max_sample_size=max_sample_size,
        num_samples=num_samples,
        sampling=sampling,
        inner=inner,
        tau=tau,
        superadditive=superadditive,
        presence=presence,
        two_sided=two_sided,
        players=players,
        directed=directed,
        rest=rest,
        feature_groups=feature_groups,
        reference=reference,
        draws=draws,
        communication=communication,
        payoff=payoff,
        baseline=baseline,
        removal=removal,
        num_hops=num_hops,
        computation_graph=computation_graph,
        batch_nodes=batch_nodes,
        fallback=fallback,
        check=check,
        share=share,
    )
    data = check_data(data)
    nodes = _nodes(indices, int(data.num_nodes or 0))
    task = ModelTask(mode, "node", return_type, target, None, keywords)
    explanations: list[Explanation | FailedExplanation] = []
    with restored(model), tqdm(nodes, desc="explaining", disable=not progress) as bar:
        whole = WholeGraph.of(model, data, task) if nodes else None
        for node in bar:
            try:
                made = _explained(explainer, model, data, replace(task, index=node), whole, seed)
                if edge_mask and made.get("edge_mask") is None and made.get("edge_scores") is None:
                    made.score_edges()
                explanations.append(made)
            except Exception as error:
                if on_error == "raise":
                    error.add_note(f"while explaining node {node}")
                    raise
                explanations.append(FailedExplanation(node, error))
    return explanations


def _explained(
    explainer: GStarX,
    model: Any,
    data: Data,
    task: ModelTask,
    whole: WholeGraph | None,
    seed: int | None,
) -> Explanation:
    start = time.process_time()
    assert task.index is not None
    game = GNNGame.for_task(model, data, task, **explainer.game_options, whole_graph=whole)
    attribution = explainer.attribute_game(game, graph_generator(seed, task.index))
    seconds = time.process_time() - start
    return Explanation.of(attribution, model, data, task, method="gstarx", seconds=seconds)


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
