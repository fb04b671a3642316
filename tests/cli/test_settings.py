"""The settings file: its values are defaults, flags win, and mistakes are named."""

from __future__ import annotations

from pathlib import Path

from tests.cli.commands import found, gstarx, refused

FILE = """
seed = 7
sparsity = 0.5
explainer = "myerson"
json = true
store = "elsewhere"

[explainers.myerson]
budget = 60

[explainers.random]
"""


def test_settings_are_defaults_and_flags_win() -> None:
    Path("gstarx.toml").write_text(FILE)
    record = found("explain", "nitro", "0")
    assert (record["seed"], record["sparsity"]) == (7, 0.5)
    assert record["explainer"] == "myerson"
    assert record["options"] == {"budget": 60}
    record = found("explain", "nitro", "0", "--seed", "1", "-o", "budget=70", "--sparsity", "0.6")
    assert (record["seed"], record["sparsity"]) == (1, 0.6)
    assert record["options"] == {"budget": 70}
    assert found("explain", "nitro", "0", "-e", "random")["explainer"] == "random"


def test_settings_reach_commands_of_several_explainers_and_of_groups() -> None:
    Path("gstarx.toml").write_text(FILE)
    (row,) = found("compare", "nitro", "0")["explainers"]
    assert row["explainer"] == "myerson"
    content = found("evaluate", "nitro", "--limit", "1", "--workers", "1", "-e", "random")
    assert (content["store"], content["seed"]) == ("elsewhere", 7)
    assert gstarx("datasets", "list").stdout.startswith("[")


def test_another_file_can_be_named() -> None:
    Path("other.toml").write_text("seed = 9\n")
    Path("gstarx.toml").write_text("seed = 7\n")
    assert found("--settings", "other.toml", "explain", "nitro", "0", "-e", "random")["seed"] == 9


def test_a_mistake_in_the_file_is_named() -> None:
    for content, message in [
        ("sede = 3", "gstarx.toml: there is no setting 'sede'; did you mean 'seed'?"),
        ("[explainers.gstrax]\nbudget = 3", "did you mean 'gstarx'?"),
        ("sparsity = 2.0", "sparsity: Input should be less than 1 (got 2.0)"),
        ("seed =", "gstarx.toml cannot be read as TOML"),
    ]:
        Path("gstarx.toml").write_text(content)
        assert message in refused("version")


def test_a_file_that_is_not_there_is_named() -> None:
    assert "there is no settings file no.toml" in refused("--settings", "no.toml", "version")
