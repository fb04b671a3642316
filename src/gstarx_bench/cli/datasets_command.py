"""``gstarx datasets``."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from gstarx.cli.console import only_json, out, print_json, table
from gstarx.cli.options import examples, with_options
from gstarx.registry import DATASETS, NETWORKS, DatasetSource

app = typer.Typer(
    no_args_is_help=True,
    help="The datasets of the paper, and those that ship with the package.",
    epilog=examples("gstarx datasets list", "gstarx datasets info nitro"),
)


@app.command("list", epilog=examples("gstarx datasets list", "gstarx datasets list --json"))
@with_options
def list_datasets(as_json: bool = False) -> None:
    """List all datasets, and the networks for them that ship with the package."""
    rows = [
        {
            "name": name,
            "about": spec.about + (" Ships with the package." if spec.shipped else ""),
            "shipped": spec.shipped,
            "networks": [net.name for net in NETWORKS.values() if net.dataset == name],
        }
        for name, spec in DATASETS.items()
    ]
    if as_json:
        print_json(rows)
        return
    shown = table("name", "contents", "networks", left=3)
    for row in rows:
        shown.add_row(str(row["name"]), str(row["about"]), ", ".join(row["networks"]))  # type: ignore[arg-type]
    out().print(shown)


@app.command(
    "info", epilog=examples("gstarx datasets info nitro", "gstarx datasets info mutag --data data")
)
@with_options
def info(
    dataset: Annotated[str, "one dataset"], data: Path | None = None, as_json: bool = False
) -> None:
    """The size of a dataset, its classes, splits and source."""
    with only_json(as_json) as stream:
        content = _about(dataset, data)
    if as_json:
        print_json(content, stream)
        return
    _show(content)


@app.command("fetch", epilog=examples("gstarx datasets fetch mutag --data data"))
@with_options
def fetch(
    dataset: Annotated[str, "one dataset"], data: Path | None = None, as_json: bool = False
) -> None:
    """Download a dataset where that is possible, and read it once.

    Where it is not, the error says which files to put where.
    """
    info(dataset=dataset, data=data, as_json=as_json)


def _about(name: str, root: Any) -> dict[str, Any]:
    from gstarx.cli.inputs import load_dataset

    loaded = load_dataset(DatasetSource(name=name, root=None if root is None else str(root)))
    return {
        "name": loaded.name,
        "description": loaded.description,
        **asdict(loaded.statistics()),
        "class_names": list(loaded.class_names),
        "splits": {name: len(positions) for name, positions in loaded.split_indices.items()},
        "unreadable": [asdict(row) for row in loaded.unreadable],
        "source": loaded.source,
        "license": loaded.license,
        "digest": loaded.digest,
    }


def _show(content: dict[str, Any]) -> None:
    console = out()
    console.print(content["name"], style="bold")
    console.print(content["description"])
    shown = table("", "", left=2)
    shown.show_header = False
    names = ", ".join(f"{i} {name}" for i, name in enumerate(content["class_names"]))
    splits = ", ".join(f"{name} {count:,}" for name, count in content["splits"].items())
    rows = {
        "graphs": f"{content['graphs']:,} ({splits})" if splits else f"{content['graphs']:,}",
        "nodes": f"{content['mean_nodes']:.1f} per graph, {content['features']} features each",
        "edges": f"{content['mean_undirected_edges']:.1f} pairs of nodes per graph",
        "classes": names or str(content["classes"]),
        "unreadable": f"{len(content['unreadable'])} rows" if content["unreadable"] else "",
        "source": content["source"],
        "license": content["license"],
        "digest": content["digest"][:16],
    }
    for name, value in rows.items():
        if value:
            shown.add_row(name, value)
    console.print(shown)
