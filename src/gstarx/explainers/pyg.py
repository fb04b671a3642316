"""GNNExplainer and PGExplainer: PyG's own algorithms, scoring nodes without changing the model."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch_geometric import explain as pyg
from torch_geometric.data import Data
from torch_geometric.explain.config import ExplainerConfig, ModelConfig
from torch_geometric.utils import get_embeddings

from gstarx._internal.arguments import taken_by
from gstarx._internal.progress import tqdm
from gstarx.explainers.attribution import Attribution
from gstarx.explainers.base import NodeExplainer, Seed
from gstarx.explainers.edge_masks import (
    Explained,
    Inputs,
    check_reduce,
    check_weighable,
    isolated,
    node_scores,
    seeded,
)
from gstarx.explainers.pg_training import OneStepPerEpoch, check_classes, examples_of
from gstarx.explainers.trained_files import read_trained, write_trained
from gstarx.gnn import ModelTask, check_data, player_set
from gstarx.metrics import edge_player_scores
from gstarx.players import Edges, Nodes, PlayersLike, as_players


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
        _check_steps(epochs, lr)
        self.players = _nodes_or_edges(players, "GNNExplainer")
        self.epochs = epochs
        self.lr = lr
        self.coefficients = {
            "edge_size": edge_size,
            "edge_ent": edge_ent,
            "node_feat_size": node_feat_size,
            "node_feat_ent": node_feat_ent,
        }
        if node_mask and feature_mask:
            raise ValueError(
                "feature_mask is learned together with weights of edges: it cannot be combined "
                "with node_mask=True"
            )
        if node_mask and isinstance(self.players, Edges):
            raise ValueError("players='edges' are scored by their mask: leave out node_mask=True")
        self.node_mask = node_mask
        self.feature_mask = feature_mask
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
        return _with_players(attribution, edge_mask, data, self.players)

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


@dataclass(frozen=True)
class PGSettings:
    """Settings of :class:`PGExplainer`, which describes them."""

    epochs: int = 20
    lr: float = 0.05
    edge_size: float = 0.01
    edge_ent: float = 0.01
    temperature: tuple[float, float] = (5.0, 1.0)
    bias: float = 1e-6
    batch_nodes: int = 20_000
    reduce: str = "max"

    def __post_init__(self) -> None:
        _check_steps(self.epochs, self.lr)
        check_reduce(self.reduce)
        temperature: tuple[float, ...] = tuple(self.temperature)
        object.__setattr__(self, "temperature", temperature)
        if len(temperature) != 2 or min(temperature) <= 0:
            raise ValueError(f"temperature must be two positive numbers (got {self.temperature!r})")
        if not 0 < self.bias < 0.5:
            raise ValueError(f"bias must lie between 0 and 0.5 (got {self.bias!r})")
        if self.batch_nodes < 1:
            raise ValueError(f"batch_nodes must be at least 1 (got {self.batch_nodes})")


class PGExplainer(NodeExplainer):
    """PGExplainer (Luo et al., 2020), through :class:`torch_geometric.explain.PGExplainer`.

    A small network predicts the weight of an edge from the embeddings of its ends, which are those
    of the model's last message-passing layer. :meth:`fit` trains it once, on many graphs, to keep
    the model's predictions with few edges. A node gets the highest score of its edges, both
    directions averaged. The defaults are the settings of the paper's experiments on molecules.

    The weights of a trained network are often 0 or 1 to the last digit. So edges are scored by
    their logits, on a scale from 0 to 1 that keeps them distinct (:func:`spread`). The weights
    themselves are the ``edge_mask``; the distinct scores of edges are ``distinct_edge_mask``.

    Adam takes one step per epoch, on the mean over all graphs, as in the paper's experiments.
    Self-loops are not weighted: their messages are not changed, and their score is 0.

    Parameters
    ----------
    epochs, lr
        Steps of Adam, and their size.
    edge_size, edge_ent
        Weights of the sum of a graph's edge weights, and of their mean entropy.
    temperature
        Temperature for sampling edges in the first epoch and after the last one.
    bias
        Edges are sampled with uniform numbers between ``bias`` and ``1 - bias``.
    batch_nodes
        How many nodes go through the model at once, at least one graph.
    reduce
        How a node's score comes from its edges: ``"max"``, ``"mean"`` or ``"sum"``.
    players
        ``"edges"``: the scores are the distinct ones of edges, both directions averaged.
    seed
        The seed inside PyG's ``Explainer``, without effect: explaining is not random.
    """

    requires_training = True

    def __init__(
        self,
        *,
        epochs: int = 20,
        lr: float = 0.05,
        edge_size: float = 0.01,
        edge_ent: float = 0.01,
        temperature: tuple[float, float] = (5.0, 1.0),
        bias: float = 1e-6,
        batch_nodes: int = 20_000,
        reduce: str = "max",
        players: PlayersLike = "nodes",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.players = _nodes_or_edges(players, "PGExplainer")
        self.settings = PGSettings(**taken_by(PGSettings, locals()))
        self.seed = seed
        #: The trained network, or ``None``.
        self.mlp: nn.Module | None = None
        #: The mean loss of every epoch of the training.
        self.losses: tuple[float, ...] = ()

    def fit(
        self,
        model: Any,
        graphs: Iterable[Data],
        *,
        seed: Seed = 0,
        progress: bool = False,
        mode: str = "multiclass_classification",
        task_level: str = "graph",
        return_type: str = "raw",
        keywords: Sequence[str] | None = None,
    ) -> Self:
        """Train on graphs and the model's predictions; earlier training is discarded.

        Parameters
        ----------
        model
            The model; left exactly as it was.
        graphs
            The training graphs. Those without edges are skipped. For ``task_level="node"`` every
            node is an example, or those of ``train_mask`` if a graph has one.
        seed
            The same seed gives the same weights.
        progress
            Show a bar.
        mode, task_level, return_type, keywords
            As for :meth:`explain`.
        """
        task = ModelTask(mode, task_level, return_type, keywords=keywords)
        listed = [check_data(graph) for graph in graphs]
        network = isolated(model)
        check_weighable(network, "PGExplainer")
        with seeded(network, seed):
            examples = examples_of(network, listed, task, self.settings.batch_nodes)
            algorithm = self._algorithm(task)
            optimizer = OneStepPerEpoch(algorithm.optimizer)
            algorithm.optimizer = optimizer
            total = sum(example.count for example in examples)
            losses = []
            for epoch in tqdm(range(self.settings.epochs), "PGExplainer", disable=not progress):
                mean = 0.0
                for example in examples:
                    share = optimizer.share = example.count / total
                    # per graph, as the loss is a mean over graphs
                    algorithm.coeffs["edge_size"] = self.settings.edge_size / example.count
                    mean += share * example.train(algorithm, epoch)
                optimizer.finish()
                losses.append(mean)
        self.mlp, self.losses = algorithm.mlp, tuple(losses)
        return self

    def _algorithm(self, task: ModelTask) -> Any:
        settings = self.settings
        algorithm = pyg.PGExplainer(epochs=settings.epochs, lr=settings.lr)
        # on the instance: arguments of the constructor would change the class for every instance
        algorithm.coeffs = {
            "edge_size": settings.edge_size,
            "edge_ent": settings.edge_ent,
            "temp": list(settings.temperature),
            "bias": settings.bias,
        }
        config = ExplainerConfig(explanation_type="phenomenon", edge_mask_type="object")
        algorithm.connect(
            config,
            ModelConfig(
                mode="multiclass_classification",
                task_level=task.task_level,
                return_type="log_probs",
            ),
        )
        return algorithm

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Weights of edges from the trained network."""
        if self.mlp is None:
            raise RuntimeError(
                "PGExplainer has to be trained before it can explain: call fit(model, graphs), or "
                "PGExplainer.load(path)"
            )
        check_classes(task)
        network = isolated(model)
        check_weighable(network, "PGExplainer")
        with seeded(network, seed):
            explained = Explained.of(network, data, task, method="PGExplainer", kind="log_prob")
            inputs = explained.model.inputs
            if not inputs.joining.any():
                return no_edges(inputs, explained.column)
            algorithm = self._algorithm(task)
            algorithm._curr_epoch = self.settings.epochs - 1
            algorithm.mlp = self.mlp.to(explained.x.device)
            self._check_fit(explained, task)
            logits: list[Tensor] = []
            with self.mlp.register_forward_hook(lambda *call: logits.append(call[2])):
                explanation = algorithm(
                    explained.model,
                    explained.x,
                    explained.model.edges,
                    target=explained.target,
                    index=explained.index,
                )
            _, reached = self._get_hard_masks(
                network, explained.index, explained.model.edges, num_nodes=len(explained.x)
            )
        weights = spread(logits[-1].detach().reshape(-1))
        if reached is not None:
            weights = weights * reached
        scores, distinct = node_scores(weights, inputs, self.settings.reduce)
        _, edge_mask = node_scores(explanation.edge_mask, inputs, self.settings.reduce)
        attribution = Attribution(
            scores=scores,
            target=explained.column,
            edge_mask=edge_mask,
            details={"distinct_edge_mask": distinct},
        )
        return _with_players(attribution, distinct, data, self.players)

    def _check_fit(self, explained: Explained, task: ModelTask) -> None:
        """Raise unless the embeddings are as wide as those that the network was trained on."""
        wide = get_embeddings(explained.model, explained.x)[-1].shape[-1]
        takes = next(iter(self.mlp.parameters())).shape[1] if self.mlp is not None else 0
        expected = (3 if task.task_level == "node" else 2) * wide
        if takes != expected:
            raise ValueError(
                f"PGExplainer was trained on another model or task: it takes {takes} numbers for "
                f"an edge (got {expected}, from embeddings of width {wide})"
            )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Store the trained network and all settings in one ``.safetensors`` file."""
        if self.mlp is None:
            raise RuntimeError("PGExplainer has to be trained before it can be saved")
        write_trained(path, "PGExplainer", asdict(self.settings), self.mlp.state_dict())

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The explainer that :meth:`save` has stored."""
        settings, tensors = read_trained(path, "PGExplainer")
        try:
            explainer = cls(**settings)
            wide = tensors["0.weight"].shape[1]
            mlp = nn.Sequential(nn.Linear(wide, len(tensors["0.weight"])), nn.ReLU())
            mlp.append(nn.Linear(len(tensors["0.weight"]), 1))
            mlp.load_state_dict(tensors)
        except (TypeError, ValueError, KeyError, IndexError, RuntimeError) as error:
            raise ValueError(f"{path} does not hold a trained PGExplainer: {error}") from error
        explainer.mlp = mlp
        return explainer


def spread(logits: Tensor) -> Tensor:
    """Map logits to numbers between 0 and 1 that keep their order even if logits are large.

    The logistic function rounds every logit above 17 to 1, which would create ties.

    >>> spread(torch.tensor([-100.0, 0.0, 40.0, 41.0]))
    tensor([0.0050, 0.5000, 0.9878, 0.9881], dtype=torch.float64)
    """
    precise = logits.double()
    return 0.5 + 0.5 * precise / (1 + precise.abs())


def no_edges(inputs: Inputs, column: int) -> Attribution:
    """The attribution of a graph without edges: all scores are 0."""
    return Attribution(
        scores=np.zeros(int(inputs.fields["num_nodes"])),
        target=column,
        edge_mask=torch.zeros(len(inputs.joining)),
    )


def _nodes_or_edges(players: PlayersLike, method: str) -> Nodes | Edges:
    kind = as_players(players)
    if not isinstance(kind, Nodes | Edges):
        raise ValueError(f"{method} scores edges: players must be 'nodes' or 'edges'")
    return kind


def _with_players(
    attribution: Attribution, mask: Tensor, data: Data, players: Nodes | Edges
) -> Attribution:
    """The attribution with edges as players, if that is what they are."""
    if isinstance(players, Nodes):
        return attribution
    scores, _ = edge_player_scores(mask, data.edge_index, directed=players.directed)
    return replace(attribution, scores=scores, players=player_set(data, players))


def _check_steps(epochs: int, lr: float) -> None:
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1 (got {epochs!r})")
    if not lr > 0:
        raise ValueError(f"lr must be positive (got {lr!r})")
