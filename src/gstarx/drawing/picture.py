"""The picture that every drawing function returns."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from gstarx._internal.atomic_write import write_atomically
from gstarx._internal.optional import require

_SUFFIXES = (".svg", ".png")
#: The most pixels of a PNG, four bytes each: more is a mistake in ``scale``.
_MOST_PIXELS = 1 << 27


@dataclass(frozen=True)
class Picture:
    """A picture as SVG, which notebooks display automatically.

    Attributes
    ----------
    svg
        The whole SVG document. It has its own light background, a title and a description for
        screen readers, and neither external resources nor scripts.
    title
        Its title, unescaped.
    """

    svg: str
    title: str = ""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, in units of the SVG."""
        match = re.match(r'<svg [^>]*?\bwidth="([\d.]+)" height="([\d.]+)"', self.svg)
        if match is None:
            raise ValueError(f"svg must have a width and height (got {self.svg[:80]!r})")
        return float(match[1]), float(match[2])

    def png(self, scale: float = 2.0) -> bytes:
        """The picture as PNG.

        Parameters
        ----------
        scale
            Pixels for each unit of the SVG.

        Notes
        -----
        Needs ``pip install 'gstarx[drawing]'``. The font is the system's, or one that comes with
        RDKit if the system has none.
        """
        if not scale > 0:
            raise ValueError(f"scale must be a number above 0 (got {scale!r})")
        width, height = self.size
        if not width * height * scale**2 <= _MOST_PIXELS:
            most = (_MOST_PIXELS / (width * height)) ** 0.5
            raise ValueError(f"scale must be at most {most:.3g} for this picture (got {scale!r})")
        resvg = require("resvg_py", extra="drawing")
        made: bytes = resvg.svg_to_bytes(svg_string=self.svg, zoom=float(scale), **_fonts())
        return bytes(made)

    def save(self, path: str | os.PathLike[str], *, scale: float = 2.0) -> Path:
        """Write the picture to a file, completely or not at all.

        Parameters
        ----------
        path
            The file; its suffix ``.svg`` or ``.png`` sets the format. Missing directories are
            created.
        scale
            Pixels of a PNG for each unit of the SVG.

        Returns
        -------
        Path
            The file.
        """
        target = Path(path)
        if target.suffix.lower() not in _SUFFIXES:
            valid = " or ".join(map(repr, _SUFFIXES))
            raise ValueError(f"the name of a picture must end in {valid} (got {target.name!r})")
        vector = target.suffix.lower() == ".svg"
        content = self.svg.encode() if vector else self.png(scale)
        write_file(target, content)
        return target

    def _repr_svg_(self) -> str:
        return self.svg

    def _repr_html_(self) -> str:
        return self.svg

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        """The picture for notebooks, and its title where no picture can be shown."""
        return {"image/svg+xml": self.svg, "text/plain": self.title or "Picture"}


def write_file(path: Path, content: bytes) -> None:
    """Write a file atomically, or raise an error that says why it cannot be written."""
    try:
        write_atomically(path, content)
    except OSError as error:
        why = error.strerror or str(error)
        raise type(error)(error.errno, f"cannot write {path}: {why}") from error


@cache
def _fonts() -> dict[str, object]:
    """A font that is always available, for systems that have none."""
    folder = Path(require("rdkit.RDConfig", extra="drawing").RDDataDir) / "Fonts"
    files = [str(path) for path in (folder / "Telex-Regular.ttf",) if path.is_file()]
    return {"font_files": files, "sans_serif_family": "Telex"} if files else {}
