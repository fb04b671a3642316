"""Which network is explained, as the options of a command say it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from gstarx.cli.console import CommandError, WrongUse
from gstarx.registry import NETWORKS, ModelSource

if TYPE_CHECKING:
    from gstarx.models import LoadedNetwork


def choose_network(
    model: str | None, weights: Path | None, *, default: str | None
) -> LoadedNetwork:
    """The network that the options mean, by default that of a dataset.

    Raises
    ------
    WrongUse, CommandError
        If the options make no sense together, or the network cannot be loaded.
    """
    from gstarx.models import ModelSourceError, load_source

    if model is None and weights is None and default is not None:
        if default not in NETWORKS and f"{default}-gcn" not in NETWORKS:
            raise CommandError(
                f"no network for {default!r} comes with the package: say --weights file or --model "
                "module:factory, or train one with 'gstarx train' "
                f"(those that come: {', '.join(NETWORKS)})"
            )
        model = default
    try:
        return load_source(ModelSource(model, weights))
    except ModelSourceError as error:
        raise (WrongUse if error.usage else CommandError)(str(error)) from error
