"""`Client`: a scheduler that runs in a service elsewhere, with the interface of one that runs here. Extra `client`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from worthwhile.errors import Error, MissingExtra
from worthwhile.goals.goal import Floor, Goal
from worthwhile.live.evaluate import Evaluation
from worthwhile.live.explain import Explanation, TaskLine
from worthwhile.live.history import Line, table_at, write_table
from worthwhile.live.history_files import read_history
from worthwhile.live.labels import declared_of
from worthwhile.live.promotion import Promotion
from worthwhile.live.summary import Summary
from worthwhile.live.task import Task
from worthwhile.live.validation import Option, not_negative, number_of, task_number
from worthwhile.policies.base import Policy
from worthwhile.policies.features import Feature

try:
    import httpx
    import msgspec  # noqa: F401
except ImportError:
    raise MissingExtra("a client", "client") from None

from worthwhile.service import calls
from worthwhile.service.calls import Backoff, Call, Saying
from worthwhile.service.offline import DECIDE_WITHIN, REFRESH, Offline, check_offline, positive
from worthwhile.service.portions import lines_in, portions_of
from worthwhile.service.schemas import MOST_FORGOTTEN, Rebuilt, Series, Taken
from worthwhile.service.settings_body import policy_name, settings_body

TIMEOUT = 15.0  # seconds for one answer
PATIENCE = 60.0  # seconds to go on trying
READ_AT_ONCE = 1 << 20  # bytes of the log
MOST_IDS = 1000  # in one address

Answer = TypeVar("Answer")


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
        offline: str | None = None,
        offline_file: str | Path | None = None,
        decisions: str = "central",
        decide_within: float = DECIDE_WITHIN,
        refresh: float = REFRESH,
    ) -> None:
        self.name, self.patience = name, not_negative("patience", patience)
        self.lease = None if lease is None else not_negative("lease", lease)
        self.base, self.http_settings = calls.base_of(name), calls.http_settings(url, token, timeout)
        local = check_offline(offline, offline_file, decisions)
        self.http = httpx.Client(**self.http_settings)
        self._offline: Offline | None = None
        settings = {"seed": seed} | settings_body(
            policy, overhead, failed_reward, store_reasons, goal, floor, budget, baseline, holdout, explore, guard,
            guard_error, reward_unit, cost_unit,
        )  # fmt: skip
        if any(value is not None for value in settings.values()):
            try:
                self._tell("PUT", "", settings)
            except BaseException:
                self.close()
                raise
        if offline_file is not None:
            limits = positive("decide_within", decide_within), positive("refresh", refresh)
            self._offline = Offline(self, offline_file, *limits, local)

    def _send(self, call: Call) -> Any:
        """The answer to a request, which is sent again and again until there is one or patience ends."""
        backoff = Backoff(self.patience)
        while isinstance(answer := self._attempt(call), Error):
            backoff.wait(answer)
        return answer

    def _attempt(self, call: Call, **more: Any) -> Any:
        """The answer to a request; an error that another try may not end with is one as well."""
        try:
            response = self.http.request(**call.request(self.base), **more)
        except httpx.TransportError as cause:
            return calls.no_answer(cause, self.http.base_url)
        if response.is_success:
            return call.decoded(response.content, self.http.base_url)
        return calls.error_in(response, self.http.base_url)

    def _say(self, saying: Saying) -> None:
        """Something about a task: to the service or, if that may be away, by way of the file."""
        if self._offline is None:
            self._send(saying.call)
        else:
            self._offline.say(saying)

    def _tell(self, method: str, path: str, body: Any) -> None:
        """Something whose answer does not matter, as long as there is one."""
        self._send(Call(method, path, body=body))

    def _ask(self, answer: type[Answer], method: str, path: str, body: Any = None, **query: Any) -> Answer:
        """The answer, of the type that it has in this library."""
        decoded: Answer = self._send(Call(method, path, answer, body, query or None))
        return decoded

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
        known: dict[str, Any] = {"features": features, "key": key, "lease": lease, "usual": usual}
        if self._offline is not None:
            return self._offline.decide(kind, options, known)
        return calls.task_of(self, self._send(calls.deciding(self.lease, kind, options, **known)))

    def decide_many(
        self, tasks: Sequence[tuple[str, Sequence[Option]] | tuple[str, Sequence[Option], Mapping[str, Feature] | None]]
    ) -> list[Task]:
        """Choose for several (kind, options) or (kind, options, features) in one request; all, or an error."""
        return calls.tasks_of(self, self._send(calls.deciding_many(self.lease, tasks)))

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
        self._say(calls.reporting(id, reward, cost, attempt))

    def report_many(self, reports: Sequence[tuple[str | int, float, float]]) -> None:
        """Several (id, reward, cost) in one request; those that can be are taken, the first problem is raised."""
        calls.check_refused(self._send(calls.reporting_many(reports)))

    def fail(self, id: str | int, cost: float | None = None, reason: str = "", attempt: int | None = None) -> None:
        """A task has failed: at this cost or, if nobody knows, at what such tasks cost on average."""
        self._say(calls.failing(id, cost, reason, attempt))

    def observe(self, id: str | int, option: Option, reward: float, cost: float) -> None:
        """What another option on offer would have brought, if the task showed it on the side."""
        self._say(calls.observing(id, option, reward, cost))

    def cancel(self, id: str | int, attempt: int | None = None) -> None:
        """The task will not report; it no longer counts as running."""
        self._say(calls.cancelling(id, attempt))

    def again(self, id: str | int, after: int | None = None) -> Task:
        """Another attempt at a task that has failed: the same task, with an option that has not failed on it."""
        return calls.task_of(self, self._send(calls.retrying(self.lease, self._known(id), after)))

    def _known(self, id: str | int) -> str | int:
        """A task's id at the service."""
        return id if self._offline is None else self._offline.known(id)

    def forget(self, *tasks: Task | TaskLine | str | int) -> None:
        """Take the features of tasks, and the reasons why they failed, out of the store, for good.

        Every process then reads the log again, so that nothing of them is left in what was learned: give many at once.
        """
        ids = [str(number_of(task)) for task in tasks]
        for start in range(0, len(ids), MOST_FORGOTTEN):
            self._tell("POST", "/forget", {"tasks": ids[start : start + MOST_FORGOTTEN]})

    def announce(self, kinds: Sequence[str] = (), options: Sequence[Option] = ()) -> None:
        """Number kinds and options in this order now, for policies that know them by number."""
        self._tell("POST", "/announce", {"kinds": list(kinds), "options": list(map(calls.plain, options))})

    def declare(self, options: Mapping[str, Sequence[Option]]) -> None:
        """Say which kinds there are, and the options of each: from now on others are refused, as `Undeclared`."""
        declared_of(options)
        self._tell(
            "POST", "/declare", {"options": {kind: list(map(calls.plain, those)) for kind, those in options.items()}}
        )

    def retire(self, option: Option, kind: str | None = None) -> None:
        """Never choose this option again, for one kind or for all."""
        self._tell("POST", "/retire", {"option": calls.plain(option), "kind": kind})

    def restore(self, option: Option, kind: str | None = None) -> None:
        """Undo `retire`, and give a benched option another try."""
        self._tell("POST", "/restore", {"option": calls.plain(option), "kind": kind})

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
        settings = settings_body(
            policy, overhead, failed_reward, store_reasons, goal, floor, budget, baseline, holdout, explore, guard,
            guard_error, reward_unit, cost_unit,
        )  # fmt: skip
        self._tell("PATCH", "", settings)

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

    def explain(self, task: Task | TaskLine | str | int) -> Explanation:
        """Why that option: everything as it was when the decision was made."""
        return self._ask(Explanation, "GET", f"{calls.task_path(number_of(task))}/explanation")

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
                        for lines in lines_in(response.iter_bytes(READ_AT_ONCE)):
                            yield lines
                            after, backoff = lines[-1]["number"], Backoff(self.patience)
                        return
                    response.read()
                    error = calls.error_in(response, self.http.base_url)
            except httpx.TransportError as cause:
                error = calls.no_answer(cause, self.http.base_url)
            backoff.wait(error)

    def load(self, path: str | Path, columns: Mapping[str, str] | None = None) -> int:
        """Learn from recorded history: columns task_type, item_id, option, reward, cost. How many rows were new.

        `columns` has what the file calls them, like {"reward": "score"}. Options that read as JSON (5, true, null) are
        taken as such. The same file again adds nothing.
        """
        requests = portions_of(read_history(Path(path), columns))
        return sum(self._ask(Taken, "POST", "/history", {"rows": rows}).taken for rows in requests)

    def close(self) -> None:
        """Tell the service what it was not told yet, if it is there, and close the connections."""
        if self._offline is not None:
            self._offline.close()
        self.http.close()

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()
