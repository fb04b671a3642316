"""The parser and the encoder that ``gstarx[text]`` installs, checked before they are read.

The two packages were not uploaded by the authors of the models. ``packaged_models.sha256`` has the
SHA-256 of every file of the two models in the format of ``sha256sum``; to check by hand, run
``sha256sum -c`` on it in the directory of installed packages. The weights of MiniLM,
``53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db``, are those that
sentence-transformers publishes as ``all-MiniLM-L6-v2``.
"""

from __future__ import annotations

import hashlib
from functools import cache
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path

from gstarx._internal.optional import require


def model_directory(package: str, directory: str) -> Path:
    """The directory of an installed package's model, after all its files have been checked.

    The package is not imported, because its code is not among the checked files.

    Parameters
    ----------
    package
        Name of the package to import.
    directory
        The directory of the model in the package.

    Raises
    ------
    ImportError
        When it is not installed.
    ValueError
        When a file is missing, unexpected, or not the known one; the message names it.

    Notes
    -----
    Files are checked once per process, which takes a third of a second for a hundred megabytes.
    """
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        require(package, extra="text")
        raise ImportError(f"{package} must be a package (got {spec})", name=package)
    place = Path(spec.submodule_search_locations[0]) / directory
    _check(place, f"{package}/{directory}/")
    return place


@cache
def _check(place: Path, prefix: str) -> None:
    package = prefix.partition("/")[0]
    digests = _known(prefix)
    present = {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}
    for name in sorted(digests.keys() ^ present):
        problem = "is missing" if name in digests else "does not belong there"
        raise ValueError(f"{place / name} {problem}: {_remedy(package)}")
    for name, expected in digests.items():
        with open(place / name, "rb") as file:
            got = hashlib.file_digest(file, "sha256").hexdigest()
        if got != expected:
            raise ValueError(
                f"{place / name} must have the SHA-256 {expected} (got {got}): {_remedy(package)}"
            )


def _known(prefix: str) -> dict[str, str]:
    """The SHA-256 of every file of a model, by its path in the model's directory."""
    text = (files("gstarx_bench.datasets") / "packaged_models.sha256").read_text(encoding="utf-8")
    lines = (line.split("  ", 1) for line in text.splitlines())
    return {path.removeprefix(prefix): sha for sha, path in lines if path.startswith(prefix)}


def _remedy(package: str) -> str:
    return (
        f"{package} is damaged, or not the package that GStarX was tested with; install it again, "
        "or pass a parser and an encoder of your own"
    )
