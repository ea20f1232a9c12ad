"""What another rule would have earned on a log, and how a scheduler is promoted from a shadow."""

from __future__ import annotations

import math
import random
from pathlib import Path
from typing import Any

import pytest

from worthwhile import Scheduler
from worthwhile.cli.main import main
from worthwhile.errors import BadParameter, UnknownPolicy
from worthwhile.learning import UNKNOWN, one_more
from worthwhile.live.evaluate import MODEL, SEEN, UNTOLD, WEIGHTED
from worthwhile.live.log_statistics import cautious_errors, score_errors

OPTIONS = ["small", "medium", "large"]
WORTH = {"small": (1.0, 1.0), "medium": (0.8, 1.0), "large": (1.5, 2.5)}
RATIO = {option: reward / cost for option, (reward, cost) in WORTH.items()}


def work(scheduler: Scheduler, tasks: int, seed: int = 0, observe: bool = False, **given: Any) -> None:
    generator = random.Random(seed)
    for number in range(tasks):
        task = scheduler.decide(f"kind {number % 2}", OPTIONS, **given)
        scatter = generator.uniform(0.5, 1.5)
        reward, cost = WORTH[str(task.option)]
        task.report(reward * scatter, cost)
        for other in OPTIONS if observe else ():
            if other != task.option:
                task.observe(other, WORTH[other][0] * scatter, WORTH[other][1])


def holds(scheduler: Scheduler, option: str) -> bool:
    found = scheduler.evaluate(f"always:{option}")
    assert found.low is not None
    assert found.high is not None
    return found.low <= RATIO[option] <= found.high


def test_what_the_log_shows_of_every_task_is_replayed() -> None:
    with Scheduler(seed=1) as scheduler:
        work(scheduler, 200, observe=True)
        for option in OPTIONS:
            found = scheduler.evaluate(f"always:{option}")
            assert (found.method, found.known, found.tasks) == (SEEN, 1.0, 200)
            assert holds(scheduler, option)
        greedy = scheduler.evaluate("greedy")
        assert (greedy.method, greedy.ratio) == (SEEN, scheduler.evaluate("always:small").ratio)
        policy = scheduler.evaluate(policy="ratio-imed")
        assert policy.method == SEEN
        assert policy.ratio is not None
        assert 0.9 < policy.ratio < 1.1


def test_exploring_lets_any_rule_be_weighted() -> None:
    held = 0
    for seed in range(20):
        with Scheduler(seed=seed, explore=0.3) as scheduler:
            work(scheduler, 400, seed)
            found = [scheduler.evaluate(f"always:{option}") for option in OPTIONS]
            assert {each.method for each in found} == {WEIGHTED}
            held += sum(holds(scheduler, option) for option in OPTIONS)
    assert held / 60 >= 0.95 - 2.0 * math.sqrt(0.05 * 0.95 / 60)


def test_a_holdout_lets_the_baseline_be_weighted() -> None:
    with Scheduler(seed=1, baseline="medium", holdout=0.2) as scheduler:
        work(scheduler, 600)
        found = scheduler.evaluate("baseline")
        assert (found.method, found.rule) == (WEIGHTED, "the baseline")
        assert found.ratio == scheduler.evaluate("always:medium").ratio
        assert holds(scheduler, "medium")


def test_without_chance_there_is_a_model_with_a_wider_range_or_nothing() -> None:
    with Scheduler(seed=1) as scheduler:
        work(scheduler, 400)
        for _ in range(8):
            scheduler.decide("kind 0", ["medium"]).report(0.7 + _ / 40, 1.0)
            scheduler.decide("kind 1", ["medium"]).report(0.7 + _ / 40, 1.0)
        model, rare = scheduler.evaluate("always:medium"), scheduler.evaluate("always:large")
        assert model.method == MODEL
        assert "an estimate" in model.says
        assert holds(scheduler, "medium")
        assert (rare.method, rare.ratio, rare.low) == (UNTOLD, None, None)
        assert str(rare) == "always large: cannot be told; too few reports to tell"
        assert model.high is not None
        assert model.low is not None
        often = scheduler.evaluate("always:small")
        assert often.high is not None
        assert often.low is not None
        assert model.high - model.low > 2.0 * (often.high - often.low)


def test_a_policy_is_replayed_by_what_the_log_shows_of_its_choices() -> None:
    with Scheduler(seed=1, policy="random-option") as scheduler:
        work(scheduler, 600)
        found = scheduler.evaluate(policy="kind-greedy")
        assert found.rule == "policy kind-greedy"
        with pytest.raises(UnknownPolicy):
            scheduler.evaluate(policy="no-such")


def test_a_few_tasks_that_chance_gave_an_option_are_not_weighted() -> None:
    """One of them would look as if there were no scatter at all."""
    with Scheduler(seed=3, baseline="medium", holdout=0.05) as scheduler:
        work(scheduler, 60)
        assert 0 < sum(line.option == "medium" for line in scheduler.latest(60)) < 20
        assert scheduler.evaluate("baseline").method in (MODEL, UNTOLD)


def test_ranges_of_weighted_rules_hold_where_chance_is_rare_and_results_are_0_or_1() -> None:
    """Most tasks that could have taken the option did not: the scatter of those that did says too little."""
    held, told = 0, 0
    for seed in range(30):
        generator = random.Random(seed)
        with Scheduler(seed=seed, explore=0.04) as scheduler:
            for _ in range(250):
                task = scheduler.decide("kind", OPTIONS)
                task.report(float(generator.random() < (0.9 if task.option == "small" else 0.7)), 1.0)
            for option, truth in (("small", 0.9), ("medium", 0.7)):
                found = scheduler.evaluate(f"always:{option}")
                if found.low is not None and found.high is not None:
                    told, held = told + 1, held + (found.low <= truth <= found.high)
    assert told > 20
    assert held / told >= 0.95 - 2.0 * math.sqrt(0.05 * 0.95 / told)


def test_results_that_are_all_alike_leave_room_for_others() -> None:
    """Six successes out of six, where another option scatters: the mean is not certain."""
    scattered, alike = UNKNOWN, UNKNOWN
    for number in range(60):
        scattered = one_more(scattered, float(number % 2), 1.0, 1.0)
    for _ in range(6):
        alike = one_more(alike, 1.0, 1.0, 1.0)
    assert score_errors([scattered, alike], 1.0)[1] == 0.0
    cautious = cautious_errors([scattered, alike], 1.0)
    assert cautious[0] == pytest.approx(score_errors([scattered, alike], 1.0)[0], rel=0.01)
    assert 0.1 < cautious[1] < 0.2
    once = one_more(UNKNOWN, 1.0, 1.0, 1.0)
    assert cautious_errors([scattered, once], 1.0)[1] == pytest.approx(score_errors([scattered, once], 1.0)[1])
    assert math.isnan(cautious_errors([once], 1.0)[0])  # nobody knows how it scatters


def test_where_nothing_has_succeeded_nothing_can_be_told() -> None:
    with Scheduler(seed=1) as scheduler:
        for _ in range(60):
            scheduler.decide("kind", OPTIONS).fail(1.0)
        assert scheduler.evaluate("always:small").method == UNTOLD
        assert scheduler.evaluate("random").method == UNTOLD


def test_what_a_shadow_or_a_guard_did_not_take_is_the_models() -> None:
    """The policy wanted another option than the baseline, and could not get it: its probability was 0."""
    with Scheduler(seed=1, baseline="medium", holdout=0.5) as scheduler:
        work(scheduler, 200)
        scheduler.change(holdout=1)
        work(scheduler, 200, seed=1)
        assert scheduler.evaluate("baseline").method == WEIGHTED
        small = scheduler.evaluate("always:small")
        assert small.method == MODEL
        assert 0.4 < small.known < 0.6
    with Scheduler(seed=1, baseline="medium", guard=0.05) as scheduler:
        work(scheduler, 150)
        guarded = sum(row.mode == "guarded" for row in map(scheduler.explain, range(1, 151)))
        assert guarded > 30
        assert scheduler.evaluate("always:small").known <= 1.0 - guarded / 150


def test_a_policy_that_draws_is_weighted_by_its_own_probabilities() -> None:
    with Scheduler(seed=1, policy="random-option") as scheduler:
        work(scheduler, 300)
        assert {scheduler.evaluate(f"always:{option}").method for option in OPTIONS} == {WEIGHTED}
        assert all(holds(scheduler, option) for option in OPTIONS)


def test_an_imported_log_is_not_taken_for_one_that_shows_every_option(tmp_path: Path) -> None:
    """Easy tasks went to one option, hard ones to the other: the log does not show what either does with the rest."""
    log = tmp_path / "log.csv"
    rows = [f"kind,{'small,0.9' if number % 2 else 'large,0.7'},{1 + number % 5}" for number in range(100)]
    log.write_text("\n".join(["kind,option,reward,cost", *rows]) + "\n", encoding="utf-8")
    with Scheduler(history=log) as scheduler:
        found = scheduler.evaluate("always:small")
        assert (found.method, found.tasks, found.known) == (MODEL, 100, 0.0)


def test_tasks_that_failed_and_were_tried_again_count_by_their_first_attempt() -> None:
    with Scheduler(seed=2, explore=0.5) as scheduler:
        for number in range(200):
            task = scheduler.decide("kind", OPTIONS)
            if task.option == "large" and number % 2:
                task.fail(2.5)
                task = task.again()
            task.report(1.0, 1.0)
        found = scheduler.evaluate("always:large")
        assert found.tasks == 200
        assert found.ratio is not None
        assert found.ratio < 0.6


@pytest.mark.parametrize(
    ("rule", "policy", "says"),
    [
        (None, None, "give a rule or a policy"),
        ("greedy", "ratio-imed", "give a rule or a policy"),
        ("always:huge", None, "no option 'huge' in this log"),
        ("sometimes", None, "there are always:OPTION"),
        ("baseline", None, "this scheduler has none"),
    ],
)
def test_rules_that_make_no_sense_are_refused(rule: str | None, policy: str | None, says: str) -> None:
    with Scheduler() as scheduler:
        work(scheduler, 3)
        with pytest.raises(BadParameter, match=says):
            scheduler.evaluate(rule, policy=policy)


def test_an_empty_log_tells_nothing() -> None:
    with Scheduler() as scheduler:
        assert scheduler.evaluate("random").method == UNTOLD


def test_a_shadow_is_promoted_step_by_step(address: str) -> None:
    with Scheduler(address, seed=1, baseline="medium", holdout=1) as scheduler:
        work(scheduler, 40)
        first = scheduler.promote()
        assert (first.share, first.proposed, first.gain) == (0.0, 0.05, None)
        assert first.says == (
            "the scheduler decides 0% of the tasks; what it brings beyond always medium cannot be told; "
            "next: --share 0.05, to see what other options bring"
        )
        assert scheduler.promote(0.5).says.endswith("stay at 50%, until more is known")
        work(scheduler, 400, seed=1)
        clear = scheduler.promote()
        assert clear.proposed == 0.95
        assert clear.low is not None
        assert clear.low > 0.0
        last = scheduler.promote(0.95)
        assert (last.share, last.proposed) == (0.95, 0.95)
        assert last.gain is not None
        assert clear.gain is not None
        assert last.gain == pytest.approx(clear.gain)
        assert last.says.startswith("the scheduler decides 95% of the tasks from now on; with 95%, all tasks")


def test_a_baseline_that_is_better_is_gone_back_to() -> None:
    with Scheduler(seed=1, policy="random-option", baseline="small", holdout=0.5) as scheduler:
        work(scheduler, 600)
        told = scheduler.promote()
        assert told.proposed == 0.05
        assert "since the baseline is better" in told.says


@pytest.mark.parametrize(("share", "says"), [(1, "holds nothing out"), (2, "share = 2"), (math.nan, "share = nan")])
def test_shares_that_cannot_be_are_refused(share: float, says: str) -> None:
    with Scheduler(baseline="medium") as scheduler, pytest.raises(BadParameter, match=says):
        scheduler.promote(share)


def test_with_nothing_held_out_the_next_step_holds_something_out() -> None:
    with Scheduler(seed=1, baseline="medium") as scheduler:
        work(scheduler, 40)
        told = scheduler.promote()
        assert (told.share, told.proposed) == (1.0, 0.95)
        assert told.says.endswith("next: --share 0.95, since with nothing held out nobody will ever know more")


def test_without_a_baseline_nothing_is_promoted() -> None:
    with Scheduler() as scheduler:
        with pytest.raises(BadParameter, match="no baseline to be promoted from"):
            scheduler.promote(0.5)
        assert scheduler.summary().gain is None


def test_the_command_line_evaluates_and_promotes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = str(tmp_path / "tasks.db")
    with Scheduler(store, seed=1, baseline="medium", holdout=0.2) as scheduler:
        work(scheduler, 200)
    assert main(["evaluate", store, "--rule", "baseline"]) == 0
    assert capsys.readouterr().out.startswith("the baseline: 0.")
    assert main(["evaluate", store, "--policy", "kind-greedy", "--json"]) == 0
    assert '"method"' in capsys.readouterr().out
    assert main(["evaluate", store]) == 2
    assert main(["promote", store, "--share", "0.5"]) == 0
    assert "the scheduler decides 50% of the tasks from now on" in capsys.readouterr().out
