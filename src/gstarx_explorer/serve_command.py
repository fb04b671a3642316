"""``gstarx serve``."""

from __future__ import annotations

import os
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any

import typer

from gstarx._internal.imports import require
from gstarx._internal.messages import unknown
from gstarx.cli.console import CommandError, WrongUse, note, show_progress
from gstarx.cli.inputs import OwnGraphs
from gstarx.cli.options import complete_network, examples
from gstarx.registry import DATASETS, MODEL_FILES, NETWORKS, DatasetSource, ModelSource
from gstarx_explorer.settings import Limits, ServedModel, ServedRun, Settings, is_loopback

EXAMPLES = examples(
    "gstarx serve",
    "gstarx serve --run gstarx-runs",
    "gstarx serve --weights mine.safetensors --file table.csv",
    "gstarx serve --model mutag.safetensors --model nitro --data data",
    "gstarx serve --host 0.0.0.0 --port 8080",
)
_TITLES = {
    "nitro-gcn": "Aromatic nitro groups",
    "motifs-gcn": "House or five-cycle",
    "sst2-gcn": "Film reviews, GCN",
    "sst2-gat": "Film reviews, GAT",
    "tweets-gcn": "Tweets",
}
_FIRST = ("nitro-gcn", "motifs-gcn")
_TEXT = ("sst2-gcn", "sst2-gat", "tweets-gcn")
_SHORTEST_TOKEN = 16
_LIMITS = Limits()
_WHERE, _LIMITED = "Address and access", "Limits of a request"


@dataclass(frozen=True)
class Address:
    """Where to listen, and who may connect."""

    host: Annotated[
        str,
        typer.Option(
            "--host",
            help="The address to listen on; requests from other machines need a token.",
            rich_help_panel=_WHERE,
        ),
    ] = "127.0.0.1"
    port: Annotated[
        int,
        typer.Option(
            "--port", min=0, max=65535, help="0 for any free port.", rich_help_panel=_WHERE
        ),
    ] = 8000
    token: Annotated[
        str | None,
        typer.Option(
            "--token",
            help="The token that requests must contain; generated if one is needed.",
            envvar="GSTARX_TOKEN",
            rich_help_panel=_WHERE,
            show_default=False,
        ),
    ] = None
    name: Annotated[
        list[str] | None,
        typer.Option(
            "--name",
            help="Another host name of this machine; can be repeated.",
            rich_help_panel=_WHERE,
            show_default=False,
        ),
    ] = None

    def settings(self) -> dict[str, Any]:
        """The settings that these are, with a token if one is needed."""
        token = self.token
        if token is not None and len(token) < _SHORTEST_TOKEN:
            got = len(token)
            raise WrongUse(f"--token must have {_SHORTEST_TOKEN} characters or more (got {got})")
        if token is not None and (token != token.strip() or not token.isprintable()):
            raise WrongUse("--token must not begin or end with a space or contain a line break")
        if token is None and not is_loopback(self.host):
            token = secrets.token_urlsafe(24)
        names = tuple(self.name or ())
        return {"host": self.host, "port": self.port, "token": token, "names": names}


@dataclass(frozen=True)
class Limited:
    """Limits of a request."""

    workers: Annotated[
        int | None,
        typer.Option(
            "--workers",
            min=1,
            max=64,
            help="Processes that explain; by default two to four.",
            rich_help_panel=_LIMITED,
            show_default=False,
        ),
    ] = None
    max_nodes: Annotated[
        int, typer.Option(min=1, max=2_000, help="Nodes of a graph.", rich_help_panel=_LIMITED)
    ] = _LIMITS.nodes
    max_text: Annotated[
        int,
        typer.Option(
            min=1, max=10_000, help="Characters of a SMILES or sentence.", rich_help_panel=_LIMITED
        ),
    ] = _LIMITS.text
    max_budget: Annotated[
        int, typer.Option(min=10, help="Evaluations of an explainer.", rich_help_panel=_LIMITED)
    ] = _LIMITS.budget
    max_seconds: Annotated[
        float, typer.Option(min=1, help="Seconds of a job.", rich_help_panel=_LIMITED)
    ] = _LIMITS.seconds
    max_memory: Annotated[
        float | None,
        typer.Option(
            min=0.5,
            max=1_024,
            help="Memory of a job, in GB; by default, from the machine's memory and the workers.",
            rich_help_panel=_LIMITED,
            show_default=False,
        ),
    ] = None
    max_queue: Annotated[
        int, typer.Option(min=1, max=1_000, help="Jobs in the queue.", rich_help_panel=_LIMITED)
    ] = _LIMITS.queue

    def settings(self) -> dict[str, Any]:
        """The settings that these are, with memory by the machine and the number of workers."""
        from gstarx_explorer.workers import default_memory

        workers = self.workers or min(4, max(2, (os.cpu_count() or 2) // 2))
        memory, seconds = self.max_memory, self.max_seconds
        limits = Limits(
            nodes=self.max_nodes,
            text=self.max_text,
            budget=self.max_budget,
            seconds=seconds,
            memory=default_memory(workers) if memory is None else int(memory * (1 << 30)),
            queue=self.max_queue,
            best_seconds=min(_LIMITS.best_seconds, seconds / 2),
        )
        return {"workers": workers, "limits": limits}


def serve(
    graphs: OwnGraphs,
    address: Address,
    limited: Limited,
    run: Annotated[
        Path | None,
        typer.Option(
            "--run", metavar="STORE", help="A store of runs to browse.", show_default=False
        ),
    ] = None,
    run_dataset: Annotated[
        str | None,
        typer.Option(
            "--run-dataset",
            help="Which dataset of the store; by default the one with the most rows.",
            show_default=False,
        ),
    ] = None,
    model: Annotated[
        list[str] | None,
        typer.Option(
            "--model",
            help="A network that ships with the package, a file of weights (.safetensors, .pth, "
            "or .pt and .ckpt of Chemprop), or [b]module:factory[/b]; can be "
            "repeated. By default all that ship with the package.",
            autocompletion=complete_network,
            rich_help_panel="Network",
            show_default=False,
        ),
    ] = None,
    weights: Path | None = None,
    trust: bool = False,
    task: str | None = None,
    return_type: str = "raw",
    data: Path | None = None,
) -> None:
    """Start the explorer, a web page that explains predictions and shows runs.

    With [b]--file[/b] or [b]--graphs[/b], the page offers your own graphs to your own model; rows
    that cannot be read are reported before the server starts.

    It works offline. Only this machine can connect unless [b]--host[/b] says otherwise; then
    everyone needs the printed address with its token, and traffic is plain HTTP. Ctrl-C stops it.
    """
    for package in ("fastapi", "uvicorn"):
        if find_spec(package) is None:
            require(package, extra="web")
    from gstarx_explorer.server import ModelRefused
    from gstarx_explorer.server import serve as listen

    if run is not None and not (run / "store.json").is_file():
        raise WrongUse(f"there is no store of runs at {run}")
    user_graphs = own_graphs(graphs, task)
    settings = Settings(
        models=served_models(
            model or (), weights, return_type, task=task, graphs=user_graphs, trust=trust
        ),
        run=None if run is None else ServedRun(run.absolute(), run_dataset),
        data=data,
        **address.settings(),
        **limited.settings(),
    )

    def started(address: str) -> None:
        note(f"the explorer is at {address}  (Ctrl-C stops it)")
        if not is_loopback(settings.host):
            note("traffic is plain HTTP: use an SSH tunnel or a TLS proxy to encrypt it")

    if show_progress() and any(model.required for model in settings.models):
        note("loading the model and its graphs ...")
    try:
        listen(settings, started)
    except ModelRefused as error:
        raise CommandError(str(error)) from error


def own_graphs(options: OwnGraphs, task: str | None = None) -> DatasetSource | None:
    """The user's own graphs that the options select.

    >>> own_graphs(OwnGraphs(label="active"))
    Traceback (most recent call last):
    ...
    gstarx.cli.console.WrongUse: --label goes with --file
    """
    options.check()
    file = options.file[0] if options.file else None
    if file is not None and options.graphs is not None:
        raise WrongUse("use --file or --graphs, not both")
    own = file or options.graphs
    of_table = dict.fromkeys(("smiles_column", "label", "name_column", "encoding"), "--file")
    of_any = dict.fromkeys(("limit", "sample"), "--file or --graphs")
    for name, source in {**of_table, **of_any}.items():
        if getattr(options, name) is not None and not (file if source == "--file" else own):
            raise WrongUse(f"--{name.replace('_', '-')} goes with {source}")
    if file is not None and not file.is_file():
        problem = "it is a directory" if file.is_dir() else "there is no such file"
        raise CommandError(f"--file {file}: {problem}")
    known = {} if file is None else {"file": str(file.absolute())}
    return options.own_source(task=task, **known)


def served_models(
    models: Sequence[str],
    weights: Path | None,
    return_type: str = "raw",
    *,
    task: str | None = None,
    graphs: DatasetSource | None = None,
    trust: bool = False,
) -> tuple[ServedModel, ...]:
    """The models that the options select.

    >>> [served.name for served in served_models(["motifs"], None)]
    ['motifs']
    """
    factories = [model for model in models if ":" in model]
    if weights is not None and len(factories) > 1:
        raise WrongUse("--weights goes with one --model module:factory (got several)")
    served = [
        _served(model, weights if model in factories else None, return_type, task, trust)
        for model in models
    ]
    if weights is not None and not factories:
        served.append(_served(str(weights), None, return_type, task, trust))
    if graphs is not None:
        own = [model for model in served if model.required] or served
        if len(own) != 1:
            option = "--file" if graphs.file is not None else "--graphs"
            raise WrongUse(
                f"{option} goes with one model: use --weights file or --model module:factory "
                f"(got {len(own)})"
            )
        with_graphs = replace(own[0], graphs=graphs, required=True)
        served = [with_graphs if model is own[0] else model for model in served]
    if not served:
        text = find_spec("spacy") and find_spec("transformers")
        missing = None if text else "sentences need pip install 'gstarx[text]'"
        served = [_shipped(name) for name in _FIRST]
        served += [_shipped(name, missing) for name in _TEXT]
    for name, count in Counter(entry.name for entry in served).items():
        if count > 1:
            raise WrongUse(f"two models are called {name!r}: serve them one at a time")
    return tuple(served)


def _shipped(name: str, missing: str | None = None) -> ServedModel:
    short = name.removesuffix("-gcn")
    return ServedModel(short, ModelSource(name), _TITLES[name], missing)


def _served(
    model: str, weights: Path | None, return_type: str, task: str | None, trust: bool
) -> ServedModel:
    if ":" in model:
        source = ModelSource(model, None if weights is None else weights.absolute(), task=task)
        return ServedModel(model, source, return_type=return_type, required=True)
    name = model if model in NETWORKS else f"{model}-gcn"
    if name in NETWORKS:
        return _shipped(name)
    path = Path(model)
    if path.suffix not in (".safetensors", ".pth", *MODEL_FILES):
        raise WrongUse(unknown("network or file of weights", model, NETWORKS))
    if not path.is_file():
        raise WrongUse(f"there is no file of weights at {path}")
    # published files share one name, in a directory that is named after their dataset
    folder = path.absolute().parent.name
    name = f"{folder}-{path.stem}" if path.suffix == ".pth" and folder in DATASETS else path.stem
    source = ModelSource(weights=path.absolute(), task=task, trust=trust)
    return ServedModel(name, source, return_type=return_type, required=True)
