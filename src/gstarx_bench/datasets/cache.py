"""A cache of processed datasets on disk: built once, read in seconds."""

from __future__ import annotations

import hashlib
import io
import json
import logging
import os
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.data.collate import collate
from torch_geometric.data.separate import separate

from gstarx._internal.files import write_atomically

_LOG = logging.getLogger(__name__)

#: Incremented whenever older files would be read incorrectly.
_FORMAT = 2
_DIGEST = hashlib.sha256().digest_size


def cached_graphs(
    name: str,
    sources: Sequence[Path],
    options: dict[str, Any],
    version: int,
    build: Callable[[], list[Data]],
) -> list[Data]:
    """The graphs that ``build`` returns, from disk if they were built before.

    The key of a file is the content of the sources, the options and the version: if any of them
    changes, the graphs are built again. The file holds tensors, text and lists, never code. A
    damaged file is built again. If the directory is not writable, nothing is stored.

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
        along the dimension PyG concatenates, strings, or lists of strings and numbers.

    Returns
    -------
    list of Data
        Equal graphs, whether built or read. No tensor shares its memory with another graph.

    Notes
    -----
    Files lie in the directory ``GSTARX_CACHE``, by default ``~/.cache/gstarx/processed``. They may
    be deleted at any time.
    """
    path = cache_directory() / _file_name(name, sources, options, version)
    try:
        return _read(path)
    except FileNotFoundError:
        pass
    except Exception as error:  # a damaged file may fail in any way
        _LOG.warning("cannot read %s (%s): building %s again", path, error, name)
    graphs = build()
    if graphs:
        content = _packed(graphs)
        try:
            write_atomically(path, content)
        except OSError as error:
            _LOG.warning("cannot store %s in %s: %s", name, path.parent, error)
    return graphs


def cache_directory() -> Path:
    """Where processed graphs are kept: ``GSTARX_CACHE``, or ``~/.cache/gstarx/processed``."""
    return Path(os.environ.get("GSTARX_CACHE") or Path.home() / ".cache" / "gstarx" / "processed")


def _file_name(name: str, sources: Sequence[Path], options: dict[str, Any], version: int) -> str:
    digests = []
    for source in sources:
        with open(source, "rb") as file:
            digests.append(hashlib.file_digest(file, "sha256").hexdigest())
    content = json.dumps([_FORMAT, name, digests, options, version], sort_keys=True)
    key = hashlib.sha256(content.encode()).hexdigest()
    plain = re.sub(r"[^\w.-]", "_", name)
    return f"{plain}-{key[:24]}.graphs"


def _packed(graphs: Sequence[Data]) -> bytes:
    """The graphs as PyG collates them, after their digest."""
    first: dict[str, Any] = {}
    for number, graph in enumerate(graphs):
        kinds = {key: getattr(value, "dtype", type(value)) for key, value in graph}
        first = kinds if number == 0 else first
        if kinds != first:
            raise TypeError(
                "graphs to be stored must have the same attributes, of the same types "
                f"(graph 0 has {first}, graph {number} has {kinds})"
            )
        for key, value in graph:
            if not (isinstance(value, str | list) or (isinstance(value, Tensor) and value.dim())):
                raise TypeError(
                    f"{key!r} must hold a tensor with a dimension, text or a list to be stored "
                    f"(got {type(value).__name__})"
                )
    data, slices, _ = collate(Data, list(graphs), increment=False, add_batch=False)
    stream = io.BytesIO()
    torch.save({"count": len(graphs), "data": data.to_dict(), "slices": dict(slices)}, stream)
    return hashlib.sha256(stream.getbuffer()).digest() + stream.getvalue()


def _read(path: Path) -> list[Data]:
    content = memoryview(path.read_bytes())
    if hashlib.sha256(content[_DIGEST:]).digest() != content[:_DIGEST]:
        raise ValueError("it is damaged")
    stored = torch.load(io.BytesIO(content[_DIGEST:]), weights_only=True)
    data = Data.from_dict(stored["data"])
    # a view would carry the tensors of all graphs along when one graph is pickled
    return [
        separate(Data, data, idx=i, slice_dict=stored["slices"], decrement=False).clone()
        for i in range(stored["count"])
    ]
