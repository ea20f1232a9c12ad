"""Intervals and sequences, and what a randomised trial shows of two sides."""

from __future__ import annotations

import math
import random

import pytest

from worthwhile.proof.confidence import FIRST, Interval, estimate, sequence, student
from worthwhile.proof.trial import EARLY, MOST_OPEN, Trial

STUDENT = {4: 2.7764, 10: 2.2281, 29: 2.0452, 200: 1.9719}  # from tables
COSTS = {"a": 1.0, "b": 2.0}


@pytest.mark.parametrize("freedom", STUDENT)
def test_students_t_is_that_of_the_tables(freedom: int) -> None:
    assert student(freedom) == pytest.approx(STUDENT[freedom], abs=2e-3)


def test_nothing_is_sure_after_one_observation() -> None:
    assert student(0.0) == sequence(1.0) == math.inf
    assert estimate(1.0, 0.5, 1.0).now == Interval(-math.inf, math.inf)


def test_a_sequence_is_wider_than_an_interval_and_narrowest_beside_it_in_the_middle() -> None:
    beside = {count: sequence(count) / student(count - 1.0) for count in (30, 100, 300, 1000, 100_000)}
    assert min(beside, key=beside.__getitem__) == 300
    assert 1.5 < beside[300] < 1.6
    assert all(1.5 < width < 2.5 for width in beside.values())


def test_a_sequence_of_gaussian_means_holds_at_all_times_at_once() -> None:
    generator, held, runs = random.Random(1), 0, 400
    for _ in range(runs):
        total, ever = 0.0, True
        for count in range(1, 1001):
            total += generator.gauss(0.0, 1.0)
            ever = ever and (count < FIRST or abs(total / count) <= sequence(count) / math.sqrt(count))
        held += ever
    assert held / runs >= 0.95 - 2.0 * math.sqrt(0.05 * 0.95 / runs)


def outcome(generator: random.Random, option: str, kind: int) -> tuple[float, float]:
    return (1.0 + kind) * (1.5 if option == "b" else 1.0) * generator.uniform(0.5, 1.5), COSTS[option] * (1.0 + kind)


def a_trial(seed: int, share: float = 0.3, tasks: int = 1500) -> Trial:
    """The scheduler takes a, which earns 1 per cost; the baseline is b, which earns ¾. Kind 2 has them agree."""
    generator, trial = random.Random(seed), Trial()
    for task in range(tasks):
        kind, held_out = generator.randrange(3), generator.random() < share
        if kind == 2:
            trial.add(task, kind, None, share, *outcome(generator, "b", kind), False)
        else:
            trial.add(task, kind, held_out, share, *outcome(generator, "b" if held_out else "a", kind), False)
    return trial


def true_gain() -> float:
    reward, cost = (1.0 + 2.0 + 3.0 * 1.5), (1.0 + 2.0 + 6.0)
    return reward / cost / 0.75 - 1.0


def test_intervals_of_a_trial_contain_the_truth_as_often_as_they_say() -> None:
    results = [a_trial(seed, tasks=400).result() for seed in range(300)]
    held = [result.gain is not None and true_gain() in result.gain.now for result in results]
    assert sum(held) / len(held) >= 0.95 - 2.0 * math.sqrt(0.05 * 0.95 / len(held))


def test_the_difference_is_unbiased() -> None:
    off = []
    for seed in range(300):
        result = a_trial(seed, tasks=400).result()
        assert result.difference is not None
        assert result.price is not None
        expected = ((1.0 - 1.5) * 3.0 - result.price * (1.0 - 2.0) * 3.0) / 3.0
        off.append(result.difference.value - expected)
    mean = sum(off) / len(off)
    spread = math.sqrt(sum((value - mean) ** 2 for value in off) / len(off))
    assert abs(mean) < 2.5 * spread / math.sqrt(len(off))


def test_tasks_on_which_both_agree_make_the_interval_narrower() -> None:
    few, many = a_trial(1), a_trial(1)
    for task in range(3000):
        many.add(task, 2, None, 0.3, 4.5, 6.0, False)
    first, second = few.result().gain, many.result().gain
    assert first is not None
    assert second is not None
    assert second.now.width < first.now.width / 2.0


def test_a_share_that_changes_does_not_mislead() -> None:
    """Things get better over time, and fewer are held out: plain means of both groups would differ."""
    generator, trial = random.Random(3), Trial()
    for task in range(6000):
        share, level = (0.5, 1.0) if task < 3000 else (0.05, 3.0)
        held_out = generator.random() < share
        trial.add(task, 0, held_out, share, level * generator.uniform(0.9, 1.1), 1.0, False)
    gain = trial.result().gain
    assert gain is not None
    assert 0.0 in gain.now
    assert gain.now.width < 0.2


def test_nothing_is_said_before_the_first_tasks() -> None:
    trial = Trial()
    for task in range(FIRST - 1):
        for held_out in (True, False):
            trial.add(task, 0, held_out, 0.5, 1.0, 1.0, False)
    assert trial.gain() is None
    assert trial.difference() is None
    trial.add(99, 0, True, 0.5, 1.0, 1.0, False)
    trial.add(100, 0, False, 0.5, 1.0, 1.0, False)
    assert trial.gain() is not None
    assert trial.difference() is None
    assert trial.price == 1.0
    assert trial.counted == FIRST > EARLY


def test_no_quotient_of_what_earns_nothing() -> None:
    trial = Trial()
    for task in range(200):
        trial.add(task, 0, task % 2 == 0, 0.5, 0.0 if task % 2 == 0 else 1.0, 1.0, False)
    result = trial.result()
    assert result.gain is None
    assert result.difference is not None
    assert result.baseline_ratio == 0.0
    assert result.difference.value == pytest.approx(1.0)


def test_further_attempts_add_to_their_task() -> None:
    """As if the whole had been known at once."""
    at_once, in_parts = Trial(), Trial()
    generator = random.Random(2)
    for task in range(300):
        held_out, failed = generator.random() < 0.4, generator.random() < 0.2
        reward, cost = generator.random(), 1.0 + generator.random()
        at_once.add(task, 0, held_out, 0.4, reward, cost, False)
        in_parts.add(task, 0, held_out, 0.4, 0.0 if failed else reward, 0.5 if failed else cost, failed)
        if failed:
            in_parts.go_on(task, reward, cost - 0.5)
    ours, whole = in_parts.result(), at_once.result()
    assert ours.ratio == pytest.approx(whole.ratio, rel=0.05)  # means of the kind differ for a while
    assert in_parts.all.count == at_once.all.count == 300
    in_parts.go_on(10_000, 1.0, 1.0)  # of a task that nobody remembers
    assert in_parts.result() == ours


def test_not_every_failure_is_remembered_for_good() -> None:
    trial = Trial()
    for task in range(MOST_OPEN + 5):
        trial.add(task, 0, task % 2 == 0, 0.5, 0.0, 1.0, True)
    assert len(trial.open) == MOST_OPEN
    assert 4 not in trial.open
    assert 5 in trial.open


@pytest.mark.parametrize(("measure", "truth"), [("reward", 3.0 / 4.5), ("cost", 1.0 - 3.0 / 6.0)])
def test_reward_and_cost_are_compared_as_the_ratio_is(measure: str, truth: float) -> None:
    """Without kind 2, in which both agree: 1 against 1.5, at half the cost."""
    held = 0
    for seed in range(150):
        generator, trial = random.Random(seed), Trial()
        for task in range(400):
            kind, held_out = generator.randrange(2), generator.random() < 0.3
            trial.add(task, kind, held_out, 0.3, *outcome(generator, "b" if held_out else "a", kind), False)
        gain = trial.gain(measure)
        assert gain is not None
        assert gain.always.low < gain.now.low <= gain.value <= gain.now.high < gain.always.high
        held += (truth if measure == "cost" else truth - 1.0) in gain.now
    assert held / 150 >= 0.95 - 2.0 * math.sqrt(0.05 * 0.95 / 150)
