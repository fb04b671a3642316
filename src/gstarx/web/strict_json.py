"""JSON as the standard has it, and no larger than is sensible."""

from __future__ import annotations

import json
from typing import Any

_DEEPEST = 20


def strict_json(text: bytes) -> Any:
    """Parse JSON in UTF-8; duplicate names, NaN and infinities are errors.

    Raises
    ------
    json.JSONDecodeError
        When it is anything else.

    Examples
    --------
    >>> strict_json(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> strict_json(b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    json.decoder.JSONDecodeError: NaN is no number of JSON: line 1 column 1 (char 0)
    """
    try:
        decoded = text.decode("utf-8")
        if _depth(decoded) > _DEEPEST:
            raise ValueError(f"it is nested deeper than {_DEEPEST}")
        return json.loads(decoded, parse_constant=_no_constant, object_pairs_hook=_distinct)
    except json.JSONDecodeError:
        raise
    except ValueError as error:
        raise json.JSONDecodeError(str(error), "", 0) from error


def _depth(text: str) -> int:
    """At least how deep brackets are nested; those inside strings count, which does no harm."""
    deepest = depth = 0
    for letter in text:
        if letter in "[{":
            depth += 1
            deepest = max(deepest, depth)
        elif letter in "]}":
            depth = max(0, depth - 1)
    return deepest


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")


def _distinct(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("an object has a name twice")
    return found
