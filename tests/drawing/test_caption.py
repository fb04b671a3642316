"""What a picture says about the prediction."""

from __future__ import annotations

import pytest
import torch

from gstarx.drawing import prediction_caption


@pytest.mark.parametrize(
    ("output", "options", "words"),
    [
        ([[0.0, 2.0]], {}, "predicted: class 1, probability 0.881"),
        (
            [[0.0, 2.0]],
            {"target": 0, "class_names": ("no", "yes")},
            "explained: no, probability 0.119; predicted: yes, probability 0.881",
        ),
        ([[0.2, 0.8]], {"return_type": "probs"}, "predicted: class 1, probability 0.800"),
        ([[-1.0]], {"mode": "binary"}, "predicted: class 0, probability 0.731"),
        (
            [[1.0]],
            {"mode": "binary_classification", "class_names": ("inactive", "active")},
            "predicted: active, probability 0.731",
        ),
        (
            [[0.0, 3.0]],
            {"mode": "multilabel", "target": 1, "target_names": ("liver", "heart")},
            "heart: probability 0.953",
        ),
        ([[-0.51234]], {"mode": "regression"}, "value: predicted −0.5123"),
        ([[1.0, 7.0]], {"mode": "regression", "target": 1}, "output 1: predicted 7"),
        (
            [[2.5]],
            {"mode": "regression", "target": 0, "target_names": ["logP"]},
            "logP: predicted 2.5",
        ),
    ],
)
def test_the_class_and_its_probability_or_the_value(
    output: list[list[float]], options: dict[str, object], words: str
) -> None:
    assert prediction_caption(torch.tensor(output), **options) == words  # type: ignore[arg-type]
