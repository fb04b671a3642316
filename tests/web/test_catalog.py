"""The explainers on offer are those of the package, with the options that they accept."""

from __future__ import annotations

from typing import Any

import pytest

from gstarx import explainers
from gstarx.explainers.registry import options_of
from gstarx.registry import Option
from gstarx_explorer.catalog import OFFERED, checked_options, checked_value, explainer_entry
from gstarx_explorer.messages import Refused, public_message


def test_every_explainer_of_the_package_is_offered() -> None:
    assert list(OFFERED) == [name for name in explainers.names() if name in OFFERED]


@pytest.mark.parametrize("spec", OFFERED.values(), ids=lambda spec: spec.name)
def test_options_exist_and_their_defaults_and_bounds_are_accepted(spec: Any) -> None:
    more = {"baseline": [0.5]} if spec.name == "gstarx_published" else {}
    assert {option.name for option in spec.options} <= set(options_of(spec.name))
    explainer = explainers.create(spec.name, **more)
    assert explainer.requires_training == spec.trains
    for option in spec.options:
        known = [option.default, option.minimum, option.maximum, *option.choices]
        for value in known:
            if value is not None:
                assert checked_value(option, value, "") == value
                explainers.create(spec.name, **{option.name: value}, **more)


def test_the_limit_of_the_server_applies_to_options_that_count_evaluations() -> None:
    entry = explainer_entry(OFFERED["gstarx"], budget=500)
    (budget,) = [option for option in entry["options"] if option["name"] == "budget"]
    assert budget["maximum"] == 500
    assert budget["default"] == 500
    with pytest.raises(Refused, match="between 10 and 500"):
        checked_options(OFFERED["gstarx"], {"budget": 501}, 500, "")
    assert checked_options(OFFERED["gnnexplainer"], {"epochs": 600}, 500, "") == {"epochs": 600}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, True, [], 10**400])
def test_a_number_must_be_a_number(value: Any) -> None:
    with pytest.raises(Refused):
        checked_value(Option("a", "", "number", minimum=0, maximum=1), value, "")


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_a_boolean_must_be_a_boolean(value: Any) -> None:
    option = Option("a", "", "boolean")
    assert checked_value(option, True, "") is True
    with pytest.raises(Refused):
        checked_value(option, value, "")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("cannot read /etc/passwd at all", "cannot read (a file) at all"),
        (f"{__file__}: no", "(a file): no"),
        (r"lost C:\Users\me\graph.pt, sorry", "lost (a file), sorry"),
        ("'C/C=C/C' is no molecule", "'C/C=C/C' is no molecule"),
        ("a\n  b", "a b"),
    ],
)
def test_messages_do_not_reveal_paths(words: str, expected: str) -> None:
    assert public_message(ValueError(words)) == expected


def test_long_messages_are_truncated() -> None:
    assert len(public_message(ValueError("a" * 10_000))) == 400
