"""What every function of this room returns."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from gstarx._internal.atomic_write import write_whole
from gstarx._internal.optional import require

_SUFFIXES = (".svg", ".png")
#: The most pixels of a PNG, four bytes each: more is a slip of the scale.
_MOST_PIXELS = 1 << 27


@dataclass(frozen=True)
class Picture:
    """A picture as SVG, which notebooks show by themselves.

    Attributes
    ----------
    svg
        The whole SVG document. It has a light background of its own, a title and a description
        for those who do not see it, and nothing that is fetched or run.
    title
        Its title, unescaped.
    """

    svg: str
    title: str = ""

    @property
    def size(self) -> tuple[float, float]:
        """Width and height, in units of the SVG."""
        found = re.match(r'<svg [^>]*?\bwidth="([\d.]+)" height="([\d.]+)"', self.svg)
        if found is None:
            raise ValueError(f"svg must say its width and height (got {self.svg[:80]!r})")
        return float(found[1]), float(found[2])

    def png(self, scale: float = 2.0) -> bytes:
        """The picture as PNG.

        Parameters
        ----------
        scale
            Pixels for each unit of the SVG.

        Notes
        -----
        Needs ``pip install 'gstarx[drawing]'``. Letters are those of the system, and of a font that
        comes with RDKit where it has none.
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
        """Write the picture, whole or not at all.

        Parameters
        ----------
        path
            Where; the suffix ``.svg`` or ``.png`` says what. Missing directories are made.
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


def write_file(path: Path, content: bytes) -> None:
    """Write a file whole, or say why it cannot be written."""
    try:
        write_whole(path, content)
    except OSError as error:
        why = error.strerror or str(error)
        raise type(error)(error.errno, f"cannot write {path}: {why}") from error


@cache
def _fonts() -> dict[str, object]:
    """A font that is there for certain, for systems that have none."""
    folder = Path(require("rdkit.RDConfig", extra="drawing").RDDataDir) / "Fonts"
    files = [str(path) for path in (folder / "Telex-Regular.ttf",) if path.is_file()]
    return {"font_files": files, "sans_serif_family": "Telex"} if files else {}
