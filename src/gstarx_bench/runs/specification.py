"""The specification of a run: every choice that its numbers depend on, frozen and checked."""

from __future__ import annotations

import json
import math
import os
import tomllib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    PrivateAttr,
    field_validator,
    model_validator,
)

from gstarx import datasets, explainers
from gstarx._internal.files import write_atomically
from gstarx._internal.messages import unknown
from gstarx.explainers import options_of
from gstarx.metrics import SPARSITIES
from gstarx.registry import EXPLAINERS, DatasetSource, ModelSource

SPLITS = ("train", "val", "test", "all")
#: Options of explainers that are set by the run.
_SET_BY_RUN = {
    "seed": "the run's own seed",
    "baseline": "the run's own baseline",
    "reference": "the run's own reference",
    "progress": "the bar over graphs",
}


_Given = TypeVar("_Given")
#: Fields of a dataset source that are not options.
_SOURCES = ("name", "root", "file", "graphs")


class _Checked(BaseModel):
    """Frozen; the error for an unknown field suggests the nearest one."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=False)

    @model_validator(mode="before")
    @classmethod
    def _known_fields(cls, content: Any) -> Any:
        if isinstance(content, Mapping):
            for name in content:
                if name not in cls.model_fields:
                    raise ValueError(unknown("field", str(name), cls.model_fields))
        return content


class DatasetSpec(_Checked):
    """A dataset and its content.

    Attributes
    ----------
    name
        One of :func:`gstarx.datasets.names`.
    file
        Instead of a name: a table of molecules, see :func:`gstarx_bench.datasets.from_table`.
    graphs
        Instead of a name: ``module:factory``, a function that returns graphs, which every worker
        calls. It may also be given as ``factory``, as for a model.
    options
        Options of :func:`gstarx.datasets.load`, or for a table or a factory the other fields of
        :class:`gstarx.registry.DatasetSource`, such as ``label`` and ``task``.
    live
        What graphs given in Python are called, see :meth:`of`. They are not stored with the run.
    digest
        Digest of its content; checked if given, and otherwise recorded in the store.
    root
        The directory that contains the data; it does not affect the result.
    """

    name: str | None = None
    file: str | None = None
    graphs: str | None = None
    live: str | None = None
    options: dict[str, JsonValue] = Field(default_factory=dict)
    digest: str | None = None
    root: str | None = None
    _given: datasets.GraphDataset | None = PrivateAttr(default=None)

    @classmethod
    def of(cls, graphs: Iterable[Any], name: str = "graphs") -> DatasetSpec:
        """Graphs that are here already, such as a list of ``Data``; their splits, if any, count."""
        given = graphs
        if not isinstance(given, datasets.GraphDataset):
            given = datasets.from_graphs(graphs, name=name, split="none")
        spec = cls(live=given.name)
        spec._given = given
        return spec

    @model_validator(mode="before")
    @classmethod
    def _factory(cls, content: Any) -> Any:
        """Take a function by the same key as that of a model."""
        if not isinstance(content, Mapping) or "factory" not in content:
            return content
        if content.get("graphs") is not None:
            raise ValueError("factory and graphs name the same function: give one of them")
        rest = {name: value for name, value in content.items() if name != "factory"}
        return {**rest, "graphs": content["factory"]}

    @field_validator("name")
    @classmethod
    def _known(cls, name: str | None) -> str | None:
        if name is not None and name not in datasets.names():
            raise ValueError(unknown("dataset", name, datasets.names()))
        return name

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        if self.live is not None:
            if (self.name, self.file, self.graphs) != (None, None, None):
                raise ValueError("graphs given in Python have no name, file or factory")
        elif self.name is None:
            valid = [f.name for f in fields(DatasetSource) if f.name not in _SOURCES]
            for option in self.options:
                if option not in valid:
                    raise ValueError(unknown("option of a dataset", option, valid))
            self._source()
        elif self.file is not None or self.graphs is not None:
            raise ValueError("a dataset is a name, a file or graphs: exactly one of them")
        return self

    @property
    def title(self) -> str:
        """What to call it."""
        return self.live or self._source().title

    def load(self, *, progress: bool = False) -> datasets.GraphDataset:
        """Load it, in any process."""
        if self.live is not None:
            return _still_here(self._given, f"the graphs {self.live!r}")
        if self.name is not None:
            return datasets.load(self.name, self.root, **self.options)
        return datasets.load_source(self._source(), progress=progress)

    def with_salts(self, salts: str | None) -> DatasetSpec:
        """The same dataset, its molecules read as those of a training, unless its options say."""
        if salts is None or self.file is None or "salts" in self.options:
            return self
        return self.model_copy(update={"options": {**self.options, "salts": salts}})

    def absolute(self) -> DatasetSpec:
        """The same dataset with an absolute path."""
        if self.file is None:
            return self
        return self.model_copy(update={"file": os.path.abspath(self.file)})

    def _source(self) -> DatasetSource:
        # a split made here would not be that of the model
        options: dict[str, Any] = {"split": "none", **self.options} if self.name is None else {}
        return DatasetSource(name=self.name, file=self.file, graphs=self.graphs, **options)


class ModelSpec(_Checked):
    """A model by its weights, or by the function that makes it.

    Attributes
    ----------
    weights
        A file of :func:`gstarx.models.save_model` (``.safetensors``), a published checkpoint
        (``.pth``), a ``.pt`` or ``.ckpt`` of Chemprop, or with ``factory`` a state dictionary. Its
        path does not affect the result.
    factory
        ``module:factory``, a function without arguments that returns a model of your own. Every
        worker imports it.
    live
        The class of a model given in Python, see :meth:`of`. It is not stored with the run.
    options
        Options of :func:`gstarx_bench.models.load_published_checkpoint`, or ``trust`` for a file of
        Chemprop, as in :func:`gstarx.integrations.chemprop.load`.
    task
        What the model does: one of :data:`gstarx.registry.TASKS`; by default the task stored in its
        file, or else ``"classification"``.
    return_type
        What it returns: ``"raw"`` outputs, ``"probs"`` or ``"log_probs"``.
    digest
        The :func:`gstarx.models.digest` of the weights; checked if given.
    """

    weights: str | None = None
    factory: str | None = None
    live: str | None = None
    options: dict[str, JsonValue] = Field(default_factory=dict)
    task: Literal["classification", "binary", "multilabel", "regression"] | None = None
    return_type: Literal["raw", "probs", "log_probs"] = "raw"
    digest: str | None = None
    _given: Any = PrivateAttr(default=None)

    @classmethod
    def of(cls, model: Any, **choices: Any) -> ModelSpec:
        """A model that is here already, with its ``task`` and ``return_type``."""
        if not callable(model):
            raise ValueError(
                f"a model is called with the fields of a graph (got {type(model).__name__})"
            )
        spec = cls(live=getattr(model, "__name__", type(model).__name__), **choices)
        spec._given = model
        return spec

    @property
    def given(self) -> Any:
        """The model given in Python."""
        return _still_here(self._given, f"the model {self.live!r}")

    @model_validator(mode="after")
    def _has_weights_or_factory(self) -> Self:
        if self.live is not None:
            if self.weights is not None or self.factory is not None:
                raise ValueError("a model given in Python has neither weights nor a factory")
            return self
        if self.weights is None and self.factory is None:
            raise ValueError("a model has weights or a factory (got neither)")
        if self.factory is not None and ":" not in self.factory:
            raise ValueError(f"a factory is written module:function (got {self.factory!r})")
        return self

    @property
    def source(self) -> ModelSource:
        """Where it comes from."""
        weights = None if self.weights is None else Path(self.weights)
        return ModelSource(self.factory, weights, task=self.task)


class ExplainerSpec(_Checked):
    """An explainer by name, with options that differ from its settings for the dataset.

    Attributes
    ----------
    name
        One of :func:`gstarx.explainers.names`.
    options
        Options of :func:`gstarx.explainers.create`.
    """

    name: str
    options: dict[str, JsonValue] = Field(default_factory=dict)

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        valid = explainers.names(oracles=True)
        if name not in valid:
            raise ValueError(unknown("explainer", name, valid))
        return name

    @model_validator(mode="after")
    def _known_options(self) -> Self:
        valid = options_of(self.name)
        for option in self.options:
            if option in _SET_BY_RUN and (option != "reference" or _takes_reference(self.name)):
                raise ValueError(f"option {option!r} is set by the run: {_SET_BY_RUN[option]}")
            if valid and option not in valid:
                raise ValueError(unknown(f"option of {self.name!r}", option, valid))
        return self


class RunSpec(_Checked):
    """A run: which graphs, which model, which explainer, and how it is evaluated.

    Attributes
    ----------
    dataset, model, explainer
        See their classes; a string is a name or, for the model, the path of its weights. A model
        and a list of graphs may also be given as they are: they are not stored, so that such a run
        continues when the same are given again.
    split
        ``"train"``, ``"val"``, ``"test"`` or ``"all"`` graphs; by default ``"test"``, or ``"all"``
        for graphs given in Python without splits.
    graphs
        Positions in the dataset, all in the split; by default the entire split.
    nodes
        Nodes of one graph, for a model that classifies nodes and an explainer of the family
        ``gstarx``: every node is then explained as :func:`gstarx.explain_nodes` does.
    removal
        How nodes are removed, for the metrics, and for explainers that have this option unless
        their options set it.
    baseline
        What the payoff is compared with, for explainers that have this option: a split over which
        the model's output is averaged, ``"singletons"`` for the mean over single nodes of each
        graph, ``"uniform"``, a number or one per class, or nothing for the explainer's default.
    sparsities
        The sparsities at which every explanation is evaluated.
    target
        The class or output to explain; by default the predicted class.
    seed
        Every graph derives its own seed from it and its position in the dataset.
    device
        The torch device that models and graphs are put on.

    Examples
    --------
    >>> spec = RunSpec(
    ...     dataset="nitro", model="gcn.safetensors", explainer="gstarx", baseline="train"
    ... )
    >>> spec.dataset.name, spec.split, len(spec.sparsities)
    ('nitro', 'test', 8)
    >>> RunSpec(dataset="mutagg", model="gcn.safetensors", explainer="gstarx")
    Traceback (most recent call last):
    ...
    pydantic_core._pydantic_core.ValidationError: ...there is no dataset 'mutagg'; did you mean...
    """

    dataset: DatasetSpec
    model: ModelSpec
    explainer: ExplainerSpec
    split: Literal["train", "val", "test", "all"] = "test"
    graphs: tuple[int, ...] | None = None
    nodes: tuple[int, ...] | None = None
    removal: Literal["remove", "split", "zero_filling"] = "remove"
    baseline: (
        Literal["train", "val", "test", "all", "singletons", "uniform"] | tuple[float, ...] | None
    ) = None
    sparsities: tuple[float, ...] = SPARSITIES
    target: int | None = Field(default=None, ge=0)
    seed: int = Field(default=0, ge=0, lt=2**63)
    device: str = "cpu"

    def __init__(
        self,
        *,
        dataset: DatasetSpec | Mapping[str, Any] | str | Iterable[Any],
        model: ModelSpec | Mapping[str, Any] | str | Callable[..., Any],
        explainer: ExplainerSpec | Mapping[str, Any] | str,
        **choices: Any,
    ) -> None:
        fields: dict[str, Any] = {"dataset": dataset, "model": model, "explainer": explainer}
        super().__init__(**fields, **choices)

    @model_validator(mode="before")
    @classmethod
    def _given_in_python(cls, content: Any) -> Any:
        """Take graphs and a model as they are."""
        if not isinstance(content, Mapping):
            return content
        content, known = dict(content), (str, os.PathLike, Mapping, BaseModel)
        dataset, model = content.get("dataset"), content.get("model")
        if not isinstance(dataset, known) and isinstance(dataset, Iterable):
            content["dataset"] = dataset = DatasetSpec.of(dataset)
        live = isinstance(dataset, DatasetSpec) and dataset.live is not None
        if live and not dataset.load().split_indices:
            content.setdefault("split", "all")
        if callable(model) and not isinstance(model, known):
            content["model"] = ModelSpec.of(model)
        return content

    @field_validator("dataset", "explainer", mode="before")
    @classmethod
    def _by_name(cls, value: Any) -> Any:
        return {"name": value} if isinstance(value, str) else value

    @field_validator("model", mode="before")
    @classmethod
    def _by_path(cls, value: Any) -> Any:
        return {"weights": os.fspath(value)} if isinstance(value, str | os.PathLike) else value

    @field_validator("baseline", mode="before")
    @classmethod
    def _one_number(cls, baseline: Any) -> Any:
        """Take a number for all classes."""
        number = isinstance(baseline, int | float) and not isinstance(baseline, bool)
        return (baseline,) if number else baseline

    @field_validator("graphs", "nodes")
    @classmethod
    def _positions(cls, listed: tuple[int, ...] | None, info: Any) -> tuple[int, ...] | None:
        if listed is not None and (not listed or min(listed) < 0 or len(set(listed)) < len(listed)):
            raise ValueError(
                f"{info.field_name} must be distinct non-negative positions (got {listed[:9]})"
            )
        return listed

    @field_validator("sparsities")
    @classmethod
    def _in_range(cls, sparsities: tuple[float, ...]) -> tuple[float, ...]:
        if not sparsities or not all(0 <= level <= 1 for level in sparsities):
            raise ValueError(f"sparsities must be numbers in [0, 1] (got {sparsities})")
        return sparsities

    @model_validator(mode="after")
    def _accepted_by_the_explainer(self) -> Self:
        placeholder = None if self.baseline is None else [0.5]
        try:
            explainer = self.create_explainer(placeholder)
        except TypeError as error:
            raise ValueError(str(error)) from error
        if self.nodes is not None and not isinstance(explainer, explainers.GStarX):
            raise ValueError(
                f"nodes are explained by gstarx and its presets (got {self.explainer.name!r})"
            )
        return self

    def create_explainer(self, baseline: Any, reference: Any = None) -> explainers.NodeExplainer:
        """The explainer, not trained, with a baseline if it takes one.

        Oracles optimize the metrics, so those of a regression need its reference as well.
        """
        options = self.explainer_options(baseline)
        if _takes_reference(self.explainer.name):
            options["reference"] = reference
        return explainers.create(self.explainer.name, dataset=self.dataset.name, **options)

    def explainer_options(self, baseline: Any) -> dict[str, Any]:
        """The options that the run passes to the explainer, beyond the dataset's settings."""
        valid = options_of(self.explainer.name)
        options: dict[str, Any] = dict(self.explainer.options)
        if "removal" in valid:
            options.setdefault("removal", self.removal)
        if "baseline" in valid:
            options["baseline"] = baseline
        return options


def _still_here(given: _Given | None, what: str) -> _Given:
    """What was given in Python, unless this is another process or a specification from a file."""
    if given is None:
        raise ValueError(
            f"the run was started with {what}, given in Python and not stored with it: call "
            "run(...) with the same model and graphs again to continue"
        )
    return given


def _takes_reference(name: str) -> bool:
    """Whether ``reference`` is that of the metrics, which oracles optimize, and not of features."""
    return name in EXPLAINERS and EXPLAINERS[name].oracle


def as_spec(source: RunSpec | Mapping[str, Any] | str | os.PathLike[str]) -> RunSpec:
    """A specification from itself, a dictionary, or the path of a file."""
    if isinstance(source, RunSpec):
        return source
    if isinstance(source, Mapping):
        return RunSpec.model_validate(dict(source))
    return read_spec(source)


def read_spec(path: str | os.PathLike[str]) -> RunSpec:
    """Read a specification from a ``.toml`` or ``.json`` file.

    Raises
    ------
    FileNotFoundError, ValueError
        If there is no such file, or its content is not valid.
    """
    path = _checked(path)
    text = path.read_text(encoding="utf-8")
    try:
        content = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as {path.suffix[1:].upper()}: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold a table of fields (got {type(content).__name__})")
    return RunSpec.model_validate(content)


def write_spec(spec: RunSpec, path: str | os.PathLike[str]) -> None:
    """Write a specification as ``.toml`` or ``.json``, completely or not at all.

    Examples
    --------
    >>> from tempfile import TemporaryDirectory
    >>> spec = RunSpec(dataset="nitro", model="a.safetensors", explainer="random", seed=3)
    >>> with TemporaryDirectory() as folder:
    ...     write_spec(spec, f"{folder}/run.toml")
    ...     read_spec(f"{folder}/run.toml") == spec
    True
    """
    path = _checked(path)
    content = spec.model_dump(mode="json")
    if path.suffix == ".json":
        text = json.dumps(content, indent=2) + "\n"
    else:
        text = _as_toml(content)
    write_atomically(path, text.encode())


def _checked(path: str | os.PathLike[str]) -> Path:
    path = Path(path)
    if path.suffix not in (".toml", ".json"):
        raise ValueError(f"a specification is a .toml or .json file (got {str(path)!r})")
    return path


def _as_toml(content: Mapping[str, Any]) -> str:
    """Plain values first, then a table for each dictionary; ``None`` is omitted."""
    lines = [
        f"{key} = {_toml_value(value)}"
        for key, value in content.items()
        if value is not None and not isinstance(value, dict)
    ]
    for key, table in content.items():
        if isinstance(table, dict):
            lines += ["", f"[{key}]"]
            lines += [f"{k} = {_toml_value(v)}" for k, v in table.items() if v is not None]
    return "\n".join(lines) + "\n"


def _toml_value(value: Any) -> str:
    if value is None:
        raise ValueError("an option is None, which TOML cannot express: write a .json file")
    if isinstance(value, dict):
        inside = ", ".join(f"{_toml_value(k)} = {_toml_value(v)}" for k, v in value.items())
        return "{ " + inside + " }" if inside else "{}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    # as in JSON, but not in ASCII: TOML does not support its surrogate escapes, and requires one
    # character to be escaped that JSON does not
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007F")
