"""Graph-SST2 and Graph-Twitter as parsed by their authors, for those who have the files."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch_geometric.data import Data

from gstarx.datasets import GraphDataset
from gstarx_bench.datasets.pickles import read_arrays
from gstarx_bench.datasets.raw_files import (
    archive,
    array,
    integers,
    misfit,
    warn_if_unlike_the_paper,
)

_LOG = logging.getLogger(__name__)
_TABLES = {"node_indicator": 1, "edge_index": 2, "graph_labels": 1, "split_indices": 1}
_SOURCE = "Yuan et al., Explainability in Graph Neural Networks: A Taxonomic Survey"


def load_graph_sst2(root: Path) -> GraphDataset:
    """70,042 sentences of film reviews, class 1 positive (``graph_sst2/raw``).

    Nodes are words with 768 features of BERT, edges the arcs of the parser, both ways. Splits are
    the stored ones. ``words`` are the words of a graph, if the files have them.
    """
    names = ("negative", "positive")
    return _load(root, "graph_sst2", "Graph-SST2", names, "Sentences of film reviews; opinion?")


def load_twitter(root: Path) -> GraphDataset:
    """6,940 tweets, classes negative, neutral, positive (``twitter/raw``).

    Nodes, edges and splits as for :func:`load_graph_sst2`.
    """
    names = ("negative", "neutral", "positive")
    return _load(root, "twitter", "Graph-Twitter", names, "Tweets on a topic; opinion?")


def _load(
    root: Path, name: str, original: str, class_names: tuple[str, ...], description: str
) -> GraphDataset:
    folder, prefix = _place(root, name, original)
    paths = {table: folder / f"{prefix}_{table}.txt" for table in _TABLES}
    read = {
        table: integers(paths[table], columns=columns, delimiter=None)
        for table, columns in _TABLES.items()
    }
    features = _features(folder, prefix)
    _check(paths, read, len(features), len(class_names))
    owner, ends = read["node_indicator"][:, 0] - 1, read["edge_index"]
    count = len(read["graph_labels"])
    sizes = np.bincount(owner, minlength=count)
    starts = np.cumsum(sizes) - sizes
    of_edge = owner[ends[:, 0]]
    order = np.argsort(of_edge, kind="stable")
    local = torch.from_numpy((ends - starts[of_edge][:, None])[order].T.copy())
    # Reversed arcs go first, as in the published graphs.
    arcs = torch.split(local, np.bincount(of_edge, minlength=count).tolist(), dim=1)
    parts = torch.split(torch.from_numpy(features), sizes.tolist())
    graphs = [
        # A view would carry the features of all graphs along when one graph is pickled.
        Data(x=x.clone(), edge_index=torch.cat([e.flip(0), e], dim=1), y=torch.tensor([label]))
        for x, e, label in zip(parts, arcs, read["graph_labels"][:, 0].tolist(), strict=True)
    ]
    _add_words(folder / f"{prefix}_sentence_tokens.json", graphs)
    sides = read["split_indices"][:, 0]
    dataset = GraphDataset(
        name,
        tuple(graphs),
        len(class_names),
        {
            side: np.flatnonzero(sides == i).tolist()
            for i, side in enumerate(("train", "val", "test"))
        },
        source=_SOURCE,
        license="none stated",
        description=description,
        class_names=class_names,
    )
    return warn_if_unlike_the_paper(dataset)


def _place(root: Path, name: str, original: str) -> tuple[Path, str]:
    """The folder that holds the files, and what their names begin with."""
    for prefix in (name, original):
        folder = root / prefix / "raw"
        if (folder / f"{prefix}_graph_labels.txt").is_file():
            needed = [f"{prefix}_{table}.txt" for table in _TABLES]
            missing = [file for file in needed if not (folder / file).is_file()]
            if missing:
                raise FileNotFoundError(f"{folder} lacks {', '.join(missing)}")
            return folder, prefix
    files = [f"{name}_{table}.txt" for table in _TABLES]
    files += [f"{name}_node_features.npy (or .npz, .pkl)", f"{name}_sentence_tokens.json"]
    raise FileNotFoundError(
        f"{name} is not in {root / name / 'raw'}, and there is nowhere to download it from; put "
        f"{', '.join(files)} there, or pass root=... or set GSTARX_DATA to where they are. "
        "Graphs of the same sentences are made from the texts by 'sst2' and 'tweets'"
    )


def _features(folder: Path, prefix: str) -> NDArray[Any]:
    """The features of all nodes, as float32; float16 stays."""
    paths = [folder / f"{prefix}_node_features.{kind}" for kind in ("npy", "npz", "pkl")]
    path = next((path for path in paths if path.is_file()), None)
    if path is None:
        raise FileNotFoundError(f"{folder} lacks {prefix}_node_features.npy (or .npz, .pkl)")
    if path.suffix == ".pkl":
        arrays = list(read_arrays(path))
    elif path.suffix == ".npz":
        arrays = list(archive(path).values())
    else:
        arrays = [array(path)]
    if len(arrays) != 1 or arrays[0].ndim != 2 or arrays[0].dtype.kind != "f":
        got = ", ".join(f"{each.dtype} {each.shape}" for each in arrays)
        raise ValueError(f"{path} must hold one matrix of floating-point numbers (got {got})")
    is_float = arrays[0].dtype in (np.float16, np.float32)
    return arrays[0] if is_float else arrays[0].astype(np.float32)


def _check(
    paths: dict[str, Path], read: dict[str, NDArray[np.int64]], nodes: int, classes: int
) -> None:
    owner, ends = read["node_indicator"][:, 0], read["edge_index"]
    count = len(read["graph_labels"])
    if len(owner) != nodes:
        raise ValueError(f"{paths['node_indicator']} has {len(owner)} lines for {nodes} nodes")
    if len(read["split_indices"]) != count:
        got = len(read["split_indices"])
        raise ValueError(f"{paths['split_indices']} has {got} lines for {count} graphs")
    wrong = np.flatnonzero((np.diff(owner, prepend=1) < 0) | (owner < 1) | (owner > count))
    if len(wrong):
        problem = f"graphs must be numbered 1 to {count} in order (got {owner[wrong[0]]})"
        raise misfit(paths["node_indicator"], wrong[0], problem)
    for table, valid in (("graph_labels", classes), ("split_indices", 3)):
        values = read[table][:, 0]
        wrong = np.flatnonzero((values < 0) | (values >= valid))
        if len(wrong):
            problem = f"expected 0 to {valid - 1} (got {values[wrong[0]]})"
            raise misfit(paths[table], wrong[0], problem)
    wrong = np.flatnonzero(((ends < 0) | (ends >= nodes)).any(axis=1))
    if len(wrong):
        problem = f"nodes are numbered 0 to {nodes - 1} (got {ends[wrong[0]].tolist()})"
        raise misfit(paths["edge_index"], wrong[0], problem)
    wrong = np.flatnonzero(owner[ends[:, 0]] != owner[ends[:, 1]])
    if len(wrong):
        problem = f"nodes {ends[wrong[0]].tolist()} belong to two graphs"
        raise misfit(paths["edge_index"], wrong[0], problem)


def _add_words(path: Path, graphs: list[Data]) -> None:
    """Set ``words`` on every graph, or on none if they do not fit."""
    if not path.is_file():
        _LOG.warning("there is no %s: graphs have no words", path)
        return
    try:
        stored = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is not readable JSON: {error}") from error
    first = 0 if "0" in stored else 1
    words = [stored.get(str(number + first)) for number in range(len(graphs))]
    for number, (tokens, graph) in enumerate(zip(words, graphs, strict=True)):
        if not isinstance(tokens, list) or len(tokens) != graph.num_nodes:
            _LOG.warning("%s does not fit graph %d: graphs have no words", path, number)
            return
    for tokens, graph in zip(words, graphs, strict=True):
        graph.words = [str(word) for word in tokens]
