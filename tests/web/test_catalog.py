"""The explainers on offer are those of the package, with the options that they accept."""

from __future__ import annotations

import pytest

from gstarx import explainers
from gstarx.explainers.registry import options_of
from gstarx.registry import ExplainerSpec, Option
from gstarx_explorer import Limits
from gstarx_explorer.messages import Refused, public_message
from gstarx_explorer.settings import check_value, checked_options, explainer_entry, offered


def test_every_explainer_of_the_package_is_offered() -> None:
    assert list(offered()) == [name for name in explainers.names() if name in offered()]


@pytest.mark.parametrize("trains", [False, True])
def test_options_exist_and_their_defaults_and_bounds_are_accepted(trains: bool) -> None:
    for spec in offered().values():
        if spec.trains == trains:
            assert_accepted(spec)


def assert_accepted(spec: ExplainerSpec) -> None:
    more = {"baseline": [0.5]} if spec.name == "gstarx_published" else {}
    assert {option.name for option in spec.options} <= set(options_of(spec.name))
    explainer = explainers.create(spec.name, **more)
    assert explainer.requires_training == spec.trains
    for option in spec.options:
        known = [option.default, option.minimum, option.maximum, *option.choices]
        for value in known:
            if value is not None:
                check_value(option, value, "")
                explainers.create(spec.name, **{option.name: value}, **more)


def test_the_limit_of_the_server_applies_to_options_that_count_evaluations() -> None:
    entry = explainer_entry(offered()["gstarx"], budget=500)
    (budget,) = [option for option in entry["options"] if option["name"] == "budget"]
    assert budget["maximum"] == 500
    assert budget["default"] == 500
    with pytest.raises(Refused, match="between 10 and 500"):
        checked_options(offered()["gstarx"], {"budget": 501}, 500, "")
    assert checked_options(offered()["gnnexplainer"], {"epochs": 600}, 500, "") == {"epochs": 600}


def test_values_must_be_of_the_type_of_the_option() -> None:
    number, boolean = Option("a", "", "number", minimum=0, maximum=1), Option("b", "", "boolean")
    check_value(boolean, True, "")
    for value in (float("nan"), float("inf"), "1", None, True, [], 10**400):
        with pytest.raises(Refused):
            check_value(number, value, "")
    for value in (0, 1, "true", None):
        with pytest.raises(Refused):
            check_value(boolean, value, "")


def test_the_limit_on_evaluations_holds_for_defaults_too() -> None:
    assert checked_options(offered()["shapley"], {}, 1_000, "") == {"budget": 1_000}
    assert checked_options(offered()["shapley"], {"budget": 50}, 1_000, "") == {"budget": 50}
    for spec in offered().values():
        budget = any(option.name == "budget" for option in spec.options)
        # the explainer's own default may be far more, where coalitions share embeddings
        expected = {"budget": 20_000} if budget else {}
        assert checked_options(spec, {}, Limits().budget, "") == expected


def test_messages_do_not_reveal_paths_and_are_short() -> None:
    for words, expected in {
        "cannot read /etc/passwd at all": "cannot read (a file) at all",
        f"{__file__}: no": "(a file): no",
        r"lost C:\Users\me\graph.pt, sorry": "lost (a file), sorry",
        "'C/C=C/C' is no molecule": "'C/C=C/C' is no molecule",
        "a\n  b": "a b",
    }.items():
        assert public_message(ValueError(words)) == expected
    assert len(public_message("a" * 10_000)) == 400
