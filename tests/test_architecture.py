"""Imports run one way, from package to package, and through the interface of each package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

import gstarx

SOURCE = Path(gstarx.__file__).parent

#: From the bottom up: a package imports from those above it in this list. Packages on one line do
#: not import each other.
LAYERS = (
    ("_internal", "_version", "registry"),
    ("graphs",),
    ("games",),
    ("values",),
    ("players",),
    ("gnn",),
    ("metrics",),
    ("models",),
    ("datasets",),
    ("drawing",),
    ("explainers",),
    ("integrations",),
    ("evaluation", "testing"),
    ("report",),
    ("runs",),
    ("web",),
    ("cli",),
    ("__main__",),
)
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}

#: Modules that other packages import directly, because loading them takes packages or time that
#: the rest does not need.
ON_DEMAND = {"gstarx.web.serving", "gstarx.datasets.sentences"}

#: The mathematics runs where no deep-learning framework is installed.
WITHOUT_TORCH = {"graphs", "games", "values"}
TORCH = {"torch", "torch_geometric"}


def imported(tree: ast.AST, package: str) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a module imports, wherever in the module it does so.

    ``from a import b`` gives ``a.b``, because ``b`` may be a module. ``package`` is what relative
    imports are relative to.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                parents = package.split(".")
                kept = parents[: len(parents) - node.level + 1]
                base = ".".join([*kept, base] if base else kept)
            for alias in node.names:
                yield node.lineno, f"{base}.{alias.name}"
        elif isinstance(node, ast.Call) and node.args:
            function = node.func
            name = function.attr if isinstance(function, ast.Attribute) else None
            name = function.id if isinstance(function, ast.Name) else name
            target = node.args[0]
            if (
                name in {"import_module", "__import__"}
                and isinstance(target, ast.Constant)
                and isinstance(target.value, str)
            ):
                yield node.lineno, target.value


def violations(source: str, path: str) -> list[str]:
    """What the module at ``path`` (below the package) imports against the rules."""
    parts = Path(path).with_suffix("").parts
    own, package = parts[0], ".".join(("gstarx", *parts[:-1]))
    found = []
    for line, name in imported(ast.parse(source), package):
        top, _, rest = name.partition(".")
        if top in TORCH and own in WITHOUT_TORCH:
            found.append(f"{path}:{line}: {own} must run without {top}")
        if top == "reproduction":
            found.append(f"{path}:{line}: the package must run without {top}, which is beside it")
        if top != "gstarx":
            continue
        target = rest.partition(".")[0]
        if target not in LAYER:
            found.append(f"{path}:{line}: import from a package, not from gstarx itself ({name})")
        elif target != own and LAYER[target] >= LAYER[own]:
            found.append(f"{path}:{line}: {own} must not import {target}, which is not below it")
        elif target != own and not through_interface(rest.split(".")):
            found.append(f"{path}:{line}: import from gstarx.{target}, its interface ({name})")
    found += [
        f"{path}:{node.lineno}: sys.modules hides an import"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.modules"
    ]
    return found


def through_interface(parts: list[str]) -> bool:
    """Whether what is imported from another package comes from its ``__init__``."""
    package, *inside = parts
    if package == "_internal" or f"gstarx.{'.'.join(parts[:2])}" in ON_DEMAND:
        return True
    return len(inside) < 2


def modules() -> list[str]:
    """Every module of the package except its ``__init__``, which only points at the packages."""
    paths = (path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
    return sorted(path for path in paths if path != "__init__.py")


def test_every_module_is_in_a_layer() -> None:
    unplaced = {path for path in modules() if Path(path).with_suffix("").parts[0] not in LAYER}
    assert not unplaced, "give these a place in LAYERS"


@pytest.mark.parametrize("path", modules())
def test_imports_run_one_way(path: str) -> None:
    assert violations((SOURCE / path).read_text(encoding="utf-8"), path) == []


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("graphs/a.py", "from gstarx.values import hn_value"),
        ("graphs/a.py", "from gstarx import games"),
        ("graphs/a.py", "import gstarx.games.table as table"),
        ("graphs/a.py", "from ..games import table"),
        ("graphs/__init__.py", "from .. import values"),
        ("values/hn/a.py", "from ...gnn.game import GNNGame"),
        ("games/a.py", "def late():\n    from gstarx.values import hn_value"),
        ("games/a.py", "from importlib import import_module\nimport_module('gstarx.values')"),
        ("games/a.py", "import importlib\nimportlib.import_module('gstarx.values')"),
        ("games/a.py", "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch"),
        ("values/a.py", "from gstarx.graphs.bitmasks import pack"),
        ("cli/a.py", "import sys\nsys.modules['gstarx']"),
        ("values/a.py", "import torch.nn"),
        ("values/a.py", "from torch_geometric.data import Data"),
        ("values/a.py", "from gstarx import hn_value"),
        ("values/a.py", "import gstarx"),
        ("datasets/a.py", "from gstarx.explainers import create"),
        ("web/a.py", "from gstarx.cli import networks"),
        ("runs/a.py", "import gstarx.__main__"),
        ("cli/a.py", "from reproduction.page import write_page"),
    ],
)
def test_a_violation_is_caught(path: str, source: str) -> None:
    assert len(violations(source, path)) == 1


@pytest.mark.parametrize(
    ("path", "source"),
    [
        ("graphs/a.py", "import numpy\nfrom gstarx.graphs.compilation import compiled"),
        ("values/hn/a.py", "from . import b\nfrom ..allocation import Allocation"),
        ("values/a.py", "from gstarx.graphs import CommunicationGraph\nfrom gstarx import games"),
        ("gnn/a.py", "import torch\nfrom gstarx.values import hn_value"),
        (
            "__main__.py",
            "from gstarx.cli import main\nfrom gstarx.graphs import CommunicationGraph",
        ),
        ("graphs/a.py", "torch = 'a word'\nprint('import torch')"),
    ],
)
def test_a_proper_import_is_let_through(path: str, source: str) -> None:
    assert violations(source, path) == []


def test_the_explorers_workers_do_without_the_command_line() -> None:
    """What is sent to a worker process is plain data: nothing of ``gstarx.cli`` is unpickled."""
    import pickle

    from gstarx.cli.serve_command import served_models
    from gstarx.web import ServedRun, Settings

    models = served_models(["nitro", "my_module:factory"], None, "raw")
    content = pickle.dumps(Settings(models=models, run=ServedRun(Path("store"))))
    assert b"gstarx.web.settings" in content
    assert b"gstarx.cli" not in content


def test_the_picture_of_the_imports_is_up_to_date() -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    path = SOURCE.parent.parent / "docs" / "hooks" / "import_graph.py"
    spec = spec_from_file_location("import_graph", path)
    assert spec is not None
    assert spec.loader is not None
    drawing = module_from_spec(spec)
    spec.loader.exec_module(drawing)
    assert drawing.PICTURE.read_text(encoding="utf-8") == drawing.picture(), "draw it again"
    drawn = {name for row in drawing.ROWS for name in row}
    apart = {"_internal", "_version", "registry", "__main__"}
    assert drawn == set(LAYER) - apart
