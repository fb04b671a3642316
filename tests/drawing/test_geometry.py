"""Where everything goes is the same in data and in pictures."""

from __future__ import annotations

import re

import pytest
import torch
from torch_geometric.data import Data

from gstarx.datasets import load
from gstarx.drawing import draw, geometry

pytest.importorskip("rdkit")


def circles(svg: str) -> list[tuple[float, float]]:
    found = re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)"', svg)
    return [(float(x), float(y)) for x, y in found]


def test_a_molecule() -> None:
    graph = load("nitro")[15]
    found = geometry(graph)
    assert found.kind == "molecule"
    assert not found.written
    assert [node.label for node in found.nodes] == graph.atoms
    assert len(found.edges) == graph.edge_index.shape[1] // 2
    places = circles(draw(graph, [0.1] * len(found.nodes), legend=False).svg)
    shift = (places[0][0] - found.nodes[0].x, places[0][1] - found.nodes[0].y)
    for node, (x, y) in zip(found.nodes, places, strict=True):
        assert (node.x + shift[0], node.y + shift[1]) == pytest.approx((x, y), abs=0.02)


def test_what_molecules_look_like_lies_inside_and_where_atoms_are() -> None:
    found = geometry("OC(=O)c1ccccc1Br")  # with letters of every kind of curve
    assert found.marks
    for mark in found.marks:
        numbers = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", mark.d)]
        assert all(-1 <= x <= found.width + 1 for x in numbers[::2])
        assert all(-1 <= y <= found.height + 1 for y in numbers[1::2])
        assert mark.fill or mark.stroke

    found = geometry("CC")
    (bond,) = [mark for mark in found.marks if mark.stroke]
    ends = [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", bond.d)]
    atoms = [coordinate for node in found.nodes for coordinate in (node.x, node.y)]
    assert ends == pytest.approx(atoms, abs=0.2)


def test_a_sentence() -> None:
    words = ["not", "a", "bad", "film"] * 10
    edges = torch.tensor([[0, 2, 39], [1, 3, 0]])
    data = Data(x=torch.zeros(40, 1), edge_index=edges, words=words)
    found = geometry(data, width=300)
    assert found.kind == "sentence"
    assert found.written
    assert found.width <= 300
    assert len({node.y for node in found.nodes}) > 1, "it wraps"
    assert found.edges == ((0, 1), (0, 39), (2, 3))
    assert len(found.marks) == 4, "an arc between two lines is in two parts"
    for node in found.nodes:
        assert node.width is not None
        assert 0 <= node.x - node.width / 2 < node.x + node.width / 2 <= found.width + 1e-9


def test_a_graph() -> None:
    ring = Data(x=torch.zeros(4, 1), edge_index=torch.tensor([[0, 1, 2, 3], [1, 2, 3, 0]]))
    found = geometry(ring, width=200)
    assert found.kind == "graph"
    assert found.marks == ()
    assert found.edges == ((0, 1), (0, 3), (1, 2), (2, 3))
    for node in found.nodes:
        assert node.radius is not None
        assert node.radius <= node.x <= 200 - node.radius
        assert node.radius <= node.y <= found.height - node.radius


def test_nothing_to_draw() -> None:
    with pytest.raises(ValueError, match="nothing to draw"):
        geometry(Data(x=torch.zeros(0, 1), edge_index=torch.zeros(2, 0, dtype=torch.long)))
