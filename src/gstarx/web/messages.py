"""What passes between browsers, the server and its worker processes.

The server sends workers JSON, a line each. A worker replies with the number of the query, a word
that says what kind of reply it is, and JSON, which the server passes on without parsing it. Errors
have a code for programs and a message for people.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from typing import Any

#: Longest line that is read; larger than any answer within the limits.
LONGEST = 32 << 20
#: Absolute paths, as operating systems write them.
_PATH = re.compile(r"(?<![\w/\\])(?:/[^\s/'\":,;]+){2,}/?|\b[A-Za-z]:\\[^\s'\",;]+")
_LONGEST_MESSAGE = 400

#: The HTTP status of each code; 422 where nothing is said.
STATUS = {
    "unauthorised": 401,
    "forbidden": 403,
    "not_found": 404,
    "gone": 404,
    "no_run": 404,
    "unknown_model": 404,
    "not_allowed": 405,
    "too_large": 413,
    "not_json": 415,
    "busy": 429,
    "unavailable": 503,
}


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


@dataclass(frozen=True)
class Problem:
    """An error as the API says it.

    Attributes
    ----------
    code
        For programs.
    message
        For people: what was got and what is valid.
    field
        Where in the request.
    """

    code: str
    message: str
    field: str | None = None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS.get(self.code, 422)

    def as_dict(self) -> dict[str, Any]:
        """As it goes over the wire."""
        return asdict(self)


class Refused(Exception):
    """A request that cannot be answered, with the reason."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(code, message, field)


def said(error: BaseException) -> str:
    """What an error says, in one line and without the paths of this machine.

    >>> said(ValueError("no file at /etc/hosts, sorry"))
    'no file at (a file), sorry'
    >>> said(ValueError("this is no molecule: 'F/C=C/F'"))
    "this is no molecule: 'F/C=C/F'"
    """
    words = " ".join(str(error)[: 10 * _LONGEST_MESSAGE].split())
    words = _PATH.sub(_without_path, words)
    return words if len(words) <= _LONGEST_MESSAGE else words[: _LONGEST_MESSAGE - 1] + "…"


def _without_path(found: re.Match[str]) -> str:
    # bonds of a SMILES have slashes too, but there is no such directory
    first = found[0].split("/")[1] if found[0].startswith("/") else None
    return found[0] if first is not None and not os.path.isdir(f"/{first}") else "(a file)"
