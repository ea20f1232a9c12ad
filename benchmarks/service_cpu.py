"""The processor's time that a decide + report takes in the service's event loop, against requests that do nothing.

No network, no disk: 64 connections are fed by hand, their answers read from memory. What counts is the time of the one
thread, the lowest tenth of many rounds: so the figure is the same on a busy machine.
`--src TREE/src` measures another tree of this library, one that has the same module for connections.
"""

from __future__ import annotations

import asyncio
import re
import sys
import time
from collections.abc import Callable
from typing import Any

import uvicorn
import uvloop
from starlette.applications import Starlette
from starlette.responses import Response
from starlette.routing import Route
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.server import ServerState

from table import Report, command_line

CONNECTIONS = 64
ROUNDS = 400
TASKS = "/v1/schedulers/default/tasks"
DECIDE = '{"kind": "kind 1", "options": [1, 5, 10, 15, 20]}'
REPORT = '{"reward": 0.5, "cost": 2.5}'


class Wire:
    """A transport that keeps what is written."""

    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.write = self.written.append

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return ("127.0.0.1", 80) if name in ("peername", "sockname") else default

    def is_closing(self) -> bool:
        return False

    def nothing(self) -> None:
        """Nobody waits for reading to pause or go on."""

    pause_reading = resume_reading = close = abort = nothing


def request(path: str, body: str) -> bytes:
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n{body}".encode()


async def microseconds_per_pair(app: Any, protocol: Any) -> float:
    """Of this thread, for a decide and a report."""
    config = uvicorn.Config(app, http=protocol, log_config=None, access_log=False, server_header=False, ws="none")
    config.load()
    connections: list[tuple[Any, Wire]] = []
    for _ in range(CONNECTIONS):
        connection, wire = protocol(config, ServerState(), {}, asyncio.get_running_loop()), Wire()
        connection.connection_made(wire)
        connections.append((connection, wire))

    async def answers(request_of: Callable[[int], bytes]) -> list[bytes]:
        for number, (connection, wire) in enumerate(connections):
            wire.written.clear()
            connection.data_received(request_of(number))
        while any(len(wire.written) < 2 for _, wire in connections):  # head and body
            await asyncio.sleep(0)
        return [wire.written[-1] for _, wire in connections]

    times = []
    for _ in range(ROUNDS):
        began = time.thread_time()
        tasks = [re.findall(rb'"task":"(\d+)"', answer) for answer in await answers(lambda _: request(TASKS, DECIDE))]
        ids = [task[0].decode() for task in tasks]
        await answers(lambda number: request(f"{TASKS}/{ids[number]}/report", REPORT))  # noqa: B023 (awaited here)
        times.append((time.thread_time() - began) / CONNECTIONS * 1e6)
    return sorted(times)[ROUNDS // 10]


async def nothing(request: Any) -> Response:
    await request.body()
    return Response(b'{"task":"1"}', media_type="application/json")


async def started(app: Any) -> None:
    """Tell an application that the server starts; it is not told of the end."""
    ready = asyncio.Event()

    async def receive() -> dict[str, str]:
        if ready.is_set():
            await asyncio.Future()
        return {"type": "lifespan.startup"}

    async def send(message: Any) -> None:
        ready.set()

    app.starting = asyncio.create_task(app({"type": "lifespan"}, receive, send))
    await ready.wait()


async def measure(report: Report) -> None:
    from worthwhile.service.app import create_app
    from worthwhile.service.http_limits import LimitedConnection

    routes = [Route(path, nothing, methods=["POST"]) for path in (TASKS, f"{TASKS}/1/report")]
    least = await microseconds_per_pair(Starlette(routes=routes), HttpToolsProtocol)
    app: Any = create_app("memory://")
    await started(app)
    pair = await microseconds_per_pair(app, LimitedConnection)
    report.note("do-nothing requests, two at a time", f"{least:.0f} µs")
    report.note("decide + report", f"{pair:.0f} µs")
    report.at_most("  of the do-nothing pairs", pair / least, 1.75, "×")
    app.starting.cancel()


def main() -> int:
    parser = command_line(__doc__)
    parser.add_argument("--src", help="the library's source (that which is installed)")
    arguments = parser.parse_args()
    if arguments.src:
        sys.path.insert(0, arguments.src)
    report = Report()
    uvloop.run(measure(report))
    return int(report.close() > 0)


if __name__ == "__main__":
    sys.exit(main())
