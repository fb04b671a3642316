"""Explanations read off inside a network: CAM, GradCAM, and attention weights."""

from __future__ import annotations

from contextlib import ExitStack
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode
from torch_geometric.data import Data
from torch_geometric.nn import MessagePassing

from gstarx._internal.arguments import one_of
from gstarx.explainers.base import NodeExplainer
from gstarx.explainers.edge_masks import Explained, check_float, isolated, seeded
from gstarx.explanation import Attribution
from gstarx.gnn import ModelTask
from gstarx.values import Seed

#: What networks apply to the output of a layer, element by element or row by row.
_ACTIVATIONS = (
    *("relu", "relu_", "leaky_relu", "leaky_relu_", "elu", "elu_", "selu", "gelu", "silu", "mish"),
    *("tanh", "sigmoid", "softplus", "prelu", "batch_norm", "layer_norm", "dropout", "normalize"),
)


class _Recorder(TorchFunctionMode):
    """Records linear maps, node embeddings, and the activations that follow layers."""

    def __init__(self, num_nodes: int) -> None:
        super().__init__()
        self.num_nodes = num_nodes
        self.linear: list[tuple[Tensor, Tensor, Tensor]] = []
        self.embeddings: list[Tensor] = []
        self.layers: list[Tensor] = []

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if not isinstance(result, Tensor) or result.dim() != 2 or not result.is_floating_point():
            return result
        name = getattr(func, "__name__", "")
        if name == "linear":
            self.linear.append((args[0], args[1], result))
        if len(result) == self.num_nodes:
            self.embeddings.append(result)
        if self.layers and args and args[0] is self.layers[-1] and name in _ACTIVATIONS:
            self.layers[-1] = result
        return result

    def after_layer(self, module: nn.Module, inputs: Any, output: Any) -> None:
        """A forward hook of message-passing layers."""
        embedding = output[0] if isinstance(output, tuple) else output
        if isinstance(embedding, Tensor) and embedding.shape[:1] == (self.num_nodes,):
            self.layers.append(embedding)


class CAM(NodeExplainer):
    """Class activation mapping: what each node adds to the logit of the class.

    Zhou et al., Learning Deep Features for Discriminative Localization, CVPR 2016; for graphs Pope
    et al., Explainability Methods for Graph Convolutional Neural Networks, CVPR 2019. It applies to
    models whose last linear layer reads a sum, a mean or a maximum over node embeddings: the logit
    is then a sum over nodes, up to the bias. Each entry of a maximum goes to the node that attains
    it. Scores are not rectified: their signs are kept.

    Parameters
    ----------
    seed
        The seed inside PyG's ``Explainer``, which matters for models that draw random numbers.
    """

    def __init__(self, *, seed: int | None = None) -> None:
        super().__init__()
        self.seed = seed

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Contributions of the nodes to the last linear layer."""
        if task.task_level != "graph":
            raise ValueError(
                f"CAM explains graphs: task_level must be 'graph' (got {task.task_level!r})"
            )
        network = isolated(model)
        with seeded(network, seed):
            explained = Explained.of(network, data, task, method="CAM", kind="raw")
            recorder = _Recorder(len(explained.x))
            with torch.no_grad(), recorder:
                outputs = explained.model(explained.x)
        scores = _contributions(recorder, explained.column, outputs.shape[1], network)
        return Attribution(scores=scores, target=explained.column, exact=True)


def _contributions(
    recorder: _Recorder, column: int, width: int, network: Any
) -> NDArray[np.float64]:
    """What every node adds to the last linear map of the whole graph."""
    for pooled, weight, result in reversed(recorder.linear):
        if len(pooled) != 1:
            continue
        if result.shape[1] not in (1, width):
            break
        # one number for two classes speaks for the second of them
        single = result.shape[1] < width
        row = (1 if column else -1) * weight[0] if single else weight[min(column, len(weight) - 1)]
        for embedding in reversed(recorder.embeddings):
            shares = _shares(embedding.double(), pooled[0].double())
            if shares is not None:
                contributions: NDArray[np.float64] = (shares @ row.double()).cpu().numpy()
                return contributions
        break
    raise ValueError(
        "CAM needs a model whose last linear layer reads a sum, mean or maximum over node "
        f"embeddings (got {type(network).__name__}): see GradCAM for other models"
    )


def _shares(embedding: Tensor, pooled: Tensor) -> Tensor | None:
    """What each node adds to pooled embeddings, (N, K); ``None`` if they are pooled otherwise."""
    if embedding.shape[1:] != pooled.shape:
        return None
    near = 1e-5 * (1 + float(embedding.abs().sum(dim=0).max()))
    if torch.allclose(embedding.sum(dim=0), pooled, rtol=1e-4, atol=near):
        return embedding
    if torch.allclose(embedding.mean(dim=0), pooled, rtol=1e-4, atol=near / len(embedding)):
        return embedding / len(embedding)
    highest, node = embedding.max(dim=0)
    if torch.allclose(highest, pooled, rtol=1e-5, atol=1e-7):
        shares = torch.zeros_like(embedding)
        return shares.scatter_(0, node[None], highest[None])
    return None


class GradCAM(NodeExplainer):
    """Gradient-weighted class activation mapping: embeddings weighted by their mean gradients.

    Selvaraju et al., Grad-CAM, ICCV 2017; for graphs Pope et al., CVPR 2019. The weight of a
    feature is the mean over nodes of the gradient of the model's own output for the class (a logit
    where it returns logits) with respect to that feature of the embeddings of a message-passing
    layer, after its activation. Scores are not rectified: their signs are kept.

    Parameters
    ----------
    layers
        ``"last"``, or ``"all"`` for the mean over all message-passing layers.
    seed
        The seed inside PyG's ``Explainer``, which matters for models that draw random numbers.
    """

    def __init__(self, *, layers: str = "last", seed: int | None = None) -> None:
        super().__init__()
        self.layers = one_of(layers, ("last", "all"), name="layers")
        self.seed = seed

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Embeddings of the layers, weighted by their mean gradients."""
        network = isolated(model)
        convolutions = _message_passing(network)
        if not convolutions:
            raise ValueError(
                "GradCAM reads the embeddings of message-passing layers of PyG: the model must "
                f"have some (got {_kind(network)})"
            )
        with seeded(network, seed), ExitStack() as stack:
            explained = Explained.of(network, data, task, method="GradCAM", kind="raw")
            recorder = _Recorder(len(explained.x))
            for layer in convolutions:
                stack.callback(layer.register_forward_hook(recorder.after_layer).remove)
            with recorder:
                check_float(explained.x, "GradCAM")
                outputs = explained.model(explained.x.requires_grad_())
            if not recorder.layers:
                raise ValueError(
                    "GradCAM needs an embedding for every node from a message-passing layer (got "
                    f"none from {_kind(network)})"
                )
            row = 0 if explained.index is None else int(explained.index)
            column = 0 if task.mode == "regression" else explained.column
            embeddings = recorder.layers if self.layers == "all" else recorder.layers[-1:]
            slopes: Any = torch.autograd.grad(outputs[row, column], embeddings, allow_unused=True)
            maps = [
                torch.zeros(len(one)) if slope is None else (one * slope.mean(dim=0)).sum(dim=1)
                for one, slope in zip(embeddings, slopes, strict=True)
            ]
        scores = torch.stack([one.detach().double().cpu() for one in maps]).mean(dim=0)
        return Attribution(scores=scores.numpy(), target=explained.column)


class Attention(NodeExplainer):
    """Attention weights: how much attention other nodes and itself pay to a node.

    The weights of each attention layer (Veličković et al., Graph Attention Networks, ICLR 2018),
    averaged over heads and layers. A node's score is the sum over the edges that leave it, because
    the weights of the edges that reach it add up to one. They do not depend on the class. It
    applies to models with attention layers of PyG that compute a weight for every message.

    Parameters
    ----------
    seed
        The seed inside PyG's ``Explainer``, which matters for models that draw random numbers.
    """

    def __init__(self, *, seed: int | None = None) -> None:
        super().__init__()
        self.seed = seed

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Attention per edge and, summed over those that leave it, per node."""
        network = isolated(model)
        weights: list[tuple[Tensor, Tensor]] = []
        with seeded(network, seed), ExitStack() as stack:
            explained = Explained.of(network, data, task, method="Attention", kind="raw")
            for layer in _message_passing(network):
                for handle in _watch(layer, weights):
                    stack.callback(handle.remove)
            with torch.no_grad():
                explained.model(explained.x)
        if not weights:
            raise ValueError(
                "Attention needs a model with attention layers of PyG, such as GATConv (got "
                f"{_kind(network)})"
            )
        count = len(explained.x)
        paid = torch.zeros(count, dtype=torch.float64)
        between = torch.zeros(count, count, dtype=torch.float64)
        for ends, alpha in weights:
            paid.index_add_(0, ends[0], alpha / len(weights))
            between.index_put_((ends[0], ends[1]), alpha / len(weights), accumulate=True)
        source, target = data.edge_index.cpu()
        return Attribution(
            scores=paid.numpy(),
            target=explained.column,
            edge_mask=between[source, target].float(),
        )


def _watch(layer: Any, weights: list[tuple[Tensor, Tensor]]) -> list[Any]:
    """Hooks that note the edges of a layer with their attention, the mean over heads."""
    edges: list[Tensor] = []

    def before(module: Any, inputs: Any) -> None:
        edges.append(inputs[0])

    def message(module: Any, inputs: Any, output: Any) -> None:
        alpha = inputs[0].get("alpha") if inputs and isinstance(inputs[0], dict) else None
        if alpha is None:
            alpha = getattr(module, "_alpha", None)
        if isinstance(alpha, Tensor) and isinstance(edges[-1], Tensor):
            flat = alpha.detach().double().cpu().reshape(len(alpha), -1).mean(dim=1)
            ends = edges[-1].cpu()
            forward = getattr(module, "flow", "source_to_target") == "source_to_target"
            weights.append((ends if forward else ends.flip(0), flat))

    return [
        layer.register_propagate_forward_pre_hook(before),
        layer.register_message_forward_hook(message),
    ]


def _message_passing(network: Any) -> list[Any]:
    modules = network.modules() if isinstance(network, nn.Module) else ()
    return [module for module in modules if isinstance(module, MessagePassing)]


def _kind(network: Any) -> str:
    return type(network).__name__ if isinstance(network, nn.Module) else "a plain function"
