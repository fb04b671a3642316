"""The style and the script of a page, and their digests for its content security policy."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from markupsafe import Markup


def assets(*scripts: str) -> dict[str, object]:
    """The style, the scripts as one, and the digests by which the page allows them."""
    folder = files("gstarx.report")
    texts = {
        "style": folder.joinpath("report.css").read_text(encoding="utf-8"),
        "script": "".join(
            folder.joinpath(name).read_text(encoding="utf-8") for name in ("tables.js", *scripts)
        ),
    }
    digests = {part: _digest(text) for part, text in texts.items()}
    return {**{part: Markup(text) for part, text in texts.items()}, "digests": digests}


def _digest(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
