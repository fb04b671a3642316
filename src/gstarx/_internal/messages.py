"""Texts for people: quoted, truncated or escaped, and the nearest of the valid names."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Sequence
from typing import Any

#: Characters that change what a terminal shows elsewhere, such as the order of other characters,
#: and halves of characters, which cannot be encoded.
HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
#: What no XML document may hold, escaped or not.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def escaped(text: str) -> str:
    r"""Text from elsewhere for a terminal: control characters are shown, not obeyed.

    >>> print(escaped("\x1b[31mred\n\u202edet"))
    \x1b[31mred
    \u202edet
    """
    return HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def printable(text: str) -> str:
    r"""Replace every character that XML forbids with U+FFFD.

    >>> printable("a\x00b\n")
    'a�b\n'
    """
    return _FORBIDDEN.sub("\ufffd", text)


def encodable(value: Any) -> Any:
    r"""A value that can be written in UTF-8: in text, halves of characters become escapes.

    >>> encodable("a\ud800"), encodable(1)
    ('a\\ud800', 1)
    """
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


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


def in_one_line(error: Exception) -> str:
    """The class and message of an error, in one line."""
    shown = shortened(" ".join(str(error).split()), 400)
    return f"{type(error).__name__}: {shown}" if shown else type(error).__name__


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
