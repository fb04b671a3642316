"""What a worker process may hold, and what it says when that is not enough."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gstarx.registry import ExplainerSpec, Option
from gstarx.web.catalog import OFFER
from gstarx.web.messages import Problem, Refused
from gstarx.web.settings import Limits, LoadedModel

if TYPE_CHECKING:
    from gstarx.web.subjects import Subject

_GB = 1 << 30
#: The share of the machine's memory that all processes may fill together.
_SHARE = 0.75
#: What a process holds before it is asked anything, and bounds of what is left of its part.
_PROCESS, _LEAST, _MOST = _GB // 2, _GB // 2, 4 * _GB
#: Where Linux says how much memory a container has, now and formerly.
_CONTAINER = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")
#: How errors that are no MemoryError say the same: torch, C++ and threads.
_WORDS = ("allocate memory", "not enough memory", "bad_alloc", "can't start new thread")
#: Bytes of a node in a coalition, which is there as booleans, as asked and as evaluated, and as
#: numbers for a regression and its solver.
_NODE = 4 * 1 + 2 * 8
#: Bytes of a bitmask's word, of a worth, and of a number in the model.
_WORD, _WORTH, _NUMBER = 8, 8, 4
#: Activations of a layer that there are at a time: what goes in, what comes out, and one more.
_ACTIVATIONS = 3
#: Whatever the request: coalitions that are listed with their weights before some of them are
#: drawn, kernels that are compiled, drawings.
_ANYWAY = 256 << 20

#: What always helps.
LARGER = "start gstarx serve with a larger --max-memory"


def default_memory(workers: int) -> int:
    """Bytes that one job may use, by the memory of this machine and the number of workers."""
    part = int(_SHARE * _machine_memory()) // (workers + 1)
    return min(max(part - _PROCESS, _LEAST), _MOST)


def _machine_memory() -> int:
    """Bytes of this machine, or of the container that we are in."""
    found = 4 * _GB  # where the system does not say
    with suppress(AttributeError, OSError, ValueError):
        found = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    for path in _CONTAINER:
        with suppress(OSError, ValueError):  # where there is no limit, it says "max"
            found = min(found, int(Path(path).read_text("ascii")))
    return found


def in_gb(size: float) -> str:
    """A number of bytes for people.

    >>> in_gb(1.5 * (1 << 30)), in_gb(20 << 20)
    ('1.5 GB', '0.02 GB')
    """
    return f"{size / _GB:,.{1 if size >= _GB else 2}f} GB"


class Allowance:
    """How much this process may grow by.

    On Linux the system holds it to that (``RLIMIT_DATA``, which counts what a process could write
    to, and no code): an allocation beyond it fails, whoever asks. Elsewhere nothing does.
    """

    def __init__(self) -> None:
        self._size: int | None = None
        self._start = 0
        self._ran_out = False

    def begin(self, size: int) -> None:
        """From now on this process may grow by so many bytes."""
        self._size, self._start, self._ran_out = size, held(), False
        self._limit(self._start + size)

    @property
    def used_up(self) -> bool:
        """Whether another process had better take over, which has what this one keeps."""
        if self._size is None:
            return False
        return self._ran_out or held() - self._start > self._size // 2

    @contextmanager
    def aside(self) -> Iterator[None]:
        """What is loaded inside was chosen by whoever started the server: it does not count."""
        before = held()
        self._limit(None)
        try:
            yield
        finally:
            self._start += held() - before
            if self._size is not None:
                self._limit(self._start + self._size)

    def problem(self) -> Problem:
        """What to say of an error that :func:`ran_out` recognizes."""
        self._ran_out = True
        gc.collect()  # what comes next shall have what this had
        what = "there is" if self._size is None else f"a job may use {in_gb(self._size)}, which is"
        text = f"{what} not enough memory for this: ask for less, or {LARGER}"
        return Problem("failed", text)

    def _limit(self, size: int | None) -> None:
        if not held():
            return
        import resource  # here only: Windows has none

        _, most = resource.getrlimit(resource.RLIMIT_DATA)
        wanted = resource.RLIM_INFINITY if size is None else size
        if most != resource.RLIM_INFINITY:
            wanted = most if size is None else min(size, most)
        resource.setrlimit(resource.RLIMIT_DATA, (wanted, most))


#: Limits are those of a process, so there is one.
ALLOWANCE = Allowance()


def ran_out(error: BaseException) -> bool:
    """Whether an error means that there was not enough memory."""
    return isinstance(error, MemoryError) or any(words in str(error) for words in _WORDS)


def held() -> int:
    """Bytes of this process that count; 0 where the system does not say."""
    try:
        pages = int(Path("/proc/self/statm").read_text("ascii").split()[5])
    except OSError:
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE")


@dataclass(frozen=True)
class Estimate:
    """The memory that explaining a graph takes, as a line: so much anyway, so much a coalition.

    Every coalition is a row of booleans and numbers, a bitmask, and a worth. A forward pass holds
    a batch of nodes, or the graph where that is larger, times the widest layer of the model, and as
    much for every edge.
    """

    anyway: int
    each: int

    @classmethod
    def of(cls, *, nodes: int, edges: int, width: int, batch_nodes: int) -> Estimate:
        """The estimate for a graph of so many nodes and directed edges.

        >>> found = Estimate.of(nodes=150, edges=300, width=64, batch_nodes=3072)
        >>> found.anyway >> 20, found.each, found.total(50_000) >> 20
        (259, 3032, 404)
        """
        bitmask = _WORD * -(-nodes // 64)
        layers = max(batch_nodes, nodes) * (_ACTIVATIONS + edges / max(nodes, 1))
        return cls(_ANYWAY + int(layers * width * _NUMBER), _NODE * nodes + bitmask + _WORTH)

    def total(self, coalitions: int) -> int:
        """Bytes for so many coalitions."""
        return self.anyway + self.each * coalitions

    def most(self, memory: int) -> int:
        """The most coalitions that fit."""
        return max(0, memory - self.anyway) // self.each


def counted_option(spec: ExplainerSpec) -> Option | None:
    """The option that says how many coalitions there are."""
    return next((option for option in spec.options if option.counted), None)


def most_coalitions(spec: ExplainerSpec, options: Mapping[str, Any], nodes: int) -> int:
    """The most coalitions of a graph that an explainer holds at once."""
    counted, evaluated = counted_option(spec), 2 * (nodes + 1)
    if counted is None:
        return evaluated
    return max(evaluated, count_of(counted, options, nodes) * coalitions_each(counted, nodes))


def count_of(option: Option, options: Mapping[str, Any], nodes: int) -> int:
    """What an option that counts stands at for a graph of so many nodes."""
    given = options.get(option.name, option.default)
    # samples that are taken if no number is given
    return max(2 * nodes + 2, 200) if given is None else int(given)


def coalitions_each(option: Option, nodes: int) -> int:
    """Coalitions for each that an option counts."""
    return option.counted * (nodes if option.per_node else 1)


def check_memory(
    model: LoadedModel, subject: Subject, chosen: Sequence[Mapping[str, Any]], limits: Limits
) -> None:
    """Refuse what would not fit, with what would."""
    import torch  # here and below: the server imports this module, and never torch

    from gstarx.gnn import default_batch_nodes

    estimate = Estimate.of(
        nodes=subject.nodes,
        edges=subject.data.edge_index.shape[1],
        width=_width(model),
        batch_nodes=default_batch_nodes(model.model, torch.device("cpu")),
    )
    for at, one in enumerate(chosen):
        offer = OFFER[one["name"]]
        coalitions = most_coalitions(offer, one["options"], subject.nodes)
        if estimate.total(coalitions) > limits.memory:
            _refuse(offer, one["options"], subject.nodes, estimate, limits.memory, at)


def _refuse(
    offer: ExplainerSpec,
    options: Mapping[str, Any],
    nodes: int,
    estimate: Estimate,
    memory: int,
    at: int,
) -> None:
    counted = counted_option(offer)
    field, asked, fits = f"explainers.{at}", "", 0
    if counted is not None:
        value = count_of(counted, options, nodes)
        asked, field = f" with {counted.name} {value:,}", f"{field}.options.{counted.name}"
        fits = estimate.most(memory) // coalitions_each(counted, nodes)
    needed = in_gb(estimate.total(most_coalitions(offer, options, nodes)))
    if counted is not None and fits >= (counted.minimum or 1):
        valid = f"{counted.name} up to {fits:,} is accepted for this graph"
    else:
        valid = f"ask for a smaller graph, or {LARGER}"
    text = (
        f"{offer.title}{asked} for {nodes:,} nodes would take about {needed} of memory, and a job "
        f"may use {in_gb(memory)}: {valid}"
    )
    raise Refused("too_much_memory", text, field)


def _width(model: LoadedModel) -> int:
    """Numbers of a node in the widest layer, as far as the weights say."""
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
