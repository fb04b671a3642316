"""Graphs that users bring: SMILES, sentences, and files that are read without running code."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from pickle import UnpicklingError
from typing import Any

import torch
from torch_geometric.data import Data
from torch_geometric.data.data import DataEdgeAttr, DataTensorAttr
from torch_geometric.data.storage import GlobalStorage

from gstarx._internal.expanded_size import TooLargeError, check_expanded_size, check_size
from gstarx._internal.quoting import quoted, shortened
from gstarx.cli.console import CommandError

#: Most characters of a SMILES in a file; the limit of a CSV cell as well.
_LONGEST = 131_072
_FIELDS = ("x", "edge_index", "edge_attr", "y", "pos")


def molecule(smiles: str, dataset: str | None) -> Data:
    """A molecule with the features that a network trained on ``dataset`` reads."""
    from gstarx.datasets import smiles_graph

    try:
        # a network of one's own may read bonds; those of the package do not
        return smiles_graph(smiles, dataset, bond_features=dataset is None)
    except ValueError as error:
        raise CommandError(str(error)) from error


def sentences(texts: Sequence[str], *, progress: bool) -> list[Data]:
    """Sentences as graphs of the packaged parser and encoder."""
    from gstarx.datasets.sentences import text_graphs

    for text in texts:
        if not text.strip():
            raise CommandError("a sentence is empty")
    graphs = text_graphs(list(texts), progress=progress and len(texts) > 20)
    for text, graph in zip(texts, graphs, strict=True):
        if len(graph.words) < 2:
            raise CommandError(
                "a sentence needs two words or more to share the prediction among "
                f"(got {quoted(text)})"
            )
    return graphs


def read_file(path: Path, dataset: str | None) -> list[tuple[str, Data]]:
    """The graphs in a file, each with a name; molecules get the features of ``dataset``."""
    readers: dict[str, Callable[[Path], list[Any]]] = {
        ".pt": _torch_file,
        ".pth": _torch_file,
        ".npz": _npz_file,
        ".safetensors": _safetensors_file,
        ".json": _json_file,
    }
    if path.is_dir():
        raise CommandError(f"{path} is a directory, where a file of graphs is expected")
    if not path.is_file():
        raise CommandError(f"there is no file {path}")
    if path.suffix in (".smi", ".csv"):
        return list(_molecules(path, dataset))
    if path.suffix not in readers:
        valid = ", ".join((*readers, ".smi", ".csv"))
        raise CommandError(f"{path}: graphs are read from {valid} (got {path.suffix!r})")
    try:
        check_expanded_size(path)
        items = readers[path.suffix](path)
        check_size(path, sum(map(_size, items)))  # a small stored tensor can expand to any shape
        graphs = [_graph(item, path) for item in items]
    except (CommandError, TooLargeError):
        raise
    except Exception as error:  # an unexpected file can fail in any way
        message = shortened(str(error), 400)
        raise CommandError(f"{path} cannot be read: {type(error).__name__}: {message}") from error
    if not graphs:
        raise CommandError(f"{path} holds no graph")
    if len(graphs) == 1:
        return [(path.stem, graphs[0])]
    return [(f"{path.stem} {at}", graph) for at, graph in enumerate(graphs)]


def _molecules(path: Path, dataset: str | None) -> Iterator[tuple[str, Data]]:
    from gstarx.datasets import from_table

    for graph in from_table(path):
        yield graph.smiles, molecule(graph.smiles, dataset)


def _torch_file(path: Path) -> list[Any]:
    # the classes that a Data consists of; nothing else in a file is built or run
    torch.serialization.add_safe_globals([Data, DataEdgeAttr, DataTensorAttr, GlobalStorage])
    try:
        content = torch.load(path, map_location="cpu", weights_only=True)
    except UnpicklingError as error:
        raise CommandError(
            f"{path} holds something else than PyG Data, lists and tensors, or is no file of "
            "torch.save: it is not read, because such a file can run code"
        ) from error
    return list(content) if isinstance(content, list | tuple) else [content]


def _npz_file(path: Path) -> list[Any]:
    from gstarx.datasets import archive

    return [{name: torch.from_numpy(array) for name, array in archive(path).items()}]


def _safetensors_file(path: Path) -> list[Any]:
    from safetensors.torch import load_file

    return [load_file(path)]


def _json_file(path: Path) -> list[Any]:
    content = json.loads(path.read_text(encoding="utf-8-sig"))
    return content if isinstance(content, list) else [content]


def _size(item: Any) -> int:
    """Bytes that copies of a graph's tensors take."""
    fields = item.to_dict() if isinstance(item, Data) else item
    values = fields.values() if isinstance(fields, dict) else ()
    return sum(value.nbytes for value in values if isinstance(value, torch.Tensor))


def _graph(item: Any, path: Path) -> Data:
    """A ``Data``, as it is or built from its fields by name."""
    if isinstance(item, Data):
        graph = item
    elif isinstance(item, dict) and {"x", "edge_index"} <= item.keys():
        fields = {
            key: torch.as_tensor(value) if key in _FIELDS else value for key, value in item.items()
        }
        graph = Data.from_dict(fields)
    else:
        got = quoted(sorted(item), 300) if isinstance(item, dict) else type(item).__name__
        raise CommandError(f"{path}: a graph has x and edge_index (got {got})")
    if graph.x is None or graph.edge_index is None:
        raise CommandError(f"{path}: a graph has x and edge_index (got {quoted(graph, 300)})")
    graph.x = graph.x.float()
    graph.edge_index = graph.edge_index.long()
    return graph
