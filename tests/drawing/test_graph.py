"""Any graph: seeded places, nodes apart, all on the paper."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_geometric.data import Data

from gstarx.datasets import load
from gstarx.drawing import Picture, draw
from gstarx.drawing.graph import layout
from gstarx.drawing.svg import INK, score_color
from tests.drawing.parsed import SVG, elements, texts, tips


def of(graph: nx.Graph) -> Data:
    ends = torch.tensor(list(graph.edges), dtype=torch.long).reshape(-1, 2).T
    return Data(edge_index=torch.cat([ends, ends.flip(0)], dim=1), num_nodes=len(graph))


def circles(picture: Picture) -> dict[str, tuple[float, float, float]]:
    """Place and radius of every node by its name."""
    found = {}
    for said, part in tips(picture).items():
        circle = part.find(f"{SVG}circle")
        assert circle is not None
        sides = (float(circle.attrib[side]) for side in ("cx", "cy", "r"))
        found[said.rpartition(" ")[0]] = tuple(sides)
    return found  # type: ignore[return-value]


def test_every_node_is_on_the_paper_and_most_are_apart() -> None:
    for graph in (
        nx.barabasi_albert_graph(25, 1, seed=0),
        nx.barabasi_albert_graph(100, 2, seed=0),
        nx.random_labeled_tree(100, seed=3),
        nx.complete_graph(12),
        nx.path_graph(40),
        nx.disjoint_union_all([nx.cycle_graph(7), nx.path_graph(3), nx.empty_graph(4)]),
        nx.empty_graph(1),
        nx.empty_graph(30),
    ):
        picture = draw(of(graph), np.zeros(len(graph)), legend=False)
        width, height = picture.size
        nodes = np.array(list(circles(picture).values()))
        assert len(nodes) == len(graph)
        assert len(elements(picture, "line")) == graph.number_of_edges()
        assert (nodes[:, :2] - nodes[:, 2:] >= 0).all()
        assert (nodes[:, 0] + nodes[:, 2] <= width).all()
        assert (nodes[:, 1] + nodes[:, 2] <= height).all()
        if len(nodes) > 1:
            apart = np.linalg.norm(nodes[:, None, :2] - nodes[None, :, :2], axis=2)
            np.fill_diagonal(apart, np.inf)
            assert (apart.min(axis=1) > 1.6 * nodes[0, 2]).mean() > 0.7


def test_same_seed_same_picture_other_seed_another() -> None:
    data = load("motifs")[0]
    scores = np.linspace(-1, 1, 25)
    assert draw(data, scores, seed=3).svg == draw(data, scores, seed=3).svg
    assert draw(data, scores, seed=3).svg != draw(data, scores, seed=4).svg


def test_the_order_of_edges_does_not_move_nodes() -> None:
    data = load("motifs")[0]
    turned = Data(edge_index=data.edge_index.flip(1), num_nodes=25)
    scores = np.linspace(-1, 1, 25)
    assert draw(turned, scores).svg == draw(data, scores).svg


@given(st.integers(2, 30), st.integers(0, 1000))
def test_neighbors_are_near(count: int, seed: int) -> None:
    tree = nx.random_labeled_tree(count, seed=seed)
    places = layout(sorted(tree.edges), count, seed=0)
    assert np.isfinite(places).all()
    lengths = [np.linalg.norm(places[a] - places[b]) for a, b in tree.edges]
    assert 0.3 < np.median(lengths) < 2


def test_a_large_graph_is_laid_out_too() -> None:
    tree = nx.random_labeled_tree(520, seed=1)
    places = layout(sorted(tree.edges), 520, seed=0)
    lengths = [np.linalg.norm(places[a] - places[b]) for a, b in tree.edges]
    assert 0.2 < np.median(lengths) < 2


def test_a_cloud_is_refused() -> None:
    with pytest.raises(ValueError, match=r"at most 2,000 nodes \(got 2,001\)"):
        draw(of(nx.path_graph(2001)), np.zeros(2001))


def test_a_ring_is_laid_out_round() -> None:
    places = layout([(i, (i + 1) % 8) for i in range(8)], 8, seed=0)
    reach = np.linalg.norm(places - places.mean(axis=0), axis=1)
    assert reach.max() / reach.min() < 1.02


def test_colors_outlines_and_heavy_edges() -> None:
    picture = draw(of(nx.path_graph(4)), [0.5, -0.25, 0, 0.1], [0, 1], legend=False)
    shown = tips(picture)
    first = shown["0 +0.5"].find(f"{SVG}circle")
    assert first is not None
    assert first.attrib["fill"] == score_color(0.5, 0.5)
    assert first.attrib["stroke"] == INK
    last = shown["3 +0.1"].find(f"{SVG}circle")
    assert last is not None
    assert last.attrib["stroke"] != INK
    assert sum(line.attrib["stroke"] == INK for line in elements(picture, "line")) == 1


def test_labels_stand_for_numbers() -> None:
    picture = draw(of(nx.path_graph(2)), [0, 1], labels=["<b>", "two"], legend=False)
    assert "<b> 0" in tips(picture)
    assert set(texts(picture)) == {"<b>", "two"}


def test_self_loops_and_missing_edges_are_no_lines() -> None:
    data = Data(edge_index=torch.tensor([[0, 1], [0, 1]]), num_nodes=2)
    assert elements(draw(data, [0, 1]), "line") == []


def test_bad_input_is_refused() -> None:
    for data, scores, options, message in (
        (Data(edge_index=torch.zeros(2, 0).long(), num_nodes=0), [], {}, "has no nodes"),
        (of(nx.path_graph(3)), [1, 2], {}, r"shape \(3,\)"),
        (of(nx.path_graph(2)), [1, np.nan], {}, "finite"),
        (of(nx.path_graph(2)), [1, 2], {"labels": ["a"]}, "one for each of 2 nodes"),
        (of(nx.path_graph(2)), [1, 2], {"labels": "names"}, r"of a graph, or 'numbers' .*'names'"),
        ("CO", [1, 2], {"labels": ["a", "b"]}, r"of a graph, or .* for 'Molecule CO'"),
        (of(nx.path_graph(2)), [1, 2], {"selected": [2]}, "nodes"),
    ):
        with pytest.raises(ValueError, match=message):
            draw(data, scores, **options)  # type: ignore[arg-type]
