"""Which network is explained: one that ships, stored weights, or a user's own."""

from __future__ import annotations

import importlib
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gstarx._internal.expanded_size import check_expanded_size
from gstarx._internal.quoting import quoted, shortened
from gstarx._internal.suggestions import unknown
from gstarx.cli.console import CommandError, WrongUse
from gstarx.registry import DATASETS, NETWORKS

if TYPE_CHECKING:
    from torch import nn


@dataclass(frozen=True)
class ChosenNetwork:
    """A model and what is known of it.

    Attributes
    ----------
    model
        In evaluation mode.
    name
        What to call it.
    dataset
        The dataset it was trained on, where that is known.
    facts
        What else there is to say: network, digest, accuracy ...
    path
        The file of its weights, where runs can load it from.
    """

    model: Any
    name: str
    dataset: str | None
    facts: dict[str, str]
    path: Path | None = None


def choose_network(
    model: str | None, weights: Path | None, *, default: str | None
) -> ChosenNetwork:
    """The network that the options mean.

    Parameters
    ----------
    model
        A name of a network that ships, ``module:factory``, or nothing.
    weights
        A file, or nothing.
    default
        The dataset in question, whose own network is taken when nothing is said.
    """
    if model is not None and ":" in model:
        return _own(model, weights)
    if weights is not None:
        if model is not None:
            raise WrongUse(
                f"--weights goes with --model module:factory or alone (got --model {model})"
            )
        return _stored(weights)
    name = model or default
    if name is None:
        raise WrongUse("say which network: --model or --weights")
    return _shipped(name, asked=model is not None)


def shipped_path(name: str) -> Path:
    """The file of a network that ships."""
    from gstarx import models

    full = f"{name}-gcn" if f"{name}-gcn" in NETWORKS else name
    return Path(models.__file__).parent / "trained" / f"{full}.safetensors"


def _shipped(name: str, *, asked: bool) -> ChosenNetwork:
    valid = {*NETWORKS, *(full.removesuffix("-gcn") for full in NETWORKS)}
    if name not in valid:
        if asked:
            raise WrongUse(unknown("network", name, NETWORKS))
        raise CommandError(
            f"no network for {name!r} comes with the package: say --weights file or --model "
            "module:factory, or train one with 'gstarx train' "
            f"(those that come: {', '.join(NETWORKS)})"
        )
    return _stored(shipped_path(name))


def _stored(path: Path) -> ChosenNetwork:
    from gstarx import models

    if not path.is_file():
        raise CommandError(f"there is no file of weights at {path}")
    if path.suffix == ".safetensors":
        network, known = models.load_model(path)
        facts = {"network": known.network.upper(), "weights": known.digest[:16]}
        if known.accuracy:
            facts |= {f"{part} accuracy": f"{got:.3f}" for part, got in known.accuracy.items()}
        return ChosenNetwork(network, path.stem, known.dataset, facts, path)
    if path.suffix != ".pth":
        raise CommandError(
            f"weights alone must be a .safetensors of 'gstarx train' or a published .pth (got "
            f"{path}): with your own model say --model module:factory as well"
        )
    published = models.load_published_checkpoint(path)
    facts = {"network": type(published).__name__, "weights": models.digest(published)[:16]}
    # published files lie in a directory that is named after their dataset
    folder = path.absolute().parent.name
    dataset = folder if folder in DATASETS else None
    name = path.stem if dataset is None else f"{dataset} {path.stem}"
    return ChosenNetwork(published, name, dataset, facts, path)


def _own(reference: str, weights: Path | None) -> ChosenNetwork:
    module_name, _, attribute = reference.partition(":")
    model = _made(reference, module_name, attribute)
    if weights is not None:
        _fill(model, weights)
    if hasattr(model, "eval"):
        model.eval()
    facts = {"network": type(model).__name__, "from": reference}
    if weights is not None:
        facts["weights"] = weights.name
    return ChosenNetwork(model, reference, None, facts)


def _made(reference: str, module_name: str, attribute: str) -> Any:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)  # as for ``python -m``
    try:
        found: Any = importlib.import_module(module_name)
    except Exception as error:
        raise CommandError(
            f"--model {reference}: importing {module_name!r} failed: {_said(error)}"
        ) from error
    for part in attribute.split("."):
        if not hasattr(found, part):
            names = [name for name in dir(found) if not name.startswith("_")]
            message = unknown(f"name in {module_name!r}", part, names[:30])
            raise CommandError(f"--model {reference}: {message}")
        found = getattr(found, part)
    if not callable(found):
        raise CommandError(f"--model {reference}: it must be a function (got {quoted(found)})")
    try:
        made = found()
    except Exception as error:
        raise CommandError(f"--model {reference}: the factory failed: {_said(error)}") from error
    if not callable(made):
        raise CommandError(
            f"--model {reference}: the factory must return a model (got {quoted(made)})"
        )
    return made


def _fill(model: nn.Module, weights: Path) -> None:
    """Load a state dictionary, never a pickle of anything else."""
    import torch
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    if not hasattr(model, "load_state_dict"):
        raise CommandError(f"a {type(model).__name__} cannot take --weights: it is no torch module")
    check_expanded_size(weights)
    try:
        if weights.suffix == ".safetensors":
            state: Any = load_file(weights)
        else:
            state = torch.load(weights, map_location="cpu", weights_only=True)
    except FileNotFoundError as error:
        raise CommandError(f"there is no file of weights at {weights}") from error
    except (SafetensorError, OSError, RuntimeError, ValueError, EOFError) as error:
        raise CommandError(f"{weights} is no readable file of weights: {_said(error)}") from error
    except Exception as error:  # pickle.UnpicklingError and whatever a strange file leads to
        raise CommandError(f"{weights} holds more than weights: {_said(error)}") from error
    if isinstance(state, dict) and isinstance(state.get("state_dict"), dict):
        state = state["state_dict"]
    try:
        model.load_state_dict(state)
    except (RuntimeError, TypeError, AttributeError) as error:
        raise CommandError(
            f"the weights in {weights} do not fit {type(model).__name__}: {_said(error)}"
        ) from error


def _said(error: Exception) -> str:
    """An error in one line."""
    shown = shortened(" ".join(str(error).split()), 400)
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__
