"""PGExplainer: PyG's algorithm, trained on many graphs at once with one step per epoch."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Self

import torch
from torch import Tensor, nn
from torch_geometric import explain as pyg
from torch_geometric.data import Data
from torch_geometric.explain.config import ExplainerConfig, ModelConfig
from torch_geometric.utils import get_embeddings

from gstarx._internal.progress import tqdm
from gstarx.explainers.edge_masks import (
    Explained,
    Inputs,
    PlainModel,
    check_features,
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
from gstarx.gnn import (
    ModelTask,
    Signature,
    TaskLike,
    check_data,
    model_device,
    require_classes,
)
from gstarx.players import Edges, PlayersLike
from gstarx.values import Seed
from gstarx_bench.explainers.trained_files import TrainedExplainer


@dataclass(frozen=True, kw_only=True)
class PGSettings:
    """Settings of :class:`PGExplainer`: those of the paper's experiments on molecules by default.

    Attributes
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
    """

    epochs: int = 20
    lr: float = 0.05
    edge_size: float = 0.01
    edge_ent: float = 0.01
    temperature: tuple[float, float] = (5.0, 1.0)
    bias: float = 1e-6
    batch_nodes: int = 20_000
    reduce: str = "max"

    def __post_init__(self) -> None:
        check_steps(self.epochs, self.lr)
        check_reduce(self.reduce)
        temperature: tuple[float, ...] = tuple(self.temperature)
        object.__setattr__(self, "temperature", temperature)
        if len(temperature) != 2 or min(temperature) <= 0:
            raise ValueError(f"temperature must be two positive numbers (got {self.temperature!r})")
        if not 0 < self.bias < 0.5:
            raise ValueError(f"bias must lie between 0 and 0.5 (got {self.bias!r})")
        if self.batch_nodes < 1:
            raise ValueError(f"batch_nodes must be at least 1 (got {self.batch_nodes})")


class PGExplainer(TrainedExplainer[nn.Sequential]):
    """PGExplainer (Luo et al., 2020), through :class:`torch_geometric.explain.PGExplainer`.

    A small network predicts the weight of an edge from the embeddings of its ends, which are those
    of the model's last message-passing layer. :meth:`fit` trains it once, on many graphs, to keep
    the model's predictions with few edges. A node gets the highest score of its edges, both
    directions averaged.

    The weights of a trained network are often 0 or 1 to the last digit. So edges are scored by
    their logits, on a scale from 0 to 1 that keeps them distinct (:func:`spread`). The weights
    themselves are the ``edge_mask``; the distinct scores of edges are ``distinct_edge_mask``.

    Adam takes one step per epoch, on the mean over all graphs, as in the paper's experiments.
    Self-loops are not weighted: their messages are not changed, and their score is 0.

    Parameters
    ----------
    settings
        Of the training, and of the scores.
    players
        ``"edges"``: the scores are the distinct ones of edges, both directions averaged.
    seed
        The seed inside PyG's ``Explainer``, without effect: explaining is not random.
    """

    def __init__(
        self,
        *,
        settings: PGSettings = PGSettings(),  # noqa: B008
        players: PlayersLike = "nodes",
        seed: int | None = None,
    ) -> None:
        super().__init__()
        self.players = nodes_or_edges(players, "PGExplainer")
        self.settings = settings
        self.seed = seed
        #: The mean loss of every epoch of the training.
        self.losses: tuple[float, ...] = ()

    def fit(
        self,
        model: Any,
        graphs: Iterable[Data],
        *,
        seed: Seed = 0,
        progress: bool = False,
        task: TaskLike = None,
    ) -> Self:
        """Train on graphs and the model's predictions; earlier training is discarded.

        Parameters
        ----------
        model
            The model; left exactly as it was.
        graphs
            The training graphs. Those without edges are skipped. For ``task="node"`` every
            node is an example, or those of ``train_mask`` if a graph has one.
        seed
            The same seed gives the same weights.
        progress
            Show a bar.
        task
            As for :meth:`explain`.
        """
        known = ModelTask.of(model, self._task(task))
        listed = [check_data(graph) for graph in graphs]
        network = isolated(model)
        check_weighable(network, "PGExplainer")
        with seeded(network, seed):
            examples = examples_of(network, listed, known, self.settings.batch_nodes)
            algorithm = self._algorithm(known)
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
        self.trained, self.losses = algorithm.mlp, tuple(losses)
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
        trained = self._ready()
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
            algorithm.mlp = trained.to(explained.x.device)
            _check_fit(trained, explained, task)
            logits: list[Tensor] = []
            with trained.register_forward_hook(lambda *call: logits.append(call[2])):
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
        return with_edge_players(attribution, distinct, data, self.players)

    def _stored(self) -> dict[str, Any]:
        return {
            "players": "edges" if isinstance(self.players, Edges) else "nodes",
            **asdict(self.settings),
        }

    def _empty(self, tensors: Mapping[str, Tensor]) -> nn.Sequential:
        hidden, wide = tensors["0.weight"].shape
        return nn.Sequential(nn.Linear(wide, hidden), nn.ReLU(), nn.Linear(hidden, 1))


def _check_fit(trained: nn.Module, explained: Explained, task: ModelTask) -> None:
    """Raise unless the embeddings are as wide as those that the network was trained on."""
    wide = get_embeddings(explained.model, explained.x)[-1].shape[-1]
    takes = next(iter(trained.parameters())).shape[1]
    expected = (3 if task.task_level == "node" else 2) * wide
    if takes != expected:
        raise ValueError(
            f"PGExplainer was trained on another model or task: it takes {takes} numbers for "
            f"an edge (got {expected}, from embeddings of width {wide})"
        )


def spread(logits: Tensor) -> Tensor:
    """Map logits to numbers between 0 and 1 that keep their order even if logits are large.

    The logistic function rounds every logit above 17 to 1, which would create ties.

    >>> spread(torch.tensor([-100.0, 0.0, 40.0, 41.0]))
    tensor([0.0050, 0.5000, 0.9878, 0.9881], dtype=torch.float64)
    """
    precise = logits.double()
    return 0.5 + 0.5 * precise / (1 + precise.abs())


class OneStepPerEpoch:
    """Replaces PyG's optimizer, which would take a step for every call.

    Gradients are summed, each times its ``share``, until :meth:`finish`.
    """

    def __init__(self, optimizer: torch.optim.Optimizer) -> None:
        self.optimizer = optimizer
        self.share = 1.0
        self._sums: list[Tensor | None] | None = None

    @property
    def _parameters(self) -> list[Tensor]:
        return [p for group in self.optimizer.param_groups for p in group["params"]]

    def zero_grad(self) -> None:
        """Clear the gradient of the last call."""
        self.optimizer.zero_grad()

    def step(self) -> None:
        """Add the gradient of this call to the sum."""
        gradients = [self.share * p.grad if p.grad is not None else None for p in self._parameters]
        if self._sums is not None:
            gradients = [
                a if b is None else b if a is None else a + b
                for a, b in zip(gradients, self._sums, strict=True)
            ]
        self._sums = gradients

    def finish(self) -> None:
        """Take the step, and start over."""
        for parameter, gradient in zip(self._parameters, self._sums or [], strict=True):
            parameter.grad = gradient
        self._sums = None
        self.optimizer.step()


@dataclass(frozen=True)
class Example:
    """Graphs, or one node, that PyG's explainer trains on in one call."""

    network: Any
    graphs: Sequence[Data]
    task: ModelTask
    target: Tensor
    index: Tensor | None = None

    @property
    def count(self) -> int:
        """Number of graphs, or one for a node."""
        return len(self.graphs)

    def train(self, algorithm: Any, epoch: int) -> float:
        """Train PyG's explainer on it, and return the loss."""
        model, x = _union(self.network, self.graphs, self.task)
        with warnings.catch_warnings():
            # PyG turns its loss into a number without detaching it
            warnings.filterwarnings("ignore", message="Converting a tensor with requires_grad")
            loss: float = algorithm.train(
                epoch, model, x, model.edges, target=self.target, index=self.index
            )
        return loss


def _union(network: Any, graphs: Sequence[Data], task: ModelTask) -> tuple[PlainModel, Tensor]:
    x = check_features(graphs[0], "PGExplainer")
    device = model_device(network, x.device)
    signature = Signature.of(network, graphs[0], task.keywords)
    inputs = (
        Inputs.copies(graphs[0], device)
        if len(graphs) == 1
        else Inputs.union(graphs, signature, device)
    )
    return PlainModel(network, signature, inputs, task, "log_prob"), inputs.fields["x"]


def examples_of(
    network: Any, graphs: Sequence[Data], task: ModelTask, batch_nodes: int
) -> list[Example]:
    """What to train on in one epoch, with the predictions as targets."""
    check_classes(task)
    useful = [g for g in graphs if bool((g.edge_index[0] != g.edge_index[1]).any())]
    if not useful:
        raise ValueError(
            f"PGExplainer learns from edges: at least one graph must have some (got {len(graphs)} "
            "graphs without any)"
        )
    for graph in useful:
        task.require_pairs(graph)
        check_features(graph, "PGExplainer")
    takes_batch = (
        Signature.of(network, useful[0], task.keywords).takes_batch and task.task_level == "graph"
    )
    examples = []
    for chunk in in_chunks(useful, batch_nodes if takes_batch else 0):
        model, x = _union(network, chunk, task)
        with torch.no_grad():
            target = model(x).argmax(dim=1)
        require_classes(model.width, task.mode)
        if task.mode == "binary_classification" and model.width > 1:
            raise ValueError(
                f"PGExplainer trains on predicted classes: a binary classifier must have one "
                f"output (got {model.width})"
            )
        if task.task_level == "graph":
            examples.append(Example(network, chunk, task, target))
            continue
        training_nodes = chunk[0].get("train_mask", torch.ones(len(target), dtype=torch.bool))
        examples += [
            Example(network, chunk, task, target, torch.tensor([node], device=target.device))
            for node in training_nodes.nonzero()[:, 0].tolist()
        ]
    return examples


def in_chunks(graphs: Sequence[Data], batch_nodes: int) -> Iterator[list[Data]]:
    """Graphs in order, in chunks of at most ``batch_nodes`` nodes, or of one graph.

    >>> graphs = [Data(num_nodes=n) for n in (3, 4, 9, 2, 2)]
    >>> [[g.num_nodes for g in chunk] for chunk in in_chunks(graphs, 8)]
    [[3, 4], [9], [2, 2]]
    """
    chunk: list[Data] = []
    nodes = 0
    for graph in graphs:
        size = int(graph.num_nodes or 0)
        if chunk and nodes + size > batch_nodes:
            yield chunk
            chunk, nodes = [], 0
        chunk.append(graph)
        nodes += size
    if chunk:
        yield chunk


def check_classes(task: ModelTask) -> None:
    """Raise unless a task is classification of graphs or nodes."""
    if task.mode == "regression":
        raise ValueError("PGExplainer explains classes (got mode='regression')")
    if task.task_level == "edge":
        raise ValueError(
            "PGExplainer explains graphs and nodes: task_level must be 'graph' or 'node' "
            "(got 'edge')"
        )
