"""What features led to, in an explanation and in a summary: named, in words, expected before it was known."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from by_features import BySign
from featured import OPTIONS, known, solve
from worthwhile import Scheduler
from worthwhile.cli.text import explain_text
from worthwhile.live.by_features import ByFeatures, Condition, bound, condition, why_by_features
from worthwhile.live.stores.base import OWN
from worthwhile.live.totals import SAMPLED, Folded, count_expected, expected_gain, new_totals, no_features
from worthwhile.policies import features as policies

TASKS = 500


@pytest.fixture(scope="module")
def scheduler() -> Iterator[Scheduler]:
    with Scheduler(seed=3) as one:
        solve(one, TASKS)
        yield one


def fold_of(scheduler: Scheduler) -> Any:
    return scheduler._transactor.do(lambda batch: batch.replica.fold)


def explanations(scheduler: Scheduler, last: int = 60) -> list[Any]:
    return [scheduler.explain(task) for task in range(TASKS - last, TASKS + 1)]


def test_an_explanation_says_what_about_the_task_mattered(scheduler: Scheduler) -> None:
    found = explanations(scheduler)
    chosen = [why for why in found if why.by_features.effect == "choice"]
    assert len(chosen) > 10
    for why in chosen:
        by, [first, *_] = why.by_features, why.by_features.conditions
        assert first.feature == "clauses"
        assert (first.up_to or first.above) == pytest.approx(9000, rel=0.3)
        assert by.usual in OPTIONS
        assert by.usual != why.option
        assert by.like > 1
        assert 0.5 < by.believed <= 1.0
        assert why.why.startswith(str(first))
        assert f": {why.option} instead of the usual {by.usual}, by " in why.why
        assert why.repeated
        assert f"more than the usual {by.usual}" in explain_text(why)


def test_an_explanation_says_if_features_changed_nothing(scheduler: Scheduler) -> None:
    unchanged = [why for why in explanations(scheduler) if why.by_features.effect == "nothing"]
    assert len(unchanged) > 10
    for why in unchanged:
        assert why.why.endswith("; its features changed nothing")
        assert "was the best overall" in why.why or "more to learn" in why.why
        assert "more than the usual" not in explain_text(why)
    early = scheduler.explain(5)
    assert early.by_features == ByFeatures("nothing", early.by_features.usual, [], 0.0, 0.0, 0.0)


def test_a_task_without_features_is_explained_without_them() -> None:
    with Scheduler() as one:
        one.decide("sat", OPTIONS).report(1.0, 1.0)
        one.decide("sat", OPTIONS, features={"x": 1}).report(1.0, 1.0)
        assert one.explain(1).by_features is None
        assert one.explain(2).by_features is not None
        assert one.explain(2).why == "it had not been tried with this kind"
    with Scheduler(policy=BySign()) as one:
        one.decide("sat", OPTIONS, features={"x": 1}).report(1.0, 1.0)
        assert one.explain(1).by_features is None
        assert one.summary().features is None


def test_a_further_attempt_is_explained_by_its_own_draws() -> None:
    with Scheduler(seed=3) as one:
        solve(one, 250)
        task = one.decide("sat", OPTIONS, features=known(7))
        task.fail(1.0)
        task.again()
        why = one.explain(task.id)
        assert why.repeated
        assert why.by_features is not None


def test_what_was_forgotten_is_in_no_explanation() -> None:
    with Scheduler(seed=3) as one:
        solve(one, 20)
        one.forget(20)
        assert one.explain(20).by_features is None


@pytest.mark.parametrize(
    ("shown", "words"),
    [
        (Condition("x", above=9000.0), "x > 9,000"),
        (Condition("x", up_to=0.123456), "x ≤ 0.1235"),
        (Condition("x", 1.0, 2.0), "1 < x ≤ 2"),
        (Condition("x", value="y\x1b"), "x = y\\x1b"),
        (Condition("x", value=True), "x = true"),
        (Condition("x", missing=True), "x is missing"),
        (Condition("x", missing=False), "x is known"),
    ],
)
def test_conditions_in_words(shown: Condition, words: str) -> None:
    assert str(shown) == words


def test_conditions_with_what_the_task_has() -> None:
    features = {"family": "crypto", "gpu": True, "n": 5}
    assert condition(policies.Condition(0, equal=True), "family", features) == Condition("family", value="crypto")
    assert condition(policies.Condition(0, above=0.0), "gpu", features) == Condition("gpu", value=True)
    assert condition(policies.Condition(0, 3.0, 9.0, missing=False), "n", features) == Condition("n", 3.0, 9.0)
    assert condition(policies.Condition(0, missing=False), "gpu", features) == Condition("gpu", missing=False)
    assert condition(policies.Condition(0, missing=True), "m", features) == Condition("m", missing=True)
    assert bound(-12345.6) == "-12,346"


def test_a_try_and_a_choice_without_words_say_so() -> None:
    tried = ByFeatures("try", "b", [], 0.4, -0.1, 1.0)
    assert why_by_features(tried, "a").startswith("a try at random: it may be best where nobody has looked; 0 reports")
    chosen = ByFeatures("choice", "b", [], 31.2, 0.1, 1.0)
    assert why_by_features(chosen, "a") == "for its features: a instead of the usual b, by 31 reports like it"
    two = ByFeatures("choice", 2, [Condition("x", above=1.0), Condition("y", value="z")], 1.0, 0.1, 1.0)
    assert why_by_features(two, 1) == "x > 1 and y = z: 1 instead of the usual 2, by 1 report like it"


def test_a_summary_says_which_features_matter(scheduler: Scheduler) -> None:
    summary = scheduler.summary()
    features = summary.features
    assert features is not None
    assert features.reports == TASKS
    assert features.shares[0].feature == "clauses"
    assert features.shares[0].share > 0.9
    assert sum(one.share for one in features.shares) == pytest.approx(1.0)
    assert features.believed > 0.5
    text = str(summary)
    assert f"features: forecasts are trusted to {features.believed:.0%}; expected gain" in text
    assert "more reward per cost" in text
    assert "features that matter" in text
    assert "measured on the tasks that suit it" in text
    assert "<td>clauses</td>" in summary._repr_html_()


def test_the_expected_gain_is_about_what_features_bring(scheduler: Scheduler) -> None:
    features = scheduler.summary().features
    assert features is not None
    assert features.expected_gain is not None
    always, best = 0.05 + 0.2 + 0.8 * 0.55, 0.05 + 1.0 * 0.55 + 0.6 * 0.45  # 55 % of the tasks are large
    assert 0.02 < features.expected_gain < 1.5 * (best / always - 1.0)


def test_a_text_that_never_comes_again_is_pointed_out(scheduler: Scheduler) -> None:
    assert any("nothing can be learned from it: job." in warning for warning in scheduler.summary().warnings)


def test_without_features_nothing_is_said_of_them() -> None:
    with Scheduler() as one:
        one.decide("sat", OPTIONS).report(1.0, 1.0)
        assert one.summary().features is None
        assert "features" not in str(one.summary())
        one.decide("sat", OPTIONS, features={"x": 1}).report(1.0, 1.0)
        assert one.summary().features is not None
        assert "features: nothing tells tasks apart yet" in str(one.summary())


def test_only_what_was_decided_here_counts_and_only_once(tmp_path: Any) -> None:
    with Scheduler(seed=3) as one:
        solve(one, 40)
        assert fold_of(one).state.features.reports[0] == 40  # not what was seen on the side
        one.export(tmp_path / "log.csv")
    with Scheduler(seed=3) as other:
        other.load(tmp_path / "log.csv")
        assert fold_of(other).state.features.reports[0] == 0
        solve(other, 3)
        assert fold_of(other).state.features.reports[0] == 3
        task = other.decide("sat", OPTIONS, features=known(1))
        task.fail(1.0)
        task.again().report(1.0, 1.0)
        assert fold_of(other).state.features.reports[0] == 4  # an arrival


def test_every_process_expects_the_same_to_the_bit(scheduler: Scheduler) -> None:
    assert scheduler.rebuild()
    entries = [entry for entry in scheduler._transactor.entries(0, 10_000) if entry.observed == OWN]
    assert fold_of(scheduler).state.features.worth[0] > 0.0
    assert len(entries) // SAMPLED == TASKS // SAMPLED


def test_the_gain_is_over_the_best_option_taken_always() -> None:
    totals, features = new_totals(2, 3), no_features(2, 3)
    totals.pulls[0, :2] = totals.pulls[1, 0] = 1.0
    folded = Folded(totals, (), features)
    assert expected_gain(folded) is None  # nothing spent
    count_expected(features, 0, 1, 5.0, [0.0, 1.0, 9.0])
    count_expected(features, 0, 0, 5.0, [0.0, -3.0, 9.0])
    count_expected(features, 1, 0, 2.0, [])
    assert expected_gain(folded) == pytest.approx(1.0 / 11.0)  # option 2 is not known
    count_expected(features, 0, 1, 8.0, [0.0, -3.0, 9.0])
    assert expected_gain(folded) == 0.0  # less than nothing
    features.taken[0] = 100.0
    assert expected_gain(folded) is None  # of more than was earned, nobody knows the share


def test_where_features_choose_nobody_says_that_the_cheapest_always_wins() -> None:
    """Its mean is that of the tasks that suit it."""
    with Scheduler(seed=3) as scheduler:
        for number in range(400):
            features = known(number)
            task = scheduler.decide("sat", OPTIONS, features=features)
            suits = (features["clauses"] > 9000) == (task.option == "kissat")
            task.report(0.3 + 0.6 * suits, 1.0 if task.option == "kissat" else 1.1)
        summary = scheduler.summary()
        assert summary.features is not None
        assert summary.features.believed > 0.0
        assert summary.kinds[0].winner == "kissat"
        assert not [warning for warning in summary.warnings if "cheapest" in warning]


def test_a_line_of_the_latest_tasks_can_be_explained_and_forgotten() -> None:
    with Scheduler() as scheduler:
        scheduler.decide("sat", OPTIONS, features={"gpu": True})
        [line] = scheduler.latest()
        assert scheduler.explain(line).features == {"gpu": True}
        scheduler.forget(line)
        assert scheduler.explain(line).features is None
