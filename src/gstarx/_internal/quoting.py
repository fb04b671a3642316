"""Quote values in messages, truncated: user input may be megabytes long."""

from __future__ import annotations

from collections.abc import Sequence


def quoted(value: object, most: int = 60) -> str:
    """The ``repr`` of a value, truncated to ``most`` characters.

    >>> quoted("CCO"), quoted(7)
    ("'CCO'", '7')
    >>> quoted("C" * 1000, 5)
    "'CCCCC'... (1,000 characters)"
    """
    text = value if isinstance(value, str) else repr(value)
    shown = repr(text[:most]) if isinstance(value, str) else text[:most]
    return shown if len(text) <= most else f"{shown}... ({len(text):,} characters)"


def listed(names: Sequence[str], most: int = 8) -> str:
    """The first names of a list, each truncated.

    >>> listed(["id", "name"]), listed([])
    ('id, name', 'none')
    >>> listed(list("abcdef"), 2)
    'a, b, ... (6 in all)'
    """
    shown = [name if len(name) <= 60 else f"{name[:60]}..." for name in names[:most]]
    if len(names) > most:
        shown.append(f"... ({len(names):,} in all)")
    return ", ".join(shown) or "none"


def shortened(message: str, most: int = 2000) -> str:
    """A long message without its middle: the problem comes first, the valid values last.

    >>> shortened("a short one")
    'a short one'
    >>> len(shortened("x" * 10**6)) < 2100
    True
    """
    if len(message) <= most:
        return message
    left_out = f" ... ({len(message) - most:,} characters left out) ... "
    return message[: most * 3 // 4] + left_out + message[-most // 4 :]
