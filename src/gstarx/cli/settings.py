"""The optional settings file ``gstarx.toml``: validated, and overridden by flags."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator

from gstarx._internal.messages import quoted, unknown
from gstarx.cli.console import CommandError
from gstarx.registry import explainer_names

#: The file that is read when it lies in the working directory.
FILE = Path("gstarx.toml")


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
