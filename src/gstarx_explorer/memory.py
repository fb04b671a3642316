"""Memory: what a worker process may use, and an estimate of what a request needs."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gstarx.registry import ExplainerSpec, Option
from gstarx_explorer.catalog import OFFERED
from gstarx_explorer.messages import Problem, Refused
from gstarx_explorer.settings import Limits, LoadedModel

if TYPE_CHECKING:
    from gstarx_explorer.subjects import Subject

_GB = 1 << 30
#: The share of the machine's memory that all processes may use together.
_SHARE = 0.75
#: What a process uses before its first query, and the bounds of what it may use beyond that.
_PROCESS, _MIN, _MAX = _GB // 2, _GB // 2, 4 * _GB
#: The files in which Linux states the memory of a container: cgroup v2 and v1.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
#: Messages of errors other than MemoryError that mean the same: from torch, C++ and threads.
_OUT_OF_MEMORY = ("allocate memory", "not enough memory", "bad_alloc", "can't start new thread")

#: Bytes per node of a coalition: booleans, as requested and as evaluated, and numbers for a
#: regression and its solver.
_NODE = 4 * 1 + 2 * 8
#: Bytes of a word of a bitmask, of a worth, and of a number in the model.
_WORD, _WORTH, _NUMBER = 8, 8, 4
#: Activations of a layer that exist at the same time: its input, its output, and one more.
_ACTIVATIONS = 3
#: Bytes for everything else: coalitions that are listed with their weights before some of them are
#: drawn, compiled kernels, drawings.
_OTHER = 256 << 20
_MORE_MEMORY = "start gstarx serve with a larger --max-memory"


def default_memory(workers: int) -> int:
    """Bytes that one job may use, by the memory of this machine and the number of workers."""
    per_process = int(_SHARE * _machine_memory()) // (workers + 1)
    return min(max(per_process - _PROCESS, _MIN), _MAX)


def _machine_memory() -> int:
    """Bytes of this machine, or of the container that the process runs in."""
    size = 4 * _GB  # if the system does not say
    with suppress(AttributeError, OSError, ValueError):
        size = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _CONTAINER:
        with suppress(OSError, ValueError):  # without a limit, the file says "max"
            size = min(size, int(Path(path).read_text("ascii")))
    return size


def format_gb(size: float) -> str:
    """A number of bytes for people.

    >>> format_gb(1.5 * (1 << 30)), format_gb(20 << 20)
    ('1.5 GB', '0.02 GB')
    """
    return f"{size / _GB:,.{1 if size >= _GB else 2}f} GB"


class MemoryLimit:
    """How much this process may grow by.

    Linux enforces it (``RLIMIT_DATA``, which counts writable memory, not code): an allocation
    beyond it fails. Other systems do not enforce it.
    """

    def __init__(self) -> None:
        self._size: int | None = None
        self._start = 0
        self._ran_out = False

    def start(self, size: int) -> None:
        """Let this process grow by ``size`` bytes from now on."""
        self._size, self._start, self._ran_out = size, used_bytes(), False
        self._set(self._start + size)

    @property
    def used_up(self) -> bool:
        """Whether a new process should take over, with the memory that this one keeps."""
        if self._size is None:
            return False
        return self._ran_out or used_bytes() - self._start > self._size // 2

    @contextmanager
    def uncounted(self) -> Iterator[None]:
        """Do not count what is loaded inside the block: models and datasets of the server."""
        before = used_bytes()
        self._set(None)
        try:
            yield
        finally:
            self._start += used_bytes() - before
            if self._size is not None:
                self._set(self._start + self._size)

    def problem(self) -> Problem:
        """What to answer after an error that :func:`is_out_of_memory` recognizes."""
        self._ran_out = True
        gc.collect()  # make the memory available to the next query
        limit = (
            "there is" if self._size is None else f"a job may use {format_gb(self._size)}, which is"
        )
        text = f"{limit} not enough memory for this: try a smaller request, or {_MORE_MEMORY}"
        return Problem("failed", text)

    def _set(self, size: int | None) -> None:
        if not used_bytes():
            return
        import resource  # not available on Windows

        _, hard_limit = resource.getrlimit(resource.RLIMIT_DATA)
        soft_limit = resource.RLIM_INFINITY if size is None else size
        if hard_limit != resource.RLIM_INFINITY:
            soft_limit = hard_limit if size is None else min(size, hard_limit)
        resource.setrlimit(resource.RLIMIT_DATA, (soft_limit, hard_limit))


#: One for the process, as the limits of the system are.
MEMORY_LIMIT = MemoryLimit()


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error means that there was not enough memory."""
    return isinstance(error, MemoryError) or any(text in str(error) for text in _OUT_OF_MEMORY)


def used_bytes() -> int:
    """Bytes of this process that count; 0 if the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Estimate:
    """The memory that explaining a graph takes, as a linear function of the coalitions.

    Every coalition is a row of booleans and numbers, a bitmask, and a worth. A forward pass holds
    a batch of nodes, or the graph if that is larger, times the widest layer of the model, and as
    much for every edge.
    """

    fixed: int
    per_coalition: int

    @classmethod
    def of(cls, *, nodes: int, edges: int, width: int, batch_nodes: int) -> Estimate:
        """The estimate for a graph of so many nodes and directed edges.

        >>> estimate = Estimate.of(nodes=150, edges=300, width=64, batch_nodes=3072)
        >>> estimate.fixed >> 20, estimate.per_coalition, estimate.total(50_000) >> 20
        (259, 3032, 404)
        """
        bitmask = _WORD * -(-nodes // 64)
        layers = max(batch_nodes, nodes) * (_ACTIVATIONS + edges / max(nodes, 1))
        return cls(_OTHER + int(layers * width * _NUMBER), _NODE * nodes + bitmask + _WORTH)

    def total(self, coalitions: int) -> int:
        """Bytes for so many coalitions."""
        return self.fixed + self.per_coalition * coalitions

    def max_coalitions(self, memory: int) -> int:
        """The largest number of coalitions that fits."""
        return max(0, memory - self.fixed) // self.per_coalition


def counted_option(spec: ExplainerSpec) -> Option | None:
    """The option that sets the number of coalitions."""
    return next((option for option in spec.options if option.counted), None)


def max_coalitions(spec: ExplainerSpec, options: Mapping[str, Any], nodes: int) -> int:
    """The largest number of coalitions that an explainer holds at once."""
    counted, evaluated = counted_option(spec), 2 * (nodes + 1)
    if counted is None:
        return evaluated
    return max(evaluated, _count(counted, options, nodes) * _coalitions_each(counted, nodes))


def _count(option: Option, options: Mapping[str, Any], nodes: int) -> int:
    """The value of a counted option for a graph of so many nodes."""
    value = options.get(option.name, option.default)
    # the number of samples that explainers take by default
    return max(2 * nodes + 2, 200) if value is None else int(value)


def _coalitions_each(option: Option, nodes: int) -> int:
    """Coalitions per unit of a counted option."""
    return option.counted * (nodes if option.per_node else 1)


def check_memory(
    model: LoadedModel,
    subject: Subject,
    explainers: Sequence[Mapping[str, Any]],
    limits: Limits,
    *,
    players: int | None = None,
) -> None:
    """Refuse explainers that would need too much memory, and say what would fit.

    ``players`` is how many there are, by default the nodes.
    """
    players = subject.nodes if players is None else players
    # here and below, because the server imports this module but never torch
    import torch

    from gstarx.gnn import default_batch_nodes

    estimate = Estimate.of(
        nodes=max(subject.nodes, players),
        edges=subject.data.edge_index.shape[1],
        width=_width(model),
        batch_nodes=default_batch_nodes(model.model, torch.device("cpu")),
    )
    for index, explainer in enumerate(explainers):
        spec, options = OFFERED[explainer["name"]], explainer["options"]
        coalitions = max_coalitions(spec, options, players)
        if estimate.total(coalitions) > limits.memory:
            field = f"explainers.{index}"
            raise _too_much_memory(spec, options, players, estimate, limits.memory, field)


def _too_much_memory(
    spec: ExplainerSpec,
    options: Mapping[str, Any],
    nodes: int,
    estimate: Estimate,
    memory: int,
    field: str,
) -> Refused:
    counted, setting, fits = counted_option(spec), "", 0
    if counted is not None:
        setting = f" with {counted.name} {_count(counted, options, nodes):,}"
        field = f"{field}.options.{counted.name}"
        fits = estimate.max_coalitions(memory) // _coalitions_each(counted, nodes)
    needed = format_gb(estimate.total(max_coalitions(spec, options, nodes)))
    if counted is not None and fits >= (counted.minimum or 1):
        valid = f"{counted.name} up to {fits:,} is accepted for this graph"
    else:
        valid = f"choose a smaller graph, or {_MORE_MEMORY}"
    text = (
        f"{spec.title}{setting} for {nodes:,} players would take about {needed} of memory, and a "
        f"job may use {format_gb(memory)}: {valid}"
    )
    return Refused("too_much_memory", text, field)


def _width(model: LoadedModel) -> int:
    """The width of the widest layer, as far as the weights show it."""
    import torch

    modules = model.model.modules() if isinstance(model.model, torch.nn.Module) else ()
    widths = [
        weight.shape[0]
        for module in modules
        # the rows of an embedding are its vocabulary
        if not isinstance(module, torch.nn.Embedding)
        for weight in module.parameters(recurse=False)
        if weight.dim() > 1
    ]
    return max(widths, default=64)
