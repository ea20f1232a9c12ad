"""Faces: on an event loop a client is the same one: the same requests, sent again until there is an answer."""

from __future__ import annotations

import asyncio
import inspect
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import httpx
import pytest

from service_process import ServiceProcess, store_at
from worthwhile import AsyncClient, AsyncTask, Client
from worthwhile.errors import AlreadyReported, BadParameter, BadTask, ServiceError, StoreError

OPTIONS = [1, 5, 10]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServiceProcess]:
    with ServiceProcess(store_at(tmp_path_factory.mktemp("service"))) as running:
        yield running


def use(service: ServiceProcess, name: str, work: Callable[[AsyncClient], Awaitable[None]]) -> None:
    async def run() -> None:
        async with AsyncClient(service.url, name=name, policy="ratio-imed") as client:
            await work(client)

    asyncio.run(run())


def test_the_same_code_runs_on_a_loop_and_without(service: ServiceProcess, tmp_path: Path) -> None:
    async def work(client: AsyncClient) -> None:
        task = await client.decide("a", OPTIONS, key="job")
        await task.report(reward=0.5)
        await client.report(task.id, cost=2)
        await task.observe(10, 0.6, 4)
        async with client.task("a", OPTIONS) as second:
            second.reward, second.cost = 0.7, 3.5
        async with await client.decide("a", OPTIONS) as third:
            await third.fail(1.0, "broken")
        again = await third.again()
        assert (again.id, again.attempt) == (third.id, 1)
        await again.cancel()
        many = await client.decide_many([("a", OPTIONS), ("b", ["x"])])
        assert all(isinstance(each, AsyncTask) for each in many)
        await client.report_many([(each.id, 1.0, 2.0) for each in many])
        with pytest.raises(AlreadyReported):
            await client.report_many([(many[0].id, 2.0, 2.0)])
        with pytest.raises(BadTask, match="offered twice"):
            await client.decide_many([("a", [1, 1])])
        await client.retire(1)
        assert await client.export(tmp_path / "there.jsonl") == 6
        summary = await client.summary()
        with Client(service.url, name="same") as blocking:
            assert blocking.summary() == summary
            assert blocking.decide("a", OPTIONS, key="job").state == "reported"
            assert [line.state for line in blocking.latest(5)] == await latest_states(client, 5)

    use(service, "same", work)


async def latest_states(client: AsyncClient, count: int) -> list[str]:
    return [line.state for line in await client.latest(count)]


def test_it_has_every_method_of_a_client_with_the_same_arguments() -> None:
    names = {name for name, one in vars(Client).items() if inspect.isfunction(one) and not name.startswith("_")}
    for name in names - {"close"}:
        here, there = (inspect.signature(getattr(kind, name)).parameters for kind in (AsyncClient, Client))
        assert here == there, name
    with pytest.raises(TypeError, match="tocken"):
        AsyncClient(tocken="t")  # type: ignore[call-arg]


def test_many_tasks_at_once_count_once_each(service: ServiceProcess) -> None:
    async def work(client: AsyncClient) -> None:
        async def one(number: int) -> None:
            async with client.task(f"kind {number % 3}", OPTIONS) as task:
                task.reward = 0.5

        await asyncio.gather(*map(one, range(200)))
        assert Counter(await latest_states(client, 1000)) == {"reported": 200}

    use(service, "many", work)


def test_a_cancelled_coroutine_cancels_its_task(service: ServiceProcess) -> None:
    """Once inside its block, and once while its decision is on the way."""

    async def work(client: AsyncClient) -> None:
        began = asyncio.Event()

        async def forever() -> None:
            async with client.task("a", OPTIONS):
                began.set()
                await asyncio.Event().wait()

        running = asyncio.create_task(forever())
        await began.wait()
        running.cancel()
        await asyncio.wait([running])
        deciding, keyed = (asyncio.create_task(client.decide("a", OPTIONS, key=key)) for key in (None, "job"))
        await asyncio.sleep(0)
        for each in (deciding, keyed):
            each.cancel()
        await asyncio.wait([running, deciding, keyed])
        assert all(each.cancelled() for each in (running, deciding, keyed))

    use(service, "cancelled", work)  # closed: what goes on without anybody waiting is over
    with Client(service.url, name="cancelled") as client:
        assert {line.state for line in client.latest(9) if line.key != "job"} == {"cancelled"}
        assert client.decide("a", OPTIONS, key="job").state == "running"


def test_what_got_no_answer_is_sent_again(service: ServiceProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every other answer is lost after the service has given it."""
    request, sent = httpx.AsyncClient.request, [0]

    async def lossy(*args: object, **kwargs: object) -> httpx.Response:
        sent[0] += 1
        answer: httpx.Response = await request(*args, **kwargs)  # type: ignore[arg-type]
        if sent[0] % 2:
            raise httpx.ReadError("lost")
        return answer

    async def work(client: AsyncClient) -> None:
        await client.summary()
        monkeypatch.setattr(httpx.AsyncClient, "request", lossy)
        for _ in range(3):
            await (await client.decide("a", OPTIONS)).report(1.0, 2.0)
        monkeypatch.undo()
        found = await client.summary()
        assert (sent[0], found.tasks, found.reports) == (12, 3, 3)

    use(service, "lossy", work)


def test_nobody_there_is_an_error_once_patience_ends() -> None:
    async def run() -> None:
        client = AsyncClient("http://127.0.0.1:1", patience=0.2)
        with pytest.raises(ServiceError, match="no answer"):
            await client.decide("a", OPTIONS)
        await client.close()
        with pytest.raises(StoreError, match="closed"):
            await client.decide("a", OPTIONS)
        with pytest.raises(BadParameter, match="write http"):
            await AsyncClient("127.0.0.1").decide("a", OPTIONS)

    asyncio.run(run())
