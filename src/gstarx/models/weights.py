"""Models on disk: weights as safetensors, and a JSON file that describes them."""

from __future__ import annotations

import hashlib
import json
import math
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import nn

from gstarx._internal.files import write_atomically
from gstarx._internal.messages import quoted
from gstarx.metrics import Reference, as_reference
from gstarx.models.networks import GAT, GCN, GIN, Network
from gstarx.models.splits import SplitRecord
from gstarx.registry import TASKS

#: Networks by the name under which they are stored and trained.
ARCHITECTURES: dict[str, type[Network]] = {"gcn": GCN, "gin": GIN, "gat": GAT}
_FORMAT = 1
#: The fields of :class:`ModelFacts` that are text or ``None``, and what others are.
_TEXTS = ("dataset", "dataset_digest", "label", "features", "salts")
_MUST_BE = {
    "seed": "an integer",
    "config": "a dictionary",
    "notes": "a dictionary",
    "accuracy": "finite numbers by split, as JSON has them",
    "metrics": "scores by split and name, finite numbers or nothing",
}


@dataclass(frozen=True)
class ModelFacts:
    """What is known about a stored model.

    Attributes
    ----------
    network
        ``"gcn"``, ``"gin"`` or ``"gat"``.
    config
        The arguments of its constructor.
    digest
        The :func:`digest` of its weights.
    dataset
        Name of the dataset that it was trained on.
    dataset_digest
        Digest of that dataset.
    seed
        Seed of its training.
    accuracy
        Accuracies by split.
    notes
        Anything else that JSON can hold.
    task
        What it predicts: ``"classification"``, ``"binary"``, ``"multilabel"`` or ``"regression"``.
    class_names, target_names
        What its classes or targets are called, in order.
    label
        The column of the table that its classes were read from.
    features
        Which node features it reads: ``"molecule"`` or ``"molecule+bonds"`` for those of tables of
        molecules, a dataset whose features are its own, or ``None``.
    salts
        Which parts of its molecules it was trained on: ``"largest"``, or ``None`` for all.
    reference
        Of a regression: range and mean of its outputs for the training graphs.
    metrics
        All scores by split and name; ``None`` where one is not defined.
    split
        Which graphs it was trained, validated and tested on, as a
        :class:`~gstarx.models.splits.SplitRecord` writes it.
    """

    network: str
    config: dict[str, Any]
    digest: str
    dataset: str | None = None
    dataset_digest: str | None = None
    seed: int | None = None
    accuracy: dict[str, float] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    task: str = "classification"
    class_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    label: str | None = None
    features: str | None = None
    salts: str | None = None
    reference: Reference | None = None
    metrics: dict[str, dict[str, float | None]] | None = None
    split: dict[str, str] | None = None

    def __post_init__(self) -> None:
        if self.task not in list(TASKS):
            valid = ", ".join(map(repr, TASKS))
            raise ValueError(f"task must be one of {valid} (got {quoted(self.task)})")
        for name in ("class_names", "target_names"):
            listed: Any = getattr(self, name)
            names = isinstance(listed, list | tuple) and all(isinstance(n, str) for n in listed)
            if not names:
                raise ValueError(f"{name} must be a list of names (got {quoted(listed)})")
            object.__setattr__(self, name, tuple(listed))
        object.__setattr__(self, "reference", as_reference(self.reference))
        if self.split is not None:
            SplitRecord.read(self.split)
        texts = {name: getattr(self, name) for name in _TEXTS}
        fits = {name: text is None or isinstance(text, str) for name, text in texts.items()}
        splits: Any = {} if self.metrics is None else self.metrics
        fits |= {
            "digest": isinstance(self.digest, str),
            "seed": self.seed is None or type(self.seed) is int,
            "config": isinstance(self.config, dict),
            "notes": isinstance(self.notes, dict),
            "accuracy": self.accuracy is None or _are_numbers(self.accuracy),
            "metrics": isinstance(splits, dict)
            and all(_are_numbers(scores, or_none=True) for scores in splits.values()),
        }
        for name, fitting in fits.items():
            if not fitting:
                what = _MUST_BE.get(name, "text")
                raise ValueError(f"{name} must be {what} (got {quoted(getattr(self, name))})")


def digest(model: nn.Module) -> str:
    """SHA-256 over names, shapes, types and bytes of all parameters and buffers.

    Equal weights have equal digests on every device. Options without weights, such as a readout,
    do not count.

    >>> import torch
    >>> model = nn.Linear(2, 1)
    >>> before = digest(model)
    >>> _ = torch.nn.init.ones_(model.weight)
    >>> digest(model) == before
    False
    """
    sha = hashlib.sha256()
    for name, tensor in sorted(model.state_dict().items()):
        sha.update(f"{name} {tuple(tensor.shape)} {tensor.dtype}\n".encode())
        # a view as bytes, because numpy does not know every dtype of torch
        flat = tensor.detach().cpu().contiguous().reshape(-1)
        sha.update(flat.view(torch.uint8).numpy().tobytes())
    return sha.hexdigest()


def save_model(
    path: str | os.PathLike[str],
    model: nn.Module,
    *,
    dataset: str | None = None,
    dataset_digest: str | None = None,
    seed: int | None = None,
    accuracy: Mapping[str, float] | None = None,
    notes: Mapping[str, Any] | None = None,
    task: str = "classification",
    class_names: Sequence[str] = (),
    target_names: Sequence[str] = (),
    label: str | None = None,
    features: str | None = None,
    salts: str | None = None,
    reference: Reference | None = None,
    metrics: Mapping[str, Mapping[str, float]] | None = None,
    split: SplitRecord | None = None,
) -> ModelFacts:
    """Store a network: ``<name>.safetensors`` for the weights, ``<name>.json`` for the facts.

    Each file is written completely or not at all. Existing files are replaced.

    Parameters
    ----------
    path
        The file; its name must end in ``.safetensors``.
    model
        A :class:`GCN`, :class:`GIN` or :class:`GAT`.
    dataset, dataset_digest, seed, accuracy, notes,
    task, class_names, target_names, label, features, salts, reference, metrics, split
        What else to remember, see :class:`ModelFacts`.

    Returns
    -------
    ModelFacts
        What was written.
    """
    path = _checked_path(path)
    known: dict[type[nn.Module], str] = {kind: name for name, kind in ARCHITECTURES.items()}
    if not isinstance(model, Network) or type(model) not in known:
        valid = ", ".join(kind.__name__ for kind in known)
        raise TypeError(f"model must be one of {valid} (got {type(model).__name__})")
    facts = ModelFacts(
        network=known[type(model)],
        config=model.config,
        digest=digest(model),
        dataset=dataset,
        dataset_digest=dataset_digest,
        seed=seed,
        accuracy=None if accuracy is None else dict(accuracy),
        notes=dict(notes or {}),
        task=task,
        class_names=tuple(class_names),
        target_names=tuple(target_names),
        label=label,
        features=features,
        salts=salts,
        reference=reference,
        metrics=None if metrics is None else _without_nan(metrics),
        split=None if split is None else split.written(),
    )
    text = json.dumps({"format": _FORMAT, **asdict(facts)}, indent=2, allow_nan=False)
    tensors = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    write_atomically(path, to_bytes(tensors))
    write_atomically(path.with_suffix(".json"), f"{text}\n".encode())
    return facts


def load_model(path: str | os.PathLike[str]) -> tuple[Network, ModelFacts]:
    """Load a network that :func:`save_model` has stored, in evaluation mode, on the CPU.

    Returns
    -------
    tuple of Network and ModelFacts
        The network, whose digest has been checked, and the facts stored with it.

    Raises
    ------
    FileNotFoundError, ValueError
        When a file is missing or damaged, or the two do not belong together.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     _ = save_model(f"{folder}/model.safetensors", GCN(7, 16, 2), dataset="mutag")
    ...     model, facts = load_model(f"{folder}/model.safetensors")
    >>> facts.network, facts.dataset
    ('gcn', 'mutag')
    """
    path = _checked_path(path)
    for file in (path, path.with_suffix(".json")):
        if not file.is_file():
            raise FileNotFoundError(f"there is no model at {path}: {file.name} is missing")
    facts = _read_facts(path.with_suffix(".json"))
    shapes = _read_shapes(path)
    try:
        wrong = _misfit(facts, shapes)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        raise ValueError(
            f"{path.with_suffix('.json')} does not describe a {facts.network}: {error}"
        ) from error
    if wrong:
        raise ValueError(
            f"the tensors in {path} are not those of the {facts.network} that "
            f"{path.with_suffix('.json').name} describes: {wrong}"
        )
    model = ARCHITECTURES[facts.network](**facts.config)
    model.load_state_dict(load_file(path))
    got = digest(model)
    if got != facts.digest:
        raise ValueError(
            f"{path} and {path.with_suffix('.json').name} do not belong together: the digest of "
            f"the weights must be {facts.digest} (got {got})"
        )
    return model.eval(), facts


def _are_numbers(scores: Any, *, or_none: bool = False) -> bool:
    """Whether scores are finite numbers by name."""
    return isinstance(scores, dict) and all(
        (or_none and score is None)
        or (type(score) in (int, float) and abs(score) <= sys.float_info.max)
        for score in scores.values()
    )


def _without_nan(
    metrics: Mapping[str, Mapping[str, float]],
) -> dict[str, dict[str, float | None]]:
    return {
        part: {name: value if math.isfinite(value) else None for name, value in scores.items()}
        for part, scores in metrics.items()
    }


def _checked_path(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    if path.suffix != ".safetensors":
        raise ValueError(f"the path of a model must end in '.safetensors' (got {str(path)!r})")
    return path


def _misfit(facts: ModelFacts, stored: Mapping[str, tuple[int, ...]]) -> str:
    """Why the described network cannot have tensors of these shapes; empty if it can.

    However many layers are claimed, only two are built, without allocating memory: all layers but
    the first have the same shapes.
    """
    config = dict(facts.config)
    layers = config.get("num_layers")
    further = max(layers - 2, 0) if isinstance(layers, int) else 0
    if further:
        config["num_layers"] = 2
    with torch.device("meta"):
        state = ARCHITECTURES[facts.network](**config).state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in state.items()}
    second = {name: shape for name, shape in shapes.items() if name.startswith("convs.1.")}
    count = len(shapes) + further * len(second)
    if count != len(stored):
        return f"{layers} layers have {count} tensors (got {len(stored)})"
    for at in range(2, 2 + further):
        shapes |= {name.replace("1", str(at), 1): shape for name, shape in second.items()}
    for name, shape in shapes.items():
        if stored.get(name) != shape:
            return f"{name!r} must have shape {shape} (got {stored.get(name, 'no such tensor')})"
    return ""


def _read_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """The shapes of the tensors in a file, from its header alone."""
    try:
        with safe_open(path, framework="pt") as file:
            names = file.keys()
            return {name: tuple(file.get_slice(name).get_shape()) for name in names}
    except (SafetensorError, OSError, ValueError) as error:
        raise ValueError(f"{path} is not a readable safetensors file: {error}") from error


def _read_facts(path: Path) -> ModelFacts:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is not readable as JSON: {error}") from error
    if not isinstance(content, dict) or content.get("format") != _FORMAT:
        got = content.get("format") if isinstance(content, dict) else type(content).__name__
        raise ValueError(f"{path} must describe a model in format {_FORMAT} (got {quoted(got)})")
    names = {f.name for f in fields(ModelFacts)}
    content = {key: value for key, value in content.items() if key != "format"}
    missing = {"network", "config", "digest"} - content.keys()
    if missing or content.keys() - names or not isinstance(content["config"], dict):
        wrong = sorted(missing or content.keys() - names or {"config"})
        raise ValueError(
            f"{path} does not describe a model: {quoted(wrong[0])} is missing or not valid"
        )
    if content["network"] not in list(ARCHITECTURES):
        valid = ", ".join(map(repr, ARCHITECTURES))
        raise ValueError(
            f"the network in {path} must be one of {valid}: {quoted(content['network'])}"
        )
    try:
        return ModelFacts(**content)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path} does not describe a model: {error}") from error
