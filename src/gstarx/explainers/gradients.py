"""Gradients with respect to the features: two methods of Captum through PyG, and SmoothGrad."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import CaptumExplainer
from torch_geometric.explain.config import ExplainerConfig, ModelConfig

from gstarx._internal.imports import require
from gstarx.explainers.base import NodeExplainer
from gstarx.explainers.edge_masks import (
    Explained,
    Inputs,
    PlainModel,
    check_float,
    isolated,
    seeded,
)
from gstarx.explanation import Attribution
from gstarx.gnn import ModelTask
from gstarx.values import Seed


class _CaptumNodeExplainer(NodeExplainer):
    """A method of Captum; a node's score is the sum over its features."""

    #: Name of the method in ``captum.attr``.
    attribution_method: str
    needed_packages = ("captum",)

    def __init__(self, *, seed: int | None = None) -> None:
        super().__init__()
        self.seed = seed

    @property
    def _options(self) -> dict[str, Any]:
        """Arguments of Captum's ``attribute``."""
        return {}

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Attributions of Captum, summed over the features of a node."""
        require("captum", extra="gradients")
        method = type(self).__name__
        network = isolated(model)
        with seeded(network, seed):
            explained = Explained.of(network, data, task, method=method, kind="raw")
            check_float(explained.x, method)
            algorithm = CaptumExplainer(self.attribution_method, **self._options)
            config = ExplainerConfig(explanation_type="model", node_mask_type="attributes")
            algorithm.connect(config, ModelConfig(**explained.config))
            explanation = algorithm(
                explained.model,
                explained.x.requires_grad_(),
                explained.model.edges,
                target=explained.target,
                index=explained.index,
            )
        scores = explanation.node_mask.detach().double().sum(dim=1)
        return Attribution(scores=scores.cpu().numpy(), target=explained.column)


class GradientXInput(_CaptumNodeExplainer):
    """Gradient times input, summed over the features of a node.

    Of the model's own output for the class: a logit where it returns logits. The score of a node
    is what the node contributes to a linear model of the output around the graph. Needs Captum,
    the extra ``gradients``.

    Parameters
    ----------
    seed
        The seed inside PyG's ``Explainer``, which matters for models that draw random numbers.
    """

    attribution_method = "InputXGradient"


class IntegratedGradients(_CaptumNodeExplainer):
    """Integrated gradients (Sundararajan et al., 2017) from features of 0, summed for a node.

    The scores add up to the difference that the features make to the model's own output for the
    class (a logit where it returns logits), as far as the steps resolve it. The edges stay. Needs
    Captum, the extra ``gradients``.

    Parameters
    ----------
    steps
        Points at which the gradient is taken (Gauss-Legendre).
    seed
        The seed inside PyG's ``Explainer``, which matters for models that draw random numbers.
    """

    attribution_method = "IntegratedGradients"

    def __init__(self, *, steps: int = 50, seed: int | None = None) -> None:
        super().__init__(seed=seed)
        if steps < 1:
            raise ValueError(f"steps must be at least 1 (got {steps!r})")
        self.steps = steps

    @property
    def _options(self) -> dict[str, Any]:
        return {"n_steps": self.steps}


#: Nodes that go through the model together.
_NODES_AT_ONCE = 20_000


class SmoothGrad(NodeExplainer):
    """Gradient times input, averaged over copies of the graph with noise on their features.

    Smilkov et al., SmoothGrad: removing noise by adding noise, 2017. Of the model's own output for
    the class: a logit where it returns logits.

    Parameters
    ----------
    samples
        Noisy copies.
    noise
        Standard deviation of the normal noise, as a multiple of that of all features of the graph.
    seed
        The seed inside PyG's ``Explainer``.
    """

    def __init__(self, *, samples: int = 50, noise: float = 0.15, seed: int | None = None) -> None:
        super().__init__()
        if samples < 1:
            raise ValueError(f"samples must be at least 1 (got {samples!r})")
        if not noise >= 0:
            raise ValueError(f"noise must be at least 0 (got {noise!r})")
        self.samples, self.noise, self.seed = samples, noise, seed

    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """The mean over noisy copies of gradient times input, summed over features."""
        network = isolated(model)
        draws = np.random.default_rng(seed)
        with seeded(network, draws):
            explained = Explained.of(network, data, task, method="SmoothGrad", kind="raw")
            x = explained.x
            check_float(x, "SmoothGrad")
            spread = self.noise * float(x.std(correction=0))
            # several pairs of nodes cannot be named in several copies
            most = 1 if task.task_level == "edge" else max(1, _NODES_AT_ONCE // len(x))
            total = torch.zeros(len(x), dtype=torch.float64)
            for first in range(0, self.samples, most):
                count = min(most, self.samples - first)
                noise = torch.from_numpy(draws.normal(0.0, spread, (count, *x.shape)))
                total += self._summed(explained, data, x + noise.to(x))
        scores = (total / self.samples).numpy()
        return Attribution(scores=scores, target=explained.column)

    @staticmethod
    def _summed(explained: Explained, data: Data, noisy: Tensor) -> Tensor:
        """Gradient times input, summed over copies (count, N, F) and features."""
        count, nodes = noisy.shape[:2]
        plain = explained.model
        inputs = Inputs.copies(data, noisy.device, count)
        copies = PlainModel(plain.network, plain.signature, inputs, plain.task, plain.kind)
        flat = noisy.reshape(count * nodes, -1).requires_grad_()
        outputs = copies(flat)[:, explained.column]
        if explained.index is not None:
            outputs = outputs.reshape(count, -1)[:, int(explained.index)]
        (gradient,) = torch.autograd.grad(outputs.sum(), flat)
        products = (gradient * flat.detach()).reshape(count, nodes, -1)
        return products.double().sum(dim=(0, 2)).cpu()
