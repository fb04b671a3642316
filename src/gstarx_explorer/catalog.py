"""The explainers that the page offers, and the options that a request may set, within bounds.

Nothing else is accepted, so that no option can name a file or code.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from gstarx import registry
from gstarx._internal.messages import unknown
from gstarx.registry import EXPLAINERS, SAMPLED_BUDGET, ExplainerSpec, Option, kind_of_players
from gstarx_explorer.messages import Refused

#: The metrics that the page shows.
METRICS = ("fidelity", "inverse_fidelity", "harmonic_fidelity")
#: Who can play, by the kind of graph: names and what they are called on the page.
PLAYERS = {
    kind: {
        name: spec.titles[kind] for name, spec in registry.PLAYERS.items() if kind in spec.titles
    }
    for kind in ("molecule", "sentence", "graph")
}
#: The explainers that the page offers, by name.
OFFERED = {name: spec for name, spec in EXPLAINERS.items() if not spec.oracle}


def model_entry(name: str, title: str, problem: str | None = None) -> dict[str, Any]:
    """The entry of a model about which nothing else is known."""
    return {
        "name": name,
        "title": title,
        "kind": "graph",
        "players": player_entries("graph"),
        "inputs": [],
        "task": "classification",
        "classes": [],
        "outputs": 0,
        "dataset": None,
        "graphs": 0,
        "skipped": 0,
        "unreadable": [],
        "warnings": [],
        "facts": {},
        "examples": [],
        "problem": problem,
    }


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
    options = [asdict(limited(option, budget)) for option in spec.options]
    for option in options:
        option["choices"] = list(option["choices"])
        del option["counted"], option["per_node"]
    entry = asdict(spec)
    del entry["home"], entry["oracle"]
    return {**entry, "options": options}


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
    if name not in OFFERED:
        raise Refused("unknown_explainer", unknown("explainer", name[:50], OFFERED), field)
    return OFFERED[name]


def checked_options(
    spec: ExplainerSpec, options: Mapping[str, Any], budget: int, field: str
) -> dict[str, Any]:
    """The options of a request if all are valid, or Refused."""
    valid = {option.name: limited(option, budget) for option in spec.options}
    checked = {}
    for name, value in options.items():
        if name not in valid:
            noun = f"option of {spec.name!r}"
            raise Refused("bad_option", unknown(noun, name[:50], valid), field)
        checked[name] = checked_value(valid[name], value, f"{field}.{name}")
    for option in spec.options:
        allowed = valid[option.name].default
        if option.counted and allowed != option.default:
            checked.setdefault(option.name, allowed)  # the explainer's default exceeds the limit
    return checked


def checked_value(option: Option, value: Any, field: str) -> Any:
    """The value of an option if it is valid, or Refused."""
    if option.type == "boolean":
        if isinstance(value, bool):
            return value
        raise Refused("bad_option", f"{option.name} must be true or false", field)
    if option.type == "choice":
        if isinstance(value, str) and value in option.choices:
            return value
        valid = ", ".join(option.choices)
        raise Refused("bad_option", f"{option.name} must be one of {valid}", field)
    integer = option.type == "integer"
    fits = isinstance(value, int) or (isinstance(value, float) and not integer)
    low = -float("inf") if option.minimum is None else option.minimum
    high = float("inf") if option.maximum is None else option.maximum
    if isinstance(value, bool) or not fits or not low <= value <= high:
        kind = "an integer" if integer else "a number"
        text = f"{option.name} must be {kind} between {low:g} and {high:,.10g}"
        raise Refused("bad_option", text, field)
    return value
