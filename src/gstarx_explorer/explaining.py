"""The worker process that runs jobs, from the graph to the best selections."""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from gstarx import explainers
from gstarx.drawing import Subject as Drawn
from gstarx.drawing import at_stake_in, color_limit, faint_words, is_faint
from gstarx.evaluation import Evaluated, Pipeline, recorded
from gstarx.explainers import with_settings
from gstarx.gnn import expected_output
from gstarx.metrics import Faithfulness, PartTask, Reference, best_selections_in_turn
from gstarx.registry import kind_of_players
from gstarx_explorer.catalog import METRICS, OFFERED
from gstarx_explorer.library import Library
from gstarx_explorer.memory import check_memory
from gstarx_explorer.messages import Refused, public_message
from gstarx_explorer.settings import LoadedModel, Settings
from gstarx_explorer.subjects import Subject, SubjectCache, outputs_of, subject_entry
from gstarx_explorer.worker import Interrupter, public_problem

if TYPE_CHECKING:
    from gstarx.explainers import NodeExplainer
    from gstarx.explanation import Explanation

#: Sends a part of the results to the server: its kind and its content.
Send = Callable[[str, Any], None]

#: Trained explainers that a worker keeps.
_MAX_TRAINED = 16
#: The molecule of the warm-up.
_WARM_UP_SMILES = "CC(=O)Nc1ccc([N+](=O)[O-])cc1"


@dataclass(frozen=True)
class _Request:
    """A model, a graph with its players and their number, and the class or target to explain."""

    model: LoadedModel
    model_name: str
    subject: Subject
    target: int | None
    seed: int
    reference: Reference | None = None
    removal: str = "remove"
    players: str = "nodes"
    count: int = 0

    @property
    def pipeline(self) -> Pipeline:
        """How the graph is explained and evaluated."""
        return Pipeline(
            self.model.model,
            seed=self.seed,
            target=self.target,
            removal=self.removal,
            mode=self.model.mode,
            return_type=self.model.return_type,
            reference=self.reference,
            players=self.players,
        )

    @property
    def has_metrics(self) -> bool:
        """Whether selections can be evaluated; those of a regression need a reference."""
        return self.reference is not None or self.model.mode != "regression"


class ExplanationWorker:
    """Runs jobs, one at a time."""

    def __init__(self, settings: Settings, interrupter: Interrupter) -> None:
        self._library = Library(settings)
        self._subjects = SubjectCache(self._library, settings.limits)
        self._settings = settings
        self._interrupter = interrupter
        self._trained: dict[tuple[Any, ...], NodeExplainer] = {}
        self._mean_outputs: dict[str, Any] = {}

    def warm_up(self) -> None:
        """Compile kernels and fill caches with a small job."""
        for served in self._settings.models:
            if served.missing is not None:
                continue
            try:
                inputs = self._library.inputs(self._library.get(served.name))
            except Refused:
                continue
            # the encoder of sentences is large: it is loaded with the first sentence
            input = {"smiles": _WARM_UP_SMILES} if "smiles" in inputs else {"graph": 0}
            if not input.keys() <= set(inputs):
                continue
            names = [name for name, spec in OFFERED.items() if spec.default]
            chosen = [{"name": name, "options": {}} for name in names]
            job = {"model": served.name, "input": input, "explainers": chosen, "best": True}
            try:
                self.answer({**job, "seed": 0, "target": None}, lambda *_: None)
            except Exception:
                continue  # a job with this model will report it
            return

    def answer(self, job: Mapping[str, Any], send: Send) -> None:
        """Run a job; each result is sent as soon as it is known."""
        model = self._library.get(job["model"])
        subject = self._subjects.get(job["model"], job["input"])
        stored = "run_graph" in job["input"]
        name, limits = job.get("players", "nodes"), self._settings.limits
        if stored and self._library.store_view is not None:
            name = self._library.store_view.players
        players = subject.players(name, limits.nodes)
        if not stored:
            check_memory(model, subject, job["explainers"], limits, players=len(players))
        outputs = outputs_of(model, subject)
        target = explained_target(self._library, model, job["input"], job["target"], outputs)
        send(
            "subject",
            subject_entry(
                subject,
                model,
                self._library,
                outputs=outputs,
                target=target,
                players=None if name == "nodes" else (name, players),
            ),
        )
        reference, _ = self._library.reference(model)
        request = _Request(
            model,
            job["model"],
            subject,
            target,
            job["seed"],
            reference,
            players=name,
            count=len(players),
        )
        if stored:
            self._send_stored(request, job["best"], send)
            return
        chosen = job["explainers"]
        total = len(chosen) + bool(job["best"])
        for done, explainer in enumerate(chosen):
            title = OFFERED[explainer["name"]].title
            send("progress", {"done": done, "total": total, "doing": title})
            send("result", self._result(request, explainer["name"], explainer["options"], title))
        self._finish(request, job["best"], len(chosen), send)

    def _finish(self, request: _Request, best: bool, done: int, send: Send) -> None:
        best = best and request.has_metrics
        total = done + best
        if best:
            send(
                "progress", {"done": done, "total": total, "doing": "search for the best selection"}
            )
            send("best", self._best(request))
        send("progress", {"done": total, "total": total, "doing": ""})

    def _send_stored(self, request: _Request, best: bool, send: Send) -> None:
        store_view = self._library.store_view
        assert store_view is not None, "the subject is a graph of the run"
        stored = store_view.results(request.subject.position)
        for run, explanation, error in stored:
            result = _empty_result(run.explainer, run.title, run.options)
            if explanation is None:
                result["error"] = error
            else:
                of_run = replace(request, removal=run.removal, target=run.target)
                result |= _evaluated(of_run, explanation)
            send("result", result)
        # if runs differ in removal or target, no selection is the best for all of them
        ((removal, _), *different) = {(run.removal, run.target) for run, _, _ in stored}
        self._finish(replace(request, removal=removal), best and not different, len(stored), send)

    def _result(
        self, request: _Request, name: str, options: dict[str, Any], title: str
    ) -> dict[str, Any]:
        start = time.monotonic()
        result = _empty_result(name, title, options)
        try:
            explainer = self._explainer(request, name, options)
            subject = request.subject
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always", UserWarning)
                explanation = request.pipeline.explain(explainer, subject.data, subject.position)
            result |= _evaluated(request, explanation)
            said = (public_message(warning.message) for warning in warned)
            result["notes"] += [f"Warning: {words}." for words in dict.fromkeys(said)]
        except Refused:
            raise
        except Exception as error:
            result["error"] = public_problem(error).message
        result["seconds"] = time.monotonic() - start
        return result

    def _explainer(self, request: _Request, name: str, options: dict[str, Any]) -> NodeExplainer:
        """An explainer with its options, trained if it requires training."""
        all_options = dict(options)
        if name == "gstarx_published":
            all_options["baseline"] = self._mean_output(request)
        if request.players != "nodes":
            all_options["players"] = request.players
        chosen = tuple(sorted(options.items()))
        key = (request.model_name, name, chosen, request.seed, request.players)
        if key in self._trained:
            return self._trained[key]
        explainer = explainers.create(
            name, dataset=with_settings(request.model.dataset), **all_options
        )
        if explainer.requires_training:
            dataset = self._library.local_dataset(request.model)
            if dataset is None:
                raise ValueError("it has to be trained on a dataset, and none is available here")
            explainer.fit(
                request.model.model,
                dataset.training_graphs,
                seed=request.seed,
                mode=request.model.mode,
                return_type=request.model.return_type,
            )
            while len(self._trained) >= _MAX_TRAINED:
                del self._trained[next(iter(self._trained))]
            self._trained[key] = explainer
        return explainer

    def _mean_output(self, request: _Request) -> Any:
        dataset = self._library.local_dataset(request.model)
        if dataset is None:
            raise ValueError("it needs the mean output over a dataset, and none is available here")
        name = request.model_name
        if name not in self._mean_outputs:
            self._mean_outputs[name] = expected_output(
                request.model.model,
                dataset.split("test"),
                mode=request.model.mode,
                return_type=request.model.return_type,
            )
        return self._mean_outputs[name]

    def _best(self, request: _Request) -> dict[str, Any]:
        """The best selections by size that a search finds within its time limit."""
        best: dict[int, Any] = {}
        sizes = range(request.count // 2 + 1)
        with self._interrupter.time_limit(self._settings.limits.best_seconds):
            best.update(
                best_selections_in_turn(
                    request.model.model,
                    request.subject.data,
                    sizes,
                    PartTask(
                        request.model.mode,
                        return_type=request.model.return_type,
                        removal=request.removal,
                        reference=request.reference,
                        players=request.players,
                    ),
                    seed=explainers.graph_generator(request.seed, request.subject.position),
                    target=request.target,
                )
            )
        by_size = [best.get(size) for size in sizes]
        return {
            "selections": [None if b is None else _node_list(b.nodes) for b in by_size],
            "metrics": _metric_columns(None if b is None else b.evaluation for b in by_size),
            "optimal": [b is not None and b.optimal for b in by_size],
            "evaluations": max((b.evaluations for b in best.values()), default=0),
        }


def explained_target(
    library: Library,
    model: LoadedModel,
    input: Mapping[str, Any],
    target: int | None,
    outputs: Sequence[float],
) -> int | None:
    """The class or target to explain, ``None`` for the predicted class; or Refused."""
    if target is None and "run_graph" in input and library.store_view is not None:
        target = library.store_view.target
    if target is None and model.task in ("multilabel", "regression"):
        if len(outputs) > 1:
            text = f"the model has {len(outputs)} targets: choose one in 0..{len(outputs) - 1}"
            raise Refused("bad_target", text, "target")
        return 0
    if target is not None and target >= len(outputs):
        noun = "class" if model.task in ("classification", "binary") else "target"
        text = f"target must be a {noun} in 0..{len(outputs) - 1} (got {target})"
        raise Refused("bad_target", text, "target")
    return target


def score_selection(
    model: LoadedModel,
    subject: Subject,
    nodes: Sequence[int],
    target: int | None,
    reference: Reference | None,
    players: tuple[str, int],
) -> dict[str, Any]:
    """The metrics of one selection; ``None`` where those of a regression have no reference.

    ``players`` are their name and number.
    """
    name, count = players
    request = _Request(model, "", subject, target, 0, reference, players=name, count=count)
    metrics: dict[str, float | None] = dict.fromkeys(METRICS)
    if request.has_metrics:
        ((faithfulness,),) = request.pipeline.evaluate_selections([subject.data], [[list(nodes)]])
        metrics = {name: _number(getattr(faithfulness, name)) for name in METRICS}
    return {"size": len(nodes), "sparsity": 1 - len(nodes) / count, **metrics}


def _empty_result(name: str, title: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A result without scores."""
    unknown: dict[str, Any] = dict.fromkeys(
        ("target", "scores", "std_errors", "limit", "exact", "estimator", "evaluations")
    )
    return {
        "explainer": name,
        "title": title,
        "options": dict(options),
        **unknown,
        "notes": [],
        "error": None,
        "selections": [],
        "metrics": {metric: [] for metric in METRICS},
        "seconds": 0.0,
    }


def _evaluated(request: _Request, explanation: Explanation) -> dict[str, Any]:
    """Scores, and the selections of all sizes with their metrics."""
    kind = kind_of_players(request.players)
    as_asked = explanation.player_kind == kind
    sizes = range((request.count if as_asked else len(explanation.players)) + 1)
    if request.has_metrics:
        evaluated = request.pipeline.evaluate(request.subject.data, explanation, sizes=sizes)["top"]
    else:
        evaluated = Evaluated([explanation.select(size=size) for size in sizes], [])
    record = recorded(explanation)
    scores, errors, selections = record["scores"], record["std_errors"], evaluated.selections
    if as_asked and kind != "nodes":
        scores, errors = explanation.scores.tolist(), explanation.std_errors.tolist()
    elif not as_asked:  # a run whose players differ from those of others: its nodes
        selections = [explanation.nodes_of(players) for players in selections]
    players = explanation if as_asked and kind != "nodes" else None
    noun = Drawn.of(request.subject.data).noun_of(players)
    return {
        "target": request.target if record["target"] is None else record["target"],
        "scores": _numbers(scores),
        "std_errors": _numbers(errors),
        **_colors(scores, explanation, noun),
        "selections": [_node_list(one) for one in selections],
        "metrics": _metric_columns(evaluated.metrics),
        "exact": record["exact"],
        "estimator": record["estimator"],
        "evaluations": record["evaluations"],
        "seconds": record["cpu_seconds"],
    }


def _colors(scores: Any, explanation: Explanation, noun: str) -> dict[str, Any]:
    """The score at which colors end, and what is said where nothing stands out."""
    if scores is None:
        return {"limit": None, "notes": []}
    values, at_stake = np.asarray(scores, dtype=np.float64), at_stake_in(explanation)
    largest = float(np.abs(values).max(initial=0.0))
    faint = is_faint(largest, at_stake)
    return {
        "limit": _number(color_limit([values], None, at_stake)),
        "notes": [faint_words(largest, at_stake, noun)] if faint else [],
    }


def _metric_columns(rows: Iterable[Faithfulness | None]) -> dict[str, list[float | None]]:
    rows = list(rows)
    return {
        name: [None if row is None else _number(getattr(row, name)) for row in rows]
        for name in METRICS
    }


def _node_list(nodes: Iterable[Any]) -> list[int]:
    return [int(node) for node in nodes]


def _numbers(values: Iterable[Any] | None) -> list[float | None] | None:
    return None if values is None else [_number(value) for value in values]


def _number(value: Any) -> float | None:
    """A number for JSON, which has neither NaN nor infinity."""
    number = float(value)
    return number if math.isfinite(number) else None
