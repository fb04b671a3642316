"""Edge weights that apply to every layer of a model, through PyG's edge masks.

PyG multiplies the messages of every layer by a mask, whatever else the layer does. Its own
handling of self-loops does not fit every model, and masks stay in the model that they were set on.
So the masks here go into a private copy of the model, and are matched to messages by the ends of
the edges.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import MethodType
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.explain.algorithm.utils import set_masks
from torch_geometric.nn import MessagePassing

from gstarx._internal.arguments import one_of
from gstarx.explanation import Attribution
from gstarx.gnn import (
    GraphTensors,
    ModelTask,
    Signature,
    UnionBatch,
    batched,
    call_model,
    choose_columns,
    class_scores,
    model_device,
    networks_of,
    outputs_matrix,
    require_classes,
    require_initialized,
    restored,
    roles_of,
)
from gstarx.metrics import edge_player_scores, node_scores_from_edges
from gstarx.players import Edges, Nodes, PlayersLike, as_players, player_set
from gstarx.values import Seed

REDUCTIONS = ("max", "mean", "sum")


@contextmanager
def seeded(model: Any, seed: Seed) -> Iterator[None]:
    """Seed torch inside the block, with gradients enabled, and restore its random state after.

    Torch has one source of random numbers for all threads, from which PyG draws. What other threads
    draw from it meanwhile depends on this seed, and the numbers from before the block are continued
    after it. Parameters get no gradients, not even those of a network inside a function.
    """
    learned = [p for own in networks_of(model) for p in own.parameters() if p.requires_grad]
    device = model_device(model, torch.device("cpu"))
    elsewhere = None if device.type == "cpu" else torch.get_device_module(device)
    on_device = elsewhere and elsewhere.get_rng_state(device)
    on_cpu = torch.get_rng_state()

    def put_back() -> None:
        torch.set_rng_state(on_cpu)
        if elsewhere is not None:
            elsewhere.set_rng_state(on_device, device)
        for parameter in learned:
            parameter.requires_grad_()

    with restored(model), torch.inference_mode(False), torch.enable_grad():
        try:
            for parameter in learned:
                parameter.requires_grad_(False)
            torch.manual_seed(int(np.random.default_rng(seed).integers(2**63)))
            yield
        finally:
            # Ctrl-C may arrive in here as well, so what it interrupts is done again
            try:
                put_back()
            except BaseException:
                put_back()
                raise


def isolated(model: Any) -> Any:
    """A frozen copy of a model in evaluation mode, without masks or caches of other graphs.

    Its message-passing layers, except those excluded from PyG's masks (``explain=False``), take
    weights by :meth:`PlainModel.weigh`. A plain function has nothing to copy and is returned.
    """
    if not isinstance(model, nn.Module):
        return model
    require_initialized(model)
    layers = [layer for layer in model.modules() if isinstance(layer, MessagePassing)]
    earlier_masks = [vars(layer).get("_edge_mask") for layer in layers]
    # a mask with a gradient history cannot be deep-copied, and is dropped below anyway
    memo: dict[int, Any] = {id(m): m.detach() for m in earlier_masks if isinstance(m, Tensor)}
    # autograd rejects tensors created in inference mode, including copies
    with torch.inference_mode(False):
        copied = copy.deepcopy(model, memo)
    for parameter in copied.parameters():
        parameter.requires_grad_(False)
        parameter.grad = None
    for module in copied.modules():
        module.training = False
        if vars(module).get("cached") is True:
            held = [name for name in vars(module) if name.startswith("_cached_")]
            vars(module).update(dict.fromkeys(held), cached=False)
        if isinstance(module, MessagePassing):
            _prepare(module)
    return copied


def _prepare(layer: Any) -> None:
    """Clear a layer's masks, and make it match weights to messages by the ends of the edges."""
    if layer.explain is True:
        layer.explain = None
    # if a mask was once a parameter of the layer, PyG would turn every later one into a parameter
    # and so cut it off from its gradient history
    layer._parameters.pop("_edge_mask", None)
    layer._edge_mask = layer._loop_mask = None
    layer._apply_sigmoid = True
    layer.explain_message = MethodType(explain_message, layer)


def explain_message(
    layer: Any, inputs: Tensor, edge_index_i: Tensor, edge_index_j: Tensor
) -> Tensor:
    """Messages times the weights of their edges; those of self-loops are not changed.

    It replaces PyG's own method, which assumes that a layer adds a self-loop to every node and
    drops those of the graph. Some layers do neither, or only one of the two.
    """
    weights = layer._edge_mask.sigmoid() if layer._apply_sigmoid else layer._edge_mask
    ends = torch.stack([edge_index_j, edge_index_i])
    joining = ends[0] != ends[1]
    expected = layer._weighed_edges
    if layer.flow != "source_to_target":
        expected = expected.flip(0)
    if not torch.equal(ends[:, joining], expected):
        raise ValueError(
            f"{type(layer).__name__} sends its messages along other edges than those of the graph, "
            f"or in another order: weights of edges cannot reach it (got {int(joining.sum())} "
            f"edges instead of {expected.shape[1]})"
        )
    factors = weights.new_ones(len(joining)).masked_scatter(joining, weights)
    shape = [1] * inputs.dim()
    shape[layer.node_dim] = -1
    weighed: Tensor = inputs * factors.view(shape)
    return weighed


# PyG would look up the names of types in the module that defines the layer
explain_message.__annotations__.clear()


@dataclass(frozen=True)
class Inputs:
    """Graphs as one disjoint union, ready to go through a model.

    Attributes
    ----------
    fields
        Everything that a model may need, by name.
    joining
        Which columns of the ``edge_index`` are not self-loops, (E,).
    graphs
        Number of graphs.
    """

    fields: dict[str, Any]
    joining: Tensor
    graphs: int

    @classmethod
    def copies(cls, data: Data, device: torch.device, count: int = 1) -> Self:
        """``count`` copies of one graph."""
        tensors = GraphTensors(data, device, roles_of(data))
        batch = UnionBatch.copies(tensors.num_nodes, tensors.edge_index, count, tensors.named)
        fields = tensors.part(batch, batch.places)
        if count == 1 and isinstance(data.get("edge_label_index"), Tensor):
            fields["edge_label_index"] = data.edge_label_index.to(device)
        return cls._of(fields, count)

    @classmethod
    def union(cls, graphs: Sequence[Data], signature: Signature, device: torch.device) -> Self:
        """Several graphs, with only the fields that the model needs."""
        passed = {"x", "edge_index", *signature.positional, *signature.keywords}
        if not signature.takes_data:
            graphs = [
                Data(num_nodes=g.num_nodes, **{k: g[k] for k in passed if k in g}) for g in graphs
            ]
        batch = batched(graphs).to(device)
        fields = dict(batch.to_dict(), batch=batch.batch, batch_size=len(graphs))
        return cls._of(fields | {"num_nodes": batch.num_nodes}, len(graphs))

    @classmethod
    def _of(cls, fields: dict[str, Any], graphs: int) -> Self:
        ends = fields["edge_index"]
        return cls(fields, ends[0] != ends[1], graphs)

    @property
    def edges(self) -> Tensor:
        """The edges that can be weighted, (2, M): all but self-loops, in their order."""
        ends: Tensor = self.fields["edge_index"][:, self.joining]
        return ends

    def rows(self, task_level: str) -> int:
        """How many rows the model returns for them."""
        if task_level == "graph":
            return self.graphs
        if task_level == "node":
            return int(self.fields["num_nodes"])
        return int(self.fields["edge_label_index"].shape[1])


class PlainModel(nn.Module):
    """A model as a function of features alone, with an output per class, for one :class:`Inputs`.

    Parameters
    ----------
    network
        The model, :func:`isolated`.
    signature
        How it takes its arguments.
    inputs
        The graphs.
    task
        What the model does.
    kind
        ``"log_prob"`` or ``"raw"``, as in :func:`gstarx.gnn.payoff.class_scores`.
    """

    def __init__(
        self, network: Any, signature: Signature, inputs: Inputs, task: ModelTask, kind: str
    ) -> None:
        super().__init__()
        self.network = network
        self.signature = signature
        self.inputs = inputs
        self.task = task
        self.kind = kind
        self.edges = inputs.edges
        self.layers = weighable(network)
        #: The output to keep of a regression model, once it is known.
        self.column: int | None = None
        #: Columns of the model's own output, after the first forward pass.
        self.width = 0

    def forward(self, x: Tensor, edge_index: Tensor | None = None) -> Tensor:
        """Scores of every class, (rows, classes). The edges are those of the inputs."""
        for layer in self.layers:
            layer._weighed_edges = self.edges
        returned = call_model(self.network, self.signature, {**self.inputs.fields, "x": x})
        outputs = outputs_matrix(returned, self.inputs.rows(self.task.task_level))
        self.width = outputs.shape[1]
        scores = class_scores(outputs, self.task.mode, self.task.return_type, self.kind)
        return scores if self.column is None else scores[:, [self.column]]

    def weigh(self, weights: Tensor) -> None:
        """Multiply the messages of every edge by its weight, from now on."""
        set_masks(self.network, weights, self.edges, apply_sigmoid=False)

    def train(self, mode: bool = True) -> Self:
        """Do nothing: the copy inside stays in evaluation mode, whatever PyG requests."""
        return self


def weighable(network: Any) -> list[Any]:
    """The layers of an :func:`isolated` model whose messages can be weighted."""
    modules = network.modules() if isinstance(network, nn.Module) else ()
    return [m for m in modules if isinstance(m, MessagePassing) and m.explain is not False]


def check_weighable(network: Any, method: str) -> None:
    """Raise unless a model has layers whose messages can be weighted."""
    if not weighable(network):
        kind = type(network).__name__ if isinstance(network, nn.Module) else "a plain function"
        raise ValueError(
            f"{method} weighs messages: the model must be a torch module with message-passing "
            f"layers of PyG, at least one of them without explain=False (got {kind})"
        )


def check_reduce(reduce: str) -> str:
    """Validate how a node's score is computed from its edges."""
    return str(one_of(reduce, REDUCTIONS, name="reduce"))


def check_features(data: Data, method: str) -> Tensor:
    """A copy of the node features that gradients can flow through."""
    if not isinstance(data.get("x"), Tensor) or data.x.dim() != 2:
        raise ValueError(
            f"{method} needs features data.x of shape (n, features) "
            f"(the data has {', '.join(sorted(data.keys()))})"
        )
    features: Tensor = data.x.detach().clone()
    return features


@dataclass(frozen=True)
class Explained:
    """One output of an isolated model, about to be explained.

    Attributes
    ----------
    model
        The model on the graph.
    x
        Its features, on the model's device.
    column
        The class to explain.
    target
        What PyG takes for it: a class for each row, or the outputs of a regression model.
    index
        The row explained, for PyG; ``None`` for a whole graph.
    """

    model: PlainModel
    x: Tensor
    column: int
    target: Tensor
    index: Tensor | None

    @classmethod
    def of(
        cls,
        network: Any,
        data: Data,
        task: ModelTask,
        *,
        method: str,
        kind: str,
    ) -> Self:
        """Predict, and choose the requested class or the predicted one."""
        task.require_pairs(data)
        x = check_features(data, method)
        device = model_device(network, x.device)
        inputs = Inputs.copies(data, device)
        model = PlainModel(network, Signature.of(network, data, task.keywords), inputs, task, kind)
        x = x.to(device)
        with torch.no_grad():
            scores = model(x)
        require_classes(model.width, task.mode)
        row = task.row(len(scores))
        single = task.mode == "binary_classification" and model.width == 1
        column = choose_columns(task.one_target, scores[[row]], task.mode, single)[0]
        index = None if task.task_level == "graph" else torch.tensor([row], device=device)
        if task.mode == "regression":
            model.column = column
            return cls(model, x, column, scores[:, [column]], index)
        labels = torch.full((len(scores),), column, device=device)
        return cls(model, x, column, labels, index)

    @property
    def config(self) -> dict[str, str]:
        """The model as PyG has to see it: a class per column, or one output."""
        level = self.model.task.task_level
        if self.model.task.mode == "regression":
            return {"mode": "regression", "task_level": level, "return_type": "raw"}
        kind = "log_probs" if self.model.kind == "log_prob" else "raw"
        return {"mode": "multiclass_classification", "task_level": level, "return_type": kind}


def node_scores(weights: Tensor, inputs: Inputs, reduce: str) -> tuple[NDArray[np.float64], Tensor]:
    """Scores of nodes and of all edges (E,) from the weights of edges that are not self-loops.

    The score of a self-loop is 0, and does not count for its node.
    """
    weights = weights.detach()
    everywhere = torch.zeros(len(inputs.joining), device=weights.device)
    everywhere[inputs.joining] = weights.float()
    scores = node_scores_from_edges(
        weights.cpu(), inputs.edges.cpu(), int(inputs.fields["num_nodes"]), reduce=reduce
    )
    return scores, everywhere.cpu()


def no_edges(inputs: Inputs, column: int) -> Attribution:
    """The attribution of a graph without edges: all scores are 0."""
    return Attribution(
        scores=np.zeros(int(inputs.fields["num_nodes"])),
        target=column,
        edge_mask=torch.zeros(len(inputs.joining)),
    )


def nodes_or_edges(players: PlayersLike, method: str) -> Nodes | Edges:
    """The players of a method that learns weights of edges; raises if it cannot score them."""
    kind = as_players(players)
    if not isinstance(kind, Nodes | Edges):
        raise ValueError(f"{method} scores edges: players must be 'nodes' or 'edges'")
    return kind


def with_edge_players(
    attribution: Attribution, mask: Tensor, data: Data, players: Nodes | Edges
) -> Attribution:
    """The attribution with edges as players, if that is what they are."""
    if isinstance(players, Nodes):
        return attribution
    scores, _ = edge_player_scores(mask, data.edge_index, directed=players.directed)
    return replace(attribution, scores=scores, players=player_set(data, players))


def check_steps(epochs: int, lr: float) -> None:
    """Raise unless an optimizer can take these steps."""
    if epochs < 1:
        raise ValueError(f"epochs must be at least 1 (got {epochs!r})")
    if not lr > 0:
        raise ValueError(f"lr must be positive (got {lr!r})")


def check_float(x: Tensor, method: str) -> None:
    """Raise unless features are numbers that a gradient can be taken of."""
    if not x.is_floating_point():
        raise TypeError(
            f"{method} differentiates by the features: data.x must be floating point "
            f"(got {x.dtype})"
        )
