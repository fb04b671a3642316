"""Fit docstrings to Markdown before the reference pages are built, and find methods."""

import copy
import re
from typing import Any

import griffe

# Indented `>>>` lines outside an "Examples" section would otherwise become nested quotations.
EXAMPLE = re.compile(r"(?:^[ \t]*>>> .*\n?(?:^[ \t]*\S.*\n?)*\n*)+", re.MULTILINE)
# "a, b" over one description: each name is listed on its own, or all get the first one's type.
TOGETHER = re.compile(r"^(\w+(?:, \w+)+)\n((?:[ ]{4}.*\n?)+)", re.MULTILINE)
ROLE = re.compile(r":\w+:`~?([^`]+)`")


def to_markdown(docstring: str) -> str:
    """Fence the doctests of a docstring, and turn reStructuredText roles into plain code.

    Sections called "Examples" are left alone: the docstring parser knows what to do with them.
    """
    head, heading, tail = docstring.partition("Examples\n--------\n")
    head = TOGETHER.sub(apart, head)
    fenced = EXAMPLE.sub(lambda match: f"```pycon\n{match[0].rstrip()}\n```\n\n", head)
    return ROLE.sub(r"`\1`", fenced + heading + tail)


def apart(match: re.Match[str]) -> str:
    """Names that share a description, one by one."""
    described = match[2].rstrip("\n")
    listed = "\n".join(f"{name}\n{described}" for name in match[1].split(", "))
    return listed + match[2][len(described) :]


class Docstrings(griffe.Extension):
    """Applies `to_markdown` to every docstring that is read."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite one docstring."""
        if obj.docstring:
            obj.docstring.value = to_markdown(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """Show functions that a class has as its methods, such as ``best = best_selection``."""
        for member in pkg.members.values():
            if isinstance(member, griffe.Module):
                self.on_package(pkg=member)
            elif isinstance(member, griffe.Class):
                methods_of(member)


def methods_of(owner: griffe.Class) -> None:
    """Put functions in the place of the attributes of a class that are only names of them."""
    inside, module = f"{owner.package.path}.", owner.module.members
    for name, attribute in owner.members.items():
        value = attribute.value if isinstance(attribute, griffe.Attribute) else None
        found = module.get(value.name) if isinstance(value, griffe.ExprName) else None
        if isinstance(found, griffe.Alias) and found.target_path.startswith(inside):
            found = found.final_target
        if isinstance(found, griffe.Function):
            method = copy.copy(found)
            method.name, method.parent = name, owner
            method.parameters = griffe.Parameters(*list(found.parameters)[1:])  # without itself
            owner.members[name] = method
