"""Explaining one graph or many by a plain function: many graphs share forward passes."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch_geometric.data import Batch, Data, HeteroData

from gstarx._internal.arguments import one_of
from gstarx._internal.processes import Outcome, WorkerDied, can_fork, forked_map, outcome_of
from gstarx._internal.progress import check_progress, tqdm
from gstarx.explainers.base import graph_generator, log
from gstarx.explainers.gstarx import GStarX
from gstarx.explanation import Attribution, Explanation, as_explained
from gstarx.gnn import (
    BaselineLike,
    GameOptions,
    GNNGame,
    ManyGraphs,
    ModelTask,
    Passes,
    PayoffLike,
    TargetLike,
    TaskLike,
    model_device,
    outputs_and_sharing,
    refuse_unknown,
    restored,
    with_view,
)
from gstarx.graphs import Coalitions, unpack
from gstarx.players import PlayersLike
from gstarx.values import (
    Imprecise,
    Seed,
    SubgraphPlan,
    Subgraphs,
    ValueLike,
    collect_imprecise,
    summarize_imprecise,
)

#: Graphs that share passes, and the most cells (coalitions times nodes) of one of them: beyond
#: that, its own passes are full.
_GRAPHS_TOGETHER = 32
_MOST_CELLS = 1 << 17


@refuse_unknown
def explain(
    model: Any,
    data: Data | HeteroData,
    *,
    target: TargetLike = None,
    index: int | Tensor | None = None,
    task: TaskLike = None,
    value: ValueLike = "myerson",
    players: PlayersLike = "nodes",
    payoff: PayoffLike = "auto",
    baseline: BaselineLike = None,
    budget: int | None = None,
    seed: Seed = None,
    game: GameOptions | None = None,
    passes: Passes | None = None,
    progress: bool | None = None,
) -> Explanation:
    """Explain one prediction by scores: how much each node contributes to it.

    Parameters
    ----------
    model
        Any PyG model or callable; left exactly as it was.
    data
        One graph, a ``Data`` or ``HeteroData``; a SMILES or an RDKit molecule, if the model says
        how molecules become graphs.
    target
        The class to explain (default: the predicted one), a list of classes, or ``"all"``.
    index
        The node, or the column of ``edge_label_index``, for node and edge tasks.
    task
        What the model does, unless it says so itself: ``"node"``, ``"edge"``, ``"regression"`` or
        ``"binary"``, PyG's ``ModelConfig`` or its dictionary, or a :class:`gstarx.Task`.
    value
        ``"myerson"``, ``"hn"``, ``"shapley"``, ``"banzhaf"`` or ``"position"``; with options, such
        as :class:`gstarx.Myerson`, or of your own: a :class:`gstarx.values.Value`.
    players
        Who gets scores: ``"nodes"``, ``"edges"``, ``"features"``, groups of nodes or the name of a
        kind of them, such as ``"brics"``; with options as in :mod:`gstarx.players`.
    payoff
        What a coalition earns, as in :class:`gstarx.GNNGame`.
    baseline
        What is subtracted from payoffs, as in :class:`gstarx.GNNGame`. For HN and Myerson values
        and for regressions the default in graph tasks is ``"singletons"``, if nodes or groups of
        them are the players and none are always present.
    budget
        The largest number of distinct coalitions to evaluate.
    seed
        The same seed gives the same scores.
    game, passes
        Rare options: a :class:`gstarx.GameOptions` and a :class:`gstarx.Passes`.
    progress
        Whether to show a progress bar. By default after two seconds, on a terminal or in a
        notebook.

    Returns
    -------
    Explanation
        With ``scores`` of the players and their standard errors. Scores of the nodes of a component
        sum to its payoff minus the baseline.

    Examples
    --------
    >>> import torch
    >>> from gstarx.models import GCN
    >>> data = Data(x=torch.eye(3), edge_index=torch.tensor([[0, 1, 1, 2], [1, 0, 2, 1]]))
    >>> explain(GCN(3, 8, 2), data).scores.shape
    torch.Size([3])
    """
    explainer = GStarX(
        value=value,
        players=players,
        payoff=payoff,
        baseline=baseline,
        budget=budget,
        game=game,
        passes=passes,
        progress=progress,
    )
    return explainer.explain(model, data, target=target, index=index, task=task, seed=seed)


@dataclass(frozen=True)
class FailedExplanation:
    """What :func:`explain_many` records for a graph that could not be explained."""

    position: int
    error: Exception


#: What to do about failures.
ON_ERROR = ("raise", "record")
#: Scores of the players of a graph, CPU seconds, and what is to be said of their precision.
Attributed = tuple[Attribution, float, list[Imprecise]]


def one_by_one(
    calls: Generator[Callable[[], Attributed]],
    explained: Callable[[int, Attributed], Explanation],
    positions: Sequence[int],
    imprecise: dict[str, list[Imprecise]],
    *,
    what: str,
    on_error: str,
    progress: bool,
) -> Generator[Explanation | FailedExplanation]:
    """Explanations from functions that return scores, with a bar.

    ``what`` is what the positions are, ``"graph"`` or ``"node"``. What is to be said of precision
    is added to ``imprecise``; an error is raised with a note of where it happened, or recorded.
    """
    count = f" of {len(positions)}" if what == "graph" else ""
    with closing(calls), tqdm(positions, desc="explaining", disable=not progress) as bar:
        for position, call in zip(bar, calls, strict=True):
            try:
                attributed = call()
                imprecise[f"{what} {position}"] = attributed[2]
                made: Explanation | FailedExplanation = explained(position, attributed)
            except Exception as error:
                if on_error == "raise":
                    error.add_note(f"while explaining {what} {position}{count}")
                    raise
                made = FailedExplanation(position, error)
            yield made


@refuse_unknown
def explain_many(
    model: Any,
    dataset: Iterable[Data],
    *,
    target: TargetLike = None,
    index: int | Tensor | None = None,
    task: TaskLike = None,
    value: ValueLike = "myerson",
    players: PlayersLike = "nodes",
    payoff: PayoffLike = "auto",
    baseline: BaselineLike = None,
    budget: int | None = None,
    seed: int | None = None,
    game: GameOptions | None = None,
    passes: Passes | None = None,
    progress: bool | None = None,
    workers: int = 1,
    on_error: str = "raise",
) -> list[Explanation | FailedExplanation]:
    """Explain every graph of a dataset, with a progress bar.

    If the coalitions of a graph are few and known in advance, as those of
    :class:`gstarx.Subgraphs`, those of several graphs go through the model together. This is faster
    and changes at most the last digits. If the scores of some graphs are imprecise, one warning
    says how many they are. Parameters that are not listed here are those of :func:`explain`.

    Parameters
    ----------
    model
        Any PyG model or callable; left exactly as it was.
    dataset
        Graphs: a PyG dataset or list of ``Data`` or ``HeteroData``, a ``DataLoader``, or a
        ``Batch``.
    players
        As for :func:`explain`. Groups differ from graph to graph, so give a function of the graph
        that makes them, such as :func:`gstarx.players.brics`, or its name.
    seed
        Every graph gets its own random numbers from the seed and its position, the same as on the
        command line, in runs and in the explorer (see :func:`graph_generator`).
    progress
        Whether to show a bar, as by default.
    workers
        Number of processes over which the graphs are distributed, as in :func:`explain_nodes`; the
        scores do not change. A process that dies fails only the graph that it had.
    on_error
        ``"raise"``, or ``"record"`` to add a :class:`FailedExplanation` to the list and continue.
    """
    one_of(on_error, ON_ERROR, name="on_error")
    explainer = GStarX(
        value=value,
        players=players,
        payoff=payoff,
        baseline=baseline,
        budget=budget,
        game=game,
        passes=passes,
        progress=None if check_progress(progress) is not False else False,
    )
    own = ModelTask.of(model, task, target, index)
    graphs = _single_graphs(dataset)
    check_workers(workers, model, graphs[0] if graphs else None)
    many = _Many(explainer, model, graphs, own, seed)

    def explained(position: int, attributed: Attributed) -> Explanation:
        attribution, seconds, _ = attributed
        view, of_view = with_view(model, graphs[position], own)
        made = explainer._made(attribution, model, view, of_view, seconds)
        return as_explained(made, graphs[position])  # type: ignore[no-any-return]

    imprecise: dict[str, list[Imprecise]] = {}
    places, calls = range(len(graphs)), many.attributed(workers)
    how: dict[str, Any] = {"what": "graph", "on_error": on_error, "progress": progress is not False}
    with restored(model), closing(one_by_one(calls, explained, places, imprecise, **how)) as made:
        results = list(made)
    summarize_imprecise(imprecise, len(graphs), "graphs", stacklevel=3)
    return results


def check_workers(workers: Any, model: Any, data: Any) -> None:
    """Raise unless work on a graph such as ``data`` can be shared among so many processes."""
    if isinstance(workers, bool) or not isinstance(workers, int | np.integer) or workers < 1:
        raise ValueError(f"workers must be an integer of at least 1 (got {workers!r})")
    if workers == 1 or data is None:
        return
    edges = getattr(data, "edge_index", None)
    device = model_device(model, edges.device if isinstance(edges, Tensor) else torch.device("cpu"))
    if device.type != "cpu":
        raise ValueError(f"workers are for models on a CPU (got workers={workers} on {device})")
    if not can_fork():
        raise ValueError(
            f"workers need a system whose processes can be forked, which this one is not (got "
            f"workers={workers}): gstarx evaluate --workers runs on any system"
        )


@dataclass(frozen=True)
class _Many:
    """Graphs to explain, in this process or in others."""

    explainer: GStarX
    model: Any
    graphs: Sequence[Any]
    task: ModelTask
    seed: int | None

    def attributed(self, workers: int) -> Generator[Callable[[], Attributed]]:
        """For every graph in order, a function that returns its scores or raises its error."""
        together = _GRAPHS_TOGETHER if isinstance(self.explainer.value, Subgraphs) else 1
        count = len(self.graphs)
        parts = [range(at, min(at + together, count)) for at in range(0, count, together)]
        if workers == 1 or count < 2:
            for part in parts:
                yield from self._calls(part)
            return
        outcomes = forked_map(self._outcomes, parts, workers)
        for part, outcome in zip(parts, outcomes, strict=True):
            if isinstance(outcome.error, WorkerDied) and len(part) > 1:
                # one of them is to blame, which shows when each has a process of its own
                alone = [range(at, at + 1) for at in part]
                for again in forked_map(self._outcomes, alone, workers):
                    yield partial(_of_part, again, 0)
            else:
                for at in range(len(part)):
                    yield partial(_of_part, outcome, at)

    def _calls(self, positions: range) -> list[Callable[[], Attributed]]:
        """The same of some graphs, in this process: those that share passes do so first."""
        cases = [_Case(self, at) for at in positions]
        if len(cases) > 1:
            _run_together(self.model, cases, self.explainer, self.task)
        return [case.attributed for case in cases]

    def _outcomes(self, positions: range) -> list[Outcome]:
        """What these functions return and raise, to be sent to another process."""
        return [outcome_of(call) for call in self._calls(positions)]


def _of_part(outcome: Outcome, at: int) -> Attributed:
    """One result of several that came together; warnings are given with the first."""
    first = at == 0 or outcome.error is not None
    results: list[Outcome] = outcome.get() if first else outcome.result
    return results[at].get()  # type: ignore[no-any-return]


def _single_graphs(dataset: Any) -> list[Any]:
    """Single graphs, with batches split up."""
    one = isinstance(dataset, Data | HeteroData) and not isinstance(dataset, Batch)
    if one or isinstance(dataset, str):
        raise TypeError(
            f"explain_many takes several graphs (got one {type(dataset).__name__}); use explain "
            "for one"
        )
    items = [dataset] if isinstance(dataset, Batch) else dataset
    split = (item.to_data_list() if isinstance(item, Batch) else [item] for item in items)
    return [graph for graphs in split for graph in graphs]


class _Case:
    """One graph to explain: its game and plan, or the error that prevented them."""

    def __init__(self, many: _Many, position: int) -> None:
        self.explainer, self.generator = many.explainer, graph_generator(many.seed, position)
        self.view: Any = None
        self.game: GNNGame | None = None
        self.plan: SubgraphPlan | None = None
        self.error: Exception | None = None
        try:
            self.view, task = with_view(many.model, many.graphs[position], many.task)
            self.game = many.explainer.game(many.model, self.view, task)
            self.plan = many.explainer.budgeted.plan(self.game.graph, seed=self.generator)
        except Exception as error:
            self.error = error

    def attributed(self) -> Attributed:
        if self.error is not None:
            raise self.error
        assert self.game is not None
        start = time.process_time()
        with collect_imprecise() as imprecise:
            attribution = self.explainer.attribute_game(self.game, self.generator, self.plan)
        return attribution, time.process_time() - start, imprecise

    def can_share(self) -> bool:
        """Whether its coalitions are known, few, and those of a whole graph."""
        return (
            self.game is not None
            and self.plan is not None
            and self.game.task_level == "graph"
            and self.game.players.kind == "nodes"
            and self.plan.masks.shape[0] * self.game.n <= _MOST_CELLS
        )

    def coalitions(self) -> Coalitions:
        """The coalitions to evaluate, the grand coalition first."""
        assert self.plan is not None
        n = self.plan.graph.num_nodes
        wanted = unpack(self.plan.masks, n)
        return np.concatenate([np.ones((1, n), dtype=np.bool_), wanted[~wanted.all(axis=1)]])


def _run_together(model: Any, cases: list[_Case], explainer: GStarX, task: ModelTask) -> None:
    """Fill games with worths from shared passes; if that fails, each evaluates its own."""
    cases = [case for case in cases if case.can_share()]
    options = explainer.game_options
    removal, passes = options["game"].removal, options["passes"]
    try:
        graphs = [case.view for case in cases]
        sharing = ManyGraphs.sharing(model, graphs, removal, task.keywords)
        if sharing is None:
            return
        parts = [case.coalitions() for case in cases]
        capacity, check = passes.batch_nodes, passes.check
        outputs, shared = outputs_and_sharing(
            model, *sharing, parts, removal, capacity, check=check, share=passes.share
        )
        for case, coalitions, case_outputs in zip(
            cases, parts, torch.split(outputs, [len(p) for p in parts]), strict=True
        ):
            assert case.game is not None
            case.game.learn(coalitions, case_outputs, compared=2 * check, sharing=shared)
    except Exception as error:
        log.debug("no passes are shared, because of %r", error)
