"""What worker processes do: explain graphs, and answer quick queries about models and graphs."""

from __future__ import annotations

import math
import signal
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from gstarx import explainers
from gstarx.datasets import title_of
from gstarx.drawing import Subject as Drawn
from gstarx.drawing import at_stake_in, color_limit, faint_words, is_faint
from gstarx.evaluation import Evaluated, Pipeline, recorded
from gstarx.explainers import with_settings
from gstarx.gnn import expected_output, hetero_of
from gstarx.metrics import Faithfulness
from gstarx.registry import kind_of_players
from gstarx_explorer.library import (
    Library,
    Loaded,
    Subject,
    matches,
    name_of,
    outputs_of,
    thumbnail,
)
from gstarx_explorer.messages import Refused, public_message
from gstarx_explorer.settings import METRICS, Settings, offered, player_entries
from gstarx_explorer.workers import MEMORY, public_problem

if TYPE_CHECKING:
    from gstarx.explainers import NodeExplainer
    from gstarx.explanation import Explanation

#: Sends a part of the results to the server: its kind and its content.
Send = Callable[[str, Any], None]

#: Trained explainers that a worker keeps.
_MAX_TRAINED = 16
#: The molecule of the warm-up.
_WARM_UP_SMILES = "CC(=O)Nc1ccc([N+](=O)[O-])cc1"
#: Named molecules, for networks that know few elements and for those that know all.
_MOLECULES = {
    "nitro": (
        ("Nitrobenzene", "c1ccccc1[N+](=O)[O-]"),
        ("Nitrated acetaminophen", "CC(=O)Nc1ccc(O)c([N+](=O)[O-])c1"),
        ("Nitroglycerin", "C(C(CO[N+](=O)[O-])O[N+](=O)[O-])O[N+](=O)[O-]"),
        ("Chloramphenicol", "OCC(NC(=O)C(Cl)Cl)C(O)c1ccc([N+](=O)[O-])cc1"),
        ("Nifedipine", "COC(=O)C1=C(C)NC(C)=C(C1c1ccccc1[N+](=O)[O-])C(=O)OC"),
    ),
    "": (
        ("Aspirin", "CC(=O)Oc1ccccc1C(=O)O"),
        ("Caffeine", "Cn1cnc2c1c(=O)n(C)c(=O)n2C"),
        ("Ibuprofen", "CC(C)Cc1ccc(cc1)C(C)C(=O)O"),
    ),
}
_SENTENCES = (
    "a gripping and wonderfully acted film",
    "the plot is thin but the cast is a delight",
    "it is not a bad film, just a long one",
)
#: Characters of the title of an example.
_MAX_TITLE = 40
#: Rows of a table that are listed because they cannot be read.
_MAX_UNREADABLE = 5


@dataclass(frozen=True)
class _Task:
    """A graph with the number of its players, and how it is explained and evaluated."""

    model: Loaded
    model_name: str
    subject: Subject
    pipeline: Pipeline
    count: int

    @classmethod
    def of(
        cls, library: Library, request: Mapping[str, Any], limit: int
    ) -> tuple[_Task, Any, list[float]]:
        """What a request is about, its players, and the model's outputs; or Refused."""
        name, input = request["model"], request["input"]
        model, subject = library.get(name), library.subject(name, input)
        who = request.get("players", "nodes")
        if "run_graph" in input:
            who = library.browsed().players
        players = subject.players(who, limit)
        outputs = outputs_of(model, subject)
        pipeline = Pipeline(
            model.model,
            seed=request.get("seed", 0),
            target=_explained_target(library, model, input, request["target"], len(outputs)),
            task=model.model_task,
            reference=library.reference(model)[0],
            players=who,
        )
        return cls(model, name, subject, pipeline, len(players)), players, outputs

    @property
    def has_metrics(self) -> bool:
        """Whether selections can be evaluated; those of a regression need a reference."""
        return self.pipeline.reference is not None or self.pipeline.model_task.mode != "regression"


class ExplanationWorker:
    """Runs jobs, one at a time."""

    def __init__(self, settings: Settings) -> None:
        self._library = Library(settings)
        self._settings = settings
        self._trained: dict[tuple[Any, ...], NodeExplainer] = {}
        self._mean_outputs: dict[str, Any] = {}

    def warm_up(self) -> None:
        """Compile kernels and fill caches with a small job, of the first model that can do it."""
        chosen = [{"name": name, "options": {}} for name, spec in offered().items() if spec.default]
        # the encoder of sentences is large: it is loaded with the first sentence
        inputs: list[dict[str, Any]] = [{"smiles": _WARM_UP_SMILES}, {"graph": 0}]
        for served, input in product(self._settings.models, inputs):
            job = {"model": served.name, "input": input, "explainers": chosen, "best": True}
            with suppress(Exception):  # a job with this model will report it
                if input.keys() <= set(self._library.inputs(self._library.get(served.name))):
                    self.answer({**job, "seed": 0, "target": None}, lambda *_: None)
                    return

    def answer(self, job: Mapping[str, Any], send: Send) -> None:
        """Run a job; each result is sent as soon as it is known."""
        if "run_graph" in job["input"]:
            self._library.refresh()
        # what the server keeps is no part of the memory of a job
        self._library.local_dataset(self._library.get(job["model"]))
        with MEMORY.limited(self._settings.limits.memory):
            self._run(job, send)

    def _run(self, job: Mapping[str, Any], send: Send) -> None:
        task, players, outputs = _Task.of(self._library, job, self._settings.limits.nodes)
        who, target = task.pipeline.players, task.pipeline.target
        shown = None if who == "nodes" else (str(who), players)
        send(
            "subject",
            self._library.subject_entry(task.subject, task.model, outputs, target, shown),
        )
        stored, best = "run_graph" in job["input"], job["best"] and task.has_metrics
        if stored:
            results = list(self._stored(task))
            for result, _ in results:
                send("result", result)
            # if runs differ in removal or target, no selection is the best for all of them
            (pipeline, *different) = {(p.removal, p.target): p for _, p in results}.values()
            task = replace(task, pipeline=replace(task.pipeline, removal=pipeline.removal))
            best, done = best and not different, len(results)
        else:
            chosen = job["explainers"]
            for done, explainer in enumerate(chosen):
                title = offered()[explainer["name"]].title
                progress = {"done": done, "total": len(chosen) + job["best"], "doing": title}
                send("progress", progress)
                send("result", self._result(task, explainer["name"], explainer["options"], title))
            done = len(chosen)
        total = done + best
        if best:
            doing = "search for the best selection"
            send("progress", {"done": done, "total": total, "doing": doing})
            send("best", self._best(task))
        send("progress", {"done": total, "total": total, "doing": ""})

    def _stored(self, task: _Task) -> Iterator[tuple[dict[str, Any], Pipeline]]:
        """The results of all runs for a graph, with how each was computed."""
        for run, explanation, error in self._library.browsed().results(task.subject.position):
            pipeline = replace(task.pipeline, removal=run.removal, target=run.target)
            result = _result_entry(run.explainer, run.title, run.options)
            if explanation is None:
                result["error"] = error
            else:
                result |= _evaluated(replace(task, pipeline=pipeline), explanation)
            yield result, pipeline

    def _result(
        self, task: _Task, name: str, options: dict[str, Any], title: str
    ) -> dict[str, Any]:
        start = time.monotonic()
        result = _result_entry(name, title, options)
        try:
            explainer = self._explainer(task, name, options)
            subject = task.subject
            with warnings.catch_warnings(record=True) as warned:
                warnings.simplefilter("always", UserWarning)
                explanation = task.pipeline.explain(explainer, subject.data, subject.position)
            result |= _evaluated(task, explanation)
            said = (public_message(str(warning.message)) for warning in warned)
            result["notes"] += [f"Warning: {words}." for words in dict.fromkeys(said)]
        except Refused:
            raise
        except Exception as error:
            result["error"] = public_problem(error).message
        result["seconds"] = time.monotonic() - start
        return result

    def _explainer(self, task: _Task, name: str, options: dict[str, Any]) -> NodeExplainer:
        """An explainer with its options, trained if it requires training."""
        all_options, pipeline = dict(options), task.pipeline
        if name == "gstarx_published":
            all_options["baseline"] = self._mean_output(task)
        if pipeline.players != "nodes":
            all_options["players"] = pipeline.players
        chosen = tuple(sorted(options.items()))
        key = (task.model_name, name, chosen, pipeline.seed, pipeline.players)
        if key in self._trained:
            return self._trained[key]
        explainer = explainers.create(
            name, dataset=with_settings(task.model.dataset), **all_options
        )
        if explainer.requires_training:
            dataset = self._library.local_dataset(task.model)
            if dataset is None:
                raise ValueError("it has to be trained on a dataset, and none is available here")
            explainer.fit(
                task.model.model,
                dataset.training_graphs,
                seed=pipeline.seed,
                task=task.model.model_task,
            )
            while len(self._trained) >= _MAX_TRAINED:
                del self._trained[next(iter(self._trained))]
            self._trained[key] = explainer
        return explainer

    def _mean_output(self, task: _Task) -> Any:
        dataset, name = self._library.local_dataset(task.model), task.model_name
        if dataset is None:
            raise ValueError("it needs the mean output over a dataset, and none is available here")
        if name not in self._mean_outputs:
            self._mean_outputs[name] = expected_output(
                task.model.model, dataset.split("test"), task=task.model.model_task
            )
        return self._mean_outputs[name]

    def _best(self, task: _Task) -> dict[str, Any]:
        """The best selections by size that a search finds within its time limit."""
        best: dict[int, Any] = {}
        sizes, pipeline = range(task.count // 2 + 1), task.pipeline
        with time_limit(self._settings.limits.best_seconds):
            best.update(
                pipeline.judge(pipeline.players).best_of_sizes(
                    task.subject.data,
                    sizes,
                    seed=explainers.graph_generator(pipeline.seed, task.subject.position),
                    target=pipeline.target,
                )
            )
        by_size = [best.get(size) for size in sizes]
        return {
            "selections": [None if b is None else _node_list(b.nodes) for b in by_size],
            "metrics": _metric_columns(None if b is None else b.evaluation for b in by_size),
            "optimal": [b is not None and b.optimal for b in by_size],
            "evaluations": max((b.evaluations for b in best.values()), default=0),
        }


class _OutOfTime(BaseException):
    """The time limit of a part of a job has passed; no handler on the way swallows it."""


@contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Leave the block after this many seconds, where the system has an alarm."""
    if not hasattr(signal, "SIGALRM"):
        yield
        return
    inside = True

    def expire(*_: Any) -> None:
        if inside:
            raise _OutOfTime

    before = signal.signal(signal.SIGALRM, expire)
    try:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        yield
    except _OutOfTime:
        pass
    finally:
        inside = False
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _explained_target(
    library: Library, model: Loaded, input: Mapping[str, Any], target: int | None, count: int
) -> int | None:
    """The class or target to explain, ``None`` for the predicted class; or Refused."""
    if target is None and "run_graph" in input:
        target = library.browsed().target
    if target is None and not model.by_class:
        if count > 1:
            text = f"the model has {count} targets: choose one in 0..{count - 1}"
            raise Refused("bad_target", text, "target")
        return 0
    if target is not None and target >= count:
        noun = "class" if model.by_class else "target"
        text = f"target must be a {noun} in 0..{count - 1} (got {target})"
        raise Refused("bad_target", text, "target")
    return target


def _result_entry(name: str, title: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """A result without an explanation."""
    return {
        "explainer": name,
        "title": title,
        "options": dict(options),
        **dict.fromkeys(("explanation", "scores", "std_errors", "limit", "error")),
        "notes": [],
        "selections": [],
        "metrics": {metric: [] for metric in METRICS},
        "seconds": 0.0,
    }


def _evaluated(task: _Task, explanation: Explanation) -> dict[str, Any]:
    """An explanation, what is drawn of it, and the selections of all sizes with their metrics."""
    kind = kind_of_players(str(task.pipeline.players))
    as_asked = explanation.player_kind == kind
    sizes = range((task.count if as_asked else len(explanation.players)) + 1)
    evaluated = Evaluated([explanation.select(size=size) for size in sizes], [])
    if task.has_metrics:
        evaluated = task.pipeline.evaluate(task.subject.data, explanation, sizes=sizes)["top"]
    selections = evaluated.selections
    if not as_asked:  # a run whose players differ from those of others: its nodes
        selections = [explanation.nodes_of(players) for players in selections]
    scores, errors = explanation.scores, explanation.std_errors
    if kind == "nodes" or not as_asked:
        known = recorded(explanation)
        scores, errors = known["scores"], known["std_errors"]
    players = explanation if as_asked and kind != "nodes" else None
    noun = Drawn.of(task.subject.data).noun_of(players)
    return {
        "explanation": explanation.to_dict(),
        "scores": _numbers(scores),
        "std_errors": _numbers(errors),
        **_colors(scores, explanation, noun),
        "selections": [_node_list(one) for one in selections],
        "metrics": _metric_columns(evaluated.metrics),
        "seconds": float(explanation.seconds),
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


def _numbers(values: Any) -> list[float | None] | None:
    return None if values is None else [_number(value) for value in values]


def _number(value: Any) -> float | None:
    """A number for JSON, which has neither NaN nor infinity."""
    number = float(value)
    return number if math.isfinite(number) else None


class QueryWorker:
    """Answers queries, one at a time."""

    def __init__(self, settings: Settings) -> None:
        self._library = Library(settings)
        self._limits = settings.limits
        self._answers: dict[str, Callable[..., Any]] = {
            "model": self._model,
            "run": lambda: self._library.browsed().summary(),
            "graphs": self._graphs,
            "check": self._check,
            "score": self._score,
            "rows": lambda **view: self._library.browsed().rows(**view),
            "groups": lambda **view: self._library.browsed().groups(**view),
        }

    def answer(self, query: Mapping[str, Any], _: Any = None) -> Any:
        """The answer to one query; nothing is sent before it is complete."""
        name, arguments = query["query"], query["arguments"]
        # what the server keeps is no part of the memory of a query
        self._library.refresh()
        if name in ("model", "run"):
            return self._answers[name](**arguments)
        if "model" in arguments:
            self._library.local_dataset(self._library.get(arguments["model"]))
        with MEMORY.limited(self._limits.memory):
            return self._answers[name](**arguments)

    def _model(self, model: str) -> dict[str, Any]:
        """What is known of a model, or its problem."""
        served = self._library.served(model)
        entry = {"title": served.title or served.name}
        try:
            loaded = self._library.get(model)
            outputs = self._count_outputs(model, loaded) if served.required else 0
            return {**entry, **self._known(loaded, outputs)}
        except Refused as error:
            return {**entry, "problem": str(error)}

    def _known(self, loaded: Loaded, outputs: int) -> dict[str, Any]:
        library = self._library
        dataset, inputs, kind = (
            library.local_dataset(loaded),
            library.inputs(loaded),
            library.kind(loaded),
        )
        names, players = library.labels(loaded), player_entries(kind)
        known = {
            "kind": kind,
            "inputs": inputs,
            "task": loaded.task,
            "classes": list(names),
            "outputs": max(len(names), outputs),
            "dataset": loaded.dataset,
            "graphs": 0 if dataset is None else len(dataset),
            "facts": {str(name): str(fact) for name, fact in loaded.facts.items()},
            "examples": _examples(loaded, inputs, dataset),
        }
        if loaded.graphs is not None and dataset is not None:
            unreadable = dataset.unreadable
            known |= {
                "dataset": loaded.graphs.title,
                "skipped": len(unreadable),
                "unreadable": [public_message(str(row)) for row in unreadable[:_MAX_UNREADABLE]],
                "warnings": library.said_of.get(loaded.graphs.title, []),
            }
            if len(dataset) and hetero_of(dataset[0]):
                players = players[:1]  # nodes: graphs with types have no others
        return {**known, "players": players}

    def _count_outputs(self, name: str, model: Loaded) -> int:
        """How many classes or targets the model has, after a first prediction; or Refused."""
        inputs = self._library.inputs(model)
        if not inputs:
            hint = "give the graphs it reads with --file or --graphs"
            raise Refused("no_model", f"there are no graphs for {name}: {hint}")
        if inputs == ["sentence"]:
            return 0  # parsing the first sentence takes long
        input: dict[str, Any] = {"graph": 0} if "graph" in inputs else {"smiles": "CCO"}
        outputs = len(outputs_of(model, self._library.subject(name, input)))
        names = self._library.labels(model)
        if model.task == "classification" and outputs == 1:
            text = "has one output: use --task binary (one logit) or --task regression"
        elif model.task == "binary" and outputs != 2:
            text = f"has {outputs} outputs, but --task binary is for one: use --task multilabel"
        elif names[outputs:] and model.task == "classification":
            classes = ", ".join(names[:5])
            text = f"has {outputs} outputs, which are too few for the classes {classes}"
        else:
            return outputs
        raise Refused("no_model", f"it {text}")

    def _graphs(self, model: str, offset: int, limit: int, search: str) -> dict[str, Any]:
        loaded = self._library.get(model)
        dataset = self._library.local_dataset(loaded)
        if dataset is None:
            return {"total": 0, "graphs": []}
        matching: list[dict[str, Any]] = []
        for position, graph in enumerate(dataset):
            smiles = graph.get("smiles")
            entry: dict[str, Any] = {
                "position": position,
                "title": title_of(graph, f"{dataset.name} {position}"),
                "smiles": smiles if isinstance(smiles, str) else None,
            }
            if matches(search, position, entry):
                matching.append(entry)
        splits = {i: name for name, indices in dataset.split_indices.items() for i in indices}
        shown = matching[offset : offset + limit]
        for entry in shown:
            graph = dataset[entry["position"]]
            entry["nodes"] = int(graph.num_nodes or 0)
            entry["label"] = self._library.label(loaded, graph)
            entry["measured"] = self._library.measured(loaded, graph)
            entry["split"] = splits.get(entry["position"])
            entry["picture"] = thumbnail(graph)
        return {"total": len(matching), "graphs": shown}

    def _check(
        self, model: str, input: dict[str, Any], target: int | None, players: str = "nodes"
    ) -> None:
        """Refuse at once what the job would refuse."""
        if "sentence" in input:
            return  # parsing the first one takes long: the job itself checks it
        loaded, subject = self._library.get(model), self._library.subject(model, input)
        subject.players(players, self._limits.nodes)
        # only a job runs a model without need
        if target is not None or not loaded.by_class:
            count = len(outputs_of(loaded, subject))
            _explained_target(self._library, loaded, input, target, count)

    def _score(self, nodes: Sequence[int], **question: Any) -> dict[str, Any]:
        """The metrics of a selection; ``None`` where those of a regression have no reference."""
        task, _, _ = _Task.of(self._library, question, self._limits.nodes)
        if len(set(nodes)) < len(nodes) or (nodes and max(nodes) >= task.count):
            text = f"nodes must be distinct numbers in 0..{task.count - 1}"
            raise Refused("bad_nodes", text, "nodes")
        metrics: dict[str, float | None] = dict.fromkeys(METRICS)
        if task.has_metrics:
            ((found,),) = task.pipeline.evaluate_selections([task.subject.data], [[list(nodes)]])
            metrics = {name: _number(getattr(found, name)) for name in METRICS}
        return {"size": len(nodes), "sparsity": 1 - len(nodes) / task.count, **metrics}


def _examples(model: Loaded, inputs: list[str], data: Any) -> list[dict[str, Any]]:
    """A few inputs for a model, each with a title."""
    examples: list[dict[str, Any]] = []
    if "smiles" in inputs and model.graphs is None:
        molecules = _MOLECULES["nitro" if model.dataset in ("nitro", "mutag") else ""]
        examples += [{"title": title, "input": {"smiles": smiles}} for title, smiles in molecules]
    if "sentence" in inputs:
        examples += [{"title": text, "input": {"sentence": text}} for text in _SENTENCES]
    if "graph" in inputs and not examples:
        for position in (data.split_indices.get("test") or range(len(data)))[:4]:
            graph, smiles = data[position], data[position].get("smiles")
            by_smiles = "smiles" in inputs and isinstance(smiles, str)
            input = {"smiles": smiles} if by_smiles else {"graph": int(position)}
            title = name_of(graph, f"{data.name} {position}")
            examples.append({"title": title[:_MAX_TITLE], "input": input})
    return examples
