"""`Routing`: LiteLLM's router takes what a scheduler chooses, and every call is learned from. Extra `litellm`.

A request is a task, its model group the kind, the healthy deployments' models the options. LiteLLM calls the methods
that begin with `async_` and `log_`; whatever happens in them, the request is served.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import time
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from worthwhile.errors import BadParameter, Error, MissingExtra
from worthwhile.integrations.request_features import request_features
from worthwhile.live.task import Task, in_words
from worthwhile.live.validation import Option
from worthwhile.policies.features import Feature

try:
    from litellm.integrations.custom_logger import CustomLogger
except ImportError:
    raise MissingExtra("LiteLLM's router", "litellm") from None

if TYPE_CHECKING:
    from worthwhile.live.scheduler import Scheduler
    from worthwhile.service.client import Client

log = logging.getLogger(__name__)

RECORD = "worthwhile"  # what a request's metadata, and the hidden parameters of its response, call its task
HEADER = "x-worthwhile-task"  # in answers of LiteLLM's proxy
PATIENCE = 0.5  # seconds that a request waits for a decision
THREADS = 8  # for decisions, and as many for reports

Record = dict[str, Any]  # a task, kept in the metadata of its request: nothing but text and numbers, since it is logged
Values = Mapping[str, Any]


def price(values: Values, response: Any, seconds: float) -> float | None:
    """What LiteLLM says that it cost, in dollars."""
    return values.get("response_cost")


def tokens(values: Values, response: Any, seconds: float) -> float | None:
    """How many tokens it took, those of the prompt included."""
    return getattr(getattr(response, "usage", None), "total_tokens", None)


def duration(values: Values, response: Any, seconds: float) -> float | None:
    """How long the call took."""
    return seconds


COSTS: dict[str, Callable[[Values, Any, float], float | None]] = {
    "price": price,
    "tokens": tokens,
    "seconds": duration,
}


class Routing(CustomLogger):  # type: ignore[misc]
    """A callback for LiteLLM: `litellm.callbacks = [Routing(scheduler)]`. Requests of async methods are decided.

    `judge(values, response)` says what a response is worth, now or when awaited; without one, or if it says None, the
    reward is reported later, by whoever knows it. `groups` are the model groups that are decided, all unless told.
    """

    def __init__(
        self,
        scheduler: Scheduler | Client,
        *,
        groups: Iterable[str] | None = None,
        cost: str = "price",
        judge: Callable[[Values, Any], Any] | None = None,
        features: Callable[[Any, Values], Mapping[str, Feature]] | None = request_features,
        lease: float | None = None,
        patience: float = PATIENCE,
    ) -> None:
        super().__init__()
        if cost not in COSTS:
            raise BadParameter(f"cost {cost!r}: it is one of {', '.join(COSTS)}")
        self.scheduler, self.judge, self.features, self.lease = scheduler, judge, features, lease
        self.groups = None if groups is None else frozenset(groups)
        self.cost_name, self.cost, self.patience = cost, COSTS[cost], patience
        self.deciding = ThreadPoolExecutor(THREADS, "worthwhile-decide")
        self.reporting = ThreadPoolExecutor(THREADS, "worthwhile-report")
        self.late: set[Future[Task | None]] = set()  # decisions that nobody waits for any more
        self.warned: set[str] = set()
        self.identity = id(self)  # LiteLLM takes loggers of one class for one, unless their numbers or texts differ

    def close(self) -> None:
        """Wait for reports that are on their way. The scheduler stays open."""
        self.deciding.shutdown()
        self.reporting.shutdown()

    async def async_filter_deployments(
        self,
        model: str,
        healthy_deployments: list[dict[str, Any]],
        messages: Any,
        request_kwargs: dict[str, Any] | None = None,
        parent_otel_span: Any = None,
    ) -> list[dict[str, Any]]:
        """Leave only the deployments of the option that the scheduler chooses."""
        decided_here = self.groups is None or model in self.groups
        if not healthy_deployments or request_kwargs is None or not decided_here:
            return healthy_deployments
        try:
            option = await self._choose(model, healthy_deployments, messages, request_kwargs)
        except Exception:
            log.exception("a request for %s was not decided; LiteLLM routes it by itself", model)
            return healthy_deployments
        return [each for each in healthy_deployments if option_of(each) == option] or healthy_deployments

    async def _choose(self, group: str, deployments: list[dict[str, Any]], messages: Any, values: Values) -> Option:
        """The option for this request, which has its task in its metadata from now on; None if nobody said in time."""
        metadata, request = metadata_of(values), values.get("litellm_trace_id")  # the same when it is tried again
        options = sorted({option_of(each) for each in deployments})
        earlier: Record | None = metadata.pop(RECORD, None)
        if earlier and earlier["failed"] and (earlier["group"], earlier["request"]) == (group, request):
            decide: Callable[[], Task | None] = partial(self._again, earlier, options)
        else:
            features = self.features(messages, values) if self.features else None
            kind = str(metadata.get("kind", group))
            decide = partial(self.scheduler.decide, kind, options, features=features, lease=self.lease)
        task = await self._in_time(decide)
        if task is None:
            return None
        metadata[RECORD] = {
            "task": task.id, "attempt": task.attempt, "option": task.option, "group": group, "request": request,
            "began": time.perf_counter(), "ended": False, "failed": False, "by": self.identity,
        }  # fmt: skip
        return task.option

    def _again(self, earlier: Record, options: list[str]) -> Task | None:
        """Another option for a request that is tried again."""
        task = self.scheduler.again(earlier["task"], earlier["attempt"])
        if task.option in options:
            return task
        task.cancel()  # it has become unhealthy meanwhile
        return None

    async def _in_time(self, decide: Callable[[], Task | None]) -> Task | None:
        """A decision, unless it takes too long: then it is cancelled, and nobody else waits before that is over."""
        if self.late:
            return None
        future = self.deciding.submit(decide)
        try:
            return await asyncio.wait_for(asyncio.wrap_future(future), self.patience)
        except Error as error:
            log.warning("the scheduler has not decided, LiteLLM routes by itself: %s", error)
        except TimeoutError:
            log.warning("no decision within %s s; LiteLLM routes by itself until there is one", self.patience)
            self._give_up(future)
        except asyncio.CancelledError:
            self._give_up(future)
            raise
        return None

    def _give_up(self, future: Future[Task | None]) -> None:
        self.late.add(future)
        future.add_done_callback(self._too_late)

    def _too_late(self, future: Future[Task | None]) -> None:
        """What was decided for nobody will not report."""
        try:
            task = None if future.cancelled() else future.result()
            if task is not None:
                task.cancel()
        except Error as error:
            log.warning("a decision that came too late: %s", error)
        finally:
            self.late.discard(future)

    async def async_post_call_success_deployment_hook(
        self, request_data: Values, response: Any, call_type: Any
    ) -> None:
        """Tell the caller which task it was."""
        record = self._own(request_data)
        if record is not None and hasattr(response, "_hidden_params"):
            response._hidden_params[RECORD] = record["task"]

    async def async_post_call_response_headers_hook(
        self, data: Values, *more: Any, **named: Any
    ) -> dict[str, str] | None:
        """The same for the proxy's callers."""
        record = self._own(data)
        return {HEADER: record["task"]} if record is not None else None

    async def async_log_success_event(self, kwargs: Values, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """Report what it cost and, if there is a judge, what it was worth."""
        record = self._own(kwargs["litellm_params"])
        if record is None or record["ended"]:
            return
        record["ended"] = True
        cost = self.cost(kwargs, response_obj, seconds_between(start_time, end_time))
        if kwargs.get("cache_hit") or not cost:
            if not kwargs.get("cache_hit"):
                self._warn_no_cost(record["option"])
            self._tell(self.scheduler.cancel, record)
        else:
            self._tell(self.scheduler.report, record, await self._reward(kwargs, response_obj), float(cost))

    def log_success_event(self, kwargs: Values, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """LiteLLM calls this for methods that are not async, after it has routed by itself."""
        group = metadata_of(kwargs["litellm_params"]).get("model_group")
        if group is not None and (self.groups is None or group in self.groups):
            self._warn(group, f"{group}: only async methods, like Router.acompletion, are decided and reported")

    def _warn_no_cost(self, option: str) -> None:
        lacks = f"{option}: there is no {self.cost_name} for it, so nothing is learned from it; "
        self._warn(option, lacks + "set input_cost_per_token in its litellm_params, or another `cost=`")

    def _warn(self, about: str, words: str) -> None:
        if about not in self.warned:
            self.warned.add(about)
            log.warning("%s", words)

    async def _reward(self, values: Values, response: Any) -> float | None:
        """What the judge says; an error of the judge's leaves the reward to be reported later."""
        if self.judge is None:
            return None
        try:
            said = await asyncio.wrap_future(self.reporting.submit(self.judge, values, response))
            said = await said if inspect.isawaitable(said) else said
            return None if said is None else float(said)
        except Exception:
            log.exception("the judge raised; the reward can still be reported")
            return None

    async def async_post_call_failure_deployment_hook(
        self, request_data: Values, exception: Exception, call_type: Any, fallback_depth: int | None = None
    ) -> None:
        """One attempt of one deployment has failed; if LiteLLM tries again, another option is next."""
        await self._failed(self._own(request_data), exception)

    async def async_log_failure_event(self, kwargs: Values, response_obj: Any, start_time: Any, end_time: Any) -> None:
        """A stream that breaks off fails here."""
        await self._failed(self._own(kwargs["litellm_params"]), kwargs.get("exception"))

    def _own(self, values: Values) -> Record | None:
        """The task of a request, if it was decided here: LiteLLM tells every callback of every request."""
        record = metadata_of(values).get(RECORD)
        return record if record is not None and record["by"] == self.identity else None

    async def _failed(self, record: Record | None, error: Any) -> None:
        if record is None or record["ended"]:
            return
        record["ended"] = record["failed"] = True
        took = time.perf_counter() - record["began"]
        cost = took if self.cost is duration else None
        reason = in_words(error) if isinstance(error, Exception) else ""
        stored = self._tell(self.scheduler.fail, record, cost, reason)
        await asyncio.wait([asyncio.wrap_future(stored)], timeout=self.patience)  # then its next attempt can be decided

    def _tell(self, method: Callable[..., None], record: Record, *values: Any) -> Future[None]:
        """A report, a failure, a cancellation, in a thread."""
        return self.reporting.submit(self._store, partial(method, record["task"], *values, attempt=record["attempt"]))

    def _store(self, tell: Callable[[], None]) -> None:
        try:
            tell()
        except Error as error:  # its request is over: nobody but an operator can do anything
            log.warning("what came of a request could not be stored: %s", error)


def option_of(deployment: Values) -> str:
    """What a deployment is called as an option: model_info's `option`, or its model."""
    named = (deployment.get("model_info") or {}).get("option")
    return str(named or deployment["litellm_params"]["model"])


def metadata_of(values: Values) -> dict[str, Any]:
    """The metadata of a request, under whichever of two names LiteLLM uses."""
    given = [values[name] for name in ("litellm_metadata", "metadata") if values.get(name) is not None]
    return given[0] if given else {}


def task_of(answered: Any) -> str | None:
    """The id of the task that a response was, or a request with this metadata; None if it was not decided.

    With a stream, ask the metadata: a dict that was given to the router is where the task is kept.
    """
    if isinstance(answered, Mapping):
        record = answered.get(RECORD)
        return None if record is None else str(record["task"])
    id: str | None = getattr(answered, "_hidden_params", {}).get(RECORD)
    return id


def seconds_between(start: Any, end: Any) -> float:
    if isinstance(start, datetime) and isinstance(end, datetime):
        return (end - start).total_seconds()
    return float(end - start)
