"""``gstarx version``."""

from __future__ import annotations

import platform
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as version_of

from gstarx._version import __version__
from gstarx.cli.console import out, print_json, table
from gstarx.cli.options import AsJson, examples

EXAMPLES = examples("gstarx version", "gstarx version --json")

#: Packages whose versions can change a number or a picture.
_PACKAGES = ("torch", "torch_geometric", "numpy", "numba", "rdkit", "spacy", "transformers", "ray")


def version(as_json: AsJson = False) -> None:
    """The versions of GStarX and of the packages it depends on."""
    versions: dict[str, str | None] = {
        "gstarx": __version__,
        "python": platform.python_version(),
    }
    for package in _PACKAGES:
        try:
            versions[package] = version_of(package)
        except PackageNotFoundError:
            versions[package] = None
    if as_json:
        print_json(versions)
        return
    shown = table("", "", left=2)
    shown.show_header = False
    for name, number in versions.items():
        shown.add_row(name, number or "not installed")
    out().print(shown)
