"""Settings of the server: what is served, to whom, and within which limits."""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gstarx._version import __version__
from gstarx.registry import TASKS, DatasetSource, ModelSource

#: The version of the package.
VERSION: str = __version__


@dataclass(frozen=True)
class Limits:
    """How much one request may ask for.

    Attributes
    ----------
    nodes
        Nodes of a graph.
    text
        Characters of a SMILES or a sentence.
    budget
        Upper bound of options that count evaluations or samples.
    seconds
        Time of one job, from the moment a worker takes it.
    best_seconds
        Part of this time that the search for the best selections may take.
    queue
        Jobs that wait; further ones are refused.
    explainers
        Explainers of one job.
    graphs_per_page
        Entries of one list.
    queries
        Quick queries that wait for an answer.
    listeners
        Open streams of events.
    connections
        Open connections; one more replaces one that is idle.
    body
        Bytes of a request.
    memory
        Bytes that a worker may grow by during one job.
    kept_jobs, kept_seconds, kept_bytes
        How many finished jobs are kept, for how long, and their total size.
    """

    nodes: int = 150
    text: int = 1_000
    budget: int = 50_000
    seconds: float = 60.0
    best_seconds: float = 5.0
    queue: int = 16
    explainers: int = 8
    graphs_per_page: int = 100
    queries: int = 64
    listeners: int = 256
    connections: int = 512
    body: int = 1 << 16
    memory: int = 1 << 30
    kept_jobs: int = 100
    kept_seconds: float = 600.0
    kept_bytes: int = 32 << 20


@dataclass(frozen=True)
class LoadedModel:
    """A model and what is known about it.

    Attributes
    ----------
    model
        The model, in evaluation mode.
    dataset
        The dataset it was trained on, if known: it determines what the model can read.
    facts
        Further facts: network, digest, accuracy ...
    classes, targets
        Names of the classes or targets; empty if the dataset has them or they are unknown.
    return_type
        ``"raw"``, ``"probs"`` or ``"log_probs"``.
    task
        What it predicts, one of :data:`gstarx.registry.TASKS`.
    reference
        The :class:`gstarx.metrics.Reference` of a regression, if it is stored with the weights.
    features
        What it reads of a molecule, if that is stored with its weights.
    graphs
        The table or factory of the user's own graphs, instead of its dataset.
    label_columns
        The columns of the table that its labels were read from, if known.
    split
        The :class:`gstarx.models.SplitRecord` of its training, if that is stored with the weights.
    salts
        ``"largest"`` if it was trained on the largest parts of molecules, and its weights say so.
    """

    model: Any
    dataset: str | None = None
    facts: dict[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    return_type: str = "raw"
    task: str = "classification"
    targets: tuple[str, ...] = ()
    reference: Any = None
    features: str | None = None
    graphs: DatasetSource | None = None
    label_columns: tuple[str, ...] = ()
    split: Any = None
    salts: str | None = None

    @property
    def mode(self) -> str:
        """The task as PyG calls it."""
        return TASKS[self.task]


@dataclass(frozen=True)
class ServedModel:
    """A model and the name that requests use for it.

    Attributes
    ----------
    name
        The name.
    source
        Where worker processes load it from.
    title
        The title on the page; by default the name.
    missing
        What has to be installed first. Such a model is listed but cannot be used.
    return_type
        What the model returns: ``"raw"``, ``"probs"`` or ``"log_probs"``.
    graphs
        The user's own graphs, instead of those of its dataset.
    required
        The server does not start if the model cannot be used.
    """

    name: str
    source: ModelSource
    title: str = ""
    missing: str | None = None
    return_type: str = "raw"
    graphs: DatasetSource | None = None
    required: bool = False

    def load(self) -> LoadedModel:
        """The model, loaded in this process."""
        from gstarx.models import load_source

        loaded = load_source(self.source)
        return LoadedModel(
            loaded.model,
            loaded.dataset,
            loaded.facts,
            loaded.class_names,
            self.return_type,
            loaded.task,
            loaded.target_names,
            loaded.reference,
            loaded.features,
            self.graphs,
            loaded.label_columns,
            loaded.split,
            loaded.salts,
        )


@dataclass(frozen=True)
class ServedRun:
    """A store of runs to browse.

    Attributes
    ----------
    store
        Its directory.
    dataset
        Which of several datasets; by default the one with the most rows.
    """

    store: Path
    dataset: str | None = None


@dataclass(frozen=True)
class Settings:
    """Everything that the command line decides.

    Attributes
    ----------
    models
        The models, in the order in which they are listed.
    run
        A store to browse.
    data
        Directory of the datasets; by default that of :func:`gstarx.datasets.load`.
    host, port
        Where to listen; port 0 is any free port.
    names
        Other host names of this machine.
    token
        The token that requests have to present; not needed if only this machine can connect.
    workers
        Number of processes that explain.
    limits
        How much one request may ask for.
    """

    models: tuple[ServedModel, ...] = ()
    run: ServedRun | None = None
    data: Path | None = None
    host: str = "127.0.0.1"
    port: int = 8000
    names: tuple[str, ...] = ()
    token: str | None = None
    workers: int = 2
    limits: Limits = field(default_factory=Limits)


def is_loopback(host: str) -> bool:
    """Whether only this machine can connect to an address.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, True, False)
    """
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
