"""Sentences: reading order, tints, arcs, lines."""

from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from gstarx.drawing import Picture, draw
from gstarx.drawing.svg import INK, score_color
from tests.drawing.parsed import SVG, elements, parsed, sentence, texts, tips

WORDS = ["a", "film", "that", "is", "neither", "dull", "nor", "bad"]
ARCS = [(0, 1), (1, 5), (2, 5), (3, 5), (4, 5), (5, 7), (6, 7)]


def boxes(picture: Picture) -> list[dict[str, float]]:
    """Boxes of words in the order they are drawn."""
    rects = [part.find(f"{SVG}rect") for part in tips(picture).values()]
    sides = ("x", "y", "width", "height")
    return [
        {side: float(rect.attrib[side]) for side in sides} for rect in rects if rect is not None
    ]


def test_words_are_tinted_in_reading_order() -> None:
    scores = np.array([0, 0.1, 0, 0, -0.8, 0.9, 0.2, 0.7])
    picture = draw(sentence(WORDS, ARCS), scores, legend=False)
    assert texts(picture) == WORDS
    placed = boxes(picture)
    assert len({box["y"] for box in placed}) == 1
    for one, other in pairwise(placed):
        assert one["x"] + one["width"] < other["x"]
    fills = [part.find(f"{SVG}rect") for part in tips(picture).values()]
    assert [fill.attrib["fill"] for fill in fills if fill is not None] == [
        score_color(score, 0.9) for score in scores
    ]


def test_there_is_an_arc_for_each_pair_and_heavy_ones_within_the_selection() -> None:
    picture = draw(sentence(WORDS, ARCS), np.zeros(8), [4, 5, 7])
    paths = elements(picture, "path")
    assert len(paths) == len(ARCS)
    assert sum(path.attrib["stroke"] == INK for path in paths) == 2


def test_both_directions_of_an_edge_index_are_one_arc() -> None:
    ends = torch.tensor(ARCS).T
    both = torch.cat([ends, ends.flip(0)], dim=1)
    assert (
        draw(sentence(WORDS, both), np.ones(8)).svg == draw(sentence(WORDS, ARCS), np.ones(8)).svg
    )


def test_arcs_over_others_are_higher() -> None:
    picture = draw(sentence(list("abcd"), [(0, 3), (1, 2), (0, 1)]), np.zeros(4))
    tops = [
        float(re.findall(r"Q[\d.]+ ([\d.]+)", p.attrib["d"])[0]) for p in elements(picture, "path")
    ]
    assert len(set(tops)) == 2
    assert sorted(tops).index(min(tops)) == 0
    assert tops.count(min(tops)) == 1


@given(st.integers(30, 60), st.randoms(use_true_random=False))
def test_long_sentences_wrap(count: int, random: object) -> None:
    rng = np.random.default_rng(random.randrange(1 << 30))  # type: ignore[attr-defined]
    words = ["w" * int(k) for k in rng.integers(1, 12, count)]
    pairs = [(int(rng.integers(0, i)), i) for i in range(1, count)]
    picture = draw(sentence(words, pairs), np.zeros(count), width=600)
    placed = boxes_in_order(picture)
    rows = sorted({box["y"] for box in placed})
    assert len(rows) > 1
    assert max(box["x"] + box["width"] for box in placed) <= 600
    assert [rows.index(box["y"]) for box in placed] == sorted(rows.index(b["y"]) for b in placed)
    # an arc from one line to another is drawn in two parts
    line = [rows.index(box["y"]) for box in placed]
    crossing = sum(line[a] != line[b] for a, b in pairs)
    assert len(elements(picture, "path")) == len(pairs) + crossing


def boxes_in_order(picture: Picture) -> list[dict[str, float]]:
    rects = [
        part
        for part in elements(picture, "rect")
        if part.attrib.get("height") == "26" and part.attrib.get("rx") == "5"
    ]
    return [{side: float(r.attrib[side]) for side in ("x", "y", "width")} for r in rects]


def test_one_word_is_a_sentence() -> None:
    picture = draw(sentence(["wonderful"], []), [0.7], [0])
    assert "wonderful" in texts(picture)
    assert elements(picture, "path") == []


def test_a_word_longer_than_a_line_is_cut_and_its_title_has_it_in_full() -> None:
    word = "x" * 300
    picture = draw(sentence([word, "b"], [(0, 1), (1, 0), (0, 1)]), [0, 1], width=200)
    assert texts(picture)[0].endswith("…")
    assert f"{word} 0" in tips(picture)


def test_any_word_is_shown_as_text() -> None:
    for word in (
        "<script>alert(1)</script>",
        "a&b",
        '"quoted"',
        "\x00\x1b",
        "日本語",
    ):
        picture = draw(sentence([word, "end"], [[0], [1]]), [1, 0], title=word)
        clean = re.sub("[\x00\x1b]", "\ufffd", word)
        assert texts(picture)[:2] == [clean, clean]
        assert parsed(picture).findtext(f"{SVG}title") == clean
        assert elements(picture, "script") == []
        assert picture.png().startswith(b"\x89PNG")


def test_bad_input_is_refused() -> None:
    for words, edges, scores, message in (
        ([], [], [], "the graph has no nodes"),
        (["a", "b"], [[0], [1]], [1], r"shape \(2,\)"),
        (["a", "b"], [[0], [2]], [1, 2], r"nodes in 0\.\.1 \(got 0\.\.2\)"),
        (["a", "b"], [[0.5], [1]], [1, 2], "whole numbers"),
        (["a", "b"], [0, 1, 1], [1, 2], r"\(2, E\) or \(E, 2\)"),
        (["a", "b"], [[0], [1]], [1, np.nan], "finite"),
    ):
        with pytest.raises(ValueError, match=message):
            draw(sentence(words, edges), scores)

    with pytest.raises(TypeError, match="a list of words"):
        draw(sentence("not bad", []), [0] * 7)
