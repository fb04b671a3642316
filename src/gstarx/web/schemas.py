"""What goes over the wire, as the OpenAPI description says it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StringConstraints

#: More than any list in a request may hold, whatever the server's own limits are.
_MANY = 1_000
_LONG = 10_000

Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100)]
Text = Annotated[str, StringConstraints(strict=True, max_length=_LONG)]
Position = Annotated[int, Field(strict=True, ge=0, lt=2**31)]


class _Request(BaseModel):
    """A request holds what is described and nothing else."""

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
    """A graph of the run that is browsed: what was found of it is shown, nothing is explained."""

    run_graph: Position


AnyInput = SmilesInput | SentenceInput | GraphInput | RunGraphInput


class ChosenExplainer(_Request):
    """An explainer and the options that differ from its own."""

    name: Name
    options: dict[Name, StrictBool | StrictInt | Annotated[float, Field(strict=True)] | Name] = (
        Field(default_factory=dict, max_length=20)
    )


class JobRequest(_Request):
    """A graph to explain, and how."""

    model: Name
    input: AnyInput
    explainers: list[ChosenExplainer] = Field(default_factory=list, max_length=50)
    best: StrictBool = True
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**53)] = 0
    target: Position | None = None


class ScoreRequest(_Request):
    """A selection of nodes to judge."""

    model: Name
    input: AnyInput
    nodes: list[Position] = Field(max_length=_MANY)
    target: Position | None = None


class ErrorBody(BaseModel):
    """What is wrong: a code for programs, words for people, and where in the request."""

    code: str
    message: str
    field: str | None


class ErrorAnswer(BaseModel):
    """Every error looks like this."""

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
    """An explainer."""

    name: str
    title: str
    about: str
    trains: bool
    default: bool
    options: list[OptionEntry]


class Example(BaseModel):
    """An input to try."""

    title: str
    input: dict[str, Any]


class ModelEntry(BaseModel):
    """A model, and how it can be asked; one with a problem cannot."""

    name: str
    title: str
    kind: Literal["molecule", "sentence", "graph"]
    inputs: list[Literal["smiles", "sentence", "graph"]]
    classes: list[str]
    dataset: str | None
    graphs: int
    facts: dict[str, str]
    examples: list[Example]
    problem: str | None


class Curves(BaseModel):
    """Metrics, each by size or sparsity."""

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
    """The runs that are browsed, all about one dataset and one model."""

    title: str
    dataset: str
    model: str | None
    runs: list[RunEntry]
    sparsities: list[float]
    curves: dict[str, Curves]
    accuracy: float | None
    classes: list[str]
    remark: str | None


class LimitsEntry(BaseModel):
    """How much one request may ask for."""

    nodes: int
    text: int
    budget: int
    seconds: float
    queue: int
    explainers: int
    graphs_per_page: int


class About(BaseModel):
    """What this server has; lists are empty until it is ready."""

    version: str
    ready: bool
    limits: LimitsEntry
    models: list[ModelEntry]
    explainers: list[ExplainerEntry]
    run: RunSummary | None
    run_problem: str | None


class GraphEntry(BaseModel):
    """A graph of a dataset."""

    position: int
    title: str
    nodes: int
    label: int | None
    split: str | None


class GraphList(BaseModel):
    """A page of the graphs of a dataset."""

    total: int
    graphs: list[GraphEntry]


class Score(BaseModel):
    """How true a selection of nodes is to the prediction."""

    size: int
    sparsity: float
    fidelity: float
    inverse_fidelity: float
    harmonic_fidelity: float


class RowMetrics(BaseModel):
    """The metrics of one graph at one sparsity."""

    fidelity: float
    inverse_fidelity: float
    harmonic_fidelity: float


class Row(BaseModel):
    """A graph of a run, with the metrics of every explainer."""

    graph: int
    title: str
    nodes: int | None
    prediction: int | None
    label: int | None
    correct: bool | None
    metrics: dict[str, RowMetrics | None]
    error: str | None


class RowList(BaseModel):
    """A page of the graphs of a run."""

    total: int
    rows: list[Row]


class Progress(BaseModel):
    """How far a job is."""

    done: int
    total: int
    doing: str


class NodeEntry(BaseModel):
    """A node as it is drawn: a disc of radius r, or a box of width w and height h."""

    label: str
    name: str
    x: float
    y: float
    r: float | None = None
    w: float | None = None
    h: float | None = None


class ShapeEntry(BaseModel):
    """A path of SVG above the nodes."""

    d: str
    fill: str | None
    stroke: str | None
    width: float


class Prediction(BaseModel):
    """What the model says of the whole graph."""

    class_: int = Field(alias="class")
    name: str | None
    probabilities: list[float]


class SubjectEntry(BaseModel):
    """The graph of a job, as it is drawn."""

    title: str
    kind: Literal["molecule", "sentence", "graph"]
    width: float
    height: float
    nodes: list[NodeEntry]
    edges: list[list[int]]
    shapes: list[ShapeEntry]
    text: bool
    prediction: Prediction
    classes: list[str]
    label: int | None
    truth: list[bool] | None
    input: dict[str, Any]


class Result(BaseModel):
    """What one explainer found; selections and metrics go by their size, from 0 to all nodes."""

    explainer: str
    title: str
    options: dict[str, Any]
    target: int | None
    scores: list[float | None] | None
    std_errors: list[float | None] | None
    selections: list[list[int]]
    metrics: Curves
    exact: bool | None
    estimator: str | None
    evaluations: int | None
    seconds: float
    error: str | None


class Best(BaseModel):
    """The best selections that a search for the metric found, by size."""

    selections: list[list[int] | None]
    metrics: Curves
    optimal: list[bool]
    evaluations: int


class JobEntry(BaseModel):
    """A job and everything that it found so far."""

    id: str
    state: Literal["queued", "running", "done", "failed", "cancelled"]
    position: int | None
    progress: Progress
    subject: SubjectEntry | None
    results: list[Result]
    best: Best | None
    error: ErrorBody | None
    seconds: float
