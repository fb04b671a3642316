"""Error messages for unknown names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

from gstarx._internal.quoting import quoted


def unknown(what: str, got: str, valid: Iterable[str]) -> str:
    """A message that names the nearest valid name and lists all of them.

    >>> unknown("dataset", "mutga", ("mutag", "bbbp"))
    "there is no dataset 'mutga'; did you mean 'mutag'? Valid are mutag, bbbp"
    >>> unknown("dataset", "cora", ())
    "there is no dataset 'cora'. Valid are none"
    """
    listed = list(valid)
    near = difflib.get_close_matches(got[:100].lower(), listed, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"there is no {what} {quoted(got)}{hint} Valid are {', '.join(listed) or 'none'}"
