"""Readers that ask and do not read cost little memory, and are dropped: raw connections to a real service.

STALLED_READERS sets how many; `make soak` takes a thousand.
"""

from __future__ import annotations

import os
import re
import socket
from contextlib import ExitStack
from functools import partial

import httpx
import msgspec
import psutil
import pytest

from service_process import ServiceProcess, listening, store_at
from waiting import NET, wait_until
from worthwhile import Client, Scheduler
from worthwhile.live.history import take_in
from worthwhile.live.recorded import recorded
from worthwhile.service.app import MOST_EXPORTS

pytestmark = pytest.mark.slow
READERS = int(os.environ.get("STALLED_READERS", "100"))
ONE = "/v1/schedulers/default"
KINDS, OPTIONS, ROWS = 1000, 4, 12_000
RECEIVED = 4096  # bytes that a reader's machine takes before it reads


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A log of megabytes, and a summary of some, because of names as long as they may be."""
    url = store_at(tmp_path_factory.mktemp("stalled")) + "?synchronous=normal"
    with Scheduler(url) as scheduler:
        for start in range(0, ROWS, 1000):
            rows = [
                recorded(f"{n}", f"{n % KINDS:<4}".ljust(200, "k"), f"{n % OPTIONS}".ljust(190, "o"), 0.5, 1.0)
                for n in range(start, start + 1000)
            ]
            scheduler._transactor.do(partial(take_in, records=rows))
    return url


def stalled(port: int, path: str) -> socket.socket:
    """A connection that has asked, and does not read."""
    caller = socket.socket()
    caller.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVED)
    caller.settimeout(NET)
    caller.connect(("127.0.0.1", port))
    caller.sendall(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
    return caller


def status_of(caller: socket.socket) -> int:
    return int(caller.recv(12).split()[1])


@pytest.mark.parametrize("path", [f"{ONE}/export", pytest.param(f"{ONE}/summary", marks=pytest.mark.long)])
def test_readers_that_do_not_read_leave_the_memory_to_others(store: str, path: str) -> None:
    with ServiceProcess(store, "--no-access-log") as service, ExitStack() as callers:
        wait_until(lambda: service.get(path).status_code == 200, "the log to be read once")
        process = psutil.Process(service.process.pid)
        before = process.memory_info().rss
        statuses = [status_of(callers.enter_context(stalled(service.port, path))) for _ in range(READERS)]
        assert set(statuses) <= {200, 503}
        assert statuses[:MOST_EXPORTS] == [200] * MOST_EXPORTS
        assert process.memory_info().rss - before < 300e6
        if path.endswith("export"):
            assert statuses[MOST_EXPORTS:] == [503] * (READERS - MOST_EXPORTS)
            refused = service.get(path)
            assert (refused.status_code, refused.headers["retry-after"]) == (503, "1")
        assert service.post(f"{ONE}/tasks", {"kind": "a", "options": [1]}).status_code == 200


@pytest.mark.parametrize("path", [f"{ONE}/export", f"{ONE}/summary"])
def test_a_reader_that_does_not_read_is_dropped(store: str, path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worthwhile.service.http_limits.WRITE_TIMEOUT", 0.2)
    with listening(store) as port:
        summary = f"http://127.0.0.1:{port}{ONE}/summary?kinds=1"
        wait_until(lambda: httpx.get(summary, timeout=NET).status_code == 200, "the log to be read once")
        with stalled(port, path) as caller:
            status_of(caller)
            wait_until(lambda: not connections(port), "the service to hang up")
            received = b"".join(iter(lambda: caller.recv(1 << 20), b""))
        length = re.search(rb"content-length: (\d+)", received)
        assert len(received) < int(length[1]) if length else not received.endswith(b"0\r\n\r\n")


def test_large_answers_have_so_much_room_and_no_more(store: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with Scheduler(store) as scheduler:
        size = len(msgspec.json.encode(scheduler.summary()))
    monkeypatch.setattr("worthwhile.service.app.MOST_ANSWERS", 5 * size // 2)
    with listening(store) as port, ExitStack() as callers:
        address = f"http://127.0.0.1:{port}{ONE}"
        wait_until(lambda: httpx.get(f"{address}/summary", timeout=NET).status_code == 200, "the log to be read once")
        waiting = [callers.enter_context(stalled(port, f"{ONE}/summary")) for _ in range(5)]
        assert sorted(map(status_of, waiting)) == [200, 200, 503, 503, 503]
        assert httpx.get(f"{address}/summary?kinds=1", timeout=NET).status_code == 200
        callers.close()
        wait_until(lambda: httpx.get(f"{address}/summary", timeout=NET).status_code == 200, "room")


def connections(port: int) -> list[object]:
    """Those that the service in this process has open."""
    own = psutil.Process().net_connections("tcp")
    return [each for each in own if each.laddr.port == port and each.status == "ESTABLISHED"]


def test_a_slow_reader_gets_everything(store: str) -> None:
    with ServiceProcess(store, "--no-access-log") as service, stalled(service.port, f"{ONE}/export") as caller:
        received, end = b"", b"\r\n0\r\n\r\n"
        while not received.endswith(end):
            received += caller.recv(1 << 16)
        sizes = [int(size, 16) for size in re.findall(rb"\r\n([0-9a-f]+)\r\n", received)]
        assert max(sizes) <= 256 << 10
        assert received.count(b'"number":') == ROWS
        with Client(service.url) as client:
            assert sum(map(len, client._lines())) == ROWS


def test_large_requests_that_never_end_leave_the_memory_to_others(store: str) -> None:
    head = f"POST {ONE}/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n".encode()
    with ServiceProcess(store, "--no-access-log") as service, ExitStack() as callers:
        process = psutil.Process(service.process.pid)
        before, refused = process.memory_info().rss, 0
        for _ in range(READERS):
            caller = callers.enter_context(socket.create_connection(("127.0.0.1", service.port), timeout=NET))
            try:
                caller.sendall(head + b"content-length: 1000000\r\n\r\n" + b" " * 900_000)
            except ConnectionError:
                refused += 1
        assert process.memory_info().rss - before < 200e6
        assert service.post(f"{ONE}/tasks", {"kind": "a", "options": [1]}).status_code == 200
