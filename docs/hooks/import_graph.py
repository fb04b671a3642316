"""Draws which packages of GStarX import which: ``python docs/hooks/import_graph.py``."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SOURCE = ROOT / "src"
PICTURE = ROOT / "docs" / "figures" / "imports.svg"

#: From the foundations up, as the architecture test has them.
ROWS = (
    ("gstarx.graphs",),
    ("gstarx.games",),
    ("gstarx.values", "gstarx.players"),
    ("gstarx.gnn",),
    ("gstarx.metrics", "gstarx.datasets"),
    ("gstarx.models", "gstarx.drawing"),
    ("gstarx.explanation",),
    ("gstarx.explainers", "gstarx.integrations"),
    ("gstarx.evaluation", "gstarx.testing"),
    ("gstarx.cli", "gstarx_bench.models"),
    ("gstarx_bench.explainers", "gstarx_bench.datasets"),
    ("gstarx_bench.summary",),
    ("gstarx_bench.report", "gstarx_bench.runs"),
    ("gstarx_explorer", "gstarx_bench.cli"),
)
_WIDTH, _HEIGHT, _GAP, _STEP = 196, 34, 110, 74


def edges() -> set[tuple[str, str]]:
    """Pairs of packages of which the first imports the second."""
    known = {name for row in ROWS for name in row}
    found = set()
    for path in SOURCE.rglob("*.py"):
        own = package_of(list(path.relative_to(SOURCE).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and node.module:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
            for name in names:
                found.add((own, package_of(name.split("."))))
    return {(a, b) for a, b in found if a in known and b in known and a != b}


def package_of(parts: list[str]) -> str:
    """The package that a dotted name belongs to; the explorer is one."""
    return parts[0] if parts[0] == "gstarx_explorer" else ".".join(parts[:2])


def reduced(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the pairs that follow from others, which would only clutter the picture."""
    after: dict[str, set[str]] = {}
    for a, b in pairs:
        after.setdefault(a, set()).add(b)

    def reach(start: str) -> set[str]:
        found: set[str] = set()
        stack = list(after.get(start, ()))
        while stack:
            at = stack.pop()
            if at not in found:
                found.add(at)
                stack += after.get(at, ())
        return found

    return {(a, b) for a, b in pairs if not any(b in reach(c) for c in after[a] if c != b)}


def places() -> dict[str, tuple[float, float]]:
    """The middle of every package."""
    widest = max(map(len, ROWS))
    width = widest * _WIDTH + (widest - 1) * _GAP
    found = {}
    for at, row in enumerate(reversed(ROWS)):
        own = len(row) * _WIDTH + (len(row) - 1) * _GAP
        for place, name in enumerate(row):
            x = (width - own) / 2 + place * (_WIDTH + _GAP) + _WIDTH / 2
            found[name] = (x + 20, at * _STEP + _HEIGHT / 2 + 16)
    return found


def picture() -> str:
    """The picture as SVG."""
    where = places()
    width = max(x for x, _ in where.values()) + _WIDTH / 2 + 20
    height = max(y for _, y in where.values()) + _HEIGHT / 2 + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" font-family="sans-serif">',
        "<title>Packages of GStarX: an arrow points to what is imported</title>",
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#5b6470"/></marker></defs>',
    ]
    for a, b in sorted(reduced(edges())):
        (x1, y1), (x2, y2) = where[a], where[b]
        parts.append(
            f'<path d="M{x1:g} {y1 + _HEIGHT / 2:g}C{x1:g} {(y1 + y2) / 2:g} {x2:g} '
            f'{(y1 + y2) / 2:g} {x2:g} {y2 - _HEIGHT / 2 - 2:g}" fill="none" stroke="#5b6470" '
            'stroke-width="1.4" marker-end="url(#tip)"/>'
        )
    for name, (x, y) in where.items():
        parts += [
            f'<rect x="{x - _WIDTH / 2:g}" y="{y - _HEIGHT / 2:g}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" rx="7" fill="#eef2fb" stroke="#3f51b5" stroke-width="1.2"/>',
            f'<text x="{x:g}" y="{y + 5:g}" text-anchor="middle" font-size="15" '
            f'fill="#1c2333">{name}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
