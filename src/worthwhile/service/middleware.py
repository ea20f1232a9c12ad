"""Around every request: the time it took, and a line in the access log."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from worthwhile.service.metrics import Metrics

log = logging.getLogger("worthwhile.access")

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
Asgi = Callable[[Scope, Receive, Send], Awaitable[None]]


class Middleware:
    """The outermost layer."""

    def __init__(self, app: Asgi, metrics: Metrics) -> None:
        self.app, self.metrics = app, metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.perf_counter()
        try:
            await self.app(scope, receive, send)
        finally:
            seconds, status = time.perf_counter() - began, scope.get("status", 500)
            self.metrics.add(scope["method"], scope.get("route", "other"), status, seconds)
            if log.isEnabledFor(logging.INFO):
                log.info("%s", log_line(scope, status, seconds))


def log_line(scope: Scope, status: int, seconds: float) -> str:
    """One request as JSON: no query, no body, no header, so no secret."""
    client = scope.get("client") or ("", 0)
    return json.dumps(
        {
            "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
            "client": client[0],
            "method": scope["method"],
            "path": scope["path"],
            "status": status,
            "ms": round(seconds * 1000, 2),
            "token": scope.get("token", ""),
        }
    )
