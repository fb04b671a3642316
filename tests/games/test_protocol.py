"""Asking a game for worths, and refusing what is not an answer."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from gstarx.games import evaluate, protocol
from gstarx.games.protocol import describe, evaluate_masks
from gstarx.graphs.bitmasks import pack
from tests.pairs import for_each
from tests.strategies import coalition_matrices

ASKED = np.array([[True, False, True], [False, True, False]])


def answering(answer: Any) -> Any:
    return lambda coalitions: answer


# how a coalition is written


@for_each(
    ("nodes", "written"),
    [
        ([], "{}"),
        ([3], "{3}"),
        ([0, 2, 19], "{0, 2, 19}"),
        (range(12), "{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}"),
        (range(1, 14), "all 20 nodes but {0, 14, 15, 16, 17, 18, 19}"),
        (range(19), "all 20 nodes but {19}"),
        (range(20), "all 20 nodes"),
    ],
)
def test_a_coalition_in_words(nodes: Any, written: str) -> None:
    mask = np.zeros(20, dtype=np.bool_)
    mask[list(nodes)] = True
    assert describe(mask) == written


def test_a_coalition_that_is_long_either_way_is_cut() -> None:
    first = "{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, ... 13"
    assert describe(np.arange(26) < 13) == f"{first} nodes}}"
    assert describe(np.arange(40) >= 13, noun="edges") == f"all 40 edges but {first} edges}}"


# answers


@for_each(
    "answer",
    [[1, 2], (1.0, 2.0), np.array([1, 2], dtype=np.int8), np.array([1, 2], dtype=np.float32)],
)
def test_numbers_of_any_kind_are_worths(answer: Any) -> None:
    worths = evaluate(answering(answer), ASKED)
    assert worths.dtype == np.float64
    assert worths.tolist() == [1.0, 2.0]


def test_several_games_at_once() -> None:
    assert evaluate(answering([[1, 2, 3], [4, 5, 6]]), ASKED).shape == (2, 3)


def test_the_game_sees_the_coalitions_as_they_are() -> None:
    seen: list[NDArray[np.bool_]] = []

    def game(coalitions: NDArray[np.bool_]) -> NDArray[np.float64]:
        seen.append(coalitions)
        return np.zeros(len(coalitions))

    evaluate(game, ASKED)
    assert len(seen) == 1
    np.testing.assert_array_equal(seen[0], ASKED, strict=True)


@for_each("game", [3, None, [0.0, 1.0], {frozenset({0}): 1.0}])
def test_a_game_that_cannot_be_called(game: Any) -> None:
    message = (
        r"a game must be a callable from boolean coalitions \(k, n\) to worths "
        rf"\(got {type(game).__name__}\)"
    )
    with pytest.raises(TypeError, match=message):
        evaluate(game, ASKED)


@for_each("answer", [["a", "b"], [[1, 2], [3]], object(), [1j, 2]])
def test_answers_that_are_no_numbers(answer: Any) -> None:
    message = (
        r"a game must return numbers, shape \(k,\) or \(k, q\) "
        rf"\(got {type(answer).__name__}: .+\)"
    )
    with pytest.raises(TypeError, match=message):
        evaluate(answering(answer), ASKED)


def test_a_tensor_is_an_answer_once_it_is_detached() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch = pytest.importorskip("torch")
    worths = torch.tensor([1.0, 2.0], requires_grad=True)
    assert evaluate(answering(worths.detach()), ASKED).tolist() == [1.0, 2.0]
    with pytest.raises(TypeError, match=r"must return numbers.*\(got Tensor: .*detach"):
        evaluate(answering(worths), ASKED)


@for_each("answer", [None, 1.0, [1.0], [1.0, 2.0, 3.0], np.zeros((3, 2)), np.zeros((2, 1, 1)), []])
def test_answers_of_another_shape(answer: Any) -> None:
    shape = ", ".join(map(str, np.shape(answer))) + ("," if np.ndim(answer) == 1 else "")
    message = (
        r"a game asked for 2 coalitions must return worths of shape \(2,\) or \(2, q\) "
        rf"\(got \({shape}\)\)"
    )
    with pytest.raises(ValueError, match=message):
        evaluate(answering(answer), ASKED)


@for_each(
    ("answer", "message"),
    [
        ([1.0, np.nan], r"worths must be finite \(got nan for coalition \{1\}\)"),
        ([np.inf, np.nan], r"worths must be finite \(got inf for coalition \{0, 2\}\)"),
        ([1.0, -np.inf], r"worths must be finite \(got -inf for coalition \{1\}\)"),
        (
            [[1.0, 2.0], [3.0, np.nan]],
            r"worths must be finite \(got \[ *3\. +nan\] for coalition \{1\}\)",
        ),
    ],
)
def test_worths_that_are_not_finite(answer: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        evaluate(answering(answer), ASKED)


def test_an_error_of_the_game_passes_through_with_a_note() -> None:
    def game(coalitions: NDArray[np.bool_]) -> NDArray[np.float64]:
        raise ZeroDivisionError("of the game's own")

    with pytest.raises(ZeroDivisionError, match="of the game's own") as raised:
        evaluate(game, ASKED)
    assert raised.value.__notes__ == [
        "raised by the game when asked for 2 coalition(s) of 3 nodes, the first being {0, 2}"
    ]
    with pytest.raises(ZeroDivisionError) as raised:
        evaluate(game, ASKED[:0])
    assert not hasattr(raised.value, "__notes__")


# packed coalitions, in calls of bounded size


@given(st.data())
def test_packed_coalitions_in_parts(data: st.DataObject) -> None:
    n = data.draw(st.sampled_from([1, 3, 64, 70]))
    coalitions = data.draw(coalition_matrices(n))
    cells = data.draw(st.integers(1, 3 * n))
    columns = data.draw(st.sampled_from([None, 2]))
    weights = np.arange(n, dtype=np.float64) + 1
    rows_seen: list[int] = []

    def game(asked: NDArray[np.bool_]) -> NDArray[np.float64]:
        rows_seen.append(len(asked))
        worths = asked @ weights
        return worths if columns is None else np.stack([worths, -worths], axis=1)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "CELLS_PER_CALL", cells)
        found = evaluate_masks(game, pack(coalitions), n)
    assert sum(rows_seen) == len(coalitions)
    assert all(0 < rows <= max(1, cells // n) for rows in rows_seen)
    assert len(rows_seen) == -(-len(coalitions) // max(1, cells // n))
    if len(coalitions):
        np.testing.assert_array_equal(found, game(coalitions), strict=True)
    else:
        assert found.shape == (0,)


def test_calls_must_agree_on_the_number_of_games(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protocol, "CELLS_PER_CALL", 3)
    answers = iter([np.zeros((1, 2)), np.zeros((1, 3))])
    message = (
        r"a game must return the same number of worths per coalition in every call "
        r"\(got \(2,\) and \(3,\)\)"
    )
    with pytest.raises(ValueError, match=message):
        evaluate_masks(lambda coalitions: next(answers), pack(ASKED), 3)


def test_packed_coalitions_are_checked_too() -> None:
    with pytest.raises(ValueError, match=r"worths must be finite \(got nan for coalition \{1\}\)"):
        evaluate_masks(answering([0.0, np.nan]), pack(ASKED), 3)
