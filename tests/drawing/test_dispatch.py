"""The picture that suits the data."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx.datasets import load, smiles_graph
from gstarx.drawing import draw, prediction_caption
from gstarx.drawing.svg import INK, MUTED, WARNING, score_color
from gstarx.explainers import create
from gstarx.explanation import Explanation
from gstarx.models import pretrained
from tests.drawing.parsed import contrast, elements, parsed, texts, tips
from tests.shared import mutag

EDGE = torch.tensor([[0, 1], [1, 0]])


def test_the_attributes_of_a_graph_say_what_it_is() -> None:
    graph = load("nitro")[3]
    scores = np.linspace(-1, 1, graph.num_nodes)
    picture = draw(graph, scores, [1])
    assert picture.title == f"Molecule {graph.smiles}"
    assert draw(graph.smiles, scores, [1]).svg == picture.svg

    graph = mutag()[0]
    assert draw(graph, np.ones(graph.num_nodes)).title.startswith("Molecule C")
    words = Data(edge_index=EDGE, words=["not", "bad"], num_nodes=2)
    assert draw(words, [1, 2]).title == "Sentence: not bad"
    assert draw(Data(edge_index=EDGE, num_nodes=2), [1, 2]).title == "Graph of 2 nodes and 1 edge"
    lonely = draw(Data(x=torch.ones(2, 1)), [1, 2])
    assert lonely.title == "Graph of 2 nodes and 0 edges"


def test_bad_input_is_refused() -> None:
    for data, scores, message in (
        (Data(edge_index=EDGE, words=["one"], num_nodes=2), [1, 2], "words must be one for each"),
        (Data(edge_index=EDGE, num_nodes=2), [1], r"shape \(2,\)"),
        (Data(num_nodes=0), [], "no nodes"),
        ("no molecule", [1], "RDKit can read"),
    ):
        with pytest.raises(ValueError, match=message):
            draw(data, scores)

    with pytest.raises(TypeError, match=r"a PyG Data or a SMILES \(got list\)"):
        draw([1, 2], [1, 2])  # type: ignore[arg-type]

    result = Explanation.from_scores(np.array([0.9, 0.0]), num_nodes=2)
    with pytest.raises(ValueError, match=r"scores must have shape \(3,\) \(got \(2,\)\)"):
        draw("CCO", result)


def test_an_explanation_is_drawn_with_all_it_knows() -> None:
    model, _ = pretrained("nitro")
    dataset = load("nitro")
    graph = dataset[0]
    explanation = create("gstarx", budget=300).explain(model, graph, seed=0)
    picture = draw(graph, explanation, sparsity=0.5, names=dataset.class_names)
    probability = float(explanation.prediction.softmax(dim=1).max())
    name = dataset.class_names[explanation.target_class]
    caption = f"predicted: {name}, probability {probability:.3f}"
    assert caption in " ".join(texts(picture))
    assert caption in parsed(picture).attrib["aria-label"]
    same = explanation.draw(sparsity=0.5, names=dataset.class_names)
    assert same.svg == picture.svg


def test_standard_errors_are_hatched_and_ties_dashed() -> None:
    result = Explanation.from_scores(
        np.array([0.9, 0.1, 0.5, 0.5]), num_nodes=4, std_errors=np.array([0.0, 0.2, 0.0, 0.0])
    )
    for data in (
        "CCOO",
        Data(edge_index=torch.tensor([[0, 1, 2], [1, 2, 3]]), num_nodes=4),
        Data(edge_index=torch.tensor([[0], [1]]), num_nodes=4, words=list("abcd")),
    ):
        picture = draw(data, result, sparsity=0.5)
        outlines = [
            part
            for tag in ("circle", "rect")
            for part in elements(picture, tag)
            if part.get("stroke-dasharray")
        ]
        assert len(outlines) == 2 + 1  # both tied nodes, and the legend
        assert {"selected", "tie at the cut", "interval includes 0"} <= set(texts(picture))
        marked = " ".join(tips(picture))
        assert "+0.1, interval includes 0" in marked


def test_a_selection_of_ones_own_is_outlined_as_it_is() -> None:
    result = Explanation.from_scores(np.array([0.9, 0.0]), num_nodes=2)
    assert "Selected: O1." in parsed(draw("CO", result, [1])).attrib["aria-label"]


def test_a_graph_made_from_a_mol_is_drawn() -> None:
    from rdkit import Chem

    molecule = Chem.AddHs(Chem.MolFromSmiles("OC(=O)c1ccccc1[N+](=O)[O-]"))
    graph = smiles_graph(molecule, "nitro")
    model, _ = pretrained("nitro")
    explanation = create("leave_one_out").explain(model, graph)
    picture = draw(graph, explanation)
    assert {name.split()[0] for name in tips(picture)} == {
        f"{symbol}{node}" for node, symbol in enumerate(graph.atoms)
    }


def test_no_mark_has_a_color_of_scores() -> None:
    scale = {score_color(step / 50, 1.0) for step in range(-50, 51)}
    assert {INK, WARNING, MUTED}.isdisjoint(scale)
    assert all(contrast(color, INK) > 3 for color in scale)


def test_the_class_and_its_probability_or_the_value() -> None:
    for output, options, words in (
        ([[0.0, 2.0]], {}, "predicted: class 1, probability 0.881"),
        (
            [[0.0, 2.0]],
            {"target": 0, "names": ("no", "yes")},
            "explained: no, probability 0.119; predicted: yes, probability 0.881",
        ),
        ([[0.2, 0.8]], {"return_type": "probs"}, "predicted: class 1, probability 0.800"),
        ([[-1.0]], {"mode": "binary"}, "predicted: class 0, probability 0.731"),
        (
            [[1.0]],
            {"mode": "binary_classification", "names": ("inactive", "active")},
            "predicted: active, probability 0.731",
        ),
        (
            [[0.0, 3.0]],
            {"mode": "multilabel", "target": 1, "names": ("liver", "heart")},
            "heart: predicted yes, probability 0.953",
        ),
        ([[-0.51234]], {"mode": "regression"}, "value: predicted −0.5123"),
        ([[1.0, 7.0]], {"mode": "regression", "target": 1}, "output 1: predicted 7"),
        (
            [[2.5]],
            {"mode": "regression", "target": 0, "names": ["logP"]},
            "logP: predicted 2.5",
        ),
    ):
        assert prediction_caption(torch.tensor(output), **options) == words  # type: ignore[arg-type]
