"""Models on disk: weights as safetensors, and a JSON file that describes them."""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Mapping
from dataclasses import asdict, field
from pathlib import Path
from typing import Annotated, Any

import torch
from pydantic import BeforeValidator, Field, StrictInt, ValidationError
from pydantic.dataclasses import dataclass
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from safetensors.torch import save as to_bytes
from torch import nn

from gstarx._internal.files import write_atomically
from gstarx._internal.messages import quoted
from gstarx.metrics import Reference, as_reference
from gstarx.models.networks import GAT, GCN, GIN, Network
from gstarx.models.splits import SplitRecord
from gstarx.registry import MOLECULE_READERS, TASKS

#: Networks by the name under which they are stored and trained.
ARCHITECTURES: dict[str, type[Network]] = {"gcn": GCN, "gin": GIN, "gat": GAT}
_FORMAT = 1


def _reference(given: Any) -> Reference | None:
    try:
        return as_reference(given)
    except TypeError as error:  # pydantic expects a ValueError
        raise ValueError(str(error)) from error


def _among(valid: Mapping[str, Any]) -> BeforeValidator:
    def check(given: Any) -> Any:
        if given not in list(valid):
            raise ValueError(f"it must be one of {', '.join(map(repr, valid))}")
        return given

    return BeforeValidator(check)


def _split(given: Any) -> Any:
    if given is not None:
        SplitRecord.read(given)
    return given


def _without_nan(metrics: Any) -> Any:
    """Scores that are not defined are nan in memory, and nothing in JSON."""
    if not isinstance(metrics, Mapping):
        return metrics
    return {
        part: {
            name: None if isinstance(value, float) and math.isnan(value) else value
            for name, value in scores.items()
        }
        if isinstance(scores, Mapping)
        else scores
        for part, scores in metrics.items()
    }


_Score = Annotated[float, Field(strict=True, allow_inf_nan=False)]


@dataclass(frozen=True, config={"extra": "forbid"})
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
    smiles_column, name_column
        Those of molecules and of their names, if they were named.
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

    network: Annotated[str, _among(ARCHITECTURES)]
    config: dict[str, Any]
    digest: str
    dataset: str | None = None
    dataset_digest: str | None = None
    seed: StrictInt | None = None
    accuracy: dict[str, _Score] | None = None
    notes: dict[str, Any] = field(default_factory=dict)
    task: Annotated[str, _among(TASKS)] = "classification"
    class_names: tuple[str, ...] = ()
    target_names: tuple[str, ...] = ()
    label: str | None = None
    smiles_column: str | None = None
    name_column: str | None = None
    features: str | None = None
    salts: str | None = None
    reference: Annotated[Reference | None, BeforeValidator(_reference)] = None
    metrics: Annotated[
        dict[str, dict[str, _Score | None]] | None, BeforeValidator(_without_nan)
    ] = None
    split: Annotated[dict[str, str] | None, BeforeValidator(_split)] = None


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


def save_model(path: str | os.PathLike[str], model: nn.Module, **facts: Any) -> ModelFacts:
    """Store a network: ``<name>.safetensors`` for the weights, ``<name>.json`` for the facts.

    Each file is written completely or not at all. Existing files are replaced.

    Parameters
    ----------
    path
        The file; its name must end in ``.safetensors``.
    model
        A :class:`GCN`, :class:`GIN` or :class:`GAT`.
    **facts
        What else to remember: fields of :class:`ModelFacts`, from ``dataset`` on. ``split`` may
        also be a :class:`~gstarx.models.splits.SplitRecord`, and scores in ``metrics`` nan.

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
    if isinstance(facts.get("split"), SplitRecord):
        facts["split"] = facts["split"].written()
    found = _facts({**facts, **_of_model(model, known[type(model)])}, "the facts cannot be stored")
    text = json.dumps({"format": _FORMAT, **asdict(found)}, indent=2, allow_nan=False)
    tensors = {name: t.detach().cpu().contiguous() for name, t in model.state_dict().items()}
    write_atomically(path, to_bytes(tensors))
    write_atomically(path.with_suffix(".json"), f"{text}\n".encode())
    return found


def _of_model(model: Network, network: str) -> dict[str, Any]:
    return {"network": network, "config": model.config, "digest": digest(model)}


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
    model.mode = TASKS[facts.task]
    features = facts.features or facts.dataset
    model.features = features if features in MOLECULE_READERS else None
    return model.eval(), facts


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
    if not isinstance(content, dict) or content.pop("format", None) != _FORMAT:
        raise ValueError(
            f"{path} must describe a model in format {_FORMAT} (got {quoted(content)})"
        )
    return _facts(content, f"{path} does not describe a model")


def _facts(content: dict[str, Any], wrong: str) -> ModelFacts:
    try:
        return ModelFacts(**content)
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(map(str, problem["loc"]))
        words = problem["msg"].removeprefix("Value error, ")
        raise ValueError(f"{wrong}: {where}: {words} (got {quoted(problem['input'])})") from error
