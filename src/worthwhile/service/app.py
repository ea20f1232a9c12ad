"""`create_app`: the service as an ASGI application, for `worthwhile serve` or any other server."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Awaitable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Any

from worthwhile.errors import Error, MissingExtra, Overloaded

try:
    import msgspec
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError:
    raise MissingExtra("the service", "service") from None

from worthwhile.service.auth import Auth
from worthwhile.service.dashboard import PAGES
from worthwhile.service.dispatcher import Dispatchers, InitialSettings
from worthwhile.service.endpoint import Call, Endpoint, EndpointApp, Reply, Service
from worthwhile.service.look_up import LookUp
from worthwhile.service.metrics import Metrics
from worthwhile.service.middleware import Asgi, Middleware, Receive, Scope, Send
from worthwhile.service.openapi import description
from worthwhile.service.problems import HttpError, problem_of
from worthwhile.service.room import Room
from worthwhile.service.routes import ENDPOINTS

log = logging.getLogger(__name__)

PATIENCE = 10.0  # seconds until a client is told to come back
MOST_ANSWERS = 128 << 20  # bytes, of those that take more than a piece
MOST_BODIES = 64  # that take more than a piece
MOST_EXPORTS = 8
DEFAULT_SCHEDULER = "default"  # of a store that has none


def create_app(
    url: str = "memory://", *, engine: str = "python", patience: float = PATIENCE, allowed_policies: Iterable[str] = ()
) -> Asgi:
    """The service on a store, by its address. Of policies by import path, requests can set those allowed here."""
    dispatchers, metrics = Dispatchers(url, engine, patience), Metrics()
    rooms = Room(MOST_ANSWERS, "large answers"), Room(MOST_BODIES, "large requests"), Room(MOST_EXPORTS, "exports")
    access = LookUp(lambda: dispatchers.ask_store(dispatchers.access))
    auth = Auth(*dispatchers.access())
    service = Service(dispatchers, auth, metrics, frozenset(allowed_policies), *rooms, access)
    document = msgspec.json.encode(description(ENDPOINTS))

    async def openapi(call: Call) -> Reply:
        return Reply(document, b"application/json")

    described = Endpoint("GET", "/v1/openapi.json", "none", openapi, "This description")
    endpoints = (*ENDPOINTS, described, *PAGES)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if not await dispatchers.ask_store(dispatchers.names):
            with suppress(Overloaded):  # it goes on being opened; until then, clients are told to come back
                await dispatchers.find_or_create(DEFAULT_SCHEDULER, InitialSettings())
        yield
        dispatchers.close()

    routes = [Route(path, app, methods=list(app.by_method)) for path, app in by_path(service, endpoints).items()]
    errors: dict[Any, Any] = {HTTPException: not_found, Exception: internal_error}
    app = Starlette(routes=routes, lifespan=lifespan, exception_handlers=errors)
    app.router.redirect_slashes = False
    return Middleware(app, metrics)


class PathApp:
    """The endpoints of one path; one route for all of them, so that a refusal can name the methods there are."""

    def __init__(self, path: str) -> None:
        self.path, self.by_method = path, {}  # type: str, dict[str, EndpointApp]

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        return self.by_method[method](scope, receive, send)


def by_path(service: Service, endpoints: Iterable[Endpoint]) -> dict[str, PathApp]:
    """All paths, with what is there for every method."""
    paths: dict[str, PathApp] = {}
    for endpoint in endpoints:
        path = paths.setdefault(endpoint.path, PathApp(endpoint.path))
        path.by_method[endpoint.method] = EndpointApp(service, endpoint)
    return paths


def problem_response(error: Error, headers: Any = None) -> Response:
    problem = problem_of(error)
    return Response(msgspec.json.encode(problem), problem.status, headers, "application/problem+json")


async def not_found(request: Request, error: HTTPException) -> Response:
    """404 and 405, like all other errors."""
    nothing = f"{request.method} {request.scope['path']}: there is nothing here; /docs lists what there is"
    return problem_response(HttpError(nothing, error.status_code), error.headers)


async def internal_error(request: Request, error: Exception) -> Response:
    """A fault of ours: the log has it, the client does not."""
    log.error("%s %s failed", request.method, request.scope["path"], exc_info=error)
    return problem_response(HttpError("a fault in the service; its log has more", 500))
