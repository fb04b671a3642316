"""The registry says what the constructors say."""

from __future__ import annotations

import inspect

import pytest

from gstarx import registry
from gstarx.explainers.registry import options_for


@pytest.mark.parametrize("spec", registry.EXPLAINERS.values(), ids=lambda spec: spec.name)
def test_options_have_the_defaults_of_the_constructor(spec: registry.ExplainerSpec) -> None:
    parameters = inspect.signature(registry.resolve(spec.home)).parameters
    preset = options_for(spec.name)
    for option in spec.options:
        assert option.name in parameters, option.name
        default = preset.get(option.name, parameters[option.name].default)
        if option.default is not None:
            assert option.default == default, option.name
        if option.type == "choice":
            assert option.default is None or option.default in option.choices
        if option.minimum is not None and option.maximum is not None:
            assert option.minimum < option.maximum


def test_everything_has_a_title_and_a_sentence() -> None:
    for spec in (*registry.EXPLAINERS.values(), *registry.DATASETS.values()):
        assert spec.title
        assert spec.about[-1] in ".?", spec.name


@pytest.mark.parametrize("spec", registry.EXPLAINERS.values(), ids=lambda spec: spec.name)
def test_players_are_what_the_constructor_takes(spec: registry.ExplainerSpec) -> None:
    takes = "players" in inspect.signature(registry.resolve(spec.home)).parameters
    assert takes == (len(spec.players) > 1)
    assert spec.players[0] == "nodes"


@pytest.mark.parametrize("name", ["gstarx", "hn", "myerson"])
def test_values_with_two_sides_offer_both(name: str) -> None:
    offered = {option.name: option.type for option in registry.EXPLAINERS[name].options}
    assert offered["two_sided"] == "boolean"


@pytest.mark.parametrize("name", ["gstarx", "hn", "myerson", "shapley", "banzhaf"])
def test_values_offer_the_baseline_that_their_warning_names(name: str) -> None:
    (baseline,) = [
        option for option in registry.EXPLAINERS[name].options if option.name == "baseline"
    ]
    assert baseline.choices == ("singletons", "uniform")
    assert baseline.default is None
