"""The routes of the HTTP API, and the files of the page."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from gstarx_explorer import schemas
from gstarx_explorer.messages import Problem, Refused
from gstarx_explorer.middleware import strict_json
from gstarx_explorer.security import Guard
from gstarx_explorer.service import ExplorerService
from gstarx_explorer.settings import VERSION, Settings

PREFIX = "/api/v1"
#: Media types of the page's files by suffix.
_MEDIA_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}
_MODEL = Path(max_length=100)
_JOB = Path(max_length=40)

# No ``from __future__ import annotations``: FastAPI could not resolve local names in strings.


class _StrictRequest(Request):
    """A request whose JSON is parsed strictly."""

    def check_type(self) -> None:
        """Raise unless a request with content says that it is JSON."""
        kind = self.headers.get("content-type", "").partition(";")[0].strip().lower()
        if self.method == "POST" and kind != "application/json":
            raise Refused("not_json", "the content type must be application/json")

    async def json(self) -> Any:
        return strict_json(await self.body())


class _StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            strict_request = _StrictRequest(request.scope, request.receive)
            strict_request.check_type()
            return await handler(strict_request)

        return strict


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
        version=VERSION,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # its page would load scripts from other hosts
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    api = APIRouter(route_class=_StrictRoute)
    for add_routes in (_add_catalog, _add_jobs, _add_run):
        add_routes(api, service)
    app.include_router(api, prefix=PREFIX)
    _add_page(app)
    app.add_exception_handler(Refused, _handle_refused)
    app.add_exception_handler(RequestValidationError, _handle_invalid)
    app.add_exception_handler(HTTPException, _handle_http)
    app.add_middleware(Guard, settings=settings)
    return app


def _error_response(problem: Problem) -> JSONResponse:
    headers = {}
    if problem.status in (429, 503):
        headers["Retry-After"] = "2"
    if problem.status == 401:
        headers["WWW-Authenticate"] = "Bearer"
    return JSONResponse({"error": problem.as_dict()}, problem.status, headers)


def _json(content: str, status: int = 200) -> Response:
    return Response(content, status, media_type="application/json")


def _errors(*statuses: int) -> dict[int | str, dict[str, Any]]:
    always = (401, 403, 422, 503)
    return {status: {"model": schemas.ErrorAnswer} for status in (*always, *statuses)}


def _add_catalog(api: APIRouter, service: ExplorerService) -> None:
    max_limit = service.settings.limits.graphs_per_page

    @api.get("/about", response_model=schemas.About, responses=_errors())
    async def about() -> Response:
        """Models, explainers, limits, and the run that can be browsed."""
        return _json(service.about())

    @api.get("/models/{model}/graphs", response_model=schemas.GraphList, responses=_errors(404))
    async def graphs(
        model: Annotated[str, _MODEL],
        offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=max_limit)] = min(50, max_limit),
        search: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """The graphs of a model's dataset that match the search, page by page."""
        service.check_model(model)
        page = {"offset": offset, "limit": limit, "search": search}
        return _json(await service.query_client.ask("graphs", model=model, **page))

    @api.post("/score", response_model=schemas.Score, responses=_errors(404, 413, 415))
    async def score(request: schemas.ScoreRequest) -> Response:
        """How faithful a selection of nodes is to the model."""
        return _json(await service.score(request.model_dump()))


def _add_jobs(api: APIRouter, service: ExplorerService) -> None:
    job_queue = service.job_queue

    @api.post(
        "/jobs",
        status_code=202,
        response_model=schemas.JobEntry,
        responses=_errors(404, 413, 415, 429),
    )
    async def start(request: schemas.JobRequest) -> Response:
        """Explain a graph; the response has the ID of the job."""
        return _json((await service.start_job(request.model_dump())).as_json(), 202)

    @api.get("/jobs/{job}", response_model=schemas.JobEntry, responses=_errors(404))
    async def look(job: Annotated[str, _JOB]) -> Response:
        """A job and its results so far."""
        return _json(job_queue.get(job).as_json())

    @api.get(
        "/jobs/{job}/events",
        response_class=StreamingResponse,
        responses={
            **_errors(404),
            200: {
                "content": {"text/event-stream": {}},
                "description": "Changes of the job, until it ends.",
            },
        },
    )
    async def events(job: Annotated[str, _JOB]) -> Response:
        """The changes of a job, from its start to its end."""
        return StreamingResponse(job_queue.listen(job), media_type="text/event-stream")

    @api.delete("/jobs/{job}", response_model=schemas.JobEntry, responses=_errors(404))
    async def cancel(job: Annotated[str, _JOB]) -> Response:
        """Cancel a job that is queued or running; one that has ended stays as it is."""
        canceled = job_queue.get(job)
        job_queue.cancel(canceled)
        return _json(canceled.as_json())


def _add_run(api: APIRouter, service: ExplorerService) -> None:
    max_limit = service.settings.limits.graphs_per_page

    @api.get("/run", response_model=schemas.RunSummary, responses=_errors(404))
    async def run() -> Response:
        """The run that can be browsed, in its current state."""
        return _json(await service.run())

    @api.get("/run/rows", response_model=schemas.RowList, responses=_errors(404))
    async def rows(
        sparsity: Annotated[float, Query(ge=0, le=1, allow_inf_nan=False)] = 0.7,
        run: Annotated[str | None, Query(max_length=100)] = None,
        filter: Literal["all", "wrong", "failed"] = "all",
        sort: Literal[
            "graph", "nodes", "fidelity", "inverse_fidelity", "harmonic_fidelity"
        ] = "graph",
        order: Literal["asc", "desc"] = "asc",
        search: Annotated[str, Query(max_length=200)] = "",
        offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=max_limit)] = min(50, max_limit),
    ) -> Response:
        """The graphs of the run with the metrics of every explainer, page by page."""
        view = {"sparsity": sparsity, "run": run, "filter": filter, "sort": sort}
        page = {"order": order, "search": search, "offset": offset, "limit": limit}
        return _json(await service.query_client.ask("rows", **view, **page))

    @api.get("/run/groups", response_model=schemas.GroupSummary, responses=_errors(404))
    async def groups(
        run: Annotated[str | None, Query(max_length=100)] = None,
        by: Annotated[str | None, Query(max_length=100)] = None,
    ) -> Response:
        """Which groups of atoms, words or node types drive each class, by one run."""
        return _json(await service.query_client.ask("groups", run=run, by=by))


def _add_page(app: FastAPI) -> None:
    folder = files("gstarx_explorer") / "page"
    # read in advance, so that no request can name another file
    content = {
        file.name: (file.read_bytes(), _MEDIA_TYPES[file.name.rpartition(".")[2]])
        for file in folder.iterdir()
        if file.is_file() and file.name.rpartition(".")[2] in _MEDIA_TYPES
    }

    def response(name: str) -> Response:
        if name not in content:
            raise Refused("not_found", "there is no such page")
        body, media_type = content[name]
        return Response(body, media_type=media_type, headers={"Cache-Control": "no-cache"})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return response("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def page_file(name: str) -> Response:
        return response(name)

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return response("favicon.svg")


async def _handle_refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return _error_response(error.problem)


async def _handle_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = str(first.get("ctx", {}).get("error", ""))
        return _error_response(Problem("invalid", f"the body is not valid JSON: {reason}"[:400]))
    path = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    field = ".".join(path)[:200] or None
    return _error_response(Problem("invalid", str(first["msg"])[:400], field))


async def _handle_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = {
        404: ("not_found", "there is nothing at this address"),
        405: ("not_allowed", "this method is not allowed at this address"),
        413: ("too_large", "the request is too large"),
    }.get(error.status_code, ("invalid", "the request is invalid"))
    response = _error_response(Problem(code, message))
    for name, value in (error.headers or {}).items():
        response.headers[name] = value
    return response
