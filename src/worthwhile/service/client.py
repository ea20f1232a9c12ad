"""`Client`: a scheduler that runs in a service elsewhere, with the interface of one that runs here. Extra `client`.

Every request can be sent again without harm: a decision carries a key, a report counts once. So whatever got no answer
is sent again, after a pause that grows.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, TypeVar
from urllib.parse import quote

from worthwhile.errors import BadParameter, Error, MissingExtra, Overloaded, ServiceError, StoreError
from worthwhile.live.explaining import Explanation, Summary, TaskLine
from worthwhile.live.names import Option, not_negative, option_text
from worthwhile.results import replace_file
from worthwhile.scheduler import Task, task_number

try:
    import httpx
    import msgspec
except ImportError:
    raise MissingExtra("a client", "client") from None

from worthwhile.service.messages import Decided, DecidedMany, Problem, Rebuilt, ReportedMany
from worthwhile.service.problems import error_of

TIMEOUT = 15.0  # seconds for one answer
PATIENCE = 60.0  # seconds to go on trying
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0  # seconds

Found = TypeVar("Found")


class Client:
    """Decide and report through a service; any number of threads may use one client.

    The same code runs in this process with `Scheduler(…)` instead.
    """

    def __init__(
        self,
        url: str = "http://127.0.0.1:8080",
        token: str | None = None,
        name: str = "default",
        *,
        policy: str | None = None,
        overhead: float | None = None,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        self.name, self.patience = name, not_negative("patience", patience)
        self.base = f"/v1/schedulers/{quote(name, safe='')}"
        headers = {"authorization": f"Bearer {token}"} if token else {}
        try:
            self.http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        except (httpx.InvalidURL, ValueError) as reason:
            raise BadParameter(f"url {url!r}: {reason}; write http://host:port") from None
        if policy is not None or overhead is not None:
            try:
                self.send("PUT", "", {"policy": policy, "overhead": overhead})
            except BaseException:
                self.close()
                raise

    def send(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> bytes:
        """One request, again and again until there is an answer or patience ends."""
        until, pause = time.monotonic() + self.patience, FIRST_PAUSE
        content = None if body is None else msgspec.json.encode(body)
        kind = {} if body is None else {"content-type": "application/json"}
        while True:
            try:
                answer = self.http.request(method, self.base + path, content=content, headers=kind, params=query)
                if answer.status_code < 400:
                    return answer.content
                reason = refusal(answer)
            except httpx.TransportError as trouble:
                reason = ServiceError(f"{self.http.base_url}: no answer ({trouble or type(trouble).__name__})")
            wait = pause * random.uniform(0.5, 1.0)
            if not isinstance(reason, ServiceError | StoreError) or time.monotonic() + wait > until:
                raise reason
            time.sleep(wait)
            pause = min(2.0 * pause, LONGEST_PAUSE)

    def ask(self, kind: type[Found], method: str, path: str, body: Any = None, **query: Any) -> Found:
        """The answer as what it is in this library."""
        return msgspec.json.decode(self.send(method, path, body, query or None), type=kind)

    def decide(
        self, kind: str, options: Sequence[Option], *, key: str | None = None, lease: float | None = None
    ) -> Task:
        """Choose an option for a task of this kind. The same key gives the same task, however often it is asked."""
        found = self.ask(Decided, "POST", "/tasks", wish(kind, options, key, lease))
        return Task(self, found.task, found.kind, found.option)

    def decide_many(self, tasks: Sequence[tuple[str, Sequence[Option]]]) -> list[Task]:
        """Choose for several (kind, options) in one request; all, or an error."""
        wishes = [wish(kind, options, None, None) for kind, options in tasks]
        found = self.ask(DecidedMany, "POST", "/decide", {"tasks": wishes})
        for one in found.tasks:
            if isinstance(one.problem, Problem):
                raise error_of(one.problem)
        return [Task(self, str(one.task), str(one.kind), one.option) for one in found.tasks]  # type: ignore[arg-type]

    def task(self, kind: str, options: Sequence[Option], *, key: str | None = None, lease: float | None = None) -> Task:
        """The same as `decide`, for a `with` block that sets task.reward."""
        return self.decide(kind, options, key=key, lease=lease)

    def report(self, id: str | int, reward: float | None = None, cost: float | None = None) -> None:
        """What came of a task. The same report again changes nothing; another one is refused."""
        self.send("POST", f"{place(id)}/report", {"reward": number(reward), "cost": number(cost)})

    def report_many(self, reports: Sequence[tuple[str | int, float, float]]) -> None:
        """Several (id, reward, cost) in one request; those that can be are taken, the first problem is raised."""
        rows = [{"task": str(id), "reward": number(reward), "cost": number(cost)} for id, reward, cost in reports]
        found = self.ask(ReportedMany, "POST", "/reports", {"reports": rows})
        if found.refused:
            raise error_of(found.refused[0].problem)

    def observe(self, id: str | int, option: Option, reward: float, cost: float) -> None:
        """What another option on offer would have brought, if the task showed it on the side."""
        body = {"option": plain(option), "reward": number(reward), "cost": number(cost)}
        self.send("POST", f"{place(id)}/observations", body)

    def cancel(self, id: str | int) -> None:
        """The task will not report; it no longer counts as running."""
        self.send("POST", f"{place(id)}/cancel", {})

    def announce(self, kinds: Sequence[str] = (), options: Sequence[Option] = ()) -> None:
        """Number kinds and options in this order now, for policies that know them by number."""
        self.send("POST", "/announce", {"kinds": list(kinds), "options": list(map(plain, options))})

    def retire(self, option: Option, kind: str | None = None) -> None:
        """Never choose this option again, for one kind or for all."""
        self.send("POST", "/retire", {"option": plain(option), "kind": kind})

    def restore(self, option: Option, kind: str | None = None) -> None:
        """Undo `retire`."""
        self.send("POST", "/restore", {"option": plain(option), "kind": kind})

    def change(self, policy: str | None = None, overhead: float | None = None) -> None:
        """Go on with another policy, which learns from the whole history first, or with another cost per task."""
        self.send("PATCH", "", {"policy": policy, "overhead": overhead})

    def summary(self) -> Summary:
        """How it stands: the ratio so far, θ, and every option of every kind."""
        return self.ask(Summary, "GET", "/summary")

    def explain(self, task: Task | str | int) -> Explanation:
        """Why that option: everything as it was when the decision was made."""
        return self.ask(Explanation, "GET", f"{place(task.id if isinstance(task, Task) else task)}/explanation")

    def tasks(self, ids: Sequence[str | int]) -> list[TaskLine]:
        """Tasks by id."""
        return [self.ask(TaskLine, "GET", place(id)) for id in ids]

    def latest(self, count: int = 20) -> list[TaskLine]:
        """The latest tasks, newest first."""
        return self.ask(list[TaskLine], "GET", "/tasks", count=count)

    def rebuild(self) -> bool:
        """Have the whole log folded again: whether that gives what the service knows, to the bit."""
        return self.ask(Rebuilt, "POST", "/rebuild", {}).same

    def export(self, path: str | Path) -> int:
        """Write the log as a table (.csv, .jsonl) that `replay` can read; how many rows it has."""
        path = Path(path)
        if path.suffix not in (".csv", ".jsonl"):
            raise BadParameter(f"{path}: a table from a service ends in .csv or .jsonl")
        content = self.send("GET", "/export", None, {"format": path.suffix[1:]})
        replace_file(path, lambda new: Path(new).write_bytes(content))
        return content.count(b"\n") - (path.suffix == ".csv")

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, reason: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def wish(kind: str, options: Sequence[Option], key: str | None, lease: float | None) -> dict[str, Any]:
    """A task to be decided; a key of our own makes it safe to ask again."""
    listed = options if isinstance(options, str | bytes) else list(map(plain, options))
    return {"kind": kind, "options": listed, "key": uuid.uuid4().hex if key is None else key, "lease": number(lease)}


def place(id: str | int) -> str:
    return f"/tasks/{task_number(id)}"


def plain(option: Option) -> Any:
    """An option as JSON has it; refused here if it is none."""
    return msgspec.json.decode(option_text(option))


def number(value: Any) -> Any:
    """NumPy's numbers as Python's."""
    return value.item() if hasattr(value, "item") else value


def refusal(answer: httpx.Response) -> Error:
    """The service's problem as the error it was there."""
    try:
        problem = msgspec.json.decode(answer.content, type=Problem)
    except msgspec.DecodeError:
        busy = Overloaded if answer.status_code in (429, 502, 503, 504) else ServiceError
        return busy(f"the service answered {answer.status_code} {answer.reason_phrase}")
    return error_of(problem)
