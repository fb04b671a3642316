"""JSON and errors, as browsers get them."""

from __future__ import annotations

import json
import os
import re
from typing import Any

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


class Refused(Exception):
    """A request that cannot be answered, or a job that failed, as the API returns it.

    ``code`` identifies the error for programs. The message explains it to people: what was received
    and what is valid. ``field`` is the field of the request that it is about.
    """

    def __init__(self, code: str, message: str, field: str | None = None) -> None:
        super().__init__(code, message, field)
        self.code, self.message, self.field = code, message, field

    def __str__(self) -> str:
        return self.message

    @property
    def status(self) -> int:
        """The HTTP status."""
        return STATUS.get(self.code, 422)

    def as_dict(self) -> dict[str, Any]:
        """The JSON fields."""
        return {"code": self.code, "message": self.message, "field": self.field}


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
