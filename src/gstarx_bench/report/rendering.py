"""Pages from templates: values are escaped as text unless they are markup already."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from gstarx._internal.markup import printable

if TYPE_CHECKING:
    from jinja2 import Environment


def render(name: str, **values: object) -> str:
    """A page from a template of the package.

    Parameters
    ----------
    name
        The path of the template below the package, such as ``"report/report.html.jinja"``.
    **values
        The values it shows. All but :class:`markupsafe.Markup` are escaped.

    Examples
    --------
    >>> page = render("cli/pages.html.jinja", title="a < b", pages={})
    >>> "<title>a &lt; b</title>" in page
    True
    """
    return printable(_environment().get_template(name).render(values))


@cache
def _environment() -> Environment:
    from jinja2 import Environment, PackageLoader, StrictUndefined

    return Environment(
        autoescape=True,
        loader=PackageLoader("gstarx_bench", "."),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
