"""Requests and responses of the HTTP API, as its OpenAPI description has them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StringConstraints

from gstarx.registry import PLAYERS

#: Upper bounds of lists and texts in requests, above the limits of any server.
_MAX_ITEMS = 1_000
_MAX_LENGTH = 10_000

Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100)]
Text = Annotated[str, StringConstraints(strict=True, max_length=_MAX_LENGTH)]
Task = Literal["classification", "binary", "multilabel", "regression"]
Position = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
if TYPE_CHECKING:
    Players = str
else:
    #: Players that some graph of the page has.
    Players = Literal[*(name for name, spec in PLAYERS.items() if spec.titles)]


class _Request(BaseModel):
    """A request with exactly the fields that are described."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SmilesInput(_Request):
    """A molecule."""

    smiles: Text


class SentenceInput(_Request):
    """A sentence."""

    sentence: Text


class GraphInput(_Request):
    """A graph of the model's dataset, by its position."""

    graph: Position


class RunGraphInput(_Request):
    """A graph of the browsed run: its stored explanations are shown, and nothing is computed."""

    run_graph: Position


AnyInput = SmilesInput | SentenceInput | GraphInput | RunGraphInput


class ChosenExplainer(_Request):
    """An explainer and the options that differ from its defaults."""

    name: Name
    options: dict[Name, StrictBool | StrictInt | Annotated[float, Field(strict=True)] | Name] = (
        Field(default_factory=dict, max_length=20)
    )


class JobRequest(_Request):
    """A graph to explain, the explainers to use, and who plays: what gets a score."""

    model: Name
    input: AnyInput
    explainers: list[ChosenExplainer] = Field(default_factory=list, max_length=50)
    best: StrictBool = True
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**53)] = 0
    target: Position | None = None
    players: Players = "nodes"


class ScoreRequest(_Request):
    """A selection to evaluate: nodes, or other players by their numbers."""

    model: Name
    input: AnyInput
    nodes: list[Position] = Field(max_length=_MAX_ITEMS)
    target: Position | None = None
    players: Players = "nodes"


class ErrorBody(BaseModel):
    """An error: a code for programs, a message for people, and the field of the request."""

    code: str
    message: str
    field: str | None


class ErrorAnswer(BaseModel):
    """The response to every request that fails."""

    error: ErrorBody


class OptionEntry(BaseModel):
    """An option of an explainer; a default of null depends on the graph or dataset."""

    name: str
    about: str
    type: Literal["integer", "number", "boolean", "choice"]
    default: Any
    choices: list[str]
    minimum: float | None
    maximum: float | None


class ExplainerEntry(BaseModel):
    """An explainer, and what it can score: nodes, groups of nodes, edges, features."""

    name: str
    title: str
    about: str
    trains: bool
    default: bool
    players: list[str]
    options: list[OptionEntry]


class Example(BaseModel):
    """An example input."""

    title: str
    input: dict[str, Any]


class PlayersOffered(BaseModel):
    """Who can play, and what they are called."""

    name: str
    title: str


class ModelEntry(BaseModel):
    """A model and the inputs it accepts; one with a problem cannot be used.

    ``classes`` are the names of the classes, or of the targets of a regression or of several
    yes-or-no targets; ``outputs`` is their number if it is known. ``skipped`` rows of the user's
    own table could not be read, the first of which are in ``unreadable``; ``warnings`` say what
    else is to be known about the table.
    """

    name: str
    title: str
    kind: Literal["molecule", "sentence", "graph"]
    players: list[PlayersOffered]
    inputs: list[Literal["smiles", "sentence", "graph"]]
    task: Task
    classes: list[str]
    outputs: int
    dataset: str | None
    graphs: int
    skipped: int
    unreadable: list[str]
    warnings: list[str]
    facts: dict[str, str]
    examples: list[Example]
    problem: str | None


class Curves(BaseModel):
    """Metrics by size or sparsity."""

    fidelity: list[float | None]
    inverse_fidelity: list[float | None]
    harmonic_fidelity: list[float | None]


class RunEntry(BaseModel):
    """One run of a store."""

    id: str
    explainer: str
    title: str
    options: dict[str, Any]
    graphs: int
    failed: int
    seconds: float


class RunSummary(BaseModel):
    """The runs that can be browsed, all with the same dataset and model."""

    title: str
    dataset: str
    model: str | None
    runs: list[RunEntry]
    sparsities: list[float]
    curves: dict[str, Curves]
    accuracy: float | None
    task: Task
    classes: list[str]
    target: int | None
    remark: str | None


class LimitsEntry(BaseModel):
    """The limits of one request."""

    nodes: int
    text: int
    budget: int
    seconds: float
    queue: int
    explainers: int
    graphs_per_page: int


class About(BaseModel):
    """What the server offers; lists are empty until it is ready."""

    version: str
    ready: bool
    limits: LimitsEntry
    models: list[ModelEntry]
    explainers: list[ExplainerEntry]
    run: RunSummary | None
    run_problem: str | None


class NodeEntry(BaseModel):
    """A node of the drawing: a disk of radius r, or a box of width w and height h."""

    label: str
    name: str
    x: float
    y: float
    r: float | None = None
    w: float | None = None
    h: float | None = None


class ShapeEntry(BaseModel):
    """An SVG path above the nodes."""

    d: str
    fill: str | None
    stroke: str | None
    width: float


class Drawing(BaseModel):
    """The drawing of a graph, without colors."""

    kind: Literal["molecule", "sentence", "graph"]
    width: float
    height: float
    nodes: list[NodeEntry]
    edges: list[list[int]]
    shapes: list[ShapeEntry]
    text: bool


class GraphEntry(BaseModel):
    """A graph of a dataset."""

    position: int
    title: str
    smiles: str | None
    nodes: int
    label: int | None
    measured: list[float | None]
    split: str | None
    picture: Drawing | None


class GraphList(BaseModel):
    """A page of the graphs of a dataset."""

    total: int
    graphs: list[GraphEntry]


class Score(BaseModel):
    """How faithful a selection of nodes is; null for a regression without a reference."""

    size: int
    sparsity: float
    fidelity: float | None
    inverse_fidelity: float | None
    harmonic_fidelity: float | None


class RowMetrics(BaseModel):
    """The metrics of one graph at one sparsity."""

    fidelity: float | None
    inverse_fidelity: float | None
    harmonic_fidelity: float | None


class Row(BaseModel):
    """A graph of a run, with the metrics of every explainer.

    ``outputs`` and ``measured`` are the model's outputs and the labels by target, for a regression
    and for several targets.
    """

    graph: int
    title: str
    smiles: str | None
    nodes: int | None
    prediction: int | None
    label: int | None
    correct: bool | None
    outputs: list[float]
    measured: list[float | None]
    picture: Drawing | None
    metrics: dict[str, RowMetrics | None]
    error: str | None


class RowList(BaseModel):
    """A page of the graphs of a run."""

    total: int
    rows: list[Row]


class GroupRow(BaseModel):
    """A functional group, word or node type over the graphs of a run."""

    name: str
    target: int | None
    explained: str
    mean: float
    low: float
    high: float
    graphs: int
    occurrences: int
    sign: Literal["for", "against", "raises", "lowers", "unclear"]
    examples: list[str]


class GroupSummary(BaseModel):
    """Which groups drive each class or value; their scores are sums over their nodes."""

    run: str
    by: str
    divisions: list[str]
    graphs: int
    total: int
    rows: list[GroupRow]


class Progress(BaseModel):
    """The progress of a job."""

    done: int
    total: int
    doing: str


class Prediction(BaseModel):
    """What the model predicts for the full graph.

    The class with its name and the probabilities of all classes; the probability of every target,
    without a class; or the values of a regression.
    """

    class_: int | None = Field(alias="class")
    name: str | None
    probabilities: list[float]
    values: list[float]


class GroupEntry(BaseModel):
    """A functional group; its score is the sum over its nodes."""

    name: str
    nodes: list[int]


class PlayerEntry(BaseModel):
    """A player: the nodes that it is made of, or the two ends of an edge; none of a feature."""

    name: str
    nodes: list[int]


class PlayersEntry(BaseModel):
    """Who plays instead of nodes; scores and selections are of them, by their numbers."""

    name: str
    title: str
    kind: Literal["edges", "groups", "features"]
    entries: list[PlayerEntry]


class SubjectEntry(Drawing):
    """The graph of a job and its drawing.

    ``classes`` are names of classes or targets, ``target`` is the one that is explained,
    ``measured`` are labels by target, and ``remark`` says why there are no metrics.
    """

    title: str
    smiles: str | None
    task: Task
    prediction: Prediction
    classes: list[str]
    target: int | None
    label: int | None
    measured: list[float | None]
    remark: str | None
    groups: list[GroupEntry]
    players: PlayersEntry | None
    truth: list[bool] | None
    input: dict[str, Any]


class Result(BaseModel):
    """The result of one explainer, with selections and metrics for sizes from 0 to all players."""

    explainer: str
    title: str
    options: dict[str, Any]
    target: int | None
    scores: list[float | None] | None
    std_errors: list[float | None] | None
    limit: float | None
    notes: list[str]
    selections: list[list[int]]
    metrics: Curves
    exact: bool | None
    estimator: str | None
    evaluations: int | None
    seconds: float
    error: str | None


class Best(BaseModel):
    """The best selections that a search found, by size."""

    selections: list[list[int] | None]
    metrics: Curves
    optimal: list[bool]
    evaluations: int


class JobEntry(BaseModel):
    """A job and its results so far."""

    id: str
    state: Literal["queued", "running", "done", "failed", "canceled"]
    position: int | None
    progress: Progress
    subject: SubjectEntry | None
    results: list[Result]
    best: Best | None
    error: ErrorBody | None
    seconds: float
