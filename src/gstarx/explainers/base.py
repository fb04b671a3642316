"""The base class of all explainers: subclass it and implement :meth:`NodeExplainer.attribute`."""

from __future__ import annotations

import logging
import time
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import wraps
from typing import Any, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch_geometric.data import Data
from torch_geometric.explain import ExplainerAlgorithm
from torch_geometric.explain.config import MaskType, ModelMode, ModelTaskLevel

from gstarx._internal.arguments import as_seed, given_options
from gstarx.explainers.outputs import Output, as_one_graph, numbered, outputs_of, summed
from gstarx.explanation import Attribution, Explanation, as_explained, hetero_data
from gstarx.gnn import (
    GNNGame,
    ModelTask,
    TargetLike,
    Task,
    TaskLike,
    as_task,
    check_data,
    hetero_of,
    refuse_unknown,
    with_view,
)
from gstarx.players import NoPlayersError, PlayerSet
from gstarx.values import Seed, collect_imprecise, summarize_imprecise

log = logging.getLogger("gstarx")


def graph_generator(seed: int | None, position: int) -> np.random.Generator:
    """The random numbers for the graph at a position of a dataset.

    One rule for Python, the command, reports, runs on any number of workers, Ray and the explorer:
    the generator follows from the seed and the position alone. The same dataset, position, method,
    options and seed therefore give the same coalitions, and scores that agree to the last digits.
    Without a seed they are different every time.

    >>> one, other = graph_generator(0, 7), graph_generator(0, 7)
    >>> bool(one.random() == other.random())
    True
    """
    seed = as_seed(seed)
    if seed is None:
        return np.random.default_rng()
    return np.random.default_rng(np.random.SeedSequence([seed, position]))


class NodeExplainer(ExplainerAlgorithm):  # type: ignore[misc]
    """An explainer of nodes: on its own by :meth:`explain`, or inside PyG's ``Explainer``.

    A subclass implements :meth:`attribute`. Methods that train do so once, by :meth:`fit` on the
    training graphs. :func:`gstarx.testing.check_explainer` tests a subclass.
    """

    #: The value of :attr:`gstarx.Explanation.method`; by default the class name in lower case.
    #: :func:`gstarx.explainers.create` sets it to the requested name.
    method: str = ""
    #: The seed if :meth:`explain` gets none, as inside PyG's ``Explainer``.
    seed: int | None = None
    #: Whether :meth:`fit` has to be called first.
    requires_training: bool = False
    #: Whether it explains heterogeneous graphs. :meth:`attribute` gets their homogeneous view, and
    #: may only evaluate coalitions of its nodes, for instance by :class:`gstarx.GNNGame`.
    heterogeneous: bool = False
    #: What models do, if :meth:`explain` is not told.
    task: Task = Task()
    #: Packages whose versions can change the scores, besides the explainer's own and those that
    #: GStarX always needs.
    needed_packages: tuple[str, ...] = ()

    def __init_subclass__(cls, **options: Any) -> None:
        """Let explainers remember the options that they were made with, to print them."""
        super().__init_subclass__(**options)
        made = cls.__dict__.get("__init__")
        if made is None:
            return

        @wraps(made)
        def remembered(self: NodeExplainer, *args: Any, **kwargs: Any) -> None:
            made(self, *args, **kwargs)
            if type(self) is cls:
                self.__dict__["_given"] = given_options(made, self, *args, **kwargs)

        cls.__init__ = remembered  # type: ignore[assignment,method-assign]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.__dict__.get('_given', '')})"

    @abstractmethod
    def attribute(self, model: Any, data: Data, *, task: ModelTask, seed: Seed) -> Attribution:
        """Compute scores of the nodes of one graph: the method itself.

        Parameters
        ----------
        model
            The model. Leave it exactly as it is; :func:`gstarx.gnn.restored` helps.
        data
            One graph, checked.
        task
            What the model does, and which output to explain.
        seed
            Everything random follows from it.

        Returns
        -------
        Attribution
            Scores of all nodes, scores of some with ``players``, or sets of nodes.
        """

    def fit(
        self,
        model: Any,
        graphs: Iterable[Data],
        *,
        seed: int | None = None,
        task: TaskLike = None,
    ) -> Self:
        """Train on graphs, if the method does; do nothing otherwise."""
        return self

    @refuse_unknown
    def explain(
        self,
        model: Any,
        data: Data,
        *,
        target: TargetLike = None,
        index: int | Tensor | None = None,
        task: TaskLike = None,
        seed: Seed = None,
    ) -> Explanation:
        """Explain the model's output for one graph.

        Parameters
        ----------
        model
            Any PyG model or callable; left exactly as it was.
        data
            One graph.
        target
            The class to explain; by default the predicted one.
        index
            The node, or the column of ``edge_label_index``, for node and edge tasks.
        task
            What the model does: a word such as ``"node"``, PyG's ``ModelConfig`` or its dictionary,
            or a :class:`gstarx.Task`; by default the explainer's own ``task``.
        seed
            The same seed gives the same scores; by default the explainer's own ``seed``.

        Raises
        ------
        TypeError, ValueError
            If the method's result is not valid for this graph: scores that are not finite or not
            one per player, sets of anything but nodes.
        """
        own = ModelTask.of(model, self._task(task), target, index)
        return self._explanation(model, data, own, seed)

    def _task(self, task: TaskLike) -> Task:
        """The task that is given, or the explainer's own."""
        if task is None:
            return self.task
        given = as_task(task)
        if self.task not in (Task(), given):
            raise ValueError(
                f"the explainer has task={self.task}, and explain got {given}: keep one of them"
            )
        return given

    def _explanation(self, model: Any, data: Data, task: ModelTask, seed: Seed) -> Explanation:
        view, task = with_view(model, data, task)
        checked = check_data(view)
        self._refuse_types(checked)
        start = time.process_time()
        attribution = self._attribution(model, checked, task, seed)
        seconds = time.process_time() - start
        made = self._made(attribution, model, checked, task, seconds)
        return as_explained(made, data)  # type: ignore[no-any-return]

    def _refuse_types(self, view: Data) -> None:
        if not self.heterogeneous and hetero_of(view) is not None:
            raise ValueError(
                f"{type(self).__name__} explains homogeneous graphs (got a HeteroData); methods "
                "that evaluate coalitions of nodes, such as GStarX, explain heterogeneous ones"
            )

    def _attribution(self, model: Any, data: Data, task: ModelTask, seed: Seed) -> Attribution:
        seed = as_seed(self.seed if seed is None else seed)
        computed = self.attribute(model, data, task=task, seed=seed)
        return _checked(computed, type(self).__name__, int(data.num_nodes or 0))

    def _made(
        self, attribution: Attribution, model: Any, data: Data, task: ModelTask, seconds: float
    ) -> Explanation:
        method = self.method or type(self).__name__.lower()
        return Explanation.of(attribution, model, data, task, method=method, seconds=seconds)

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
        """Explain outputs of the model; called by PyG's ``Explainer``.

        ``index`` names rows of the model's output, by default all of them. The scores of several
        rows are the sums of those of each, see :mod:`gstarx.explainers.outputs`.
        """
        if isinstance(x, dict) != isinstance(edge_index, dict):
            raise ValueError(
                "x and edge_index must both be tensors, or both dictionaries (got "
                f"{type(x).__name__} and {type(edge_index).__name__})"
            )
        typed = isinstance(x, dict)
        if typed:
            data = hetero_data(x, edge_index, **kwargs)  # type: ignore[arg-type]
        else:
            data = Data(x=x, edge_index=edge_index, **kwargs)
            check_data(as_one_graph(data))
        config = self.model_config
        level = config.task_level.value
        if kwargs.get("edge_label_index") is None and level == "edge":
            raise ValueError("task='edge' needs edge_label_index=...")
        task = ModelTask(
            config.mode.value,
            level,
            config.return_type.value,
            keywords=[name for name, value in kwargs.items() if value is not None],
            # the explainer's own type, where the graph and the task have one
            node_type=self.task.node_type if typed and level == "node" else None,
        )
        view, task = with_view(model, data, task)
        self._refuse_types(view)
        outputs = outputs_of(model, view, task, index)
        rows = numbered(view, task)[1]
        tasks = [
            replace(task, index=output.index, target=target_of(target, output.row, rows, config))
            for output in outputs
        ]
        made = self._of_outputs(model, view, task, list(zip(outputs, tasks, strict=True)))
        if self.explainer_config.edge_mask_type is not None:
            made.score_edges()
        return as_explained(made, data)  # type: ignore[no-any-return]

    def _of_outputs(
        self, model: Any, view: Data, task: ModelTask, asked: Sequence[tuple[Output, ModelTask]]
    ) -> Explanation:
        """The explanation of one output of one graph, or the sum over outputs."""
        start = time.process_time()
        (output, own), *others = asked
        if not others:
            alone = self._attribution(model, output.data, own, None)
            if output.data is view:
                seconds = time.process_time() - start
                return self._made(alone, model, view, own, seconds)
            played = [(output, own, alone)]
        else:
            played = self._attributions(model, asked)
        named = [
            replace(one, target=own.one_target or 0) if one.target is None else one
            for _, own, one in played
        ]
        outputs = [output for output, _, _ in played]
        total, seconds = summed(named, outputs, view), time.process_time() - start
        made = self._made(total, model, view, task, seconds)
        first = numbered(view, task)[0]
        made.index = torch.tensor([first + output.row for output in outputs])
        return made

    def _attributions(
        self, model: Any, asked: Sequence[tuple[Output, ModelTask]]
    ) -> list[tuple[Output, ModelTask, Attribution]]:
        """Scores for each of several outputs, with one warning about the precision of all.

        Outputs without players add nothing to the sum: nodes that no edge reaches if edges play.
        """
        made, imprecise, without = [], {}, []
        for output, own in asked:
            seed = graph_generator(self.seed, output.row)
            with collect_imprecise() as imprecise[f"output {output.row}"]:
                try:
                    made.append((output, own, self._attribution(model, output.data, own, seed)))
                except NoPlayersError as error:
                    without.append(error)
        if not made:
            raise without[0]
        if without:
            log.info("%d of %d outputs have no players and are left out", len(without), len(asked))
        summarize_imprecise(imprecise, len(asked), "outputs")
        return made

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


def one_target_game(model: Any, data: Data, task: ModelTask, **options: Any) -> GNNGame:
    """The game of one graph for methods that explain one target; ``options`` are GNNGame's."""
    return GNNGame.for_task(model, data, replace(task, target=task.one_target), **options)


def output_payoff(task: ModelTask) -> str:
    """The payoff of methods that play for the model's output: a probability, or a raw number."""
    return "raw" if task.mode == "regression" else "prob"


def game_attribution(
    game: GNNGame,
    scores: NDArray[np.float64] | None,
    *,
    details: Mapping[str, Any] | None = None,
    **fields: Any,
) -> Attribution:
    """An attribution with the fields that the game knows; ``fields`` are the others."""
    return Attribution(
        scores,
        players=game.players,
        prediction=game.model_output,
        evaluations=game.evaluations,
        details={**(details or {}), "sharing": game.sharing, "fixed": game.fixed},
        **{"target": list(game.payoff.columns), **fields},
    )


def target_of(target: Tensor, row: int, rows: int, config: Any) -> int | None:
    """The class to explain of one of the model's outputs, from PyG's target tensor.

    ``None`` for regression.
    """
    if config.mode == ModelMode.regression:
        return None
    flat = target.reshape(-1)
    if flat.numel() not in (1, rows):
        whole = config.task_level == ModelTaskLevel.graph
        raise ValueError(
            f"explain one target at a time (got {flat.numel()}): PyG's target is one class for "
            f"each of the {rows} outputs of the model; for one of several labels, use "
            "gstarx.explain(..., target=...)"
            + ("; for a model with a row per node, say task_level='node'" if whole else "")
        )
    return int(flat[row if flat.numel() == rows else 0])


def _checked(computed: Any, explainer: str, num_nodes: int) -> Attribution:
    """Validate what an explainer computed for a graph of ``num_nodes`` nodes."""
    if not isinstance(computed, Attribution):
        raise TypeError(
            f"{explainer}.attribute must return an Attribution (got {type(computed).__name__})"
        )
    players = computed.players
    of_graph = isinstance(players, PlayerSet)
    for nodes in (*computed.sets, *(() if players is None or of_graph else (players,))):
        ids = np.asarray(nodes)
        distinct = set(ids.reshape(-1).tolist())
        known = ids.dtype.kind in "iu" and all(0 <= node < num_nodes for node in distinct)
        if ids.ndim != 1 or len(distinct) < ids.size or not (known or ids.size == 0):
            raise ValueError(
                f"{explainer} must name distinct nodes in 0..{num_nodes - 1} (got {ids.tolist()})"
            )
    if computed.scores is None:
        return computed
    count = num_nodes if players is None else len(players)
    scores = _one_each(computed.scores, count, f"scores of {explainer}")
    wrong = np.argwhere(~np.isfinite(scores))
    if wrong.size:
        at = tuple(wrong[0])
        raise ValueError(
            f"scores of {explainer} must be finite (got {scores[at]} for node {at[0]}, "
            f"{len(wrong)} of {scores.size} are not)"
        )
    errors = computed.std_errors
    if errors is not None:
        errors = _one_each(errors, count, f"standard errors of {explainer}")
        if errors.shape != scores.shape:
            raise ValueError(
                f"standard errors of {explainer} must have the shape of the scores, "
                f"{scores.shape} (got {errors.shape})"
            )
    return replace(computed, scores=scores, std_errors=errors)


def _one_each(values: Any, count: int, what: str) -> NDArray[np.float64]:
    try:
        numbers = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{what} must be numbers ({error})") from error
    if numbers.ndim not in (1, 2) or len(numbers) != count or numbers.shape[1:] == (1,):
        raise ValueError(
            f"{what} must be one number per node, of shape ({count},) (got {numbers.shape})"
        )
    return numbers
