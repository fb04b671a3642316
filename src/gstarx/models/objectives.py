"""What a network is trained for: the loss of a task, and which epoch is the best."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from gstarx.models.collation import CollatedGraphs
from gstarx.models.evaluation import evaluate, outputs_of
from gstarx.models.networks import Network
from gstarx.models.scores import auroc, mean_known, rmse


@dataclass(frozen=True)
class Objective:
    """A task as training needs it.

    Attributes
    ----------
    task
        ``"classification"`` (cross-entropy), ``"binary"`` or ``"multilabel"`` (binary cross-entropy
        with logits), or ``"regression"`` (squared error). Labels that are nan do not count.
    center, spread
        Of a regression: mean and standard deviation of every target; the network learns targets
        that are standardized by them.
    """

    task: str = "classification"
    center: Tensor | None = None
    spread: Tensor | None = None

    @classmethod
    def of(cls, task: str, labels: Tensor, names: Sequence[str]) -> Objective:
        """The objective of a task, from the labels to train on.

        Raises
        ------
        ValueError
            When there is nothing to learn: one class or one value only, or a target without labels.
        """
        columns = labels[:, None] if labels.dim() == 1 else labels
        named = dict(zip(range(columns.shape[1]), names, strict=False))
        for at, column in enumerate(columns.T):
            labeled = column[~column.isnan()] if column.is_floating_point() else column
            noun = f"target {named[at]!r}" if at in named else "the label"
            if not len(labeled):
                raise ValueError(f"no training graph has a value of {noun}")
            if task != "multilabel" and bool((labeled == labeled[0]).all()):
                raise ValueError(
                    f"{noun} must differ between training graphs to be learned (got only "
                    f"{labeled[0].item():g} for {len(labeled)} of them)"
                )
        if task != "regression":
            return cls(task)
        labeled = ~labels.isnan()
        values = labels.double().nan_to_num()
        count = labeled.sum(dim=0)
        center = values.sum(dim=0) / count
        variance = (((values - center) ** 2) * labeled).sum(dim=0) / count
        return cls(task, center, variance.sqrt())

    def count(self, y: Tensor) -> int:
        """How many labels count."""
        return len(y) if self.task == "classification" else int((~y.isnan()).sum())

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean loss over the labels that count, of which there must be one."""
        if self.task == "classification":
            return functional.cross_entropy(outputs, y)
        has_label = ~y.isnan()
        expected = self.standardized(y)[has_label].to(outputs.dtype)
        if self.task == "regression":
            return functional.mse_loss(outputs[has_label], expected)
        return functional.binary_cross_entropy_with_logits(outputs[has_label], expected)

    def validate(
        self, model: nn.Module, data: CollatedGraphs, ids: Tensor, mask: Tensor | None
    ) -> tuple[float, float]:
        """Loss and score on some graphs: accuracy, AUROC, or minus the RMSE of standard targets."""
        if self.task == "classification":
            return evaluate(model, data, ids, mask)
        outputs, y = outputs_of(model, data, ids, mask)
        pairs = list(zip(outputs.cpu().T, self.standardized(y).cpu().T, strict=True))
        score = auroc if self.task != "regression" else (lambda *pair: -rmse(*pair))
        return float(self.loss(outputs, y)), mean_known([score(*pair) for pair in pairs])

    def standardized(self, y: Tensor) -> Tensor:
        """Labels as the network learns them."""
        if self.center is None or self.spread is None:
            return y
        return (y.double() - self.center.to(y.device)) / self.spread.to(y.device)

    def fitting(self, model: nn.Module, data: CollatedGraphs, ids: Tensor) -> Objective:
        """Itself, or without standardization for a model whose last layer cannot undo it."""
        if self.center is None or isinstance(model, Network):
            return self
        sample = ids[:8]
        before, _ = outputs_of(model, data, sample)
        copy = deepcopy(model)
        trial = Objective(self.task, torch.ones_like(self.center), 2 * torch.ones_like(self.center))
        if trial.fold(copy):
            after, _ = outputs_of(copy, data, sample)
            if torch.allclose(after, 2 * before + 1, rtol=1e-3, atol=1e-3):
                return self
        return Objective(self.task)

    def fold(self, model: nn.Module) -> bool:
        """Let the last linear layer undo the standardization; whether there is such a layer."""
        if self.center is None or self.spread is None:
            return True
        linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
        if isinstance(model, Network):
            linear = [model.classifier]
        last: Any = linear[-1] if linear else None
        if last is None or last.out_features != len(self.center) or last.bias is None:
            return False
        with torch.no_grad():
            weight, bias = last.weight.double(), last.bias.double()
            spread, center = self.spread.to(bias.device), self.center.to(bias.device)
            last.weight.copy_(weight * spread[:, None])
            last.bias.copy_(bias * spread + center)
        return True
