"""Answers and errors that pass between browsers, the server and its worker processes.

The server sends JSON to a worker, one line per query. A worker answers with the number of the
query, the kind of the answer, and JSON, which the server passes on without parsing it.
"""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, dataclass
from typing import Any

#: Longest line that is read; larger than any answer within the limits.
MAX_LINE = 32 << 20
_MAX_MESSAGE = 400
#: Absolute paths on POSIX and Windows.
_PATH = re.compile(r"(?<![\w/\\])(?:/[^\s/'\":,;]+){2,}/?|\b[A-Za-z]:\\[^\s'\",;]+")

#: The HTTP status of each error code; 422 for all others.
STATUS = {
    "unauthorized": 401,
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
    r"""Compact JSON in ASCII; NaN and infinity are an error.

    >>> print(as_json({"a": [1, None], "b": "é"}))
    {"a":[1,null],"b":"\u00e9"}
    """
    return json.dumps(content, allow_nan=False, separators=(",", ":"))


@dataclass(frozen=True)
class Answer:
    """One line from a worker."""

    number: int
    kind: str
    content: str

    @property
    def last(self) -> bool:
        """Whether this is the final answer to the query."""
        return self.kind in ("refused", "done", "stopped")

    def encode(self) -> bytes:
        r"""The line to write.

        >>> Answer(3, "done", "{}").encode()
        b'3 done {}\n'
        """
        return f"{self.number} {self.kind} {self.content}\n".encode("ascii")

    @classmethod
    def decode(cls, line: bytes) -> Answer:
        r"""Parse a line; ValueError if it is incomplete.

        >>> Answer.decode(b"3 done {}\n")
        Answer(number=3, kind='done', content='{}')
        """
        if not line.endswith(b"\n"):
            raise ValueError("the line is incomplete")
        number, kind, content = line[:-1].decode("ascii").split(" ", 2)
        return cls(int(number), kind, content)


@dataclass(frozen=True)
class Problem:
    """An error as the API returns it.

    Attributes
    ----------
    code
        Identifies the error for programs.
    message
        Explains it to people: what was received and what is valid.
    field
        The field of the request that it is about.
    """

    code: str
    message: str
    field: str | None = None

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS.get(self.code, 422)

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields."""
        return asdict(self)


class Refused(Exception):
    """A request that cannot be answered, with the reason."""

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(message)
        self.problem = Problem(code, message, field)


def public_message(error: BaseException | str) -> str:
    """The message of an error or warning in one line, without the paths of this machine.

    >>> public_message(ValueError("no file at /etc/hosts, sorry"))
    'no file at (a file), sorry'
    >>> public_message(ValueError("this is no molecule: 'F/C=C/F'"))
    "this is no molecule: 'F/C=C/F'"
    """
    message = " ".join(str(error)[: 10 * _MAX_MESSAGE].split())
    message = _PATH.sub(_hide_path, message)
    return message if len(message) <= _MAX_MESSAGE else message[: _MAX_MESSAGE - 1] + "…"


def _hide_path(match: re.Match[str]) -> str:
    # bonds of a SMILES have slashes too, but there is no such directory
    first = match[0].split("/")[1] if match[0].startswith("/") else None
    return match[0] if first is not None and not os.path.isdir(f"/{first}") else "(a file)"
