"""A scheduler with a goal: a floor or a budget that is kept, shown, explained, changed, and folded to the same bits."""

from __future__ import annotations

import json
import math
import random
from dataclasses import asdict
from typing import Any

import pytest

from worthwhile import Scheduler
from worthwhile.errors import BadParameter
from worthwhile.goals.goal import Goal

TRUTH = {
    "a": {"x": (0.5, 1.0), "y": (0.9, 4.0)},
    "b": {"x": (0.3, 1.0), "y": (0.8, 3.0), "z": (0.7, 2.0)},
}


def work_through(scheduler: Scheduler, tasks: int, late: int = 0, seed: int = 3) -> tuple[float, float]:
    """So many tasks, each reported when so many more were decided; their mean reward and cost."""
    draws, under_way, reward, cost = random.Random(seed), [], 0.0, 0.0
    for _ in range(tasks):
        kind = draws.choice(sorted(TRUTH))
        under_way.append((kind, scheduler.decide(kind, list(TRUTH[kind]))))
        if len(under_way) > late:
            kind, task = under_way.pop(0)
            chance, usual = TRUTH[kind][str(task.option)]
            earned, spent = float(draws.random() < chance), usual * draws.uniform(0.8, 1.2)
            task.report(earned, spent)
            reward, cost = reward + earned, cost + spent
    done = tasks - late
    return reward / done, cost / done


def test_a_floor_is_kept_at_less_cost_than_the_best_reward() -> None:
    with Scheduler(seed=1, floor=0.7) as scheduler:
        reward, cost = work_through(scheduler, 1500, late=5)
        assert 0.665 < reward < 0.735  # three standard errors
        assert cost < 2.6  # the best options of both kinds cost 3.5
        assert json.dumps(asdict(scheduler.summary()))
        kept = scheduler.summary().goal
        assert kept is not None
        assert kept.words == "least cost with mean reward ≥ 0.7"
        [floor] = kept.kept
        assert (floor.limit, floor.kind, floor.wanted, floor.tasks) == ("floor", None, 0.7, 1495)
        assert floor.mean == pytest.approx(reward)
        assert floor.recent is not None
        assert 0.6 < floor.recent < 0.8


def test_a_budget_is_kept_overhead_included() -> None:
    with Scheduler(seed=1, budget=2.0, overhead=0.5) as scheduler:
        _, cost = work_through(scheduler, 1500)
        assert cost + 0.5 == pytest.approx(2.0, rel=0.02)


def test_floors_of_kinds_are_kept_one_by_one() -> None:
    with Scheduler(seed=1, floor={"b": 0.75}) as scheduler:
        work_through(scheduler, 1500)
        summary = scheduler.summary()
        by_kind = {kind.kind: kind for kind in summary.kinds}
        assert summary.goal is not None
        [floor] = summary.goal.kept
        assert floor.kind == "b"
        assert floor.mean == pytest.approx(0.75, rel=0.03)
        assert by_kind["a"].winner == "x"  # without a floor, the cheapest will do
        assert max(option.share for option in by_kind["a"].options if option.option == "x") > 0.95


def test_what_cannot_be_reached_is_a_warning_with_a_remedy() -> None:
    with Scheduler(seed=1, floor={"a": 0.99}) as scheduler:
        work_through(scheduler, 600)
        [warning] = [warning for warning in scheduler.summary().warnings if "Out of reach" in warning]
        assert "floor 0.99 of kind 'a'" in warning
        assert "'y'" in warning
        assert "Lower the floor" in warning
        assert [kind.winner for kind in scheduler.summary().kinds if kind.kind == "a"] == ["y"]
    with Scheduler(seed=1, budget=0.5) as scheduler:
        work_through(scheduler, 600)
        [warning] = [warning for warning in scheduler.summary().warnings if "Out of reach" in warning]
        assert "budget 0.5 cannot be kept" in warning
        assert "Raise the budget" in warning


def test_a_floor_that_makes_no_difference_takes_the_cheapest_and_says_so() -> None:
    with Scheduler(seed=1, floor=0.1) as scheduler:
        _, cost = work_through(scheduler, 800)
        goal = scheduler.summary().goal
        assert cost < 1.1
        assert goal is not None
        assert goal.kept[0].slack
        assert goal.kept[0].miss == 0.0
        assert "whatever is chosen" in str(scheduler.summary())


def test_the_ratio_with_a_floor_and_a_budget() -> None:
    with Scheduler(seed=1, goal="ratio", floor=0.6, budget=2.0) as scheduler:
        reward, cost = work_through(scheduler, 1500)
        assert reward > 0.58
        assert cost < 2.02
        text = str(scheduler.summary())
        assert "best ratio with mean reward ≥ 0.6 and mean cost per task ≤ 2" in text
        assert "mean cost per task: " in text


def test_a_decision_can_be_repeated_from_what_is_stored(address: str) -> None:
    with Scheduler(address, seed=1, floor=0.7) as scheduler:
        work_through(scheduler, 60, late=4)
        for task in range(1, 61, 7):
            explanation = scheduler.explain(task)
            assert explanation.repeated
            assert explanation.policy == "goal-imed"
        assert any("which keeps the floor of 0.7" in scheduler.explain(task).why for task in range(30, 61))
        assert scheduler.rebuild()


def test_what_is_running_is_stored_with_the_decision(address: str) -> None:
    with Scheduler(address, seed=1, floor=0.7) as scheduler:
        first = scheduler.decide("a", ["x", "y"])
        first.report(0.5, 2.0)
        tasks = [
            scheduler.decide("a", ["x", "y"]),
            scheduler.decide("b", ["x", "y"]),
            scheduler.decide("a", ["x", "y"]),
        ]
        rows = scheduler._transactor.do(
            lambda batch: batch.tx.tasks(batch.replica.id, [int(task.id) for task in tasks])
        )
        stored = [row.in_flight for row in rows]
        assert stored[0] is None
        of_all, of_kind = json.loads(str(stored[2]))
        assert of_all == [2.0, rows[0].reward_estimate + rows[1].reward_estimate, pytest.approx(of_all[2])]
        assert of_kind[0] == 1.0
        tasks[0].cancel()
        tasks[1].report(1.0, 1.0)
        assert scheduler._transactor.do(lambda batch: batch.in_flight(0)[0].tasks) == 1.0


def test_several_decisions_at_once_count_on_one_another() -> None:
    with Scheduler(seed=1, floor=0.7) as scheduler:
        work_through(scheduler, 200)
        from worthwhile.live.requests import Deciding

        asked = [Deciding(scheduler, "b", ["x", "y", "z"]) for _ in range(20)]
        scheduler._transactor.ask_all(asked)
        assert all(scheduler.explain(request.answer).repeated for request in asked)
        rows = scheduler._transactor.do(lambda batch: batch.tx.latest(batch.replica.id, 20))
        assert [json.loads(row.in_flight or "[[0]]")[0][0] for row in reversed(rows)] == list(range(20))


def test_the_engines_agree_to_the_bit() -> None:
    def taken(engine: str) -> list[Any]:
        with Scheduler(seed=4, engine=engine, floor=0.7) as scheduler:
            work_through(scheduler, 150, late=3)
            return [(line.option, line.reward, line.cost) for line in scheduler.latest(150)]

    assert taken("python") == taken("compiled")


def test_another_goal_counts_from_now_on_and_a_rebuild_gives_the_same_bits(durable: str) -> None:
    with Scheduler(durable, seed=1) as scheduler, Scheduler(durable) as other:
        work_through(scheduler, 120)
        running = scheduler.decide("a", ["x", "y"])
        scheduler.change(floor=0.8)
        assert other.summary().goal is not None
        running.report(1.0, 1.0)  # decided before there was a floor
        work_through(other, 80)
        goal = scheduler.summary().goal
        assert goal is not None
        assert goal.kept[0].tasks == 80
        assert scheduler.rebuild()
        assert other.rebuild()
        scheduler.change(floor={"a": 0.6, "new kind": 0.5}, goal="ratio")
        work_through(scheduler, 40)
        assert scheduler.rebuild()
        assert other.rebuild()
        scheduler.change(goal="ratio")
        assert other.summary().goal is None
        assert other.summary().policy == "ratio-imed"


def test_a_goal_survives_another_process_and_other_parameters_of_the_default(durable: str) -> None:
    with Scheduler(durable, policy="ratio-imed,half_life=500", floor={"a": 0.6}) as scheduler:
        assert scheduler.summary().policy == "goal-imed,half_life=500.0"
    with Scheduler(durable, floor={"a": 0.6}, policy="ratio-imed,half_life=500") as scheduler:
        scheduler.change(policy="ratio-imed")
        assert scheduler._transactor.do(lambda batch: batch.replica.goal) == Goal("cost", {"a": 0.6})
    with pytest.raises(BadParameter, match=r"has the goal least cost with mean reward of a ≥ 0.6, not "):
        Scheduler(durable, floor=0.9)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"floor": math.nan}, "finite"),
        ({"floor": True}, "finite"),
        ({"floor": {}}, "at least one kind"),
        ({"floor": {"a": math.inf}}, "floor of 'a'"),
        ({"floor": {"x" * 300: 0.5}}, "kind"),
        ({"budget": 0.0}, "above 0"),
        ({"budget": -1.0}, "above 0"),
        ({"budget": "much"}, "finite"),
        ({"floor": 0.5, "budget": 1.0}, "need a goal"),
        ({"goal": "cost"}, "needs a floor"),
        ({"goal": "reward"}, "needs a budget"),
        ({"goal": "profit"}, "goal = 'profit'"),
        ({"floor": 0.5, "policy": "kind-greedy"}, "keeps no floor"),
    ],
)
def test_a_bad_goal_is_refused_and_leaves_nothing_behind(sqlite: str, settings: Any, words: str) -> None:
    with pytest.raises(BadParameter, match=words):
        Scheduler(sqlite, **settings)
    with Scheduler(sqlite, overhead=0.5) as scheduler:
        with pytest.raises(BadParameter, match=words):
            scheduler.change(**settings)
        summary = scheduler.summary()
        assert (summary.goal, summary.kinds, summary.overhead) == (None, [], 0.5)


def test_a_failure_is_a_task_that_brought_nothing_unless_it_is_tried_again() -> None:
    with Scheduler(seed=1, floor=0.5) as scheduler:
        scheduler.decide("a", ["x", "y"]).fail(2.0, "broken")
        goal = scheduler.summary().goal
        assert goal is not None
        assert (goal.kept[0].tasks, goal.kept[0].mean) == (1, 0.0)
        task = scheduler.decide("a", ["x", "y"])
        task.fail(1.0, "broken")
        task.again().report(1.0, 3.0)
        goal = scheduler.summary().goal
        assert goal is not None
        assert (goal.kept[0].tasks, goal.kept[0].mean) == (2, 0.5)
        assert scheduler.rebuild()


def test_a_report_after_the_lease_has_ended_takes_the_place_of_the_loss() -> None:
    with Scheduler(seed=1, budget=5.0) as scheduler:
        scheduler.decide("a", ["x", "y"]).report(1.0, 4.0)
        lost = scheduler.decide("a", ["x", "y"], lease=0.0)
        scheduler.decide("a", ["x", "y"]).report(1.0, 4.0)  # notes the loss, at what such tasks cost
        lost.report(1.0, 10.0)
        goal = scheduler.summary().goal
        assert goal is not None
        assert goal.kept[0].tasks == 3
        assert goal.kept[0].mean == pytest.approx(6.0)
        assert scheduler.rebuild()


def test_where_the_cheapest_always_wins_floors_are_suggested_with_their_numbers() -> None:
    with Scheduler(seed=1) as scheduler:
        for _ in range(120):
            task = scheduler.decide("review", ["mini", "large"])
            task.report(*((0.1, 0.01) if task.option == "mini" else (0.9, 1.0)))
        [warning] = [warning for warning in scheduler.summary().warnings if "cheapest option wins" in warning]
        assert "with floor 0.5: 0.5 at " in warning
        assert "per task" in warning


def report_all(scheduler: Scheduler, tasks: int, worth: dict[str, tuple[float, float]]) -> None:
    """So many tasks of one kind, each option with the same reward and cost every time."""
    for _ in range(tasks):
        task = scheduler.decide("a", list(worth))
        task.report(*worth[str(task.option)])


def test_a_floor_of_zero_is_one() -> None:
    with Scheduler(seed=1, floor=0.0) as scheduler:
        report_all(scheduler, 150, {"x": (-2.0, 1.0), "y": (-0.5, 3.0)})
        summary = scheduler.summary()
        assert summary.goal is not None
        [floor] = summary.goal.kept
        assert (floor.miss, floor.missing) == (None, pytest.approx(0.5, abs=0.05))
        assert f"{floor.missing_text} of 0; lately" in str(summary)
        assert "floor 0 cannot be reached" in " ".join(summary.warnings)


def test_a_floor_for_a_kind_that_never_comes_is_pointed_out() -> None:
    with Scheduler(seed=1, goal="cost", floor={"leagl review": 0.5}, budget=9.0) as scheduler:
        report_all(scheduler, 99, {"x": (0.5, 1.0), "y": (0.9, 3.0)})
        assert scheduler.summary().warnings == []
        report_all(scheduler, 1, {"x": (0.5, 1.0), "y": (0.9, 3.0)})
        [warning] = scheduler.summary().warnings
        assert warning.startswith("There is a floor for leagl review, and there has been no such task")


def test_where_cost_alone_decides_scores_are_costs() -> None:
    """The price is as good as infinite then: nobody could read reward − price·cost."""
    with Scheduler(seed=1, floor={"a": 0.1, "b": 0.75}) as scheduler:
        work_through(scheduler, 600)
        kinds = {kind.kind: kind for kind in scheduler.summary().kinds}
        assert (kinds["a"].by_cost, kinds["a"].price, kinds["b"].by_cost) == (True, None, False)
        assert json.dumps([asdict(kind) for kind in kinds.values()])
        for option in kinds["a"].options:
            assert option.score == pytest.approx(-(option.mean_cost or 0.0), rel=1e-3)
            assert option.error is None or option.error < 1.0
        assert kinds["b"].price is not None


def test_no_floor_is_suggested_where_all_options_cost_the_same() -> None:
    with Scheduler(seed=1) as scheduler:
        report_all(scheduler, 120, {"x": (0.9, 1.0), "y": (0.5, 1.0)})
        assert scheduler.summary().warnings == []
