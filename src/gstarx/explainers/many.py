"""Explaining a whole dataset: one guard around the model, and passes shared between graphs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch_geometric.data import Batch, Data
from torch_geometric.explain import Explanation
from tqdm import tqdm

from gstarx.explainers.gstarx import Options
from gstarx.explainers.model_task import log
from gstarx.gnn.game import GNNGame
from gstarx.gnn.model_state import restored
from gstarx.gnn.multi_graph import ManyGraphs, shared_outputs
from gstarx.graphs.bitmasks import Coalitions, unpack
from gstarx.values.subgraph_sampling import SubgraphPlan

#: Graphs that share passes, and the most cells (coalitions times nodes) that one of them may bring:
#: beyond that its own passes are full.
_GRAPHS_TOGETHER = 32
_MOST_CELLS = 1 << 17


@dataclass(frozen=True)
class FailedExplanation:
    """What :func:`explain_many` records for a graph that could not be explained."""

    position: int
    error: Exception


def explain_many(
    model: Any,
    dataset: Iterable[Data],
    *,
    on_error: str = "raise",
    progress: bool = True,
    seed: int | None = None,
    **options: Any,
) -> list[Explanation | FailedExplanation]:
    """Explain every graph of a dataset, with a progress bar.

    Where the coalitions of a graph are few and known beforehand, as with ``estimator="subgraphs"``,
    those of several graphs go through the model together. That is faster and changes no more than
    the last digits.

    Parameters
    ----------
    model
        Any PyG model or callable.
    dataset
        Graphs: a PyG dataset or list of ``Data``, a ``DataLoader``, or a ``Batch``.
    on_error
        ``"raise"``, or ``"record"`` to put a :class:`FailedExplanation` in the list and go on.
    progress
        Show a bar.
    seed
        Every graph gets a seed of its own from it, by its position.
    **options
        As for :func:`explain`.
    """
    if on_error not in ("raise", "record"):
        raise ValueError(f"on_error must be 'raise' or 'record' (got {on_error!r})")
    asked = Options.of(options)
    graphs = _single_graphs(dataset)
    seeds = np.random.SeedSequence(seed).spawn(len(graphs))
    results: list[Explanation | FailedExplanation] = []
    together = _GRAPHS_TOGETHER if asked.settings.estimator == "subgraphs" else 1
    with restored(model), tqdm(total=len(graphs), desc="explaining", disable=not progress) as bar:
        for first in range(0, len(graphs), together):
            some = range(first, min(first + together, len(graphs)))
            cases = [
                _Case.of(model, graphs[at], replace(asked, seed=np.random.default_rng(seeds[at])))
                for at in some
            ]
            if together > 1:
                _run_together(model, cases, asked)
            for position, case in zip(some, cases, strict=True):
                try:
                    results.append(case.explanation())
                except Exception as error:
                    if on_error == "raise":
                        error.add_note(f"while explaining graph {position} of {len(graphs)}")
                        raise
                    results.append(FailedExplanation(position, error))
                bar.update()
    return results


def _single_graphs(dataset: Any) -> list[Any]:
    """Graphs one by one, out of batches where these come in."""
    if isinstance(dataset, Data) and not isinstance(dataset, Batch):
        raise TypeError("explain_many takes several graphs (got one Data); use explain for one")
    if isinstance(dataset, Batch):
        return list(dataset.to_data_list())
    graphs: list[Any] = []
    for item in dataset:
        graphs += item.to_data_list() if isinstance(item, Batch) else [item]
    return graphs


@dataclass(frozen=True)
class _Case:
    """One graph to explain: its game with what will be asked of it, or why there is none."""

    data: Data
    options: Options
    game: GNNGame | None = None
    plan: SubgraphPlan | None = None
    error: Exception | None = None

    @classmethod
    def of(cls, model: Any, data: Data, options: Options) -> _Case:
        try:
            game = GNNGame(model, data, lazy=True, **options.game)
            plan = options.settings.plan(game.graph, seed=options.seed)
        except Exception as error:
            return cls(data, options, error=error)
        return cls(data, options, game, plan)

    def explanation(self) -> Explanation:
        if self.error is not None:
            raise self.error
        assert self.game is not None
        return self.options.explanation(self.data, self.game, self.plan)

    def can_share(self) -> bool:
        """Whether its coalitions are known, few, and those of a whole graph."""
        return (
            self.game is not None
            and self.plan is not None
            and self.game.task_level == "graph"
            and self.plan.masks.shape[0] * self.game.n <= _MOST_CELLS
        )

    def coalitions(self) -> Coalitions:
        """What will be asked for, everybody first."""
        assert self.plan is not None
        n = self.plan.graph.num_nodes
        wanted = unpack(self.plan.masks, n)
        return np.concatenate([np.ones((1, n), dtype=np.bool_), wanted[~wanted.all(axis=1)]])


def _run_together(model: Any, cases: list[_Case], options: Options) -> None:
    """Let games know their worths from shared passes; where that fails they ask for themselves."""
    cases = [case for case in cases if case.can_share()]
    removal = options.game.get("removal", "remove")
    try:
        keywords = options.game.get("keywords")
        sharing = ManyGraphs.sharing(model, [case.data for case in cases], removal, keywords)
        if sharing is None:
            return
        parts = [case.coalitions() for case in cases]
        room = options.game.get("batch_nodes")
        check = options.game.get("check", True)
        outputs = shared_outputs(model, *sharing, parts, removal, room, check=check)
        for case, own, found in zip(
            cases, parts, torch.split(outputs, [len(p) for p in parts]), strict=True
        ):
            assert case.game is not None
            case.game.learn(own, found, compared=2 * check)
    except Exception as error:
        log.debug("no passes are shared, because of %r", error)
