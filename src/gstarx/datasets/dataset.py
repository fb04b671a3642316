"""A dataset as the rest of the package sees it, and how it is split."""

from __future__ import annotations

import copy
import hashlib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import torch
from torch_geometric.data import Batch, Data, InMemoryDataset

from gstarx._internal.imports import require
from gstarx._internal.messages import quoted
from gstarx.gnn import hetero_of
from gstarx.models import SplitRecord
from gstarx.registry import DATASETS, TASKS

_SPLIT_SEED = 2


@dataclass(frozen=True)
class UnreadableRow:
    """A row of a raw file that gave no graph.

    Attributes
    ----------
    line
        Its line in the file, from one.
    text
        What could not be read, as it is written there.
    reason
        Why, in RDKit's words where it was RDKit that refused it.
    name
        The name of the molecule, where the file has one.
    """

    line: int
    text: str
    reason: str = ""
    name: str | None = None

    @property
    def in_words(self) -> str:
        """The reason, and what could not be read."""
        return f"{self.reason or 'not readable'}: {quoted(self.text)}"

    def __str__(self) -> str:
        named = f" ({self.name})" if self.name else ""
        return f"line {self.line}{named}: {self.in_words}"


@dataclass(frozen=True)
class Statistics:
    """The size of a dataset, as papers print it.

    Attributes
    ----------
    graphs
        Number of graphs.
    mean_nodes
        Nodes of a graph, on average.
    mean_edges
        Directed edges of a graph, on average: the columns of ``edge_index``.
    mean_undirected_edges
        Pairs of nodes joined by an edge, on average. A self-loop is such a pair.
    features
        Features of a node.
    classes
        Number of classes.
    """

    graphs: int
    mean_nodes: float
    mean_edges: float
    mean_undirected_edges: float
    features: int
    classes: int


class GraphDataset(InMemoryDataset, Sequence[Data]):  # type: ignore[misc]
    """Graphs, and how they are split: a PyG ``InMemoryDataset`` made from a list of ``Data``.

    It works wherever PyG takes a dataset: loaders, ``shuffle()``, ``num_features``, and
    ``transform``, which may be set at any time and applies to everything read afterwards,
    including the digest. The graphs are stored as passed, so each may have its own fields.

    An integer index gives a graph. Slices, lists, masks and tensors of integers give a dataset of
    those graphs, which are not copied. Its splits contain the selected graphs in their original
    order, twice if they were selected twice; a split without selected graphs is empty. The other
    attributes are unchanged, including ``unreadable``, which describes the file.

    Attributes
    ----------
    name
        The name it was loaded by.
    graphs
        The graphs.
    num_classes
        Number of classes.
    split_indices
        Positions of the ``"train"``, ``"val"`` and ``"test"`` graphs.
    source
        Where the data comes from.
    license
        The license of the data.
    description
        What a graph is, and what its label means.
    unreadable
        Rows of the raw file that gave no graph.
    class_names
        The name of each class, in order; empty if unknown.
    task
        What the labels are: ``"classification"`` or ``"binary"``, where ``y`` is a class;
        ``"multilabel"`` or ``"regression"``, where ``y`` has a number for each target (1, targets),
        which is nan if it was not measured.
    target_names
        What the targets of a multilabel or regression dataset are called, in order.

    Examples
    --------
    >>> graphs = [Data(x=torch.ones(n, 2), y=torch.tensor([n % 2])) for n in (1, 2, 3)]
    >>> dataset = GraphDataset("some", graphs, 2, {"train": [2, 0], "test": [1]})
    >>> dataset[1:]
    GraphDataset('some', 2 graphs, 2 classes)
    >>> dataset[1:].split_indices
    {'train': [1], 'test': [0]}
    >>> dataset[dataset.y == 1].num_features
    2
    """

    def __init__(
        self,
        name: str,
        graphs: Iterable[Data],
        num_classes: int,
        split_indices: Mapping[str, Sequence[int]],
        source: str = "",
        license: str = "",
        description: str = "",
        unreadable: tuple[UnreadableRow, ...] = (),
        class_names: tuple[str, ...] = (),
        task: str = "classification",
        target_names: tuple[str, ...] = (),
    ) -> None:
        super().__init__()
        if task not in TASKS:
            raise ValueError(f"task must be one of {', '.join(map(repr, TASKS))} (got {task!r})")
        self.name = name
        # Not PyG's collated form, which drops fields that only some graphs have.
        self._graphs = tuple(graphs)
        self._num_classes = num_classes
        self.split_indices = {side: list(places) for side, places in split_indices.items()}
        self.source = source
        self.license = license
        self.description = description
        self.unreadable = unreadable
        self.class_names = class_names
        self.task = task
        self.target_names = target_names
        self._digest: str | None = None

    @property
    def graphs(self) -> tuple[Data, ...]:
        """The graphs, transformed where there is a ``transform``."""
        return self._graphs if self.transform is None else tuple(self)

    @property
    def num_classes(self) -> int:
        """Number of classes."""
        return self._num_classes

    @property
    def num_outputs(self) -> int:
        """Outputs of a network for these labels: one for each class or target, or one logit."""
        if self.task == "classification":
            return self.num_classes
        return 1 if self.task == "binary" else max(len(self.target_names), 1)

    def len(self) -> int:
        """Number of graphs."""
        return len(self._graphs)

    def get(self, idx: int) -> Data:
        """One graph, before any transform."""
        graph = self._graphs[idx]
        # A transform may write to what it is given.
        return graph if self.transform is None else copy.copy(graph)

    @overload
    def __getitem__(self, index: int) -> Data: ...
    @overload
    def __getitem__(self, index: Any) -> GraphDataset: ...
    def __getitem__(self, index: Any) -> Data | GraphDataset:
        return super().__getitem__(index)

    def index_select(self, idx: Any) -> GraphDataset:
        """A dataset of the selected graphs."""
        if isinstance(idx, list | tuple | np.ndarray) and np.asarray(idx).dtype == np.bool_:
            idx = torch.as_tensor(idx)
        mask = isinstance(idx, torch.Tensor) and idx.dtype == torch.bool
        if mask and idx.numel() != len(self):
            raise IndexError(
                f"a mask must have an entry for each of {len(self)} graphs (got {idx.numel()})"
            )
        subset: GraphDataset = super().index_select(idx)
        if subset._indices is None:  # PyG came back here with the positions as a list
            return subset
        selected = list(subset._indices)
        places: dict[int, list[int]] = {}
        for place, position in enumerate(selected):
            places.setdefault(position, []).append(place)
        return self.replace(
            graphs=[self._graphs[i] for i in selected],
            split_indices={
                side: [place for i in positions for place in places.get(i, ())]
                for side, positions in self.split_indices.items()
            },
        )

    def replace(self, **changes: Any) -> GraphDataset:
        """The same dataset with some arguments of its constructor changed.

        >>> GraphDataset("some", [], 2, {}).replace(name="other")
        GraphDataset('other', 0 graphs, 2 classes)
        """
        names = inspect.signature(GraphDataset).parameters.keys() - {"graphs"}
        kept = {name: getattr(self, name) for name in names}
        changed = GraphDataset(**{**kept, "graphs": self._graphs, **changes})
        changed.transform = self.transform
        return changed

    def copy(self, idx: Any = None) -> GraphDataset:
        """A deep copy, of everything or of a selection."""
        return copy.deepcopy(self if idx is None else self.index_select(idx))

    def to(self, device: Any) -> GraphDataset:
        """Move the graphs to a device; datasets selected before keep theirs."""
        self._graphs = tuple(copy.copy(graph).to(device) for graph in self._graphs)
        return self

    @property
    def data(self) -> Data:
        """A copy of the graphs as PyG collates them: changing it does not change the dataset."""
        return self.collate(self.graphs)[0]

    def __getattr__(self, key: str) -> Any:
        # As in PyG, dataset.y joins the values of all graphs. A dataset that is being unpickled has
        # no graphs yet, and protocols look up names with an underscore.
        if not key.startswith("_") and self.__dict__.get("_graphs") and key in self[0]:
            graphs = self.graphs
            if all(key in graph for graph in graphs):
                others = set().union(*(graph.keys() for graph in graphs)) - {key}
                return Batch.from_data_list(graphs, exclude_keys=list(others))[key]
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {key!r}")

    def split(self, name: str) -> list[Data]:
        """The graphs of one split: ``"train"``, ``"val"`` or ``"test"``."""
        if not self.split_indices:
            raise ValueError(
                f"the split of {self.name!r} is not known: its {name!r} graphs cannot be told apart"
            )
        if name not in self.split_indices:
            valid = ", ".join(map(repr, self.split_indices))
            raise ValueError(f"split must be one of {valid} (got {name!r})")
        return [self[i] for i in self.split_indices[name]]

    @property
    def training_graphs(self) -> list[Data]:
        """The graphs of the training split, or all graphs where there is no such split."""
        return self.split("train") if self.split_indices.get("train") else list(self)

    @property
    def reference_graphs(self) -> list[Data]:
        """Graphs whose outputs scale metrics: the training graphs, or all if those are too few."""
        training = self.training_graphs
        return training if len(training) >= min(10, len(self)) else list(self)

    def as_recorded(self, record: SplitRecord | None) -> GraphDataset:
        """The dataset with the split that a model was trained with, if its record is known.

        A dataset with a split of its own keeps it if the record knows none of its graphs.
        """
        if record is None:
            return self
        recorded = record.split_indices(self.graphs)
        own = {side: sorted(self.split_indices.get(side, ())) for side in recorded}
        unrelated = bool(self.split_indices) and not any(recorded.values())
        if unrelated or (self.split_indices and own == recorded):
            return self
        return self.replace(split_indices=recorded)

    def statistics(self) -> Statistics:
        """Number and mean size of the graphs.

        >>> path = Data(x=torch.ones(3, 2), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
        >>> statistics = GraphDataset("path", (path,), 2, {}).statistics()
        >>> statistics.mean_edges, statistics.mean_undirected_edges
        (4.0, 2.0)
        """
        graphs = self.graphs
        count = len(graphs)
        if not count:
            raise ValueError(f"{self.name!r} holds no graphs: they have no mean")
        nodes = torch.tensor([graph.x.shape[0] for graph in graphs])
        starts = nodes.cumsum(0) - nodes
        edges = torch.cat(
            [g.edge_index + at for g, at in zip(graphs, starts.tolist(), strict=True)], dim=1
        )
        pairs = edges.min(dim=0).values * int(nodes.sum()) + edges.max(dim=0).values
        return Statistics(
            graphs=count,
            mean_nodes=int(nodes.sum()) / count,
            mean_edges=edges.shape[1] / count,
            mean_undirected_edges=len(torch.unique(pairs)) / count,
            features=graphs[0].x.shape[1],
            classes=self.num_classes,
        )

    @property
    def digest(self) -> str:
        """A digest of features, edges and labels: equal content, equal digest.

        Of graphs of your own, every other tensor counts as well.
        """
        is_own_data = self.name not in DATASETS
        if self.transform is not None:  # which may change at any time
            return _digest(self.graphs, everything=is_own_data)
        if self._digest is None:
            self._digest = _digest(self._graphs, everything=is_own_data)
        return self._digest

    def __repr__(self) -> str:
        return f"GraphDataset({self.name!r}, {len(self)} graphs, {self.num_classes} classes)"


def _digest(graphs: Iterable[Data], *, everything: bool) -> str:
    sha = hashlib.sha256()
    for position, graph in enumerate(graphs):
        fields = ["x", "edge_index", "y"]
        if everything:
            tensors = (key for key, value in graph if isinstance(value, torch.Tensor))
            fields += sorted(set(tensors) - set(fields))
        for field in fields:
            part = graph.get(field)
            if part is None and field == "y" and everything:
                continue  # a graph without a label can be explained as well
            if part is None:
                raise ValueError(f"graph {position} has no {field}, which a digest needs")
            sha.update(str(tuple(part.shape)).encode())
            sha.update(part.cpu().contiguous().numpy().tobytes())
        typed = hetero_of(graph)
        if typed is not None:
            sha.update(typed.digest())
    return sha.hexdigest()


def title_of(graph: Data, otherwise: str) -> str:
    """What to call a graph: its name, its SMILES, its words, or what it is called otherwise.

    >>> title_of(Data(smiles="CCO"), "own 3"), title_of(Data(), "own 3")
    ('CCO', 'own 3')
    >>> title_of(Data(smiles="CCO", name="ethanol"), "own 3")
    'ethanol'
    """
    for field in ("name", "smiles"):
        if isinstance(graph.get(field), str) and graph[field]:
            return str(graph[field])
    words = graph.get("words")
    return " ".join(map(str, words)) if words else otherwise


def label_of(graph: Data) -> int | None:
    """The class of a graph, where it has one; the label of a regression is no class.

    >>> import torch
    >>> label_of(Data(y=torch.tensor([1]))), label_of(Data()), label_of(Data(y=torch.ones(1, 1)))
    (1, None, None)
    """
    y = graph.get("y")
    if y is None or y.numel() != 1 or (y.is_floating_point() and y.dim() == 2):
        return None
    return int(y) if float(y).is_integer() else None


def random_split_indices(count: int) -> dict[str, list[int]]:
    """The paper's random split: 80 % train, 10 % val, the rest test, by a generator seeded 2.

    >>> [len(part) for part in random_split_indices(188).values()]
    [150, 18, 20]
    """
    train, val = int(0.8 * count), int(0.1 * count)
    # what torch's random_split does, which warns of empty parts
    order = torch.randperm(count, generator=torch.Generator().manual_seed(_SPLIT_SEED)).tolist()
    ends = {"train": (0, train), "val": (train, train + val), "test": (train + val, count)}
    return {name: order[start:end] for name, (start, end) in ends.items()}


def scaffold_split_indices(smiles: Sequence[str]) -> dict[str, list[int]]:
    """Split molecules so that no Bemis–Murcko scaffold is on two sides.

    Molecules of one scaffold stay together; those without rings share the empty scaffold. Groups
    are assigned from the largest to the smallest, ties by their first molecule: to train while it
    holds at most 80 % of all molecules, then to val up to 10 %, the rest to test. Chirality is
    ignored. Nothing is random; the order of molecules matters only between groups of equal size.

    Examples
    --------
    >>> rings = ["c1ccccc1C", "c1ccccc1N", "c1ccccc1O", "c1ccccc1Cl", "C1CC1", "c1ccncc1"]
    >>> scaffold_split_indices([*rings[:4], *rings])
    {'train': [0, 1, 2, 3, 4, 5, 6, 7], 'val': [8], 'test': [9]}

    Notes
    -----
    Needs RDKit: ``pip install 'gstarx[molecules]'``.
    """
    murcko = require("rdkit.Chem.Scaffolds.MurckoScaffold", extra="molecules")
    groups: dict[str, list[int]] = {}
    for number, molecule in enumerate(smiles):
        groups.setdefault(murcko.MurckoScaffoldSmiles(molecule), []).append(number)
    count = len(smiles)
    split: dict[str, list[int]] = {"train": [], "val": [], "test": []}
    for group in sorted(groups.values(), key=lambda group: (-len(group), group[0])):
        if len(split["train"]) + len(group) <= int(0.8 * count):
            split["train"] += group
        elif len(split["val"]) + len(group) <= int(0.1 * count):
            split["val"] += group
        else:
            split["test"] += group
    return {name: sorted(part) for name, part in split.items()}


def split_molecules(smiles: Sequence[str], split: str) -> dict[str, list[int]]:
    """The split of molecules by name: ``"random"`` (the paper's), ``"scaffold"`` or ``"none"``."""
    if split == "none":
        return {}
    if split == "random":
        return random_split_indices(len(smiles))
    if split == "scaffold":
        return scaffold_split_indices(smiles)
    raise ValueError(f"split must be one of 'random', 'scaffold', 'none' (got {split!r})")
