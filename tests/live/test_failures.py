"""Failures: outcomes of their own, stored with their cost and reason, counted once and learned from, on every store."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from clocks import Clock
from worthwhile import Scheduler, Task
from worthwhile.errors import AlreadyCancelled, AlreadyFailed, AlreadyReported, BadFeedback, BadParameter
from worthwhile.live.checking import find_damage
from worthwhile.live.settings import SettingsChange
from worthwhile.live.stores.base import FAILED, OWN
from worthwhile.simulation.environments.replay import replay
from worthwhile.tables import ratio_so_far, read_table

OPTIONS = ["good", "broken"]


def log_of(scheduler: Scheduler) -> list[Any]:
    return scheduler._transactor.entries(0, 1000)


def taken(scheduler: Scheduler, option: str, kind: str = "x", **settings: Any) -> Task:
    """A task that got this option."""
    return scheduler.decide(kind, [option], **settings)


def raise_after(message: str, call: Callable[..., Any], *values: Any) -> None:
    call(*values)
    raise ValueError(message)


def totals_of(scheduler: Scheduler, kind: int = 0, option: int = 0) -> dict[str, float]:
    totals = scheduler._transactor.do(lambda batch: batch.replica.fold.state.totals)
    return {name: float(array[kind, option]) for name, array in zip(totals._fields, totals, strict=True)}


def test_a_failure_is_stored_with_its_cost_and_its_reason(address: str) -> None:
    with Scheduler(address, overhead=0.5) as scheduler:
        task = taken(scheduler, "broken")
        task.fail(cost=3.0, reason="KeyError: 'x'\0\ud800" + "!" * 300)
        [line] = scheduler.latest(1)
        assert (line.state, line.reward, line.cost) == ("failed", None, 3.0)
        assert line.reason is not None
        assert (line.reason[:16], len(line.reason)) == ("KeyError: 'x'??!", 200)
        [entry] = log_of(scheduler)
        assert (entry.observed, entry.reward, entry.cost, entry.overhead, entry.outcome) == (
            OWN,
            None,
            3.0,
            0.5,
            FAILED,
        )
        assert totals_of(scheduler) == {
            "pulls": 1.0, "reward": 0.0, "cost": 3.5, "observed": 0.0, "failed": 1.0, "failed_cost": 3.5,
            "unmeasured": 0.0, "unmeasured_cost": 0.0,
        }  # fmt: skip
        why = scheduler.explain(task)
        assert (why.state, why.reason, why.attempts) == ("failed", line.reason, [])
        found = scheduler.summary()
        assert (found.running, found.cost, found.reward, found.ratio) == (0, 3.5, 0.0, 0.0)
        assert scheduler.rebuild()


def test_a_failure_counts_once_and_excludes_reports(address: str) -> None:
    with Scheduler(address) as scheduler:
        task = taken(scheduler, "broken")
        task.fail(cost=3.0, reason="first")
        for again in (3.0, None, 3):
            task.fail(cost=again, reason="second")
        with pytest.raises(AlreadyFailed, match=r"task 1 has failed already \(cost 3\), now cost 4"):
            task.fail(cost=4.0)
        for report in ((1.0, 3.0), (1.0, None), (None, 3.0)):
            with pytest.raises(AlreadyFailed, match="task 1 has failed; it takes no report"):
                task.report(*report)
        with pytest.raises(AlreadyFailed, match="task 1 has failed already; it cannot be cancelled"):
            task.cancel()
        assert len(log_of(scheduler)) == 1
        assert scheduler.latest(1)[0].reason == "first"
        task = taken(scheduler, "good")
        task.report(1.0, 1.0)
        with pytest.raises(AlreadyReported, match="task 2 has reported already; it cannot fail any more"):
            task.fail(cost=1.0)
        task = taken(scheduler, "good")
        task.cancel()
        with pytest.raises(AlreadyCancelled, match="task 3 was cancelled; it cannot fail any more"):
            task.fail()
        assert (len(log_of(scheduler)), scheduler.rebuild()) == (2, True)


def test_a_failure_discards_one_part_of_a_report(address: str) -> None:
    with Scheduler(address) as scheduler:
        for part in ({"reward": 5.0}, {"cost": 5.0}):
            task = taken(scheduler, "broken")
            task.report(**part)
            task.fail(cost=1.0)
            [line] = scheduler.latest(1)
            assert (line.state, line.reward, line.cost) == ("failed", None, 1.0)
        assert (scheduler.summary().cost, scheduler.rebuild()) == (2.0, True)


@pytest.mark.parametrize("overhead", [0.0, 0.25])
def test_a_failure_of_unknown_cost_costs_the_average(address: str, overhead: float) -> None:
    with Scheduler(address, overhead=overhead) as scheduler:
        taken(scheduler, "a").fail()
        assert log_of(scheduler)[-1].cost == pytest.approx(1e-9)  # nothing is known at all
        taken(scheduler, "a", "y").report(1.0, 8.0)
        taken(scheduler, "a", "z").fail()  # nothing of the kind: the scheduler's average
        assert log_of(scheduler)[-1].cost == pytest.approx(8.0)
        taken(scheduler, "b", "y").fail()  # nothing of the option: the kind's average
        assert log_of(scheduler)[-1].cost == pytest.approx(8.0)
        taken(scheduler, "a", "y").fail(cost=2.0)
        taken(scheduler, "a", "y").fail()  # its own average, failures included
        assert log_of(scheduler)[-1].cost == pytest.approx(5.0)
        assert scheduler.rebuild()


@pytest.mark.parametrize("failed_reward", [None, 0.0])
def test_costs_that_nobody_has_measured_are_no_part_of_an_average(address: str, failed_reward: float | None) -> None:
    with Scheduler(address, overhead=0.5, failed_reward=failed_reward) as scheduler:
        clock = Clock(scheduler)
        for _ in range(5):
            taken(scheduler, "a").fail()
            taken(scheduler, "a", lease=1.0)
        clock.ahead += 2.0
        scheduler.summary()
        assert totals_of(scheduler)["unmeasured"] == 10.0
        taken(scheduler, "b").report(1.0, 100.0)
        taken(scheduler, "a", lease=1.0)
        clock.ahead += 2.0
        scheduler.summary()
        assert log_of(scheduler)[-1].cost == pytest.approx(100.0)
        taken(scheduler, "b").report(1.0, 300.0)
        taken(scheduler, "a").fail()
        assert log_of(scheduler)[-1].cost == pytest.approx(200.0)
        scheduler.report("2", 1.0, 40.0)  # it was not lost after all
        assert totals_of(scheduler)["unmeasured"] == 10.0
        taken(scheduler, "a").fail()
        assert log_of(scheduler)[-1].cost == pytest.approx(120.0)
        assert scheduler.rebuild()


@pytest.mark.parametrize("cost", [1e-12, 1e-90, 1e90])
def test_the_average_knows_no_unit(address: str, cost: float) -> None:
    with Scheduler(address) as scheduler:
        taken(scheduler, "a").report(1.0, cost)
        taken(scheduler, "a").fail()
        scheduler.change(overhead=10.0 * cost)
        taken(scheduler, "a").fail()
        assert [entry.cost for entry in log_of(scheduler)] == [pytest.approx(cost, rel=1e-9, abs=0.0)] * 3


def test_what_cannot_be_a_failure_is_refused(address: str) -> None:
    with Scheduler(address) as scheduler:
        task: Any = taken(scheduler, "a")
        for cost in (0.0, -1.0, float("nan"), "1", True):
            with pytest.raises(BadFeedback, match="cost = "):
                task.fail(cost=cost)
        with pytest.raises(BadFeedback, match="reason = 5; it must be text"):
            task.fail(reason=5)
        assert scheduler.latest(1)[0].state == "running"
        task.fail(reason=" ")
        assert scheduler.latest(1)[0].reason is None


def test_a_block_that_raises_fails_its_task_and_the_error_goes_on(address: str) -> None:
    with Scheduler(address) as scheduler:
        with pytest.raises(KeyError), scheduler.task("x", ["a"]):
            raise KeyError("no such column")
        [line] = scheduler.latest(1)
        assert (line.state, line.reason) == ("failed", "KeyError: 'no such column'")
        assert line.cost is not None
        assert 0.0 < line.cost < 60.0
        with pytest.raises(ValueError, match="late"), scheduler.task("x", ["a"]) as task:
            raise_after("late", task.__setattr__, "cost", 7.0)
        assert scheduler.latest(1)[0].cost == 7.0
        for stop in (KeyboardInterrupt, SystemExit, GeneratorExit):
            with pytest.raises(stop), scheduler.task("x", ["a"]):
                raise stop
            assert scheduler.latest(1)[0].state == "cancelled"


def test_a_block_may_say_itself_how_it_ended(address: str) -> None:
    with Scheduler(address) as scheduler:
        with scheduler.task("x", ["a"]) as task:
            task.fail(cost=2.0, reason="no result")
        with scheduler.task("x", ["a"]) as task:
            task.cancel()
        with pytest.raises(ValueError, match="after"), scheduler.task("x", ["a"]) as task:
            raise_after("after", task.report, 1.0, 1.0)
        with pytest.raises(ValueError, match="after"), scheduler.task("x", ["a"]) as task:
            raise_after("after", task.fail, 5.0)
        assert [line.state for line in scheduler.latest(4)] == ["failed", "reported", "cancelled", "failed"]


class Speechless(Exception):
    why: type[BaseException] = RuntimeError

    def __str__(self) -> str:
        raise self.why


class Stopping(Speechless):
    why = SystemExit


def test_the_error_of_a_block_goes_on_whatever_comes_of_its_task() -> None:
    scheduler = Scheduler()
    for error in (Speechless, Stopping):
        with pytest.raises(error), scheduler.task("x", ["a"]):
            raise error
        assert (scheduler.latest(1)[0].state, scheduler.latest(1)[0].reason) == ("failed", error.__name__)
    with pytest.raises(ValueError, match="mine") as raised, scheduler.task("x", ["a"]):
        raise_after("mine", scheduler.close)
    assert "worthwhile could not store that task 3 has ended" in raised.value.__notes__[0]


def test_failed_reward_makes_a_failure_a_result_worth_a_number(address: str) -> None:
    with Scheduler(address, "other", failed_reward=-1.0) as scheduler:
        taken(scheduler, "a").fail(cost=2.0)
        [line] = scheduler.latest(1)
        assert (line.state, line.reward, line.cost) == ("failed", -1.0, 2.0)
        assert (log_of(scheduler)[0].reward, log_of(scheduler)[0].outcome) == (-1.0, FAILED)
        assert totals_of(scheduler)["failed"] == 0.0
        with pytest.raises(BadParameter, match=r"has failed_reward -1.0, not 2"):
            scheduler._transactor.find_or_create(SettingsChange(failed_reward=2.0))
        scheduler.change(failed_reward="none")
        taken(scheduler, "a").fail(cost=2.0)
        scheduler.change(failed_reward=0)
        taken(scheduler, "a").fail(cost=2.0)
        scheduler.change(overhead=1.0)
        taken(scheduler, "a").fail(cost=2.0)
        assert [entry.reward for entry in log_of(scheduler)] == [-1.0, None, 0.0, 0.0]
        with pytest.raises(AlreadyFailed):
            scheduler.report("1", -1.0, 2.0)
        for worth in (float("nan"), np.array([1.0, 2.0]), "nothing", True):
            with pytest.raises(BadParameter, match="failed_reward = "):
                scheduler.change(failed_reward=worth)  # type: ignore[arg-type]
            with pytest.raises(BadParameter, match="failed_reward = "):
                Scheduler(failed_reward=worth)  # type: ignore[arg-type]
        assert scheduler.rebuild()


def test_a_table_with_failures_can_be_exported_loaded_and_replayed(address: str, tmp_path: Path) -> None:
    with Scheduler(address, overhead=0.5) as scheduler:
        for number in range(20):
            task = taken(scheduler, OPTIONS[number % 2])
            if number % 2:
                task.fail(cost=0.5, reason='it\'s ü, "quoted"')
            else:
                task.report(1.0 + number, 2.0)
        for ending in ("csv", "jsonl", "parquet"):
            path = tmp_path / f"table.{ending}"
            assert scheduler.export(path) == 20
            with Scheduler() as other:
                assert (other.load(path), other.load(path)) == (20, 0)
                mine, copied = log_of(scheduler), log_of(other)
                for field in ("kind", "reward", "cost", "overhead", "outcome", "reason", "observed"):
                    assert [getattr(row, field) for row in mine] == [getattr(row, field) for row in copied]
                assert {line.state for line in other.latest(20)} == {"reported", "failed"}
                assert other.rebuild()
            world = replay(path)
            [reward], [cost], ([rate], [lost]) = world.problem.reward, world.problem.cost, world.problem.failures
            broken, good = map(read_table(path).options.index, ("broken", "good"))
            assert (reward[good], cost[good], rate[good]) == (10.0, 2.5, 0.0)
            assert (rate[broken], lost[broken]) == (1.0, 1.0)
        with open(tmp_path / "table.csv", encoding="utf-8") as file:
            row = list(csv.DictReader(file))[1]
        assert (row["outcome"], row["reward"], row["attempt"]) == ("failed", "", "0")
        first = json.loads((tmp_path / "table.jsonl").read_text().splitlines()[1])
        assert (first["reward"], first["reason"]) == (None, 'it\'s ü, "quoted"')
        assert ratio_so_far(tmp_path / "table.csv")[1] == 1.0 / 2.5


def test_stores_with_failures_are_as_they_were_written(durable: str) -> None:
    with Scheduler(durable) as scheduler:
        for number in range(6):
            task = taken(scheduler, OPTIONS[number % 2])
            task.report(1.0, 1.0) if number < 2 else task.fail(reason=str(number)) if number < 4 else None
    assert not find_damage(durable).damage
    with Scheduler(durable) as scheduler:
        assert [line.state for line in scheduler.latest(6)] == ["running"] * 2 + ["failed"] * 2 + ["reported"] * 2
        assert scheduler.rebuild()
