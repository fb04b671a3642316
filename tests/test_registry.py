"""The registry says what the constructors say."""

from __future__ import annotations

from gstarx import Banzhaf, Subgraphs, registry
from gstarx.explainers.options import plain_options
from gstarx.explainers.registry import create, options_for
from gstarx_bench.explainers.pg_explainer import PGSettings


def test_options_have_the_defaults_of_the_constructor() -> None:
    for spec in registry.EXPLAINERS.values():
        parameters = plain_options(registry.resolve(spec.home))
        preset = options_for(spec.name)
        for option in spec.options:
            assert option.name in parameters, (spec.name, option.name)
            default = preset.get(option.name, parameters[option.name].default)
            if option.default is not None:
                assert option.default == default, (spec.name, option.name)
            if option.type == "choice":
                assert option.default is None or option.default in option.choices
            if option.minimum is not None and option.maximum is not None:
                assert option.minimum < option.maximum
        assert ("players" in parameters) == (len(spec.players) > 1), spec.name
        assert spec.players[0] == "nodes"


def test_everything_has_a_title_and_a_sentence() -> None:
    for spec in (*registry.EXPLAINERS.values(), *registry.DATASETS.values()):
        assert spec.title
        assert spec.about[-1] in ".?", spec.name


def test_values_offer_the_baseline_that_their_warning_names() -> None:
    for name in ("gstarx", "hn", "myerson", "shapley", "banzhaf"):
        offered = {option.name: option for option in registry.EXPLAINERS[name].options}
        assert offered["baseline"].choices == ("singletons", "uniform")
        assert offered["baseline"].default is None
        if name in ("gstarx", "hn", "myerson"):
            assert offered["two_sided"].type == "boolean"


def test_objects_that_are_given_are_not_changed_by_presets() -> None:
    given = PGSettings(epochs=3)
    assert create("pgexplainer", settings=given).settings == given
    assert create("pgexplainer", settings=given, lr=0.1).settings == PGSettings(epochs=3, lr=0.1)
    value = Subgraphs(num_samples=5)
    published = create("gstarx_published", value=value, baseline=0.5)
    assert published.value == value
    assert repr(create("gstarx", value=Banzhaf(presence=0.3))) == (
        "GStarX(value=Banzhaf(presence=0.3))"
    )
