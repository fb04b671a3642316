"""A cache of processed datasets on disk: built once, read in seconds."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor
from torch_geometric.data import Data

from gstarx._internal.files import atomic_path

_LOG = logging.getLogger(__name__)

#: Incremented whenever older files would be read incorrectly.
_FORMAT = 1
_SIZES = ":sizes"


class _Damaged(Exception):
    """A stored file is not what was written."""


def cached_graphs(
    name: str,
    sources: Sequence[Path],
    options: dict[str, Any],
    version: int,
    build: Callable[[], list[Data]],
) -> list[Data]:
    """The graphs that ``build`` returns, from disk if they were built before.

    The key of a file is the content of the sources, the options and the version: if any of them
    changes, the graphs are built again. The file holds tensors and JSON, never code. A damaged
    file is renamed and built again. If the directory is not writable, nothing is stored.

    Parameters
    ----------
    name
        Name of the dataset, the beginning of the file name.
    sources
        The raw files. Only their content counts, not their paths or dates.
    options
        What else the graphs depend on; anything that JSON can represent.
    version
        Version of the code in ``build``.
    build
        Builds the graphs. All must have the same attributes: tensors, which may differ in length
        along the dimension PyG concatenates, or strings, numbers and lists that JSON preserves.

    Returns
    -------
    list of Data
        Equal graphs, whether built or read. No tensor shares its memory with another graph.

    Notes
    -----
    Files lie in the directory ``GSTARX_CACHE``, by default ``~/.cache/gstarx/processed``. They may
    be deleted at any time.
    """
    key = _key(name, sources, options, version)
    plain = re.sub(r"[^\w.-]", "_", name)
    path = cache_directory() / f"{plain}-{key[:24]}.safetensors"
    try:
        return _read(path, key)
    except FileNotFoundError:
        pass
    except _Damaged as error:
        _set_aside(path, error)
    except OSError as error:
        _LOG.warning("cannot read %s (%s): building %s again", path, error, name)
    graphs = build()
    if graphs:
        tensors, layout = _pack(graphs)
        try:
            _write(path, tensors, {"key": key, "count": len(graphs), "layout": layout})
        except (OSError, SafetensorError) as error:
            _LOG.warning("cannot store %s in %s: %s", name, path.parent, error)
    return graphs


def cache_directory() -> Path:
    """Where processed graphs are kept: ``GSTARX_CACHE``, or ``~/.cache/gstarx/processed``."""
    return Path(os.environ.get("GSTARX_CACHE") or Path.home() / ".cache" / "gstarx" / "processed")


def _key(name: str, sources: Sequence[Path], options: dict[str, Any], version: int) -> str:
    digests = []
    for source in sources:
        with open(source, "rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    content = json.dumps([_FORMAT, name, digests, options, version], sort_keys=True)
    return hashlib.sha256(content.encode()).hexdigest()


def _pack(graphs: Sequence[Data]) -> tuple[dict[str, Tensor], dict[str, dict[str, Any]]]:
    """The values of each attribute concatenated, and what is needed to split them again."""
    stores = [graph.to_dict() for graph in graphs]
    keys = list(stores[0])
    for number, store in enumerate(stores):
        if set(store) != set(keys):
            raise TypeError(
                f"graphs to be stored must have the same attributes: graph 0 has {keys}, "
                f"graph {number} has {list(store)}"
            )
    tensors: dict[str, Tensor] = {}
    layout: dict[str, dict[str, Any]] = {}
    for key in keys:
        values = [store[key] for store in stores]
        if any(isinstance(value, Tensor) for value in values):
            dim = int(graphs[0].__cat_dim__(key, values[0]))
            tensors[key], tensors[key + _SIZES] = _concatenated(key, values, dim)
            layout[key] = {"kind": "tensor", "rank": values[0].dim(), "dim": dim}
        else:
            tensors[key] = _as_json(key, values)
            layout[key] = {"kind": "json"}
    return tensors, layout


def _concatenated(key: str, values: Sequence[Tensor], dim: int) -> tuple[Tensor, Tensor]:
    kinds = {
        f"{type(v).__name__} {getattr(v, 'dtype', '')} {getattr(v, 'ndim', '')}" for v in values
    }
    if len(kinds) != 1:
        raise TypeError(f"{key!r} must be of one type and rank in all graphs (got {kinds})")
    if not values[0].dim():
        return torch.stack(list(values)), torch.ones(len(values), dtype=torch.long)
    try:
        joined = torch.cat(list(values), dim=dim)
    except RuntimeError as error:
        raise TypeError(f"{key!r} differs between graphs in more than its length") from error
    return joined.contiguous(), torch.tensor([value.shape[dim] for value in values])


def _as_json(key: str, values: Sequence[Any]) -> Tensor:
    try:
        text = json.dumps(values)
        round_trips = json.loads(text) == values
    except TypeError:
        round_trips = False
    if not round_trips:
        raise TypeError(
            f"{key!r} must hold tensors, strings, numbers or lists of these to be stored "
            f"(got {type(values[0]).__name__})"
        )
    return torch.frombuffer(bytearray(text.encode()), dtype=torch.uint8)


def _checksum(tensor: Tensor) -> int:
    content: Any = tensor.reshape(-1).view(torch.uint8).numpy()
    return zlib.crc32(content)


def _write(path: Path, tensors: dict[str, Tensor], about: dict[str, Any]) -> None:
    """Write to a temporary file, then rename it: a reader sees a complete file or none."""
    about["checksums"] = {key: _checksum(tensor) for key, tensor in tensors.items()}
    with atomic_path(path) as temporary:
        save_file(tensors, temporary, metadata={"about": json.dumps(about)})


def _read(path: Path, key: str) -> list[Data]:
    if not path.is_file():
        raise FileNotFoundError(path)
    try:
        with safe_open(path, framework="pt") as file:
            about = json.loads(file.metadata()["about"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        if about["key"] != key:
            raise _Damaged("it belongs to other data")
        if about["checksums"] != {name: _checksum(tensor) for name, tensor in tensors.items()}:
            raise _Damaged("its checksums are wrong")
        return _unpack(tensors, about["layout"], about["count"])
    except (SafetensorError, KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _Damaged(str(error)) from error


def _unpack(
    tensors: dict[str, Tensor], layout: dict[str, dict[str, Any]], count: int
) -> list[Data]:
    columns: dict[str, list[Any]] = {}
    for key, how in layout.items():
        if how["kind"] == "json":
            columns[key] = json.loads(tensors[key].numpy().tobytes())
        elif how["rank"] == 0:
            columns[key] = list(tensors[key].clone())
        else:
            parts = torch.split(tensors[key], tensors[key + _SIZES].tolist(), dim=how["dim"])
            # A view would carry the tensors of all graphs along when one graph is pickled.
            columns[key] = [part.clone(memory_format=torch.contiguous_format) for part in parts]
    if any(len(column) != count for column in columns.values()):
        raise _Damaged(f"it does not hold {count} graphs")
    rows = zip(*columns.values(), strict=True)
    return [Data.from_dict(dict(zip(columns, row, strict=True))) for row in rows]


def _set_aside(path: Path, why: Exception) -> None:
    _LOG.warning("%s is damaged (%s): set aside and built again", path, why)
    try:
        os.replace(path, path.with_suffix(".damaged"))
    except OSError as error:
        _LOG.warning("cannot set %s aside: %s", path, error)
