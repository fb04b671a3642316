"""What goes wrong, as users are told: a code for programs, and words that say what is valid."""

from __future__ import annotations

import os
import re
from dataclasses import asdict, dataclass
from typing import Any

#: Absolute paths, as operating systems write them.
_PATH = re.compile(r"(?<![\w/\\])(?:/[^\s/'\":,;]+){2,}/?|\b[A-Za-z]:\\[^\s'\",;]+")
_LONGEST = 400

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
    words = " ".join(str(error)[: 10 * _LONGEST].split())
    words = _PATH.sub(_without_path, words)
    return words if len(words) <= _LONGEST else words[: _LONGEST - 1] + "…"


def _without_path(found: re.Match[str]) -> str:
    # bonds of a SMILES have slashes too, but there is no such directory
    first = found[0].split("/")[1] if found[0].startswith("/") else None
    return found[0] if first is not None and not os.path.isdir(f"/{first}") else "(a file)"
