"""What every explainer answers, whatever its method: scores of nodes, or sets of them."""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import ExplainerAlgorithm, Explanation
from torch_geometric.explain.config import MaskType

from gstarx.explainers.explanation import NodeExplanation
from gstarx.explainers.model_task import ModelTask, Seed, log, target_of
from gstarx.gnn.players import check_data


@dataclass(frozen=True)
class NodeResult:
    """The answer of an explainer for one graph.

    Attributes
    ----------
    node_scores
        A score per node, (n,); ``None`` where the method only finds sets of nodes.
    sets
        Sets of nodes that a search found, best first, each as ascending node ids; empty where there
        are scores.
    target
        The class that was explained.
    evaluations
        Distinct parts of the graph that went through the model, where that is counted.
    cpu_seconds
        CPU time of the explanation.
    details
        What else the method has to say, by name: standard errors, whether it is exact ...
    """

    node_scores: NDArray[np.float64] | None
    sets: tuple[NDArray[np.int64], ...] = ()
    target: int | None = None
    evaluations: int | None = None
    cpu_seconds: float = 0.0
    details: dict[str, Any] = field(default_factory=dict)

    def select(self, size: int, *, positive_only: bool = False) -> NDArray[np.int64]:
        """At most ``size`` nodes: those with the highest scores, or the best set that is found.

        Ties go to the smaller id. A search may only have found larger sets: then it is the smallest
        of them, cut to its first nodes, and an empty selection where it found none at all.
        """
        if isinstance(size, bool) or not isinstance(size, int | np.integer):
            raise TypeError(f"size must be an integer (got {size!r})")
        if size < 0:
            raise ValueError(f"size must be at least 0 (got {size})")
        if self.node_scores is not None:
            wanted = int(size)
            if positive_only:
                wanted = min(wanted, int((self.node_scores > 0).sum()))
            return np.argsort(-self.node_scores, kind="stable")[:wanted]
        small = [nodes for nodes in self.sets if len(nodes) <= size]
        if small:
            return small[0]
        return min(self.sets, key=len)[:size] if self.sets else np.zeros(0, dtype=np.int64)


class NodeExplainer(ExplainerAlgorithm):  # type: ignore[misc]
    """An explainer of nodes: on its own by :meth:`explain`, or inside PyG's ``Explainer``.

    Methods that train do so once, by :meth:`fit` on the training graphs.
    """

    #: Whether :meth:`fit` has to come first.
    requires_training: bool = False
    #: Packages whose versions can change the scores, beside the explainer's own and those that
    #: GStarX always needs.
    needed_packages: tuple[str, ...] = ()

    def fit(self, model: Any, graphs: Iterable[Data], **task: Any) -> Self:
        """Train on graphs, where the method does; nothing otherwise."""
        return self

    def explain(
        self,
        model: Any,
        data: Data,
        *,
        seed: int | np.random.Generator | None = None,
        target: int | None = None,
        **task: Any,
    ) -> NodeResult:
        """Explain what the model says of one graph.

        Parameters
        ----------
        model
            The model; left exactly as it was.
        data
            One graph.
        seed
            The same seed gives the same answer.
        target
            The class to explain; by default the predicted one.
        **task
            ``mode``, ``task_level``, ``return_type`` and ``index`` as in PyG, ``keywords`` as in
            :class:`gstarx.GNNGame`.

        Raises
        ------
        TypeError, ValueError
            When the method's answer is none for this graph: scores that are not finite or not one
            per node, sets of what are no nodes.
        """
        checked = check_data(data)
        start = time.process_time()
        found = self._explain(model, checked, seed, target, ModelTask.of(task))
        seconds = time.process_time() - start
        answer = _checked(found, type(self).__name__, int(checked.num_nodes or 0))
        return replace(answer, cpu_seconds=seconds)

    @abstractmethod
    def _explain(
        self, model: Any, data: Data, seed: Seed, target: int | None, task: ModelTask
    ) -> NodeResult:
        """The method itself."""

    def forward(
        self,
        model: torch.nn.Module,
        x: Tensor | dict[str, Tensor],
        edge_index: Tensor | dict[tuple[str, str, str], Tensor],
        *,
        target: Tensor,
        index: int | Tensor | None = None,
        **kwargs: Any,
    ) -> Explanation:
        """Explain one output of the model; called by PyG's ``Explainer``."""
        if not isinstance(x, Tensor) or not isinstance(edge_index, Tensor):
            raise ValueError(
                f"{type(self).__name__} takes homogeneous graphs: x and edge_index must be tensors"
            )
        config = self.model_config
        found = self.explain(
            model,
            Data(x=x, edge_index=edge_index, **kwargs),
            seed=getattr(self, "seed", None),
            target=target_of(target, index, config),
            mode=config.mode.value,
            task_level=config.task_level.value,
            return_type=config.return_type.value,
            index=index if index is None else int(index),
            keywords=[name for name, given in kwargs.items() if given is not None],
        )
        scores = found.node_scores
        if scores is None:
            scores = np.zeros(len(x))
            scores[found.select(self._size_in_pyg(len(x)))] = 1.0
        mask = torch.from_numpy(np.ascontiguousarray(scores)).float()[:, None]
        return NodeExplanation(node_mask=mask, **found.details)

    def _size_in_pyg(self, num_nodes: int) -> int:
        """How many nodes a search marks where PyG wants a mask: a quarter of them."""
        return max(1, num_nodes // 4)

    def supports(self) -> bool:
        """Whether PyG's settings are supported; logs the reason if not."""
        if self.explainer_config.node_mask_type != MaskType.object:
            log.error("%s scores whole nodes: node_mask_type must be 'object'", type(self).__name__)
            return False
        if self.explainer_config.edge_mask_type not in (None, MaskType.object):
            log.error(
                "%s has no scores for attributes of edges: edge_mask_type must be 'object' or None",
                type(self).__name__,
            )
            return False
        return True


def _checked(found: Any, explainer: str, num_nodes: int) -> NodeResult:
    """What an explainer answered, or an error where that is no answer for so many nodes."""
    if not isinstance(found, NodeResult):
        raise TypeError(f"{explainer} must answer with a NodeResult (got {type(found).__name__})")
    errors = found.details.get("node_std_error")
    if errors is not None:
        _one_each(errors, num_nodes, f"standard errors of {explainer}")
    for nodes in found.sets:
        ids = np.asarray(nodes)
        distinct = set(ids.reshape(-1).tolist())
        known = ids.dtype.kind in "iu" and all(0 <= node < num_nodes for node in distinct)
        if ids.ndim != 1 or len(distinct) < ids.size or not (known or ids.size == 0):
            raise ValueError(
                f"{explainer} must find sets of distinct nodes in 0..{num_nodes - 1} "
                f"(got {ids.tolist()})"
            )
    if found.node_scores is None:
        return found
    scores = _one_each(found.node_scores, num_nodes, f"scores of {explainer}")
    wrong = np.flatnonzero(~np.isfinite(scores))
    if wrong.size:
        raise ValueError(
            f"scores of {explainer} must be finite (got {scores[wrong[0]]} for node {wrong[0]}, "
            f"{wrong.size} of {num_nodes} are not)"
        )
    return replace(found, node_scores=scores)


def _one_each(given: Any, num_nodes: int, what: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be numbers ({error})") from error
    if numbers.shape != (num_nodes,):
        raise ValueError(
            f"{what} must be one number per node, of shape ({num_nodes},) (got {numbers.shape})"
        )
    return numbers
