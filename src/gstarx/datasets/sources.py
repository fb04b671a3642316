"""Datasets by where they come from: a name, a table of molecules, or a function of the user's."""

from __future__ import annotations

import inspect
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch_geometric.data import Data, HeteroData

from gstarx._internal.imports import call_factory
from gstarx._internal.messages import quoted
from gstarx.datasets.dataset import GraphDataset, random_split_indices, split_molecules
from gstarx.gnn import view_of
from gstarx.registry import DATASETS, DatasetSource, reader, resolve

#: Files that are read as tables of molecules; others hold graphs.
TABLES = (".csv", ".tsv", ".smi", ".sdf", ".parquet", ".xlsx")


def names() -> tuple[str, ...]:
    """The datasets that :func:`load` knows.

    >>> names()
    ('motifs', 'nitro', 'mutag', 'bbbp', ..., 'coauthor_physics')
    """
    return tuple(DATASETS)


def load(name: str, root: str | os.PathLike[str] | None = None, **options: Any) -> GraphDataset:
    """Load a dataset by name.

    Parameters
    ----------
    name
        One of :func:`names`. ``"motifs"`` and ``"nitro"`` come with the package.
    root
        The directory that holds the data; by default the environment variable ``GSTARX_DATA``, or
        ``~/.cache/gstarx``. Missing data is downloaded if PyG can do so.
    **options
        Options of the dataset, such as ``split="scaffold"`` for ``"bbbp"`` and ``"bace"``.

    Examples
    --------
    >>> dataset = load("nitro")
    >>> dataset
    GraphDataset('nitro', 500 graphs, 2 classes)
    >>> dataset[0].smiles
    'C1CCCN1Cc1cccc([N+](=O)[O-])c1'
    """
    if name not in DATASETS:
        valid = ", ".join(map(repr, DATASETS))
        raise ValueError(f"name must be one of {valid} (got {name!r})")
    loader = resolve(DATASETS[name].home)
    known = [option for option in inspect.signature(loader).parameters if option != "root"]
    for option in options:
        if option not in known:
            valid = ", ".join(map(repr, known)) or "none"
            raise TypeError(f"options of {name!r}: {valid} (got {option!r})")
    if root is None:
        root = os.environ.get("GSTARX_DATA") or Path.home() / ".cache" / "gstarx"
    dataset: GraphDataset = loader(Path(root), **options)
    return dataset


def load_source(source: DatasetSource, *, progress: bool = False) -> GraphDataset:
    """Load the dataset that a source describes, in any process.

    Examples
    --------
    >>> load_source(DatasetSource(name="nitro"))
    GraphDataset('nitro', 500 graphs, 2 classes)
    """
    if source.name is not None:
        options = {"progress": progress} if source.name in ("sst2", "tweets") else {}
        return load(source.name, source.root, **options)
    if source.file is not None and Path(source.file).suffix.lower() not in TABLES:
        graphs: Any = reader("graphs")(Path(source.file))
    elif source.file is not None:
        table: GraphDataset = reader("table")(source, progress=progress)
        return table
    else:
        assert source.graphs is not None
        graphs = call_factory(source.graphs, "--graphs")
    return from_graphs(
        graphs,
        name=source.title,
        task=source.task,
        split=source.split,
        limit=source.limit,
        sample=source.sample,
        seed=source.seed,
    )


def from_graphs(
    graphs: Iterable[Data],
    *,
    name: str = "graphs",
    task: str | None = None,
    split: str = "random",
    split_indices: Mapping[str, Sequence[int]] | None = None,
    class_names: Sequence[str] = (),
    target_names: Sequence[str] = (),
    limit: int | None = None,
    sample: int | None = None,
    seed: int = 0,
) -> GraphDataset:
    """A dataset out of graphs of any kind.

    Parameters
    ----------
    graphs
        A PyG dataset or any other iterable of ``Data``; a :class:`GraphDataset` keeps its splits.
        Of ``HeteroData`` the dataset holds homogeneous views, see :mod:`gstarx.gnn.hetero`.
    name
        Its name.
    task
        ``"classification"``, ``"binary"``, ``"multilabel"`` or ``"regression"``; by default labels
        that are integers are classes, and other numbers are a regression.
    split
        ``"random"``, ``"scaffold"`` for graphs with ``smiles``, or ``"none"``.
    split_indices
        Positions of the train, val and test graphs; by default what the dataset says
        (``get_idx_split``), or else what ``split`` says.
    class_names, target_names
        What classes or targets are called.
    limit, sample, seed
        The first graphs, or so many at random.

    Examples
    --------
    >>> edge = torch.tensor([[0, 1], [1, 0]])
    >>> made = [
    ...     Data(x=torch.ones(2, 1), edge_index=edge, y=torch.tensor([k % 2])) for k in range(9)
    ... ]
    >>> from_graphs(made, name="pairs")
    GraphDataset('pairs', 9 graphs, 2 classes)
    """
    listed = [_graph(graph, at) for at, graph in enumerate(graphs)]
    if not listed:
        raise ValueError(f"{name!r} holds no graph")
    splits = split_indices or _own_splits(graphs, len(listed))
    if isinstance(graphs, GraphDataset):
        class_names = class_names or graphs.class_names
        target_names = target_names or graphs.target_names
        task = task or graphs.task
    task = task or _task_of(listed)
    if splits is None:
        smiles = [graph.get("smiles") for graph in listed]
        by_smiles = split == "scaffold" and all(isinstance(text, str) for text in smiles)
        if split == "scaffold" and not by_smiles:
            raise ValueError("split='scaffold' needs graphs with smiles: pass split='random'")
        texts = [str(text) for text in smiles]
        by_name = by_smiles or split == "none"
        splits = split_molecules(texts, split) if by_name else random_split_indices(len(listed))
    classes = _num_classes(listed, task, class_names)
    targets = tuple(target_names) or _target_names(listed, task)
    dataset = GraphDataset(
        name,
        listed,
        classes,
        splits,
        class_names=tuple(class_names),
        task=task,
        target_names=targets,
    )
    if sample is not None:
        generator = torch.Generator().manual_seed(seed)
        drawn = torch.randperm(len(dataset), generator=generator)[:sample].sort().values
        return dataset[drawn]
    return dataset if limit is None else dataset[:limit]


def _graph(graph: Any, at: int) -> Data:
    if isinstance(graph, HeteroData):
        try:
            return view_of(graph)
        except (TypeError, ValueError) as error:
            error.add_note(f"raised by graph {at}")
            raise
    if not isinstance(graph, Data) or graph.get("x") is None or graph.get("edge_index") is None:
        got = quoted(graph, 200) if isinstance(graph, Data) else type(graph).__name__
        raise TypeError(
            f"graph {at} must be a PyG Data with x and edge_index, or a HeteroData (got {got})"
        )
    return graph


def _own_splits(graphs: Any, count: int) -> Mapping[str, Sequence[int]] | None:
    """The splits that a dataset brings: its own, or those of an OGB dataset."""
    if isinstance(graphs, GraphDataset):
        return graphs.split_indices
    if not hasattr(graphs, "get_idx_split"):
        return None
    usual = {"valid": "val"}
    split = graphs.get_idx_split()
    return {usual.get(side, side): [int(at) for at in places] for side, places in split.items()}


def _task_of(graphs: Sequence[Data]) -> str:
    labels = [graph.y for graph in graphs if graph.get("y") is not None]
    if not labels or not labels[0].is_floating_point():
        return "classification" if not labels or labels[0].numel() == 1 else "multilabel"
    values = torch.cat([label.reshape(-1) for label in labels])
    numbers = values[~values.isnan()]
    if labels[0].numel() > 1 and bool(((numbers == 0) | (numbers == 1)).all()):
        return "multilabel"
    return "regression"


def _num_classes(graphs: Sequence[Data], task: str, class_names: Sequence[str]) -> int:
    if task == "binary":
        return 2
    if task != "classification":
        return 0
    labels = [graph.y for graph in graphs if graph.get("y") is not None]
    if not labels:
        return len(class_names)
    return max(len(class_names), int(torch.cat([y.reshape(-1) for y in labels]).max()) + 1)


def _target_names(graphs: Sequence[Data], task: str) -> tuple[str, ...]:
    if task not in ("multilabel", "regression"):
        return ()
    width = max((graph.y.numel() for graph in graphs if graph.get("y") is not None), default=1)
    return tuple(f"target {at}" for at in range(width))
