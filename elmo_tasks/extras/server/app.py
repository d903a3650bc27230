"""The application: addresses, what they take and what they answer."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Annotated, Any, Literal, TypeVar

import pydantic
from fastapi import APIRouter, Body, FastAPI, HTTPException, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from fastapi_offline import FastAPIOffline
from pydantic import Field
from starlette.exceptions import HTTPException as StarletteHTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import JSONResponse, PlainTextResponse, StreamingResponse
from starlette.staticfiles import StaticFiles

from elmo_tasks import __version__
from elmo_tasks.config import Config
from elmo_tasks.errors import ElmoTasksError, did_you_mean
from elmo_tasks.extras.server import Limits
from elmo_tasks.extras.server.bilm_vectors import BiLMRequest, ServedBiLM
from elmo_tasks.extras.server.guard import CONTENT_TYPE, Guard, Metrics, admit, error_response
from elmo_tasks.extras.server.request_batches import Batcher, Process
from elmo_tasks.extras.server.served_runs import PAGE, Additions, PredictionRequest, ServedRun, palette_css
from elmo_tasks.files.json_files import json_text, parse_json

_MOST = 50  # neighbours, and substitutes of a token

Details = Annotated[bool, Query(description="adds what the page draws, such as the probabilities of other tags")]
Explain = Annotated[bool, Query(description="adds how much each token contributes to each result")]
RunName = Annotated[str | None, Field(description="the run whose biLM is used; by default, the first run with one")]
TokenIndex = Annotated[int, Field(description="the index of the token, from 0")]


class Sentence(Config):
    """A sentence, as raw text or as tokens."""

    text: str | None = Field(None, description="raw text, read as one sentence")
    tokens: list[str] | None = Field(None, description="the tokens, instead of `text`")

    def fields(self) -> dict[str, Any]:
        return {key: value for key in ("text", "tokens") if (value := getattr(self, key)) is not None}


class SentenceOfRun(Sentence):
    """A sentence, and which biLM reads it."""

    run: RunName = None


class EmbedBody(SentenceOfRun):
    layers: list[int] | None = Field(None, description="the layers to return; 0 is the token layer, null returns all")
    pooling: Literal["none", "mean", "max"] = Field("none", description="mean and max return one vector for each layer")


class TokenInSentence(Sentence):
    index: TokenIndex


class SimilarityBody(Config):
    one: TokenInSentence
    other: TokenInSentence
    run: RunName = None


class NeighborsBody(SentenceOfRun):
    index: TokenIndex
    layer: int = Field(1, description="the layer whose vectors are compared; 0 is the token layer")
    k: Annotated[int, Field(ge=1, le=_MOST)] = Field(10, description="the number of neighbours")


class ScoreBody(SentenceOfRun):
    substitutes: int = Field(0, ge=0, le=_MOST, description="the number of likely words to return for each token")


class BatchBody(Config):
    inputs: list[Any] = Field(description="texts, or objects in the form of a line for `elmo-tasks predict`")


class Answer(pydantic.BaseModel):
    """The results of an input, such as one for each sentence: the JSON lines that `elmo-tasks predict` prints."""

    results: list[dict[str, Any]]


class Problem(pydantic.BaseModel):
    """What is wrong."""

    error: str


class BatchAnswer(pydantic.BaseModel):
    """For each input, in their order, its results or what is wrong with it."""

    results: list[Answer | Problem]


logger = logging.getLogger(__name__)

_JSON = "application/json"
_CHUNK_BYTES = 1 << 16  # of an answer: so much of it can lie in the connection's buffer, beyond the bound of tokens

Prepared = PredictionRequest | BiLMRequest
_T = TypeVar("_T")
_LESS = "Send less text at once"


class _StrictJson(Request):
    """A request whose body is read as a line of `elmo-tasks predict`."""

    async def json(self) -> Any:
        content = await self.body()
        try:
            return parse_json(content.decode(), "the request", "a JSON object")
        except UnicodeDecodeError as error:
            raise HTTPException(422, f"the request: byte {error.start + 1} is not UTF-8") from None
        except ElmoTasksError as error:
            raise HTTPException(422, str(error)) from None


class _Route(APIRoute):
    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handler = super().get_route_handler()

        async def handle(request: Request) -> Response:
            try:
                _check_headers(request)
                return await handler(_StrictJson(request.scope, request.receive))
            except (StarletteHTTPException, RequestValidationError, ElmoTasksError):
                raise
            except Exception as error:  # answered here, so that it gets the same headers and is counted
                logger.exception("a request failed")
                return await _refuse(request, error)

        return handle


def _check_headers(request: Request) -> None:
    """Refuses a body that is not plain JSON. So a form of another site is not read."""
    if request.method != "POST":
        return
    if (encoding := request.headers.get("content-encoding", "identity")) != "identity":
        problem = f"the header Content-Encoding is {encoding[:80]!r}; send the body uncompressed"
        raise HTTPException(415, problem, {"Accept-Encoding": "identity"})
    given = request.headers.get("content-type")
    if given is None or given.partition(";")[0].strip().lower() != _JSON:
        found = "missing" if given is None else f"{given[:80]!r}"
        raise HTTPException(415, f"the header Content-Type is {found}; expected {_JSON}")


class Service:
    """What the handlers share: the runs, the biLMs, and the way of a request through the queue.

    Arguments:
        bilms: by the names of runs; `""` is the default.
    """

    def __init__(
        self,
        runs: Mapping[str, ServedRun],
        bilms: Mapping[str, ServedBiLM],
        limits: Limits,
        metrics: Metrics,
        note: str | None = None,
    ) -> None:
        self.runs, self.limits, self.metrics, self.note = runs, limits, metrics, note
        self._bilms = bilms
        self._twins = {run.twin.name: run.load_twin for run in runs.values() if run.twin and run.load_twin}
        for run in runs.values():
            run.most_cost = limits.queue_tokens
        self._batcher = Batcher(limits.batch_tokens, metrics.computed)
        self._preparing = ThreadPoolExecutor(1, "preparing")  # splitting text must not hold up the other requests

    async def run(self, name: str) -> ServedRun:
        """The run of a name. A twin without ELMo is loaded when it is first asked for."""
        if name in self._twins and name not in self.runs:
            return await asyncio.get_running_loop().run_in_executor(self._preparing, self._twin, name)
        return _named(name, self.runs, f"Runs: {', '.join(self.runs)}")

    def _twin(self, name: str) -> ServedRun:
        try:
            twin = self._twins[name]()[name]
        except ElmoTasksError as error:  # not a fault of the request, and its text has names of folders
            raise RuntimeError(f"{name} cannot be loaded") from error
        twin.most_cost = self.limits.queue_tokens
        return twin

    def bilm(self, name: str | None) -> ServedBiLM:
        with_bilm = ", ".join(filter(None, self._bilms)) or "none"
        if name in self.runs and name not in self._bilms:
            raise HTTPException(404, f"the run {name!r} has no frozen biLM. Runs that have one: {with_bilm}")
        return _named(name or "", self._bilms, f"Runs with a frozen biLM: {with_bilm}")

    async def answer(self, request: Request, process: Process, prepare: Callable[[], Prepared]) -> Response:
        """Prepares a request, has it computed together with others, and answers with the result."""
        prepared = await asyncio.get_running_loop().run_in_executor(self._preparing, prepare)
        if prepared.tokens > (most := self.limits.request_tokens):
            raise ElmoTasksError(f"{prepared.tokens:,} tokens; expected at most {most:,} in a request. {_LESS}")
        if prepared.cost > (most := self.limits.queue_tokens):
            reason = "sentences are read once for each predicate and each gradient, and scores take ten times as long"
            raise ElmoTasksError(f"the work of {prepared.cost:,} tokens; expected at most {most:,}: {reason}. {_LESS}")
        admit(request.scope, prepared.cost)
        return _json(await asyncio.wrap_future(self._batcher.submit(process, prepared, prepared.cost)))

    def close(self) -> None:
        """Computes what is waiting."""
        self._preparing.shutdown()
        self._batcher.close()


def create_app(
    runs: Mapping[str, ServedRun],
    bilms: Mapping[str, ServedBiLM],
    limits: Limits | None = None,
    *,
    note: str | None = None,
    allowed_hosts: Sequence[str] = ("*",),
    allowed_origins: Sequence[str] = (),
) -> FastAPI:
    """The application of loaded runs.

    Arguments:
        runs: by name.
        bilms: see `bilms_of_runs`.
        note: shown at the top of the page, such as what the models were trained on.
        allowed_hosts: the names of this machine that requests may use, `*` for all. A page of another site that makes
            its name point here is refused.
        allowed_origins: the sites whose pages may use the server, `*` for all.
    """
    metrics = Metrics()
    service = Service(runs, bilms, limits or Limits(), metrics, note)

    @contextlib.asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        yield
        await asyncio.to_thread(service.close)

    app = FastAPIOffline(
        redoc_url=None,
        title="elmo-tasks",
        version=__version__,
        lifespan=lifespan,
        description=_ABOUT,
        static_url="/docs-files",
    )
    app.include_router(_routes(service))
    app.router.default = StaticFiles(directory=PAGE, html=True)  # not mounted, so that a wrong method is not a 404
    for kind in (RequestValidationError, ElmoTasksError, StarletteHTTPException, Exception):
        app.add_exception_handler(kind, _refuse)
    if allowed_origins:
        app.add_middleware(
            CORSMiddleware, allow_origins=list(allowed_origins), allow_methods=["*"], allow_headers=["*"]
        )
    app.add_middleware(Guard, limits=service.limits, metrics=metrics, hosts=allowed_hosts)
    return app


_PROBLEMS = (404, 405, 408, 413, 415, 422, 429, 504)
_ABOUT = 'Predictions of trained runs over HTTP. Errors are `{"error": "what was expected, and what was found"}`. '
_ABOUT += "`docs/server.md` of elmo-tasks describes the page and the server."


def _routes(service: Service) -> APIRouter:
    problems: dict[int | str, dict[str, Any]] = {code: {"model": Problem} for code in _PROBLEMS}
    router = APIRouter(route_class=_Route, responses=problems)

    @router.get("/api/runs")
    async def list_runs() -> JSONResponse:
        """The runs: task, labels, scores, config, biLM and the learned weights of its layers."""
        return JSONResponse({"runs": [run.about for run in service.runs.values()], "note": service.note})

    @router.get("/api/runs/{name}/card", response_class=PlainTextResponse)
    async def card(name: str) -> PlainTextResponse:
        """The model card of a run: the README.md in its folder."""
        if (text := (await service.run(name)).card) is None:
            raise HTTPException(404, f"the run {name!r} has no README.md")
        return PlainTextResponse(text)

    @router.post("/api/runs/{name}/predict", response_model=Answer)
    async def predict(
        request: Request,
        name: str,
        body: Annotated[dict[str, Any], Body(examples=[{"text": "Orla sold the mill."}])],
        details: Details = False,
        explain: Explain = False,
    ) -> Response:
        """Predicts one input, in the form of a JSON line for `elmo-tasks predict`."""
        run, added = await service.run(name), Additions(details, explain)
        return await service.answer(request, run.answer, lambda: run.prepare([body], added, single=True))

    @router.post("/api/runs/{name}/predict-batch", response_model=BatchAnswer)
    async def predict_batch(
        request: Request,
        name: str,
        body: BatchBody,
        details: Details = False,
        explain: Explain = False,
    ) -> Response:
        """Predicts several inputs, and returns for each what `predict` answers, in the same order."""
        run, added = await service.run(name), Additions(details, explain)
        return await service.answer(request, run.answer, lambda: run.prepare(body.inputs, added, single=False))

    @router.post("/api/embed")
    async def embed(request: Request, body: EmbedBody) -> Response:
        """The vectors of a sentence's tokens, layer by layer."""
        bilm = service.bilm(body.run)
        return await service.answer(request, bilm.answer, lambda: bilm.embed(body.fields(), body.layers, body.pooling))

    @router.post("/api/similarity")
    async def similarity(request: Request, body: SimilarityBody) -> Response:
        """How similar the vectors of two tokens are, layer by layer."""
        bilm = service.bilm(body.run)
        sides = [(side.fields(), side.index) for side in (body.one, body.other)]
        return await service.answer(request, bilm.answer, lambda: bilm.compare(sides))

    @router.post("/api/neighbors")
    async def neighbors(request: Request, body: NeighborsBody) -> Response:
        """The tokens with the most similar vectors, among those of the server's sentences."""
        bilm, query = service.bilm(body.run), (body.index, body.layer, body.k)
        return await service.answer(request, bilm.answer, lambda: bilm.neighbors(body.fields(), *query))

    @router.post("/api/score")
    async def score(request: Request, body: ScoreBody) -> Response:
        """How surprising each token is to the biLM, and which words it expects, as in `elmo-tasks score --json`."""
        bilm, count = service.bilm(body.run), body.substitutes
        return await service.answer(request, bilm.answer_scores, lambda: bilm.score(body.fields(), count))

    @router.get("/palette.css", include_in_schema=False)
    async def palette() -> Response:
        """The colours of labels, which are the same as in other pictures."""
        return Response(palette_css(), media_type="text/css")

    @router.get("/healthz")
    async def healthz() -> JSONResponse:
        """Answers while the server is running."""
        return JSONResponse({"status": "ok"})

    @router.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    return router


def _named(name: str, known: Mapping[str, _T], hint: str) -> _T:
    """Looks a name up in a dictionary, and nowhere else."""
    if name not in known:
        raise HTTPException(404, f"there is no run {name[:80]!r}.{did_you_mean(name[:80], list(known))} {hint}")
    return known[name]


def _json(content: bytes) -> Response:
    """An answer in JSON. A long one is sent in pieces, as fast as it is read."""

    async def chunks() -> AsyncIterator[bytes]:
        for start in range(0, len(content), _CHUNK_BYTES):
            yield content[start : start + _CHUNK_BYTES]

    return StreamingResponse(chunks(), media_type=_JSON, headers={"Content-Length": str(len(content))})


async def _refuse(request: Request, error: Exception) -> JSONResponse:
    """The answer for an error; of a wrong body or query, its first problem."""
    if isinstance(error, StarletteHTTPException):
        if error.status_code == 405:
            methods = {*(error.headers or {}).get("Allow", "GET").split(", ")}
            allowed = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
            problem = f"the method is {request.method}; expected {allowed}. See /docs for the methods of each address"
            error = HTTPException(405, problem, {"Allow": allowed})
        return error_response(error)
    if isinstance(error, ElmoTasksError):
        return error_response(HTTPException(422, str(error)))
    if isinstance(error, RequestValidationError):
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"][1:])) or "the request"
        return error_response(HTTPException(422, f"{key}: {problem['msg']}; got {json_text(problem.get('input')):.80}"))
    return error_response(HTTPException(500, "internal server error; see the server's log"))
