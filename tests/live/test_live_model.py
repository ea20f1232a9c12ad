"""Properties: whatever is asked in whatever order, a model, memory, SQLite and PostgreSQL agree; so after restarts."""

from __future__ import annotations

import itertools
import tempfile
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    rule,
    run_state_machine_as_test,
)

from worthwhile import Scheduler
from worthwhile.errors import AlreadyCancelled, AlreadyFailed, AlreadyReported, BadTask, Error

OPTIONS = [1, 1.0, "1", True, None]
values = st.floats(0.1, 9.0)
names = itertools.count()


class Model(RuleBasedStateMachine):
    """A scheduler on each store, with the same seed, and what ought to be in them."""

    tasks: Any = Bundle("tasks")

    def __init__(self, postgres: str) -> None:
        super().__init__()
        self.postgres = postgres

    @initialize(overhead=st.sampled_from([0.0, 0.5]))
    def begin(self, overhead: float) -> None:
        self.folder = tempfile.TemporaryDirectory()
        self.urls = None, f"sqlite:///{self.folder.name}/tasks.db?synchronous=normal", self.postgres
        self.name = f"model {next(names)}"
        self.live = [Scheduler(url, self.name, seed=7, overhead=overhead) for url in self.urls]
        self.overhead = overhead
        self.parts: dict[str, dict[str, float]] = {}
        self.cancelled: set[str] = set()
        self.observed: dict[tuple[str, str], tuple[float, float]] = {}
        self.keys: dict[str, str] = {}
        self.offers: dict[str, list[Any]] = {}
        self.chosen: dict[str, Any] = {}
        self.failed: dict[str, float] = {}  # tasks whose latest attempt has failed, at this cost
        self.failures: dict[str, list[float]] = {}  # costs of all that have failed
        self.tried: dict[str, set[str]] = {}  # options that have failed

    def all(self, call: Any) -> Any:
        """The same call on all of them; they answer, or refuse, alike."""
        answers = []
        for scheduler in self.live:
            try:
                answers.append(call(scheduler))
            except Error as reason:
                answers.append((type(reason), str(reason)))
        assert answers[0] == answers[1] == answers[2]
        return answers[0]

    @rule(
        target=tasks,
        kind=st.sampled_from(["x", "y", "ü"]),
        options=st.lists(st.sampled_from(OPTIONS), min_size=1, unique_by=repr),
        key=st.none() | st.sampled_from(["a", "b"]),
    )
    def decide(self, kind: str, options: list[Any], key: str | None) -> Any:
        key = None if key is None else f"{key} {kind}"

        def decided(scheduler: Scheduler) -> tuple[str, str, Any]:
            task = scheduler.decide(kind, options, key=key)
            return task.id, repr(task.option), task.option

        id, shown, option = self.all(decided)
        if key in self.keys:
            assert id == self.keys[key]
            return multiple()
        if key is not None:
            self.keys[key] = id
        assert shown in map(repr, options)
        assert id == str(len(self.offers) + 1)
        self.offers[id], self.chosen[id], self.parts[id] = options, option, {}
        return id

    @rule(id=tasks, part=st.sampled_from(["reward", "cost", "both"]), reward=values, cost=values, again=st.booleans())
    def report(self, id: str, part: str, reward: float, cost: float, again: bool) -> None:
        given = {"reward": reward, "cost": cost}
        if again:
            given |= self.parts[id]
        given = given if part == "both" else {part: given[part]}
        answer = self.all(lambda scheduler: scheduler.report(id, **given))
        differs = any(self.parts[id].get(name, value) != value for name, value in given.items())
        if id in self.failed:
            assert answer[0] is AlreadyFailed
        elif differs:
            assert answer[0] is AlreadyReported
        elif id in self.cancelled:
            assert answer[0] is AlreadyCancelled
        else:
            assert answer is None
            self.parts[id] |= given

    @rule(id=tasks, cost=st.none() | values, again=st.booleans())
    def fail(self, id: str, cost: float | None, again: bool) -> None:
        if again and id in self.failed:
            cost = self.failed[id]
        answer = self.all(lambda scheduler: scheduler.fail(id, cost, "a reason"))
        if len(self.parts[id]) == 2:
            assert answer[0] is AlreadyReported
        elif id in self.failed:
            assert answer is None if cost in (None, self.failed[id]) else answer[0] is AlreadyFailed
        elif id in self.cancelled:
            assert answer[0] is AlreadyCancelled
        else:
            assert answer is None
            [line] = self.all(lambda scheduler: [line.cost for line in scheduler.tasks([id])])
            assert line == (line if cost is None else cost)
            self.failed[id], self.parts[id] = line, {}
            self.failures.setdefault(id, []).append(line)
            self.tried.setdefault(id, set()).add(repr(self.chosen[id]))

    @rule(id=tasks)
    def again(self, id: str) -> None:
        def retried(scheduler: Scheduler) -> tuple[int, str, Any]:
            task = scheduler.again(id)
            return task.attempt, repr(task.option), task.option

        answer, tried = self.all(retried), self.tried.get(id, set())
        if id in self.cancelled:
            assert answer[0] is AlreadyCancelled or answer[0] is AlreadyFailed
        elif id not in self.failed and len(self.parts[id]) == 2:
            assert answer[0] is AlreadyReported
        elif (len(tried) == len(self.offers[id])) if id in self.failed else not tried:
            assert answer[0] is BadTask
        else:
            assert answer[0] == len(tried)
            assert answer[1] not in tried
            self.chosen[id] = answer[2]
            self.failed.pop(id, None)

    @rule(id=tasks, place=st.integers(0, 4), reward=values, cost=values)
    def observe(self, id: str, place: int, reward: float, cost: float) -> None:
        option = self.offers[id][place % len(self.offers[id])]
        answer = self.all(lambda scheduler: scheduler.observe(id, option, reward, cost))
        mine = repr(option) == repr(self.chosen[id])
        before = self.observed.get((id, repr(option)))
        assert (answer is None) == (not mine and before in (None, (reward, cost)))
        if answer is None:
            self.observed[id, repr(option)] = reward, cost

    @rule(id=consumes(tasks))
    def cancel(self, id: str) -> None:
        answer = self.all(lambda scheduler: scheduler.cancel(id))
        assert (answer is None) == (len(self.parts[id]) < 2 and id not in self.failed)
        if answer is None:
            self.cancelled.add(id)

    @rule()
    def restart(self) -> None:
        for place in (1, 2):
            self.live[place].close()
            self.live[place] = Scheduler(self.urls[place], self.name)

    @rule(option=st.sampled_from(OPTIONS))
    def retire(self, option: Any) -> None:
        self.all(lambda scheduler: scheduler.retire(option))
        answer = self.all(lambda scheduler: scheduler.decide("x", [option]).id)
        assert answer[0] is BadTask
        self.all(lambda scheduler: scheduler.restore(option))

    @rule(policy=st.sampled_from(["ratio-imed", "random-option", "reward-ts", "kind-greedy"]))
    def change(self, policy: str) -> None:
        self.all(lambda scheduler: scheduler.change(policy=policy))

    @invariant()
    def all_agree(self) -> None:
        found = self.all(lambda scheduler: scheduler.summary())
        whole = [parts for parts in self.parts.values() if len(parts) == 2]
        assert (found.tasks, found.reports, found.bad_entries) == (len(self.offers), len(whole), 0)
        assert found.running == len(self.offers) - len(whole) - len(self.cancelled) - len(self.failed)
        failures = [cost for costs in self.failures.values() for cost in costs]
        assert found.failed == len(failures)
        assert found.reward == pytest.approx(sum(parts["reward"] for parts in whole))
        costs = [parts["cost"] for parts in whole] + failures
        assert found.cost == pytest.approx(sum(cost + self.overhead for cost in costs))
        assert sum(line.observed for kind in found.kinds for line in kind.options) == len(self.observed)

    def teardown(self) -> None:
        if hasattr(self, "live"):
            assert self.all(lambda scheduler: scheduler.rebuild())
            for scheduler in self.live:
                scheduler.close()
            self.folder.cleanup()


def test_all_stores_agree_with_the_model(postgres: str) -> None:
    examples = settings.default.max_examples * 3 // 5
    run_state_machine_as_test(lambda: Model(postgres), settings=settings(max_examples=examples, stateful_step_count=25))
