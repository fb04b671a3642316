"""Several reports as one file."""

from __future__ import annotations

from collections.abc import Mapping

from gstarx._internal.markup import render


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
    return render("cli/pages.html.jinja", title=title, pages=pages)
