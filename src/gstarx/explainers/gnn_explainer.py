"""GNNExplainer: PyG's algorithm, scoring nodes or edges without changing the model."""

from __future__ import annotations

from typing import Any

from torch_geometric import explain as pyg
from torch_geometric.data import Data
from torch_geometric.explain.config import ExplainerConfig, ModelConfig

from gstarx._internal.arguments import as_flag
from gstarx.explainers.base import NodeExplainer
from gstarx.explainers.edge_masks import (
    Explained,
    check_reduce,
    check_steps,
    check_weighable,
    isolated,
    no_edges,
    node_scores,
    nodes_or_edges,
    seeded,
    with_edge_players,
)
from gstarx.explanation import Attribution
from gstarx.gnn import ModelTask
from gstarx.players import Edges, PlayersLike
from gstarx.values import Seed


class GNNExplainer(NodeExplainer):
    """GNNExplainer (Ying et al., 2019), through :class:`torch_geometric.explain.GNNExplainer`.

    For every graph it learns a weight per edge, so that the model keeps its prediction when
    messages are multiplied by the weights, with few of them and all close to 0 or 1. A node gets
    the highest weight of its edges, both directions averaged. The defaults are the settings of the
    paper's experiments.

    Self-loops are not weighted: their messages are not changed, and their score is 0. An edge that
    has no influence on the output at the start gets 0, as in PyG.

    Parameters
    ----------
    epochs, lr
        Steps of Adam for every graph, and their size.
    edge_size, edge_ent
        Weights of the sum of the edge weights, and of their mean entropy.
    node_mask
        Learn a weight per node instead, which multiplies its features.
    feature_mask
        Learn a weight per feature as well, for all nodes together, as GNNExplainer's authors do:
        it is the ``feature_mask`` (F,) of the result.
    node_feat_size, node_feat_ent
        Weights of the mean of the node or feature weights, and of their mean entropy.
    reduce
        How a node's score comes from its edges: ``"max"``, ``"mean"`` or ``"sum"``.
    players
        ``"edges"``: the scores are those of edges, as learned, both directions averaged.
    seed
        The seed inside PyG's ``Explainer``; :meth:`explain` takes its own.

    Examples
    --------
    >>> import torch
    >>> from gstarx.models import GCN
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1], [1, 0]]))
    >>> explanation = GNNExplainer(epochs=5).explain(GCN(3, 8, 2), data, seed=0)
    >>> explanation.node_scores.shape, float(explanation.node_scores[2])
    (torch.Size([3]), 0.0)
    """

    def __init__(
        self,
        *,
        epochs: int = 1000,
        lr: float = 0.01,
        edge_size: float = 0.005,
        edge_ent: float = 1.0,
        node_mask: bool = False,
        feature_mask: bool = False,
        node_feat_size: float = 1.0,
        node_feat_ent: float = 0.1,
        reduce: str = "max",
        players: PlayersLike = "nodes",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        check_steps(epochs, lr)
        self.players = nodes_or_edges(players, "GNNExplainer")
        self.epochs = epochs
        self.lr = lr
        self.coefficients = {
            "edge_size": edge_size,
            "edge_ent": edge_ent,
            "node_feat_size": node_feat_size,
            "node_feat_ent": node_feat_ent,
        }
        self.node_mask = as_flag(node_mask, name="node_mask")
        self.feature_mask = as_flag(feature_mask, name="feature_mask")
        if node_mask and feature_mask:
            raise ValueError(
                "feature_mask is learned together with weights of edges: it cannot be combined "
                "with node_mask=True"
            )
        if node_mask and isinstance(self.players, Edges):
            raise ValueError("players='edges' are scored by their mask: leave out node_mask=True")
        self.reduce = check_reduce(reduce)
        self.seed = seed

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Weights of edges or nodes, learned for this graph."""
        network = isolated(model)
        if not self.node_mask:
            check_weighable(network, "GNNExplainer")
        with seeded(network, seed):
            explained = Explained.of(network, data, task, method="GNNExplainer", kind="log_prob")
            inputs = explained.model.inputs
            if self.node_mask:
                mask = self._learn(explained, node_mask_type="object").node_mask
                scores = mask.reshape(-1).double().cpu().numpy()
                return Attribution(scores=scores, target=explained.column)
            if not inputs.joining.any():
                return no_edges(inputs, explained.column)
            masks = {"node_mask_type": "common_attributes"} if self.feature_mask else {}
            learned = self._learn(explained, edge_mask_type="object", **masks)
            scores, edge_mask = node_scores(learned.edge_mask, inputs, self.reduce)
        details = {"feature_mask": learned.node_mask[0].detach().cpu()} if masks else {}
        attribution = Attribution(
            scores=scores, target=explained.column, edge_mask=edge_mask, details=details
        )
        return with_edge_players(attribution, edge_mask, data, self.players)

    def _learn(self, explained: Explained, **masks: str) -> Any:
        """PyG's explanation with the masks that are learned together."""
        algorithm = pyg.GNNExplainer(epochs=self.epochs, lr=self.lr, **self.coefficients)
        config = ExplainerConfig(explanation_type="model", **masks)
        algorithm.connect(config, ModelConfig(**explained.config))
        weighs_x = "node_mask_type" in masks and not explained.x.is_floating_point()
        return algorithm(
            explained.model,
            explained.x.float() if weighs_x else explained.x,
            explained.model.edges,
            target=explained.target,
            index=explained.index,
        )
