"""A real `worthwhile serve` in a process of its own, for tests that talk to it, kill it and start it again.

Or in this process, for those that change one of its limits.
"""

from __future__ import annotations

import re
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

import httpx
import uvicorn

from waiting import NET, wait_until
from worthwhile.service.app import create_app
from worthwhile.service.http_limits import LimitedConnection


class ServiceProcess:
    """Started on a port of its own; `url` is where it answers, `lines` what it wrote to standard error."""

    def __init__(self, store: str, *more: str, port: int = 0) -> None:
        usual = ["--store", store, "--port", str(port), "--patience", str(NET)]
        command = [sys.executable, "-m", "worthwhile", "serve", *usual, *more]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        self.lines: list[str] = []
        self.url = ""
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append(line)
            found = re.search(r"http://\S+:\d+", line)
            if found:
                self.url = found[0]
                break
        assert self.url, "".join(self.lines)
        self.port = int(self.url.rpartition(":")[2])
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self) -> None:
        assert self.process.stderr is not None
        self.lines.extend(self.process.stderr)

    def get(self, path: str, **more: object) -> httpx.Response:
        return httpx.get(self.url + path, timeout=NET, **more)  # type: ignore[arg-type]

    def post(self, path: str, body: object, **more: object) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=NET, **more)  # type: ignore[arg-type]

    def stop(self) -> int:
        """SIGTERM; the exit code."""
        self.process.terminate()
        code = self.process.wait(NET)
        self.reader.join(NET)
        return code

    def kill(self) -> None:
        """kill −9."""
        self.process.kill()
        self.process.wait(NET)
        self.reader.join(NET)

    def __enter__(self) -> ServiceProcess:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, reason: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.process.poll() is None:
            self.kill()
        if self.process.stderr is not None:
            self.process.stderr.close()


@contextmanager
def listening(url: str) -> Iterator[int]:
    """The service in this process; the port that it answers on. The system keeps little of an answer for a reader."""
    own = socket.create_server(("127.0.0.1", 0))
    own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
    config = uvicorn.Config(
        create_app(url, patience=NET),
        http=LimitedConnection,
        log_config=None,
        ws="none",
        timeout_keep_alive=int(NET),
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, args=([own],))
    thread.start()
    try:
        wait_until(lambda: server.started, "the service")
        yield own.getsockname()[1]
    finally:
        server.should_exit = True
        thread.join(NET)
        own.close()


def store_at(folder: Path) -> str:
    return f"sqlite:///{folder}/service.db"
