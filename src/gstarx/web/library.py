"""The models, datasets and runs of a worker process, each loaded when it is first needed."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gstarx import datasets
from gstarx._internal.suggestions import unknown
from gstarx.web.memory import MEMORY_LIMIT
from gstarx.web.messages import Refused, public_message
from gstarx.web.settings import LoadedModel, ServedModel, ServedRun, Settings

if TYPE_CHECKING:
    from gstarx.datasets import GraphDataset
    from gstarx.web.browsing import StoreView

_NO_RUN = "there is no run to browse: start gstarx serve with --run"
#: Datasets of molecules and of sentences.
MOLECULES = frozenset({"nitro", "mutag", "bbbp", "bace"})
SENTENCES = frozenset({"sst2", "tweets"})
#: Datasets that load fast: those of the package, and small ones by the directory of their files.
_SHIPPED = frozenset({"nitro", "motifs"})
_SMALL = {"mutag": "MUTAG", "bbbp": "BBBP", "bace": "BACE", "ba_2motifs": "BA_2Motifs"}
#: Seconds between two looks at a store, which another process may be writing to.
_REFRESH_SECONDS = 2.0
#: The input of a model by its number of node features, if its dataset is unknown.
_INPUT_BY_FEATURES = {9: "smiles", 384: "sentence"}


class Library:
    """The models that are served, their datasets, and the run that can be browsed."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._served = {served.name: served for served in settings.models}
        self._loaded: dict[str, LoadedModel] = {}
        self._datasets: dict[str, GraphDataset] = {}
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
            self._stamp, before = stamp, self._run
            self._run = self._read(run)
            if self._run[0] is None and before[0] is not None:
                self._run, self._stamp = before, None  # it is being written: try again soon
        return self._run

    def _read(self, run: ServedRun) -> tuple[StoreView | None, str]:
        try:
            from gstarx.runs import StoreError
            from gstarx.web.browsing import StoreView
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
            known = [*self._served, *([of_run.name] if of_run is not None else [])]
            raise Refused("unknown_model", unknown("model", name[:50], known), "model")
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

    def dataset(self, name: str) -> GraphDataset:
        """A dataset, even if it takes long to load."""
        if name not in self._datasets:
            options = {"progress": False} if name in SENTENCES else {}
            with MEMORY_LIMIT.uncounted():
                self._datasets[name] = datasets.load(name, self._settings.data, **options)
        return self._datasets[name]

    def local_dataset(self, model: LoadedModel) -> GraphDataset | None:
        """The dataset that a model was trained on, if its files are here and it is small."""
        name = model.dataset
        if name is None or not (name in _SHIPPED or self._has_files(name)):
            return None
        try:
            return self.dataset(name)
        except (OSError, ValueError, ImportError):
            return None  # damaged files: the model can still be used with other inputs

    def _has_files(self, name: str) -> bool:
        root = self._settings.data or os.environ.get("GSTARX_DATA")
        directory = Path(root) if root else Path.home() / ".cache" / "gstarx"
        return name in _SMALL and (directory / _SMALL[name]).is_dir()

    def kind(self, model: LoadedModel) -> str:
        """What the model reads: ``"molecule"``, ``"sentence"`` or ``"graph"``."""
        if model.dataset in MOLECULES or "smiles" in self.inputs(model):
            return "molecule"
        if model.dataset in SENTENCES or "sentence" in self.inputs(model):
            return "sentence"
        return "graph"

    def inputs(self, model: LoadedModel) -> list[str]:
        """The inputs that the model accepts: ``"smiles"``, ``"sentence"``, ``"graph"``."""
        if model.dataset is None:
            features = _config(model).get("in_channels")
            inputs = ["smiles"] if features is None else [_INPUT_BY_FEATURES.get(features, "")]
        else:
            inputs = ["smiles"] if model.dataset in MOLECULES else []
            inputs += ["sentence"] if model.dataset in SENTENCES else []
        if find_spec("rdkit") is None:
            inputs = [input for input in inputs if input != "smiles"]
        if self.local_dataset(model) is not None:
            inputs.append("graph")
        return [input for input in inputs if input]

    def classes(self, model: LoadedModel) -> tuple[str, ...]:
        """The names of the classes, if they are known without loading a large dataset."""
        dataset = self.local_dataset(model)
        return model.classes or (() if dataset is None else dataset.class_names)


def num_features(model: LoadedModel) -> int | None:
    """The number of node features that the model reads, if its configuration has it."""
    features = _config(model).get("in_channels")
    return features if isinstance(features, int) else None


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
