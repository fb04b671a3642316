"""Text as XML documents can hold it."""

from __future__ import annotations

import re

# what no XML document may hold, escaped or not
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    r"""Replace every character that XML forbids with U+FFFD.

    >>> printable("a\x00b\n")
    'a�b\n'
    """
    return _FORBIDDEN.sub("\ufffd", text)
