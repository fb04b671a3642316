"""Everything for a report, computed: explanations, metrics, the random selection, the optimum."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data
from tqdm import tqdm

from gstarx.datasets import label_of, title_of
from gstarx.drawing import scored
from gstarx.evaluation import Pipeline
from gstarx.explainers import Explanation, NodeExplainer, graph_generator
from gstarx.gnn import check_data
from gstarx.metrics import (
    SPARSITIES,
    Faithfulness,
    FidelityCurve,
    Parts,
    PartTask,
    as_scores,
    auroc,
    average,
    best_selection,
    part_probabilities,
    selection_size,
)
from gstarx.report.data import Explained, ExplainerRow, ReportData

_RANDOM, _OPTIMUM = "random selection", "best selection found"
#: A search for the report: shorter than that of a reference for a paper.
_STARTS, _EXHAUSTIVE = 3, 3_000


def build_report(
    model: Any,
    graphs: Iterable[Data],
    explainers: Mapping[str, Any],
    *,
    title: str,
    labels: Sequence[int] | None = None,
    class_names: Sequence[str] = (),
    names: Sequence[str] | None = None,
    model_facts: Mapping[str, str] | None = None,
    dataset_facts: Mapping[str, str] | None = None,
    sparsity: float = 0.7,
    sparsities: Sequence[float] | None = None,
    gallery: int = 60,
    random_draws: int = 10,
    optimum: bool = True,
    seed: int = 0,
    positions: Sequence[int] | None = None,
    target: int | None = None,
    removal: Any = "remove",
    mode: str = "multiclass_classification",
    return_type: str = "raw",
    keywords: Sequence[str] | None = None,
    progress: bool = True,
) -> ReportData:
    """Explain every graph by every explainer, judge all alike, and return what a report shows.

    Parameters
    ----------
    model
        Any PyG model or callable that classifies graphs; left exactly as it was.
    graphs
        The graphs.
    explainers
        By name, a :class:`gstarx.explainers.NodeExplainer` (trained already, where it has to be),
        or a list of results for every graph: scores, or :class:`gstarx.Explanation`.
    title
        Of the report.
    labels
        True classes; by default the ``y`` of the graphs that have one.
    class_names
        What each class stands for.
    names
        What to call the graphs; by default their SMILES, their words, or their numbers.
    model_facts, dataset_facts
        What the report lists of model and data, by name.
    sparsity
        Where the table and the gallery select nodes.
    sparsities
        Where the curves do; by default the paper's eight. ``sparsity`` is added.
    gallery
        The most graphs to draw, the first ones. The table is about all.
    random_draws
        Random selections of a graph to average over; 0 for no random baseline.
    optimum
        Whether to search for the best selection of every graph, which takes longest.
    seed, positions
        Every graph gets random numbers from the seed and its position in the dataset, by default
        its place among the graphs; the same for all explainers, see
        :func:`gstarx.explainers.graph_generator`.
    target, removal, mode, return_type, keywords
        As for :func:`gstarx.metrics.evaluate`.
    progress
        Show bars.

    Examples
    --------
    >>> from gstarx.datasets import load
    >>> from gstarx.explainers import create
    >>> from gstarx.models import pretrained
    >>> model, _ = pretrained("nitro")
    >>> graphs = load("nitro").split("test")[:3]
    >>> explainers = {"leave one out": create("leave_one_out")}
    >>> options = {"optimum": False, "progress": False}
    >>> found = build_report(model, graphs, explainers, title="Nitro", **options)
    >>> [row.name for row in found.rows], len(found.graphs)
    (['leave one out', 'random selection'], 3)
    """
    listed = [check_data(graph) for graph in graphs]
    _check(listed, explainers, names=names, labels=labels, positions=positions)
    levels = tuple(
        sorted({*map(float, SPARSITIES if sparsities is None else sparsities), sparsity})
    )
    pipeline = Pipeline(model, seed, target, removal, mode, return_type, keywords)
    places = list(range(len(listed)) if positions is None else positions)
    work = _Work(pipeline, listed, places, levels, sparsity, progress)
    predicted = work.predictions()
    results = {str(name): work.results(str(name), found) for name, found in explainers.items()}
    rows = [work.row(name, found) for name, found in results.items()]
    if random_draws:
        rows.append(work.random_row(random_draws))
    if optimum:
        rows.append(work.optimum_row())
    known = list(labels) if labels is not None else [label_of(graph) for graph in listed]
    hits = [p.target == y for p, y in zip(predicted, known, strict=True) if y is not None]
    shown = [
        work.explained(i, results, rows, predicted[i], known[i], names)
        for i in range(min(gallery, len(listed)))
    ]
    return ReportData(
        title,
        tuple(rows),
        tuple(shown),
        sparsity,
        class_names=tuple(class_names),
        accuracy=float(np.mean(hits)) if hits and target is None else None,
        model=dict(model_facts or {}),
        dataset=dict(dataset_facts or {}),
        settings={
            "graphs": str(len(listed)),
            "removal of nodes": str(removal),
            "sparsities of the curves": ", ".join(f"{level:g}" for level in levels),
            "random selections per graph": str(random_draws),
        },
        seed=seed,
    )


def _check(
    graphs: Sequence[Data],
    explainers: Mapping[str, Any],
    *,
    names: Sequence[str] | None,
    labels: Sequence[int] | None,
    positions: Sequence[int] | None,
) -> None:
    if not graphs:
        raise ValueError("graphs must be at least one (got none)")
    if not explainers:
        raise ValueError("explainers must name at least one (got none)")
    for what, given in (("names", names), ("labels", labels), ("positions", positions)):
        if given is not None and len(given) != len(graphs):
            raise ValueError(f"{what} must be one for each of {len(graphs)} (got {len(given)})")
    taken = {_RANDOM, _OPTIMUM} & set(explainers)
    if taken:
        raise ValueError(f"no explainer may be called {taken.pop()!r}: the report has one")


@dataclass(frozen=True)
class _Work:
    """One model and its graphs; every method is about all of them."""

    pipeline: Pipeline
    graphs: list[Data]
    positions: list[int]
    levels: tuple[float, ...]
    sparsity: float
    progress: bool

    @property
    def sizes(self) -> list[int]:
        return [int(graph.num_nodes or 0) for graph in self.graphs]

    def bar(self, name: str) -> tqdm[Data]:
        return tqdm(self.graphs, name, disable=not self.progress)

    def generators(self) -> list[np.random.Generator]:
        return [graph_generator(self.pipeline.seed, position) for position in self.positions]

    @property
    def task(self) -> dict[str, Any]:
        """What the model does and how nodes are removed, as metrics take it."""
        how = self.pipeline
        return {
            "removal": how.removal,
            "mode": how.mode,
            "return_type": how.return_type,
            "keywords": how.keywords,
        }

    def predictions(self) -> list[Parts]:
        """What the model says of every whole graph."""
        nobody = [np.zeros((0, size), dtype=np.bool_) for size in self.sizes]
        blank = [None] * len(self.graphs)
        task = PartTask(**self.task)
        return part_probabilities(self.pipeline.model, self.graphs, nobody, blank, task)

    def results(self, name: str, explainer: Any) -> list[Explanation]:
        """The answers of one explainer, or those that were given."""
        if not isinstance(explainer, NodeExplainer):
            given = list(explainer)
            if len(given) != len(self.graphs):
                raise ValueError(
                    f"results of {name!r} must be one for each of {len(self.graphs)} graphs "
                    f"(got {len(given)})"
                )
            pairs = zip(given, self.sizes, strict=True)
            return [
                r
                if isinstance(r, Explanation)
                else Explanation.from_scores(as_scores(r, n), num_nodes=n)
                for r, n in pairs
            ]
        found = []
        for i, (graph, position) in enumerate(zip(self.bar(name), self.positions, strict=True)):
            try:
                found.append(self.pipeline.explain(explainer, graph, position))
            except Exception as error:
                error.add_note(f"while explaining graph {i} by {name!r}")
                raise
        return found

    def row(self, name: str, results: Sequence[Explanation]) -> ExplainerRow:
        """Metrics of what an explainer selects, at every sparsity."""
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
            auroc=self.found_truth(results),
            note="" if results[0].node_scores is not None else "finds sets, gives no scores",
        )

    def random_row(self, draws: int) -> ExplainerRow:
        """Metrics of random selections, averaged over the draws of every graph."""
        selections = []
        for size, generator in zip(self.sizes, self.generators(), strict=True):
            orders = [generator.permutation(size) for _ in range(draws)]
            kept = [selection_size(size, level) for level in self.levels]
            selections.append([order[:k] for k in kept for order in orders])
        found = self.pipeline.evaluate_selections(self.graphs, selections)
        means = [
            [average(own[i * draws : (i + 1) * draws]) for i in range(len(self.levels))]
            for own in found
        ]
        curve = self.curve(means)
        note = f"mean of {draws} for each graph"
        return ExplainerRow(_RANDOM, self.at_sparsity(curve), "random", curve, note=note)

    def optimum_row(self) -> ExplainerRow:
        """Metrics of the best selections that a search finds."""
        found = [
            best_selection(
                self.pipeline.model,
                graph,
                selection_size(size, self.sparsity),
                exhaustive_up_to=_EXHAUSTIVE,
                starts=_STARTS,
                seed=generator,
                target=self.pipeline.target,
                **self.task,
            )
            for graph, size, generator in zip(
                self.bar(_OPTIMUM), self.sizes, self.generators(), strict=True
            )
        ]
        proven = sum(best.optimal for best in found)
        return ExplainerRow(
            _OPTIMUM,
            tuple(best.evaluation for best in found),
            "optimum",
            evaluations=float(np.mean([best.evaluations for best in found])),
            note=f"optimizes the metric; proven best for {proven} of {len(found)} graphs",
        )

    def curve(self, found: Sequence[Sequence[Faithfulness]]) -> FidelityCurve:
        by_level = tuple(tuple(column) for column in zip(*found, strict=True))
        return FidelityCurve(self.levels, tuple(map(average, by_level)), by_level)

    def at_sparsity(self, curve: FidelityCurve) -> tuple[Faithfulness, ...]:
        return curve.graphs[self.levels.index(self.sparsity)]

    def found_truth(self, results: Sequence[Explanation]) -> float | None:
        """Mean AUROC over the graphs that say which nodes matter, where there are any."""
        found = []
        for graph, result in zip(self.graphs, results, strict=True):
            truth = getattr(graph, "truth", None)
            if truth is None or result.node_scores is None:
                continue
            marked = truth.cpu().numpy().astype(np.bool_)
            if marked.any() and not marked.all():
                found.append(auroc(result.node_scores.numpy(), np.flatnonzero(marked)))
        return float(np.mean(found)) if found else None

    def explained(
        self,
        place: int,
        results: Mapping[str, Sequence[Explanation]],
        rows: Sequence[ExplainerRow],
        predicted: Parts,
        label: int | None,
        names: Sequence[str] | None,
    ) -> Explained:
        """One graph of the gallery."""
        graph, size = self.graphs[place], self.sizes[place]
        drawn = {n: scored(found[place], size, self.sparsity) for n, found in results.items()}
        return Explained(
            title_of(graph, f"graph {place}") if names is None else str(names[place]),
            graph,
            predicted.target,
            float(predicted.whole[predicted.target]),
            label,
            scores={name: own.scores for name, own in drawn.items()},
            selected={name: own.selected for name, own in drawn.items()},
            metrics={row.name: row.graphs[place] for row in rows if row.name in drawn},
        )
