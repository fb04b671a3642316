"""The graphs that a command reads: loading them, choosing some, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from gstarx._internal.messages import quoted
from gstarx.cli.console import CommandError, WrongUse, note, show_progress
from gstarx.registry import DatasetSource, reader

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gstarx.datasets import GraphDataset, UnreadableRow
    from gstarx.models import LoadedNetwork

#: How many skipped rows are listed.
_SHOWN = 5


@dataclass(frozen=True)
class Subject:
    """A graph to explain; its random numbers depend on its position."""

    name: str
    data: Data
    position: int
    dataset: str | None = None

    @property
    def slug(self) -> str:
        """The name as part of a file name."""
        plain = as_slug(self.name).strip("_")[:40]
        return plain if self.dataset else f"{self.position}-{plain}"


def as_slug(name: str) -> str:
    """A name with only what file names may have."""
    return re.sub(r"[^\w-]+", "_", name)


def warn_about_skipped(skipped: Sequence[UnreadableRow], kept: int) -> None:
    """Say on stderr which rows could not be read: how many, and the first of them."""
    if skipped:
        note(f"warning: skipped {len(skipped)} of {len(skipped) + kept} molecules")
        for row in skipped[:_SHOWN]:
            note(f"  {row}")
        if len(skipped) > _SHOWN:
            note(f"  ... and {len(skipped) - _SHOWN} more")


def warn_about_salts(molecules: Iterable[tuple[str, Data]], consequence: str = "") -> None:
    """Say on stderr how many molecules, given with their names, have several parts."""
    names = [name for name, data in molecules if "." in str(data.get("smiles") or "")]
    if names:
        have = "molecule has" if len(names) == 1 else "molecules have"
        note(
            f"warning: {len(names)} {have} several parts (salts or mixtures), such as "
            f"{quoted(names[0])}: {consequence}--salts largest keeps only the largest part"
        )


def load_dataset(source: DatasetSource) -> GraphDataset:
    """A dataset, with progress bars where stderr is a terminal."""
    from gstarx import datasets
    from gstarx._internal.factories import FactoryError

    try:
        return datasets.load_source(source, progress=show_progress())
    except (FactoryError, OSError, ValueError, TypeError) as error:
        if source.name is not None:
            raise
        raise CommandError(str(error)) from error


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


def check_fit(
    network: LoadedNetwork, subjects: Iterable[Subject], *, of_nodes: bool = False
) -> None:
    """Raise if a network of the package cannot read the graphs, or what it classifies differs."""
    config: Any = getattr(network.model, "config", None)
    if not isinstance(config, dict) or "in_channels" not in config:
        return
    classifies_nodes = config.get("readout", "") is None
    if classifies_nodes and not of_nodes:
        raise CommandError(
            f"{network.name} classifies nodes, and this command explains graphs: use "
            "'gstarx explain ... --nodes 37,52', or gstarx.explain(model, data, "
            "task_level='node', index=...) in Python"
        )
    if of_nodes and not classifies_nodes:
        raise CommandError(f"{network.name} classifies graphs: leave --nodes out")
    for subject in subjects:
        features = subject.data.x.shape[1]
        if features != config["in_channels"]:
            raise CommandError(
                f"{network.name} takes {config['in_channels']} features per node, and "
                f"{subject.name} has {features}: it was trained on different data"
            )


def node_labels(data: Data) -> list[str]:
    """The labels of the nodes: atoms, words, labels of their own, types, or their numbers."""
    from gstarx.gnn import hetero_of

    count, typed = int(data.num_nodes or 0), hetero_of(data)
    if typed is not None:
        return [typed.name(node) for node in range(count)]
    for name in ("atoms", "words", "labels"):
        labels = data.get(name)
        if isinstance(labels, list | tuple) and len(labels) == count:
            return [str(label) for label in labels]
    return [str(node) for node in range(count)]


def sentence_graphs(texts: Sequence[str]) -> list[Data]:
    """Sentences as graphs of the packaged parser and encoder."""
    for text in texts:
        if not text.strip():
            raise CommandError("a sentence is empty")
    shown = show_progress() and len(texts) > 20
    graphs: list[Data] = reader("sentences")(list(texts), progress=shown)
    for text, graph in zip(texts, graphs, strict=True):
        if len(graph.words) < 2:
            raise CommandError(f"a sentence must have at least two words (got {quoted(text)})")
    return graphs
