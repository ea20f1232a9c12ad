"""Runs that stop when the next step is not worth it: what they decide, what the log says, what may go wrong."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest

from worthwhile import Scheduler
from worthwhile.errors import AlreadyFailed, BadFeedback, BadParameter, BadTask
from worthwhile.live import stopping
from worthwhile.live.task import Task

LENGTHS = [1, 2, 3, 4, 5, 6]
Rewards = Callable[[int], Sequence[float]]  # by the number of the run


def trained(scheduler: Scheduler, rewards: Sequence[float], kind: str = "net", cost: float = 1.0) -> int:
    """A run whose steps bring these rewards and cost the same; at how many steps it stops."""
    with scheduler.task(kind, LENGTHS) as task:
        for length in task.steps(LENGTHS):
            task.progress(rewards[length - 1], cost * length)
    return int(task.option)


def two_sorts(number: int) -> Sequence[float]:
    """Runs that never learn, and runs that learn most in their last steps: the first step tells which."""
    good = random.Random(number).random() < 0.5
    return [0.2, 0.3, 0.5, 0.8, 2.0, 6.0] if good else [0.1, 0.1, 0.1, 0.1, 0.1, 0.1]


@pytest.fixture
def scheduler(address: str) -> Iterator[Scheduler]:
    with Scheduler(address, seed=1) as made:
        yield made


def test_runs_that_learn_go_on_and_runs_that_do_not_are_stopped(scheduler: Scheduler) -> None:
    lengths = [trained(scheduler, two_sorts(number)) for number in range(120)]
    good = [length for number, length in enumerate(lengths) if two_sorts(number)[0] == 0.2][-25:]
    bad = [length for number, length in enumerate(lengths) if two_sorts(number)[0] == 0.1][-25:]
    assert np.mean(good) > 5.0
    assert np.mean(bad) < 2.0
    best_length = max((np.mean([two_sorts(n)[s] for n in range(120)]) / (s + 1)) for s in range(6))
    assert scheduler.summary().ratio > best_length  # better than any length chosen in advance


def test_the_log_has_the_length_at_which_a_run_has_stopped_and_all_shorter_ones(scheduler: Scheduler) -> None:
    for number in range(60):
        trained(scheduler, two_sorts(number))
    lines = scheduler.latest(60)
    kind = scheduler.summary().kinds[0]
    for option in kind.options:
        reached = [line for line in lines if line.option == option.option]
        passed = [line for line in lines if line.option > option.option]
        assert (option.pulls, option.observed) == (len(reached), len(passed))
    assert scheduler.rebuild()
    assert sum(line.cost or 0.0 for line in lines) == sum(float(line.option) for line in lines)
    explained = [scheduler.explain(line.task) for line in lines]
    assert all(explanation.repeated for explanation in explained)
    words = [explanation.why for explanation in explained]
    assert any("the run stopped there" in why and "the policy would have taken" in why for why in words)


def test_another_process_goes_on_with_what_the_log_says(tmp_path: Path) -> None:
    with Scheduler(tmp_path / "steps.db", seed=1) as first:
        for number in range(60):
            trained(first, two_sorts(number))
        with Scheduler(tmp_path / "steps.db") as second:
            for number in range(60, 66):
                outlooks = []
                for scheduler in (first, second):
                    task = scheduler.decide("net", LENGTHS, key=f"run {number}")
                    outlooks.append(task.steps(LENGTHS).outlook)
                assert repr(outlooks[0]) == repr(outlooks[1])
                task.cancel()


def test_a_run_does_as_planned_until_enough_is_known() -> None:
    few = [{step: (float(step), 1.0 + step) for step in range(4)} for _ in range(stopping.ENOUGH - 1)]
    for plan in range(4):
        known = stopping.outlook(plan, few, 4, 1.0)
        assert known.worths == [None, None, None]
        assert next(step for step in range(4) if not known.goes_on(step, 0.0, 0.0)) == plan


def test_a_step_that_few_have_made_is_made_if_it_has_paid_or_costs_little() -> None:
    stopped = {0: (10.0, 1.0)}
    for reward, cost, runs, tried in (
        (12.5, 2.0, 1, True),  # it has paid
        (9.0, 2.0, 7, False),  # it has not, and was tried by more than one in four
        (9.0, 2.0, 8, True),  # it costs a tenth of what the run has earned
        (9.0, 9.0, 8, False),  # it costs most of that
    ):
        known = stopping.outlook(0, [*[stopped] * (runs - 1), {**stopped, 1: (reward, cost)}], 2, 1.0)
        assert known.goes_on(0, 10.0, 0.0) == tried
    assert not stopping.outlook(0, [stopped] * 50, 2, 1.0).goes_on(0, 10.0, 0.0)


def test_a_step_whose_reward_tells_the_rest_decides_by_it() -> None:
    tops = np.random.default_rng(1).uniform(0.0, 2.0, 60)
    curves = [{0: (float(top) / 10, 1.0), 1: (float(top), 2.0)} for top in tops]
    known = stopping.outlook(0, curves, 2, 1.0)
    [worth] = known.worths
    assert worth is not None
    for top in (0.2, 1.8):
        assert float(worth.of(np.array([top / 10, 0.0]))) == pytest.approx(0.9 * top - 1.0, abs=0.02)
        assert known.goes_on(0, top / 10, 0.0) == (top > 1.2)


def test_where_a_reward_tells_nothing_of_the_rest_it_decides_next_to_nothing() -> None:
    rng = np.random.default_rng(2)
    curves = [{0: (x, 1.0), 1: (x + y, 2.0)} for x, y in rng.normal(1.0, 0.1, (200, 2)).tolist()]
    [worth] = stopping.outlook(0, curves, 2, 1.0).worths
    assert worth is not None
    low, high = (float(worth.of(np.array([reward, 0.0]))) for reward in (0.9, 1.1))
    assert abs(high - low) < 0.05


def test_a_task_that_is_held_out_stays_as_it_is() -> None:
    with Scheduler(seed=3, baseline=4, holdout=0.5) as scheduler:
        for number in range(80):
            trained(scheduler, two_sorts(number))
        held_out = [line for line in scheduler.latest(80) if scheduler.explain(line.task).mode == "held out"]
    assert len(held_out) > 20
    assert {line.option for line in held_out} == {4}


def test_without_a_price_the_policy_alone_decides() -> None:
    with Scheduler(policy="random-option", seed=1) as scheduler:
        for _ in range(30):
            task = scheduler.decide("net", LENGTHS)
            planned = task.option
            for length in task.steps(LENGTHS):
                task.progress(1.0, float(length))
            task.report()
            assert task.option == planned


def test_a_block_that_raises_has_failed_and_one_that_is_left_has_stopped(scheduler: Scheduler) -> None:
    with pytest.raises(ZeroDivisionError), scheduler.task("net", LENGTHS) as task:  # noqa: PT012
        for length in task.steps(LENGTHS):
            task.progress(0.5, float(length))
            raise ZeroDivisionError
    with scheduler.task("net", LENGTHS) as task:
        for _ in task.steps(LENGTHS):
            task.progress(0.5)
            break
    left, failed = scheduler.latest(2)
    assert (failed.state, left.state, left.option, left.reward) == ("failed", "reported", 1, 0.5)
    assert left.cost is not None
    assert left.cost > 0.0


def test_the_same_report_again_changes_nothing(scheduler: Scheduler) -> None:
    task = scheduler.decide("net", LENGTHS)
    for length in task.steps(LENGTHS):
        task.progress(0.1, float(length))
    task.report()
    reports = scheduler.summary().reports
    task.report()
    assert scheduler.summary().reports == reports


def test_a_run_that_was_lost_meanwhile_is_refused_if_it_stopped_elsewhere() -> None:
    with Scheduler(seed=1) as scheduler:
        task = scheduler.decide("net", LENGTHS, lease=0.0)
        scheduler.decide("other", LENGTHS).cancel()
        steps = task.steps(LENGTHS)
        other = next(length for length in LENGTHS if length != task.option)
        steps.seen, steps.given = [(0.1 * length, float(length)) for length in range(1, other + 1)], other
        with pytest.raises(AlreadyFailed, match="lease was too short"):
            task.report()


def test_what_makes_no_sense_is_said(scheduler: Scheduler) -> None:
    task = scheduler.decide("net", LENGTHS)
    with pytest.raises(BadTask, match="on offer were 1, 2, 3, 4, 5, 6"):
        task.steps([1, 2])
    with pytest.raises(BadTask, match="no steps"):
        task.steps([])
    with pytest.raises(BadFeedback, match="makes no steps"):
        task.progress(1.0)
    steps = iter(task.steps(LENGTHS))
    with pytest.raises(BadFeedback, match="no step is under way"):
        task.progress(1.0)
    with pytest.raises(BadFeedback, match="has made no step"):
        task.report()
    next(steps)
    for reward, cost in ((float("nan"), 1.0), (1.0, 0.0)):
        with pytest.raises(BadFeedback):
            task.progress(reward, cost)
    with pytest.raises(BadFeedback, match="without a word"):
        next(steps)
    task.progress(1.0, 3.0)
    assert task.made is not None
    task.made.given = 2  # another step is under way
    with pytest.raises(BadFeedback, match="from its beginning"):
        task.progress(1.0, 2.0)


def test_a_client_is_refused() -> None:
    with pytest.raises(BadParameter, match="give a Scheduler"):
        Task(object(), "1", "net", 1).steps(LENGTHS)  # type: ignore[arg-type]
