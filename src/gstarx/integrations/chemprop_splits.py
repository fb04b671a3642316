"""The split of a training of Chemprop, which writes it as positions in the table."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from torch_geometric.data import Data

from gstarx.models import SplitRecord
from gstarx.registry import reader


def recorded_split(path: Path) -> SplitRecord | None:
    """The split beside a model of Chemprop, or ``None`` where it cannot be known for certain.

    ``splits.json`` counts rows of the table that ``config.toml`` names. Their molecules are looked
    up in that table, because the rows of the table to explain may be others. A table that was
    written after the split may have other rows as well, and says nothing.
    """
    for folder in path.absolute().parents[:4]:
        splits, config = folder / "splits.json", folder / "config.toml"
        if splits.is_file() and config.is_file():
            try:
                return _read(splits, config.read_text(encoding="utf-8"), path)
            except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError):
                return None  # not Chemprop's, or of another version
    return None


def _read(splits: Path, settings: str, weights: Path) -> SplitRecord | None:
    sides = _of_the_model(json.loads(splits.read_text(encoding="utf-8")), weights)
    table = _table(_listed(settings, "data-path"), splits)
    if sides is None or table is None or _listed(settings, "no-header-row") == ["true"]:
        return None
    opened = reader("rows")(table)
    column = (_listed(settings, "smiles-columns") or [opened.header[0]])[0]
    rows = [getattr(row, "cells", {}).get(column) for row in opened.rows]
    graphs = [Data(smiles=smiles) for smiles in rows]
    return SplitRecord.of(graphs, sides)


def _of_the_model(splits: Any, weights: Path) -> dict[str, list[int]] | None:
    """The split of the replicate that a model belongs to."""
    names = (re.fullmatch(r"replicate_(\d+)", part) for part in weights.absolute().parts)
    number = next((int(found[1]) for found in names if found), 0 if len(splits) == 1 else None)
    if number is None:
        return None
    return {side: [int(at) for at in splits[number][side]] for side in ("train", "val", "test")}


def _table(named: list[str], splits: Path) -> Path | None:
    """The table of a training, from where it was started or beside its output."""
    for folder in (Path.cwd(), splits.parent, splits.parent.parent):
        table = folder / named[0]
        if table.is_file():
            return table if table.stat().st_mtime <= splits.stat().st_mtime else None
    return None


def _listed(text: str, option: str) -> list[str]:
    """The values of an option, which Chemprop writes as a list without quotes."""
    line = re.search(rf"^\s*{option}\s*=\s*\[?(.*?)\]?\s*$", text, re.MULTILINE)
    return [value.strip(" '\"") for value in line[1].split(",")] if line else []
