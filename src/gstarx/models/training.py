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
from torch.nn import functional
from torch.nn.utils import clip_grad_value_
from torch_geometric.data import Data
from tqdm import tqdm

from gstarx.gnn import model_device
from gstarx.models.collation import CollatedGraphs
from gstarx.models.evaluation import evaluate, float_type, predict
from gstarx.models.network import Network
from gstarx.models.recipes import TrainingSettings, recipe
from gstarx.models.resuming import Epoch, Run, identity_of, random_state, set_random_state
from gstarx.models.weights import NETWORKS, digest


class LabeledGraphs(Protocol):
    """What training needs of a dataset, for instance a :class:`gstarx.datasets.GraphDataset`."""

    @property
    def name(self) -> str:
        """Its name, by which the recipe is found."""

    @property
    def graphs(self) -> Sequence[Data]:
        """The graphs, with one label each or a label per node."""

    @property
    def num_classes(self) -> int:
        """Number of classes."""

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
        Accuracy by split, ``"train"``, ``"val"`` and, if it has any labels, ``"test"``.
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
    """

    model: nn.Module
    accuracy: dict[str, float]
    best_epoch: int
    history: tuple[Epoch, ...]
    seconds: float
    seed: int
    settings: TrainingSettings


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

    Adam on the cross-entropy, every component of the gradient clipped. An epoch is better than
    another if its validation accuracy is higher, or the same with a lower loss. Labels of nodes
    are split by the masks ``train_mask``, ``val_mask`` and ``test_mask`` of the graphs.

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
    data = CollatedGraphs.of(dataset.graphs)
    network, settings = _prepared(model, dataset, data, seed, settings)
    network = network.to(device)
    where = model_device(network, torch.device("cpu"))
    _check_fit(network, data, dataset.num_classes)
    parts = _parts(data, dataset)
    with _seeded_generators(seed, where):
        run = Run.start(network, settings, seed)
        path = _checked_path(checkpoint)
        identity = {} if path is None else _identity(network, dataset, data, seed, settings, where)
        if path is not None and path.exists():
            run.restore(path, identity, where)
        saved = time.monotonic()
        for _ in _epochs(run, data, parts, progress=progress):
            late = time.monotonic() - saved >= checkpoint_seconds
            if path is not None and (late or run.finished):
                run.save(path, identity, where)
                saved = time.monotonic()
    assert run.best is not None
    network.load_state_dict(run.best_weights)
    return TrainingResult(
        model=network.eval(),
        accuracy={name: evaluate(network, data, p.ids, p.mask)[1] for name, p in parts.items()},
        best_epoch=run.best.number,
        history=tuple(run.history),
        seconds=run.seconds,
        seed=seed,
        settings=settings,
    )


def _epochs(
    run: Run, data: CollatedGraphs, parts: Mapping[str, _Part], *, progress: bool
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
            loss = _pass(run, data, parts["train"], bar)
            val_loss, val_accuracy = evaluate(run.model, data, parts["val"].ids, parts["val"].mask)
            epoch = Epoch(len(run.history), loss, val_loss, val_accuracy)
            run.record(epoch)
            run.seconds += time.monotonic() - started
            bar.set_postfix(epoch=epoch.number, loss=f"{loss:.3f}", val=f"{val_accuracy:.3f}")
            yield


def _pass(run: Run, data: CollatedGraphs, part: _Part, bar: tqdm[None]) -> float:
    """Train on every graph once; return the mean loss per label."""
    device, dtype = model_device(run.model, torch.device("cpu")), float_type(run.model)
    run.model.train()
    order = part.ids[torch.randperm(len(part.ids), generator=run.shuffle)]
    total, count = 0.0, 0
    for ids in _batches(order, run.settings.batch_size):
        batch = data.batch(ids, device=device, dtype=dtype, mask=part.mask)
        bar.update()
        if not len(batch.y):
            continue
        loss = functional.cross_entropy(predict(run.model, batch), batch.y)
        run.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        clip_grad_value_(run.model.parameters(), run.settings.clip)
        run.optimizer.step()
        total += float(loss.detach()) * len(batch.y)
        count += len(batch.y)
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
            settings = recipe(dataset.name, kind if kind in NETWORKS else "gcn").settings
        return deepcopy(model), settings
    if model not in NETWORKS:
        valid = ", ".join(map(repr, NETWORKS))
        raise ValueError(f"model must be one of {valid}, or a model (got {model!r})")
    network_recipe = recipe(dataset.name, model)
    options = {
        **network_recipe.options,
        "in_channels": data.x.shape[1],
        "out_channels": dataset.num_classes,
    }
    if data.node_level:
        options["readout"] = None
    with _seeded_generators(seed, torch.device("cpu")):
        network = NETWORKS[model](**options)
    return network, settings or network_recipe.settings


def _check_fit(model: nn.Module, data: CollatedGraphs, classes: int) -> None:
    """Check that labels are classes, and that a network of the package fits the data."""
    low, high = (int(bound) for bound in data.y.aminmax())
    if low < 0 or high >= classes:
        raise ValueError(f"labels must be in 0..{classes - 1} (got {low if low < 0 else high})")
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
            part, count = _Part(ids, None), len(ids)
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
