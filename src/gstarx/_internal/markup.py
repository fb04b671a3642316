"""Pages from templates: values are escaped as text unless they are markup already."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from jinja2 import Environment

# what no XML document may hold, escaped or not
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def printable(text: str) -> str:
    r"""Replace every character that XML forbids with U+FFFD.

    >>> printable("a\x00b\n")
    'a�b\n'
    """
    return _FORBIDDEN.sub("\ufffd", text)


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
    from jinja2 import Environment, PackageLoader, StrictUndefined  # drawings do without it

    return Environment(
        autoescape=True,
        loader=PackageLoader("gstarx", "."),
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        undefined=StrictUndefined,
    )
