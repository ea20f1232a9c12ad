"""`AsyncClient`: a scheduler in a service elsewhere, for programs with an event loop. Extra `client`."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from functools import partial, wraps
from typing import Any, Concatenate, ParamSpec

from worthwhile.errors import BadParameter, Error
from worthwhile.live.asynchronous import Asynchronous, AsyncTask, in_block, in_thread, opening
from worthwhile.live.task import Task
from worthwhile.live.validation import Option
from worthwhile.policies.features import Feature
from worthwhile.service.client import Client  # before httpx: it says which extra is missing

import httpx  # isort: skip

from worthwhile.service import calls
from worthwhile.service.calls import Backoff, Call, Saying
from worthwhile.service.schemas import DecidedMany

log = logging.getLogger(__name__)

MOST_AT_ONCE = 32  # requests on their way; others wait for their turn, in which no time-out runs

P = ParamSpec("P")


def telling(
    method: Callable[Concatenate[Client, P], None], saying_of: Callable[..., Saying]
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, None]]:
    """The same, as a request of this event loop."""

    @wraps(method)
    async def tell(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> None:
        await self._send(saying_of(*args, **kwargs).call)

    return tell


def asking(
    method: Callable[Concatenate[Client, P], Task], call_of: Callable[..., Call]
) -> Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, AsyncTask]]:
    """The same, as a request of this event loop."""

    @wraps(method)
    async def ask(self: AsyncClient, /, *args: P.args, **kwargs: P.kwargs) -> AsyncTask:
        client = self._open or await self._opened()
        answer = await self._decide(call_of(client.lease, *args, **kwargs), kwargs.get("key") is not None)
        return AsyncTask(self, calls.task_of(client, answer))

    return ask


class AsyncClient(Asynchronous[Client]):
    """A `Client` for programs with an event loop: the same arguments and methods, to be awaited."""

    _http: httpx.AsyncClient

    @opening(Client)
    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if kwargs.get("offline") is not None or kwargs.get("decisions", "central") != "central":
            raise BadParameter("an AsyncClient decides in its service; use a Client, in a thread, to decide without")
        self._begin(Client, *args, **kwargs)
        self._turns = asyncio.Semaphore(MOST_AT_ONCE)

    async def _use(self, opened: Client) -> None:
        limits = httpx.Limits(max_connections=MOST_AT_ONCE, max_keepalive_connections=MOST_AT_ONCE)
        self._http = await self._run(partial(httpx.AsyncClient, limits=limits, **opened.http_settings))

    async def _stop(self) -> None:
        await self._http.aclose()

    async def _send(self, call: Call) -> Any:
        """The answer to a request, which is sent again and again until there is one or patience ends."""
        client = self._open or await self._opened()
        request, url, backoff = call.request(client.base), self._http.base_url, None
        while True:
            async with self._turns:
                backoff = backoff or Backoff(client.patience)
                try:
                    response = await self._http.request(**request)
                    if response.is_success:
                        return call.decoded(response.content, url)
                    error = calls.error_in(response, url)
                except httpx.TransportError as cause:
                    error = calls.no_answer(cause, url)
            await asyncio.sleep(backoff.next_pause(error))

    async def _decide(self, call: Call, keyed: bool = False) -> Any:
        """The same for a decision. If nobody waits for it any more, its tasks are cancelled."""
        try:
            return await self._send(call)
        except asyncio.CancelledError:
            if not keyed:  # otherwise whoever has the key can ask again
                self._leave(self._withdraw(call))
            raise

    async def _withdraw(self, call: Call) -> None:
        """Cancel what may have been decided: keys of our own say which tasks they are."""
        try:
            answer = await self._send(call)
            for decided in answer.tasks if isinstance(answer, DecidedMany) else [answer]:
                await self._send(calls.cancelling(str(decided.task)).call)
        except Error as error:
            log.warning("a task that nobody waits for could not be cancelled, and counts as running: %s", error)

    async def decide_many(
        self, tasks: Sequence[tuple[str, Sequence[Option]] | tuple[str, Sequence[Option], Mapping[str, Feature] | None]]
    ) -> list[AsyncTask]:
        """Choose for several (kind, options) or (kind, options, features) in one request; all, or an error."""
        client = self._open or await self._opened()
        answer = await self._decide(calls.deciding_many(client.lease, tasks))
        return [AsyncTask(self, task) for task in calls.tasks_of(client, answer)]

    async def report_many(self, reports: Sequence[tuple[str | int, float, float]]) -> None:
        """Several (id, reward, cost) in one request; those that can be are taken, the first problem is raised."""
        calls.check_refused(await self._send(calls.reporting_many(reports)))

    decide = asking(Client.decide, calls.deciding)
    task = in_block(decide)
    report = telling(Client.report, calls.reporting)
    fail = telling(Client.fail, calls.failing)
    observe = telling(Client.observe, calls.observing)
    cancel = telling(Client.cancel, calls.cancelling)
    again = asking(Client.again, calls.retrying)
    announce = in_thread(Client.announce)
    declare = in_thread(Client.declare)
    retire = in_thread(Client.retire)
    restore = in_thread(Client.restore)
    change = in_thread(Client.change)
    forget = in_thread(Client.forget)
    summary = in_thread(Client.summary)
    plot = in_thread(Client.plot)
    evaluate = in_thread(Client.evaluate)
    promote = in_thread(Client.promote)
    explain = in_thread(Client.explain)
    tasks = in_thread(Client.tasks)
    latest = in_thread(Client.latest)
    rebuild = in_thread(Client.rebuild)
    export = in_thread(Client.export)
    load = in_thread(Client.load)
