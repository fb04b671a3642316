"""Which graphs commands explain, and with which network: one set of options for all of them."""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gstarx._internal.messages import quoted
from gstarx.cli.console import CommandError, WrongUse, note, show_progress
from gstarx.registry import DATASETS, NETWORKS, TASKS, DatasetSource, ModelSource, reader

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gstarx.datasets import GraphDataset, UnreadableRow
    from gstarx.evaluation import Pipeline
    from gstarx.gnn import Task
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


@dataclass(frozen=True)
class OwnGraphs:
    """The user's own graphs, as the options of a command say it."""

    file: Sequence[Path] | None = None
    graphs: str | None = None
    smiles_column: str | None = None
    name_column: str | None = None
    label: str | None = None
    encoding: str | None = None
    salts: str = "warn"
    limit: int | None = None
    sample: int | None = None

    def check(self) -> None:
        """Raise where options exclude each other."""
        if self.limit is not None and self.sample is not None:
            raise WrongUse("use --limit or --sample, not both")

    def own_source(self, **known: Any) -> DatasetSource | None:
        """Where the user's own graphs are; ``known`` replaces what the options say."""
        if self.file and len(self.file) > 1:
            raise WrongUse(f"--file can be given once (got {len(self.file)})")
        if not self.file and self.graphs is None:
            return None
        file = str(self.file[0]) if self.file else None
        options = {field.name: getattr(self, field.name) for field in fields(OwnGraphs)}
        return DatasetSource(**{**options, "file": file, "split": "none", **known})


@dataclass(frozen=True)
class InputSelection(OwnGraphs):
    """The graphs and the network that the options select.

    The fields are the options of every command that explains, see
    :func:`gstarx.cli.options.with_options`.
    """

    dataset: str | None = None
    positions: Sequence[str] | None = None
    smiles: Sequence[str] | None = None
    sentence: Sequence[str] | None = None
    split: str | None = None
    data: Path | None = None
    model: str | None = None
    weights: Path | None = None
    trust: bool = False
    task: str | None = None
    return_type: str = "raw"
    target: str | None = None
    seed: int = 0
    strict: bool = False

    def check(self) -> None:
        """Raise unless exactly one kind of graphs is selected; needs no torch."""
        selected = {
            "a dataset": self.dataset is not None,
            "--smiles": bool(self.smiles),
            "--sentence": bool(self.sentence),
            "--file": bool(self.file),
            "--graphs": self.graphs is not None,
        }
        kinds = [name for name, present in selected.items() if present]
        if len(kinds) != 1:
            got = " and ".join(kinds) or "none"
            raise WrongUse(f"specify the graphs with one of {', '.join(selected)} (got {got})")
        if self.dataset is not None and bool(self.positions) == bool(self.split):
            raise WrongUse(
                f"specify graphs of {self.dataset!r}: positions such as 15 44, or --split test"
            )
        if self.file and self.model is None and self.weights is None:
            raise WrongUse(
                "choose the network that explains --file: --weights of your own, such as those of "
                "'gstarx train', --model module:factory, or --model with a network of the package "
                f"({', '.join(NETWORKS)})"
            )
        super().check()
        if self.smiles:
            from gstarx._internal.molecules import read_molecule

            reasons = [reason for _, reason in map(read_molecule, self.smiles)]
            if all(reasons):
                raise CommandError(
                    f"no molecule can be read: {reasons[0]}: {quoted(self.smiles[0])}"
                )

    @cached_property
    def network(self) -> LoadedNetwork:
        """The network, by default that of the dataset, or one of the package.

        It is ``nitro`` for ``--smiles`` and ``sst2`` for ``--sentence``; files need a choice.

        Raises
        ------
        WrongUse, CommandError
            If the options make no sense together, or the network cannot be loaded.
        """
        from gstarx.models import ModelSourceError, load_source

        self.check()
        model = self.model
        if model is None and self.weights is None:
            model = "nitro" if self.smiles else "sst2" if self.sentence else self.dataset
            if model is not None and not {model, f"{model}-gcn"} & NETWORKS.keys():
                raise CommandError(
                    f"no network for {model!r} ships with the package: use --weights file or "
                    "--model module:factory, or train one with 'gstarx train' "
                    f"(available: {', '.join(NETWORKS)})"
                )
        try:
            return load_source(ModelSource(model, self.weights, task=self.task, trust=self.trust))
        except ModelSourceError as error:
            raise (WrongUse if error.usage else CommandError)(str(error)) from error

    @property
    def mode(self) -> str:
        """What the network does, as PyG calls it."""
        return TASKS[self.network.task]

    @property
    def model_task(self) -> Task:
        """The same with the type of its outputs."""
        from gstarx.gnn import Task

        return Task(mode=self.mode, return_type=self.return_type)

    @cached_property
    def source(self) -> DatasetSource | None:
        """Where the graphs come from, unless they are written on the command line."""
        if self.dataset is not None:
            root = None if self.data is None else str(self.data)
            return DatasetSource(name=self.dataset, root=root)
        if not self.file and self.graphs is None:
            return None  # without the network, which the rest depends on
        return self.own_source(
            smiles_column=self.smiles_column or self._trained_on(self.network.smiles_column),
            name_column=self.name_column or self._trained_on(self.network.name_column),
            label=self.label or self._trained_on(*self.network.label_columns),
            task=self.network.task,
            class_names=self.network.class_names,
            limit=None if self.cuts_after_reading else self.limit,
            sample=None if self.cuts_after_reading else self.sample,
            seed=self.seed,
            salts=self._salts,
            features=self._features,
        )

    @property
    def cuts_after_reading(self) -> bool:
        """Whether ``limit`` and ``sample`` are about the graphs of a split or a named dataset.

        Otherwise the rest of a table is not even read.
        """
        return self.dataset is not None or self.split not in (None, "all")

    def _trained_on(self, *columns: str | None) -> str | None:
        """The columns of the table that the network was trained on, if this table has them."""
        if not self.file or None in columns:
            return None
        present: str | None = reader("columns")(self.file[0], columns, self.encoding)
        return present

    @property
    def _salts(self) -> str:
        """Which parts of molecules to read: unless it is said, those that training did."""
        return (self.network.salts or self.salts) if self.salts == "warn" else self.salts

    @property
    def _features(self) -> str:
        from gstarx.datasets import MOLECULE_FEATURES

        features = self.network.features or self.network.dataset
        if features in MOLECULE_FEATURES:
            return str(features)
        # a user's own network may read bonds; those of the package do not
        return "molecule" if hasattr(self.network.model, "config") else "molecule+bonds"

    @cached_property
    def loaded(self) -> GraphDataset | None:
        """The selected dataset, or else the one that the network was trained on, if it has one.

        Its split is that of the training where the weights have a record of it.
        """
        source = self.source
        if source is None and self.network.dataset in DATASETS:
            root = None if self.data is None else str(self.data)
            source = DatasetSource(name=self.network.dataset, root=root)
        return None if source is None else load_dataset(source).as_recorded(self.network.split)

    def sides(self, subjects: Sequence[Subject]) -> dict[str, int] | None:
        """How many of the graphs the network was trained, validated and tested on, if known."""
        record, loaded = self.network.split, None if self.source is None else self.loaded
        if record is not None:
            found = [record.side(subject.data) for subject in subjects]
        elif loaded is not None and loaded.split_indices and self.network.dataset == loaded.name:
            side_of = {at: side for side, places in loaded.split_indices.items() for at in places}
            found = [side_of.get(subject.position) for subject in subjects]
        else:
            return None
        counts = Counter(side or "other" for side in found)
        return {side: counts[side] for side in ("train", "val", "test", "other")}

    def sides_in_words(self, subjects: Sequence[Subject]) -> str:
        """How many of the graphs are training graphs, or that this is not known."""
        counts = self.sides(subjects)
        if counts is None:
            return f"unknown: {self.network.name} has no record of its training graphs"
        named = {"val": "validation", "test": "test", "other": "in no split of the training"}
        others = [f"{counts[side]:,} {words}" for side, words in named.items() if counts[side]]
        rest = f" ({', '.join(others)})" if others else ""
        return f"{counts['train']:,} of {len(subjects):,}{rest}"

    @property
    def skipped(self) -> list[UnreadableRow]:
        """The rows and molecules that could not be read; complete after :meth:`subjects`."""
        if self.smiles:
            return self._molecules[1]
        is_own_data = self.source is not None and self.source.name is None
        return list(self.loaded.unreadable) if is_own_data and self.loaded is not None else []

    @cached_property
    def output_names(self) -> tuple[str, ...]:
        """What the classes or targets are called, where that is known."""
        network = self.network
        names = network.target_names or network.class_names
        if names or network.task in ("multilabel", "regression"):
            return names
        if self.dataset is not None:
            return () if self.loaded is None else self.loaded.class_names
        trained_on = DATASETS.get(network.dataset or "")
        if trained_on is None or trained_on.classes or not trained_on.shipped:
            return () if trained_on is None else trained_on.classes
        return load_dataset(DatasetSource(name=trained_on.name)).class_names

    def subjects(self, *, of_nodes: bool = False) -> list[Subject]:
        """The graphs; those that could not be read are reported on stderr.

        ``of_nodes`` says that the network classifies nodes.
        """
        self.check()
        network = self.network
        if self.smiles:
            subjects = self._molecules[0]
        elif self.sentence:
            graphs = sentence_graphs(self.sentence)
            subjects = [
                Subject(text, graph, at)
                for at, (text, graph) in enumerate(zip(self.sentence, graphs, strict=True))
            ]
        else:
            subjects = self._of_the_dataset()
        check_fit(network, subjects, of_nodes=of_nodes)
        self._warn(subjects)
        return subjects

    def nodes(self, text: str) -> tuple[Subject, list[int]]:
        """The one graph that is selected, and nodes of it: ``37,1792-1796``, or ``@file``."""
        subjects = self.subjects(of_nodes=True)
        if len(subjects) != 1:
            raise WrongUse(f"--nodes is for nodes of one graph (got {len(subjects)} graphs)")
        listed = text
        if text.startswith("@"):
            try:
                listed = ",".join(Path(text[1:]).read_text(encoding="utf-8").split())
            except (OSError, UnicodeDecodeError) as error:
                raise CommandError(f"--nodes: {text[1:]} cannot be read: {error}") from error
        parts = [part.strip() for part in listed.split(",") if part]
        if not parts:
            raise WrongUse(f"--nodes takes numbers such as 37,52-60 (got {text!r})")
        size = int(subjects[0].data.num_nodes or 0)
        return subjects[0], [node for part in parts for node in positions(part, size)]

    @cached_property
    def _molecules(self) -> tuple[list[Subject], list[UnreadableRow]]:
        """The molecules of ``--smiles``, and those that RDKit or the network cannot read."""
        from gstarx.datasets import UnreadableRow, graph_or_reason, largest_part

        subjects, problems = [], []
        for at, text in enumerate(self.smiles or ()):
            smiles = largest_part(text) if self._salts == "largest" else text
            graph, reason = graph_or_reason(smiles.strip(), self._features)
            if graph is None:
                problems.append(UnreadableRow(at + 1, text, reason))
            else:
                subjects.append(Subject(text, graph, at))
        if not subjects:
            raise CommandError(f"no molecule can be read: {problems[0].in_words}")
        return subjects, problems

    def _of_the_dataset(self) -> list[Subject]:
        loaded = self.loaded
        assert loaded is not None
        size = len(loaded)
        if self.split not in (None, "all"):
            selected = self._of_the_split(loaded, str(self.split))
        elif self.positions:
            selected = [at for text in self.positions for at in positions(text, size)]
        else:
            selected = list(range(size))
        if self.cuts_after_reading:
            if self.sample is not None and self.sample < len(selected):
                selected = sorted(random.Random(self.seed).sample(selected, self.sample))
            selected = selected[: self.limit]
        if self.dataset is not None:
            return [
                Subject(f"{self.dataset} {at}", loaded[at], at, self.dataset) for at in selected
            ]
        from gstarx.datasets import title_of

        number = "" if size == 1 else " {}"
        names = [title_of(loaded[at], loaded.name + number.format(at)) for at in selected]
        return [Subject(name, loaded[at], at) for name, at in zip(names, selected, strict=True)]

    def _of_the_split(self, loaded: GraphDataset, split: str) -> list[int]:
        """The positions of a split, or a word on why it has none."""
        if not loaded.split_indices:
            raise CommandError(
                f"the {split} split of {loaded.name} is unknown: {self.network.name} has no record "
                "of the split that it was trained with. Leave out --split, or train it again with "
                "'gstarx train', which keeps it with the weights"
            )
        selected = sorted(loaded.split_indices.get(split, ()))
        if not selected:
            raise CommandError(
                f"none of the {len(loaded)} graphs of {loaded.name} is in the {split} split that "
                f"{self.network.name} was trained with: leave out --split"
            )
        return selected

    def _warn(self, subjects: Sequence[Subject]) -> None:
        # of a table, all rows that were read, of which a run may have explained a part
        table = None if self.smiles or self.source is None else self.loaded
        warn_about_skipped(self.skipped, len(subjects if table is None else table))
        if self._salts == "warn":
            warn_about_salts(
                [(subject.name, subject.data) for subject in subjects],
                "every part gets scores, including counter-ions, and HN and Myerson scores sum to "
                "the worths of the parts rather than to that of the whole; ",
            )

    def finish(self) -> None:
        """End the command with exit code 3 where it is strict and something was skipped."""
        if self.strict and self.skipped:
            raise typer.Exit(3)

    def targets(self, subjects: Sequence[Subject]) -> list[int | None]:
        """The classes or outputs to explain; ``None`` stands for the predicted class."""
        if self.target is None and self.network.task in ("classification", "binary"):
            return [None]
        columns = self._num_outputs(subjects)
        count = 2 if self.mode == "binary_classification" and columns == 1 else columns
        names = self.output_names
        shown = ", ".join(names) or f"0..{count - 1}"
        if self.target is None:
            if columns > 1:
                raise WrongUse(
                    f"the network has {count} outputs: choose one with --target: {shown}, or all"
                )
            return [0 if self.mode == "regression" else None]
        if self.target == "all":
            return list(range(count))
        lower = [name.lower() for name in names]
        if self.target.lower() in lower:
            return [lower.index(self.target.lower())]
        if self.target.isdigit() and int(self.target) < count:
            return [int(self.target)]
        raise CommandError(
            f"--target must be one of {shown}, a number in 0..{count - 1}, or all "
            f"(got {quoted(self.target)})"
        )

    def _num_outputs(self, subjects: Sequence[Subject]) -> int:
        """Columns of the network's output, from the first graph that it can read."""
        from gstarx.gnn import ModelTask

        task = ModelTask.of(self.network.model, self.model_task)
        problem: Exception | None = None
        for subject in subjects[:10]:
            try:
                return int(task.output(self.network.model, subject.data).shape[1])
            except Exception as error:
                problem = error
        raise CommandError(f"{self.network.name} cannot read these graphs: {problem}")

    def pipeline(self, target: int | None) -> Pipeline:
        """How the graphs are explained and evaluated."""
        from gstarx.evaluation import Pipeline

        return Pipeline(
            self.network.model,
            seed=self.seed,
            target=target,
            task=self.model_task,
            reference=self.reference,
        )

    @cached_property
    def reference(self) -> Any:
        """The scale of regression metrics: stored with the network, or computed from the graphs."""
        from gstarx.metrics import reference_of

        if self.mode != "regression":
            return None
        if self.network.reference is not None:
            return self.network.reference
        loaded = self.loaded
        if loaded is None or len(loaded) < 2:
            return None
        return reference_of(self.network.model, loaded.reference_graphs)

    def check_reference(self) -> None:
        """Raise if metrics of a regression are wanted and nothing gives them a scale."""
        if self.mode == "regression" and self.reference is None:
            raise CommandError(
                "regression metrics need the range and mean of the outputs: give several "
                "graphs with --file, --graphs or a dataset, or weights of gstarx train, which have "
                "them"
            )


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
    from gstarx._internal.imports import FactoryError

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
            "task='node', index=...) in Python"
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
