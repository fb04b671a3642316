"""The settings file ``gstarx.toml``, and explainers with its options and those of the command."""

from __future__ import annotations

import json
import math
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from gstarx._internal.messages import quoted, unknown
from gstarx.cli.console import CommandError, WrongUse, note
from gstarx.cli.inputs import InputSelection
from gstarx.registry import EXPLAINERS, explainer_names, kind_of_players

if TYPE_CHECKING:
    from gstarx.explainers import NodeExplainer

#: The file that is read when it lies in the working directory.
FILE = Path("gstarx.toml")


#: By explainer, options by name.
OptionsOf = Mapping[str, Mapping[str, Any]]
#: How Boolean options are written, in upper or lower case.
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "on", "1"), True),
    **dict.fromkeys(("false", "no", "off", "0"), False),
}


def parse_options(
    arguments: Sequence[str],
    explainers: Sequence[str],
    settings: OptionsOf,
    share: str | None = None,
    players: str | None = None,
    baseline: str | float | None = None,
) -> dict[str, dict[str, Any]]:
    """The options of every explainer: those of the settings file, then those of the command.

    Parameters
    ----------
    arguments
        ``name=value`` for all explainers, or ``explainer.name=value`` for one. A value that is not
        JSON is text. Boolean options are also written yes or no, on or off, 1 or 0.
    explainers
        The explainers that are used.
    settings
        Options of the settings file.
    share
        Of explainers that take it: ``"auto"``, ``"true"`` or ``"false"``.
    players
        Of explainers that take it: who plays, such as ``"edges"`` or ``"brics"``.
    baseline
        The ``--baseline`` of the command, which overrides that of the settings file and is not
        combined with an option of this name for all explainers; one for one of them goes first.

    Examples
    --------
    >>> parse_options(["budget=5000", "gstarx.value=hn"], ["gstarx"], {"gstarx": {"budget": 1}})
    {'gstarx': {'budget': 5000, 'value': 'hn'}}
    """
    parsed = {name: dict(settings.get(name, {})) for name in explainers}
    if baseline is not None:
        for known in parsed.values():
            known.pop("baseline", None)
    for text in arguments:
        name, equals, raw_value = text.partition("=")
        if not equals or not name:
            got = quoted(text)
            raise WrongUse(f"--option takes NAME=VALUE, such as budget=5000 (got {got})")
        if _is_number(raw_value) and not math.isfinite(float(raw_value)):
            raise WrongUse(f"--option {text}: a number must be finite (got {raw_value})")
        owner, dot, option = name.partition(".")
        if dot and owner not in explainers:
            raise WrongUse(f"--option {text}: {owner!r} is not among {', '.join(explainers)}")
        option = option if dot else name
        if option == "baseline" and baseline is not None and not dot:
            raise WrongUse(
                f"--option {text} and --baseline {baseline} exclude each other: keep one"
            )
        for explainer in [owner] if dot else explainers:
            parsed[explainer][option] = _value_of(explainer, option, raw_value)
    if share is not None:
        from gstarx.explainers import options_of

        for explainer in explainers:
            if "share" in options_of(explainer):
                parsed[explainer]["share"] = {"true": True, "false": False}.get(share, share)
    if players is not None:
        _set_players(parsed, players)
    return parsed


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _value_of(explainer: str, option: str, text: str) -> Any:
    """The value of an option from the command line: Boolean, JSON or text."""
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    # explainers are looked up, which loads torch, only if it may matter
    if not isinstance(value, bool) and (word := str(value).lower()) in _BOOLEANS:
        from gstarx.explainers import boolean_options_of

        if option in boolean_options_of(explainer):
            return _BOOLEANS[word]
    return value


def _set_players(parsed: dict[str, dict[str, Any]], players: str) -> None:
    """Set who plays for the explainers that can score them, and name the others."""
    from gstarx.explainers import options_of

    kind = kind_of_players(players)
    taking = [
        name
        for name in parsed
        if "players" in options_of(name)
        and (name not in EXPLAINERS or kind in EXPLAINERS[name].players)
    ]
    if not taking:
        raise WrongUse(f"--players is for explainers that play a game (got {', '.join(parsed)})")
    for name in taking:
        parsed[name]["players"] = players
    others = [name for name in parsed if name not in taking]
    if others and kind != "nodes":
        scoring = "scores nodes" if len(others) == 1 else "score nodes"
        note(f"note: {', '.join(others)} {scoring}, and nodes are removed to evaluate them")


def create_explainers(
    inputs: InputSelection, options: OptionsOf, *, baseline: str | float | None
) -> dict[str, NodeExplainer]:
    """The explainers by name, configured for the dataset and trained where they need it."""
    from gstarx import explainers
    from gstarx.explainers import options_of, with_settings

    created = {}
    means: dict[str, Any] = {}
    if "baseline" not in options.get("gstarx_published", {"baseline": None}) and baseline is None:
        raise WrongUse(
            "gstarx_published needs a baseline: -o gstarx_published.baseline=test, as in the "
            "paper's experiments, or --baseline test for all explainers"
        )
    for name, explainer_options in options.items():
        all_options: dict[str, Any] = dict(explainer_options)
        if baseline is not None and "baseline" in options_of(name):
            all_options.setdefault("baseline", baseline)
        split = all_options.get("baseline")
        if split in ("train", "val", "test", "all"):
            if split not in means:
                means[split] = _mean_output(inputs, split)
            all_options["baseline"] = means[split]
        dataset = with_settings(inputs.dataset or inputs.network.dataset)
        try:
            explainer = explainers.create(name, dataset=dataset, **all_options)
        except (TypeError, ValueError) as error:
            raise WrongUse(str(error)) from error
        if explainer.requires_training:
            _train(inputs, name, explainer)
        created[name] = explainer
    return created


def _mean_output(inputs: InputSelection, split: str) -> Any:
    from gstarx.gnn import expected_output

    if inputs.loaded is None:
        raise CommandError(f"--baseline {split} needs a dataset, and none was given")
    try:
        graphs = list(inputs.loaded) if split == "all" else inputs.loaded.split(split)
    except ValueError as error:
        raise CommandError(f"--baseline {split}: {error}; use --baseline all") from error
    return expected_output(inputs.network.model, graphs, task=inputs.model_task)


def _train(inputs: InputSelection, name: str, explainer: NodeExplainer) -> None:
    if inputs.loaded is None:
        raise CommandError(
            f"{name} has to be trained on the graphs of a dataset, and none was given"
        )
    which = "training graphs" if inputs.loaded.split_indices.get("train") else "graphs"
    note(f"training {name} on the {inputs.loaded.name!r} {which} ...")
    graphs, task = inputs.loaded.training_graphs, inputs.model_task
    explainer.fit(inputs.network.model, graphs, seed=inputs.seed, task=task)


class Settings(BaseModel):
    """The content of a settings file.

    Attributes
    ----------
    data
        Directory of the datasets.
    store
        Where runs are kept.
    explainer
        The explainer, where a command takes one.
    sparsity
        The share of nodes that explanations leave out.
    seed
        The seed.
    engine, workers
        Where and with how many processes runs are executed.
    json
        Whether to print JSON.
    explainers
        A table of options for each explainer.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    data: Path | None = None
    store: Path | None = None
    explainer: str | None = None
    sparsity: float | None = Field(default=None, ge=0, lt=1)
    seed: int | None = Field(default=None, ge=0)
    engine: Literal["local", "ray"] | None = None
    workers: int | None = Field(default=None, ge=1)
    json_: bool | None = Field(default=None, alias="json")
    explainers: dict[str, dict[str, Any]] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _known_names(cls, content: Any) -> Any:
        valid = [field.alias or name for name, field in cls.model_fields.items()]
        if isinstance(content, Mapping):
            for name in content:
                if name not in valid:
                    raise ValueError(unknown("setting", str(name), valid))
        return content

    @field_validator("explainer", "explainers")
    @classmethod
    def _known_explainers(cls, value: Any) -> Any:
        for name in [value] if isinstance(value, str) else value or ():
            if name not in explainer_names():
                raise ValueError(unknown("explainer", name, explainer_names()))
        return value

    def defaults(self) -> dict[str, Any]:
        """Defaults of options by the name of their parameter, without ``explainers``."""
        settings = self.model_dump(mode="json", exclude={"explainers"}, exclude_none=True)
        renamed = {"json_": "as_json"}
        return {renamed.get(name, name): value for name, value in settings.items()}


def read_settings(path: Path | None) -> Settings:
    """Read the settings from a file; by default from ``gstarx.toml``, if it exists."""
    if path is None:
        if not FILE.is_file():
            return Settings()
        path = FILE
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise CommandError(f"there is no settings file {path}") from error
    except (OSError, ValueError) as error:
        raise CommandError(f"{path} cannot be read as TOML: {error}") from error
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        raise CommandError(f"{path}: {first_problem(error)}") from error


def first_problem(error: ValidationError) -> str:
    """The first validation error, in one line."""
    problem = error.errors()[0]
    where = ".".join(str(part) for part in problem["loc"])
    message = problem["msg"].removeprefix("Value error, ")
    if problem["type"] == "value_error":
        return message
    return f"{where}: {message} (got {quoted(problem['input'])})"
