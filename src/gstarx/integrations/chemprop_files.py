"""Files of Chemprop 2, read without running what is in them."""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch import nn

from gstarx._internal.factories import in_one_line
from gstarx._internal.files import check_expanded_size
from gstarx._internal.optional import require

#: What files of Chemprop hold besides its own layers. All of it is plain data or plain arithmetic.
_HARMLESS = {
    "argparse.Namespace",
    "torchmetrics.metric.jit_distributed_available",
    *(
        f"torchmetrics.utilities.data.dim_zero_{kind}"
        for kind in ("cat", "max", "mean", "min", "sum")
    ),
}
#: Dictionaries of another class, which are read as plain ones.
_DICTIONARIES = {
    "lightning.fabric.utilities.data.AttributeDict",
    "lightning.pytorch.utilities.parsing.AttributeDict",
}
#: Modules of which layers and enumerations are read.
_LAYERS = ("chemprop.nn.", "torch.nn.modules.")
#: Options of Chemprop that change which graph a SMILES becomes.
_READING = ("keep_h", "add_h", "ignore_stereo")
#: Weights that only training needs.
_OF_TRAINING = ("metrics.", "predictor.criterion.")


@dataclass(frozen=True)
class Loaded:
    """A model of Chemprop from a file, and what the file and those beside it say of it.

    Attributes
    ----------
    mpnn
        The model.
    target_names
        The names of its targets, if the file has them.
    reading
        Options of ``chemprop.utils.make_mol`` that it was trained with.
    """

    mpnn: Any
    target_names: tuple[str, ...]
    reading: tuple[str, ...] = ()


def load_checkpoint(path: Any, *, trust: bool = False) -> Loaded:
    """Read a ``.pt`` or ``.ckpt`` of Chemprop 2.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or it is not a model of one molecule of Chemprop 2.
    """
    path = Path(path)
    if not path.is_file():
        raise FileNotFoundError(f"there is no file of weights at {path}")
    models = require("chemprop.models", extra="chemprop")
    content = _read(path, trust=trust)
    if isinstance(content, Mapping) and {"args", "state_dict"} <= content.keys():
        raise ValueError(_version_1(path))
    if isinstance(content, models.MPNN):
        return _loaded(content, path, ())
    if not isinstance(content, Mapping) or not {"hyper_parameters", "state_dict"} <= content.keys():
        held = ", ".join(map(str, content)) if isinstance(content, Mapping) else type(content)
        raise ValueError(
            f"{path} is not a model of Chemprop: it must contain hyper_parameters and state_dict "
            f"(got {held})"
        )
    settings, weights = dict(content["hyper_parameters"]), content["state_dict"]
    if "atom_predictor" in settings or "blocks" in (settings.get("message_passing") or {}):
        raise ValueError(
            f"{path} is a model of several molecules, or of atoms and bonds: only models of one "
            "molecule can be explained"
        )
    try:
        parts = {key: _built(dict(settings[key]), key) for key in ("message_passing", "agg")}
        predictor = dict(settings["predictor"]) | {"criterion": None}
        parts["predictor"] = _built(predictor, "predictor")
        mpnn = models.MPNN(
            **parts,
            batch_norm=bool(settings.get("batch_norm")),
            X_d_transform=settings.get("X_d_transform"),
        )
        _fill(mpnn, weights)
    except (KeyError, TypeError, RuntimeError, AttributeError) as error:
        raise ValueError(
            f"{path} does not fit the installed Chemprop: {in_one_line(error)}"
        ) from error
    return _loaded(mpnn, path, tuple(map(str, content.get("output_columns") or ())))


def _loaded(mpnn: Any, path: Path, names: tuple[str, ...]) -> Loaded:
    """A model with what is written beside it, if the file itself has no names of targets."""
    written = _written(path)
    if not names and len(written.target_names) == int(mpnn.predictor.n_tasks):
        # a name with a comma would be counted as two
        names = written.target_names
    return Loaded(mpnn.eval(), names, written.reading)


@dataclass(frozen=True)
class _Written:
    """What the settings beside a model say of it."""

    target_names: tuple[str, ...] = ()
    reading: tuple[str, ...] = ()


def _written(path: Path) -> _Written:
    """The settings of the training, which Chemprop writes beside models.

    They are in the directory of its output, of which ``model_0/best.pt`` and
    ``model_0/checkpoints/best.ckpt`` are parts. A file that is not Chemprop's says nothing.
    """
    for folder in path.absolute().parents[:3]:
        if (folder / "config.toml").is_file():
            text = (folder / "config.toml").read_text(encoding="utf-8", errors="replace")
            return _Written(_listed(text), tuple(o for o in _READING if _is_on(text, o)))
    return _Written()


def _is_on(text: str, option: str) -> bool:
    name = option.replace("_", "-")
    return re.search(rf"^\s*{name}\s*=\s*true\s*$", text, re.MULTILINE) is not None


def _listed(text: str) -> tuple[str, ...]:
    """The names of the target columns, which Chemprop writes as a list without quotes."""
    line = re.search(r"^\s*target-columns\s*=\s*\[(.*)\]\s*$", text, re.MULTILINE)
    return tuple(name.strip(" '\"") for name in line[1].split(",")) if line else ()


def _read(path: Path, *, trust: bool) -> Any:
    check_expanded_size(path)
    if any(name.startswith("chemprop.nn.loss.") for name in _named(path)):
        raise ValueError(
            f"{path} is a model of Chemprop 2.0, which later versions cannot read: convert it with "
            f"'chemprop convert -c v2_0_to_v2_1 -i {path.name} -o {path.stem}_v2_1.pt'"
        )
    try:
        if trust:
            return torch.load(path, map_location="cpu", weights_only=False)
        named = torch.serialization.get_unsafe_globals_in_checkpoint(path)
        allowed: list[Any] = [
            (dict if name in _DICTIONARIES else _resolved(name), name)
            for name in named
            if _is_harmless(name)
        ]
        with torch.serialization.safe_globals(allowed):
            return torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:
        # whatever a strange file leads to
        strange = [] if trust else _strange(path)
        if "argparse.Namespace" in (() if trust else _named(path)):
            raise ValueError(_version_1(path)) from error
        if strange:
            raise ValueError(
                f"{path} holds more than weights and Chemprop's own layers ({', '.join(strange)}): "
                "if you trust whoever made it, pass trust=True, or --trust on the command line"
            ) from error
        raise ValueError(
            f"{path} is not a readable file of weights: {in_one_line(error)}"
        ) from error


def _named(path: Path) -> list[str]:
    try:
        return list(torch.serialization.get_unsafe_globals_in_checkpoint(path))
    except Exception:
        return []


def _strange(path: Path) -> list[str]:
    return sorted(name for name in _named(path) if not _is_harmless(name))[:5]


def _version_1(path: Path) -> str:
    return (
        f"{path} is a checkpoint of Chemprop 1, which version 2 cannot run: convert it with "
        f"'chemprop convert -i {path.name} -o {path.stem}_v2.pt'"
    )


def _is_harmless(name: str) -> bool:
    """Whether a name in a file stands for a layer, an enumeration, or one of the known names."""
    if name in _HARMLESS | _DICTIONARIES:
        return True
    if not name.startswith(_LAYERS):
        return False
    named = _resolved(name)
    return inspect.isclass(named) and issubclass(named, nn.Module | Enum)


def _resolved(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    return getattr(require(module, extra="chemprop"), attribute, None)


def _built(settings: dict[str, Any], part: str) -> Any:
    """A part of the model from its settings; its class must be one of Chemprop's layers."""
    kind = settings.pop("cls")
    if not inspect.isclass(kind) or not issubclass(kind, nn.Module):
        raise TypeError(f"{part} must be a layer (got {kind!r})")
    return kind(**settings)


def _fill(mpnn: nn.Module, weights: Mapping[str, Any]) -> None:
    """Load all weights but those that only training needs."""
    wanted = {k: v for k, v in weights.items() if not k.startswith(_OF_TRAINING)}
    keys = mpnn.load_state_dict(wanted, strict=False)
    missing = [key for key in keys.missing_keys if not key.startswith(_OF_TRAINING)]
    if missing or keys.unexpected_keys:
        wrong = (missing or keys.unexpected_keys)[0]
        raise RuntimeError(f"the weights do not belong to the model described ({wrong})")
