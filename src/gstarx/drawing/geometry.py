"""The layout of a picture as data, for pages that draw and color it themselves."""

from __future__ import annotations

import re
from dataclasses import dataclass

from torch_geometric.data import Data

from gstarx.drawing import graph, molecule, sentence
from gstarx.drawing.dispatch import Subject
from gstarx.drawing.svg import number

#: A command of a path, or one of its numbers.
_TOKEN = re.compile(r"([MLQCSTZ])|(-?\d+(?:\.\d+)?)")


@dataclass(frozen=True)
class NodePlace:
    """A node: the label written on it, its name, its center, and its size.

    Discs have a ``radius``; the boxes of words have a ``width`` and a ``height``.
    """

    label: str
    name: str
    x: float
    y: float
    radius: float | None = None
    width: float | None = None
    height: float | None = None


@dataclass(frozen=True)
class Mark:
    """A path of SVG that lies above the nodes: a bond, a letter, an arc between words."""

    d: str
    fill: str | None = None
    stroke: str | None = None
    width: float = 0.0


@dataclass(frozen=True)
class Geometry:
    """A picture without scores.

    Attributes
    ----------
    kind
        ``"molecule"``, ``"sentence"`` or ``"graph"``.
    title
        What it is, in words.
    width, height
        Its size; everything lies inside.
    nodes
        The nodes in order.
    edges
        Pairs of joined nodes, each once.
    marks
        What lies above the nodes.
    written
        Whether labels are to be written on nodes. The letters of a molecule are marks already.
    """

    kind: str
    title: str
    width: float
    height: float
    nodes: tuple[NodePlace, ...]
    edges: tuple[tuple[int, int], ...]
    marks: tuple[Mark, ...] = ()
    written: bool = True


def geometry(data: Data | str, *, seed: int = 0, width: float | None = None) -> Geometry:
    """The layout of the picture that :func:`gstarx.drawing.draw` makes.

    Parameters
    ----------
    data
        As for :func:`gstarx.drawing.draw`.
    seed
        Of the layout of a graph.
    width
        The largest width of a line of words or a graph. Molecules have their own size.

    Examples
    --------
    >>> found = geometry("c1ccccc1[N+](=O)[O-]")
    >>> found.kind, len(found.nodes), found.nodes[6].name, found.nodes[6].label
    ('molecule', 9, 'N6', 'N')
    """
    subject = Subject.of(data, seed=seed)
    if not subject.names:
        raise ValueError("there is nothing to draw: the graph has no nodes")
    if subject.kind == "molecule":
        return _molecule(subject)
    if subject.kind == "sentence":
        return _sentence(subject, width or 760)
    return _graph(subject, width or 460)


def _molecule(subject: Subject) -> Geometry:
    shapes, places, low, high = molecule.laid_out(subject.source)
    symbols = [atom.GetSymbol() for atom in subject.source.GetAtoms()]
    return Geometry(
        subject.kind,
        subject.title,
        float(high[0] - low[0]),
        float(high[1] - low[1]),
        tuple(
            NodePlace(symbol, name, float(x - low[0]), float(y - low[1]), molecule.RADIUS)
            for symbol, name, (x, y) in zip(symbols, subject.names, places, strict=True)
        ),
        tuple((min(pair), max(pair)) for pair in molecule.bonds_of(subject.source)),
        tuple(_mark(shape, float(low[0]), float(low[1])) for shape in shapes),
        written=False,
    )


def _sentence(subject: Subject, width: float) -> Geometry:
    words = sentence.laid_out(subject.names, subject.source, width=width)
    return Geometry(
        subject.kind,
        subject.title,
        words.width,
        words.height,
        tuple(
            NodePlace(
                box.shown,
                name,
                box.left + box.width / 2,
                box.top + sentence.BOX / 2,
                width=box.width,
                height=sentence.BOX,
            )
            for name, box in zip(subject.names, words.boxes, strict=True)
        ),
        tuple(subject.source),
        tuple(Mark(path, stroke=sentence.ARC, width=1.1) for path, _ in words.arcs),
    )


def _graph(subject: Subject, width: float) -> Geometry:
    count = len(subject.names)
    places, radius, height = graph.laid_out(subject.source, count, seed=subject.seed, width=width)
    return Geometry(
        subject.kind,
        subject.title,
        width,
        height,
        tuple(
            NodePlace(name, name, float(x), float(y), radius)
            for name, (x, y) in zip(subject.names, places, strict=True)
        ),
        tuple(subject.source),
        written=radius >= graph.TEXT_FROM,
    )


def _mark(shape: molecule.Shape, left: float, top: float) -> Mark:
    """A shape of RDKit's, moved so that the picture begins at the origin."""
    attributes = shape.attributes
    path = attributes["d"] if shape.tag == "path" else _round(attributes)
    painted = {name: attributes.get(name) for name in ("fill", "stroke")}
    fill, stroke = (None if color == "none" else color for color in painted.values())
    return Mark(_moved(path, left, top), fill, stroke, float(attributes.get("stroke-width", 0)))


def _round(attributes: dict[str, str]) -> str:
    """A circle or an ellipse, such as the dot of a radical, as a path of four curves."""
    x, y = float(attributes.get("cx", 0)), float(attributes.get("cy", 0))
    a, b = (float(attributes.get(name, attributes.get("r", 0))) for name in ("rx", "ry"))
    corners = [(x + a, y + b), (x - a, y + b), (x - a, y - b), (x + a, y - b)]
    ends = [(x, y + b), (x - a, y), (x, y - b), (x + a, y)]
    curves = (f"Q {c[0]} {c[1]} {e[0]} {e[1]}" for c, e in zip(corners, ends, strict=True))
    return " ".join([f"M {x + a} {y}", *curves, "Z"])


def _moved(path: str, left: float, top: float) -> str:
    """A path of absolute points, shifted.

    >>> _moved("M 3,4 L 5.5 6 Z", 1.0, 2.0)
    'M2 2L4.5 4Z'
    """
    tokens: list[str] = []
    across = True
    for letter, written in _TOKEN.findall(path):
        if letter:
            tokens.append(letter)
            across = True
            continue
        value = number(float(written) - (left if across else top))
        tokens.append(value if tokens[-1].isalpha() else f" {value}")
        across = not across
    return "".join(tokens)
