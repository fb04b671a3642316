"""Training the networks of the paper, reproducibly."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils import clip_grad_value_
from torch.optim import Adam
from torch_geometric.data import Data

from gstarx._internal.progress import tqdm
from gstarx.datasets import GraphDataset
from gstarx.gnn import model_device
from gstarx.metrics import Reference
from gstarx.models import ARCHITECTURES, Network
from gstarx_bench.models.evaluation import (
    LabeledGraphs,
    auroc,
    batch_for,
    loss_and_accuracy,
    mean_known,
    outputs_of,
    predict,
    rmse,
    scores_of,
)
from gstarx_bench.models.recipes import TrainingSettings, recipe


@dataclass(frozen=True)
class Epoch:
    """The results of one pass over the training graphs.

    Attributes
    ----------
    number
        Its number, from 0.
    train_loss
        Mean loss over the training labels, each computed when its mini-batch was used: the
        cross-entropy, or for regression the squared error of standardized targets.
    val_loss, val_score
        Loss and score on the validation labels afterwards. The score is the accuracy of a
        classification, the AUROC of a binary or multilabel task (nan where no target has labels of
        both kinds), and minus the RMSE of the standardized targets of a regression.
    """

    number: int
    train_loss: float
    val_loss: float
    val_score: float

    def better_than(self, other: Epoch | None) -> bool:
        """Whether its score is higher, or the same (or nan) with a lower loss."""
        if other is None or self.val_score > other.val_score:
            return True
        return not self.val_score < other.val_score and self.val_loss < other.val_loss


@dataclass(frozen=True)
class TrainingResult:
    """A trained model and its training history.

    Attributes
    ----------
    model
        The model with the weights of its best epoch, in evaluation mode.
    accuracy
        Accuracy by split, ``"train"``, ``"val"`` and, if it has any labels, ``"test"``; empty for a
        regression.
    metrics
        Every score by split and name: ``accuracy``, ``auroc`` and ``average_precision``, or
        ``rmse`` and ``r2``. Of several targets the means, and for each ``"auroc NAME"`` and so on.
        Where labels do not define a score, it is nan.
    best_epoch
        Number of that epoch, from 0.
    history
        All epochs.
    seconds
        Time spent.
    seed
        The seed.
    settings
        The settings.
    reference
        Of a regression: range and mean of its outputs for the training graphs, which metrics need.
    """

    model: nn.Module
    accuracy: dict[str, float]
    metrics: dict[str, dict[str, float]]
    best_epoch: int
    history: tuple[Epoch, ...]
    seconds: float
    seed: int
    settings: TrainingSettings
    reference: Reference | None = None


def train(
    model: str | nn.Module,
    dataset: GraphDataset,
    *,
    seed: int = 0,
    settings: TrainingSettings | None = None,
    device: str | torch.device | None = None,
    progress: bool = True,
) -> TrainingResult:
    """Train a network on the training graphs and keep the epoch that validates best.

    Adam on the cross-entropy (of every target for a binary or multilabel task, squared error for a
    regression), every component of the gradient clipped. An epoch is better than another if its
    validation accuracy (AUROC, RMSE) is better, or the same with a lower loss. Labels of nodes
    are split by the masks ``train_mask``, ``val_mask`` and ``test_mask`` of the graphs.

    The task is that of the dataset. Labels that are nan do not count. A regression learns
    standardized targets, and in the end the last linear layer gets their mean and scale, so that
    outputs are in the units of the targets; a model of your own without a linear layer at its end
    learns the targets as they are.

    The same seed gives the same weights, on the CPU with the same number of threads. The random
    state of torch is restored. A remainder of one graph joins the previous mini-batch, because
    batch normalization fails on a single node.

    Parameters
    ----------
    model
        ``"gcn"``, ``"gin"`` or ``"gat"`` for the network of the dataset's :func:`recipe`, or a
        model to be called as ``model(x, edge_index, batch)``. A copy of the model is trained; the
        model itself is not changed.
    dataset
        The graphs and their splits.
    seed
        Seed of initial weights and of the order of the graphs.
    settings
        By default those of the recipe for dataset and network.
    device
        Where to train; by default where the model is.
    progress
        Show a bar.

    Raises
    ------
    FloatingPointError
        When the loss is no longer finite.

    Examples
    --------
    >>> from gstarx.models import GCN
    >>> _ = torch.manual_seed(1)
    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> graphs = tuple(
    ...     Data(x=torch.full((2, 1), float(k)), edge_index=edge, y=torch.tensor([k]))
    ...     for k in (0, 1, 0, 1)
    ... )
    >>> dataset = GraphDataset("pairs", graphs, 2, {"train": [0, 1], "val": [2, 3]})
    >>> settings = TrainingSettings(learning_rate=0.1, epochs=20)
    >>> result = train(GCN(1, 8, 2), dataset, settings=settings, progress=False)
    >>> result.accuracy
    {'train': 1.0, 'val': 1.0}
    """
    started = time.monotonic()
    targets = None if dataset.task == "classification" else dataset.num_outputs
    data = LabeledGraphs.of(dataset.graphs, targets=targets)
    network, settings = _prepared(model, dataset, data, seed, settings)
    network = network.to(device)
    _check_fit(network, data, dataset)
    parts = _parts(data, dataset)
    objective = Objective()
    if not data.of_nodes:
        labels = torch.cat([graph.y for graph in parts["train"]])
        objective = Objective.of(dataset.task, labels, dataset.target_names)
        objective = objective.fitting(network, parts["train"])
    with _seeded_generators(seed, model_device(network, torch.device("cpu"))):
        shuffle = torch.Generator().manual_seed(seed)
        history, best = _epochs(network, parts, objective, settings, shuffle, progress=progress)
    objective.fold(network)
    outputs = {name: outputs_of(network, part) for name, part in parts.items()}
    names = dataset.target_names
    metrics = {name: scores_of(dataset.task, *pair, names) for name, pair in outputs.items()}
    return TrainingResult(
        model=network.eval(),
        accuracy={name: one["accuracy"] for name, one in metrics.items() if "accuracy" in one},
        metrics=metrics,
        best_epoch=best,
        history=tuple(history),
        seconds=time.monotonic() - started,
        seed=seed,
        settings=settings,
        reference=Reference.of(outputs["train"][0]) if dataset.task == "regression" else None,
    )


def _epochs(
    network: nn.Module,
    parts: dict[str, list[Data]],
    objective: Objective,
    settings: TrainingSettings,
    shuffle: torch.Generator,
    *,
    progress: bool,
) -> tuple[list[Epoch], int]:
    """Train until epochs or patience run out; the network is left as in the best epoch."""
    adam = Adam(network.parameters(), settings.learning_rate, weight_decay=settings.weight_decay)
    training = parts["train"]
    total = settings.epochs * len(_batches(torch.arange(len(training)), settings.batch_size))
    history: list[Epoch] = []
    best: Epoch | None = None
    weights: dict[str, Any] = {}
    with tqdm(total=total, desc="training", unit="batch", disable=not progress) as bar:
        for number in range(settings.epochs):
            network.train()
            order = torch.randperm(len(training), generator=shuffle)
            losses, labels = 0.0, 0
            for ids in _batches(order, settings.batch_size):
                bar.update()
                batch = batch_for(network, [training[i] for i in ids.tolist()])
                count = int((~batch.y.isnan()).sum())
                if not count:
                    continue
                loss = objective.loss(predict(network, batch), batch.y)
                adam.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                clip_grad_value_(network.parameters(), settings.clip)
                adam.step()
                losses += float(loss.detach()) * count
                labels += count
            if not math.isfinite(losses):
                raise FloatingPointError(
                    f"the loss is not finite in epoch {number}: lower learning_rate "
                    f"(got {settings.learning_rate}), or look for values in x that are not"
                )
            epoch = Epoch(number, losses / labels, *objective.validate(network, parts["val"]))
            history.append(epoch)
            if epoch.better_than(best):
                best, weights = epoch, deepcopy(dict(network.state_dict()))
            loss_and_score = {"loss": f"{epoch.train_loss:.3f}", "val": f"{epoch.val_score:.3f}"}
            bar.set_postfix(epoch=number, **loss_and_score)
            if best is not None and number - best.number >= (settings.patience or math.inf):
                break
    network.load_state_dict(weights)
    return history, 0 if best is None else best.number


def _batches(ids: Tensor, size: int) -> list[Tensor]:
    batches = list(torch.split(ids, size))
    if len(batches) > 1 and len(batches[-1]) == 1 < size:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def _prepared(
    model: str | nn.Module,
    dataset: GraphDataset,
    data: LabeledGraphs,
    seed: int,
    settings: TrainingSettings | None,
) -> tuple[nn.Module, TrainingSettings]:
    """The network to train and its training settings."""
    if isinstance(model, nn.Module):
        kind = type(model).__name__.lower()
        general = recipe(dataset.name, kind if kind in ARCHITECTURES else "gcn").settings
        return deepcopy(model), settings or general
    if model not in ARCHITECTURES:
        valid = ", ".join(map(repr, ARCHITECTURES))
        raise ValueError(f"model must be one of {valid}, or a model (got {model!r})")
    known = recipe(dataset.name, model)
    options = {
        **known.options,
        "in_channels": data.graphs[0].x.shape[1],
        "out_channels": dataset.num_outputs,
    }
    if data.of_nodes:
        options["readout"] = None
    with _seeded_generators(seed, torch.device("cpu")):
        return ARCHITECTURES[model](**options), settings or known.settings


def _check_fit(model: nn.Module, data: LabeledGraphs, dataset: GraphDataset) -> None:
    """Check that labels are those of the task, and that a network of the package fits the data."""
    classes, task = dataset.num_outputs, dataset.task
    y = torch.cat([graph.y for graph in data.graphs])
    if task == "classification":
        low, high = (int(bound) for bound in y.aminmax())
        if low < 0 or high >= classes:
            raise ValueError(f"labels must be in 0..{classes - 1} (got {low if low < 0 else high})")
    elif task == "regression":
        if y.isinf().any():
            raise ValueError("targets must be finite, or nan where they are missing (got inf)")
    else:
        wrong = y[(y != 0) & (y != 1) & ~y.isnan()]
        if len(wrong):
            raise ValueError(f"labels of a {task} task must be 0 or 1, or nan (got {wrong[0]:g})")
    if isinstance(model, Network):
        width, sizes = data.graphs[0].x.shape[1], model.config
        if sizes["in_channels"] != width:
            raise ValueError(
                f"in_channels of the model must be {width}, the width of the node features "
                f"(got {sizes['in_channels']})"
            )
        if sizes["out_channels"] < classes:
            raise ValueError(
                f"out_channels of the model must be at least {classes}, the number of classes "
                f"(got {sizes['out_channels']})"
            )


def _parts(data: LabeledGraphs, dataset: GraphDataset) -> dict[str, list[Data]]:
    """The splits by name; training and validation need labels, the test split may have none."""
    parts = {}
    for name in ("train", "val", "test"):
        mask = f"{name}_mask"
        if data.of_nodes:
            part = data.part(mask=mask) if mask in data.masks else []
            known = any(bool(graph.rows.any()) for graph in part)
        else:
            part = data.part(dataset.split_indices.get(name, ()))
            # targets that are nan were not measured
            known = any(not bool(graph.y.isnan().all()) for graph in part)
        if known:
            parts[name] = part
        elif name != "test":
            where = f"nodes in {mask}" if data.of_nodes else f"graphs in split {name!r}"
            raise ValueError(f"{dataset.name} must have {where} (got none)")
    return parts


@dataclass(frozen=True)
class Objective:
    """What is learned.

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
        for at, column in enumerate(columns.T):
            known = column[~column.isnan()]
            noun = f"target {names[at]!r}" if at < len(names) else "the label"
            if not len(known):
                raise ValueError(f"no training graph has a value of {noun}")
            if task != "multilabel" and bool((known == known[0]).all()):
                raise ValueError(
                    f"{noun} must differ between training graphs to be learned (got only "
                    f"{known[0].item():g} for {len(known)} of them)"
                )
        if task != "regression":
            return cls(task)
        has_label = ~labels.isnan()
        values = labels.double().nan_to_num()
        count = has_label.sum(dim=0)
        center = values.sum(dim=0) / count
        variance = (((values - center) ** 2) * has_label).sum(dim=0) / count
        return cls(task, center, variance.sqrt())

    def loss(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Mean loss over the labels that count, of which there must be one."""
        if self.task == "classification":
            return functional.cross_entropy(outputs, y)
        has_label = ~y.isnan()
        expected = self.standardized(y)[has_label].to(outputs.dtype)
        if self.task == "regression":
            return functional.mse_loss(outputs[has_label], expected)
        return functional.binary_cross_entropy_with_logits(outputs[has_label], expected)

    def validate(self, model: nn.Module, graphs: Sequence[Data]) -> tuple[float, float]:
        """Loss and score on some graphs: accuracy, AUROC, or minus the RMSE of standard targets."""
        if self.task == "classification":
            return loss_and_accuracy(model, graphs)
        outputs, y = outputs_of(model, graphs)
        pairs = list(zip(outputs.cpu().T, self.standardized(y).cpu().T, strict=True))
        if self.task == "regression":
            score = mean_known([-rmse(*pair) for pair in pairs])
        else:
            score = mean_known([auroc(*pair) for pair in pairs])
        return float(self.loss(outputs, y)), score

    def standardized(self, y: Tensor) -> Tensor:
        """Labels as the network learns them."""
        if self.center is None or self.spread is None:
            return y
        return (y.double() - self.center.to(y.device)) / self.spread.to(y.device)

    def fitting(self, model: nn.Module, graphs: Sequence[Data]) -> Objective:
        """Itself, or without standardization for a model whose last layer cannot undo it."""
        if self.center is None or isinstance(model, Network):
            return self
        before, _ = outputs_of(model, graphs[:8])
        copy = deepcopy(model)
        one = torch.ones_like(self.center)
        if Objective(self.task, one, 2 * one).fold(copy):
            after, _ = outputs_of(copy, graphs[:8])
            if torch.allclose(after, 2 * before + 1, rtol=1e-3, atol=1e-3):
                return self
        return Objective(self.task)

    def fold(self, model: nn.Module) -> bool:
        """Let the last linear layer undo the standardization; whether there is such a layer."""
        if self.center is None or self.spread is None:
            return True
        linear = [module for module in model.modules() if isinstance(module, nn.Linear)]
        last: Any = (
            model.classifier if isinstance(model, Network) else linear[-1] if linear else None
        )
        if last is None or last.out_features != len(self.center) or last.bias is None:
            return False
        with torch.no_grad():
            weight, bias = last.weight.double(), last.bias.double()
            spread, center = self.spread.to(bias.device), self.center.to(bias.device)
            last.weight.copy_(weight * spread[:, None])
            last.bias.copy_(bias * spread + center)
        return True


@contextmanager
def _seeded_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's generators inside the block, and restore them afterwards."""
    with torch.random.fork_rng(
        devices=[] if device.type == "cpu" else [device], device_type=device.type
    ):
        torch.default_generator.manual_seed(seed)
        if device.type != "cpu":
            with torch.get_device_module(device).device(device):
                torch.get_device_module(device).manual_seed(seed)
        yield
