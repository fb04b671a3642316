"""Drawings of heterogeneous graphs: a shape for every type, and their legend."""

from __future__ import annotations

import re

import pytest

from gstarx import explain
from gstarx.drawing import compare, draw
from gstarx.drawing.geometry import shape
from gstarx.drawing.picture import keys
from tests.gnn.hetero_networks import OnGraphs, OnPapers, seeded, small, typed_graph
from tests.shared import UNTRAINED

pytestmark = UNTRAINED


def test_every_type_has_a_shape_and_a_place_in_the_legend() -> None:
    data = small()
    made = explain(seeded(OnGraphs), data, value="shapley")
    picture = made.draw()
    shapes = re.findall(r"<title>(\w+) (\d+) [^<]*</title><(circle|polygon)([^>]*)>", picture.svg)
    assert len(shapes) == 8
    corners = {(kind, len(re.findall(r"[\d.]+,[\d.]+", drawn))) for kind, _, _, drawn in shapes}
    assert corners == {("author", 0), ("paper", 4), ("venue", 3)}
    for name in data.node_types:
        assert f">{name}</text>" in picture.svg
    assert picture.title == "Heterogeneous graph of 8 nodes and 6 edges"
    assert f"{made.top(1)[0][0]} {made.top(1)[0][1]}" in picture.svg


def test_graphs_and_scores_come_in_every_form() -> None:
    data = small()
    made = explain(seeded(OnGraphs), data)
    by_explanation = draw(data, made)
    assert by_explanation.svg == made.draw().svg
    by_type = {name: made[name].node_scores.numpy() for name in data.node_types}
    drawn = draw(data, by_type, [("paper", 1)])
    assert "Selected: paper 1." in drawn.svg
    assert "venue" in compare(made.view, {"hn": made.view, "again": made.view}).svg


def test_of_a_node_only_the_players_are_drawn() -> None:
    data = typed_graph(
        {"author": 3, "paper": 4, "venue": 2},
        [(0, 0), (1, 0), (1, 1), (2, 3)],
        [(0, 0), (1, 0), (2, 1), (3, 1)],
    )
    made = explain(seeded(OnPapers), data, index=0, value="banzhaf", task="node")
    assert len(made.players) < 9
    titles = re.findall(r"<title>(\w+) (\d+) [^<]*</title>", made.draw().svg)
    shown = {(name, int(node)) for name, node in titles}
    assert shown == {*made.players, ("paper", 0)}


def test_more_types_than_shapes_repeat_them() -> None:
    assert shape(0, 5, 5, 3) == shape(8, 5, 5, 3)
    names = [f"a rather long type {at}" for at in range(9)]
    legend = keys([("", name) for name in names], 300)
    assert all(name in legend.body for name in names)
    assert legend.width <= 300
    assert legend.height > 40


@pytest.mark.parametrize("scores", [{"author": [1.0, 2.0, 3.0]}])
def test_scores_of_a_type_must_be_there(scores: dict[str, list[float]]) -> None:
    with pytest.raises(KeyError, match="paper"):
        draw(small(), scores)
