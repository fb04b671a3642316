"""Inside a worker: the graph that a request means, and everything that is drawn of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch_geometric.data import Data

from gstarx.datasets import label_of
from gstarx.drawing import geometry
from gstarx.web.messages import Refused, said
from gstarx.web.networks import Networks, features_of
from gstarx.web.settings import Limits, LoadedModel

#: Digits of coordinates, more than any screen shows.
_DIGITS = 2
#: Characters of a text that an error repeats.
_QUOTED = 50
#: Graphs that are remembered.
_REMEMBERED = 32


@dataclass(frozen=True)
class Subject:
    """A graph to explain.

    Attributes
    ----------
    data
        The graph.
    title
        What to call it.
    position
        Its place in a dataset, which its random numbers depend on; 0 for one's own.
    asked
        The input as it was asked for.
    """

    data: Data
    title: str
    position: int
    asked: dict[str, Any]

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.data.num_nodes or 0)


class Subjects:
    """Graphs by what requests say of them."""

    def __init__(self, networks: Networks, limits: Limits) -> None:
        self._networks = networks
        self._limits = limits
        self._remembered: dict[tuple[str, str, Any], Subject] = {}

    def get(self, model: str, asked: Mapping[str, Any]) -> Subject:
        """The graph that is asked for, small enough and fit for the model, or Refused."""
        ((way, value),) = asked.items()
        key = (model, way, value)
        if key not in self._remembered:
            while len(self._remembered) >= _REMEMBERED:
                del self._remembered[next(iter(self._remembered))]
            self._remembered[key] = self._found(model, way, value)
        return self._remembered[key]

    def _found(self, name: str, way: str, value: Any) -> Subject:
        model = self._networks.get(name)
        if way == "run_graph":
            found = self._of_the_run(value)
        else:
            found = getattr(self, f"_{way}")(model, value)
        self._check(found, model, name, f"input.{way}")
        return found

    def _smiles(self, model: LoadedModel, smiles: str) -> Subject:
        from gstarx.datasets import smiles_graph

        try:
            # a network of one's own may read bonds; those of the package do not
            data = smiles_graph(smiles, model.dataset, bond_features=model.dataset is None)
        except ValueError as error:
            raise Refused("bad_smiles", said(error), "input.smiles") from error
        if not data.num_nodes:
            raise Refused("bad_smiles", "a molecule needs at least one atom", "input.smiles")
        return Subject(data, smiles.strip(), 0, {"smiles": smiles})

    def _sentence(self, model: LoadedModel, sentence: str) -> Subject:
        from gstarx.datasets.sentences import text_graphs

        (data,) = text_graphs([sentence], progress=False)
        if len(data.words) < 2:
            got = f"{sentence[:_QUOTED]!r}{'…' if len(sentence) > _QUOTED else ''}"
            text = f"a sentence needs two words or more to share the prediction (got {got})"
            raise Refused("bad_sentence", text, "input.sentence")
        return Subject(data, sentence.strip(), 0, {"sentence": sentence})

    def _graph(self, model: LoadedModel, position: int) -> Subject:
        found = self._networks.at_hand(model)
        assert found is not None, "inputs() says so"
        if position >= len(found):
            text = f"graphs of {found.name} lie in 0..{len(found) - 1} (got {position})"
            raise Refused("bad_graph", text, "input.graph")
        title = f"{found.name} {position}"
        return Subject(found[position], title, position, {"graph": position})

    def _of_the_run(self, position: int) -> Subject:
        run = self._networks.browsed
        if run is None:
            raise Refused("no_run", self._networks.run_problem, "input.run_graph")
        return Subject(
            run.graph(position), f"{run.dataset} {position}", position, {"run_graph": position}
        )

    def _check(self, subject: Subject, model: LoadedModel, name: str, field: str) -> None:
        if subject.nodes > self._limits.nodes:
            text = f"a graph may have {self._limits.nodes} nodes here (got {subject.nodes})"
            raise Refused("too_many_nodes", text, field)
        wanted = features_of(model)
        got = subject.data.x.shape[1]
        if wanted is not None and got != wanted:
            text = f"{name} takes {wanted} features a node, and this graph has {got}"
            raise Refused("bad_input", text, field)


def drawn(
    subject: Subject, *, probabilities: list[float], classes: tuple[str, ...]
) -> dict[str, Any]:
    """Everything that is drawn of a graph, as it goes over the wire."""
    found = geometry(subject.data)
    predicted = int(np.argmax(probabilities))
    truth = subject.data.get("truth")
    return {
        "title": subject.title,
        "kind": found.kind,
        "width": _round(found.width),
        "height": _round(found.height),
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
            for node in found.nodes
        ],
        "edges": [list(edge) for edge in found.edges],
        "shapes": [
            {"d": mark.d, "fill": mark.fill, "stroke": mark.stroke, "width": mark.width}
            for mark in found.marks
        ],
        "text": found.written,
        "prediction": {
            "class": predicted,
            "name": classes[predicted] if predicted < len(classes) else None,
            "probabilities": probabilities,
        },
        "classes": list(classes),
        "label": label_of(subject.data),
        "truth": None if truth is None else [bool(mark) for mark in truth],
        "input": subject.asked,
    }


def _round(value: float) -> float:
    return round(value, _DIGITS)
