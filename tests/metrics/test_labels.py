"""Labels that flip: by hand, and as PyG counts them where its masks mean the same."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from torch_geometric.explain import Explainer, Explanation, ModelConfig
from torch_geometric.explain.algorithm import DummyExplainer
from torch_geometric.explain.metric import characterization_score as pyg_score
from torch_geometric.explain.metric import fidelity as pyg_fidelity

from gstarx import Judge
from gstarx.metrics import LabelFidelity, characterization_score
from gstarx.models import GCN
from tests.gnn.networks import CLASSES, FEATURES
from tests.gnn.one_by_one import graph
from tests.metrics.by_hand import CHANCES, by_table, path

MODEL = by_table(CHANCES)  # predicts class 1 of {0, 1, 2}, {0, 1} and {1, 2}


def test_by_hand() -> None:
    for nodes, without, alone in (
        ([1], 1, 1),  # both {0, 2} and {1} are of class 0
        ([0, 1], 1, 0),  # {2} is a tie, which goes to class 0
        ([0], 0, 1),
        ([0, 1, 2], 1, 0),  # nobody has no label
        ([], 0, 1),
    ):
        found = Judge(MODEL).labels(path(3), nodes)
        score = 1.0 if (without, alone) == (1, 0) else 0.0
        assert found == LabelFidelity(without, alone, score)


def test_nobody_has_no_label_whatever_the_class() -> None:
    first = by_table({nodes: 1 - chance for nodes, chance in CHANCES.items()})
    for model in (MODEL, first):
        assert Judge(model).labels(path(3), []) == LabelFidelity(0, 1, 0)
        assert Judge(model).labels(path(3), [0, 1, 2]) == LabelFidelity(1, 0, 1)


@settings(max_examples=25)
@given(st.integers(0, 1000), st.lists(st.booleans(), min_size=7, max_size=7))
def test_as_pyg_counts(seed: int, inside: list[bool]) -> None:
    """PyG multiplies features by the mask, which is filling with zeros."""
    torch.manual_seed(seed)
    model, data = GCN(FEATURES, 8, CLASSES).eval(), graph("messy")
    del data.edge_weight, data.bond_length_of_edge
    explainer = Explainer(
        model,
        DummyExplainer(),
        explanation_type="model",
        node_mask_type="object",
        model_config=ModelConfig("multiclass_classification", "graph", return_type="raw"),
    )
    mask = np.array(inside)
    # without nodes there is no label here, and a constant one there
    assume(mask.any() and not mask.all())
    explanation = Explanation(
        x=data.x,
        edge_index=data.edge_index,
        node_mask=torch.tensor(mask)[:, None].float(),
        target=model(data.x, data.edge_index).argmax(dim=1),
        _model_args=[],
    )
    positive, negative = pyg_fidelity(explainer, explanation)
    found = Judge(model, removal="zero_filling").labels(data, mask)
    assert (found.positive, found.negative) == (positive, negative)


@given(st.floats(0.01, 1), st.floats(0, 0.99), st.floats(0, 1))
def test_the_score_is_pygs(positive: float, negative: float, weight: float) -> None:
    expected = pyg_score(
        torch.tensor(positive, dtype=torch.double),
        torch.tensor(negative, dtype=torch.double),
        pos_weight=0.5,
        neg_weight=0.5,
    )
    assert characterization_score(positive, negative) == pytest.approx(float(expected))
    weighted = characterization_score(
        positive, negative, positive_weight=weight, negative_weight=1 - weight
    )
    assert min(positive, 1 - negative) - 1e-9 <= weighted <= max(positive, 1 - negative) + 1e-9


def test_the_score_at_its_ends() -> None:
    assert characterization_score(1, 0) == 1
    assert characterization_score(0, 0) == characterization_score(1, 1) == 0
    # 1 / (0.25 / 0.5 + 0.75 / 0.75)
    found = characterization_score(0.5, 0.25, positive_weight=0.25, negative_weight=0.75)
    assert found == pytest.approx(1 / 1.5)


def test_bad_options() -> None:
    for options, error, words in (
        ({"positive_weight": 0.6}, ValueError, r"must sum to 1 \(got 0.6 and 0.5\)"),
        ({"color": 1}, TypeError, "unexpected keyword argument 'color'"),
    ):
        with pytest.raises(error, match=words):
            Judge(MODEL).labels(path(3), [0], **options)
    with pytest.raises(ValueError, match="removal must be"):
        Judge(MODEL, removal="burn").labels(path(3), [0])

    for pair in (
        (-0.1, 0.5),
        (0.5, 1.1),
        (1.2, 0.0),
        (0.5, -1.0),
    ):
        with pytest.raises(ValueError, match=r"must lie in \[0, 1\]"):
            characterization_score(*pair)
