"""From a request's path to the endpoint that answers it, and what becomes of requests that none answers."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager

from worthwhile.errors import Error
from worthwhile.service.endpoint import Endpoint, EndpointApp, Reply, Service, refuse
from worthwhile.service.middleware import Receive, Scope, Send
from worthwhile.service.problems import HttpError

log = logging.getLogger(__name__)


class Node:
    """A segment of a path: the endpoints there by method, and what comes below it, by name or as a parameter."""

    def __init__(self) -> None:
        self.by_method: dict[str, EndpointApp] = {}
        self.below: dict[str, Node] = {}
        self.parameter: Node | None = None

    def child(self, segment: str) -> Node:
        """The node of a segment, made if there is none."""
        if not segment.startswith("{"):
            return self.below.setdefault(segment, Node())
        self.parameter = self.parameter or Node()
        return self.parameter

    def add(self, app: EndpointApp) -> None:
        self.by_method[app.endpoint.method] = app
        if app.endpoint.method == "GET":
            self.by_method["HEAD"] = app


class Router:
    """All paths, as a tree of their segments."""

    def __init__(
        self,
        service: Service,
        endpoints: Iterable[Endpoint],
        lifespan: Callable[[], AbstractAsyncContextManager[None]],
        error_page: Callable[[Error], Reply],
    ) -> None:
        self.root, self.lifespan, self.error_page = Node(), lifespan, error_page
        for endpoint in endpoints:
            node = self.root
            for segment in endpoint.path.split("/"):
                node = node.child(segment)
            node.add(EndpointApp(service, endpoint))

    def find(self, path: str) -> tuple[dict[str, EndpointApp], list[str]]:
        """The endpoints of a path by method, and the path's parameters."""
        node, values = self.root, []
        for segment in path.split("/"):
            if segment in node.below:
                node = node.below[segment]
            elif segment and node.parameter is not None:
                node = node.parameter
                values.append(segment)
            else:
                return {}, values
        return node.by_method, values

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.other(scope, receive, send)
            return
        scope["error_page"] = self.error_page
        by_method, values = self.find(scope["path"].removeprefix(scope.get("root_path", "")))
        app = by_method.get(scope["method"])
        if app is None:
            await refuse_all(by_method, scope, send)
            return
        scope["route"], scope["path_params"] = app.path, dict(zip(app.parameters, values, strict=True))
        try:
            await app(scope, receive, send)
        except Exception as error:  # a fault of ours: the log has it, the client does not
            log.error("%s %s failed", scope["method"], scope["path"], exc_info=error)
            if "status" in scope:  # too late for another answer
                raise
            await refuse(send, scope, HttpError("a fault in the service; its log has more", 500))

    async def other(self, scope: Scope, receive: Receive, send: Send) -> None:
        """The server starts and stops; web sockets there are none."""
        if scope["type"] != "lifespan":
            await send({"type": "websocket.close"})
            return
        await receive()
        try:
            async with self.lifespan():
                await send({"type": "lifespan.startup.complete"})
                await receive()
        except BaseException as error:
            await send({"type": "lifespan.startup.failed", "message": repr(error)})
            raise
        await send({"type": "lifespan.shutdown.complete"})


async def refuse_all(by_method: Mapping[str, EndpointApp], scope: Scope, send: Send) -> None:
    """Nothing is here, or not for this method."""
    words = f"{scope['method']} {scope['path']}: there is nothing here; /docs lists what there is"
    if not by_method:
        await refuse(send, scope, HttpError(words, 404))
        return
    scope["route"] = next(iter(by_method.values())).path
    await refuse(send, scope, HttpError(words, 405), [(b"allow", ", ".join(by_method).encode())])
