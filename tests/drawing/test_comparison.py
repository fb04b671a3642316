"""Explainers side by side."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch_geometric.data import Data

from gstarx import Judge
from gstarx.datasets import load
from gstarx.drawing import compare
from gstarx.drawing.svg import POSITIVE, score_color
from gstarx.explanation import Explanation
from gstarx.metrics import Faithfulness, Reference, evaluate, select_nodes
from gstarx.models import pretrained
from tests.drawing.parsed import elements, parsed, texts, tips


def test_each_picture_has_its_own_scale_unless_one_is_common() -> None:
    results = {"small": [0.1, 0.0], "large": [0.4, 0.2]}
    own = compare("CO", results)
    assert tips(own)["C0 +0.1"].attrib["fill"] == POSITIVE
    assert {"−max", "+max", "±0.1", "±0.4"} <= set(texts(own))
    common = compare("CO", results, scale="common")
    assert tips(common)["C0 +0.1"].attrib["fill"] == score_color(0.1, 0.4)
    assert tips(common)["C0 +0.4"].attrib["fill"] == POSITIVE
    assert {"−0.4", "+0.4"} <= set(texts(common))
    assert "scale" not in texts(common)
    given = compare("CO", results, scale=2.0)
    assert tips(given)["C0 +0.4"].attrib["fill"] == score_color(0.4, 2.0)
    assert {"−2", "+2"} <= set(texts(given))


def test_what_is_worse_than_random_is_pointed_out() -> None:
    bad, good = (Faithfulness.of(1.0, without, 1.0, 0.5) for without in (0.99, 0.1))
    random = (bad.harmonic_fidelity + good.harmonic_fidelity) / 2
    results = {"bad": [1, 0], "good": [0, 1]}
    metrics = {"bad": bad, "good": good}
    picture = compare("CO", results, metrics=metrics, random=random)
    warning = "worse than a random selection: do not use this"
    assert texts(picture).count(warning) == 1
    assert warning in parsed(picture).attrib["aria-label"]
    assert warning not in texts(compare("CO", results, metrics=metrics))
    equal = compare("CO", results, metrics=metrics, random=bad.harmonic_fidelity + 1e-6)
    assert warning not in texts(equal)


def test_a_regression_is_not_condemned() -> None:
    bad = {"bad": Faithfulness.of(1.0, 0.99, 1.0, 0.5)}
    result = Explanation.from_scores(np.array([1.0, 0.0]), num_nodes=2)
    result.mode = "regression"
    judge = Judge(lambda x, edge_index: x.sum(), task="regression", reference=Reference(1.0, 0.0))
    edge = torch.tensor([[0, 1], [1, 0]])
    for picture in (
        compare("CO", {"bad": result}, metrics=bad, random=0.99),
        compare(Data(x=torch.eye(2), edge_index=edge), {"bad": [1, 0]}, judge=judge, random=2.0),
    ):
        assert "do not use this" not in picture.svg
        assert "below random, which is no verdict on a regression" in texts(picture)


def test_a_model_gives_the_random_selections() -> None:
    model, _ = pretrained("nitro")
    graph = load("nitro")[0]
    truth = graph.truth.double()
    picture = compare(graph, {"truth": truth, "opposite": -truth}, judge=Judge(model))
    assert texts(picture).count("worse than a random selection: do not use this") == 1


def test_metrics_of_a_model_are_those_of_evaluate() -> None:
    model, _ = pretrained("nitro")
    graph = load("nitro")[0]
    scores = np.linspace(-1, 1, graph.num_nodes)
    nodes = select_nodes(scores, 0.5)
    found = evaluate(model, graph, nodes, removal="split")
    picture = compare(graph, {"a": scores}, sparsity=0.5, judge=Judge(model, removal="split"))
    shown = texts(picture)
    assert shown[shown.index("H-fidelity") + 1] == f"{found.harmonic_fidelity:.4f}"
    assert shown[shown.index("fidelity") + 1] == f"{found.fidelity:.4f}".replace("-", "−")
    assert shown[shown.index("inverse") + 1] == f"{found.inverse_fidelity:.4f}".replace("-", "−")
    assert f"H-fidelity {found.harmonic_fidelity:.4f}" in parsed(picture).attrib["aria-label"]


def test_the_best_is_marked() -> None:
    low, high = (Faithfulness.of(1.0, without, 1.0, 0.5) for without in (0.9, 0.1))
    results = {"first": [1, 0], "second": [0, 1]}
    picture = compare("CO", results, metrics={"first": low, "second": high})
    bold = [part.text for part in elements(picture, "text") if part.get("font-weight") == "700"]
    assert bold == [f"{high.harmonic_fidelity:.4f}"]


def test_sets_of_nodes_are_drawn_where_there_are_no_scores() -> None:
    result = Explanation.from_scores(None, num_nodes=3, sets=[np.array([1]), np.array([0, 1, 2])])
    shown = tips(compare("CCO", {"search": result}, sparsity=0.6))
    assert {"C0 0", "C1 +1", "O2 0"} == set(shown)


def test_explanations_of_pyg_will_do() -> None:
    class Found:
        node_mask = torch.tensor([[0.5], [0.25]])

    assert "O1 +0.25" in tips(compare("CO", {"pyg": Found()}))


def test_sentences_stand_below_each_other_and_columns_can_be_said() -> None:
    edge = torch.tensor([[0, 1], [1, 0]])
    sentence = Data(edge_index=edge, words=["not", "bad"], num_nodes=2)
    results = {name: [1.0, 0.0] for name in "abc"}
    wide, high = compare("CO", results).size, compare("CO", results, columns=1).size
    assert wide[0] > high[0]
    assert wide[1] < high[1]
    one_column, three_columns = (compare(sentence, results, columns=c).size for c in (1, 3))
    assert compare(sentence, results).size == one_column != three_columns


def test_a_name_is_shown_as_text() -> None:
    picture = compare("CO", {"<script>x</script>": [1, 0]})
    assert texts(picture)[0] == "<script>x</script>"
    assert elements(picture, "script") == []


def test_bad_input_is_refused() -> None:
    for results, options, error, message in (
        ({}, {}, ValueError, "at least one explainer"),
        ({"a": [1]}, {}, ValueError, r"shape \(2,\)"),
        ({"a": [1, 2]}, {"scale": "mine"}, ValueError, "'picture', 'common', or a number"),
        ({"a": [1, 2]}, {"colums": 2}, TypeError, "unexpected keyword argument 'colums'"),
        ({"a": [1, 2]}, {"columns": 0}, ValueError, "columns must be at least 1"),
        ({"a": [1, 2]}, {"judge": Judge(torch.nn.Identity())}, TypeError, "not a SMILES"),
    ):
        with pytest.raises(error, match=message):
            compare("CO", results, **options)  # type: ignore[arg-type]
