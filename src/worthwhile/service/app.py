"""`create_app`: the service as an ASGI application, for `worthwhile serve` or any other server."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, suppress

from worthwhile.errors import MissingExtra, Overloaded

try:
    import msgspec
except ImportError:
    raise MissingExtra("the service", "service") from None

from worthwhile.service.auth import Auth
from worthwhile.service.dashboard import PAGES, error_page
from worthwhile.service.dispatcher import Dispatchers, InitialSettings
from worthwhile.service.endpoint import Call, Endpoint, Reply, Service
from worthwhile.service.look_up import LookUp
from worthwhile.service.metrics import Metrics
from worthwhile.service.middleware import Asgi, Middleware
from worthwhile.service.openapi import description
from worthwhile.service.room import Room
from worthwhile.service.router import Router
from worthwhile.service.routes import ENDPOINTS

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
    async def lifespan() -> AsyncIterator[None]:
        if not await dispatchers.ask_store(dispatchers.names):
            with suppress(Overloaded):  # it goes on being opened; until then, clients are told to come back
                await dispatchers.find_or_create(DEFAULT_SCHEDULER, InitialSettings())
        yield
        dispatchers.close()

    return Middleware(Router(service, endpoints, lifespan, error_page), metrics)
