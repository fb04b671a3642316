"""Draws which packages of GStarX import which: ``python docs/hooks/import_graph.py``."""

from __future__ import annotations

import ast
import itertools
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
    ("gstarx.metrics",),
    ("gstarx.drawing", "gstarx.models"),
    ("gstarx.explanation", "gstarx.datasets", "gstarx.integrations"),
    ("gstarx.explainers", "gstarx_bench.summary", "gstarx_bench.datasets", "gstarx_bench.models"),
    ("gstarx.evaluation", "gstarx.testing", "gstarx_bench.explainers"),
    ("gstarx.cli", "gstarx_bench.report", "gstarx_bench.runs"),
    ("gstarx_explorer", "gstarx_bench.cli"),
)
_WIDTH, _HEIGHT, _GAP, _STEP = 196, 34, 30, 84
#: How much room an arrow takes that passes through a row.
_PASSING = 14


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


Node = str | tuple[str, str, int]
"""A package, or the place where an arrow from one to another passes through a row."""


def layout() -> tuple[dict[Node, tuple[float, float]], list[list[Node]]]:
    """The middle of every package, and the arrows as the places that they lead through."""
    rows: list[list[Node]] = [list(row) for row in ROWS]
    row_of = {name: at for at, row in enumerate(ROWS) for name in row}
    arrows: list[list[Node]] = []
    for a, b in sorted(reduced(edges())):
        arrow: list[Node] = [a]
        for at in range(row_of[a] - 1, row_of[b], -1):
            arrow.append((a, b, at))
            rows[at].append((a, b, at))
        arrows.append([*arrow, b])
    beside: dict[Node, list[Node]] = {}
    for arrow in arrows:
        for one, other in itertools.pairwise(arrow):
            beside.setdefault(one, []).append(other)
            beside.setdefault(other, []).append(one)
    where = {node: x for row in rows for node, x in _spread(row).items()}
    for sweep in range(40):
        # every row in the order of what its packages are linked to, up and down in turn
        for row in rows if sweep % 2 else reversed(rows):
            mean = {n: sum(where[o] for o in beside[n]) / len(beside[n]) for n in row}
            row.sort(key=mean.__getitem__)
            where |= _spread(row)
    left = min(x - _room(node) / 2 for node, x in where.items()) - 20
    height = {node: len(rows) - 1 - at for at, row in enumerate(rows) for node in row}
    middle = _HEIGHT / 2 + 16
    return {n: (x - left, height[n] * _STEP + middle) for n, x in where.items()}, arrows


def _room(node: Node) -> int:
    return _WIDTH if isinstance(node, str) else _PASSING


def _spread(row: list[Node]) -> dict[Node, float]:
    """Places side by side, around zero."""
    x = -(sum(map(_room, row)) + _GAP * (len(row) - 1)) / 2
    found = {}
    for node in row:
        found[node] = x + _room(node) / 2
        x += _room(node) + _GAP
    return found


def picture() -> str:
    """The picture as SVG."""
    where, arrows = layout()
    boxes = [node for node in where if isinstance(node, str)]
    width = max(x + _room(node) / 2 for node, (x, _) in where.items()) + 20
    height = max(y for _, y in where.values()) + _HEIGHT / 2 + 16
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        f'width="{width:g}" height="{height:g}" role="img" font-family="sans-serif">',
        "<title>Packages of GStarX: an arrow points to what is imported</title>",
        f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
        'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#5b6470"/></marker></defs>',
    ]
    for arrow in arrows:
        (x, y), *through = (where[node] for node in arrow)
        y += _HEIGHT / 2
        path = f"M{x:g} {y:g}"
        for node, (x2, y2) in zip(arrow[1:], through, strict=True):
            end = y2 - _HEIGHT / 2 - (2 if isinstance(node, str) else 0)
            path += f"C{x:g} {(y + end) / 2:g} {x2:g} {(y + end) / 2:g} {x2:g} {end:g}"
            x, y = x2, end
            if not isinstance(node, str):
                y = y2 + _HEIGHT / 2
                path += f"V{y:g}"
        parts.append(
            f'<path d="{path}" fill="none" stroke="#5b6470" stroke-width="1.4" '
            'marker-end="url(#tip)"/>'
        )
    colors = {"gstarx": "#eef2fb", "gstarx_bench": "#fdf3e3", "gstarx_explorer": "#e9f6ec"}
    for name in boxes:
        x, y = where[name]
        parts += [
            f'<rect x="{x - _WIDTH / 2:g}" y="{y - _HEIGHT / 2:g}" width="{_WIDTH}" '
            f'height="{_HEIGHT}" rx="7" fill="{colors[name.partition(".")[0]]}" '
            'stroke="#3f51b5" stroke-width="1.2"/>',
            f'<text x="{x:g}" y="{y + 5:g}" text-anchor="middle" font-size="15" '
            f'fill="#1c2333">{name}</text>',
        ]
    return "\n".join([*parts, "</svg>", ""])


if __name__ == "__main__":
    PICTURE.write_text(picture(), encoding="utf-8")
