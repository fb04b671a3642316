"""What the server offers, to whom, and within which limits: plain data, without torch.

Requests can choose among models, explainers, players and options that are listed here, so that none
can name a file or code.
"""

from __future__ import annotations

import ipaddress
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from pathlib import Path
from typing import Any

from gstarx import registry
from gstarx._internal.messages import unknown
from gstarx.registry import (
    EXPLAINERS,
    SAMPLED_BUDGET,
    DatasetSource,
    ExplainerSpec,
    ModelSource,
    Option,
    kind_of_players,
)
from gstarx_explorer.messages import Refused


@dataclass(frozen=True)
class Kept:
    """How many finished jobs are kept, for how many seconds, and how many bytes of them."""

    jobs: int = 100
    seconds: float = 600.0
    bytes: int = 32 << 20


@dataclass(frozen=True)
class Limits:
    """How much one request may ask for."""

    #: Nodes of a graph, and characters of a SMILES or a sentence.
    nodes: int = 150
    text: int = 1_000
    #: Upper bound of options that count evaluations or samples.
    budget: int = 50_000
    #: Time of one job, from the moment a worker takes it, and the part of it that the search for
    #: the best selections may take.
    seconds: float = 60.0
    best_seconds: float = 5.0
    #: Jobs that wait; further ones are refused.
    queue: int = 16
    #: Explainers of one job.
    explainers: int = 8
    #: Entries of one list.
    graphs_per_page: int = 100
    #: Quick queries that wait for an answer, and open streams of events.
    queries: int = 64
    listeners: int = 256
    #: Open connections; one more replaces one that is idle.
    connections: int = 512
    #: Bytes of a request.
    body: int = 1 << 16
    #: Bytes that a worker may grow by during one job.
    memory: int = 1 << 30
    #: Finished jobs.
    kept: Kept = Kept()


@dataclass(frozen=True)
class ServedModel:
    """A model and the name that requests use for it."""

    name: str
    #: Where worker processes load it from.
    source: ModelSource
    #: The title on the page; by default the name.
    title: str = ""
    #: What has to be installed first. Such a model is listed but cannot be used.
    missing: str | None = None
    #: What the model returns: ``"raw"``, ``"probs"`` or ``"log_probs"``.
    return_type: str = "raw"
    #: The user's own graphs, instead of those of its dataset.
    graphs: DatasetSource | None = None
    #: The server does not start if the model cannot be used.
    required: bool = False


@dataclass(frozen=True)
class ServedRun:
    """A store of runs to browse, and which of several datasets: by default that with most rows."""

    store: Path
    dataset: str | None = None


@dataclass(frozen=True)
class Settings:
    """Everything that the command line decides."""

    #: The models, in the order in which they are listed.
    models: tuple[ServedModel, ...] = ()
    #: A store to browse.
    run: ServedRun | None = None
    #: Directory of the datasets; by default that of :func:`gstarx.datasets.load`.
    data: Path | None = None
    #: Where to listen; port 0 is any free port.
    host: str = "127.0.0.1"
    port: int = 8000
    #: Other host names of this machine.
    names: tuple[str, ...] = ()
    #: The token that requests have to present; not needed if only this machine can connect.
    token: str | None = None
    #: Number of processes that explain.
    workers: int = 2
    limits: Limits = field(default_factory=Limits)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


#: The metrics that the page shows.
METRICS = ("fidelity", "inverse_fidelity", "harmonic_fidelity")
#: Who can play, by the kind of graph: names and what they are called on the page.
PLAYERS = {
    kind: {
        name: spec.titles[kind] for name, spec in registry.PLAYERS.items() if kind in spec.titles
    }
    for kind in ("molecule", "sentence", "graph")
}


@cache
def offered() -> dict[str, ExplainerSpec]:
    """The explainers that the page offers, by name."""
    return {name: spec for name, spec in EXPLAINERS.items() if not spec.oracle}


def player_entries(kind: str) -> list[dict[str, str]]:
    """Who can play on graphs of a kind."""
    return [{"name": name, "title": title} for name, title in PLAYERS[kind].items()]


def check_players(players: str, kind: str, explainers: Sequence[ExplainerSpec]) -> None:
    """Refuse players that graphs of a kind do not have, or that an explainer cannot score."""
    if players not in PLAYERS[kind]:
        valid = ", ".join(PLAYERS[kind])
        text = f"players must be one of {valid} for a {kind} (got {players})"
        raise Refused("bad_players", text, "players")
    for at, spec in enumerate(explainers):
        if kind_of_players(players) not in spec.players:
            text = f"{spec.title} scores {' and '.join(spec.players)}, not {players}"
            raise Refused("bad_players", text, f"explainers.{at}.name")


def explainer_entry(spec: ExplainerSpec, budget: int) -> dict[str, Any]:
    """The entry of an explainer, with the server's limit on its options."""
    shown = ("name", "title", "about", "trains", "default", "players")
    of_option = ("name", "about", "type", "default", "choices", "minimum", "maximum")
    options = [limited(option, budget) for option in spec.options]
    return {
        **{name: getattr(spec, name) for name in shown},
        "options": [{name: getattr(one, name) for name in of_option} for one in options],
    }


def limited(option: Option, budget: int) -> Option:
    """The option, with the server's limit if it counts evaluations or samples."""
    if not option.counted or option.maximum is None:
        return option
    default = option.default
    if option.name == "budget" and default is None:
        default = SAMPLED_BUDGET  # the same for every graph: time and memory of a job are limited
    default = None if default is None else min(default, budget)
    return replace(option, maximum=min(option.maximum, budget), default=default)


def find_explainer(name: str, field: str) -> ExplainerSpec:
    """The explainer of that name, or Refused."""
    if name not in offered():
        raise Refused("unknown_explainer", unknown("explainer", name[:50], offered()), field)
    return offered()[name]


def checked_options(
    spec: ExplainerSpec, options: Mapping[str, Any], budget: int, field: str
) -> dict[str, Any]:
    """The options of a request if all are valid, or Refused."""
    valid = {option.name: limited(option, budget) for option in spec.options}
    for name, value in options.items():
        if name not in valid:
            noun = f"option of {spec.name!r}"
            raise Refused("bad_option", unknown(noun, name[:50], valid), field)
        check_value(valid[name], value, f"{field}.{name}")
    # where the explainer's own default exceeds the limit
    lower = {
        option.name: valid[option.name].default
        for option in spec.options
        if option.counted and valid[option.name].default != option.default
    }
    return {**lower, **options}


def check_value(option: Option, value: Any, field: str) -> None:
    """Refuse a value that an option does not accept."""
    if option.type == "boolean":
        fits, valid = isinstance(value, bool), "true or false"
    elif option.type == "choice":
        fits = isinstance(value, str) and value in option.choices
        valid = f"one of {', '.join(option.choices)}"
    else:
        kinds = (int,) if option.type == "integer" else (int, float)
        low = -math.inf if option.minimum is None else option.minimum
        high = math.inf if option.maximum is None else option.maximum
        fits = type(value) in kinds and low <= value <= high
        kind = "an integer" if option.type == "integer" else "a number"
        valid = f"{kind} between {low:g} and {high:,.10g}"
    if not fits:
        raise Refused("bad_option", f"{option.name} must be {valid}", field)
