"""Colors: zero is white, both ways are alike, and everybody can tell them apart."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from gstarx.drawing.svg import CARD, INK, LINES, MUTED, NEGATIVE, POSITIVE, score_color
from tests.drawing.parsed import contrast

# What red-, green- and blue-blind eyes make of linear colors (Machado, Oliveira, Fernandes 2009).
BLIND = {
    "protan": [[0.152, 1.053, -0.205], [0.115, 0.786, 0.099], [-0.004, -0.048, 1.052]],
    "deutan": [[0.367, 0.861, -0.228], [0.280, 0.673, 0.047], [-0.012, 0.043, 0.969]],
    "tritan": [[1.256, -0.077, -0.179], [-0.078, 0.931, 0.148], [0.005, 0.691, 0.304]],
}


def seen(color: str, kind: str) -> np.ndarray:
    linear = np.array([int(color[i : i + 2], 16) / 255 for i in (1, 3, 5)]) ** 2.2
    return np.clip(np.array(BLIND[kind]) @ linear, 0, 1) ** (1 / 2.2)


def test_zero_is_white_and_the_ends_are_the_ends() -> None:
    assert score_color(0.0, 0.3) == "#ffffff"
    assert score_color(0.3, 0.3) == POSITIVE
    assert score_color(-0.3, 0.3) == NEGATIVE


@given(st.floats(0.01, 10), st.floats(0, 1))
def test_only_the_share_of_the_limit_counts(limit: float, share: float) -> None:
    for sign in (1, -1):
        assert score_color(sign * share * limit, limit) == score_color(sign * share, 1.0)
    assert score_color(5 * limit, limit) == POSITIVE


def test_more_is_darker() -> None:
    for sign in (
        1,
        -1,
    ):
        depth = [contrast(score_color(sign * share, 1.0), CARD) for share in np.linspace(0, 1, 11)]
        assert (np.diff(depth) > 0).all()


def test_letters_are_readable_on_every_color() -> None:
    for share in np.linspace(-1, 1, 21):
        assert contrast(score_color(share, 1.0), INK) > 4.5
    assert contrast(MUTED, CARD) > 4.5


def test_everybody_can_tell_colors_apart() -> None:
    for kind in BLIND:
        for share in (0.5, 1.0):
            ways = [seen(score_color(sign * share, 1.0), kind) for sign in (1, -1)]
            assert np.linalg.norm(ways[0] - ways[1]) > 0.2

    for kind in BLIND:
        for one, other in combinations(LINES[:4], 2):
            assert np.linalg.norm(seen(one, kind) - seen(other, kind)) > 0.1
