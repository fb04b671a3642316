"""What a request may set of an explainer: the options of the registry, each within bounds.

Nothing else is accepted, so that no option names a file or code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from gstarx._internal.suggestions import unknown
from gstarx.registry import EXPLAINERS, ExplainerSpec, Option
from gstarx.web.messages import Refused

#: The metrics that the page shows.
METRICS = ("fidelity", "inverse_fidelity", "harmonic_fidelity")


def listed_model(name: str, title: str, problem: str | None = None) -> dict[str, Any]:
    """A model as it is listed where nothing more is known of it."""
    return {
        "name": name,
        "title": title,
        "kind": "graph",
        "inputs": [],
        "classes": [],
        "dataset": None,
        "graphs": 0,
        "facts": {},
        "examples": [],
        "problem": problem,
    }


#: The explainers that the page offers.
OFFERS = tuple(spec for spec in EXPLAINERS.values() if not spec.oracle)
OFFER = {spec.name: spec for spec in OFFERS}


def within(option: Option, budget: int) -> Option:
    """The same option, counting no more than the server allows."""
    if not option.counted or option.maximum is None:
        return option
    default = option.default if option.default is None else min(option.default, budget)
    return replace(option, maximum=min(option.maximum, budget), default=default)


def as_dict(spec: ExplainerSpec, budget: int) -> dict[str, Any]:
    """An explainer as it goes over the wire."""
    options = [asdict(within(option, budget)) for option in spec.options]
    for option in options:
        option["choices"] = list(option["choices"])
        del option["counted"], option["per_node"]
    shown = asdict(spec)
    del shown["home"], shown["oracle"]
    return {**shown, "options": options}


def checked_options(
    spec: ExplainerSpec, given: Mapping[str, Any], budget: int, field: str
) -> dict[str, Any]:
    """The options of a request, all of them valid, or Refused."""
    known = {option.name: within(option, budget) for option in spec.options}
    found = {}
    for name, value in given.items():
        if name not in known:
            what = f"option of {spec.name!r}"
            raise Refused("bad_option", unknown(what, name[:50], known), field)
        found[name] = checked_value(known[name], value, f"{field}.{name}")
    for own in spec.options:
        allowed = known[own.name].default
        if own.counted and allowed != own.default:
            found.setdefault(own.name, allowed)  # its own default is more than may be asked for
    return found


def checked_value(option: Option, value: Any, field: str) -> Any:
    """The value of an option, or Refused with what is valid."""
    if option.type == "boolean":
        if isinstance(value, bool):
            return value
        raise Refused("bad_option", f"{option.name} must be true or false", field)
    if option.type == "choice":
        if isinstance(value, str) and value in option.choices:
            return value
        valid = ", ".join(option.choices)
        raise Refused("bad_option", f"{option.name} must be one of {valid}", field)
    whole = option.type == "integer"
    fits = isinstance(value, int) or (isinstance(value, float) and not whole)
    low = -float("inf") if option.minimum is None else option.minimum
    high = float("inf") if option.maximum is None else option.maximum
    if isinstance(value, bool) or not fits or not low <= value <= high:
        kind = "a whole number" if whole else "a number"
        text = f"{option.name} must be {kind} between {low:g} and {high:,.10g}"
        raise Refused("bad_option", text, field)
    return value


def offered(name: str, field: str) -> ExplainerSpec:
    """The explainer of that name, or Refused."""
    if name not in OFFER:
        raise Refused("unknown_explainer", unknown("explainer", name[:50], OFFER), field)
    return OFFER[name]
