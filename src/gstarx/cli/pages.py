"""Several reports as one file."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
:root {{ color-scheme: light dark; }}
html, body {{ margin: 0; height: 100%; }}
body {{ display: flex; flex-direction: column; font: 15px/1.4 system-ui, sans-serif;
  background: Canvas; color: CanvasText; }}
[role=tablist] {{ display: flex; flex-wrap: wrap; gap: .25rem; padding: .5rem .75rem 0;
  border-bottom: 1px solid color-mix(in srgb, CanvasText 25%, Canvas); }}
[role=tab] {{ font: inherit; color: inherit; background: none; cursor: pointer;
  border: 1px solid transparent; border-bottom: 0; border-radius: .4rem .4rem 0 0;
  padding: .4rem .9rem; }}
[role=tab][aria-selected=true] {{ font-weight: 600; border-color:
  color-mix(in srgb, CanvasText 25%, Canvas); box-shadow: 0 1px 0 Canvas; }}
iframe {{ flex: 1; width: 100%; border: 0; }}
iframe[hidden] {{ display: none; }}
</style>
</head>
<body>
<div role="tablist" aria-label="Reports">
{tabs}
</div>
{frames}
<script>
const tabs = [...document.querySelectorAll('[role=tab]')];
function choose(tab) {{
  for (const other of tabs) {{
    const chosen = other === tab;
    other.setAttribute('aria-selected', chosen);
    other.tabIndex = chosen ? 0 : -1;
    document.getElementById(other.getAttribute('aria-controls')).hidden = !chosen;
  }}
}}
tabs.forEach((tab, at) => {{
  tab.addEventListener('click', () => choose(tab));
  tab.addEventListener('keydown', (event) => {{
    const step = {{ ArrowRight: 1, ArrowLeft: -1 }}[event.key];
    if (!step) return;
    const next = tabs[(at + step + tabs.length) % tabs.length];
    choose(next);
    next.focus();
  }});
}});
</script>
</body>
</html>
"""


def together(title: str, pages: Mapping[str, str]) -> str:
    """One page with a tab for each of several pages, all inside it.

    Parameters
    ----------
    title
        Of the page.
    pages
        Whole HTML pages by the name of their tab.

    Examples
    --------
    >>> together("Two", {"a": "<p>1</p>", "b": "<p>2</p>"}).count("<iframe")
    2
    """
    tabs, frames = [], []
    for at, (name, page) in enumerate(pages.items()):
        tabs.append(
            f'<button role="tab" id="tab-{at}" aria-controls="page-{at}" '
            f'aria-selected="{"false" if at else "true"}" tabindex="{-1 if at else 0}">'
            f"{escape(name)}</button>"
        )
        frames.append(
            f'<iframe id="page-{at}" role="tabpanel" aria-labelledby="tab-{at}" '
            f'title="{escape(name)}" srcdoc="{escape(page)}"{" hidden" if at else ""}></iframe>'
        )
    return _PAGE.format(title=escape(title), tabs="\n".join(tabs), frames="\n".join(frames))
