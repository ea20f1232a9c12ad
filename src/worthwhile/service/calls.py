"""What is asked of a service for every task, as requests, and what to make of its answers; whoever sends them.

Every request can be sent again without harm: a decision carries a key, a report counts once. So whatever got no answer
is sent again, after a pause that grows.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

import httpx
import msgspec

from worthwhile.errors import BadParameter, BadRequest, Error, Overloaded, ServiceError
from worthwhile.live.task import Feedback, Task
from worthwhile.live.validation import Option, feature_text, option_text, task_number
from worthwhile.policies.features import Feature
from worthwhile.service.problems import error_of
from worthwhile.service.schemas import Decided, DecidedMany, Problem, ReportedMany, Taken

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0  # seconds
WORTH_ANOTHER_TRY = {408, 425, 429, 502, 503, 504}


class Call(NamedTuple):
    """A request below a scheduler's address, and the type of its answer, None if it does not matter."""

    method: str
    path: str
    answer: Any = None
    body: Any = None
    query: Mapping[str, Any] | None = None

    def request(self, base: str) -> dict[str, Any]:
        """As httpx takes it."""
        content = None if self.body is None else encoded(self.body)
        headers = {} if self.body is None else {"content-type": "application/json"}
        return {
            "method": self.method, "url": base + self.path, "content": content, "headers": headers,
            "params": self.query,
        }  # fmt: skip

    def decoded(self, content: bytes, url: object) -> Any:
        """The answer, of the type that it has in this library."""
        if self.answer is None:
            return None
        try:
            return msgspec.json.decode(content, type=self.answer)
        except msgspec.DecodeError as error:
            raise ServiceError(f"{url}: this is no answer of the service ({error})") from None


class Saying(NamedTuple):
    """Something about a task."""

    what: str  # the last part of its address
    task: str | int
    body: dict[str, Any]

    @property
    def call(self) -> Call:
        return Call("POST", f"{task_path(self.task)}/{self.what}", Taken, self.body)


class Backoff:
    """How long to go on trying, with pauses that grow."""

    def __init__(self, patience: float) -> None:
        self.until, self.pause = time.monotonic() + patience, FIRST_PAUSE

    def next_pause(self, error: Error) -> float:
        """Seconds until the next try; the error is raised if there is none."""
        pause = self.pause * random.uniform(0.5, 1.0)
        if time.monotonic() + pause > self.until:
            raise error
        self.pause = min(2.0 * self.pause, LONGEST_PAUSE)
        return pause

    def wait(self, error: Error) -> None:
        """Until the next try; the error is raised if there is none."""
        time.sleep(self.next_pause(error))


def base_of(name: str) -> str:
    """A scheduler's address at a service."""
    return f"/v1/schedulers/{quote(name, safe='')}"


def http_settings(url: str, token: str | None, timeout: float) -> dict[str, Any]:
    """Where and how to send requests, as httpx takes it."""
    if not url.lower().startswith(("http://", "https://")):
        raise BadParameter(f"url {url!r}: no http:// or https:// in front; write http://host:port")
    if not (token or "").isascii():
        raise BadParameter("token: it has letters that no token has; `worthwhile token` makes one")
    try:
        httpx.URL(url)
    except (httpx.InvalidURL, ValueError) as error:
        raise BadParameter(f"url {url!r}: {error}; write http://host:port") from None
    headers = {"authorization": f"Bearer {token}"} if token else {}
    return {"base_url": url, "headers": headers, "timeout": timeout}


def error_in(response: httpx.Response, url: object) -> Error:
    """The service's problem as the error it was there; raised at once if another try would end the same way."""
    worth_another_try = response.status_code in WORTH_ANOTHER_TRY
    try:
        error = error_of(msgspec.json.decode(response.content, type=Problem))
    except msgspec.DecodeError:
        words = f"{url}: the answer was {response.status_code} {response.reason_phrase}"
        error = Overloaded(words) if worth_another_try else ServiceError(words)
    if not worth_another_try:
        raise error
    return error


def no_answer(cause: httpx.TransportError, url: object) -> Error:
    return ServiceError(f"{url}: no answer ({cause or type(cause).__name__})")


def deciding(
    usual_lease: float | None,
    kind: str,
    options: Sequence[Option],
    *,
    features: Mapping[str, Feature] | None = None,
    key: str | None = None,
    lease: float | None = None,
    usual: Option = None,
) -> Call:
    """Asks for a task."""
    body = new_task(kind, options, features, key, usual_lease if lease is None else lease, usual)
    return Call("POST", "/tasks", Decided, body)


def retrying(usual_lease: float | None, id: str | int, after: int | None = None) -> Call:
    """Asks for another attempt at a task."""
    return Call("POST", f"{task_path(id)}/again", Decided, {"after": after, "lease": usual_lease})


def deciding_many(
    usual_lease: float | None,
    tasks: Sequence[tuple[str, Sequence[Option]] | tuple[str, Sequence[Option], Mapping[str, Feature] | None]],
) -> Call:
    """Asks for several tasks."""
    bodies = [new_task(task[0], task[1], task[2] if len(task) > 2 else None, None, usual_lease) for task in tasks]
    return Call("POST", "/decide", DecidedMany, {"tasks": bodies})


def reporting(
    id: str | int, reward: float | None = None, cost: float | None = None, attempt: int | None = None
) -> Saying:
    """Says what came of a task."""
    return Saying("report", id, {"reward": reward, "cost": cost, "attempt": attempt})


def reporting_many(reports: Sequence[tuple[str | int, float, float]]) -> Call:
    """Says what came of several."""
    bodies = [{"task": str(id), "reward": reward, "cost": cost} for id, reward, cost in reports]
    return Call("POST", "/reports", ReportedMany, {"reports": bodies})


def failing(id: str | int, cost: float | None = None, reason: str = "", attempt: int | None = None) -> Saying:
    """Says that a task has failed."""
    return Saying("fail", id, {"cost": cost, "reason": reason, "attempt": attempt})


def observing(id: str | int, option: Option, reward: float, cost: float) -> Saying:
    """Says what another option would have brought."""
    return Saying("observations", id, {"option": plain(option), "reward": reward, "cost": cost})


def cancelling(id: str | int, attempt: int | None = None) -> Saying:
    """Says that a task will not report."""
    return Saying("cancel", id, {"attempt": attempt})


def task_of(client: Feedback, decided: Decided) -> Task:
    """A task from the answer to who asked for it."""
    task = Task(client, decided.task, decided.kind, decided.option, decided.state)
    task.attempt = decided.attempt
    return task


def tasks_of(client: Feedback, answer: DecidedMany) -> list[Task]:
    """Several; the first problem is raised."""
    for task in answer.tasks:
        if isinstance(task.problem, Problem):
            raise error_of(task.problem)
    return [Task(client, str(task.task), str(task.kind), task.option) for task in answer.tasks]  # type: ignore[arg-type]


def check_refused(answer: ReportedMany) -> None:
    """Raise the first problem of several reports."""
    if answer.refused:
        raise error_of(answer.refused[0].problem)


def new_task(
    kind: str,
    options: Sequence[Option],
    features: Mapping[str, Feature] | None,
    key: str | None,
    lease: float | None,
    usual: Option = None,
) -> dict[str, Any]:
    """A task to be decided; a key of our own makes it safe to ask again."""
    listed = options if isinstance(options, str | bytes) else list(map(plain, options))
    key = uuid.uuid4().hex if key is None else key
    text = feature_text(features)
    known = None if text is None else msgspec.Raw(text.encode())
    return {
        "kind": kind, "options": listed, "features": known, "key": key, "lease": lease, "usual": plain(usual),
    }  # fmt: skip


def task_path(id: str | int) -> str:
    return f"/tasks/{task_number(id)}"


def plain(option: Option) -> Any:
    """An option as JSON has it; refused here if it is none."""
    return msgspec.json.decode(option_text(option))


def from_numpy(value: Any) -> Any:
    """NumPy's numbers as Python's, for JSON."""
    if hasattr(value, "item"):
        return value.item()
    raise BadRequest(f"{value!r}: JSON has no word for it; give numbers and text")


def encoded(body: Any) -> bytes:
    """As JSON."""
    return msgspec.json.encode(body, enc_hook=from_numpy)
