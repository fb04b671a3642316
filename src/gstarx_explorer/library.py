"""What a worker process has loaded: models, datasets, the run to browse, graphs of requests."""

from __future__ import annotations

import math
import os
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from torch_geometric.data import Data

from gstarx._internal.messages import unknown
from gstarx.datasets import MOLECULE_FEATURES, label_of, largest_part, smiles_graph
from gstarx.drawing import geometry
from gstarx.evaluation import class_probabilities
from gstarx.gnn import ModelTask
from gstarx.metrics import Reference, reference_of
from gstarx.models import LoadedNetwork, load_source
from gstarx.players import PlayerSet, as_players, groups_of, named_edges, named_groups, player_set
from gstarx.registry import DATASETS, TASKS, DatasetSource
from gstarx_bench import datasets
from gstarx_bench.datasets import GRAPH_FILES
from gstarx_explorer.messages import Refused, public_message
from gstarx_explorer.settings import PLAYERS, ServedModel, Settings
from gstarx_explorer.workers import is_out_of_memory

if TYPE_CHECKING:
    from gstarx.datasets import GraphDataset
    from gstarx_explorer.browsing import StoreView

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
#: Characters of a text that an error message quotes.
_QUOTED = 50
#: Graphs of requests that are kept.
_MAX_SUBJECTS = 32
#: Thumbnails that are kept, and the nodes of the largest graph that has one.
_MAX_THUMBNAILS, _MAX_NODES = 512, 150
_NO_REFERENCE = (
    "metrics of a regression need the range and the mean of its outputs: start gstarx serve with "
    "--file or --graphs, or use weights of gstarx train, which keep them"
)


@dataclass(frozen=True)
class Loaded(LoadedNetwork):
    """A model, with what it returns and the user's own graphs for it, if there are any."""

    return_type: str = "raw"
    graphs: DatasetSource | None = None

    @property
    def model_task(self) -> ModelTask:
        """The task as PyG calls it, with the type of its outputs."""
        return ModelTask(mode=TASKS[self.task], return_type=self.return_type)

    @property
    def by_class(self) -> bool:
        """Whether it predicts one of several classes."""
        return self.task in ("classification", "binary")

    @property
    def config(self) -> dict[str, Any]:
        """Its configuration, if it is a network of this package."""
        config = getattr(self.model, "config", None)
        return config if isinstance(config, dict) else {}

    @property
    def num_features(self) -> int | None:
        """The number of node features that it reads, if its configuration has it."""
        features = self.config.get("in_channels")
        return features if isinstance(features, int) else None


@dataclass(frozen=True)
class Subject:
    """A graph to explain, with its title on the page and the input of the request.

    Its random numbers depend on its position in a dataset; that of a user's own graph is 0.
    """

    data: Data
    title: str
    position: int
    input: dict[str, Any]

    def players(self, name: str, limit: int) -> PlayerSet:
        """The players of a name, or Refused if the graph has none, or more than the limit."""
        try:
            players = player_set(self.data, as_players(name))
        except ValueError as error:
            raise Refused("bad_players", public_message(error), "players") from error
        if len(players) > limit:
            text = f"a graph may have {limit} players here (got {len(players)} {name})"
            raise Refused("too_many_nodes", text, "players")
        return players


class Library:
    """The models that are served, their datasets, and the run that can be browsed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._served = {served.name: served for served in settings.models}
        self._loaded: dict[str, Loaded] = {}
        self._datasets: dict[DatasetSource, GraphDataset] = {}
        #: Warnings of what was loaded, by its title.
        self.said_of: dict[str, list[str]] = {}
        self._splits: dict[tuple[DatasetSource, int], GraphDataset] = {}
        self._references: dict[int, tuple[Reference | None, str | None]] = {}
        self._subjects: dict[tuple[str, str, Any], Subject] = {}
        #: The run to browse, if there is one that can be read, and why not otherwise.
        self.store_view: StoreView | None = None
        self.run_problem = "there is no run to browse: start gstarx serve with --run"
        self._stamp: Any = None
        self._checked_at = -math.inf

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models, without that of the run."""
        return tuple(self._served)

    def refresh(self) -> None:
        """Read the run to browse again if its store has changed."""
        run, now = self._settings.run, time.monotonic()
        if run is None or now - self._checked_at < _REFRESH_SECONDS:
            return
        self._checked_at = now
        stamp = _stamp(run.store)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        try:
            from gstarx_bench.runs import StoreError
        except ImportError as error:
            self.run_problem = f"the run cannot be read: {public_message(error)}"
            return
        from gstarx_explorer.browsing import StoreView

        try:
            self.store_view = StoreView(run, self, self.store_view)
        except (ValueError, OSError, StoreError) as error:
            self.run_problem = f"the run cannot be read: {public_message(error)}"
            self._stamp = None  # it may be being written: try again soon

    def browsed(self, field: str | None = None) -> StoreView:
        """The run to browse, or Refused."""
        if self.store_view is None:
            raise Refused("no_run", self.run_problem, field)
        return self.store_view

    def served(self, name: str) -> ServedModel:
        """The settings of the model of that name, or Refused."""
        known = dict(self._served)
        if self.store_view is not None:
            known[self.store_view.served.name] = self.store_view.served
        if name not in known:
            raise Refused("unknown_model", unknown("model", name[:50], known), "model")
        return known[name]

    def get(self, name: str) -> Loaded:
        """A model, or Refused if it cannot be loaded."""
        return self._loaded[name] if name in self._loaded else self.load(self.served(name))

    def load(self, served: ServedModel) -> Loaded:
        """The model of these settings, or Refused if it cannot be loaded."""
        name = served.name
        if served.missing is not None:
            raise Refused("no_model", f"{name}: {served.missing}", "model")
        if name not in self._loaded:
            try:
                network = vars(load_source(served.source))
            except Exception as error:
                reason = public_message(error) or type(error).__name__
                text = f"the model {name!r} cannot be loaded: {reason}"
                raise Refused("no_model", text, "model") from error
            model = Loaded(**network, return_type=served.return_type, graphs=served.graphs)
            if model.config.get("readout", "") is None:
                raise Refused("no_model", f"{name} classifies nodes, not graphs", "model")
            self._loaded[name] = model
        return self._loaded[name]

    def dataset(self, source: DatasetSource) -> GraphDataset:
        """A dataset, even if it takes long to load."""
        if source.name is not None:
            source = replace(source, root=self._root or source.root)
        if source not in self._datasets:
            with warnings.catch_warnings(record=True) as said:
                warnings.simplefilter("always", UserWarning)
                self._datasets[source] = datasets.load_source(source)
            self.said_of[source.title] = [public_message(str(one.message)) for one in said]
            for one in said:
                warnings.warn(one.message, stacklevel=2)
        return self._datasets[source]

    def local_dataset(self, model: Loaded) -> GraphDataset | None:
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
        return dataset if model.num_features in (None, dataset.num_features) else None

    def _as_the_model_reads_it(self, graphs: DatasetSource, model: Loaded) -> DatasetSource:
        """The user's own graphs with the features, labels and classes of the model."""

        def trained_on(*columns: str | None) -> str | None:
            if graphs.file is None or None in columns:
                return None
            named = [column for column in columns if column is not None]
            return datasets.present_columns(Path(graphs.file), named, graphs.encoding)

        label = graphs.label or trained_on(*model.label_columns)
        return replace(
            graphs,
            smiles_column=graphs.smiles_column or trained_on(model.smiles_column),
            name_column=graphs.name_column or trained_on(model.name_column),
            features=self.features(model) or "molecule",
            label=label,
            # the model's task applies to columns that are named for it
            task=graphs.task or (None if label is None else model.task),
            class_names=model.class_names or None,
            salts=(model.salts or graphs.salts) if graphs.salts == "warn" else graphs.salts,
            split="none",
        )

    def _recorded(self, source: DatasetSource, model: Loaded) -> GraphDataset:
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

    def kind(self, model: Loaded) -> str:
        """What the model reads: ``"molecule"``, ``"sentence"`` or ``"graph"``."""
        if self.features(model) is not None:
            return "molecule"
        return "sentence" if "sentence" in self.inputs(model) else "graph"

    def features(self, model: Loaded) -> str | None:
        """What the model reads of a molecule, one of ``MOLECULE_FEATURES``; else ``None``."""
        if model.features in MOLECULE_FEATURES:
            return model.features
        if model.dataset in MOLECULES:
            return model.dataset if model.dataset in MOLECULE_FEATURES else "molecule"
        if model.dataset in DATASETS:
            return None  # sentences, or graphs with features of their own
        if model.graphs is not None:
            file = model.graphs.file
            if file is None or Path(file).suffix.lower() in GRAPH_FILES:
                return None
        if model.num_features is None:
            return "molecule+bonds"  # a user's own network may read bonds
        return "molecule" if model.num_features == _MOLECULE_WIDTH else None

    def inputs(self, model: Loaded) -> list[str]:
        """The inputs that the model accepts: ``"smiles"``, ``"sentence"``, ``"graph"``."""
        inputs = []
        if self.features(model) is not None and find_spec("rdkit") is not None:
            inputs.append("smiles")
        any_dataset = model.dataset not in DATASETS and model.graphs is None
        if model.dataset in SENTENCES or (any_dataset and model.num_features == _SENTENCE_WIDTH):
            inputs.append("sentence")
        if self.local_dataset(model) is not None:
            inputs.append("graph")
        return inputs

    def labels(self, model: Loaded) -> tuple[str, ...]:
        """The names of the classes or targets, if known without loading a large dataset."""
        own = model.class_names if model.by_class else model.target_names
        dataset = self._labeled(model)
        if own or dataset is None:
            return own
        return dataset.class_names if model.by_class else dataset.target_names

    def _labeled(self, model: Loaded) -> GraphDataset | None:
        """The dataset of the model, if its labels are of the model's task."""
        dataset = self.local_dataset(model)
        tasks = {model.task, model.task if dataset is None else dataset.task}
        # labels of two classes are the same for one logit and for two
        return dataset if len(tasks) == 1 or tasks == {"classification", "binary"} else None

    def label(self, model: Loaded, graph: Data) -> int | None:
        """The class of a graph as the model numbers it, if the graph has one."""
        if not model.by_class:
            return None
        label, dataset, own = label_of(graph), self._labeled(model), model.class_names
        names = () if dataset is None else dataset.class_names
        if label is None or not own or label >= len(names):
            return label
        # the table may have other classes than the one that the network was trained on
        return own.index(names[label]) if names[label] in own else None

    def measured(self, model: Loaded, graph: Data) -> list[float | None]:
        """The labels of a graph by target, ``None`` where it was not measured; else empty."""
        dataset, y = self._labeled(model), graph.get("y")
        if dataset is None or y is None or model.by_class:
            return []
        values = [None if math.isnan(value) else value for value in y.double().flatten().tolist()]
        by_name = dict(zip(dataset.target_names, values, strict=False))
        return [by_name.get(name) for name in self.labels(model)]

    def reference(self, model: Loaded) -> tuple[Reference | None, str | None]:
        """The scale of a regression's metrics, or why there is none; (None, None) otherwise."""
        if model.task != "regression" or model.reference is not None:
            return model.reference, None
        key = id(model.model)
        if key not in self._references:
            self._references[key] = None, _NO_REFERENCE
            dataset = self.local_dataset(model)
            if dataset is not None and len(dataset) > 1:
                try:
                    found = reference_of(model.model, dataset.reference_graphs)
                    self._references[key] = found, None
                except Exception as error:
                    text = f"metrics are not available: {public_message(error)}"
                    self._references[key] = None, text
        return self._references[key]

    def subject(self, name: str, input: Mapping[str, Any]) -> Subject:
        """The graph of an input, or Refused if it is invalid, too large or unfit for the model."""
        ((kind, value),) = input.items()
        key = (name, kind, value)
        if key not in self._subjects:
            while len(self._subjects) >= _MAX_SUBJECTS:
                del self._subjects[next(iter(self._subjects))]
            create: dict[str, Callable[[Loaded, Any], tuple[Data, str, int]]] = {
                "smiles": self._from_smiles,
                "sentence": self._from_sentence,
                "graph": self._from_dataset,
                "run_graph": self._from_run,
            }
            model = self.get(name)
            subject = Subject(*create[kind](model, value), dict(input))
            self._check(subject, model, name, f"input.{kind}")
            self._subjects[key] = subject
        return self._subjects[key]

    def _from_smiles(self, model: Loaded, smiles: str) -> tuple[Data, str, int]:
        text = largest_part(smiles) if model.salts == "largest" else smiles
        try:
            features = self.features(model)
            data = smiles_graph(text, features, bond_features=features == "molecule+bonds")
        except ValueError as error:
            raise Refused("bad_smiles", public_message(error), "input.smiles") from error
        if not data.num_nodes:
            raise Refused("bad_smiles", "a molecule needs at least one atom", "input.smiles")
        return data, smiles.strip(), 0

    def _from_sentence(self, model: Loaded, sentence: str) -> tuple[Data, str, int]:
        from gstarx_bench.datasets.sentences import text_graphs

        (data,) = text_graphs([sentence], progress=False)
        if len(data.words) < 2:
            got = f"{sentence[:_QUOTED]!r}{'…' if len(sentence) > _QUOTED else ''}"
            text = f"a sentence must have at least two words (got {got})"
            raise Refused("bad_sentence", text, "input.sentence")
        return data, sentence.strip(), 0

    def _from_dataset(self, model: Loaded, position: int) -> tuple[Data, str, int]:
        dataset = self.local_dataset(model)
        assert dataset is not None, "otherwise the model does not accept this input"
        if position >= len(dataset):
            text = f"{dataset.name} has the graphs 0..{len(dataset) - 1} (got {position})"
            raise Refused("bad_graph", text, "input.graph")
        data = dataset[position]
        return data, name_of(data, f"{dataset.name} {position}"), position

    def _from_run(self, model: Loaded, position: int) -> tuple[Data, str, int]:
        run = self.browsed("input.run_graph")
        data = run.graph(position)
        return data, name_of(data, f"{run.dataset} {position}"), position

    def _check(self, subject: Subject, model: Loaded, name: str, field: str) -> None:
        limit, nodes = self._settings.limits.nodes, int(subject.data.num_nodes or 0)
        if nodes > limit:
            text = f"a graph may have {limit} nodes here (got {nodes})"
            raise Refused("too_many_nodes", text, field)
        expected, got = model.num_features, subject.data.x.shape[1]
        if expected is not None and got != expected:
            text = f"{name} takes {expected} features per node (got {got})"
            raise Refused("bad_input", text, field)

    def subject_entry(
        self,
        subject: Subject,
        model: Loaded,
        outputs: Sequence[float],
        target: int | None,
        players: tuple[str, PlayerSet] | None = None,
    ) -> dict[str, Any]:
        """The drawing of a graph and its prediction, as the API returns them.

        ``outputs`` are the probabilities of classes or targets, or the values of a regression, and
        ``target`` is the one to explain; ``players`` have scores instead of nodes.
        """
        names, truth, smiles = self.labels(model), *map(subject.data.get, ("truth", "smiles"))
        predicted = int(np.argmax(outputs)) if model.by_class else None
        name = names[predicted] if predicted is not None and predicted < len(names) else None
        picture = picture_entry(subject.data)
        return {
            "title": subject.title,
            "smiles": smiles if isinstance(smiles, str) else None,
            **picture,
            "task": model.task,
            "prediction": {
                "class": predicted,
                "name": name,
                "probabilities": [] if model.task == "regression" else list(outputs),
                "values": list(outputs) if model.task == "regression" else [],
            },
            "classes": list(names),
            "target": predicted if target is None else target,
            "label": self.label(model, subject.data),
            "measured": self.measured(model, subject.data),
            "remark": self.reference(model)[1],
            "groups": _group_entries(subject.data),
            "players": None if players is None else _players_entry(*players, picture),
            "truth": None if truth is None else [bool(mark) for mark in truth],
            "input": subject.input,
        }


def _stamp(store: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes whenever a store gets rows: the names, sizes and times of its files."""
    files = []
    for path in sorted(store.rglob("*")):
        with suppress(FileNotFoundError):  # merged into another file in the meantime
            state = path.stat()
            if path.is_file() and not path.name.endswith("-shm"):  # which readers write, too
                files.append((str(path), state.st_size, state.st_mtime_ns))
    return tuple(files)


def outputs_of(model: Loaded, subject: Subject) -> list[float]:
    """Probabilities of classes or targets, or values of a regression, of the whole graph."""
    try:
        task = model.model_task
        output = task.output(model.model, subject.data)
        return class_probabilities(output, task.mode, task.return_type)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = public_message(error) or type(error).__name__
        raise Refused("failed", f"the model cannot read this graph: {reason}") from error


def _players_entry(name: str, players: PlayerSet, picture: dict[str, Any]) -> dict[str, Any]:
    """Who plays instead of nodes, with names made of those of the nodes."""
    called_nodes = [node["name"] for node in picture["nodes"]]
    nodes: list[list[int]] = [[] for _ in range(len(players))]
    if players.edges is not None:
        nodes = players.edges.tolist()
        names = named_edges(nodes, called_nodes)
    else:
        if players.kind == "groups":
            nodes = [np.flatnonzero(players.player_of == at).tolist() for at in players.ids]
        names = named_groups(players.names, nodes, called_nodes)
    entries = [{"name": called, "nodes": own} for called, own in zip(names, nodes, strict=True)]
    title = PLAYERS[picture["kind"]].get(name, name)
    return {"name": name, "title": title, "kind": players.kind, "entries": entries}


def name_of(data: Data, otherwise: str) -> str:
    """The name of a graph if it has one."""
    name = data.get("name")
    return name if isinstance(name, str) and name else otherwise


def picture_entry(data: Data) -> dict[str, Any]:
    """The drawing of a graph, without colors."""
    picture = geometry(data)
    nodes = []
    for node in picture.nodes:
        extents = {"x": node.x, "y": node.y, "r": node.radius, "w": node.width, "h": node.height}
        known = {name: _round(one) for name, one in extents.items() if one is not None}
        nodes.append({"label": node.label, "name": node.name, **known})
    return {
        "kind": picture.kind,
        "width": _round(picture.width),
        "height": _round(picture.height),
        "nodes": nodes,
        "edges": [list(edge) for edge in picture.edges],
        "shapes": [
            {"d": mark.d, "fill": mark.fill, "stroke": mark.stroke, "width": mark.width}
            for mark in picture.marks
        ],
        "text": picture.written,
    }


def _group_entries(data: Data) -> list[dict[str, Any]]:
    """The functional groups of a molecule with their atoms; none for other graphs."""
    if not isinstance(data.get("smiles"), str):
        return []
    try:
        groups = groups_of(data, "functional_groups")
    except ValueError:
        return []  # it is drawn as a graph as well
    return [{"name": name, "nodes": list(nodes)} for name, nodes in groups]


_kept: dict[int, tuple[Data, dict[str, Any] | None]] = {}


def thumbnail(data: Data) -> dict[str, Any] | None:
    """The drawing of a graph for a list; ``None`` for sentences and for large graphs."""
    if data.get("words") or (data.num_nodes or 0) > _MAX_NODES:
        return None
    if _kept.get(id(data), (None, None))[0] is not data:
        while len(_kept) >= _MAX_THUMBNAILS:
            del _kept[next(iter(_kept))]
        _kept[id(data)] = data, None
        with suppress(ValueError):
            _kept[id(data)] = data, picture_entry(data)
    return _kept[id(data)][1]


def matches(search: str, position: int, entry: Mapping[str, Any]) -> bool:
    """Whether the name, the SMILES or the number of a graph is what a user looks for.

    >>> matches("ETH", 3, {"title": "ethanol", "smiles": "CCO"})
    True
    >>> matches("4", 3, {"title": "ethanol", "smiles": "CCO"})
    False
    """
    text = search.strip()
    if text == str(position) or text.lower() in str(entry["title"]).lower():
        return True
    # upper and lower case are different atoms
    return text in (entry["smiles"] or "")


def _round(value: float) -> float:
    return round(value, 2)  # finer than a screen shows
