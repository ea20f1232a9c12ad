"""The benchmark of goals: rivals meet the same tasks and do as they say, and limits are judged as they read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from goal_courses import EARLY, MARKS, OURS, PARETO, TASKS, WINDOW, Course, best_settings, kind_by_kind
from goal_figure import SHOWN, draw
from goal_rivals import FixedPrice, GoalByBounds, Match, ParetoBandit, play, prices_of, tasks_of_run
from goal_worlds import FAILING, NOISY, RECORDED, Case, at_shares, beside, by_kind, case_of, made, noisy, reach_of
from goals import judge_beside, judge_kinds, judge_other, judge_table, save
from worthwhile import Environment, Problem, simulate, two_kinds
from worthwhile.decision import Decision
from worthwhile.policies.fixed import FixedOption
from worthwhile.policies.goal_imed import COST
from worthwhile.problem import Noise
from worthwhile.rng import Rng
from worthwhile.simulation.environments.synthetic import synthetic
from worthwhile.simulation.runs import BLOCK
from worthwhile.testing import check_environment

SILENT = {"reward_noise": Noise(sd=0.0), "cost_noise": Noise(sd=0.0)}
PROBLEM = Problem.of({"task": (1.0, {"cheap": (0.4, 1.0), "dear": (0.8, 3.0)})}, **SILENT)
WORLD = synthetic(PROBLEM)


def course_of(case: Case, mean_reward: float, mean_cost: float, who: str = OURS, setting: str = "") -> Course:
    """Two runs, alike, that bring and cost the same all along."""
    tasks = np.array([MARKS, MARKS], float)
    return Course(case, who, setting, mean_reward * tasks, mean_cost * tasks, np.zeros_like(tasks))


def floor(world: str = "somewhere", environment: Environment = WORLD) -> Case:
    return case_of(world, environment, "floor at 50 %", floor=0.6)


def budget() -> Case:
    return case_of("somewhere", WORLD, "budget at 50 %", budget=2.0)


def missed(verdicts: Any) -> list[str]:
    return [verdict.limit for verdict in verdicts if not verdict.kept]


def test_goals_lie_on_the_way_from_the_cheapest_options_to_the_best() -> None:
    cases = at_shares("somewhere", WORLD)
    assert [case.name for case in cases] == [f"{what} at {at} %" for what in ("floor", "budget") for at in (20, 50, 80)]
    assert [case.wanted for case in cases] == pytest.approx([0.48, 0.6, 0.72, 1.4, 2.0, 2.6])
    assert [case.best.cost for case in cases] == pytest.approx([1.4, 2.0, 2.6] * 2)
    assert reach_of(PROBLEM).floors(0.5).tolist() == pytest.approx([0.6])
    assert by_kind("somewhere", WORLD).goal.floors == {"task": pytest.approx(0.6)}
    ratio, slack, out_of_reach = beside("somewhere", WORLD)
    assert (ratio.goal.goal, slack.best.cost, out_of_reach.best.reward) == ("ratio", 1.0, 0.8)
    assert bool(out_of_reach.best.infeasible)
    assert [cases[0].world for cases in made(0)] == [NOISY, FAILING]


def test_the_made_worlds_are_what_they_claim() -> None:
    check_environment(noisy())
    assert made(0)[1][0].environment.problem.can_fail


def test_a_course_says_how_a_goal_was_kept_and_what_that_cost() -> None:
    kept, over = course_of(floor(), 0.63, 2.2), course_of(budget(), 0.57, 2.02)
    assert kept.spare(EARLY).tolist() == pytest.approx([5.0, 5.0])
    assert over.spare(TASKS).tolist() == pytest.approx([-1.0, -1.0])
    assert kept.worse(TASKS) == pytest.approx((10.0, 0.0))
    assert over.worse(EARLY) == pytest.approx((5.0, 0.0))
    assert course_of(case_of("", WORLD, "", goal="ratio", floor=0.6), 0.6, 2.4).worse(TASKS)[0] == pytest.approx(
        100 / 6
    )
    one_bad = kept.reward.copy()
    one_bad[0, 3:] -= 0.1 * WINDOW  # its fourth window
    assert kept._replace(reward=one_bad).short_windows(EARLY, 3.0) == pytest.approx(100 / 8)
    assert kept._replace(reward=one_bad).short_windows(TASKS, 20.0) == 0.0


def test_the_limits_of_a_table() -> None:
    assert missed(judge_table([course_of(floor(), 0.6, 2.09), course_of(budget(), 0.58, 2.0)])) == []
    late = "somewhere, T = 100,000: every goal kept within 1 %"
    assert missed(judge_table([course_of(floor(), 0.593, 2.0)])) == [late.replace("100,000", "10,000"), late]
    assert missed(judge_table([course_of(floor(), 0.6, 2.11)])) == [
        "somewhere, floor at 50 %: within 5 % of the optimum"
    ]
    windows = [limit for limit in missed(judge_table([course_of(budget(), 0.6, 2.07)])) if "windows" in limit]
    assert len(windows) == 2


def test_the_limits_beside_paretobandit() -> None:
    ours = course_of(budget(), 0.58, 2.0)
    assert missed(judge_beside(ours, course_of(budget(), 0.57, 2.0, PARETO))) == []
    assert len(missed(judge_beside(ours, course_of(budget(), 0.59, 2.0, PARETO)))) == 2  # at both horizons
    assert missed(judge_beside(ours, course_of(budget(), 0.70, 2.5, PARETO))) == []  # bought with what it had not
    assert len(missed(judge_beside(course_of(budget(), 0.58, 2.04), course_of(budget(), 0.5, 2.0, PARETO)))) == 2


def test_the_limits_elsewhere() -> None:
    out_of_reach = case_of("somewhere", WORLD, "floor out of reach", floor=0.96)
    assert missed(judge_other(course_of(out_of_reach, 0.78, 3.0))) == []
    assert len(missed(judge_other(course_of(out_of_reach, 0.77, 3.0)))) == 1
    assert missed(judge_other(course_of(floor(NOISY), 0.6, 2.0))) == []
    lucky = course_of(floor(NOISY), 0.6, 2.0)
    luck = np.cumsum(np.random.default_rng(0).normal(0.0, 0.03 * WINDOW, lucky.reward.shape), axis=1)
    assert missed(judge_other(lucky._replace(reward=lucky.reward + luck, luck=luck))) == []  # chance is no fault
    assert len(missed(judge_other(lucky._replace(reward=lucky.reward + luck)))) >= 1
    kinds = by_kind("somewhere", WORLD)
    assert missed(judge_kinds(course_of(kinds, 0.6, 2.0), np.array([[-0.9], [-0.9]]))) == []
    assert len(missed(judge_kinds(course_of(kinds, 0.6, 2.0), np.array([[-1.1], [-1.1]])))) == 1


def test_the_best_setting_keeps_the_goal_and_then_comes_nearest_to_the_optimum() -> None:
    case = floor()
    cheap, good, dear = (
        course_of(case, reward, cost, "x", name)
        for reward, cost, name in ((0.5, 1.5, "cheap"), (0.6, 2.1, "good"), (0.7, 2.5, "dear"))
    )
    assert [course.setting for course in best_settings([cheap, good, dear])] == ["good"]
    assert [course.setting for course in best_settings([cheap, course_of(case, 0.55, 3.0, "x", "near")])] == ["near"]


def test_rivals_meet_the_tasks_of_the_simulation() -> None:
    tasks, world = BLOCK + 500, synthetic(two_kinds())
    kinds, latents = tasks_of_run(world, tasks, seed=4, run=1)
    result = simulate(world, {"first": FixedOption(0)}, tasks, 2, 4, marks=[], progress=False)
    reward = sum(world.world.feedback(kind, 0, latent)[0] for kind, latent in zip(kinds.tolist(), latents, strict=True))
    assert result.curves[1, 0, -1, 0] == pytest.approx(reward, rel=1e-9)


def after(policy: GoalByBounds, *reports: tuple[int, float, float]) -> Any:
    """The state after reports of option, reward and cost."""
    state = policy.init(1, 2)
    for option, reward, cost in reports:
        policy.learn(state, 0, Decision(option, 0.0, 0.0), reward, cost, Rng(0, 1))
    return state


@pytest.mark.parametrize(("is_floor", "wanted", "paced", "option"), [
    (True, 0.3, False, 0), (True, 0.7, False, 1), (True, 0.9, False, 1),
    (False, 0.5, False, 0), (False, 1.5, False, 0), (False, 3.5, False, 1),
    (True, 0.55, True, 0), (True, 0.65, True, 1), (False, 1.9, True, 0), (False, 2.1, True, 1),
])  # fmt: skip
def test_the_rule_by_bounds(is_floor: bool, wanted: float, paced: bool, option: int) -> None:
    """Without noise and doubt: 0.4 for 1, or 0.8 for 3; paced, each has been taken as often."""
    policy = GoalByBounds(wanted, is_floor, paced, 1.0, 0.0, 5.0, rho=0.0)
    state = after(policy, *[(0, 0.4, 1.0), (1, 0.8, 3.0)] * 50)
    offer = np.array([0, 1], np.uint32)
    assert policy.choose(state, 0, offer, np.zeros(2, np.uint32), Rng(0, 1)).option == option


def test_a_fixed_price_takes_what_is_worth_most_at_it() -> None:
    for price, reward in ((0.1, 0.8), (0.3, 0.4)):  # they tie at 0.2
        result = simulate(PROBLEM, {"x": FixedPrice(price, COST)}, 400, 1, engine="python", progress=False)
        assert result.mean("reward")["x"] / 400 == pytest.approx(reward, rel=0.05)


def test_paretobandit_is_told_the_true_prices_and_keeps_a_budget() -> None:
    assert prices_of(PROBLEM) == {0: 1.0, 1: 3.0}
    rival = ParetoBandit(WORLD, 2.0, 0, 1.0, 1.0)
    assert (rival.penalties, rival.offers) == ({"0": 0.0, "1": 1.0}, [["0", "1"]])
    curve = play(Match(WORLD, 2.0, (1000, 3000), 0, 0, (1.0, 1.0)))
    assert (curve[1, 1] - curve[0, 1]) / 2000 == pytest.approx(2.0, rel=0.05)


@pytest.mark.slow
def test_every_kind_is_looked_at_where_each_has_a_floor() -> None:
    course, spare = kind_by_kind(by_kind("paper", synthetic(two_kinds())), 2, 0)
    assert spare.shape == (2, 2)
    assert course.reward.shape == (2, len(MARKS))
    assert abs(spare).max() < 3.0


def test_the_figure_and_the_table_are_written(tmp_path: Path) -> None:
    cases = [
        case_of(world, WORLD, name, **{name.split()[0]: limit})
        for (world, name), limit in zip(SHOWN, (0.72, 2.0), strict=True)
    ]
    every = [course_of(case, 0.6, 2.0, who) for case in cases for who in (OURS, PARETO)]
    draw(every, tmp_path / "goals.png")
    save(tmp_path / "goals.csv", every)
    assert (tmp_path / "goals.png").stat().st_size > 10_000
    assert len((tmp_path / "goals.csv").read_text(encoding="utf-8").splitlines()) == 1 + 4 * len(MARKS)
    assert {world for world, _ in SHOWN} <= set(RECORDED)
