"""Training the networks of the paper, reproducibly and resumably."""

from __future__ import annotations

import hashlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn
from torch.nn.utils import clip_grad_value_
from torch_geometric.data import Data

from gstarx._internal.progress import tqdm
from gstarx.gnn import model_device
from gstarx.metrics import Reference
from gstarx.models import ARCHITECTURES, Network, digest
from gstarx_bench.models.collation import CollatedGraphs
from gstarx_bench.models.evaluation import Objective, float_type, outputs_of, predict, scores_of
from gstarx_bench.models.recipes import TrainingSettings, recipe
from gstarx_bench.models.resuming import Epoch, Run, identity_of, random_state, set_random_state


class LabeledGraphs(Protocol):
    """What training needs of a dataset, for instance a :class:`gstarx.datasets.GraphDataset`."""

    @property
    def name(self) -> str:
        """Its name, by which the recipe is found."""

    @property
    def graphs(self) -> Sequence[Data]:
        """The graphs, with one label each, a label per node, or a label per target."""

    @property
    def num_outputs(self) -> int:
        """Outputs of a network: one for each class or target, or one for two classes."""

    @property
    def task(self) -> str:
        """``"classification"``, ``"binary"``, ``"multilabel"`` or ``"regression"``."""

    @property
    def target_names(self) -> Sequence[str]:
        """Names of the targets."""

    @property
    def split_indices(self) -> Mapping[str, Sequence[int]]:
        """Positions of the graphs of each split."""

    @property
    def digest(self) -> str:
        """A digest of the content."""


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
        Time spent, pauses not counted.
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


@dataclass(frozen=True)
class _Part:
    """A split: its graphs, and for node labels the mask of its nodes."""

    ids: Tensor
    mask: Tensor | None


def train(
    model: str | nn.Module,
    dataset: LabeledGraphs,
    *,
    seed: int = 0,
    settings: TrainingSettings | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    checkpoint_seconds: float = 10.0,
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

    The same seed gives the same weights, with pauses or without, on the CPU with the same number
    of threads. The random state of torch is restored. A remainder of one graph joins the previous
    mini-batch, because batch normalization fails on a single node.

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
    checkpoint
        A file to save the training to, so that it can be resumed after an interruption. If the
        file exists, its training is resumed. A file with other settings, data, seed or initial
        weights is refused.
    checkpoint_seconds
        The least time between two checkpoints, which are written at the ends of epochs.
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
    >>> from gstarx.datasets import GraphDataset
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
    several = None if dataset.task == "classification" else dataset.num_outputs
    data = CollatedGraphs.of(dataset.graphs, targets=several)
    network, settings = _prepared(model, dataset, data, seed, settings)
    network = network.to(device)
    where = model_device(network, torch.device("cpu"))
    _check_fit(network, data, dataset)
    parts = _parts(data, dataset)
    objective = _objective(network, data, dataset, parts["train"])
    with _seeded_generators(seed, where):
        run = Run.start(network, settings, seed)
        path = _checked_path(checkpoint)
        identity = {} if path is None else _identity(network, dataset, data, seed, settings, where)
        if path is not None and path.exists():
            run.restore(path, identity, where)
        saved = time.monotonic()
        for _ in _epochs(run, data, parts, objective, progress=progress):
            late = time.monotonic() - saved >= checkpoint_seconds
            if path is not None and (late or run.finished):
                run.save(path, identity, where)
                saved = time.monotonic()
    assert run.best is not None
    network.load_state_dict(run.best_weights)
    objective.fold(network)
    outputs = {name: outputs_of(network, data, p.ids, p.mask) for name, p in parts.items()}
    names = dataset.target_names
    metrics = {name: scores_of(dataset.task, *pair, names) for name, pair in outputs.items()}
    return TrainingResult(
        model=network.eval(),
        accuracy={name: one["accuracy"] for name, one in metrics.items() if "accuracy" in one},
        metrics=metrics,
        best_epoch=run.best.number,
        history=tuple(run.history),
        seconds=run.seconds,
        seed=seed,
        settings=settings,
        reference=Reference.of(outputs["train"][0]) if dataset.task == "regression" else None,
    )


def _epochs(
    run: Run,
    data: CollatedGraphs,
    parts: Mapping[str, _Part],
    objective: Objective,
    *,
    progress: bool,
) -> Iterator[None]:
    """Train epoch by epoch, yielding after each."""
    size = run.settings.batch_size
    count = len(_batches(parts["train"].ids, size))
    with tqdm(
        total=run.settings.epochs * count,
        initial=len(run.history) * count,
        desc="training",
        unit="batch",
        disable=not progress,
    ) as bar:
        while not run.finished:
            started = time.monotonic()
            loss = _pass(run, data, parts["train"], objective, bar)
            val = parts["val"]
            val_loss, val_score = objective.validate(run.model, data, val.ids, val.mask)
            epoch = Epoch(len(run.history), loss, val_loss, val_score)
            run.record(epoch)
            run.seconds += time.monotonic() - started
            bar.set_postfix(epoch=epoch.number, loss=f"{loss:.3f}", val=f"{val_score:.3f}")
            yield


def _pass(
    run: Run, data: CollatedGraphs, part: _Part, objective: Objective, bar: tqdm[None]
) -> float:
    """Train on every graph once; return the mean loss per label."""
    device, dtype = model_device(run.model, torch.device("cpu")), float_type(run.model)
    run.model.train()
    order = part.ids[torch.randperm(len(part.ids), generator=run.shuffle)]
    total, count = 0.0, 0
    for ids in _batches(order, run.settings.batch_size):
        batch = data.batch(ids, device=device, dtype=dtype, mask=part.mask)
        bar.update()
        labels = objective.count(batch.y)
        if not labels:
            continue
        loss = objective.loss(predict(run.model, batch), batch.y)
        run.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        clip_grad_value_(run.model.parameters(), run.settings.clip)
        run.optimizer.step()
        total += float(loss.detach()) * labels
        count += labels
    if not math.isfinite(total):
        raise FloatingPointError(
            f"the loss is not finite in epoch {len(run.history)}: lower learning_rate "
            f"(got {run.settings.learning_rate}), or look for values in x that are not"
        )
    return total / count


def _batches(ids: Tensor, size: int) -> list[Tensor]:
    batches = list(torch.split(ids, size))
    if len(batches) > 1 and len(batches[-1]) == 1 < size:
        batches[-2:] = [torch.cat(batches[-2:])]
    return batches


def _prepared(
    model: str | nn.Module,
    dataset: LabeledGraphs,
    data: CollatedGraphs,
    seed: int,
    settings: TrainingSettings | None,
) -> tuple[nn.Module, TrainingSettings]:
    """The network to train and its training settings."""
    if isinstance(model, nn.Module):
        if settings is None:
            kind = type(model).__name__.lower()
            settings = recipe(dataset.name, kind if kind in ARCHITECTURES else "gcn").settings
        return deepcopy(model), settings
    if model not in ARCHITECTURES:
        valid = ", ".join(map(repr, ARCHITECTURES))
        raise ValueError(f"model must be one of {valid}, or a model (got {model!r})")
    network_recipe = recipe(dataset.name, model)
    options = {
        **network_recipe.options,
        "in_channels": data.x.shape[1],
        "out_channels": dataset.num_outputs,
    }
    if data.node_level:
        options["readout"] = None
    with _seeded_generators(seed, torch.device("cpu")):
        network = ARCHITECTURES[model](**options)
    return network, settings or network_recipe.settings


def _check_fit(model: nn.Module, data: CollatedGraphs, dataset: LabeledGraphs) -> None:
    """Check that labels are those of the task, and that a network of the package fits the data."""
    classes, task = dataset.num_outputs, dataset.task
    if task == "classification":
        low, high = (int(bound) for bound in data.y.aminmax())
        if low < 0 or high >= classes:
            raise ValueError(f"labels must be in 0..{classes - 1} (got {low if low < 0 else high})")
    elif task == "regression":
        if data.y.isinf().any():
            raise ValueError("targets must be finite, or nan where they are missing (got inf)")
    elif not ((data.y == 0) | (data.y == 1) | data.y.isnan()).all():
        wrong = data.y[~((data.y == 0) | (data.y == 1) | data.y.isnan())][0].item()
        raise ValueError(f"labels of a {task} task must be 0 or 1, or nan (got {wrong:g})")
    if isinstance(model, Network):
        width, sizes = data.x.shape[1], model.config
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


def _objective(
    model: nn.Module, data: CollatedGraphs, dataset: LabeledGraphs, part: _Part
) -> Objective:
    """What to learn, from the labels of the training graphs."""
    if data.node_level:
        return Objective()
    objective = Objective.of(dataset.task, data.y[part.ids], dataset.target_names)
    return objective.fitting(model, data, part.ids)


def _checked_path(checkpoint: str | os.PathLike[str] | None) -> Path | None:
    if checkpoint is None:
        return None
    path = Path(checkpoint)
    if path.is_dir():
        raise ValueError(f"checkpoint must be a file (got the directory {str(path)!r})")
    return path


def _parts(data: CollatedGraphs, dataset: LabeledGraphs) -> dict[str, _Part]:
    """The splits by name; training and validation need labels, the test split may have none."""
    parts = {}
    everything = torch.arange(len(data))
    for name in ("train", "val", "test"):
        if data.node_level:
            mask = data.masks.get(f"{name}_mask")
            part, count = _Part(everything, mask), 0 if mask is None else int(mask.sum())
        else:
            ids = torch.tensor(list(dataset.split_indices.get(name, ())), dtype=torch.long)
            part = _Part(ids, None)
            # targets that are nan were not measured
            count = len(ids) if data.y.dim() == 1 else int((~data.y[ids].isnan()).sum())
        if count:
            parts[name] = part
        elif name != "test":
            where = f"nodes in {name}_mask" if data.node_level else f"graphs in split {name!r}"
            raise ValueError(f"{dataset.name} must have {where} (got none)")
    return parts


def _identity(
    model: nn.Module,
    dataset: LabeledGraphs,
    data: CollatedGraphs,
    seed: int,
    settings: TrainingSettings,
    device: torch.device,
) -> dict[str, object]:
    """What must be the same to resume a training."""
    split = hashlib.sha256()
    for name in ("train", "val", "test"):
        split.update(json.dumps([int(i) for i in dataset.split_indices.get(name, ())]).encode())
        if data.node_level and f"{name}_mask" in data.masks:
            split.update(data.masks[f"{name}_mask"].numpy().tobytes())
    return identity_of(
        settings,
        network=type(model).__name__,
        **(model.config if isinstance(model, Network) else {}),
        **({} if dataset.task == "classification" else {"task": dataset.task}),
        dataset=dataset.name,
        dataset_digest=dataset.digest,
        split_digest=split.hexdigest(),
        seed=seed,
        initial_weights=digest(model),
        device=device.type,
    )


@contextmanager
def _seeded_generators(seed: int, device: torch.device) -> Iterator[None]:
    """Seed torch's generators inside the block, and restore them afterwards."""
    before = random_state(device)
    torch.default_generator.manual_seed(seed)
    if device.type != "cpu":
        with torch.get_device_module(device).device(device):
            torch.get_device_module(device).manual_seed(seed)
    try:
        yield
    finally:
        set_random_state(before, device)
