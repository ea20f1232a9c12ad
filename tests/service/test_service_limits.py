"""What may take long or be large keeps nobody else waiting, and has an end."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any

import apsw
import httpx
import psutil
import pytest

from service_process import ServiceProcess, listening, store_at
from waiting import NET
from worthwhile.errors import Overloaded, StoreError, UnknownScheduler
from worthwhile.live.requests import Deciding
from worthwhile.live.scheduler import Scheduler
from worthwhile.service.app import create_app
from worthwhile.service.dispatcher import Dispatcher, Dispatchers, InitialSettings
from worthwhile.service.endpoint import Reply, respond

ASKING = b"GET /v1/health HTTP/1.1\r\nhost: localhost\r\n"


def test_an_answer_that_takes_longer_than_anyone_waits_is_worked_out_once() -> None:
    calls, go = [], threading.Event()

    def slow() -> str:
        calls.append(1)
        assert go.wait(NET)
        return "found"

    async def ask() -> None:
        dispatchers = Dispatchers("memory://", "python", 0.1)
        for _ in range(2):
            with pytest.raises(Overloaded, match="still going through the log"):
                await dispatchers.share("it", slow)
        dispatchers.patience = NET
        assert (
            await dispatchers.ask_store(lambda: 1) == await dispatchers.read(lambda: 1) == 1
        )  # others do not wait for it
        go.set()
        assert await dispatchers.share("it", slow) == "found"
        assert calls == [1]
        assert dispatchers.shared == {}
        dispatchers.close()

    asyncio.run(ask())


def test_a_scheduler_that_takes_long_to_open_is_there_the_next_time(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened, opening, go = [], Dispatchers.opened, threading.Event()

    def slowly(self: Dispatchers, name: str, settings: InitialSettings | None) -> Scheduler:
        opened.append(name)
        assert go.wait(NET)
        return opening(self, name, settings)

    monkeypatch.setattr(Dispatchers, "opened", slowly)

    async def ask() -> None:
        dispatchers = Dispatchers(sqlite, "python", 0.2)
        with pytest.raises(Overloaded, match="still being opened"):
            await dispatchers.find_or_create("big", InitialSettings())
        dispatchers.patience = NET
        go.set()
        found = await asyncio.gather(*[dispatchers.find_or_create("big", InitialSettings()) for _ in range(3)])
        assert {id(dispatcher) for dispatcher in found} == {id(dispatchers.open["big"])}
        assert opened == ["big"]
        asked: list[Any] = await asyncio.gather(
            dispatchers.find_or_create("new"),
            dispatchers.find_or_create("new", InitialSettings()),
            return_exceptions=True,
        )  # the first looks for what the second makes, and may find it
        assert isinstance(asked[0], UnknownScheduler | Dispatcher)
        assert isinstance(asked[1], Dispatcher)
        dispatchers.close()

    asyncio.run(ask())


def test_a_service_starts_while_its_scheduler_still_takes_long_to_open(
    sqlite: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with a policy that is compiled for the first time, on a slow machine."""
    opening, go = Dispatchers.opened, threading.Event()
    monkeypatch.setattr(Dispatchers, "opened", lambda *given: go.wait(NET) and opening(*given))

    async def ask() -> None:
        app: Any = create_app(sqlite, patience=0.2)
        transport = httpx.ASGITransport(app)
        async with app.app.lifespan(), httpx.AsyncClient(transport=transport) as http:
            status = (await http.get("http://localhost/v1/schedulers/default")).status_code
            assert status == 503
            go.set()
            while status == 503:
                status = (await http.get("http://localhost/v1/schedulers/default")).status_code
            assert status == 200

    asyncio.run(ask())


def test_schedulers_that_are_not_there_are_looked_for_all_at_once(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    looked, opened, names, opening = [], [], Dispatchers.names, Dispatchers.opened
    monkeypatch.setattr("worthwhile.service.look_up.BETWEEN", 0.0)
    monkeypatch.setattr(Dispatchers, "names", lambda self: looked.append(1) or names(self))
    monkeypatch.setattr(
        Dispatchers, "opened", lambda self, name, given: opened.append(name) or opening(self, name, given)
    )

    async def ask() -> None:
        dispatchers = Dispatchers(sqlite, "python", NET)
        Scheduler(sqlite, "there").close()
        asked = [dispatchers.find(f"nobody {number}") for number in range(500)]
        answers = await asyncio.gather(*asked, dispatchers.find("there"), return_exceptions=True)
        assert {type(answer) for answer in answers[:-1]} == {UnknownScheduler}
        assert isinstance(answers[-1], Dispatcher)
        assert len(looked) <= 2
        assert opened == ["there"]
        dispatchers.close()

    asyncio.run(ask())


def test_who_asks_for_what_is_not_there_waits_for_no_writer(sqlite: str) -> None:
    """And holds no lock that a writer needs: so a crowd of them slows nobody down."""

    async def ask() -> None:
        dispatchers = Dispatchers(sqlite, "python", NET)
        writer = apsw.Connection(sqlite.removeprefix("sqlite:///"))
        writer.execute("begin immediate")
        with pytest.raises(UnknownScheduler):
            await dispatchers.find("nobody")
        assert dispatchers.access() == ([], [])
        writer.close()
        dispatchers.close()

    asyncio.run(ask())


def test_a_scheduler_that_was_just_made_elsewhere_is_found(sqlite: str) -> None:
    """However many look for others at the same time: no answer is older than its question."""

    async def ask() -> None:
        dispatchers = Dispatchers(sqlite, "python", NET)
        for number in range(5):
            crowd = [asyncio.create_task(dispatchers.find(f"nobody {each}")) for each in range(20)]
            await asyncio.sleep(0)
            await asyncio.to_thread(lambda: Scheduler(sqlite, f"new {number}").close())  # noqa: B023 (awaited here)
            assert (await dispatchers.find(f"new {number}")).scheduler.name == f"new {number}"
            await asyncio.gather(*crowd, return_exceptions=True)
        dispatchers.close()

    asyncio.run(ask())


def test_a_crowd_that_asks_for_what_is_not_there_is_limited(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worthwhile.service.look_up.MOST_TURNED_AWAY", 10)

    async def ask() -> None:
        dispatchers = Dispatchers(sqlite, "python", NET)
        answers = await asyncio.gather(*[dispatchers.find(f"{each}") for each in range(30)], return_exceptions=True)
        assert [type(answer) for answer in answers] == [UnknownScheduler] * 10 + [Overloaded] * 20
        dispatchers.close()

    asyncio.run(ask())


def test_a_long_log_that_is_being_read_keeps_no_other_reader(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("worthwhile.service.dispatcher.LOG_PATIENCE", 0.05)

    async def ask() -> None:
        dispatchers = Dispatchers("memory://", "python", NET)
        dispatcher = await dispatchers.find_or_create("it", InitialSettings())
        dispatcher.scheduler.decide("a", [1]).report(1.0, 1.0)
        with (
            dispatcher.scheduler._transactor.statistics.lock,
            pytest.raises(Overloaded, match="still being read, 0 reports so far"),
        ):
            await dispatchers.read(dispatcher.summary)
        assert (await dispatchers.read(dispatcher.summary)).reports == 1
        dispatchers.close()

    asyncio.run(ask())


def test_an_answer_that_fails_on_its_way_has_no_end() -> None:
    async def portions() -> AsyncIterator[bytes]:
        yield b"first"
        raise StoreError("away")

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(respond(send, {"method": "GET", "path": "/x"}, Reply(portions(), b"text/csv")))
    assert [message.get("more_body") for message in sent] == [None, True]


@pytest.mark.slow
def test_a_request_that_does_not_arrive_is_given_up(sqlite: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def longest(seconds: float) -> None:
        monkeypatch.setattr("worthwhile.service.http_limits.TIMEOUT", seconds)

    body = b"POST /v1/schedulers/default/tasks HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n"
    with listening(sqlite) as port:
        longest(0.2)
        for begun in (b"", b"\r\n", ASKING, body + b"content-length: 9\r\n\r\n{"):
            with socket.create_connection(("127.0.0.1", port), timeout=NET) as caller:
                caller.sendall(begun)
                assert caller.recv(1000) == b""
        longest(NET)
        with socket.create_connection(("127.0.0.1", port), timeout=NET) as caller:
            for _ in range(2):  # one that takes its time between requests is served
                caller.sendall(ASKING + b"\r\n")
                assert caller.recv(1000).startswith(b"HTTP/1.1 200")
                longest(0.2)
                time.sleep(0.4)
            caller.sendall(b"\r\n")
            assert caller.recv(1000) == b""


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(store_at(tmp_path_factory.mktemp("limits")), "--no-access-log") as running:
        yield running


@pytest.mark.parametrize(
    ("begun", "portion"),
    [
        (b"GET /v1/", b"a" * 100_000),
        (ASKING + b"long: ", b"a" * 100_000),
        (ASKING, b"".join(b"x%d: a\r\n" % number for number in range(10_000))),
        (ASKING + b"transfer-encoding: chunked\r\n\r\n0\r\nlong: ", b"a" * 100_000),
    ],
)
def test_endless_headers_are_cut_off(service: ServiceProcess, begun: bytes, portion: bytes) -> None:
    service.get("/v1/health")
    before = psutil.Process(service.process.pid).memory_info().rss
    with socket.create_connection(("127.0.0.1", service.port), timeout=NET) as caller:
        caller.sendall(begun)
        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            caller.sendall(portion * 1000)
    assert psutil.Process(service.process.pid).memory_info().rss - before < 20e6
    assert service.get("/v1/health").status_code == 200


def test_a_dispatcher_outlives_what_its_scheduler_may_raise(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(requests: Any) -> None:
        monkeypatch.undo()
        raise SystemExit

    async def ask() -> None:
        dispatchers = Dispatchers("memory://", "python", NET)
        dispatcher = await dispatchers.find_or_create("it", InitialSettings())
        monkeypatch.setattr(dispatcher.scheduler._transactor, "ask_all", fails)
        with pytest.raises(StoreError, match="interrupted"):
            await dispatcher.do(Deciding(dispatcher.scheduler, "a", [1]), NET)
        assert (await dispatcher.do(Deciding(dispatcher.scheduler, "a", [1]), NET)).id == "1"
        dispatchers.close()

    asyncio.run(ask())
