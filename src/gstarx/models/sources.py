"""Model sources: a network that ships with the package, a file of weights, or a user's factory.

The command line, runs and the explorer all load models through this module, in any process: a
source is plain data, and nothing is unpickled.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import nn

from gstarx._internal.files import check_expanded_size
from gstarx._internal.imports import FactoryError, call_factory
from gstarx._internal.messages import in_one_line, quoted, unknown
from gstarx.metrics import Reference
from gstarx.models.networks import Network
from gstarx.models.splits import SplitRecord
from gstarx.models.weights import ModelFacts, digest, load_model
from gstarx.registry import DATASETS, MODEL_FILES, NETWORKS, TASKS, ModelSource, reader, resolve


class ModelSourceError(ValueError):
    """A model cannot be loaded; ``usage`` if the request itself is invalid."""

    def __init__(self, message: str, *, usage: bool = False) -> None:
        super().__init__(message)
        self.usage = usage


@dataclass(frozen=True)
class LoadedNetwork:
    """A model and what is known about it.

    Attributes
    ----------
    model
        In evaluation mode.
    name
        Its name.
    dataset
        The dataset it was trained on, if that is known.
    facts
        What else is known: network, digest, accuracy ...
    path
        The file of its weights, if runs can load it from there.
    task
        What it predicts, one of :data:`gstarx.registry.TASKS`.
    class_names, target_names
        What its classes or its targets are called, if known without the data.
    label
        The column of the table that its classes were read from, if known.
    reference
        Of a regression, for its metrics: range and mean of its outputs on the training graphs.
    features
        What it reads of a molecule, one of :data:`gstarx.datasets.MOLECULE_FEATURES`, if known.
    salts
        ``"largest"`` if it was trained on the largest parts of molecules.
    split
        Which graphs it was trained, validated and tested on, if that was recorded.
    """

    model: Any
    name: str
    dataset: str | None
    facts: dict[str, str]
    path: Path | None = None
    task: str = "classification"
    class_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    reference: Reference | None = None
    features: str | None = None
    label: str | None = None
    smiles_column: str | None = None
    name_column: str | None = None
    salts: str | None = None
    split: SplitRecord | None = None

    @property
    def label_columns(self) -> tuple[str, ...]:
        """The columns of a table that its labels were read from, if known."""
        return self.target_names or (() if self.label is None else (self.label,))


def load_source(source: ModelSource) -> LoadedNetwork:
    """Load the model of a source.

    Raises
    ------
    ModelSourceError
        If there is no such model, or it cannot be loaded.
    """
    if source.task is not None and source.task not in TASKS:
        raise ModelSourceError(unknown("task", source.task, TASKS), usage=True)
    network = _loaded(source)
    if source.task is None:
        return network
    if isinstance(network.model, Network):  # what was asked for, not what its file says
        network.model.mode = TASKS[source.task]
    return replace(network, task=source.task)


def _loaded(source: ModelSource) -> LoadedNetwork:
    if source.model is not None and ":" in source.model:
        return _from_factory(source.model, source.weights, source.dataset)
    if source.weights is not None:
        if source.model is not None:
            raise ModelSourceError(
                f"--weights goes with --model module:factory or alone (got --model {source.model})",
                usage=True,
            )
        return load_weights(source.weights, **({"trust": True} if source.trust else {}))
    if source.model is None:
        raise ModelSourceError("choose a network with --model or --weights", usage=True)
    try:
        path = shipped_path(source.model)
    except ValueError as error:
        raise ModelSourceError(str(error), usage=True) from error
    return load_weights(path)


def load_weights(path: Path, **options: Any) -> LoadedNetwork:
    """A network from its file of weights.

    ``options`` are for published checkpoints, and ``trust`` for files of other packages.
    """
    if not path.is_file():
        raise ModelSourceError(f"there is no file of weights at {path}")
    if path.suffix in MODEL_FILES:
        return _of_another_package(path, **options)
    if options.pop("trust", False):
        raise ModelSourceError(
            f"--trust is for files of other packages ({', '.join(MODEL_FILES)}): others are always "
            f"read safely (got {path})",
            usage=True,
        )
    if path.suffix == ".safetensors":
        if options:
            raise ValueError(
                "options of a model are for published checkpoints, .pth files "
                f"(got {', '.join(options)} for {path})"
            )
        return _saved(path)
    if path.suffix != ".pth":
        raise ModelSourceError(
            f"weights alone must be a .safetensors of 'gstarx train', a published .pth, or a .pt "
            f"or .ckpt of Chemprop (got {path}): with your own model say --model module:factory as "
            "well"
        )
    return _published(path, **options)


def _saved(path: Path) -> LoadedNetwork:
    """A network that ``gstarx train`` or :func:`gstarx.models.save_model` wrote."""
    network, known = load_model(path)
    facts = {"network": known.network.upper(), "weights": known.digest[:16]}
    if known.accuracy:
        facts |= {f"{part} accuracy": f"{got:.3f}" for part, got in known.accuracy.items()}
    for part, scores in (known.metrics or {}).items():
        if not known.accuracy and scores.get("rmse") is not None:
            facts[f"{part} RMSE"] = f"{scores['rmse']:.4g}"
    return LoadedNetwork(
        network,
        path.stem,
        known.dataset,
        facts,
        path,
        task=known.task,
        class_names=known.class_names or _classes_of(known.dataset),
        target_names=known.target_names,
        features=known.features or features_of(known.dataset),
        reference=known.reference,
        label=known.label,
        smiles_column=known.smiles_column,
        name_column=known.name_column,
        salts=known.salts,
        split=None if known.split is None else SplitRecord.read(known.split),
    )


def _published(path: Path, **options: Any) -> LoadedNetwork:
    """A published checkpoint."""
    published = reader(".pth")(path, **options)
    facts = {"network": type(published).__name__, "weights": digest(published)[:16]}
    # published files are in a directory that is named after their dataset
    folder = path.absolute().parent.name
    dataset = folder if folder in DATASETS else None
    name = path.stem if dataset is None else f"{dataset} {path.stem}"
    return LoadedNetwork(
        published,
        name,
        dataset,
        facts,
        path,
        task="classification",
        class_names=_classes_of(dataset),
        features=features_of(dataset),
    )


def _of_another_package(path: Path, *, trust: bool = False) -> LoadedNetwork:
    """A model that another package saved, wrapped by the integration that reads its files."""
    try:
        model = resolve(MODEL_FILES[path.suffix])(path, trust=trust)
    except (ImportError, OSError, ValueError, TypeError) as error:
        own = "; for the state dictionary of your own model say --model module:factory as well"
        # it may be any file of torch, unless it was recognized and something else is wrong with it
        words = (" is not a ", " holds more ")
        unknown_file = isinstance(error, ImportError) or any(word in str(error) for word in words)
        hint = own if path.suffix == ".pt" and unknown_file else ""
        raise ModelSourceError(f"{error}{hint}") from error
    suffix = {None: None, "v2": "chemprop"}.get(model.features, f"chemprop-{model.features}")
    names = model.target_names
    # the one output of a binary classifier has two classes, and its name is that of the second
    classes = (f"not {names[0]}", names[0]) if model.task == "binary" and names else ()
    return LoadedNetwork(
        model,
        path.stem,
        None,
        {"network": "Chemprop MPNN", "weights": digest(model)[:16]},
        path,
        task=model.task,
        class_names=classes,
        target_names=names if model.task in ("multilabel", "regression") else (),
        features=suffix,
        split=model.split,
    )


def features_of(dataset: str | None) -> str | None:
    """Which features molecules need for a network trained on a dataset of that name.

    >>> features_of("nitro"), features_of("bbbp"), features_of("sst2")
    ('nitro', 'molecule', None)
    """
    known = {"nitro": "nitro", "mutag": "mutag", "bbbp": "molecule", "bace": "molecule"}
    return known.get(dataset or "")


def _classes_of(dataset: str | None) -> tuple[str, ...]:
    spec = DATASETS.get(dataset or "")
    return () if spec is None else spec.classes


def _from_factory(reference: str, weights: Path | None, dataset: str | None) -> LoadedNetwork:
    try:
        model = call_factory(reference, "--model")
    except FactoryError as error:
        raise ModelSourceError(str(error)) from error
    if not callable(model):
        raise ModelSourceError(
            f"--model {reference}: the factory must return a model (got {quoted(model)})"
        )
    if weights is not None:
        _fill(model, weights)
    if hasattr(model, "eval"):
        model.eval()
    facts = {"network": type(model).__name__, "from": reference}
    if weights is not None:
        facts["weights"] = weights.name
    classes, features = _classes_of(dataset), features_of(dataset)
    return LoadedNetwork(model, reference, dataset, facts, class_names=classes, features=features)


def _fill(model: nn.Module, weights: Path) -> None:
    """Load a state dictionary, never a pickle of anything else."""
    if not hasattr(model, "load_state_dict"):
        raise ModelSourceError(
            f"a {type(model).__name__} cannot take --weights: it is no torch module"
        )
    check_expanded_size(weights)
    try:
        if weights.suffix == ".safetensors":
            state: Any = load_file(weights)
        else:
            state = torch.load(weights, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise ModelSourceError(f"there is no file of weights at {weights}") from error
    except (SafetensorError, OSError, RuntimeError, ValueError, EOFError) as error:
        raise ModelSourceError(
            f"{weights} is not a readable file of weights: {in_one_line(error)}"
        ) from error
    except Exception as error:  # pickle.UnpicklingError and whatever a strange file leads to
        raise ModelSourceError(
            f"{weights} holds more than weights: {in_one_line(error)}"
        ) from error
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    try:
        model.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise ModelSourceError(
            f"the weights in {weights} do not fit {type(model).__name__}: {in_one_line(error)}"
        ) from error


def pretrained_names() -> tuple[str, ...]:
    """The networks that :func:`pretrained` knows, named by dataset and network.

    >>> "nitro-gcn" in pretrained_names()
    True
    """
    return tuple(sorted(NETWORKS))


def shipped_path(name: str) -> Path:
    """The file of a network that ships; the name of a dataset alone stands for its GCN."""
    full = f"{name}-gcn" if f"{name}-gcn" in NETWORKS else name
    if full not in NETWORKS:
        raise ValueError(unknown("network", name, NETWORKS))
    with as_file(files(NETWORKS[full].package) / "trained") as place:
        return place / f"{full}.safetensors"


def pretrained(name: str) -> tuple[Network, ModelFacts]:
    """A network that ships with the package, in evaluation mode, and what is known about it.

    ``python -m reproduction pretrain`` trains it again.

    Parameters
    ----------
    name
        One of :func:`pretrained_names`; the name of a dataset alone stands for its GCN.

    Examples
    --------
    >>> model, facts = pretrained("nitro")
    >>> facts.dataset, facts.network
    ('nitro', 'gcn')
    """
    return load_model(shipped_path(name))
