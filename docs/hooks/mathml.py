"""Turn the formulas of a page into MathML when the site is built.

Browsers draw MathML by themselves, so the site needs no script and no network to show mathematics.
Arithmatex finds the formulas, because it knows Markdown's rules for code and escapes; this hook
only translates what it marked.
"""

import html
import re
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError

MARKED = re.compile(
    r'<(?P<tag>span|div) class="arithmatex">\\[(\[](?P<latex>.*?)\\[)\]]</(?P=tag)>', re.DOTALL
)
# What the converter does not know it passes on as it is: an alignment mark or a command.
PASSED_ON = re.compile(r">(&|&amp;|\\\w+)<")


def to_mathml(latex: str, *, display: bool) -> str:
    """Translate one formula, or raise ``ValueError`` when part of it is not understood."""
    latex = re.sub(r"\\(begin|end)\{aligned\}", r"\\\1{split}", latex)
    mathml = convert(latex, display="block" if display else "inline")
    if unknown := PASSED_ON.search(mathml):
        raise ValueError(f"{html.unescape(unknown[1])} is not understood here")
    # set difference comes as a letter, without the space around an operator; boundary sign and
    # empty set come as operators, with a space that letters do not have
    mathml = mathml.replace("<mi>&#x029F5;</mi>", "<mo>&#x02216;</mo>")
    return re.sub(r"<mo>(&#x0220[25];)</mo>", r"<mi>\1</mi>", mathml)


def on_page_content(page_html: str, /, page: Any, **_: Any) -> str:
    """Replace every marked formula; one that cannot be translated fails the build by name."""

    def translate(match: re.Match[str]) -> str:
        latex = html.unescape(match["latex"]).strip()
        try:
            return to_mathml(latex, display=match["tag"] == "div")
        except Exception as error:
            raise PluginError(f"{page.file.src_path}: formula {latex!r}: {error}") from error

    return MARKED.sub(translate, page_html)
