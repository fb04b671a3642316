"""Files of Chemprop 2, read without running what is in them, and what is written beside them."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gstarx._internal.files import check_expanded_size
from gstarx._internal.imports import require
from gstarx._internal.messages import in_one_line
from gstarx.models import SplitRecord
from gstarx.registry import reader

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
class Checkpoint:
    """A model of Chemprop from a file, and what the file and those beside it say of it.

    Attributes
    ----------
    mpnn
        The model.
    target_names
        The names of its targets, if they are known.
    reading
        Options of ``chemprop.utils.make_mol`` that it was trained with.
    split
        Which molecules it was trained on, if that is known for certain.
    """

    mpnn: Any
    target_names: tuple[str, ...]
    reading: tuple[str, ...]
    split: SplitRecord | None


def load_checkpoint(path: Any, *, trust: bool = False) -> Checkpoint:
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
    names: tuple[str, ...] = ()
    if isinstance(content, models.MPNN):
        mpnn = content
    elif isinstance(content, Mapping) and {"args", "state_dict"} <= content.keys():
        raise ValueError(_version_1(path))
    elif isinstance(content, Mapping) and {"hyper_parameters", "state_dict"} <= content.keys():
        mpnn = _assembled(models, path, dict(content["hyper_parameters"]), content["state_dict"])
        names = tuple(map(str, content.get("output_columns") or ()))
    else:
        held = ", ".join(map(str, content)) if isinstance(content, Mapping) else type(content)
        raise ValueError(
            f"{path} is not a model of Chemprop: it must contain hyper_parameters and state_dict "
            f"(got {held})"
        )
    folder, settings = _training(path)
    written = settings.get("target-columns", ())
    # a name with a comma would be counted as two
    if not names and len(written) == int(mpnn.predictor.n_tasks):
        names = tuple(written)
    reading = tuple(o for o in _READING if settings.get(o.replace("_", "-")) == ["true"])
    try:
        split = _recorded_split(folder / "splits.json", settings, path)
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
        split = None  # not Chemprop's, or of another version
    return Checkpoint(mpnn.eval(), names, reading, split)


def _read(path: Path, *, trust: bool) -> Any:
    """What is in a file; without ``trust`` only tensors, plain containers and known layers."""
    check_expanded_size(path)
    try:
        named = list(torch.serialization.get_unsafe_globals_in_checkpoint(path))
    except Exception:  # whatever a strange file leads to: reading it fails as well
        named = []
    if any(name.startswith("chemprop.nn.loss.") for name in named):
        raise ValueError(
            f"{path} is a model of Chemprop 2.0, which later versions cannot read: convert it with "
            f"'chemprop convert -c v2_0_to_v2_1 -i {path.name} -o {path.stem}_v2_1.pt'"
        )
    allowed = {} if trust else {name: _harmless(name) for name in named}
    if strange := sorted(name for name, found in allowed.items() if found is None)[:5]:
        if "argparse.Namespace" in named:
            raise ValueError(_version_1(path))
        raise ValueError(
            f"{path} holds more than weights and Chemprop's own layers ({', '.join(strange)}): "
            "if you trust whoever made it, pass trust=True, or --trust on the command line"
        )
    try:
        with torch.serialization.safe_globals([(found, name) for name, found in allowed.items()]):
            return torch.load(path, map_location="cpu", weights_only=not trust)
    except Exception as error:
        raise ValueError(
            f"{path} is not a readable file of weights: {in_one_line(error)}"
        ) from error


def _harmless(name: str) -> Any:
    """What a name in a file stands for, ``None`` unless it is a layer or known to be harmless."""
    if name in _DICTIONARIES:
        return dict
    if name not in _HARMLESS and not name.startswith(_LAYERS):
        return None
    module, _, attribute = name.rpartition(".")
    found = getattr(require(module, extra="chemprop"), attribute, None)
    is_layer = inspect.isclass(found) and issubclass(found, nn.Module | Enum)
    return found if name in _HARMLESS or is_layer else None


def _version_1(path: Path) -> str:
    return (
        f"{path} is a checkpoint of Chemprop 1, which version 2 cannot run: convert it with "
        f"'chemprop convert -i {path.name} -o {path.stem}_v2.pt'"
    )


def _assembled(
    models: Any, path: Path, settings: dict[str, Any], weights: Mapping[str, Any]
) -> Any:
    """A model from the settings of its parts and all weights but those that only training needs."""
    if "atom_predictor" in settings or "blocks" in (settings.get("message_passing") or {}):
        raise ValueError(
            f"{path} is a model of several molecules, or of atoms and bonds: only models of one "
            "molecule can be explained"
        )
    try:
        mpnn = models.MPNN(
            _built(settings, "message_passing"),
            _built(settings, "agg"),
            _built(settings, "predictor", criterion=None),
            batch_norm=bool(settings.get("batch_norm")),
            X_d_transform=settings.get("X_d_transform"),
        )
        wanted = {k: v for k, v in weights.items() if not k.startswith(_OF_TRAINING)}
        keys = mpnn.load_state_dict(wanted, strict=False)
        missing = [key for key in keys.missing_keys if not key.startswith(_OF_TRAINING)]
        if wrong := missing or keys.unexpected_keys:
            raise RuntimeError(f"the weights do not belong to the model described ({wrong[0]})")
    except (KeyError, TypeError, RuntimeError, AttributeError) as error:
        raise ValueError(
            f"{path} does not fit the installed Chemprop: {in_one_line(error)}"
        ) from error
    return mpnn


def _built(settings: Mapping[str, Any], part: str, **more: Any) -> Any:
    """A part of a model from its settings; its class must be one of Chemprop's layers."""
    options = dict(settings[part]) | more
    kind = options.pop("cls")
    if not inspect.isclass(kind) or not issubclass(kind, nn.Module):
        raise TypeError(f"{part} must be a layer (got {kind!r})")
    return kind(**options)


def _training(path: Path) -> tuple[Path, dict[str, list[str]]]:
    """The directory of a training, and its settings, which Chemprop writes as ``config.toml``.

    It is above the files of models, such as ``replicate_0/model_0/checkpoints/best.ckpt``. Values
    are lists without quotes, which no reader of TOML accepts.
    """
    for folder in path.absolute().parents[:4]:
        if (folder / "config.toml").is_file():
            text = (folder / "config.toml").read_text(encoding="utf-8", errors="replace")
            lines = re.findall(r"^[ \t]*([\w-]+)\s*=\s*\[?(.*?)\]?[ \t]*$", text, re.MULTILINE)
            return folder, {
                option: [value.strip(" '\"") for value in values.split(",")]
                for option, values in lines
            }
    return path.parent, {}


def _recorded_split(
    splits: Path, settings: Mapping[str, list[str]], weights: Path
) -> SplitRecord | None:
    """The split of a training, or ``None`` where it cannot be known for certain.

    ``splits.json`` counts rows of the table that the settings name. Their molecules are looked up
    in that table, because the rows of the table to explain may be others. A table that was written
    after the split may have other rows as well, and says nothing.
    """
    names = (re.fullmatch(r"replicate_(\d+)", part) for part in weights.absolute().parts)
    replicates = json.loads(splits.read_text(encoding="utf-8"))
    only = 0 if len(replicates) == 1 else None
    number = next((int(found[1]) for found in names if found), only)
    # the training may have been started in this directory, or beside its output
    places = (Path.cwd(), splits.parent, splits.parent.parent)
    tables = (folder / settings["data-path"][0] for folder in places)
    table = next((table for table in tables if table.is_file()), None)
    if number is None or table is None or settings.get("no-header-row") == ["true"]:
        return None
    if table.stat().st_mtime > splits.stat().st_mtime:
        return None
    sides = {
        side: [int(at) for at in replicates[number][side]] for side in ("train", "val", "test")
    }
    opened = reader("rows")(table)
    column = settings.get("smiles-columns", opened.header)[0]
    smiles = [getattr(row, "cells", {}).get(column) for row in opened.rows]
    return SplitRecord.of([Data(smiles=one) for one in smiles], sides)
