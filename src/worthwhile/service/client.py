"""`Client`: a scheduler that runs in a service elsewhere, with the interface of one that runs here. Extra `client`.

Every request can be sent again without harm: a decision carries a key, a report counts once. So whatever got no answer
is sent again, after a pause that grows.
"""

from __future__ import annotations

import random
import time
import uuid
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote

from worthwhile.errors import BadParameter, BadRequest, Error, MissingExtra, Overloaded, ServiceError
from worthwhile.goals.goal import Floor, Goal
from worthwhile.live.evaluate import Evaluation
from worthwhile.live.explain import Explanation, TaskLine
from worthwhile.live.history import Line, table_at, write_table
from worthwhile.live.history_files import read_history
from worthwhile.live.labels import declared_of, units_said
from worthwhile.live.promotion import Promotion
from worthwhile.live.recorded import Recorded
from worthwhile.live.settings import policy_text, policy_words
from worthwhile.live.summary import Summary
from worthwhile.live.task import Task
from worthwhile.live.trials import trial_change
from worthwhile.live.validation import (
    Option,
    feature_text,
    goal_said,
    not_negative,
    option_text,
    task_number,
    yes_or_no,
)
from worthwhile.policies.base import Policy
from worthwhile.policies.features import Feature

try:
    import httpx
    import msgspec
except ImportError:
    raise MissingExtra("a client", "client") from None

from worthwhile.service.problems import error_of
from worthwhile.service.schemas import (
    MOST_FORGOTTEN,
    MOST_ROWS,
    Decided,
    DecidedMany,
    Problem,
    Rebuilt,
    ReportedMany,
    Series,
    Taken,
)

TIMEOUT = 15.0  # seconds for one answer
PATIENCE = 60.0  # seconds to go on trying
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0  # seconds
WORTH_ANOTHER_TRY = {408, 425, 429, 502, 503, 504}
ENOUGH = 1 << 19  # bytes of rows in one request
READ_AT_ONCE = 1 << 20  # bytes of the log
MOST_IDS = 1000  # in one address

Answer = TypeVar("Answer")


class Backoff:
    """How long to go on trying, with pauses that grow."""

    def __init__(self, patience: float) -> None:
        self.until, self.pause = time.monotonic() + patience, FIRST_PAUSE

    def wait(self, error: Error) -> None:
        """Until the next try; raise the error if there is none."""
        pause = self.pause * random.uniform(0.5, 1.0)
        if time.monotonic() + pause > self.until:
            raise error
        time.sleep(pause)
        self.pause = min(2.0 * self.pause, LONGEST_PAUSE)


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
        policy: str | Policy | None = None,
        overhead: float | None = None,
        failed_reward: float | None = None,
        store_reasons: bool | None = None,
        goal: str | Goal | None = None,
        floor: Floor | None = None,
        budget: float | None = None,
        baseline: Option | Mapping[str, Option] = None,
        holdout: float | None = None,
        explore: float | None = None,
        guard: float | None = None,
        guard_error: float | None = None,
        reward_unit: str | None = None,
        cost_unit: str | None = None,
        lease: float | None = None,
        seed: int | None = None,
        timeout: float = TIMEOUT,
        patience: float = PATIENCE,
    ) -> None:
        self.name, self.patience = name, not_negative("patience", patience)
        self.lease = None if lease is None else not_negative("lease", lease)
        self.base = f"/v1/schedulers/{quote(name, safe='')}"
        headers = {"authorization": f"Bearer {token}"} if token else {}
        if not url.lower().startswith(("http://", "https://")):
            raise BadParameter(f"url {url!r}: no http:// or https:// in front; write http://host:port")
        if not (token or "").isascii():
            raise BadParameter("token: it has letters that no token has; `worthwhile token` makes one")
        try:
            self.http = httpx.Client(base_url=url, headers=headers, timeout=timeout)
        except (httpx.InvalidURL, ValueError) as error:
            raise BadParameter(f"url {url!r}: {error}; write http://host:port") from None
        settings = {"policy": policy_name(policy), "overhead": overhead, "seed": seed, "failed_reward": failed_reward}
        settings |= {"store_reasons": yes_or_no("store_reasons", store_reasons)}
        settings |= trial_settings(baseline, holdout, explore, guard, guard_error)
        settings |= goal_fields(goal, floor, budget) | unit_fields(reward_unit, cost_unit)
        if any(value is not None for value in settings.values()):
            try:
                self._send("PUT", "", settings)
            except BaseException:
                self.close()
                raise

    def _send(self, method: str, path: str, body: Any = None, query: Mapping[str, Any] | None = None) -> bytes:
        """One request, again and again until there is an answer or patience ends."""
        backoff = Backoff(self.patience)
        content = None if body is None else msgspec.json.encode(body, enc_hook=from_numpy)
        headers = {} if body is None else {"content-type": "application/json"}
        while True:
            try:
                response = self.http.request(method, self.base + path, content=content, headers=headers, params=query)
                if response.is_success:
                    return response.content
                error = self._error_in(response)
            except httpx.TransportError as cause:
                error = self._no_answer(cause)
            backoff.wait(error)

    def _error_in(self, response: httpx.Response) -> Error:
        """The service's problem as the error it was there; raised at once if another try would end the same way."""
        worth_another_try = response.status_code in WORTH_ANOTHER_TRY
        try:
            error = error_of(msgspec.json.decode(response.content, type=Problem))
        except msgspec.DecodeError:
            words = f"{self.http.base_url}: the answer was {response.status_code} {response.reason_phrase}"
            error = Overloaded(words) if worth_another_try else ServiceError(words)
        if not worth_another_try:
            raise error
        return error

    def _no_answer(self, cause: httpx.TransportError) -> Error:
        return ServiceError(f"{self.http.base_url}: no answer ({cause or type(cause).__name__})")

    def _ask(self, answer: type[Answer], method: str, path: str, body: Any = None, **query: Any) -> Answer:
        """The answer, of the type that it has in this library."""
        content = self._send(method, path, body, query or None)
        try:
            return msgspec.json.decode(content, type=answer)
        except msgspec.DecodeError as error:
            raise ServiceError(f"{self.http.base_url}: this is no answer of the service ({error})") from None

    def decide(
        self,
        kind: str,
        options: Sequence[Option],
        *,
        features: Mapping[str, Feature] | None = None,
        key: str | None = None,
        lease: float | None = None,
        usual: Option = None,
    ) -> Task:
        """Choose an option for a task of this kind. The same key gives the same task, however often it is asked."""
        body = new_task(kind, options, features, key, self.lease if lease is None else lease, usual)
        return self._task(self._ask(Decided, "POST", "/tasks", body))

    def _task(self, decided: Decided) -> Task:
        task = Task(self, decided.task, decided.kind, decided.option, decided.state)
        task.attempt = decided.attempt
        return task

    def decide_many(
        self, tasks: Sequence[tuple[str, Sequence[Option]] | tuple[str, Sequence[Option], Mapping[str, Feature] | None]]
    ) -> list[Task]:
        """Choose for several (kind, options) or (kind, options, features) in one request; all, or an error."""
        bodies = [new_task(task[0], task[1], task[2] if len(task) > 2 else None, None, self.lease) for task in tasks]
        decided = self._ask(DecidedMany, "POST", "/decide", {"tasks": bodies}).tasks
        for task in decided:
            if isinstance(task.problem, Problem):
                raise error_of(task.problem)
        return [Task(self, str(task.task), str(task.kind), task.option) for task in decided]  # type: ignore[arg-type]

    def task(
        self,
        kind: str,
        options: Sequence[Option],
        *,
        features: Mapping[str, Feature] | None = None,
        key: str | None = None,
        lease: float | None = None,
        usual: Option = None,
    ) -> Task:
        """The same as `decide`, for a `with` block that sets task.reward."""
        return self.decide(kind, options, features=features, key=key, lease=lease, usual=usual)

    def report(
        self, id: str | int, reward: float | None = None, cost: float | None = None, attempt: int | None = None
    ) -> None:
        """What came of a task. The same report again changes nothing; another one is refused.

        `attempt` says which one at the task, counted from 0; without it, the latest. A task's own methods know it.
        """
        self._send("POST", f"{task_path(id)}/report", {"reward": reward, "cost": cost, "attempt": attempt})

    def report_many(self, reports: Sequence[tuple[str | int, float, float]]) -> None:
        """Several (id, reward, cost) in one request; those that can be are taken, the first problem is raised."""
        bodies = [{"task": str(id), "reward": reward, "cost": cost} for id, reward, cost in reports]
        refused = self._ask(ReportedMany, "POST", "/reports", {"reports": bodies}).refused
        if refused:
            raise error_of(refused[0].problem)

    def fail(self, id: str | int, cost: float | None = None, reason: str = "", attempt: int | None = None) -> None:
        """A task has failed: at this cost or, if nobody knows, at what such tasks cost on average."""
        self._send("POST", f"{task_path(id)}/fail", {"cost": cost, "reason": reason, "attempt": attempt})

    def observe(self, id: str | int, option: Option, reward: float, cost: float) -> None:
        """What another option on offer would have brought, if the task showed it on the side."""
        body = {"option": plain(option), "reward": reward, "cost": cost}
        self._send("POST", f"{task_path(id)}/observations", body)

    def cancel(self, id: str | int, attempt: int | None = None) -> None:
        """The task will not report; it no longer counts as running."""
        self._send("POST", f"{task_path(id)}/cancel", {"attempt": attempt})

    def again(self, id: str | int, after: int | None = None) -> Task:
        """Another attempt at a task that has failed: the same task, with an option that has not failed on it."""
        return self._task(self._ask(Decided, "POST", f"{task_path(id)}/again", {"after": after, "lease": self.lease}))

    def forget(self, *tasks: Task | str | int) -> None:
        """Take the features of tasks, and the reasons why they failed, out of the store, for good.

        Every process then reads the log again, so that nothing of them is left in what was learned: give many at once.
        """
        ids = [str(task_number(task.id if isinstance(task, Task) else task)) for task in tasks]
        for start in range(0, len(ids), MOST_FORGOTTEN):
            self._send("POST", "/forget", {"tasks": ids[start : start + MOST_FORGOTTEN]})

    def announce(self, kinds: Sequence[str] = (), options: Sequence[Option] = ()) -> None:
        """Number kinds and options in this order now, for policies that know them by number."""
        self._send("POST", "/announce", {"kinds": list(kinds), "options": list(map(plain, options))})

    def declare(self, options: Mapping[str, Sequence[Option]]) -> None:
        """Say which kinds there are, and the options of each: from now on others are refused, as `Undeclared`."""
        declared_of(options)
        self._send("POST", "/declare", {"options": {kind: list(map(plain, those)) for kind, those in options.items()}})

    def retire(self, option: Option, kind: str | None = None) -> None:
        """Never choose this option again, for one kind or for all."""
        self._send("POST", "/retire", {"option": plain(option), "kind": kind})

    def restore(self, option: Option, kind: str | None = None) -> None:
        """Undo `retire`, and give a benched option another try."""
        self._send("POST", "/restore", {"option": plain(option), "kind": kind})

    def change(
        self,
        policy: str | Policy | None = None,
        overhead: float | None = None,
        failed_reward: float | str | None = None,
        store_reasons: bool | None = None,
        goal: str | Goal | None = None,
        floor: Floor | None = None,
        budget: float | None = None,
        baseline: Option | Mapping[str, Option] = None,
        holdout: float | None = None,
        explore: float | None = None,
        guard: float | str | None = None,
        guard_error: float | None = None,
        reward_unit: str | None = None,
        cost_unit: str | None = None,
    ) -> None:
        """Go on with another policy, which learns from the whole history first, or with another cost per task.

        From now on a failure is a result worth `failed_reward`; "none" undoes that. With `store_reasons=False` it is no
        longer stored why tasks fail. `baseline`, `holdout`, `explore` and `guard` hold from the next task on. A goal
        replaces the one before, with its floor and its budget; goal="ratio" alone drops both.
        """
        keep = yes_or_no("store_reasons", store_reasons)
        settings = {"overhead": overhead, "failed_reward": failed_reward, "store_reasons": keep}
        settings |= trial_settings(baseline, holdout, explore, guard, guard_error) | goal_fields(goal, floor, budget)
        settings |= unit_fields(reward_unit, cost_unit)
        self._send("PATCH", "", {"policy": policy_name(policy), **settings})

    def summary(self) -> Summary:
        """How it stands: the ratio so far, θ, every option of every kind, who wins, and what to look at."""
        return self._ask(Summary, "GET", "/summary")

    def plot(self, path: str | Path | None = None) -> Any:
        """A figure of what the dashboard shows: a matplotlib figure, or written to a file (.png, .svg, .pdf)."""
        from worthwhile.live import figure

        points = self._ask(Series, "GET", "/series", points=figure.POINTS).points
        return figure.plot(self.summary(), points, path)

    def evaluate(self, rule: str | None = None, *, policy: str | Policy | None = None) -> Evaluation:
        """What a rule (always:OPTION, baseline, greedy, random) or a policy would have earned per cost on this log."""
        query = {"rule": rule, "policy": policy_name(policy)}
        return self._ask(
            Evaluation, "GET", "/evaluation", **{name: text for name, text in query.items() if text is not None}
        )

    def promote(self, share: float | None = None) -> Promotion:
        """What share of the tasks the scheduler should decide next; given one, it does from now on."""
        return self._ask(Promotion, "POST", "/promote", {"share": share})

    def explain(self, task: Task | str | int) -> Explanation:
        """Why that option: everything as it was when the decision was made."""
        return self._ask(Explanation, "GET", f"{task_path(task.id if isinstance(task, Task) else task)}/explanation")

    def tasks(self, ids: Sequence[str | int]) -> list[TaskLine]:
        """Tasks by id."""
        numbers = [str(task_number(id)) for id in ids]
        portions = [",".join(numbers[start : start + MOST_IDS]) for start in range(0, len(numbers), MOST_IDS)]
        return [line for ids in portions for line in self._ask(list[TaskLine], "GET", "/tasks", ids=ids)]

    def latest(self, count: int = 20) -> list[TaskLine]:
        """The latest tasks, newest first."""
        return self._ask(list[TaskLine], "GET", "/tasks", count=count)

    def rebuild(self) -> bool:
        """Have the whole log folded again: whether that gives what the service knows, to the bit."""
        return self._ask(Rebuilt, "POST", "/rebuild", {}).same

    def export(self, path: str | Path) -> int:
        """Write the log as a table (.parquet, .csv, .jsonl) that `replay` can read; how many rows it has."""
        return write_table(table_at(path), self._lines())

    def _lines(self, after: int = 0) -> Iterator[list[Line]]:
        """The log in portions, entries that were set aside left out; after an interruption it goes on where it was."""
        backoff = Backoff(self.patience)
        while True:
            try:
                with self.http.stream("GET", f"{self.base}/export", params={"after": after}) as response:
                    if response.is_success:
                        for lines in in_lines(response.iter_bytes(READ_AT_ONCE)):
                            yield lines
                            after, backoff = lines[-1]["number"], Backoff(self.patience)
                        return
                    response.read()
                    error = self._error_in(response)
            except httpx.TransportError as cause:
                error = self._no_answer(cause)
            backoff.wait(error)

    def load(self, path: str | Path, columns: Mapping[str, str] | None = None) -> int:
        """Learn from recorded history: columns task_type, item_id, option, reward, cost. How many rows were new.

        `columns` has what the file calls them, like {"reward": "score"}. Options that read as JSON (5, true, null) are
        taken as such. The same file again adds nothing.
        """
        requests = portions(read_history(Path(path), columns))
        return sum(self._ask(Taken, "POST", "/history", {"rows": rows}).taken for rows in requests)

    def close(self) -> None:
        """Close the connections."""
        self.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


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


def trial_settings(
    baseline: Option | Mapping[str, Option],
    holdout: float | None,
    explore: float | None,
    guard: float | str | None,
    guard_error: float | None,
) -> dict[str, Any]:
    """What is held out, checked here: a share beyond 1 is refused before it is sent."""
    trial_change(baseline, holdout, explore, guard, guard_error)
    shares = {"holdout": holdout, "explore": explore, "guard": guard, "guard_error": guard_error}
    if isinstance(baseline, Mapping):
        return {"baseline": {kind: plain(option) for kind, option in baseline.items()}, **shares}
    return {"baseline": plain(baseline), **shares}


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


def goal_fields(goal: str | Goal | None, floor: Floor | None, budget: float | None) -> dict[str, Any]:
    """A goal as the service is told it; what was not said is None."""
    said = goal_said(goal, floor, budget)
    return {"goal": None, "floor": None, "budget": None} if said is None else said.to_json()


def unit_fields(reward_unit: str | None, cost_unit: str | None) -> dict[str, str | None]:
    """Units as the service is told them; what was not said is None."""
    said = units_said(reward_unit, cost_unit)
    return {"reward_unit": said.reward, "cost_unit": said.cost}


def policy_name(policy: str | Policy | None) -> str | None:
    """A policy as its name and parameters."""
    return policy if policy is None or isinstance(policy, str) else policy_words(policy_text(policy))


def in_lines(chunks: Iterable[bytes]) -> Iterator[list[Line]]:
    """Rows of the log from its text, which comes in pieces of any size."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        if whole:
            yield [msgspec.json.decode(line) for line in whole]


def portions(rows: Iterable[Recorded]) -> Iterator[list[msgspec.Raw]]:
    """Rows of history as many requests take them."""
    portion: list[msgspec.Raw] = []
    size = 0
    for row in rows:
        fields = {name: value for name, value in row._asdict().items() if name != "place"}  # which is this file's
        features = None if row.features is None else msgspec.Raw(row.features.encode())
        text = msgspec.json.encode(fields | {"option": msgspec.Raw(row.option.encode()), "features": features})
        if len(portion) == MOST_ROWS or size + len(text) > ENOUGH:
            yield portion
            portion, size = [], 0
        portion.append(msgspec.Raw(text))
        size += len(text)
    if portion:
        yield portion
