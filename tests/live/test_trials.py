"""Tasks that a coin holds out: which ones, what is stored of them, and what they show."""

from __future__ import annotations

import json
import math
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tampering import execute
from worthwhile import Scheduler
from worthwhile.errors import BadParameter, BadTask, StoreError
from worthwhile.live.local import LocalScheduler, TakingHere, TakingIn, copy_of
from worthwhile.live.stores.base import AGREED, CHOSEN, EXPLORED, HELD_OUT, NO_BASELINE, TaskRow
from worthwhile.live.trials import MOST_SHARES, Shares, TrialChange, TrialSettings, assign, share_at, trial_change
from worthwhile.rng import Rng

OPTIONS = ["small", "medium", "large"]
WORTH = {"small": 1.0, "medium": 0.8, "large": 0.5}


def rows_of(scheduler: Scheduler) -> list[TaskRow]:
    tasks = scheduler.summary().tasks
    return scheduler._transactor.do(lambda batch: batch.tx.tasks(batch.replica.id, list(range(1, tasks + 1))))


def work(scheduler: Scheduler, tasks: int, seed: int = 0, **given: Any) -> list[Any]:
    """So many tasks, of two kinds; the options they got."""
    generator, options = random.Random(seed), []
    for number in range(tasks):
        task = scheduler.decide(f"kind {number % 2}", OPTIONS, **given)
        task.report(WORTH[str(task.option)] * generator.uniform(0.5, 1.5), 1.0)
        options.append(task.option)
    return options


@pytest.mark.parametrize("policy", ["ratio-imed", "ratio-ts,cost_min=0.5", "b-greedy"])
def test_without_a_trial_nothing_is_drawn_and_decisions_are_what_they_were(policy: str) -> None:
    with (
        Scheduler(policy=policy, seed=3) as plain,
        Scheduler(policy=policy, seed=3, baseline="medium", holdout=0.0) as with_baseline,
    ):
        assert work(plain, 150) == work(with_baseline, 150)
        for row in rows_of(plain):
            assert (row.own, row.mode, row.in_flight) == (None, CHOSEN, None)
            assert row.probability == 1.0 or policy == "b-greedy"


def test_what_is_not_held_out_is_what_the_policy_takes_from_the_same_log() -> None:
    """Coins have a stream of their own: the draws of a randomised policy stay what they were."""
    with (
        Scheduler(policy="random-option", seed=7) as plain,
        Scheduler(policy="random-option", seed=7, baseline="large", holdout=0.3) as trial,
    ):
        alone, beside = work(plain, 200), work(trial, 200)
        held_out = [row.mode == HELD_OUT for row in rows_of(trial)]
        assert 30 < sum(held_out) < 60
        assert [a for a, held in zip(alone, held_out, strict=True) if not held] == [
            b for b, held in zip(beside, held_out, strict=True) if not held
        ]


def test_every_store_keeps_the_same_trial(address: str) -> None:
    with Scheduler(address, seed=1, baseline="medium", holdout=0.2, explore=0.1) as scheduler:
        work(scheduler, 120)
        rows = rows_of(scheduler)
        assert {row.mode for row in rows} == {CHOSEN, HELD_OUT, EXPLORED, AGREED}
        for row in rows:
            own = row.option if row.own is None else row.own
            by_scheduler = 0.9 * (row.option == own) + 0.1 / 3
            assert row.probability == pytest.approx(0.8 * by_scheduler + 0.2 * (row.option == 1))
            assert (row.mode == HELD_OUT) <= (row.option == 1)
        assert scheduler.rebuild()
        assert [line.mode for line in map(scheduler.explain, (1, 2, 3))] == [
            ("chosen", "held out", "explored", "", "", "agreed")[row.mode] for row in rows[:3]
        ]
    expected = Scheduler(seed=1, baseline="medium", holdout=0.2, explore=0.1)
    work(expected, 120)
    assert [row[:7] + row[18:] for row in rows_of(expected)] == [row[:7] + row[18:] for row in rows]


def test_shares_are_what_was_asked_for() -> None:
    settings, count = TrialSettings(((None, "1"),), 0.3, 0.2), 20_000
    found = Counter(assign(settings, Rng(5, task), [0, 1, 2, 3], 0, 1) for task in range(1, count + 1))
    for assigned, times in found.items():
        assert 0.0 < assigned.probability <= 1.0
        assert times <= count * assigned.probability + 4.0 * math.sqrt(count * assigned.probability)
    chance = {option: next(each.probability for each in found if each.option == option) for option in range(4)}
    assert sum(chance.values()) == pytest.approx(1.0)
    taken = Counter({option: sum(n for each, n in found.items() if each.option == option) for option in range(4)})
    for option, probability in chance.items():
        assert taken[option] == pytest.approx(count * probability, abs=4.0 * math.sqrt(count * probability))


def test_a_randomised_policy_says_how_likely_its_choice_was() -> None:
    with Scheduler(policy="random-option", seed=2) as scheduler:
        work(scheduler, 5)
        assert {row.probability for row in rows_of(scheduler)} == {1 / 3}
    with Scheduler(policy="b-greedy", seed=2) as scheduler:
        work(scheduler, 40)
        first, *_, last = rows_of(scheduler)
        assert first.probability == pytest.approx(1 / 3)
        assert last.probability == pytest.approx(3 / 20 / 3 + (last.option == 0) * (1 - 3 / 20))


@pytest.mark.parametrize("how", ["retired", "benched", "not on offer", "unknown"])
def test_what_cannot_take_the_baseline_is_not_held_out_and_that_is_counted(how: str) -> None:
    with Scheduler(seed=1, baseline="other" if how == "unknown" else "medium", holdout=0.9) as scheduler:
        options = OPTIONS
        if how == "retired":
            scheduler.decide("kind", OPTIONS).cancel()
            scheduler.retire("medium")
        elif how == "benched":
            while not any(option.benched for kind in scheduler.summary().kinds for option in kind.options):
                task = scheduler.decide("kind", OPTIONS)
                task.fail(1.0) if task.option == "medium" else task.report(1.0, 1.0)
        elif how == "not on offer":
            options = ["small", "large"]
        before = scheduler.summary()
        for _ in range(20):
            task = scheduler.decide("kind", options)
            task.fail(1.0) if how == "benched" and task.option == "medium" else task.report(1.0, 1.0)
        gain = scheduler.summary().gain
        assert gain is not None
        assert before.gain is not None
        assert gain.not_held_out - before.gain.not_held_out >= 15  # a benched one may come back
        assert "could not be held out" in str(scheduler.summary())
        assert NO_BASELINE in {row.mode for row in rows_of(scheduler)}


def test_the_usual_option_of_a_call_is_its_baseline() -> None:
    with Scheduler(seed=1, baseline={"kind 0": "large"}, holdout=0.5) as scheduler:
        work(scheduler, 100)
        assert {row.mode for row in rows_of(scheduler) if row.kind == 1} == {NO_BASELINE}
        assert {row.option for row in rows_of(scheduler) if row.mode == HELD_OUT} == {2}
        work(scheduler, 100, usual="medium")
        later = rows_of(scheduler)[100:]
        assert {(row.kind, row.option) for row in later if row.mode == HELD_OUT} == {(0, 1), (1, 1)}
        with pytest.raises(BadTask, match="an option is text"):
            scheduler.decide("kind 0", OPTIONS, usual=["medium"])


def test_the_gain_is_shown_with_its_interval() -> None:
    with Scheduler(seed=1, baseline="medium", holdout=0.2) as scheduler:
        work(scheduler, 60)
        gain = scheduler.summary().gain
        assert gain is not None
        assert gain.gain is None
        assert gain.says.startswith("too few tasks to tell against always medium: ")
        work(scheduler, 1000, seed=1)
        summary = scheduler.summary()
        gain = summary.gain
        assert gain is not None
        assert gain.gain is not None
        shown = gain.gain
        assert shown.always_low < shown.low < 0.25 < shown.high < shown.always_high
        assert f"from {gain.held_out} held-out tasks" in gain.says
        assert gain.says in str(summary)
        assert gain.held_out + gain.decided + gain.agreed == 1060
        assert gain.difference is not None
        assert gain.difference.low < 0.2 < gain.difference.high


def test_without_a_holdout_no_gain_is_claimed() -> None:
    with Scheduler(baseline="medium") as scheduler:
        work(scheduler, 30)
        gain = scheduler.summary().gain
        assert gain is not None
        assert gain.says == "not known against always medium: no task is held out; set holdout=0.05, for instance"
    with Scheduler() as scheduler:
        work(scheduler, 3)
        assert scheduler.summary().gain is None


MODELS = {"small": (0.4, 0.1), "medium": (0.8, 0.4), "large": (0.9, 1.2)}


def ask(scheduler: Scheduler, tasks: int) -> None:
    """So many questions, some of them answered."""
    generator = random.Random(2)
    for _ in range(tasks):
        task = scheduler.decide("question", list(MODELS))
        right, cost = MODELS[str(task.option)]
        task.report(float(generator.random() < right), cost * generator.uniform(0.8, 1.2))


def test_with_a_floor_the_gain_is_the_cost_that_is_saved() -> None:
    with Scheduler(seed=1, floor=0.7, baseline="large", holdout=0.2) as scheduler:
        ask(scheduler, 600)
        summary = scheduler.summary()
        gain = summary.gain
        assert gain is not None
        assert gain.gain is not None
        assert gain.measure == "cost"
        assert gain.gain.value == pytest.approx(1.0 - gain.cost / gain.baseline_cost)
        assert (
            0.5 < gain.gain.always_low < gain.gain.low < gain.gain.value < gain.gain.high < gain.gain.always_high < 1.0
        )
        assert "of the cost per task saved against always large, from" in gain.says
        assert "a task brings 0.6" in str(summary)  # and all together 0.7: held-out tasks count for the floor, too
        assert [rule.rule for rule in summary.comparisons] == []  # a ratio would be no use
        told = scheduler.promote()
        assert told.proposed == 0.95
        assert told.gain == pytest.approx(0.95 * gain.gain.value)
        assert "of the cost per task saved beyond always large" in told.says


def test_a_baseline_that_is_cheaper_than_a_floor_allows_is_not_gone_back_to() -> None:
    with Scheduler(seed=1, floor=0.7, baseline="small", holdout=0.2) as scheduler:
        ask(scheduler, 400)
        told = scheduler.promote()
        assert told.proposed == told.share == 0.8
        assert told.says.endswith("stay at 80%, since the baseline is cheaper: does it keep the floor?")
        gain = scheduler.summary().gain
        assert gain is not None
        assert gain.says.startswith("+")
        assert "%) cost per task against always small, from" in gain.says


def test_with_a_budget_the_gain_is_the_reward_that_is_won() -> None:
    with Scheduler(seed=1, budget=0.5, baseline="small", holdout=0.2) as scheduler:
        ask(scheduler, 600)
        gain = scheduler.summary().gain
        assert gain is not None
        assert gain.gain is not None
        assert gain.measure == "reward"
        assert gain.gain.value == pytest.approx(gain.reward / gain.baseline_reward - 1.0)
        assert 0.3 < gain.gain.low < 2.0
        assert "reward per task against always small" in gain.says


def test_a_shadow_without_a_baseline_says_so() -> None:
    with Scheduler(seed=1, holdout=1) as scheduler:
        work(scheduler, 20)
        gain = scheduler.summary().gain
        assert gain is not None
        assert gain.says.startswith("not known against the usual option of every task: no task could take that; name")


def test_another_baseline_begins_another_comparison() -> None:
    with Scheduler(seed=1, baseline="medium", holdout=0.4) as scheduler:
        work(scheduler, 300)
        before = scheduler.summary().gain
        scheduler.change(baseline="large")
        after = scheduler.summary().gain
        assert before is not None
        assert after is not None
        assert (before.held_out > 80, after.held_out, after.agreed) == (True, 0, 0)
        work(scheduler, 200)
        gain = scheduler.summary().gain
        assert gain is not None
        assert gain.baseline == "always large"
        assert gain.gain is not None
        assert gain.gain.value > 0.5


def test_shares_are_remembered_as_they_were_changed() -> None:
    with Scheduler(seed=1, baseline="medium", holdout=0.4) as scheduler:
        work(scheduler, 10)
        scheduler.change(holdout=0.1)
        scheduler.change(holdout=0.2)
        work(scheduler, 10)
        trial = scheduler._transactor.do(lambda batch: batch.replica.settings.trial)
        assert trial.shares == ((1, 0.4, 0.0), (11, 0.2, 0.0))
        assert [share_at(trial, task) for task in (1, 10, 11, 99)] == [0.4, 0.4, 0.2, 0.2]
    many = TrialSettings(shares=tuple(Shares(task, task % 2 / 2, 0.0) for task in range(1, MOST_SHARES + 1)))
    with pytest.raises(BadParameter, match="were changed 1000 times"):
        TrialChange(holdout=0.3).applied(many, 5000)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"holdout": 1.5}, "holdout = 1.5; it is a share"),
        ({"holdout": math.nan}, "holdout = nan; it is a share"),
        ({"holdout": -0.1}, "holdout = -0.1"),
        ({"holdout": True}, "holdout = True"),
        ({"explore": "much"}, "explore = 'much'"),
        ({"explore": 1}, "explore = 1 leaves nothing"),
        ({"baseline": {"kind": math.inf}}, "option inf"),
        ({"baseline": {"": "a"}}, "kind ''"),
        ({"baseline": ["a"]}, "an option is text"),
    ],
)
def test_bad_settings_are_refused_and_leave_no_scheduler(given: dict[str, Any], says: str, sqlite: str) -> None:
    with pytest.raises((BadParameter, BadTask), match=says.replace("(", r"\(")):
        Scheduler(sqlite, **given)
    with Scheduler(sqlite) as scheduler, pytest.raises((BadParameter, BadTask), match=says.replace("(", r"\(")):
        scheduler.change(**given)


def test_settings_agree_with_those_of_the_scheduler(durable: str) -> None:
    Scheduler(durable, baseline="medium", holdout=0.1, explore=0.05).close()
    with Scheduler(durable, baseline="medium", holdout=0.1) as scheduler:
        scheduler.decide("kind", OPTIONS)
    with pytest.raises(BadParameter, match=r"has baseline medium, holdout 0.1, explore 0.05; .*change\(baseline=…"):
        Scheduler(durable, holdout=0.2)
    with Scheduler(durable) as scheduler:
        scheduler.change(baseline={}, holdout=0, explore=0)
        work(scheduler, 10)
        assert {row.mode for row in rows_of(scheduler)[1:]} == {CHOSEN}


def test_damaged_settings_are_named(durable: str) -> None:
    Scheduler(durable, baseline="medium", holdout=0.1).close()
    execute(durable, "update schedulers set settings = replace(settings, '0.1', '7.5'), checksum = null")
    with pytest.raises(StoreError, match="trial ="):
        Scheduler(durable)


def test_a_task_that_is_tried_again_counts_once_on_its_side() -> None:
    with Scheduler(seed=1, baseline="medium", holdout=0.5) as scheduler:
        for number in range(200):
            task = scheduler.decide("kind", OPTIONS)
            if number % 3 == 0:
                task.fail(0.5)
                task = task.again()
            task.report(1.0, 1.0)
        gain = scheduler.summary().gain
        assert gain is not None
        assert gain.held_out + gain.decided + gain.agreed == 200
        trial = scheduler._transactor.statistics.trial
        assert trial.all.count == 200
        both = trial.all.mean
        assert both[1] == pytest.approx(1.0 + 0.5 * 67 / 200, rel=0.15)
        assert scheduler.rebuild()


def test_a_late_report_replaces_a_loss_on_its_side() -> None:
    with Scheduler(seed=1, baseline="medium", holdout=0.5) as scheduler:
        work(scheduler, 40)
        late = [scheduler.decide("kind 0", OPTIONS, lease=0.0) for _ in range(3)]
        work(scheduler, 10)
        for task in late:
            task.report(1.0, 1.0)
        count = scheduler._transactor.statistics
        scheduler.summary()
        assert count.trial.all.count + count.no_baseline == 53  # what is lost may be benched for a while
        assert count.trial.all.mean[1] == pytest.approx(1.0, rel=0.05)
        assert all(math.isfinite(value) for value in count.trial.all.products)


def test_export_has_modes_probabilities_and_the_policys_own_choice(tmp_path: Path) -> None:
    with Scheduler(seed=1, baseline="medium", holdout=0.3) as scheduler:
        work(scheduler, 40)
        scheduler.export(tmp_path / "log.jsonl")
        rows = rows_of(scheduler)
    lines = [json.loads(line) for line in (tmp_path / "log.jsonl").read_text().splitlines()]
    assert [line["probability"] for line in lines] == [row.probability for row in rows]
    held_out = [line for line in lines if line["mode"] == "held out"]
    assert held_out
    assert {line["option"] for line in held_out} == {"medium"}
    assert {line["own_json"] for line in held_out} <= {'"small"', '"large"'}
    with Scheduler(tmp_path / "other.db", history=tmp_path / "log.jsonl") as again:
        assert again.summary().history == 40


def test_explain_says_that_a_task_was_held_out() -> None:
    with Scheduler(seed=1, baseline="medium", holdout=0.5, explore=0.3) as scheduler:
        work(scheduler, 60)
        rows = {row.mode: row for row in rows_of(scheduler) if row.own is not None}
        told = scheduler.explain(rows[HELD_OUT].task)
        assert (
            told.why
            == f"the task was held out, to compare: it got the baseline, the policy would have taken {told.own}"
        )
        assert told.repeated
        explored = scheduler.explain(rows[EXPLORED].task)
        assert explored.why.startswith("it was drawn at random, to explore; the policy would have taken ")
        assert explored.repeated


def test_shadow_mode_takes_the_usual_option_and_remembers_what_it_would_have_taken() -> None:
    with Scheduler(seed=1, baseline="medium", holdout=1) as scheduler:
        assert set(work(scheduler, 50)) == {"medium"}
        assert {row.own for row in rows_of(scheduler)} == {0}  # which it would try first, and never sees
        gain = scheduler.summary().gain
        assert gain is not None
        assert gain.gain is None
        assert "promote" in gain.says


def test_a_change_is_checked_before_it_is_made() -> None:
    assert trial_change("a", 0, 0.5) == TrialChange(((None, '"a"'),), 0.0, 0.5)
    assert trial_change({"k": 5}) == TrialChange((("k", "5"),))
    assert trial_change() == TrialChange()


def test_what_a_copy_held_out_for_another_baseline_does_not_count_for_this_one() -> None:
    rewards = {1: 0.1, 5: 1.0, 10: 0.5}
    with Scheduler(baseline=1, holdout=0.5) as scheduler:
        copy = LocalScheduler("default", scheduler._transactor.do(copy_of))
        decided = [copy.decide(TakingHere(scheduler, "a", [1, 5, 10], lease=60.0))[1] for _ in range(100)]
        scheduler.change(baseline=10)
        for taken in decided:
            id = scheduler._transactor.ask(TakingIn(taken))
            scheduler.report(id, rewards[int(taken.options[taken.option])], 1.0)
        gain = scheduler.summary().gain
        assert gain is not None
        assert (gain.held_out, gain.decided, gain.agreed, gain.gain) == (0, 0, 0, None)
        scheduler.change(baseline=1)
        scheduler._transactor.ask(TakingIn(copy.decide(TakingHere(scheduler, "a", [1], lease=60.0))[1]))
        assert scheduler.explain(scheduler.latest(1)[0]).mode == "agreed"
