"""What is offered is what there is."""

from __future__ import annotations

from typing import Any

import pytest

from gstarx import explainers
from gstarx.explainers.registry import options_of
from gstarx.registry import Option
from gstarx.web.catalog import OFFER, OFFERS, as_dict, checked_options, checked_value
from gstarx.web.messages import Refused, said


def test_every_explainer_of_the_package_is_offered() -> None:
    own = [name for name in explainers.names() if name in OFFER]
    assert [offer.name for offer in OFFERS] == own


@pytest.mark.parametrize("offer", OFFERS, ids=lambda offer: offer.name)
def test_its_options_exist_and_their_defaults_and_bounds_are_accepted(offer: Any) -> None:
    more = {"baseline": [0.5]} if offer.name == "gstarx_published" else {}
    assert {option.name for option in offer.options} <= set(options_of(offer.name))
    made = explainers.create(offer.name, **more)
    assert made.requires_training == offer.trains
    for option in offer.options:
        known = [option.default, option.minimum, option.maximum, *option.choices]
        for value in known:
            if value is not None:
                assert checked_value(option, value, "") == value
                explainers.create(offer.name, **{option.name: value}, **more)


def test_the_limit_of_the_server_holds_for_what_counts_evaluations() -> None:
    entry = as_dict(OFFER["gstarx"], budget=500)
    (budget,) = [option for option in entry["options"] if option["name"] == "budget"]
    assert budget["maximum"] == 500
    assert budget["default"] == 500
    with pytest.raises(Refused, match="between 10 and 500"):
        checked_options(OFFER["gstarx"], {"budget": 501}, 500, "")
    assert checked_options(OFFER["gnnexplainer"], {"epochs": 600}, 500, "") == {"epochs": 600}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), "1", None, True, [], 10**400])
def test_numbers_are_numbers(value: Any) -> None:
    with pytest.raises(Refused):
        checked_value(Option("a", "", "number", minimum=0, maximum=1), value, "")


@pytest.mark.parametrize("value", [0, 1, "true", None])
def test_truth_is_truth(value: Any) -> None:
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
def test_paths_are_nobodys_business(words: str, expected: str) -> None:
    assert said(ValueError(words)) == expected


def test_long_errors_are_cut() -> None:
    assert len(said(ValueError("a" * 10_000))) == 400
