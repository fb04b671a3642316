"""The graph of a request, and how it is drawn."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx.drawing import geometry
from gstarx.evaluation import class_probabilities
from gstarx.gnn import ModelTask
from gstarx.players import PlayerSet, as_players, groups_of, named_edges, named_groups, player_set
from gstarx_explorer.catalog import PLAYERS
from gstarx_explorer.library import Library, num_features
from gstarx_explorer.memory import is_out_of_memory
from gstarx_explorer.messages import Refused, public_message
from gstarx_explorer.settings import Limits, LoadedModel

#: Characters of a text that an error message quotes.
_QUOTED = 50
#: Graphs that are kept.
_MAX_SUBJECTS = 32
#: Thumbnails that are kept, and the nodes of the largest graph that has one.
_MAX_KEPT, _MAX_NODES = 512, 150


@dataclass(frozen=True)
class Subject:
    """A graph to explain.

    Attributes
    ----------
    data
        The graph.
    title
        Its title on the page.
    position
        Its position in a dataset, which its random numbers depend on; 0 for a user's own graph.
    input
        The input of the request.
    """

    data: Data
    title: str
    position: int
    input: dict[str, Any]

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.data.num_nodes or 0)

    def players(self, name: str, limit: int) -> PlayerSet:
        """The players of a name, or Refused if the graph has none, or more than the limit."""
        try:
            players = player_set(self.data, as_players(name))
        except ValueError as error:
            raise Refused("bad_players", public_message(error), "players") from error
        if len(players) > limit:
            text = f"a graph may have {limit} players here (got {len(players)} {name})"
            raise Refused("too_many_nodes", text, "players")
        return players


class SubjectCache:
    """The graphs of recent requests."""

    def __init__(self, library: Library, limits: Limits) -> None:
        self._library = library
        self._limits = limits
        self._subjects: dict[tuple[str, str, Any], Subject] = {}

    def get(self, model: str, input: Mapping[str, Any]) -> Subject:
        """The graph of an input, or Refused if it is invalid, too large or unfit for the model."""
        ((kind, value),) = input.items()
        key = (model, kind, value)
        if key not in self._subjects:
            while len(self._subjects) >= _MAX_SUBJECTS:
                del self._subjects[next(iter(self._subjects))]
            self._subjects[key] = self._create(model, kind, value)
        return self._subjects[key]

    def _create(self, name: str, kind: str, value: Any) -> Subject:
        model = self._library.get(name)
        create: dict[str, Callable[[LoadedModel, Any], Subject]] = {
            "smiles": self._from_smiles,
            "sentence": self._from_sentence,
            "graph": self._from_dataset,
            "run_graph": self._from_run,
        }
        subject = create[kind](model, value)
        self._check(subject, model, name, f"input.{kind}")
        return subject

    def _from_smiles(self, model: LoadedModel, smiles: str) -> Subject:
        from gstarx.datasets import largest_part, smiles_graph

        text = largest_part(smiles) if model.salts == "largest" else smiles
        try:
            features = self._library.features(model)
            data = smiles_graph(text, features, bond_features=features == "molecule+bonds")
        except ValueError as error:
            raise Refused("bad_smiles", public_message(error), "input.smiles") from error
        if not data.num_nodes:
            raise Refused("bad_smiles", "a molecule needs at least one atom", "input.smiles")
        return Subject(data, smiles.strip(), 0, {"smiles": smiles})

    def _from_sentence(self, model: LoadedModel, sentence: str) -> Subject:
        from gstarx_bench.datasets.sentences import text_graphs

        (data,) = text_graphs([sentence], progress=False)
        if len(data.words) < 2:
            got = f"{sentence[:_QUOTED]!r}{'…' if len(sentence) > _QUOTED else ''}"
            text = f"a sentence must have at least two words (got {got})"
            raise Refused("bad_sentence", text, "input.sentence")
        return Subject(data, sentence.strip(), 0, {"sentence": sentence})

    def _from_dataset(self, model: LoadedModel, position: int) -> Subject:
        dataset = self._library.local_dataset(model)
        assert dataset is not None, "otherwise the model does not accept this input"
        if position >= len(dataset):
            text = f"{dataset.name} has the graphs 0..{len(dataset) - 1} (got {position})"
            raise Refused("bad_graph", text, "input.graph")
        data = dataset[position]
        title = _name_of(data, f"{dataset.name} {position}")
        return Subject(data, title, position, {"graph": position})

    def _from_run(self, model: LoadedModel, position: int) -> Subject:
        run = self._library.store_view
        if run is None:
            raise Refused("no_run", self._library.run_problem, "input.run_graph")
        data = run.graph(position)
        title = _name_of(data, f"{run.dataset} {position}")
        return Subject(data, title, position, {"run_graph": position})

    def _check(self, subject: Subject, model: LoadedModel, name: str, field: str) -> None:
        if subject.nodes > self._limits.nodes:
            text = f"a graph may have {self._limits.nodes} nodes here (got {subject.nodes})"
            raise Refused("too_many_nodes", text, field)
        expected = num_features(model)
        got = subject.data.x.shape[1]
        if expected is not None and got != expected:
            text = f"{name} takes {expected} features per node (got {got})"
            raise Refused("bad_input", text, field)


def outputs_of(model: LoadedModel, subject: Subject) -> list[float]:
    """Probabilities of classes or targets, or values of a regression, of the whole graph."""
    try:
        task = ModelTask(model.mode, return_type=model.return_type)
        output = task.output(model.model, subject.data)
        return class_probabilities(output, task.mode, task.return_type)
    except Exception as error:
        if is_out_of_memory(error):
            raise
        reason = public_message(error) or type(error).__name__
        raise Refused("failed", f"the model cannot read this graph: {reason}") from error


def subject_entry(
    subject: Subject,
    model: LoadedModel,
    library: Library,
    *,
    outputs: Sequence[float],
    target: int | None,
    players: tuple[str, PlayerSet] | None = None,
) -> dict[str, Any]:
    """The drawing of a graph and its prediction, as the API returns them.

    ``outputs`` are the probabilities of classes or targets, or the values of a regression, and
    ``target`` is the one to explain; ``players`` have scores instead of nodes.
    """
    classes, targets = library.classes(model), library.targets(model)
    by_class = model.task in ("classification", "binary")
    predicted = int(np.argmax(outputs)) if by_class else None
    truth = subject.data.get("truth")
    smiles = subject.data.get("smiles")
    picture = picture_entry(subject.data)
    return {
        "title": subject.title,
        "smiles": smiles if isinstance(smiles, str) else None,
        **picture,
        "task": model.task,
        "prediction": {
            "class": predicted,
            "name": classes[predicted]
            if predicted is not None and predicted < len(classes)
            else None,
            "probabilities": [] if model.task == "regression" else list(outputs),
            "values": list(outputs) if model.task == "regression" else [],
        },
        "classes": list(classes if by_class else targets),
        "target": predicted if target is None else target,
        "label": library.label(model, subject.data),
        "measured": library.measured(model, subject.data),
        "remark": library.reference(model)[1],
        "groups": group_entries(subject.data),
        "players": None if players is None else _players_entry(*players, picture),
        "truth": None if truth is None else [bool(mark) for mark in truth],
        "input": subject.input,
    }


def _players_entry(name: str, players: PlayerSet, picture: dict[str, Any]) -> dict[str, Any]:
    """Who plays instead of nodes, with names made of those of the nodes."""
    called_nodes = [node["name"] for node in picture["nodes"]]
    nodes: list[list[int]] = [[] for _ in range(len(players))]
    if players.edges is not None:
        nodes = players.edges.tolist()
        names = named_edges(nodes, called_nodes)
    else:
        if players.kind == "groups":
            nodes = [np.flatnonzero(players.player_of == at).tolist() for at in players.ids]
        names = named_groups(players.names, nodes, called_nodes)
    return {
        "name": name,
        "title": PLAYERS[picture["kind"]].get(name, name),
        "kind": players.kind,
        "entries": [
            {"name": called, "nodes": members} for called, members in zip(names, nodes, strict=True)
        ],
    }


def _name_of(data: Data, otherwise: str) -> str:
    name = data.get("name")
    return name if isinstance(name, str) and name else otherwise


_kept: dict[int, tuple[Data, dict[str, Any] | None]] = {}


def picture_entry(data: Data) -> dict[str, Any]:
    """The drawing of a graph, without colors."""
    picture = geometry(data)
    return {
        "kind": picture.kind,
        "width": _round(picture.width),
        "height": _round(picture.height),
        "nodes": [
            {
                "label": node.label,
                "name": node.name,
                "x": _round(node.x),
                "y": _round(node.y),
                **({"r": _round(node.radius)} if node.radius is not None else {}),
                **({"w": _round(node.width)} if node.width is not None else {}),
                **({"h": _round(node.height)} if node.height is not None else {}),
            }
            for node in picture.nodes
        ],
        "edges": [list(edge) for edge in picture.edges],
        "shapes": [
            {"d": mark.d, "fill": mark.fill, "stroke": mark.stroke, "width": mark.width}
            for mark in picture.marks
        ],
        "text": picture.written,
    }


def group_entries(data: Data) -> list[dict[str, Any]]:
    """The functional groups of a molecule with their atoms; none for other graphs."""
    if not isinstance(data.get("smiles"), str):
        return []
    try:
        return [
            {"name": name, "nodes": list(nodes)}
            for name, nodes in groups_of(data, "functional_groups")
        ]
    except ValueError:
        return []  # it is drawn as a graph as well


def thumbnail(data: Data) -> dict[str, Any] | None:
    """The drawing of a graph for a list; ``None`` for sentences and for large graphs."""
    if data.get("words") or (data.num_nodes or 0) > _MAX_NODES:
        return None
    kept = _kept.get(id(data))
    if kept is None or kept[0] is not data:
        while len(_kept) >= _MAX_KEPT:
            del _kept[next(iter(_kept))]
        try:
            kept = (data, picture_entry(data))
        except ValueError:
            kept = (data, None)
        _kept[id(data)] = kept
    return kept[1]


def matches(search: str, position: int, entry: Mapping[str, Any]) -> bool:
    """Whether the name, the SMILES or the number of a graph is what a user looks for.

    >>> matches("ETH", 3, {"title": "ethanol", "smiles": "CCO"})
    True
    >>> matches("4", 3, {"title": "ethanol", "smiles": "CCO"})
    False
    """
    text = search.strip()
    if text == str(position) or text.lower() in str(entry["title"]).lower():
        return True
    # upper and lower case are different atoms
    return text in (entry["smiles"] or "")


def _round(value: float) -> float:
    return round(value, 2)  # finer than a screen shows
