"""Parameters of what users call: few, in one place, the same everywhere."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import gstarx
from tests.pairs import for_each

#: Packages whose public names are looked at; of the commands, parameters are the options.
PUBLIC = (
    "gstarx",
    *("gstarx." + name for name in ("datasets", "drawing", "evaluation", "explainers")),
    *("gstarx." + name for name in ("explanation", "games", "gnn", "graphs", "metrics")),
    *("gstarx." + name for name in ("models", "players", "testing", "values")),
    *("gstarx.integrations." + name for name in ("chemprop", "shapiq")),
    *("gstarx_bench." + name for name in ("datasets", "explainers", "models", "report", "runs")),
    *("gstarx_bench.summary", "gstarx_explorer"),
)
#: Records of what a file or a page says, which are read and never written out by hand.
RECORDS = {"LoadedNetwork", "ModelFacts", "DatasetSource"}
#: Besides those of ``explain``: what belongs to many graphs and nodes.
OF_MANY = {"explain_many": {"workers", "on_error"}, "explain_nodes": {"workers", "on_error"}}


def parameters_of(called: Callable[..., Any]) -> list[str]:
    names = inspect.signature(called).parameters
    return [name for name in names if name not in ("self", "cls")]


def public() -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every public function, constructor and method."""
    for package in PUBLIC:
        module = import_module(package)
        names = getattr(module, "__all__", None) or [n for n in dir(module) if n[0] != "_"]
        for name in names:
            found = getattr(module, name)
            if not callable(found) or not getattr(found, "__module__", "").startswith("gstarx"):
                continue
            if inspect.isclass(found) and issubclass(found, BaseException):
                continue
            yield f"{package}.{name}", found
            if inspect.isclass(found):
                for method, of_class in vars(found).items():
                    if method[0] != "_" and inspect.isfunction(of_class):
                        yield f"{package}.{name}.{method}", of_class


def test_nothing_public_has_more_than_14_parameters() -> None:
    long = {name: len(parameters_of(found)) for name, found in public()}
    long = {
        name: count
        for name, count in long.items()
        if count > 14 and name.rpartition(".")[2] not in {*RECORDS, "explain_many", "explain_nodes"}
    }
    assert not long


@for_each("name", ["explain_many", "explain_nodes", "GStarX"])
def test_entry_points_take_the_same_keywords(name: str) -> None:
    own = parameters_of(gstarx.explain)[2:]
    assert len(own) <= 14
    taken = parameters_of(getattr(gstarx, name))
    extra = OF_MANY.get(name, set())
    assert len(taken) <= 17 + 2
    of_a_graph = {"target", "index"} if name == "GStarX" else set()
    dropped = {"index"} if name == "explain_nodes" else of_a_graph
    given = {"model", "data", "dataset", "nodes"}
    assert set(taken) - given == (set(own) - dropped) | extra
