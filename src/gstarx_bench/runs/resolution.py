"""Loads and checks the dataset, model and explainer that a specification names."""

from __future__ import annotations

import copy
import inspect
import json
import logging
import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch_geometric.data import Data

from gstarx._internal.files import atomic_path
from gstarx.datasets import GraphDataset
from gstarx.evaluation import Pipeline
from gstarx.explainers import GStarX, NodeExplainer, options_for, packages_of, versions_of
from gstarx.gnn import (
    RULES,
    SINGLETONS,
    ModelTask,
    Task,
    expected_output,
    hetero_of,
    model_device,
)
from gstarx.metrics import Reference, reference_of
from gstarx.models import LoadedNetwork, Network, digest, load_source, load_weights
from gstarx.registry import TASKS
from gstarx_bench.runs.rows import (
    FORMAT,
    RowTask,
    digest_of,
    identity_in,
    on_device,
    package_versions,
    request_name,
)
from gstarx_bench.runs.specification import RunSpec

_LOG = logging.getLogger(__name__)


class ChangedInput(RuntimeError):
    """Data, weights or packages have changed since the run was specified or started."""


@dataclass(frozen=True)
class ResolvedRun:
    """A run with everything it needs, loaded.

    Attributes
    ----------
    spec
        The specification, with the digests of the loaded data and weights.
    run
        Digest of everything that can change a number.
    dataset
        All graphs.
    positions
        Positions of the graphs to explain, or nodes of the one graph.
    network
        The model, in evaluation mode, on its device, and what is known about it.
    baseline
        A number per class, or a rule by name, for explainers that take a baseline.
    reference
        For a regression: the range and the mean of outputs that metrics are relative to.
    identity
        The content whose digest is ``run``.
    """

    spec: RunSpec
    run: str
    dataset: GraphDataset
    positions: tuple[int, ...]
    network: LoadedNetwork
    baseline: tuple[float, ...] | str | None
    reference: Reference | None
    identity: dict[str, Any]

    @property
    def model(self) -> Any:
        """The model itself."""
        return self.network.model

    @property
    def live(self) -> bool:
        """Whether the model or the graphs are known to this process only."""
        return self.spec.model.live is not None or self.spec.dataset.live is not None

    @property
    def name(self) -> str:
        """The name of the request in a store: the run and a digest of its graphs."""
        return request_name(self.run, self.spec.model_dump(mode="json"))

    @property
    def request(self) -> dict[str, Any]:
        """What a store needs to resume the run."""
        spec = self.spec.model_dump(mode="json")
        return {"name": self.name, "spec": spec, "spec_digest": digest_of(spec), **self.identity}

    def task(self, trained: Path | None) -> RowTask:
        """The task that explains graphs, with the trained explainer."""
        explainer = self.spec.create_explainer(self.baseline, self.reference)
        if trained is not None:
            explainer = type(explainer).load(trained)
        splits = {i: name for name, split in self.dataset.split_indices.items() for i in split}
        return RowTask(
            run_id=self.run,
            dataset=self.spec.dataset.title,
            explainer_name=self.spec.explainer.name,
            pipeline=Pipeline(
                self.model,
                seed=self.spec.seed,
                target=self.spec.target,
                removal=self.spec.removal,
                task=_task_of(self.spec, self.network),
                reference=self.reference,
            ),
            explainer=explainer,
            sparsities=self.spec.sparsities,
            device=self.spec.device,
            splits={i: splits[i] for i in self.positions if i in splits},
            versions=self.identity["versions"],
            factory=self.spec.model.source if self.spec.model.factory else None,
            of_nodes=self.spec.nodes is not None,
        )

    @property
    def count(self) -> int:
        """How many graphs there are to choose from, or nodes of the one graph."""
        return len(self.dataset) if self.spec.nodes is None else int(self._node_graph.num_nodes)

    def graph(self, position: int) -> Data:
        """The graph at a position, or the one whose nodes are explained."""
        return self.dataset[position] if self.spec.nodes is None else self._node_graph

    @cached_property
    def _node_graph(self) -> Data:
        return self.dataset[_graph_of_nodes(self.spec, self.dataset)]


def resolve(
    spec: RunSpec,
    baseline: tuple[float, ...] | str | None = None,
    dataset: GraphDataset | None = None,
) -> ResolvedRun:
    """Load and check what a specification names.

    Parameters
    ----------
    spec
        The specification.
    baseline
        The baseline, if it has been computed before.
    dataset
        The dataset, if it has been loaded before.

    Raises
    ------
    ChangedInput
        If data or weights do not match the digests in the specification.
    ValueError
        If graphs are not in the split, or the model does not classify graphs.
    """
    network = _load(spec)
    if dataset is None:
        spec = spec.model_copy(update={"dataset": spec.dataset.with_salts(network.salts)})
        dataset = spec.dataset.load()
    elif dataset.name != spec.dataset.title:
        raise ValueError(
            f"the dataset must be {spec.dataset.title!r}, as specified (got {dataset.name!r})"
        )
    _check("the dataset " + repr(spec.dataset.title), spec.dataset.digest, dataset.digest)
    dataset = dataset.as_recorded(network.split)
    weights_digest = model_digest(network.model)
    where = spec.model.live or spec.model.factory or f"the weights in {spec.model.weights}"
    _check(where, spec.model.digest, weights_digest)
    readout = getattr(network.model, "readout", "")
    if readout is None and spec.nodes is None:
        raise ValueError(
            f"a run explains graphs, but the model in {spec.model.weights} has no readout: it "
            "classifies nodes. Say which with nodes=..."
        )
    if readout and spec.nodes is not None:
        raise ValueError(
            f"nodes={list(spec.nodes[:3])}... are to be explained, but the model in "
            f"{spec.model.weights} has a readout: it classifies graphs"
        )
    weights = None if spec.model.weights is None else os.path.abspath(spec.model.weights)
    pinned = spec.model_copy(
        update={
            "dataset": spec.dataset.absolute().model_copy(update={"digest": dataset.digest}),
            "model": spec.model.model_copy(update={"digest": weights_digest, "weights": weights}),
        }
    )
    identity = _identity(pinned, dataset, network)
    if hasattr(network.model, "to"):
        network = replace(network, model=network.model.to(spec.device))
    return ResolvedRun(
        spec=pinned,
        run=digest_of(identity),
        dataset=dataset,
        positions=_positions(spec, dataset),
        network=network,
        baseline=baseline or _baseline(spec, dataset, network),
        reference=_reference(dataset, network),
        identity=identity,
    )


def model_digest(model: Any) -> str:
    """A digest of a model's weights, and of its code unless its class is one of the package's."""
    weights = digest(model) if isinstance(model, nn.Module) else ""
    if isinstance(model, Network):
        return weights
    kind = model if inspect.isroutine(model) else type(model)
    try:
        code = inspect.getsource(inspect.getmodule(kind) or kind)
    except (OSError, TypeError):  # made without a file
        code = repr(kind)
    return digest_of([weights, code])


def trained_explainer(resolved: ResolvedRun, directory: Path) -> Path | None:
    """The file of the trained explainer, trained if it is missing; ``None`` if none is needed.

    Its name has a digest of all that the training depends on, so that runs with the same training
    share it.
    """
    explainer = resolved.spec.create_explainer(resolved.baseline)
    if not explainer.requires_training:
        return None
    if not hasattr(explainer, "save") or not hasattr(explainer, "load"):
        raise TypeError(
            f"explainer {resolved.spec.explainer.name!r} needs training: to be used in runs it "
            "must have save(path) and load(path)"
        )
    irrelevant = {"removal", "sparsities"}
    key = digest_of({name: v for name, v in resolved.identity.items() if name not in irrelevant})
    path = directory / f"{resolved.spec.explainer.name}-{key}.safetensors"
    if path.exists():
        try:
            type(explainer).load(path)
            return path
        except Exception as error:
            if isinstance(error, OSError) and error.errno is not None and path.is_file():
                raise  # the system failed to read it
            aside = path.with_name(f"{path.name}.damaged-{time.time_ns()}")
            path.rename(aside)
            _LOG.warning("%s cannot be used (%s): it is now %s", path, error, aside)
    graphs = [on_device(graph, resolved.spec.device) for graph in resolved.dataset.training_graphs]
    explainer.fit(
        resolved.model,
        graphs,
        seed=resolved.spec.seed,
        task=_task_of(resolved.spec, resolved.network),
    )
    with atomic_path(path) as unfinished:
        explainer.save(unfinished)
    return path


def check_versions(identity: Mapping[str, Any]) -> None:
    """Raise if a run was started with other versions of the packages."""
    before = identity.get("versions", {})
    for name, got in {**versions_of(before), **package_versions()}.items():
        if before.get(name) != got:
            was, now = (f"{name} {v}" if v else f"no {name}" for v in (before.get(name), got))
            raise ChangedInput(
                f"the run was started with {was}, and this is {now}, so its numbers may differ: "
                "use that version to resume it, or start a new run of the specification"
            )


def check_unchanged(resolved: ResolvedRun, request: Mapping[str, Any]) -> None:
    """Raise if a request would now be another run than the one that was started."""
    now = _leaves(json.loads(json.dumps(resolved.identity)))
    before = _leaves(identity_in(request))
    for name in {**now, **before}:
        if now.get(name) != before.get(name):
            raise ChangedInput(
                f"{name} of the run was {before.get(name)!r} when it was started, and is "
                f"{now.get(name)!r} now: restore the old value to resume it, or start a new run "
                "of the specification"
            )


def _leaves(content: Mapping[str, Any], above: str = "") -> dict[str, Any]:
    """The leaves of a nested dictionary by their path.

    >>> _leaves({"seed": 0, "versions": {"torch": "2.4"}})
    {'seed': 0, 'versions.torch': '2.4'}
    """
    leaves: dict[str, Any] = {}
    for name, value in content.items():
        leaves |= (
            _leaves(value, f"{above}{name}.") if isinstance(value, dict) else {above + name: value}
        )
    return leaves


def _load(spec: RunSpec) -> LoadedNetwork:
    if spec.model.live is not None:
        model, device = spec.model.given, torch.device(spec.device)
        if model_device(model, device) != device:
            model = copy.deepcopy(model)  # that of the user stays on its device
        mode = ModelTask.of(model).mode
        known = next((task for task, means in TASKS.items() if means == mode), "classification")
        facts = {"network": spec.model.live}
        return LoadedNetwork(model, spec.model.live, None, facts, task=spec.model.task or known)
    if spec.model.factory is not None:
        return load_source(spec.model.source)
    assert spec.model.weights is not None
    loaded = load_weights(Path(spec.model.weights), **spec.model.options)
    return loaded if spec.model.task is None else replace(loaded, task=spec.model.task)


def _task_of(spec: RunSpec, network: LoadedNetwork) -> Task:
    """What the model does, in a run of graphs or of nodes."""
    level = "graph" if spec.nodes is None else "node"
    return Task(mode=TASKS[network.task], task_level=level, return_type=spec.model.return_type)


def _reference(dataset: GraphDataset, network: LoadedNetwork) -> Reference | None:
    """What regression metrics are relative to: stored with the network, or else computed."""
    if TASKS[network.task] != "regression":
        return None
    if network.reference is not None:
        return network.reference
    return reference_of(network.model, dataset.reference_graphs)


def _check(name: str, expected: str | None, got: str) -> None:
    if expected is not None and expected != got:
        raise ChangedInput(
            f"{name} changed: the run was specified with the digest {expected[:16]}... "
            f"(got {got[:16]}...); restore the old one, or run a specification without digest"
        )


def _positions(spec: RunSpec, dataset: GraphDataset) -> tuple[int, ...]:
    all_positions = range(len(dataset))
    if spec.nodes is not None:
        count = int(dataset[_graph_of_nodes(spec, dataset)].num_nodes or 0)
        wrong = [node for node in spec.nodes if node >= count]
        if wrong:
            raise ValueError(f"nodes must lie in 0..{count - 1} (got {wrong[0]})")
        return spec.nodes
    if spec.split != "all" and not dataset.split_indices:
        raise ValueError(
            f"the {spec.split} split of {spec.dataset.title!r} is unknown: the model has no record "
            "of the split that it was trained with. Pass split='all', or name the split in the "
            "options of the dataset, such as split='scaffold' or a column of the table"
        )
    split = all_positions if spec.split == "all" else dataset.split_indices.get(spec.split, ())
    if spec.graphs is None:
        return tuple(sorted(split))
    valid = set(split)
    for position in spec.graphs:
        if position not in valid:
            raise ValueError(
                f"graphs must be in the split {spec.split!r} of {spec.dataset.title!r}, "
                f"{len(valid)} of the positions 0..{len(dataset) - 1} (got {position})"
            )
    return spec.graphs


def _graph_of_nodes(spec: RunSpec, dataset: GraphDataset) -> int:
    """The position of the graph whose nodes are explained."""
    graphs = range(len(dataset)) if spec.graphs is None else spec.graphs
    if len(graphs) != 1 or graphs[0] >= len(dataset):
        raise ValueError(
            f"nodes are those of one graph of {spec.dataset.title!r}, which has {len(dataset)}: "
            f"pass graphs=(0,) or another position (got graphs={spec.graphs})"
        )
    if hetero_of(dataset[graphs[0]]) is not None:
        raise ValueError(
            f"runs explain nodes of homogeneous graphs, and graph {graphs[0]} of "
            f"{spec.dataset.title!r} is a heterogeneous one: use gstarx.explain_nodes, or "
            "'gstarx explain --nodes ... --node-type ...'"
        )
    return graphs[0]


def _baseline(
    spec: RunSpec, dataset: GraphDataset, network: LoadedNetwork
) -> tuple[float, ...] | str | None:
    if not isinstance(spec.baseline, str) or spec.baseline in RULES:
        return spec.baseline
    if "baseline" not in spec.explainer_options(None):
        return None
    graphs = list(dataset) if spec.baseline == "all" else dataset.split(spec.baseline)
    means = expected_output(network.model, graphs, task=_task_of(spec, network))
    return tuple(float(mean) for mean in means)


def _name_defaults(
    options: dict[str, Any], explainer: NodeExplainer, spec: RunSpec, mode: str
) -> None:
    """Add the value and the baseline that are used by default, which were others before."""
    of_values = getattr(explainer, "of", explainer)
    if not isinstance(of_values, GStarX):
        return
    options.setdefault("value", of_values.value.name)
    chosen = of_values.value.follows_graph or mode == "regression"
    if chosen and spec.baseline is None and spec.nodes is None:
        options["baseline"] = f"{SINGLETONS} by default"


def _identity(spec: RunSpec, dataset: GraphDataset, network: LoadedNetwork) -> dict[str, Any]:
    """Everything that can change a number, apart from the graph itself.

    What was added later is left out where it has its default, so that older runs keep their names.
    """
    options = {
        **options_for(spec.explainer.name, spec.dataset.name),
        **spec.explainer_options(None if spec.baseline is None else spec.baseline),
    }
    splits = {name: list(indices) for name, indices in sorted(dataset.split_indices.items())}
    explainer = spec.create_explainer(None if spec.baseline is None else [0.5])
    _name_defaults(options, explainer, spec, TASKS[network.task])
    packages = packages_of(spec.explainer.name, explainer)
    model: dict[str, Any] = {
        "network": type(network.model).__name__,
        "config": network.model.config if isinstance(network.model, Network) else {},
        "digest": spec.model.digest,
    }
    if network.task != "classification":
        model["task"] = network.task
    if spec.model.return_type != "raw":
        model["return_type"] = spec.model.return_type
    identity = {
        "format": FORMAT,
        "dataset": {
            "name": spec.dataset.title,
            "options": spec.dataset.options if spec.dataset.name else {},
            "digest": dataset.digest,
            "splits": digest_of(splits),
        },
        "model": model,
        "explainer": {"name": spec.explainer.name, "options": options},
        "removal": spec.removal,
        "sparsities": spec.sparsities,
        "seed": spec.seed,
        "device": torch.device(spec.device).type,
        "versions": {**versions_of(packages), **package_versions()},
    }
    if spec.nodes is not None:
        identity["nodes_of"] = _graph_of_nodes(spec, dataset)
    return identity if spec.target is None else {**identity, "target": spec.target}
