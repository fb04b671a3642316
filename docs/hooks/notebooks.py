"""Show the notebooks of ``examples/`` with their stored outputs; the tests execute them.

``<!-- notebook: name -->`` stands for ``examples/name.ipynb``.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

MARK = re.compile(r"^<!-- notebook: (?P<name>\w+) -->$", re.MULTILINE)
ROOT = Path(__file__).parent.parent.parent


def text_of(value: Any) -> str:
    """Text that a notebook stores as a string or as lines."""
    return value if isinstance(value, str) else "".join(value)


def shown_output(output: dict[str, Any]) -> str:
    """What a cell printed, drew or returned."""
    data = output.get("data", {})
    for kind in ("text/html", "image/svg+xml"):
        if kind in data:
            # data frames look like other tables; a blank line would end the block
            shown = text_of(data[kind]).replace('<table border="1" class="dataframe">', "<table>")
            return "<div>" + re.sub(r"\n\s*\n", "\n", shown) + "</div>\n"
    text = text_of(output.get("text") or data.get("text/plain", ""))
    return f"<pre><code>{html.escape(text.rstrip())}</code></pre>\n" if text.strip() else ""


def shown(path: Path) -> str:
    """A notebook as Markdown, its headings one level lower."""
    parts = []
    for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
        source = text_of(cell["source"]).strip()
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"^#", "##", source, flags=re.MULTILINE))
            continue
        parts.append(f"```python\n{source}\n```")
        parts += [part for part in map(shown_output, cell["outputs"]) if part]
    return "\n\n".join(parts) + "\n"


def on_page_markdown(markdown: str, /, **_: Any) -> str:
    """Put every notebook that a page names in its place."""
    return MARK.sub(lambda mark: shown(ROOT / "examples" / f"{mark['name']}.ipynb"), markdown)
