"""What the outputs of a regression model are compared with."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Data

from gstarx.gnn import Model, check_task, graph_outputs

#: Numbers of one output, or of every output.
Numbers = float | tuple[float, ...]


@dataclass(frozen=True)
class Reference:
    """The usual range of a regression model's outputs, which makes its metrics comparable.

    Attributes
    ----------
    range
        From the 5 % to the 95 % quantile of the outputs on reference data; one number, or one for
        every output.
    mean
        Their mean, which is used as the output for an empty graph.

    Examples
    --------
    >>> Reference(range=2.5, mean=1.0)
    Reference(range=2.5, mean=1.0)
    >>> Reference(**{"range": [2.5, 1.0], "mean": [1.0, 0.0]})  # as JSON has it
    Reference(range=(2.5, 1.0), mean=(1.0, 0.0))
    """

    range: Numbers
    mean: Numbers

    def __post_init__(self) -> None:
        for name in ("range", "mean"):
            object.__setattr__(self, name, _numbers(getattr(self, name), name))
        lengths = [len(part) if isinstance(part, tuple) else None for part in self._parts]
        if lengths[0] != lengths[1]:
            raise ValueError(
                "range and mean of a reference must be of the same outputs "
                f"(got {self.range!r} and {self.mean!r})"
            )
        if min(np.atleast_1d(self.range)) < 0:
            raise ValueError(f"range must be at least 0 (got {self.range!r})")

    @classmethod
    def of(cls, outputs: torch.Tensor) -> Reference:
        """The reference from a model's outputs (graphs, outputs).

        >>> Reference.of(torch.arange(21.0)[:, None])
        Reference(range=18.0, mean=10.0)
        """
        rows = outputs.detach().double().cpu().numpy()
        if not np.isfinite(rows).all():
            at = int(np.argmin(np.isfinite(rows).all(axis=1)))
            raise ValueError(
                f"the model's outputs for graph {at} are {rows[at].tolist()}: they must be finite"
            )
        low, high = np.quantile(rows, [0.05, 0.95], axis=0)
        ranges, means = (high - low).tolist(), rows.mean(axis=0).tolist()
        return cls(ranges[0], means[0]) if len(means) == 1 else cls(tuple(ranges), tuple(means))

    @property
    def _parts(self) -> tuple[Numbers, Numbers]:
        return self.range, self.mean

    def of_output(self, output: int, outputs: int) -> tuple[float, float]:
        """Range and mean of one of a model's outputs; raises where they cannot be used."""
        if isinstance(self.range, tuple) and len(self.range) != outputs:
            raise ValueError(
                f"reference must have a range and a mean for each of the model's {outputs} outputs "
                f"(got {len(self.range)})"
            )
        width, mean = (part[output] if isinstance(part, tuple) else part for part in self._parts)
        if width == 0:
            raise ValueError(
                f"range of the reference must be above 0 (got 0 for output {output}): the model's "
                "outputs do not vary on the reference data, so differences have no scale"
            )
        return width, mean


def as_reference(reference: Any) -> Reference | None:
    """A reference, also from the mapping that JSON has of it."""
    if reference is None or isinstance(reference, Reference):
        return reference
    if not isinstance(reference, Mapping) or set(reference) != {"range", "mean"}:
        raise TypeError(
            "reference must be a metrics.Reference, or a mapping with range and mean "
            f"(got {reference!r})"
        )
    return Reference(**reference)


def reference_of(
    model: Model,
    graphs: Iterable[Data],
    *,
    mode: str = "regression",
    return_type: str = "raw",
    keywords: Sequence[str] | None = None,
) -> Reference:
    """The reference of a regression model from its outputs for some graphs.

    Parameters
    ----------
    model
        A graph-level model.
    graphs
        Reference data, for instance the training graphs.
    mode, return_type
        As in PyG's ``ModelConfig``; only regression has a reference.
    keywords
        Names of the fields to pass to the model, as in :class:`gstarx.GNNGame`.

    Examples
    --------
    >>> from torch_geometric.nn import global_add_pool
    >>> def model(x, edge_index, batch):  # the number of nodes
    ...     return global_add_pool(x, batch)
    >>> none = torch.zeros(2, 0, dtype=torch.long)
    >>> graphs = [Data(x=torch.ones(n, 1), edge_index=none) for n in range(1, 22)]
    >>> reference_of(model, graphs)
    Reference(range=18.0, mean=11.0)
    """
    if check_task(mode, return_type)[0] != "regression":
        raise ValueError(f"only regression needs a reference: probabilities do not (got {mode!r})")
    batches = [outputs.cpu() for outputs in graph_outputs(model, graphs, keywords=keywords)]
    if not batches:
        raise ValueError("there are no graphs to take a reference from")
    return Reference.of(torch.cat(batches))


def _numbers(given: Any, name: str) -> Numbers:
    if isinstance(given, torch.Tensor):
        given = given.detach().cpu().numpy()
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        numbers = np.full(1, np.nan)
    if given is None or numbers.ndim > 1 or not numbers.size or not np.isfinite(numbers).all():
        raise ValueError(
            f"{name} of a reference must be a finite number, or one for every output "
            f"(got {given!r})"
        )
    return float(numbers) if numbers.ndim == 0 else tuple(numbers.tolist())
