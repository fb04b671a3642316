"""The picture that suits the data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx.datasets import load
from gstarx.drawing import draw, draw_graph, draw_molecule, draw_sentence
from tests.shared import mutag

EDGE = torch.tensor([[0, 1], [1, 0]])


def test_a_graph_with_smiles_is_a_molecule() -> None:
    graph = load("nitro")[3]
    scores = np.linspace(-1, 1, graph.num_nodes)
    assert draw(graph, scores, [1]).svg == draw_molecule(graph, scores, [1]).svg
    assert draw(graph.smiles, scores, [1]).svg == draw_molecule(graph, scores, [1]).svg


def test_a_graph_of_atoms_is_a_molecule() -> None:
    graph = mutag()[0]
    scores = np.ones(graph.num_nodes)
    assert draw(graph, scores).svg == draw_molecule(graph, scores).svg


def test_a_graph_with_words_is_a_sentence() -> None:
    graph = Data(edge_index=EDGE, words=["not", "bad"], num_nodes=2)
    drawn = draw(graph, [1, 2], title="t", limit=4, legend=False)
    direct = draw_sentence(graph.words, EDGE, [1, 2], title="t", limit=4, legend=False)
    assert drawn.svg == direct.svg


def test_anything_else_is_a_graph() -> None:
    graph = Data(edge_index=EDGE, num_nodes=2)
    assert draw(graph, [1, 2], seed=3).svg == draw_graph(graph, [1, 2], seed=3).svg
    lonely = draw(Data(x=torch.ones(2, 1)), [1, 2])
    assert lonely.title == "Graph of 2 nodes and 0 edges"


@pytest.mark.parametrize(
    ("data", "scores", "message"),
    [
        (Data(edge_index=EDGE, words=["one"], num_nodes=2), [1, 2], "words must be one for each"),
        (Data(edge_index=EDGE, num_nodes=2), [1], r"shape \(2,\)"),
        (Data(num_nodes=0), [], "no nodes"),
        ("no molecule", [1], "RDKit can read"),
    ],
)
def test_bad_input_is_refused(data: Data | str, scores: list[float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        draw(data, scores)


def test_what_is_no_graph_is_refused() -> None:
    with pytest.raises(TypeError, match=r"a PyG Data or a SMILES \(got list\)"):
        draw([1, 2], [1, 2])  # type: ignore[arg-type]
