"""Inside a worker: the models and datasets at hand, each loaded when first asked for."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gstarx import datasets
from gstarx._internal.suggestions import unknown
from gstarx.web.memory import ALLOWANCE
from gstarx.web.messages import Refused, said
from gstarx.web.settings import LoadedModel, ServedModel, ServedRun, Settings

if TYPE_CHECKING:
    from gstarx.datasets import GraphDataset
    from gstarx.web.browsing import Browsed

_NO_RUN = "there is no run to browse: start gstarx serve with --run"
#: Datasets by what a graph of theirs is.
MOLECULES = frozenset({"nitro", "mutag", "bbbp", "bace"})
SENTENCES = frozenset({"sst2", "tweets"})
#: Datasets that are read in no time: those of the package, and small ones where their files are.
_SHIPPED = frozenset({"nitro", "motifs"})
_SMALL = {"mutag": "MUTAG", "bbbp": "BBBP", "bace": "BACE", "ba_2motifs": "BA_2Motifs"}
#: Seconds for which a store is taken to be as it was; somebody may be writing to it.
_FRESH = 2.0
#: Features of a node by what it can then stand for, where no dataset says it.
_FEATURES = {9: "smiles", 384: "sentence"}


class Networks:
    """The models that are served, by name."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._served = {served.name: served for served in settings.models}
        self._loaded: dict[str, LoadedModel] = {}
        self._datasets: dict[str, GraphDataset] = {}
        self._run: tuple[Browsed | None, str] = (None, _NO_RUN)
        self._stamp: Any = None
        self._looked: float | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the models, but for that of a run."""
        return tuple(self._served)

    @property
    def browsed(self) -> Browsed | None:
        """The run to browse, where there is one that can be read."""
        return self._run_or_problem[0]

    @property
    def run_problem(self) -> str:
        """Why there is none."""
        return self._run_or_problem[1]

    @property
    def _run_or_problem(self) -> tuple[Browsed | None, str]:
        """The run as it is now, read again where its store has changed."""
        asked, now = self._settings.run, time.monotonic()
        if asked is None or (self._looked is not None and now - self._looked < _FRESH):
            return self._run
        self._looked = now
        stamp = _stamp(asked.store)
        if stamp != self._stamp:
            self._stamp, before = stamp, self._run
            self._run = self._read(asked)
            if self._run[0] is None and before[0] is not None:
                self._run, self._stamp = before, None  # it is being written: look again soon
        return self._run

    def _read(self, asked: ServedRun) -> tuple[Browsed | None, str]:
        try:
            from gstarx.runs import StoreError
            from gstarx.web.browsing import Browsed
        except ImportError as error:
            return None, f"the run cannot be read: {said(error)}"
        known = None if self._run[0] is None else self._run[0].about
        try:
            with ALLOWANCE.aside():
                return Browsed.of(asked, self, known), ""
        except (ValueError, OSError, StoreError) as error:
            return None, f"the run cannot be read: {said(error)}"

    def served(self, name: str) -> ServedModel:
        """The model of that name as it was set up, or Refused."""
        own = self.browsed.served if self.browsed is not None else None
        if own is not None and own.name == name:
            return own
        if name not in self._served:
            known = [*self._served, *([own.name] if own is not None else [])]
            raise Refused("unknown_model", unknown("model", name[:50], known), "model")
        return self._served[name]

    def get(self, name: str) -> LoadedModel:
        """A model, or Refused where it cannot be loaded."""
        served = self.served(name)
        if served.missing is not None:
            raise Refused("no_model", f"{name}: {served.missing}", "model")
        if name not in self._loaded:
            try:
                with ALLOWANCE.aside():
                    found = served.load()
            except Exception as error:
                reason = said(error) or type(error).__name__
                text = f"the model {name!r} cannot be loaded: {reason}"
                raise Refused("no_model", text, "model") from error
            if _config(found).get("readout", "") is None:
                raise Refused("no_model", f"{name} classifies nodes, not graphs", "model")
            self._loaded[name] = found
        return self._loaded[name]

    def dataset(self, name: str) -> GraphDataset:
        """A dataset, however long that takes."""
        if name not in self._datasets:
            options = {"progress": False} if name in SENTENCES else {}
            with ALLOWANCE.aside():
                self._datasets[name] = datasets.load(name, self._settings.data, **options)
        return self._datasets[name]

    def at_hand(self, model: LoadedModel) -> GraphDataset | None:
        """The dataset that a model was trained on, where it is here and small."""
        name = model.dataset
        if name is None or not (name in _SHIPPED or self._is_here(name)):
            return None
        try:
            return self.dataset(name)
        except (OSError, ValueError, ImportError):
            return None  # files that are not what they seem: the model can still be asked

    def _is_here(self, name: str) -> bool:
        root = self._settings.data or os.environ.get("GSTARX_DATA")
        place = Path(root) if root else Path.home() / ".cache" / "gstarx"
        return name in _SMALL and (place / _SMALL[name]).is_dir()

    def kind(self, model: LoadedModel) -> str:
        """What the model reads: ``"molecule"``, ``"sentence"`` or ``"graph"``."""
        if model.dataset in MOLECULES or "smiles" in self.inputs(model):
            return "molecule"
        if model.dataset in SENTENCES or "sentence" in self.inputs(model):
            return "sentence"
        return "graph"

    def inputs(self, model: LoadedModel) -> list[str]:
        """How graphs can be given: ``"smiles"``, ``"sentence"``, ``"graph"``."""
        if model.dataset is None:
            features = _config(model).get("in_channels")
            found = ["smiles"] if features is None else [_FEATURES.get(features, "")]
        else:
            found = ["smiles"] if model.dataset in MOLECULES else []
            found += ["sentence"] if model.dataset in SENTENCES else []
        if find_spec("rdkit") is None:
            found = [way for way in found if way != "smiles"]
        if self.at_hand(model) is not None:
            found.append("graph")
        return [way for way in found if way]

    def classes(self, model: LoadedModel) -> tuple[str, ...]:
        """What the classes stand for, where that is known without reading much."""
        data = self.at_hand(model)
        return model.classes or (() if data is None else data.class_names)


def features_of(model: LoadedModel) -> int | None:
    """How many features of a node the model reads, where it says so."""
    found = _config(model).get("in_channels")
    return found if isinstance(found, int) else None


def _config(model: LoadedModel) -> dict[str, Any]:
    found = getattr(model.model, "config", None)
    return found if isinstance(found, dict) else {}


def _stamp(store: Path) -> tuple[tuple[str, int, int], ...]:
    """What changes whenever a store gets rows: its files, their sizes and times."""
    found = []
    for path in sorted((store / "rows").glob("run=*/*")):
        with suppress(FileNotFoundError):  # pieces are put together while we look
            state = path.stat()
            found.append((str(path), state.st_size, state.st_mtime_ns))
    return tuple(found)
