"""Gradients of the output with respect to the features: two Captum methods, through PyG."""

from __future__ import annotations

from typing import Any

from torch_geometric.data import Data
from torch_geometric.explain import CaptumExplainer
from torch_geometric.explain.config import ExplainerConfig, ModelConfig

from gstarx._internal.optional import require
from gstarx.explainers.base import NodeExplainer, Seed
from gstarx.explainers.edge_masks import Explained, isolated, seeded
from gstarx.explainers.explanation import Attribution
from gstarx.gnn import ModelTask


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
            if not explained.x.is_floating_point():
                raise TypeError(
                    f"{method} differentiates by the features: data.x must be floating point "
                    f"(got {explained.x.dtype})"
                )
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
