"""The HTTP API: its requests, its routes, and the files of the page."""

import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any, Literal, get_args

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import StreamingResponse
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictInt, StringConstraints
from starlette.exceptions import HTTPException

from gstarx._version import __version__
from gstarx.registry import PLAYERS
from gstarx_explorer.messages import Refused
from gstarx_explorer.server import Guard, error_response
from gstarx_explorer.service import ExplorerService
from gstarx_explorer.settings import METRICS, Settings

# No ``from __future__ import annotations``: FastAPI could not resolve local names in strings.

PREFIX = "/api/v1"
#: Media types of the page's files by suffix.
_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}

Name = Annotated[str, StringConstraints(strict=True, min_length=1, max_length=100)]
#: Longer than any server allows.
Text = Annotated[str, StringConstraints(strict=True, max_length=10_000)]
Position = Annotated[int, Field(strict=True, ge=0, lt=2**31)]
#: Players that some graph of the page has.
_PLAYERS = "|".join(name for name, spec in PLAYERS.items() if spec.titles)
Players = Annotated[str, StringConstraints(strict=True, pattern=f"^({_PLAYERS})$")]
Metric = Literal["fidelity", "inverse_fidelity", "harmonic_fidelity"]
assert get_args(Metric) == METRICS


class _Fields(BaseModel):
    """A request with exactly the fields that are described."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class SmilesInput(_Fields):
    """A molecule."""

    smiles: Text


class SentenceInput(_Fields):
    """A sentence."""

    sentence: Text


class GraphInput(_Fields):
    """A graph of the model's dataset, by its position."""

    graph: Position


class RunGraphInput(_Fields):
    """A graph of the browsed run: its stored explanations are shown, and nothing is computed."""

    run_graph: Position


class ChosenExplainer(_Fields):
    """An explainer and the options that differ from its defaults."""

    name: Name
    options: dict[Name, StrictBool | StrictInt | Annotated[float, Field(strict=True)] | Name] = (
        Field(default_factory=dict, max_length=20)
    )


class _Question(_Fields):
    model: Name
    input: SmilesInput | SentenceInput | GraphInput | RunGraphInput
    target: Position | None = None
    players: Players = "nodes"


class JobRequest(_Question):
    """A graph to explain, the explainers to use, and who plays: what gets a score."""

    explainers: list[ChosenExplainer] = Field(default_factory=list, max_length=50)
    best: StrictBool = True
    seed: Annotated[int, Field(strict=True, ge=0, lt=2**53)] = 0


class ScoreRequest(_Question):
    """A selection to evaluate: nodes, or other players by their numbers."""

    nodes: list[Position] = Field(max_length=1_000)


class ErrorBody(BaseModel):
    """An error: a code for programs, a message for people, and the field of the request."""

    code: str
    message: str
    field: str | None


class ErrorAnswer(BaseModel):
    """The response to every request that fails."""

    error: ErrorBody


class Score(BaseModel):
    """How faithful a selection of nodes is; null for a regression without a reference."""

    size: int
    sparsity: float
    fidelity: float | None
    inverse_fidelity: float | None
    harmonic_fidelity: float | None


class Job(BaseModel):
    """A job and its results so far.

    ``subject`` is the graph: its drawing, the prediction, and who plays. A result has the title and
    the options of an explainer, its explanation as ``gstarx.schema()`` describes it, and for every
    number of players from 0 to all of them the selection and its ``metrics``. ``best`` has the best
    selections that a search found.
    """

    id: str
    state: Literal["queued", "running", "done", "failed", "canceled"]
    position: int | None
    progress: dict[str, Any]
    subject: dict[str, Any] | None
    results: list[dict[str, Any]]
    best: dict[str, Any] | None
    error: ErrorBody | None
    seconds: float


class _StrictRequest(Request):
    """A request whose JSON is parsed strictly."""

    async def json(self) -> Any:
        return strict_json(await self.body())


class _StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
            if request.method == "POST" and kind != "application/json":
                raise Refused("not_json", "the content type must be application/json")
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict


def strict_json(text: bytes) -> Any:
    """Parse JSON in UTF-8; duplicate names, NaN and infinity are errors.

    Raises
    ------
    json.JSONDecodeError
        If the text is anything else.

    Examples
    --------
    >>> strict_json(b'{"a": [1, 2.5, null]}')
    {'a': [1, 2.5, None]}
    >>> strict_json(b'{"a": NaN}')
    Traceback (most recent call last):
    ...
    json.decoder.JSONDecodeError: NaN is not valid JSON: line 1 column 1 (char 0)
    """
    try:
        decoded = text.decode("utf-8")
        return json.loads(decoded, parse_constant=_refuse_constant, object_pairs_hook=_unique)
    except json.JSONDecodeError:
        raise
    except (ValueError, RecursionError) as error:
        raise json.JSONDecodeError(str(error), "", 0) from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not valid JSON")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        raise ValueError("an object has a name twice")
    return content


def create_app(settings: Settings) -> FastAPI:
    """The server as an ASGI application; its service is ``app.state.service``."""
    service = ExplorerService(settings)

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        await service.open()
        try:
            yield
        finally:
            await service.close()

    app = FastAPI(
        title="GStarX explorer",
        description="Explains which nodes of a graph led to a model's prediction.",
        version=__version__,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # its page would load scripts from other hosts
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    api = APIRouter(route_class=_StrictRoute)
    _add_api(api, service)
    app.include_router(api, prefix=PREFIX)
    _add_page(app)
    app.add_exception_handler(Refused, _handle_refused)
    app.add_exception_handler(RequestValidationError, _handle_invalid)
    app.add_exception_handler(HTTPException, _handle_http)
    app.add_middleware(Guard, settings=settings)
    return app


def _json(content: str, status: int = 200) -> Response:
    return Response(content, status, media_type="application/json")


def _answers(model: Any, *errors: int, status: int = 200) -> dict[str, Any]:
    """What a route is described with: its response and its errors."""
    described = {code: {"model": ErrorAnswer} for code in (401, 403, 422, 503, *errors)}
    return {"response_model": model, "responses": described, "status_code": status}


def _add_api(api: APIRouter, service: ExplorerService) -> None:
    job_queue, max_limit = service.job_queue, service.settings.limits.graphs_per_page
    Search = Annotated[str, Query(max_length=200)]
    Offset = Annotated[int, Query(ge=0, lt=2**31)]
    Limit = Annotated[int, Query(ge=1, le=max_limit)]
    RunName = Annotated[str | None, Query(max_length=100)]
    JobName = Annotated[str, Path(max_length=40)]
    limit_by_default = min(50, max_limit)

    @api.get("/about", **_answers(dict[str, Any]))
    async def about() -> Response:
        """Models, explainers, limits, and the run that can be browsed."""
        return _json(service.about())

    @api.get("/models/{model}/graphs", **_answers(dict[str, Any], 404))
    async def graphs(
        model: Annotated[str, Path(max_length=100)],
        offset: Offset = 0,
        limit: Limit = limit_by_default,
        search: Search = "",
    ) -> Response:
        """The graphs of a model's dataset that match the search, page by page."""
        service.check_model(model)
        page = {"offset": offset, "limit": limit, "search": search}
        return _json(await service.ask("graphs", model=model, **page))

    @api.post("/score", **_answers(Score, 404, 413, 415))
    async def score(request: ScoreRequest) -> Response:
        """How faithful a selection of nodes is to the model."""
        return _json(await service.score(request.model_dump()))

    @api.post("/jobs", **_answers(Job, 404, 413, 415, 429, status=202))
    async def start(request: JobRequest) -> Response:
        """Explain a graph; the response has the ID of the job."""
        return _json((await service.start_job(request.model_dump())).as_json(), 202)

    @api.get("/jobs/{job}", **_answers(Job, 404))
    async def look(job: JobName) -> Response:
        """A job and its results so far."""
        return _json(job_queue.get(job).as_json())

    stream = _answers(None, 404)
    stream["responses"][200] = {
        "content": {"text/event-stream": {}},
        "description": "Changes of the job, until it ends.",
    }

    @api.get("/jobs/{job}/events", response_class=StreamingResponse, **stream)
    async def events(job: JobName) -> Response:
        """The changes of a job, from its start to its end."""
        return StreamingResponse(job_queue.listen(job), media_type="text/event-stream")

    @api.delete("/jobs/{job}", **_answers(Job, 404))
    async def cancel(job: JobName) -> Response:
        """Cancel a job that is queued or running; one that has ended stays as it is."""
        canceled = job_queue.get(job)
        job_queue.cancel(canceled)
        return _json(canceled.as_json())

    @api.get("/run", **_answers(dict[str, Any], 404))
    async def run() -> Response:
        """The run that can be browsed, in its current state."""
        return _json(await service.run())

    @api.get("/run/rows", **_answers(dict[str, Any], 404))
    async def rows(
        sparsity: Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)] = 0.7,
        run: RunName = None,
        filter: Literal["all", "wrong", "failed"] = "all",
        sort: Literal["graph", "nodes"] | Metric = "graph",
        order: Literal["asc", "desc"] = "asc",
        search: Search = "",
        offset: Offset = 0,
        limit: Limit = limit_by_default,
    ) -> Response:
        """The graphs of the run with the metrics of every explainer, page by page."""
        view = {"sparsity": sparsity, "run": run, "filter": filter, "sort": sort}
        page = {"order": order, "search": search, "offset": offset, "limit": limit}
        return _json(await service.ask("rows", **view, **page))

    @api.get("/run/groups", **_answers(dict[str, Any], 404))
    async def groups(run: RunName = None, by: RunName = None) -> Response:
        """Which groups of atoms, words or node types drive each class, by one run."""
        return _json(await service.ask("groups", run=run, by=by))


def _add_page(app: FastAPI) -> None:
    folder = files("gstarx_explorer") / "page"
    # read in advance, so that no request can name another file
    content = {
        file.name: (file.read_bytes(), _MEDIA_TYPES[file.name.rpartition(".")[2]])
        for file in folder.iterdir()
        if file.is_file() and file.name.rpartition(".")[2] in _MEDIA_TYPES
    }

    @app.get("/page/{name}", include_in_schema=False)
    async def page_file(name: str) -> Response:
        if name not in content:
            raise Refused("not_found", "there is no such page")
        body, media_type = content[name]
        return Response(body, media_type=media_type, headers={"Cache-Control": "no-cache"})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return await page_file("index.html")

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return await page_file("favicon.svg")


async def _handle_refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return error_response(error)


async def _handle_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = str(first.get("ctx", {}).get("error", ""))
        return error_response(Refused("invalid", f"the body is not valid JSON: {reason}"[:400]))
    path = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    return error_response(Refused("invalid", str(first["msg"])[:400], ".".join(path)[:200] or None))


async def _handle_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = {
        404: ("not_found", "there is nothing at this address"),
        405: ("not_allowed", "this method is not allowed at this address"),
        413: ("too_large", "the request is too large"),
    }.get(error.status_code, ("invalid", "the request is invalid"))
    response = error_response(Refused(code, message))
    response.headers.update(error.headers or {})
    return response
