"""Computes a report: explanations, metrics, the random selection, and the optimum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx._internal.progress import tqdm
from gstarx.datasets import title_of
from gstarx.drawing import class_name, scored
from gstarx.evaluation import Pipeline
from gstarx.explainers import NodeExplainer, graph_generator
from gstarx.explanation import Explanation
from gstarx.gnn import check_data
from gstarx.metrics import (
    SPARSITIES,
    Faithfulness,
    FidelityCurve,
    Judge,
    as_scores,
    auroc,
    average,
    selection_size,
)
from gstarx.players import Edges, Features, Nodes, PlayerKind, as_players, player_set
from gstarx.registry import PLAYERS
from gstarx.values import collect_imprecise, summarize_imprecise
from gstarx_bench.report.data import Explained, ExplainerRow, ReportData, predictions_of
from gstarx_bench.summary import SummaryRow, summarize

_RANDOM, _OPTIMUM = "random selection", "best selection found"
#: Effort of the search for the best selection: less than for a reference in a paper.
_STARTS, _EXHAUSTIVE = 3, 3_000


@dataclass(frozen=True, kw_only=True)
class ReportOptions:
    """What a report shows.

    Attributes
    ----------
    sparsity
        The sparsity of the table and the gallery.
    sparsities
        The sparsities of the curves; by default the paper's eight. ``sparsity`` is added.
    gallery
        Maximum number of graphs to draw. The table is about all graphs.
    random_draws
        Random selections per graph to average over; 0 for no random baseline.
    optimum
        Whether to search for the best selection of every graph, which takes the most time.
    by
        What the summary over all graphs is about, as for :func:`gstarx_bench.summary.summarize`.
    """

    sparsity: float = 0.7
    sparsities: Sequence[float] = SPARSITIES
    gallery: int = 60
    random_draws: int = 10
    optimum: bool = True
    by: str | Mapping[str, str] | None = None

    @property
    def levels(self) -> tuple[float, ...]:
        """All sparsities, ascending."""
        return tuple(sorted({*map(float, self.sparsities), self.sparsity}))


def build_report(
    judge: Judge,
    graphs: Iterable[Data],
    explainers: Mapping[str, Any],
    *,
    title: str,
    labels: Sequence[float] | None = None,
    names: Sequence[str] | None = None,
    output_names: Sequence[str] = (),
    facts: Mapping[str, Mapping[str, str]] | None = None,
    options: ReportOptions = ReportOptions(),  # noqa: B008 (it is frozen)
    seed: int = 0,
    positions: Sequence[int] | None = None,
    target: int | None = None,
    progress: bool = True,
) -> ReportData:
    """Explain every graph with every explainer, evaluate all alike, and return the report's data.

    Parameters
    ----------
    judge
        The model, which classifies graphs or predicts numbers, and how selections are evaluated. A
        regression needs a reference. Its players are drawn and removed: random and best selections
        are of them, and explainers that score edges are judged on edges. Explainers have their own
        option ``players``; a note marks rows of explainers that score nodes nevertheless.
    graphs
        The graphs.
    explainers
        By name, a :class:`gstarx.explainers.NodeExplainer` (already trained, if it requires
        training), or a list of results for every graph: scores, or :class:`gstarx.Explanation`.
    title
        The title of the report.
    labels
        True classes, or true values of a regression; by default the ``y`` of the graphs that have
        one.
    names
        Names of the graphs; by default their SMILES, their words, or their numbers.
    output_names
        Names of the classes, or of the outputs of a multilabel or regression model.
    facts
        What the report lists about the ``"model"`` and the ``"dataset"``, by name.
    options
        What is shown.
    seed, positions
        Every graph gets random numbers from the seed and its position in the dataset, by default
        its index among the graphs; the same for all explainers, see
        :func:`gstarx.explainers.graph_generator`.
    target
        As for :func:`gstarx.metrics.evaluate`. A model with several labels or outputs needs one.
    progress
        Show progress bars.

    Examples
    --------
    >>> from gstarx.datasets import load
    >>> from gstarx.explainers import create
    >>> from gstarx.models import pretrained
    >>> model, _ = pretrained("nitro")
    >>> graphs = load("nitro").split("test")[:3]
    >>> explainers = {"leave one out": create("leave_one_out")}
    >>> brief = ReportOptions(optimum=False)
    >>> report = build_report(
    ...     Judge(model), graphs, explainers, title="Nitro", options=brief, progress=False
    ... )
    >>> [row.name for row in report.rows], len(report.graphs)
    (['leave one out', 'random selection'], 3)
    """
    listed = [check_data(graph) for graph in graphs]
    _check(listed, explainers, names=names, labels=labels, positions=positions)
    pipeline = Pipeline(
        judge.model,
        seed,
        target,
        judge.removal,
        judge.task,
        judge.reference,
        as_players(judge.players),
    )
    positions = list(range(len(listed)) if positions is None else positions)
    builder = _Builder(pipeline, listed, positions, options, progress)
    predictions = predictions_of(pipeline, listed, labels, output_names)
    results = {str(name): builder.results(str(name), each) for name, each in explainers.items()}
    rows = [builder.row(name, explanations) for name, explanations in results.items()]
    if options.random_draws:
        rows.append(builder.random_row())
    if options.optimum:
        rows.append(builder.optimum_row())
    shown = [
        builder.explained(i, results, rows, predictions.graphs[i], names)
        for i in range(min(options.gallery, len(listed)))
    ]
    summaries, no_summary = _summaries(
        listed,
        results,
        by=options.by,
        mode=pipeline.model_task.mode,
        names=names,
        seed=seed,
        class_names=output_names,
        target_names=output_names,
    )
    kind = _kind_of(as_players(judge.players))
    removed = {"removal of nodes": str(judge.removal)} if kind == "nodes" else {"players": kind}
    explained = predictions.explained
    if target is not None and predictions.task == "classification":
        explained = class_name(target, output_names)
    settings = {
        "graphs": str(len(listed)),
        **removed,
        "sparsities of the curves": ", ".join(f"{level:g}" for level in options.levels),
        "random selections per graph": str(options.random_draws),
        **({"summary": f"none, because {no_summary}"} if no_summary else {}),
    }
    return ReportData(
        title,
        tuple(rows),
        tuple(shown),
        options.sparsity,
        class_names=tuple(output_names),
        accuracy=predictions.accuracy,
        facts={**(facts or {}), "settings": settings},
        seed=seed,
        players=kind,
        task=predictions.task,
        explained=explained,
        error=predictions.error,
        summaries=summaries,
    )


def _kind_of(players: PlayerKind) -> str:
    """What is selected and removed."""
    if isinstance(players, Nodes | Edges):
        return type(players).__name__.lower()
    if isinstance(players, Features):
        return "features" if players.field == "x" else "edge features"
    maker = getattr(players.sets, "__name__", "groups of nodes")
    titles = PLAYERS[maker].titles if maker in PLAYERS else {}
    return next(iter(titles.values()), str(maker).replace("_", " "))


def _summaries(
    graphs: list[Data],
    results: Mapping[str, Sequence[Explanation]],
    *,
    by: str | Mapping[str, str] | None,
    **options: Any,
) -> tuple[dict[str, list[SummaryRow]], str]:
    """What drives the model, by each explainer with scores; or why there is no summary."""
    summaries = {}
    for name, explanations in results.items():
        if any(explanation.node_scores is None for explanation in explanations):
            continue
        try:
            summaries[name] = summarize(graphs, explanations, by=by, **options)
        except ValueError as error:
            if by is not None:
                raise
            return {}, str(error)
    return {name: rows for name, rows in summaries.items() if rows}, ""


def _check(
    graphs: Sequence[Data],
    explainers: Mapping[str, Any],
    *,
    names: Sequence[str] | None,
    labels: Sequence[float] | None,
    positions: Sequence[int] | None,
) -> None:
    if not graphs:
        raise ValueError("graphs must be at least one (got none)")
    if not explainers:
        raise ValueError("explainers must name at least one (got none)")
    for name, values in (("names", names), ("labels", labels), ("positions", positions)):
        if values is not None and len(values) != len(graphs):
            raise ValueError(
                f"{name} must have {len(graphs)} entries, one per graph (got {len(values)})"
            )
    reserved = {_RANDOM, _OPTIMUM} & set(explainers)
    if reserved:
        raise ValueError(
            f"no explainer may be called {reserved.pop()!r}: the report uses this name"
        )


@dataclass(frozen=True)
class _Builder:
    """One model and its graphs."""

    pipeline: Pipeline
    graphs: list[Data]
    positions: list[int]
    options: ReportOptions
    progress: bool

    @property
    def levels(self) -> tuple[float, ...]:
        return self.options.levels

    @property
    def sparsity(self) -> float:
        return self.options.sparsity

    @property
    def nodes(self) -> list[int]:
        return [int(graph.num_nodes or 0) for graph in self.graphs]

    @cached_property
    def sizes(self) -> list[int]:
        """How many players every graph has."""
        kind = as_players(self.pipeline.players)
        return [len(player_set(graph, kind)) for graph in self.graphs]

    def selected(self, size: int, sparsity: float) -> int:
        """How many of so many players are selected at a sparsity."""
        of_nodes = isinstance(self.pipeline.players, Nodes)
        return selection_size(size, sparsity, of_nodes=of_nodes)

    def bar(self, name: str) -> tqdm[Data]:
        return tqdm(self.graphs, name, disable=not self.progress)

    def generators(self) -> list[np.random.Generator]:
        return [graph_generator(self.pipeline.seed, position) for position in self.positions]

    def results(self, name: str, explainer: Any) -> list[Explanation]:
        """The explanations of one explainer, or those that were given."""
        if not isinstance(explainer, NodeExplainer):
            results = list(explainer)
            if len(results) != len(self.graphs):
                raise ValueError(
                    f"results of {name!r} must have {len(self.graphs)} entries, one per graph "
                    f"(got {len(results)})"
                )
            pairs = zip(results, self.nodes, strict=True)
            return [
                r
                if isinstance(r, Explanation)
                else Explanation.from_scores(as_scores(r, n), num_nodes=n)
                for r, n in pairs
            ]
        explanations, imprecise = [], {}
        for i, (graph, position) in enumerate(zip(self.bar(name), self.positions, strict=True)):
            try:
                with collect_imprecise() as imprecise[f"graph {i} by {name}"]:
                    explanations.append(self.pipeline.explain(explainer, graph, position))
            except Exception as error:
                error.add_note(f"while explaining graph {i} with {name!r}")
                raise
        summarize_imprecise(imprecise, len(self.graphs), "graphs")
        return explanations

    def row(self, name: str, results: Sequence[Explanation]) -> ExplainerRow:
        """Metrics of the selections of an explainer, at every sparsity."""
        selections = [
            [result.select(sparsity=level) for level in self.levels] for result in results
        ]
        metrics = self.pipeline.evaluate_selections(self.graphs, selections, results)
        curve = self.curve(metrics)
        counted = [r.evaluations for r in results if r.evaluations is not None]
        return ExplainerRow(
            name,
            self.at_sparsity(curve),
            curve=curve,
            seconds=float(np.mean([result.seconds for result in results])),
            evaluations=float(np.mean(counted)) if len(counted) == len(results) else None,
            auroc=self.mean_auroc(results),
            note=self.note(results[0]),
        )

    def note(self, result: Explanation) -> str:
        """A remark on what an explainer scores."""
        if result.scores is None:
            return "selects sets, without scores"
        of_nodes = isinstance(self.pipeline.players, Nodes)
        if (result.player_kind == "nodes") == of_nodes:
            return ""
        kind = str(result.player_kind).replace("_", " ")
        return f"scores {kind}, which are selected and removed"

    def random_row(self) -> ExplainerRow:
        """Metrics of random selections, averaged over the draws of every graph."""
        draws, selections = self.options.random_draws, []
        for size, generator in zip(self.sizes, self.generators(), strict=True):
            orders = [generator.permutation(size) for _ in range(draws)]
            selected = [self.selected(size, level) for level in self.levels]
            selections.append([order[:k] for k in selected for order in orders])
        metrics = self.pipeline.evaluate_selections(self.graphs, selections)
        means = [
            [average(row[i * draws : (i + 1) * draws]) for i in range(len(self.levels))]
            for row in metrics
        ]
        curve = self.curve(means)
        note = f"mean of {draws} per graph"
        return ExplainerRow(_RANDOM, self.at_sparsity(curve), "random", curve, note=note)

    def optimum_row(self) -> ExplainerRow:
        """Metrics of the best selections that a search finds."""
        judge = self.pipeline.judge(self.pipeline.players)
        selections = [
            judge.best(
                graph,
                self.selected(size, self.sparsity),
                exhaustive_up_to=_EXHAUSTIVE,
                starts=_STARTS,
                seed=generator,
                target=self.pipeline.target,
            )
            for graph, size, generator in zip(
                self.bar(_OPTIMUM), self.sizes, self.generators(), strict=True
            )
        ]
        proven = sum(best.optimal for best in selections)
        return ExplainerRow(
            _OPTIMUM,
            tuple(best.evaluation for best in selections),
            "optimum",
            evaluations=float(np.mean([best.evaluations for best in selections])),
            note=f"optimizes the metric; proven best for {proven} of {len(selections)} graphs",
        )

    def curve(self, metrics: Sequence[Sequence[Faithfulness]]) -> FidelityCurve:
        by_level = tuple(tuple(column) for column in zip(*metrics, strict=True))
        return FidelityCurve(self.levels, tuple(map(average, by_level)), by_level)

    def at_sparsity(self, curve: FidelityCurve) -> tuple[Faithfulness, ...]:
        return curve.graphs[self.levels.index(self.sparsity)]

    def mean_auroc(self, results: Sequence[Explanation]) -> float | None:
        """Mean AUROC of nodes or edges over the graphs that have a ground truth, if any do."""
        values = []
        for graph, result in zip(self.graphs, results, strict=True):
            truth = getattr(graph, "truth", None)
            if truth is None:
                continue
            marked = truth.cpu().numpy().astype(np.bool_)
            if result.player_kind == "edges":  # true edges join true nodes
                true = marked[result.player_edges.numpy()].all(axis=1)
                if true.any() and not true.all():
                    values.append(auroc(result.scores.numpy(), np.flatnonzero(true)))
            elif result.node_scores is not None and marked.any() and not marked.all():
                values.append(auroc(result.node_scores.numpy(), np.flatnonzero(marked)))
        return float(np.mean(values)) if values else None

    def explained(
        self,
        index: int,
        results: Mapping[str, Sequence[Explanation]],
        rows: Sequence[ExplainerRow],
        predicted: Mapping[str, Any],
        names: Sequence[str] | None,
    ) -> Explained:
        """One graph of the gallery."""
        graph, size = self.graphs[index], self.nodes[index]
        drawn = {name: scored(each[index], size, self.sparsity) for name, each in results.items()}
        random = [row.graphs[index].harmonic_fidelity for row in rows if row.kind == "random"]
        return Explained(
            title_of(graph, f"graph {index}") if names is None else str(names[index]),
            graph,
            results=drawn,
            metrics={row.name: row.graphs[index] for row in rows if row.name in drawn},
            random=random[0] if random else None,
            **predicted,
        )
