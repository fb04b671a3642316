"""Inside a worker: a job from the graph to the best selections, told as it goes on."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from gstarx import explainers
from gstarx.evaluation import Pipeline, class_probabilities, recorded
from gstarx.explainers import with_settings
from gstarx.gnn import ModelTask
from gstarx.metrics import Faithfulness, best_selections_in_turn, evaluate_many
from gstarx.web.catalog import METRICS, OFFER
from gstarx.web.memory import check_memory, ran_out
from gstarx.web.messages import Refused, said
from gstarx.web.networks import Networks
from gstarx.web.settings import LoadedModel, Settings
from gstarx.web.subjects import Subject, Subjects, drawn
from gstarx.web.worker import Interrupter

if TYPE_CHECKING:
    from gstarx.explainers import Explanation, NodeExplainer

#: Tells the server something: what kind of thing, and the thing itself.
Say = Callable[[str, Any], None]

#: Trained explainers that a worker remembers.
_REMEMBERED = 16
#: What a worker does before the first request, so that it is not slow.
_WARM = "CC(=O)Nc1ccc([N+](=O)[O-])cc1"


@dataclass(frozen=True)
class _Question:
    """A model and a graph, with the class in question."""

    model: LoadedModel
    name: str
    subject: Subject
    target: int | None
    seed: int
    removal: str = "remove"

    @property
    def pipeline(self) -> Pipeline:
        """How the graph is explained and evaluated."""
        return Pipeline(
            self.model.model,
            seed=self.seed,
            target=self.target,
            removal=self.removal,
            return_type=self.model.return_type,
        )


class Explaining:
    """Answers jobs."""

    def __init__(self, settings: Settings, bell: Interrupter) -> None:
        self._networks = Networks(settings)
        self._subjects = Subjects(self._networks, settings.limits)
        self._settings = settings
        self._bell = bell
        self._trained: dict[tuple[Any, ...], NodeExplainer] = {}
        self._means: dict[str, Any] = {}

    def warm_up(self) -> None:
        """Compile kernels and fill caches by a small job that nobody sees."""
        for served in self._settings.models:
            if served.missing is not None:
                continue
            try:
                inputs = self._networks.inputs(self._networks.get(served.name))
            except Refused:
                continue
            # the encoder of sentences is large: it is loaded when a sentence comes
            asked = {"smiles": _WARM} if "smiles" in inputs else {"graph": 0}
            if not asked.keys() <= set(inputs):
                continue
            names = [name for name, offer in OFFER.items() if offer.default]
            chosen = [{"name": name, "options": {}} for name in names]
            job = {"model": served.name, "input": asked, "explainers": chosen, "best": True}
            try:
                self.answer({**job, "seed": 0, "target": None}, lambda *_: None)
            except Exception:
                continue  # whoever asks is going to be told
            return

    def answer(self, job: Mapping[str, Any], say: Say) -> None:
        """Carry out a job; what is found is said as soon as it is."""
        model = self._networks.get(job["model"])
        subject = self._subjects.get(job["model"], job["input"])
        stored = "run_graph" in job["input"]
        if not stored:
            check_memory(model, subject, job["explainers"], self._settings.limits)
        probabilities = probabilities_of(model, subject)
        target = checked_target(job["target"], probabilities)
        classes = self._networks.classes(model)
        say("subject", drawn(subject, probabilities=probabilities, classes=classes))
        asked = _Question(model, job["model"], subject, target, job["seed"])
        if stored:
            self._show_stored(asked, job["best"], say)
            return
        chosen = job["explainers"]
        total = len(chosen) + bool(job["best"])
        for done, one in enumerate(chosen):
            title = OFFER[one["name"]].title
            say("progress", {"done": done, "total": total, "doing": title})
            say("result", self._result(asked, one["name"], one["options"], title))
        self._finish(asked, job["best"], len(chosen), say)

    def _finish(self, asked: _Question, best: bool, done: int, say: Say) -> None:
        total = done + best
        if best:
            doing = "the best that a selection could do"
            say("progress", {"done": done, "total": total, "doing": doing})
            say("best", self._best(asked))
        say("progress", {"done": total, "total": total, "doing": ""})

    def _show_stored(self, asked: _Question, best: bool, say: Say) -> None:
        run = self._networks.browsed
        assert run is not None, "there is a graph of it"
        stored = run.results(asked.subject.position)
        for own, found, error in stored:
            result = _empty(own.explainer, own.title, own.options)
            if found is None:
                result["error"] = error
            else:
                result |= _judged(replace(asked, removal=own.removal), found)
            say("result", result)
        # where runs differ in it, there is no best that holds for all of them
        (removal, *others) = {own.removal for own, _, _ in stored}
        self._finish(replace(asked, removal=removal), best and not others, len(stored), say)

    def _result(
        self, asked: _Question, name: str, options: dict[str, Any], title: str
    ) -> dict[str, Any]:
        start = time.monotonic()
        result = _empty(name, title, options)
        try:
            explainer = self._explainer(asked, name, options)
            subject = asked.subject
            found = asked.pipeline.explain(explainer, subject.data, subject.position)
            result |= _judged(asked, found)
        except Refused:
            raise
        except Exception as error:
            from gstarx.web.worker import unexpected

            result["error"] = unexpected(error).message
        result["seconds"] = time.monotonic() - start
        return result

    def _explainer(self, asked: _Question, name: str, options: dict[str, Any]) -> NodeExplainer:
        """An explainer with its options, trained where it has to be."""
        more = dict(options)
        if name == "gstarx_published":
            more["baseline"] = self._mean_output(asked)
        key = (asked.name, name, tuple(sorted(options.items())), asked.seed)
        if key in self._trained:
            return self._trained[key]
        made = explainers.create(name, dataset=with_settings(asked.model.dataset), **more)
        if made.requires_training:
            data = self._networks.at_hand(asked.model)
            if data is None:
                raise ValueError("it has to be trained on a dataset, and none is here")
            made.fit(asked.model.model, data.split("train"), seed=asked.seed)
            while len(self._trained) >= _REMEMBERED:
                del self._trained[next(iter(self._trained))]
            self._trained[key] = made
        return made

    def _mean_output(self, asked: _Question) -> Any:
        from gstarx.gnn import expected_output

        data = self._networks.at_hand(asked.model)
        if data is None:
            raise ValueError("it compares with the mean over a dataset, and none is here")
        if asked.name not in self._means:
            self._means[asked.name] = expected_output(asked.model.model, data.split("test"))
        return self._means[asked.name]

    def _best(self, asked: _Question) -> dict[str, Any]:
        """The best selections by size, as far as the time reaches."""
        found: dict[int, Any] = {}
        sizes = range(asked.subject.nodes // 2 + 1)
        with self._bell.within(self._settings.limits.best_seconds):
            found.update(
                best_selections_in_turn(
                    asked.model.model,
                    asked.subject.data,
                    sizes,
                    seed=explainers.graph_generator(asked.seed, asked.subject.position),
                    target=asked.target,
                    removal=asked.removal,
                    return_type=asked.model.return_type,
                )
            )
        listed = [found.get(size) for size in sizes]
        return {
            "selections": [None if one is None else _ids(one.nodes) for one in listed],
            "metrics": _columns(None if one is None else one.evaluation for one in listed),
            "optimal": [one is not None and one.optimal for one in listed],
            "evaluations": max((one.evaluations for one in found.values()), default=0),
        }


def probabilities_of(model: LoadedModel, subject: Subject) -> list[float]:
    """What the model says of the whole graph, by class."""
    task = ModelTask(return_type=model.return_type)
    try:
        output = task.output(model.model, subject.data)
        return class_probabilities(output, task.mode, task.return_type)
    except Exception as error:
        if ran_out(error):
            raise
        text = f"the model cannot read this graph: {said(error) or type(error).__name__}"
        raise Refused("failed", text) from error


def checked_target(target: int | None, probabilities: Sequence[float]) -> int | None:
    """The class in question, or Refused."""
    if target is not None and target >= len(probabilities):
        text = f"target must be a class in 0..{len(probabilities) - 1} (got {target})"
        raise Refused("bad_target", text, "target")
    return target


def scored(
    model: LoadedModel, subject: Subject, nodes: Sequence[int], target: int | None
) -> dict[str, Any]:
    """The metrics of one selection."""
    (found,) = evaluate_many(
        model.model, [subject.data], [[list(nodes)]], target=target, return_type=model.return_type
    )[0]
    shown = {name: getattr(found, name) for name in METRICS}
    return {"size": len(nodes), "sparsity": found.sparsity, **shown}


def _empty(name: str, title: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A result of which nothing is known yet."""
    nothing: dict[str, Any] = dict.fromkeys(
        ("target", "scores", "std_errors", "exact", "estimator", "evaluations", "error")
    )
    return {
        "explainer": name,
        "title": title,
        "options": dict(options),
        **nothing,
        "selections": [],
        "metrics": {metric: [] for metric in METRICS},
        "seconds": 0.0,
    }


def _judged(asked: _Question, found: Explanation) -> dict[str, Any]:
    """Scores, and the selections of all sizes with their metrics."""
    sizes = range(asked.subject.nodes + 1)
    evaluated = asked.pipeline.evaluate(asked.subject.data, found, sizes=sizes)["top"]
    kept = recorded(found)
    return {
        "target": asked.target if kept["target"] is None else kept["target"],
        "scores": _numbers(kept["scores"]),
        "std_errors": _numbers(kept["std_errors"]),
        "selections": [_ids(nodes) for nodes in evaluated.selections],
        "metrics": _columns(evaluated.metrics),
        "exact": kept["exact"],
        "estimator": kept["estimator"],
        "evaluations": kept["evaluations"],
        "seconds": kept["cpu_seconds"],
    }


def _columns(rows: Iterable[Faithfulness | None]) -> dict[str, list[float | None]]:
    listed = list(rows)
    return {
        name: [None if row is None else _number(getattr(row, name)) for row in listed]
        for name in METRICS
    }


def _ids(nodes: Iterable[Any]) -> list[int]:
    return [int(node) for node in nodes]


def _numbers(values: Iterable[Any] | None) -> list[float | None] | None:
    return None if values is None else [_number(value) for value in values]


def _number(value: Any) -> float | None:
    """A number of JSON, which has no infinite ones."""
    found = float(value)
    return found if math.isfinite(found) else None
