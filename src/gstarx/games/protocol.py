"""The game protocol, and the evaluation of coalitions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from gstarx.graphs import Coalitions, Masks, unpack

#: Worths of k coalitions: shape (k,), or (k, q) for q games at once.
Worths = NDArray[np.float64]
#: A game: a callable from boolean coalitions (k, n) to worths (k,) or (k, q).
#: It is never called with the empty coalition, whose worth is 0 by definition.
Game = Callable[[Coalitions], Any]

#: Boolean cells handed to a game in one call, which bounds memory for millions of coalitions.
CELLS_PER_CALL = 1 << 25


#: Members of a coalition that are listed at most.
_LISTED = 12
#: How a note begins that names the coalitions a game was asked for.
_NOTE = "raised by the game when asked for"


def describe(
    coalition: NDArray[np.bool_], name: Callable[[int], str] = str, noun: str = "nodes"
) -> str:
    """A coalition as text: who is in it, or, if that is shorter, who is not.

    >>> describe(np.array([True, False, True]))
    '{0, 2}'
    >>> describe(np.arange(26) != 17)
    'all 26 nodes but {17}'
    """
    inside, outside = np.flatnonzero(coalition).tolist(), np.flatnonzero(~coalition).tolist()
    if len(inside) > max(_LISTED, len(outside)):
        everybody = f"all {len(coalition)} {noun}"
        return f"{everybody} but {_listed(outside, name, noun)}" if outside else everybody
    return _listed(inside, name, noun)


def coalition_phrase(
    coalition: NDArray[np.bool_], name: Callable[[int], str] = str, noun: str = "nodes"
) -> str:
    """A coalition as part of a sentence.

    >>> coalition_phrase(np.array([True, False, True]))
    'coalition {0, 2}'
    >>> coalition_phrase(np.arange(26) != 17)
    'the coalition of all 26 nodes but {17}'
    """
    described = describe(coalition, name, noun)
    return f"coalition {described}" if described[0] == "{" else f"the coalition of {described}"


def _listed(members: list[int], name: Callable[[int], str], noun: str) -> str:
    shown = ", ".join(map(name, members[:_LISTED]))
    return f"{{{shown}, ... {len(members)} {noun}}}" if len(members) > _LISTED else f"{{{shown}}}"


def forget_coalitions(error: Exception) -> None:
    """Remove the note of :func:`evaluate` from an error of which no coalition is the cause."""
    notes = getattr(error, "__notes__", [])
    notes[:] = [note for note in notes if not note.startswith(_NOTE)]


def evaluate(v: Game, coalitions: Coalitions) -> Worths:
    """Evaluate a game on coalitions (k, n), and check the worths that it returns.

    Raises ``TypeError`` or ``ValueError`` that names the first bad coalition if the worths are not
    numbers, not finite, or not one per coalition. An exception raised by the game itself passes
    through with a note that names the coalitions.
    """
    if not callable(v):
        raise TypeError(
            "a game must be a callable from boolean coalitions (k, n) to worths "
            f"(got {type(v).__name__})"
        )
    try:
        answer = v(coalitions)
    except Exception as error:
        # a game may be made of another one, which has named what it was asked for
        named = any(note.startswith(_NOTE) for note in getattr(error, "__notes__", ()))
        if len(coalitions) and not named:
            error.add_note(
                f"{_NOTE} {len(coalitions)} coalition(s) of "
                f"{coalitions.shape[1]} nodes, the first being {describe(coalitions[0])}"
            )
        raise
    try:
        worths = np.asarray(answer, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError) as error:
        raise TypeError(
            "a game must return numbers, shape (k,) or (k, q) "
            f"(got {type(answer).__name__}: {error})"
        ) from error
    if worths.ndim not in (1, 2) or len(worths) != len(coalitions):
        raise ValueError(
            f"a game asked for {len(coalitions)} coalitions must return worths of shape "
            f"({len(coalitions)},) or ({len(coalitions)}, q) (got {worths.shape})"
        )
    finite = np.isfinite(worths)
    if not finite.all():
        row = int(np.argmin(finite.reshape(len(worths), -1).all(axis=1)))
        raise ValueError(
            f"worths must be finite (got {worths[row]} for {coalition_phrase(coalitions[row])})"
        )
    return worths


def evaluate_masks(v: Game, masks: Masks, num_nodes: int) -> Worths:
    """Worths of packed coalitions (k, words), evaluated in calls of bounded size."""
    rows = max(1, CELLS_PER_CALL // max(1, num_nodes))
    parts = [
        evaluate(v, unpack(masks[first : first + rows], num_nodes))
        for first in range(0, len(masks), rows)
    ]
    if not parts:
        return np.zeros(0)
    for part in parts:
        if part.shape[1:] != parts[0].shape[1:]:
            raise ValueError(
                "a game must return the same number of worths per coalition in every call "
                f"(got {parts[0].shape[1:]} and {part.shape[1:]})"
            )
    return parts[0] if len(parts) == 1 else np.concatenate(parts)
