"""Imports run one way, from package to package, and through the interface of each package."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import gstarx
from tests.pairs import for_each

SOURCE = Path(gstarx.__file__).parent.parent

#: From the bottom up: a package imports from those above it in this list. Packages on one line do
#: not import each other. The library comes first, so that it imports neither of its siblings.
LAYERS = (
    ("gstarx._internal", "gstarx._version", "gstarx.registry"),
    ("gstarx.graphs",),
    ("gstarx.games",),
    ("gstarx.values",),
    ("gstarx.players",),
    ("gstarx.gnn",),
    ("gstarx.metrics",),
    ("gstarx.models",),
    ("gstarx.datasets",),
    ("gstarx.drawing",),
    ("gstarx.explanation",),
    ("gstarx.explainers",),
    ("gstarx.integrations",),
    ("gstarx.evaluation", "gstarx.testing"),
    ("gstarx.cli",),
    ("gstarx.__main__",),
    ("gstarx_bench.plugin",),
    ("gstarx_bench.models",),
    ("gstarx_bench.datasets",),
    ("gstarx_bench.explainers",),
    ("gstarx_bench.summary",),
    ("gstarx_bench.report",),
    ("gstarx_bench.runs",),
    ("gstarx_bench.cli",),
    ("gstarx_explorer",),
)
LAYER = {name: layer for layer, names in enumerate(LAYERS) for name in names}

#: Modules that other packages import directly: those that explainers and commands are made with,
#: and those whose loading takes packages or time that the rest does not need.
DIRECT = {
    "gstarx.cli",
    "gstarx.explainers.base",
    "gstarx.explainers.edge_masks",
    "gstarx_bench.datasets.sentences",
}

#: The mathematics runs where no deep-learning framework is installed.
WITHOUT_TORCH = {"gstarx.graphs", "gstarx.games", "gstarx.values"}
TORCH = {"torch", "torch_geometric"}
ROOTS = {"gstarx", "gstarx_bench", "gstarx_explorer"}


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


def package_of(parts: list[str]) -> str:
    """The package that a dotted name belongs to; the explorer is one."""
    return parts[0] if parts[0] == "gstarx_explorer" else ".".join(parts[:2])


def violations(source: str, path: str) -> list[str]:
    """What the module at ``path`` (below ``src``) imports against the rules."""
    parts = list(Path(path).with_suffix("").parts)
    own, package = package_of(parts), ".".join(parts[:-1])
    found = []
    for line, name in imported(ast.parse(source), package):
        names = name.split(".")
        if names[0] in TORCH and own in WITHOUT_TORCH:
            found.append(f"{path}:{line}: {own} must run without {names[0]}")
        if names[0] == "reproduction":
            found.append(f"{path}:{line}: the package must run without what is beside it ({name})")
        if names[0] not in ROOTS:
            continue
        target = package_of(names)
        if target not in LAYER:
            found.append(f"{path}:{line}: import from a package, not from its root ({name})")
        elif target != own and LAYER[target] >= LAYER[own]:
            found.append(f"{path}:{line}: {own} must not import {target}, which is not below it")
        elif target != own and not through_interface(names):
            found.append(f"{path}:{line}: import from {target}, its interface ({name})")
    found += [
        f"{path}:{node.lineno}: sys.modules hides an import"
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute) and ast.unparse(node) == "sys.modules"
    ]
    return found


def through_interface(parts: list[str]) -> bool:
    """Whether what is imported from another package comes from its ``__init__``."""
    places = {".".join(parts[:2]), ".".join(parts[:3])}
    return "_internal" in parts or bool(places & DIRECT) or len(parts) < 4


def modules() -> list[str]:
    """Every module except the ``__init__`` of the three, which only point at their packages."""
    paths = (path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py"))
    return sorted(path for path in paths if path.count("/") > 1 or "__init__" not in path)


def test_every_module_is_in_a_layer() -> None:
    found = {path: package_of(list(Path(path).with_suffix("").parts)) for path in modules()}
    unplaced = {path for path, package in found.items() if package not in LAYER}
    assert not unplaced, "give these a place in LAYERS"


def test_imports_run_one_way() -> None:
    found = [
        violation
        for path in modules()
        for violation in violations((SOURCE / path).read_text(encoding="utf-8"), path)
    ]
    assert not found, "\n".join(found)


@for_each(
    ("path", "source"),
    [
        ("gstarx/graphs/a.py", "from gstarx.values import hn_value"),
        ("gstarx/graphs/a.py", "from gstarx import games"),
        ("gstarx/graphs/a.py", "import gstarx.games.table as table"),
        ("gstarx/graphs/a.py", "from ..games import table"),
        ("gstarx/graphs/__init__.py", "from .. import values"),
        ("gstarx/values/hn/a.py", "from ...gnn.game import GNNGame"),
        ("gstarx/games/a.py", "def late():\n    from gstarx.values import hn_value"),
        (
            "gstarx/games/a.py",
            "from importlib import import_module\nimport_module('gstarx.values')",
        ),
        ("gstarx/games/a.py", "import importlib\nimportlib.import_module('gstarx.values')"),
        (
            "gstarx/games/a.py",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import torch",
        ),
        ("gstarx/values/a.py", "from gstarx.graphs.bitmasks import pack"),
        ("gstarx/cli/a.py", "import sys\nsys.modules['gstarx']"),
        ("gstarx/values/a.py", "import torch.nn"),
        ("gstarx/values/a.py", "from torch_geometric.data import Data"),
        ("gstarx/values/a.py", "from gstarx import hn_value"),
        ("gstarx/values/a.py", "import gstarx"),
        ("gstarx/datasets/a.py", "from gstarx.explainers import create"),
        ("gstarx/cli/a.py", "from gstarx_explorer import Settings"),
        ("gstarx/datasets/a.py", "from gstarx_bench.datasets import from_table"),
        ("gstarx_bench/runs/a.py", "from gstarx_explorer import Settings"),
        ("gstarx/cli/a.py", "from reproduction.page import write_page"),
    ],
)
def test_a_violation_is_caught(path: str, source: str) -> None:
    assert len(violations(source, path)) == 1


@for_each(
    ("path", "source"),
    [
        ("gstarx/graphs/a.py", "import numpy\nfrom gstarx.graphs.compilation import compiled"),
        ("gstarx/values/hn/a.py", "from . import b\nfrom ..allocation import Allocation"),
        (
            "gstarx/values/a.py",
            "from gstarx.graphs import CommunicationGraph\nfrom gstarx import games",
        ),
        ("gstarx/gnn/a.py", "import torch\nfrom gstarx.values import hn_value"),
        (
            "gstarx/__main__.py",
            "from gstarx.cli import main\nfrom gstarx.graphs import CommunicationGraph",
        ),
        ("gstarx/graphs/a.py", "torch = 'a word'\nprint('import torch')"),
    ],
)
def test_a_proper_import_is_let_through(path: str, source: str) -> None:
    assert violations(source, path) == []


def test_the_explorers_workers_do_without_the_command_line() -> None:
    """What is sent to a worker process is plain data: nothing of ``gstarx.cli`` is unpickled."""
    import pickle

    from gstarx_explorer import ServedRun, Settings
    from gstarx_explorer.serve_command import served_models

    models = served_models(["nitro", "my_module:factory"], None, "raw")
    content = pickle.dumps(Settings(models=models, run=ServedRun(Path("store"))))
    assert b"gstarx_explorer.settings" in content
    assert b"gstarx.cli" not in content


def test_the_picture_of_the_imports_is_up_to_date() -> None:
    from importlib.util import module_from_spec, spec_from_file_location

    path = SOURCE.parent / "docs" / "hooks" / "import_graph.py"
    spec = spec_from_file_location("import_graph", path)
    assert spec is not None
    assert spec.loader is not None
    drawing = module_from_spec(spec)
    spec.loader.exec_module(drawing)
    assert drawing.PICTURE.read_text(encoding="utf-8") == drawing.picture(), "draw it again"
    drawn = {name for row in drawing.ROWS for name in row}
    apart = {f"gstarx.{name}" for name in ("_internal", "_version", "registry", "__main__")}
    apart |= {"gstarx_bench.plugin"}
    assert drawn == set(LAYER) - apart
