"""Explaining one graph by a plain function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from torch import Tensor
from torch_geometric.data import Data, HeteroData

from gstarx._internal.arguments import taken_by
from gstarx.explainers.base import Seed
from gstarx.explainers.explanation import Explanation
from gstarx.explainers.gstarx import GStarX
from gstarx.gnn import BaselineLike, PayoffLike, RemovalLike, ShareLike, TargetLike
from gstarx.graphs import CommunicationGraph
from gstarx.players import PlayersLike


def explain(
    model: Any,
    data: Data | HeteroData,
    *,
    target: TargetLike = None,
    mode: str = "multiclass_classification",
    task_level: str = "graph",
    return_type: str = "raw",
    index: int | Tensor | None = None,
    node_type: str | None = None,
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
    seed: Seed = None,
    progress: bool = False,
) -> Explanation:
    """Explain one prediction: what of this graph made the model decide as it did.

    Scores are those of nodes, unless ``players`` says otherwise.

    Parameters
    ----------
    model
        Any PyG model or callable; left exactly as it was.
    data
        One graph, a ``Data`` or a ``HeteroData``.
    target
        The class to explain (default: the predicted one), a list of classes, or ``"all"``.
    mode, task_level, return_type
        What the model does, as in PyG's ``ModelConfig``.
    index
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    node_type
        For node tasks on heterogeneous graphs: the type of node that ``index`` belongs to. By
        default the one with as many nodes as the model's output has rows, if there is only one.
    keywords
        Names of the fields to pass to the model by keyword, as in :class:`gstarx.GNNGame`.
    value, estimator, budget, max_sample_size, num_samples, sampling, inner, tau, superadditive,
    presence, two_sided
        Which value and how to compute it, as in :class:`gstarx.explainers.ValueSettings`.
    players, directed, rest, feature_groups, reference, draws, communication
        Who plays: nodes, groups of nodes, edges or features, as in :class:`gstarx.GNNGame`.
    player_types, relations
        Of heterogeneous graphs: the types whose nodes play, and the relations along which they
        communicate, as in :class:`gstarx.GNNGame`.
    payoff, baseline, removal, num_hops, computation_graph, batch_nodes, fallback, check, share
        The game, as in :class:`gstarx.GNNGame`.
    edge_mask
        Also score edges, by the mean of their two ends.
    seed
        The same seed gives the same scores.
    progress
        Show a progress bar over coalitions.

    Returns
    -------
    Explanation
        With ``scores`` of the players, their standard errors, and the fields of the graph. Of a
        ``HeteroData``, a :class:`gstarx.HeteroExplanation`.

    Examples
    --------
    >>> import torch
    >>> from gstarx.models import GCN
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> explain(GCN(3, 8, 2), data).scores.shape
    torch.Size([3])
    """
    explainer = GStarX(**{**taken_by(GStarX, locals()), "seed": None})
    return explainer.explain(
        model,
        data,
        target=target,
        mode=mode,
        task_level=task_level,
        return_type=return_type,
        index=index,
        node_type=node_type,
        keywords=keywords,
        seed=seed,
        edge_mask=edge_mask,
    )
