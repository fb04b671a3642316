"""Which graphs are explained: positions in a dataset, molecules, sentences, or a user's files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gstarx._internal.optional import require
from gstarx._internal.quoting import quoted
from gstarx.cli.console import CommandError, WrongUse, show_progress
from gstarx.registry import DATASETS, NETWORKS, ModelSource

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gstarx.datasets import GraphDataset
    from gstarx.models import LoadedNetwork


@dataclass(frozen=True)
class Subject:
    """A graph to explain: its name, and its position, which its random numbers depend on."""

    name: str
    data: Data
    position: int
    dataset: str | None = None

    @property
    def slug(self) -> str:
        """The name as part of a file name."""
        plain = re.sub(r"[^\w-]+", "_", self.name).strip("_")[:40]
        return plain if self.dataset else f"{self.position}-{plain}"


def check_smiles(listed: Sequence[str]) -> None:
    """Reject what RDKit cannot read before torch and PyG are loaded, which takes seconds."""
    if not listed:
        return
    chem = require("rdkit.Chem", extra="molecules")
    with require("rdkit.rdBase", extra="molecules").BlockLogs():
        for smiles in listed:
            if not smiles.strip() or chem.MolFromSmiles(smiles.strip()) is None:
                raise CommandError(f"this is no molecule to RDKit: {quoted(smiles)}")


@dataclass(frozen=True)
class InputSelection:
    """Which graphs and which network, as given by the options."""

    dataset: str | None = None
    positions: Sequence[str] | None = None
    smiles: Sequence[str] | None = None
    sentences: Sequence[str] | None = None
    files: Sequence[Path] | None = None
    split: str | None = None
    limit: int | None = None
    data: Path | None = None
    model: str | None = None
    weights: Path | None = None

    @cached_property
    def network(self) -> LoadedNetwork:
        """The network, by default that of the dataset, ``nitro`` for molecules, ``sst2`` for text.

        Raises
        ------
        CommandError
            When no graphs or graphs of several kinds are requested, or there is no such network.
        """
        self.check()
        default = self.dataset
        if self.smiles or any(path.suffix in (".smi", ".csv") for path in self.files or ()):
            default = "nitro"
        elif self.sentences:
            default = "sst2"
        return choose_network(self.model, self.weights, default=default)

    @cached_property
    def loaded(self) -> GraphDataset | None:
        """The requested dataset, or else the one that the network was trained on."""
        name = self.dataset or self.network.dataset
        return None if name is None else load_dataset(name, self.data)

    @property
    def class_names(self) -> tuple[str, ...]:
        """What the classes stand for, where that is known without reading much."""
        trained_on = DATASETS.get(self.network.dataset or "")
        if self.dataset is None and trained_on is not None and trained_on.classes:
            return trained_on.classes
        if self.dataset is None and (trained_on is None or not trained_on.shipped):
            return ()
        return () if self.loaded is None else self.loaded.class_names

    def subjects(self) -> list[Subject]:
        """The graphs."""
        self.check()
        from gstarx.cli import own_graphs

        network = self.network
        if self.dataset is not None:
            subjects = list(self._of_the_dataset())
        elif self.smiles:
            made = [own_graphs.molecule(smiles, network.dataset) for smiles in self.smiles]
            subjects = _numbered(zip(self.smiles, made, strict=True))
        elif self.sentences:
            graphs = own_graphs.sentences(self.sentences, progress=show_progress())
            subjects = _numbered(zip(self.sentences, graphs, strict=True))
        else:
            read = [own_graphs.read_file(path, network.dataset) for path in self.files or ()]
            subjects = _numbered(pair for pairs in read for pair in pairs)
            subjects = subjects[: self.limit]
        check_fit(network, subjects)
        return subjects

    def check(self) -> None:
        """Raise unless graphs of exactly one kind are requested."""
        kinds = {
            "a dataset": self.dataset is not None,
            "--smiles": bool(self.smiles),
            "--sentence": bool(self.sentences),
            "--file": bool(self.files),
        }
        named = [name for name, there in kinds.items() if there]
        if len(named) != 1:
            got = " and ".join(named) or "none"
            raise WrongUse(f"say which graphs, by one of {', '.join(kinds)} (got {got})")
        if self.dataset is not None and bool(self.positions) == bool(self.split):
            raise WrongUse(
                f"say which graphs of {self.dataset!r}: positions such as 15 44, or --split test"
            )
        check_smiles(self.smiles or ())

    def _of_the_dataset(self) -> Iterator[Subject]:
        assert self.dataset is not None
        assert self.loaded is not None
        size = len(self.loaded)
        if self.split is None:
            selected = [at for text in self.positions or () for at in positions(text, size)]
        elif self.split == "all":
            selected = list(range(size))
        else:
            selected = sorted(self.loaded.split_indices[self.split])
        for at in selected[: self.limit]:
            yield Subject(f"{self.dataset} {at}", self.loaded[at], at, self.dataset)


def load_dataset(name: str, root: Path | None) -> GraphDataset:
    """A dataset, with progress bars where loading takes long and stderr is a terminal."""
    from gstarx import datasets

    options = {"progress": show_progress()} if name in ("sst2", "tweets") else {}
    return datasets.load(name, root, **options)


def positions(text: str, size: int) -> range:
    """Parse a position, or a range of positions that includes both ends.

    >>> list(positions("7", 10)), list(positions("3-5", 10))
    ([7], [3, 4, 5])
    """
    match = re.fullmatch(r"(\d+)(?:-(\d+))?", text)
    if match is None:
        raise WrongUse(
            f"a position is a number such as 15, or 15-20 for several (got {quoted(text)})"
        )
    first = int(match[1])
    last = int(match[2] or first)
    if not first <= last < size:
        raise CommandError(f"positions must lie in 0..{size - 1}, in ascending order (got {text})")
    return range(first, last + 1)


def check_fit(network: LoadedNetwork, subjects: Sequence[Subject]) -> None:
    """Raise if a network of the package cannot read the graphs, or classifies nodes."""
    config: Any = getattr(network.model, "config", None)
    if not isinstance(config, dict) or "in_channels" not in config:
        return
    if config.get("readout", "") is None:
        raise CommandError(
            f"{network.name} classifies nodes, and this command explains graphs: use "
            "gstarx.explain(model, data, task_level='node', index=...) in Python"
        )
    for subject in subjects:
        features = subject.data.x.shape[1]
        if features != config["in_channels"]:
            raise CommandError(
                f"{network.name} takes {config['in_channels']} features a node, and {subject.name} "
                f"has {features}: it was trained on other graphs"
            )


def node_labels(data: Data) -> list[str]:
    """The labels of the nodes: atoms, words, labels of their own, or their numbers."""
    count = int(data.num_nodes or 0)
    for field in ("atoms", "words", "labels"):
        labels = data.get(field)
        if isinstance(labels, list | tuple) and len(labels) == count:
            return [str(label) for label in labels]
    return [str(node) for node in range(count)]


def _numbered(pairs: Any) -> list[Subject]:
    return [Subject(name, data, at) for at, (name, data) in enumerate(pairs)]


def choose_network(
    model: str | None, weights: Path | None, *, default: str | None
) -> LoadedNetwork:
    """The network that the options select, by default that of a dataset.

    Raises
    ------
    WrongUse, CommandError
        If the options make no sense together, or the network cannot be loaded.
    """
    from gstarx.models import ModelSourceError, load_source

    if model is None and weights is None and default is not None:
        if default not in NETWORKS and f"{default}-gcn" not in NETWORKS:
            raise CommandError(
                f"no network for {default!r} comes with the package: say --weights file or --model "
                "module:factory, or train one with 'gstarx train' "
                f"(those that come: {', '.join(NETWORKS)})"
            )
        model = default
    try:
        return load_source(ModelSource(model, weights))
    except ModelSourceError as error:
        raise (WrongUse if error.usage else CommandError)(str(error)) from error
