"""`create_app`: the service as an ASGI application, for `worthwhile serve` or any other server."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from worthwhile.errors import Error, MissingExtra

try:
    import msgspec
    from starlette.applications import Starlette
    from starlette.exceptions import HTTPException
    from starlette.requests import Request
    from starlette.responses import Response
    from starlette.routing import Route
except ImportError:
    raise MissingExtra("the service", "service") from None

from worthwhile.service.auth import Access
from worthwhile.service.dashboard import PAGES
from worthwhile.service.dispatcher import Desks, Wanted
from worthwhile.service.endpoint import Answer, Call, Endpoint, Reply, Service
from worthwhile.service.metrics import Metrics
from worthwhile.service.middleware import Asgi, Edge
from worthwhile.service.openapi import description
from worthwhile.service.problems import NoSuchPlace, problem_of
from worthwhile.service.routes import ENDPOINTS

log = logging.getLogger(__name__)

PATIENCE = 10.0  # seconds until a client is told to come back
FIRST = "default"  # the scheduler of a store that has none


def create_app(url: str = "memory://", *, engine: str = "python", patience: float = PATIENCE) -> Asgi:
    """The service on a store, by its address."""
    desks = Desks(url, engine, patience)
    metrics = Metrics()
    service = Service(desks, Access(desks.tokens()), metrics)
    whole = msgspec.json.encode(description(ENDPOINTS))

    async def openapi(call: Call) -> Reply:
        return Reply(whole, b"application/json")

    described = Endpoint("GET", "/v1/openapi.json", "none", openapi, "This description")

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        if not await desks.look(desks.names):
            await desks.make(FIRST, Wanted())
        yield
        desks.close()

    routes = [Route(one.path, Answer(service, one), methods=[one.method]) for one in (*ENDPOINTS, described, *PAGES)]
    app = Starlette(
        routes=routes, lifespan=lifespan, exception_handlers={HTTPException: no_such_place, Exception: broken}
    )
    app.router.redirect_slashes = False
    return Edge(app, metrics)


def problem(reason: Error, headers: Any = None) -> Response:
    found = problem_of(reason)
    return Response(msgspec.json.encode(found), found.status, headers, "application/problem+json")


async def no_such_place(request: Request, reason: Exception) -> Response:
    """404 and 405, like all other errors."""
    assert isinstance(reason, HTTPException)
    there = f"{request.method} {request.url.path}: there is nothing here; /docs lists what there is"
    return problem(NoSuchPlace(there, reason.status_code), reason.headers)


async def broken(request: Request, reason: Exception) -> Response:
    """A fault of ours: the log has it, the client does not."""
    log.error("%s %s failed", request.method, request.url.path, exc_info=reason)
    return problem(NoSuchPlace("a fault in the service; its log has more", 500))
