"""Options that keep failing, and kinds in which nothing works: what a summary says of them, and how they come back."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest
from test_failures import OPTIONS, log_of, taken, totals_of

from worthwhile import Scheduler
from worthwhile.decision import Decision
from worthwhile.errors import BadTask
from worthwhile.live.completed import completed_ratio
from worthwhile.live.stores.base import RESTORED, RESTORES
from worthwhile.live.totals import Totals
from worthwhile.testing import check_policy


class Runs(NamedTuple):
    failures: Any


class Strict(NamedTuple):
    """Takes the first option that has not failed three times in a row, and never asks what anything is worth."""

    def init(self, kinds: int, options: int) -> Runs:
        return Runs(np.zeros((kinds, options)))

    def choose(self, state: Runs, kind: int, options: Any, pending: Any, rng: Any) -> Decision:
        best = options[0]
        for option in options:
            if state.failures[kind, option] < state.failures[kind, best]:
                best = option
        return Decision(best, 0.0, 1.0)

    def judge(self, state: Runs, kind: int, option: int) -> Decision:
        return Decision(option, 0.0, 1.0)

    def learn(self, state: Runs, kind: int, made: Decision, reward: float, cost: float, rng: Any) -> None:
        state.failures[kind, made.option] = 0.0

    def observe(self, state: Runs, kind: int, option: int, reward: float, cost: float, rng: Any) -> None:
        state.failures[kind, option] = 0.0

    def fail(self, state: Runs, kind: int, made: Decision, cost: float, rng: Any) -> None:
        state.failures[kind, made.option] += 1.0

    def observe_failure(self, state: Runs, kind: int, option: int, cost: float, rng: Any) -> None:
        state.failures[kind, option] += 1.0

    def take_back(self, state: Runs, kind: int, option: int, cost: float, rng: Any) -> None:
        state.failures[kind, option] -= 1.0

    def forgive(self, state: Runs, kind: int, option: int) -> None:
        state.failures[kind, option] = 0.0

    def benched(self, state: Runs, kind: int, option: int) -> bool:
        return bool(state.failures[kind, option] >= 3.0)


def test_a_policy_with_all_that_concerns_failures_keeps_the_rules() -> None:
    check_policy(Strict(), compiled=False)


@pytest.mark.parametrize("engine", ["python", "compiled"])
def test_a_benched_option_is_shown_with_its_reason_and_can_be_restored(address: str, engine: str) -> None:
    with Scheduler(address, policy=Strict(), engine=engine) as scheduler:
        for _ in range(2):
            taken(scheduler, "good").report(1.0, 1.0)
        for number in range(3):
            taken(scheduler, "broken").fail(cost=1.0, reason=f"reason {number}")
        taken(scheduler, "broken", "y").fail(cost=1.0)
        found = scheduler.summary()
        [good, broken] = found.kinds[0].options
        assert (good.winning, good.benched) == (True, False)
        assert (broken.benched, broken.reason, broken.failed, broken.winning) == (True, "reason 2", 3, False)
        assert (found.kinds[0].settled, found.kinds[0].verdict) == (True, "good is clearly best")
        assert any("Benched" in warning and "x / broken (reason 2)" in warning for warning in found.warnings)
        assert "broken (benched)" in str(found)
        for kind in ("y", "z", None):
            with pytest.raises(BadTask, match='option "good" is neither retired'):
                scheduler.restore("good", kind)
        with pytest.raises(BadTask, match="nor benched"):
            scheduler.restore("broken", "y")
        scheduler.restore("broken", "x")
        entry = log_of(scheduler)[-1]
        assert (entry.task, entry.outcome, entry.observed) == (0, RESTORED, RESTORES - entry.number)
        assert not scheduler.summary().kinds[0].options[1].benched
        assert scheduler.rebuild()
        for kind in ("x", "y"):
            for _ in range(3):
                taken(scheduler, "broken", kind).fail(cost=1.0)
        scheduler.restore("broken")
        assert [entry.kind for entry in log_of(scheduler)[-2:]] == [0, 1]
        scheduler.retire("broken")
        scheduler.restore("broken")  # what is retired is only that
        assert (len(log_of(scheduler)), scheduler.rebuild()) == (15, True)


def test_nothing_wins_that_never_succeeded(address: str) -> None:
    with Scheduler(address) as scheduler:
        for _ in range(4):
            taken(scheduler, "broken").fail(cost=0.001, reason="KeyError: 'x'")
        found = scheduler.summary()
        [kind] = found.kinds
        assert (kind.winner, kind.settled, kind.verdict) == (None, False, "nothing has succeeded yet")
        assert (kind.reports, kind.failed, found.reports, found.failed, found.completed_ratio) == (0, 4, 0, 4, None)
        [loud, *_] = found.warnings
        assert loud.startswith("NOTHING HAS SUCCEEDED YET for x: 4 attempts, all failed or lost. broken: KeyError: 'x'")
        taken(scheduler, "good").report(1.0, 1.0)
        [kind] = scheduler.summary().kinds
        assert kind.winner == "good"
        assert not any("SUCCEEDED" in warning for warning in scheduler.summary().warnings)


def test_failures_are_paid_by_what_succeeds(address: str) -> None:
    """Half of b's attempts fail: though a result of it costs less than one of a, a completed task costs more."""
    with Scheduler(address, policy="random-option") as scheduler:
        for number in range(200):
            taken(scheduler, "a").report(1.0 + number % 2 / 10, 1.0)
            b = taken(scheduler, "b")
            b.report(1.0 + number % 4 / 20, 0.8) if number % 2 else b.fail(cost=0.8)
        found = scheduler.summary()
        a, b = found.kinds[0].options
        assert (a.option, a.winning, b.option) == ("a", True, "b")
        assert (b.mean_cost, b.completed_cost) == (pytest.approx(0.8), pytest.approx(1.6))
        assert found.kinds[0].settled
        assert found.ratio is not None
        single = found.comparisons[0]
        assert (single.says, single.ratio) == ("always a", pytest.approx(1.05))
        assert found.completed_ratio == pytest.approx((200 * 1.05 + 200 * 1.1) / (200 * 1.0 + 200 * 1.6))
        assert single.advantage == pytest.approx(found.completed_ratio / single.ratio - 1.0)


def test_the_completed_ratio_is_what_doing_everything_again_would_bring() -> None:
    """Against brute force: tasks of which each option's failures are done again until they succeed."""
    generator = np.random.default_rng(1)
    shares, failing = np.array([[0.5, 0.0], [0.2, 0.9]]), 20_000
    sums, redone = np.zeros((len(Totals._fields), 2, 2)), np.zeros(2)
    for kind in range(2):
        for option in range(2):
            reward, cost, failed_cost = 1.0 + kind, 1.0 + option, 0.5 * (1 + kind)
            failed = failing * shares[kind, option]
            results = failing - failed
            sums[:6, kind, option] = (
                failing, results * reward, results * cost + failed * failed_cost, 0.0, failed, failed * failed_cost
            )  # fmt: skip
            tries = generator.geometric(1.0 - shares[kind, option], failing)
            redone += failing * reward, (tries - 1.0).sum() * failed_cost + failing * cost
    assert completed_ratio(Totals(*sums), np.zeros(2)) == pytest.approx(redone[0] / redone[1], rel=0.01)


def test_what_was_tried_again_is_not_charged_twice(address: str) -> None:
    with Scheduler(address) as scheduler:
        for _ in range(10):
            task = taken(scheduler, "a")
            task.report(2.0, 1.0)
        for _ in range(5):
            task = scheduler.decide("x", OPTIONS)
            task.fail(cost=1.0)
            task.again().report(2.0, 1.0)
        found = scheduler.summary()
        assert totals_of(scheduler)["failed"] + totals_of(scheduler, 0, 1)["failed"] <= 5.0
        assert found.completed_ratio == pytest.approx(found.ratio) == pytest.approx(30.0 / 20.0)


def test_what_reports_nothing_at_nearly_no_cost_is_warned_of(address: str) -> None:
    with Scheduler(address, policy="random-option") as scheduler:
        for _ in range(12):
            taken(scheduler, "zero").report(0.0, 0.001)
            taken(scheduler, "good").report(1.0, 1.0)
        [warning] = [warning for warning in scheduler.summary().warnings if "next to nothing" in warning]
        assert "x / zero" in warning
        assert "report them as such (task.fail)" in warning
        assert "overhead" in warning


def test_silence_is_still_warned_of(address: str) -> None:
    with Scheduler(address, lease=0.0) as scheduler:
        for _ in range(3):
            taken(scheduler, "silent")
        found = scheduler.summary()
        assert (found.expired, found.kinds[0].options[0].lost, found.reports) == (3, 3, 0)
        assert any("Chosen, but never reported: x / silent (3 tasks)" in warning for warning in found.warnings)


def test_restoring_what_is_retired_and_benched_undoes_both(address: str) -> None:
    with Scheduler(address, policy=Strict()) as scheduler:
        for _ in range(3):
            taken(scheduler, "broken").fail(cost=1.0)
        scheduler.retire("broken")
        scheduler.restore("broken")
        [broken] = scheduler.summary().kinds[0].options
        assert (broken.retired, broken.benched, scheduler.rebuild()) == (False, False, True)


def test_what_cannot_be_restored_is_said_in_words(address: str) -> None:
    with Scheduler(address) as scheduler:
        with pytest.raises(BadTask, match='option "html" is neither retired nor benched; retired are: none'):
            scheduler.restore("html")
        scheduler.retire("pdf")
        scheduler.retire(5, kind="x")
        with pytest.raises(BadTask, match="retired are: \"pdf\" for all kinds, 5 for kind 'x'"):
            scheduler.restore("html")


def test_a_decision_is_explained_also_where_options_are_benched(address: str) -> None:
    options = ["zlib", "lzma", "brotli"]
    with Scheduler(address, seed=1) as scheduler:
        first = scheduler.decide("x", ["brotli", "lz4"])
        first.fail(cost=1.0)
        taken(scheduler, "lz4").fail(cost=1.0)
        turn = scheduler.decide("x", ["brotli", "lz4"])
        assert scheduler.explain(turn).why == "nothing has succeeded yet for this kind: options take turns"
        turn.cancel()
        said, scores = set(), set()
        for _ in range(60):
            task = scheduler.decide("x", options)
            why = scheduler.explain(task)
            assert why.repeated
            said.add((task.option, why.why))
            scores |= {judged.score for judged in why.options if judged.option == "brotli"}
            if task.option == "brotli":
                task.fail(cost=0.001)
            else:
                task.report(0.1 if task.option == "zlib" else 0.05, 1.0)
        assert scores == {None}
        broken = {why for option, why in said if option == "brotli"}
        assert broken
        assert all(why.startswith("it was due to be tried again after its failures (benched: ") for why in broken)
        assert not any("brotli" in why for _, why in said)
        assert any("was the best of those that work" in why for option, why in said if option == "zlib")


def test_what_is_benched_wins_nothing_and_settles_nothing(address: str) -> None:
    with Scheduler(address, policy="ratio-imed", seed=1) as scheduler:
        for number in range(30):
            taken(scheduler, "html").report(2.0 + number % 2 / 10, 1.0)
        taken(scheduler, "pdf").report(1.0, 1.0)
        taken(scheduler, "pdf").report(1.1, 1.0)
        assert scheduler.summary().kinds[0].verdict == "html is clearly best"
        for _ in range(3):
            taken(scheduler, "html").fail(cost=1.0, reason="no such file")
        found = scheduler.summary()
        [kind] = found.kinds
        assert (kind.winner, kind.settled) == ("pdf", False)
        assert kind.verdict == "html is benched after 3 failures in a row; pdf leads"
        assert [(option.option, option.winning) for option in kind.options] == [("html", False), ("pdf", True)]
        assert found.comparisons[0].says == "always html, benched for x by now; too few tries to tell of pdf"
        assert "pdf ★" in str(found)
        assert "35 tasks, 32 reported, 3 failed attempts, 0 running" in str(found)
        scheduler.retire("pdf")
        [kind] = scheduler.summary().kinds
        assert kind.winner is None
        assert kind.verdict == "html is benched after 3 failures in a row; nothing else works"


def test_one_report_settles_nothing(address: str) -> None:
    with Scheduler(address) as scheduler:
        for number in range(50):
            taken(scheduler, "a").report(2.0 + number % 2 / 10, 1.0)
        taken(scheduler, "b").report(1.0, 1.0)
        taken(scheduler, "c").report(1.0, 1.0)
        assert scheduler.summary().kinds[0].verdict == "a leads; b, c have one report only"
        taken(scheduler, "b").report(1.0, 1.0)
        [kind] = scheduler.summary().kinds
        assert (kind.settled, kind.verdict) == (False, "a leads; c has one report only")
        b = next(option for option in kind.options if option.option == "b")
        assert b.error is not None
        assert b.error > 0.01  # though both its reports are the same
        taken(scheduler, "c").report(1.0, 1.0)
        assert scheduler.summary().kinds[0].settled


def test_a_winner_that_often_fails_is_warned_of(address: str) -> None:
    with Scheduler(address, policy="random-option") as scheduler:
        for number in range(20):
            fast = taken(scheduler, "fast")
            fast.report(2.0, 1.0) if number % 2 else fast.fail(cost=0.01)
            taken(scheduler, "sure").report(1.0, 1.0)
        [warning] = [warning for warning in scheduler.summary().warnings if "many of its attempts fail" in warning]
        assert "x / fast (50%)" in warning
        for remedy in ("task.again()", "attempts=2", "overhead", "failed_reward"):
            assert remedy in warning
    with Scheduler(address, "worth", policy="random-option", failed_reward=1.0) as scheduler:
        for number in range(20):
            fast = taken(scheduler, "fast")
            fast.report(2.0, 1.0) if number % 2 else fast.fail(cost=0.01)
        assert not any("many of its attempts" in warning for warning in scheduler.summary().warnings)


def test_one_reason_for_many_kinds_is_said_once(address: str) -> None:
    with Scheduler(address) as scheduler:
        for kind in "abcde":
            taken(scheduler, "good", kind).report(1.0, 1.0)
            taken(scheduler, "broken", kind).fail(cost=1.0, reason="no such file")
        [warning] = [warning for warning in scheduler.summary().warnings if warning.startswith("Benched")]
        assert "a, b, c and 2 more / broken (no such file)." in warning
        assert warning.count("no such file") == 1


def test_what_never_succeeded_has_no_estimate_whatever_other_options_bring() -> None:
    """A policy that lets kinds and options learn from one another expects something of it all the same."""
    with Scheduler(seed=1) as scheduler:
        for place in range(40):
            task = scheduler.decide("ab"[place % 2], ["good", "broken"])
            if task.option == "broken":
                task.fail(1.0)
            else:
                task.report(1.0, 1.0)
        last = scheduler.explain(task)
    [broken] = [option for option in last.options if option.option == "broken"]
    assert broken.pulls == broken.failed > 0
    assert (broken.reward_estimate, broken.cost_estimate, broken.score) == (0.0, 0.0, None)
