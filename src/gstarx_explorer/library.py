"""The models, datasets and runs of a worker process, each loaded when it is first needed."""

from __future__ import annotations

import math
import os
import time
import warnings
from contextlib import suppress
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gstarx._internal.messages import unknown
from gstarx.datasets import MOLECULE_FEATURES, label_of
from gstarx.metrics import Reference, reference_of
from gstarx.registry import DATASETS, DatasetSource
from gstarx_bench import datasets
from gstarx_bench.datasets import GRAPH_FILES
from gstarx_explorer.memory import MEMORY_LIMIT
from gstarx_explorer.messages import Refused, public_message
from gstarx_explorer.settings import LoadedModel, ServedModel, ServedRun, Settings

if TYPE_CHECKING:
    from torch_geometric.data import Data

    from gstarx.datasets import GraphDataset
    from gstarx_explorer.browsing import StoreView

_NO_RUN = "there is no run to browse: start gstarx serve with --run"
#: Datasets of molecules and of sentences.
MOLECULES = frozenset({"nitro", "mutag", "bbbp", "bace"})
SENTENCES = frozenset({"sst2", "tweets"})
#: Datasets that load fast: those of the package, and small ones by the directory of their files.
_SHIPPED = frozenset({"nitro", "motifs"})
_SMALL = {"mutag": "MUTAG", "bbbp": "BBBP", "bace": "BACE", "ba_2motifs": "BA_2Motifs"}
#: Seconds between two checks of a store, which another process may be writing to.
_REFRESH_SECONDS = 2.0
#: Node features of a molecule and of a sentence, if the dataset of a model is unknown.
_MOLECULE_WIDTH, _SENTENCE_WIDTH = 9, 384
_NO_REFERENCE = (
    "metrics of a regression need the range and the mean of its outputs: start gstarx serve with "
    "--file or --graphs, or use weights of gstarx train, which keep them"
)


class Library:
    """The models that are served, their datasets, and the run that can be browsed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._served = {served.name: served for served in settings.models}
        self._loaded: dict[str, LoadedModel] = {}
        self._datasets: dict[DatasetSource, GraphDataset] = {}
        #: Warnings of what was loaded, by its title.
        self.said_of: dict[str, list[str]] = {}
        self._splits: dict[tuple[DatasetSource, int], GraphDataset] = {}
        self._references: dict[int, tuple[Reference | None, str | None]] = {}
        self._run: tuple[StoreView | None, str] = (None, _NO_RUN)
        self._stamp: Any = None
        self._checked_at: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models, without that of the run."""
        return tuple(self._served)

    @property
    def store_view(self) -> StoreView | None:
        """The run to browse, if there is one that can be read."""
        return self._run_or_problem[0]

    @property
    def run_problem(self) -> str:
        """Why there is no run to browse."""
        return self._run_or_problem[1]

    @property
    def _run_or_problem(self) -> tuple[StoreView | None, str]:
        """The run in its current state, read again if its store has changed."""
        run, now = self._settings.run, time.monotonic()
        checked_at = self._checked_at
        if run is None or (checked_at is not None and now - checked_at < _REFRESH_SECONDS):
            return self._run
        self._checked_at = now
        stamp = _stamp(run.store)
        if stamp != self._stamp:
            self._stamp, previous = stamp, self._run
            self._run = self._read(run)
            if self._run[0] is None and previous[0] is not None:
                self._run, self._stamp = previous, None  # it is being written: try again soon
        return self._run

    def _read(self, run: ServedRun) -> tuple[StoreView | None, str]:
        try:
            from gstarx_bench.runs import StoreError
            from gstarx_explorer.browsing import StoreView
        except ImportError as error:
            return None, f"the run cannot be read: {public_message(error)}"
        shown = None if self._run[0] is None else self._run[0].subject
        try:
            with MEMORY_LIMIT.uncounted():
                return StoreView.of(run, self, shown), ""
        except (ValueError, OSError, StoreError) as error:
            return None, f"the run cannot be read: {public_message(error)}"

    def served(self, name: str) -> ServedModel:
        """The settings of the model of that name, or Refused."""
        of_run = self.store_view.served if self.store_view is not None else None
        if of_run is not None and of_run.name == name:
            return of_run
        if name not in self._served:
            names = [*self._served, *([of_run.name] if of_run is not None else [])]
            raise Refused("unknown_model", unknown("model", name[:50], names), "model")
        return self._served[name]

    def get(self, name: str) -> LoadedModel:
        """A model, or Refused if it cannot be loaded."""
        served = self.served(name)
        if served.missing is not None:
            raise Refused("no_model", f"{name}: {served.missing}", "model")
        if name not in self._loaded:
            try:
                with MEMORY_LIMIT.uncounted():
                    model = served.load()
            except Exception as error:
                reason = public_message(error) or type(error).__name__
                text = f"the model {name!r} cannot be loaded: {reason}"
                raise Refused("no_model", text, "model") from error
            if _config(model).get("readout", "") is None:
                raise Refused("no_model", f"{name} classifies nodes, not graphs", "model")
            self._loaded[name] = model
        return self._loaded[name]

    def dataset(self, source: DatasetSource) -> GraphDataset:
        """A dataset, even if it takes long to load."""
        if source.name is not None:
            source = replace(source, root=self._root or source.root)
        if source not in self._datasets:
            with MEMORY_LIMIT.uncounted(), warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", UserWarning)
                self._datasets[source] = datasets.load_source(source)
            self.said_of[source.title] = [public_message(one.message) for one in said]
            for one in said:
                warnings.warn(one.message, stacklevel=2)
        return self._datasets[source]

    def local_dataset(self, model: LoadedModel) -> GraphDataset | None:
        """The user's own graphs, or the model's dataset if its files are here and it is small.

        Raises
        ------
        Refused
            If the user's own graphs cannot be loaded.
        """
        if model.graphs is not None:
            source = model.graphs
            try:
                return self._recorded(self._as_the_model_reads_it(source, model), model)
            except Exception as error:  # also those of a user's factory
                reason = public_message(error) or type(error).__name__
                text = f"the graphs of {source.title} cannot be loaded: {reason}"
                raise Refused("no_data", text, "model") from error
        name = model.dataset
        if name is None or not (name in _SHIPPED or self._has_files(name)):
            return None
        try:
            dataset = self._recorded(DatasetSource(name=name), model)
        except (OSError, ValueError, ImportError):
            return None  # damaged files: the model can still be used with other inputs
        # a user's own table may have the name of a dataset
        return dataset if num_features(model) in (None, dataset.num_features) else None

    def _as_the_model_reads_it(self, graphs: DatasetSource, model: LoadedModel) -> DatasetSource:
        """The user's own graphs with the features, labels and classes of the model."""
        label = graphs.label
        if label is None and graphs.file is not None:
            label = datasets.present_columns(
                Path(graphs.file), model.label_columns, graphs.encoding
            )
        return replace(
            graphs,
            features=self.features(model) or "molecule",
            label=label,
            # the model's task applies to columns that are named for it
            task=graphs.task or (None if label is None else model.task),
            class_names=model.classes or None,
            salts=(model.salts or graphs.salts) if graphs.salts == "warn" else graphs.salts,
            split="none",
        )

    def _recorded(self, source: DatasetSource, model: LoadedModel) -> GraphDataset:
        """A dataset with the split that the model was trained with, if that was recorded."""
        dataset = self.dataset(source)
        if model.split is None:
            return dataset
        key = (source, id(model.model))
        if key not in self._splits:
            self._splits[key] = dataset.as_recorded(model.split)
        return self._splits[key]

    @property
    def _root(self) -> str | None:
        return None if self._settings.data is None else str(self._settings.data)

    def _has_files(self, name: str) -> bool:
        root = self._root or os.environ.get("GSTARX_DATA")
        directory = Path(root) if root else Path.home() / ".cache" / "gstarx"
        return name in _SMALL and (directory / _SMALL[name]).is_dir()

    def kind(self, model: LoadedModel) -> str:
        """What the model reads: ``"molecule"``, ``"sentence"`` or ``"graph"``."""
        if model.dataset in MOLECULES or self.features(model) is not None:
            return "molecule"
        if model.dataset in SENTENCES or "sentence" in self.inputs(model):
            return "sentence"
        return "graph"

    def features(self, model: LoadedModel) -> str | None:
        """What the model reads of a molecule, one of ``MOLECULE_FEATURES``; else ``None``."""
        if model.features in MOLECULE_FEATURES:
            return model.features
        if model.dataset in MOLECULES:
            return model.dataset if model.dataset in MOLECULE_FEATURES else "molecule"
        graphs = model.graphs
        if model.dataset in DATASETS or (graphs is not None and not _is_table(graphs)):
            return None  # sentences, or graphs with features of their own
        width = num_features(model)
        if width is None:
            return "molecule+bonds"  # a user's own network may read bonds
        return "molecule" if width == _MOLECULE_WIDTH else None

    def inputs(self, model: LoadedModel) -> list[str]:
        """The inputs that the model accepts: ``"smiles"``, ``"sentence"``, ``"graph"``."""
        inputs = []
        if self.features(model) is not None and find_spec("rdkit") is not None:
            inputs.append("smiles")
        unknown_dataset = model.dataset not in DATASETS and model.graphs is None
        if model.dataset in SENTENCES or (
            unknown_dataset and num_features(model) == _SENTENCE_WIDTH
        ):
            inputs.append("sentence")
        if self.local_dataset(model) is not None:
            inputs.append("graph")
        return inputs

    def classes(self, model: LoadedModel) -> tuple[str, ...]:
        """The names of the classes, if they are known without loading a large dataset."""
        return model.classes or self._names(model, "class_names")

    def targets(self, model: LoadedModel) -> tuple[str, ...]:
        """The names of the targets of a regression or of several yes-or-no targets."""
        return model.targets or self._names(model, "target_names")

    def _names(self, model: LoadedModel, attribute: str) -> tuple[str, ...]:
        dataset = self._labeled(model)
        names: tuple[str, ...] = () if dataset is None else getattr(dataset, attribute)
        return names

    def _labeled(self, model: LoadedModel) -> GraphDataset | None:
        """The dataset of the model, if its labels are of the model's task."""
        dataset = self.local_dataset(model)
        tasks = {model.task, model.task if dataset is None else dataset.task}
        # labels of two classes are the same for one logit and for two
        return dataset if len(tasks) == 1 or tasks == {"classification", "binary"} else None

    def label(self, model: LoadedModel, graph: Data) -> int | None:
        """The class of a graph as the model numbers it, if the graph has one."""
        if model.task in ("multilabel", "regression"):
            return None
        label, names = label_of(graph), self._names(model, "class_names")
        if label is None or not model.classes or label >= len(names):
            return label
        # the table may have other classes than the one that the network was trained on
        return model.classes.index(names[label]) if names[label] in model.classes else None

    def measured(self, model: LoadedModel, graph: Data) -> list[float | None]:
        """The labels of a graph by target, ``None`` where it was not measured; else empty."""
        dataset, y = self._labeled(model), graph.get("y")
        if dataset is None or y is None or model.task not in ("multilabel", "regression"):
            return []
        values = [None if math.isnan(value) else value for value in y.double().flatten().tolist()]
        by_name = dict(zip(dataset.target_names, values, strict=False))
        return [by_name.get(name) for name in self.targets(model)]

    def reference(self, model: LoadedModel) -> tuple[Reference | None, str | None]:
        """The scale of a regression's metrics, or why there is none; (None, None) otherwise."""
        if model.mode != "regression":
            return None, None
        if model.reference is not None:
            return model.reference, None
        if id(model.model) not in self._references:
            self._references[id(model.model)] = self._computed_reference(model)
        return self._references[id(model.model)]

    def _computed_reference(self, model: LoadedModel) -> tuple[Reference | None, str | None]:
        dataset = self.local_dataset(model)
        if dataset is None or len(dataset) < 2:
            return None, _NO_REFERENCE
        try:
            return reference_of(model.model, dataset.reference_graphs), None
        except Exception as error:
            return None, f"metrics are not available: {public_message(error)}"


def num_features(model: LoadedModel) -> int | None:
    """The number of node features that the model reads, if its configuration has it."""
    features = _config(model).get("in_channels")
    return features if isinstance(features, int) else None


def _is_table(source: DatasetSource) -> bool:
    return source.file is not None and Path(source.file).suffix.lower() not in GRAPH_FILES


def _config(model: LoadedModel) -> dict[str, Any]:
    config = getattr(model.model, "config", None)
    return config if isinstance(config, dict) else {}


def _stamp(store: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes whenever a store gets rows: the names, sizes and times of its files."""
    files = []
    for path in sorted((store / "rows").glob("run=*/*")):
        with suppress(FileNotFoundError):  # merged into another file in the meantime
            state = path.stat()
            files.append((str(path), state.st_size, state.st_mtime_ns))
    return tuple(files)
