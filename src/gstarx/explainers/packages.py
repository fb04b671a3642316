"""Which packages an explainer's numbers come from, beside GStarX and what that always needs."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, entry_points, version

from gstarx.explainers.base import NodeExplainer
from gstarx.explainers.registry import GROUP


def packages_of(name: str, explainer: NodeExplainer) -> tuple[str, ...]:
    """The package that brings an explainer of that name, and those that it says it needs.

    >>> from gstarx.explainers import create
    >>> packages_of("gstarx", create("gstarx"))
    ()
    >>> packages_of("integrated_gradients", create("integrated_gradients"))
    ('captum',)
    """
    points = [point for point in entry_points(group=GROUP) if point.name == name]
    # of several the first is taken, as by create
    home = [point.dist.name for point in points[:1] if point.dist is not None]
    return (*home, *explainer.needed_packages)


def versions_of(packages: Iterable[str]) -> dict[str, str | None]:
    """The versions of packages, ``None`` for one that is not installed.

    >>> versions_of(["no-such-package"])
    {'no-such-package': None}
    """
    found: dict[str, str | None] = dict.fromkeys(packages)
    for name in found:
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    return found
