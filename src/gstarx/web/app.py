"""The routes: what can be asked over HTTP, and the page that asks it."""

from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Annotated, Any, Literal

from fastapi import APIRouter, FastAPI, Path, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, StreamingResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException

from gstarx.web import schemas
from gstarx.web.messages import Problem, Refused
from gstarx.web.middleware import strict_json
from gstarx.web.security import Guard
from gstarx.web.service import ExplorerService
from gstarx.web.settings import VERSION, Settings

PREFIX = "/api/v1"
#: Files of the page by what they are.
_TYPES = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "png": "image/png",
}
_MODEL = Path(max_length=100)
_JOB = Path(max_length=40)


# Annotations are looked at where they are written: FastAPI could not find local names in strings.


class _StrictRequest(Request):
    """A request whose JSON is what the standard calls JSON."""

    async def json(self) -> Any:
        return strict_json(await self.body())


class _StrictRoute(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def strict(request: Request) -> Response:
            return await handler(_StrictRequest(request.scope, request.receive))

        return strict


def create_app(settings: Settings) -> FastAPI:
    """The whole server as an ASGI application; its service is ``app.state.service``."""
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
        description="Ask a model why: which nodes of a graph made it decide, and is that true.",
        version=VERSION,
        openapi_url=f"{PREFIX}/openapi.json",
        docs_url=None,  # its page would fetch scripts from elsewhere
        redoc_url=None,
        lifespan=lifespan,
        redirect_slashes=False,
    )
    app.state.service = service
    app.include_router(_api(service), prefix=PREFIX)
    _add_page(app)
    app.add_exception_handler(Refused, _refused)
    app.add_exception_handler(RequestValidationError, _invalid)
    app.add_exception_handler(HTTPException, _of_http)
    app.add_middleware(Guard, settings=settings)
    return app


def answered(problem: Problem) -> JSONResponse:
    """An error as every route answers it."""
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


def _api(service: ExplorerService) -> APIRouter:
    api = APIRouter(route_class=_StrictRoute)
    _add_catalog(api, service)
    _add_jobs(api, service)
    _add_run(api, service)
    return api


def _add_catalog(api: APIRouter, service: ExplorerService) -> None:
    most = service.settings.limits.graphs_per_page

    @api.get("/about", response_model=schemas.About, responses=_errors())
    async def about() -> Response:
        """What this server has: models, explainers, limits, and the run that can be browsed."""
        return _json(service.about())

    @api.get("/models/{model}/graphs", response_model=schemas.GraphList, responses=_errors(404))
    async def graphs(
        model: Annotated[str, _MODEL],
        offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=most)] = min(50, most),
        search: Annotated[str, Query(max_length=200)] = "",
    ) -> Response:
        """The graphs of a model's dataset that carry the searched text, page by page."""
        service.check_model(model)
        chosen = {"offset": offset, "limit": limit, "search": search}
        return _json(await service.desk.ask("graphs", model=model, **chosen))

    @api.post("/score", response_model=schemas.Score, responses=_errors(404, 413, 415))
    async def score(request: schemas.ScoreRequest) -> Response:
        """How true a selection of nodes is to the prediction."""
        return _json(await service.score(request.model_dump()))


def _add_jobs(api: APIRouter, service: ExplorerService) -> None:
    book = service.book

    @api.post(
        "/jobs",
        status_code=202,
        response_model=schemas.JobEntry,
        responses=_errors(404, 413, 415, 429),
    )
    async def start(request: schemas.JobRequest) -> Response:
        """Explain a graph; the answer says where to look for what is found."""
        return _json((await service.start_job(request.model_dump())).as_json(), 202)

    @api.get("/jobs/{job}", response_model=schemas.JobEntry, responses=_errors(404))
    async def look(job: Annotated[str, _JOB]) -> Response:
        """A job and what it found so far."""
        return _json(book.get(job).as_json())

    @api.get(
        "/jobs/{job}/events",
        response_class=StreamingResponse,
        responses={
            **_errors(404),
            200: {"content": {"text/event-stream": {}}, "description": "Partial jobs, to the end."},
        },
    )
    async def events(job: Annotated[str, _JOB]) -> Response:
        """What happens to a job, from its beginning: parts of it as they change."""
        return StreamingResponse(book.listen(job), media_type="text/event-stream")

    @api.delete("/jobs/{job}", response_model=schemas.JobEntry, responses=_errors(404))
    async def cancel(job: Annotated[str, _JOB]) -> Response:
        """Stop a job that waits or works; one that has ended stays as it is."""
        found = book.get(job)
        book.cancel(found)
        return _json(found.as_json())


def _add_run(api: APIRouter, service: ExplorerService) -> None:
    most = service.settings.limits.graphs_per_page

    @api.get("/run", response_model=schemas.RunSummary, responses=_errors(404))
    async def run() -> Response:
        """The run that can be browsed, as it is now."""
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
        offset: Annotated[int, Query(ge=0, lt=2**31)] = 0,
        limit: Annotated[int, Query(ge=1, le=most)] = min(50, most),
    ) -> Response:
        """The graphs of the run with the metrics of every explainer, page by page."""
        chosen = {"sparsity": sparsity, "run": run, "filter": filter, "sort": sort}
        chosen |= {"order": order, "offset": offset, "limit": limit}
        return _json(await service.desk.ask("rows", **chosen))


def _add_page(app: FastAPI) -> None:
    folder = files("gstarx.web") / "page"
    # read once: whatever a request says, no other file can be meant
    content = {
        place.name: (place.read_bytes(), _TYPES[place.name.rpartition(".")[2]])
        for place in (folder.iterdir() if folder.is_dir() else ())
        if place.is_file() and place.name.rpartition(".")[2] in _TYPES
    }

    def served(name: str) -> Response:
        if name not in content:
            raise Refused("not_found", "there is no such page")
        body, media_type = content[name]
        return Response(body, media_type=media_type, headers={"Cache-Control": "no-cache"})

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return served("index.html")

    @app.get("/page/{name}", include_in_schema=False)
    async def part(name: str) -> Response:
        return served(name)

    @app.get("/favicon.ico", include_in_schema=False)
    async def icon() -> Response:
        return served("favicon.svg") if "favicon.svg" in content else Response(status_code=204)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, Refused)
    return answered(error.problem)


async def _invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    if first["type"] == "json_invalid":
        reason = str(first.get("ctx", {}).get("error", ""))
        return answered(Problem("invalid", f"the body is no JSON: {reason}"[:400]))
    places = [str(part) for part in first["loc"] if part not in ("body", "query", "path")]
    field = ".".join(places)[:200] or None
    return answered(Problem("invalid", str(first["msg"])[:400], field))


async def _of_http(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    codes = {404: "not_found", 405: "not_allowed", 413: "too_large"}
    words = {
        404: "there is nothing at this address",
        405: "this cannot be done at this address",
        413: "the request is too large",
    }
    code = codes.get(error.status_code, "invalid")
    text = words.get(error.status_code, "the request cannot be understood")
    answer = answered(Problem(code, text))
    for name, value in (error.headers or {}).items():
        answer.headers[name] = value
    return answer
