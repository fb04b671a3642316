"""What is served, to whom, and how much of it: said once, when the server starts."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from gstarx._version import __version__
from gstarx.registry import ModelSource

#: Of the package.
VERSION: str = __version__


@dataclass(frozen=True)
class Limits:
    """How much one request may ask for.

    Attributes
    ----------
    nodes
        Of a graph.
    text
        Characters of a SMILES or a sentence.
    budget
        The most that an option that counts evaluations or samples may say.
    seconds
        For one job, from the moment a worker takes it.
    best_seconds
        Of these, for the search of the best selections.
    queue
        Jobs that wait; the next one is told to come back later.
    explainers
        Of one job.
    graphs_per_page
        Entries of one list.
    questions
        That wait for a quick answer.
    listeners
        Streams of events that are open.
    connections
        That are open; one more takes the place of one that waits.
    body
        Bytes of a request.
    memory
        Bytes that a worker may grow by over one job.
    kept_jobs, kept_seconds, kept_bytes
        How many finished jobs are remembered, for how long, and how large all of them may be.
    """

    nodes: int = 150
    text: int = 1_000
    budget: int = 50_000
    seconds: float = 60.0
    best_seconds: float = 5.0
    queue: int = 16
    explainers: int = 8
    graphs_per_page: int = 100
    questions: int = 64
    listeners: int = 256
    connections: int = 512
    body: int = 1 << 16
    memory: int = 1 << 30
    kept_jobs: int = 100
    kept_seconds: float = 600.0
    kept_bytes: int = 32 << 20


@dataclass(frozen=True)
class LoadedModel:
    """A model and what is known of it.

    Attributes
    ----------
    model
        In evaluation mode.
    dataset
        The dataset it was trained on, where that is known: it says what the model can read.
    facts
        What else there is to say: network, digest, accuracy ...
    classes
        What its classes stand for; empty where the dataset says it, or nobody knows.
    return_type
        ``"raw"``, ``"probs"`` or ``"log_probs"``.
    """

    model: Any
    dataset: str | None = None
    facts: dict[str, str] = field(default_factory=dict)
    classes: tuple[str, ...] = ()
    return_type: str = "raw"


@dataclass(frozen=True)
class ServedModel:
    """A model by the name under which requests ask for it.

    Attributes
    ----------
    name
        The name.
    source
        Where worker processes load it from.
    title
        What people call it; the name where there is none.
    missing
        What has to be installed first. Such a model is listed and cannot be asked.
    return_type
        What the model returns: ``"raw"``, ``"probs"`` or ``"log_probs"``.
    """

    name: str
    source: ModelSource
    title: str = ""
    missing: str | None = None
    return_type: str = "raw"

    def load(self) -> LoadedModel:
        """The model, loaded in this process."""
        from gstarx.models import load_source

        found = load_source(self.source)
        return LoadedModel(found.model, found.dataset, found.facts, found.classes, self.return_type)


@dataclass(frozen=True)
class ServedRun:
    """A store of runs to browse.

    Attributes
    ----------
    store
        Its directory.
    dataset
        Which of several datasets; by default the one with most rows.
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
        Directory of the datasets; by default as :func:`gstarx.datasets.load` has it.
    host, port
        Where to listen; port 0 is any that is free.
    names
        Other names under which this machine is reached.
    token
        What a request has to show; none where only this machine can ask.
    workers
        Processes that explain.
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
