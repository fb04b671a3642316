"""Lines between the server and its worker processes.

The server sends JSON. A worker answers with the number of the question, a word that says what kind
of answer it is, and JSON, which the server passes on without reading it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

#: Longest line that is read; larger than any answer within the limits.
LONGEST = 32 << 20


def as_json(content: Any) -> str:
    r"""Compact JSON in ASCII; numbers that JSON does not have are an error.

    >>> print(as_json({"a": [1, None], "b": "é"}))
    {"a":[1,null],"b":"\u00e9"}
    """
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class Answer:
    """One line of a worker."""

    number: int
    kind: str
    content: str

    @property
    def last(self) -> bool:
        """Whether nothing more is said about the question."""
        return self.kind in ("refused", "done", "stopped")

    def encoded(self) -> bytes:
        r"""As it is written.

        >>> Answer(3, "done", "{}").encoded()
        b'3 done {}\n'
        """
        return f"{self.number} {self.kind} {self.content}\n".encode("ascii")

    @classmethod
    def decoded(cls, line: bytes) -> Answer:
        r"""As it is read; ValueError for half a line.

        >>> Answer.decoded(b"3 done {}\n")
        Answer(number=3, kind='done', content='{}')
        """
        if not line.endswith(b"\n"):
            raise ValueError("the line is cut off")
        number, kind, content = line[:-1].decode("ascii").split(" ", 2)
        return cls(int(number), kind, content)
