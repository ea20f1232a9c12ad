"""The default with a goal: its price in every combination, and that floors and budgets are kept where it matters."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from worthwhile.decision import Decision
from worthwhile.errors import BadParameter
from worthwhile.goals.goal import Goal, goal_of
from worthwhile.optimum import solve
from worthwhile.policies.base import Running, checked
from worthwhile.policies.dol_rm import DolRm
from worthwhile.policies.goal_imed import (
    COST,
    NO_BUDGET,
    NO_FLOOR,
    RATIO,
    REWARD,
    GoalImed,
    GoalState,
    goal_in,
    price_of,
    towards,
    unit_of,
    without_goal,
)
from worthwhile.policies.imed import RatioImed
from worthwhile.policies.pursuit import PRICELESS
from worthwhile.problem import Noise, Problem
from worthwhile.rng import Rng
from worthwhile.simulation.simulator import simulate
from worthwhile.state import grow, same

NOTHING, RNG = Running(0.0, 0.0, 0.0), Rng(7, 3)
SILENT = {"reward_noise": Noise(sd=0.0), "cost_noise": Noise(sd=0.0)}
MODELS = Problem.of(
    {
        "easy": (0.5, {"small": (0.7, 1.0), "large": (0.9, 3.0)}),
        "hard": (0.5, {"small": (0.2, 1.0), "medium": (0.5, 2.0), "large": (0.8, 5.0)}),
    },
    **SILENT,
)
KINDS = {"easy": 0, "hard": 1}
TASKS, SETTLED = 1500, 300  # of a simulation, and the part of it that is left out of account


def per_task(problem: Problem, **goal: Any) -> tuple[float, float]:
    """Mean reward and cost of the default with a goal, once it has settled."""
    result = simulate(problem, tasks=TASKS, runs=1, seed=3, marks=[SETTLED], engine="python", progress=False, **goal)
    reward, cost = (np.diff(result.measure(name)[0, 0])[-1] / (TASKS - SETTLED) for name in ("reward", "cost"))
    return float(reward), float(cost)


def at_prices(policy: GoalImed, ratio: float, kind: int = 0) -> float:
    """The price of a kind where the ratio is known; a floor would have 2, a budget 5."""
    state = policy.init(2, 3)
    state.known.plug_in.price[0] = ratio
    return price_of(policy, state, kind, 2.0, 5.0)


@pytest.mark.parametrize("ratio", [1.0, 3.0, 7.0])
def test_the_price_of_every_goal(ratio: float) -> None:
    floor, budget = {"floor": 0.5}, {"budget": 0.4}
    assert at_prices(GoalImed(RATIO), ratio) == ratio
    assert at_prices(GoalImed(RATIO, **floor), ratio) == min(ratio, 2.0)
    assert at_prices(GoalImed(RATIO, **budget), ratio) == max(ratio, 5.0)
    assert at_prices(GoalImed(RATIO, **floor, **budget), ratio) == 2.0  # the floor comes first
    assert at_prices(GoalImed(COST, **floor), ratio) == 2.0
    assert at_prices(GoalImed(COST, **floor, **budget), ratio) == 2.0
    assert at_prices(GoalImed(REWARD, **budget), ratio) == 5.0
    assert at_prices(GoalImed(REWARD, **floor, **budget), ratio) == 2.0


def test_a_kind_without_a_floor_is_judged_as_if_there_were_none() -> None:
    own = {"floor_kinds": np.array([1.0]), "kind_floors": np.array([0.5])}
    assert [at_prices(GoalImed(RATIO, **own), 3.0, kind) for kind in (0, 1)] == [3.0, 2.0]
    assert [at_prices(GoalImed(COST, **own), 3.0, kind) for kind in (0, 1)] == [3.0 * PRICELESS, 2.0]
    assert [at_prices(GoalImed(REWARD, budget=0.4, **own), 3.0, kind) for kind in (0, 1)] == [5.0, 2.0]


def test_the_usual_price_is_the_ratio_whatever_its_sign_and_1_before_anything_is_known() -> None:
    policy = GoalImed(COST, floor=0.5)
    state = policy.init(1, 2)
    assert unit_of(state) == 1.0
    state.known.plug_in.price[0] = -0.25
    assert unit_of(state) == 0.25


def beside_kink(policy: GoalImed) -> GoalState:
    """A state whose prices are known to lie between 1 and 2."""
    state = policy.init(2, 3)
    state.known.plug_in.price[0] = 100.0
    for pursuit in (state.for_floor, state.for_budget):
        pursuit.below[:], pursuit.above[:] = 1.0, 2.0
    return state


def test_running_tasks_count_as_what_is_expected_of_them() -> None:
    floor, budget = GoalImed(COST, floor=0.5), GoalImed(REWARD, budget=0.5)
    for policy in (floor, budget):
        state = beside_kink(policy)
        assert policy.aim(state, 0, NOTHING, NOTHING) == 2.0
        assert policy.aim(state, 0, Running(3.0, 1.4, 1.4), NOTHING) == 1.0  # 1.5 was wanted
        assert policy.aim(state, 0, Running(3.0, 1.6, 1.6), NOTHING) == 2.0


def test_a_floor_of_a_kind_looks_at_the_running_tasks_of_that_kind() -> None:
    policy = GoalImed(COST, floor_kinds=np.array([1.0]), kind_floors=np.array([0.5]))
    state, poor, rich = beside_kink(policy), Running(3.0, 1.4, 9.0), Running(3.0, 1.6, 9.0)
    assert (policy.aim(state, 1, poor, rich), policy.aim(state, 1, rich, poor)) == (2.0, 1.0)


def test_a_failure_counts_as_a_task_without_reward() -> None:
    policy = GoalImed(COST, floor=0.5)
    state = policy.init(1, 2)
    policy.fail(state, 0, Decision(0, 0.5, 1.0), 0.3, RNG)
    policy.book(state, 0, Running(1.0, 0.0, 0.3), Running(1.0, 0.5, 1.0))
    assert (state.for_floor.behind[0], state.for_floor.tasks[0]) == (0.5, 1.0)


@pytest.mark.parametrize("share", [0.25, 0.5, 0.9])
def test_a_floor_is_kept_at_the_least_cost_and_a_budget_makes_the_most_of_it(share: float) -> None:
    floor, budget = 0.45 + share * 0.4, 1.0 + share * 3.0
    reward, cost = per_task(MODELS, floor=floor)
    assert reward == pytest.approx(floor, rel=0.01)
    assert cost == pytest.approx(solve(MODELS, floor=floor).cost, rel=0.03)
    reward, cost = per_task(MODELS, budget=budget)
    assert cost == pytest.approx(budget, rel=0.01)
    assert reward == pytest.approx(solve(MODELS, budget=budget).reward, rel=0.03)


def test_a_slack_floor_takes_the_cheapest_and_one_out_of_reach_the_best() -> None:
    assert per_task(MODELS, floor=0.1)[1] == pytest.approx(1.0, rel=0.01)
    assert per_task(MODELS, floor=0.99)[0] == pytest.approx(0.85, rel=0.01)
    assert per_task(MODELS, budget=0.2)[1] == pytest.approx(1.0, rel=0.01)
    assert per_task(MODELS, budget=50.0)[0] == pytest.approx(0.85, rel=0.01)


def test_every_kind_keeps_the_floor_of_its_own() -> None:
    goal = goal_of(floor={"hard": 0.65})
    policy, arrivals = towards(RatioImed(), goal, KINDS), np.random.default_rng(0).integers(0, 2, TASKS)
    state, came, cost = policy.init(2, 3), np.zeros((2, 2)), np.zeros(2)
    for task, kind in enumerate(arrivals.tolist()):
        options = np.flatnonzero(MODELS.offered[kind]).astype(np.uint32)
        rng, price = Rng(1, task), policy.aim(state, kind, NOTHING, NOTHING)
        made = policy.choose_at(state, price, kind, np.zeros(0), options, np.zeros(3, np.uint32), rng)
        brought = Running(1.0, *(float(means[kind, made.option]) for means in (MODELS.reward, MODELS.cost)))
        policy.learn(state, kind, made, brought.reward, brought.cost, rng)
        policy.book(state, kind, brought, Running(1.0, made.reward_estimate, made.cost_estimate))
        if task >= SETTLED:
            came[kind] += 1.0, brought.reward
            cost[kind] += brought.cost
    assert came[1, 1] / came[1, 0] == pytest.approx(0.65, rel=0.01)
    assert cost[1] / came[1, 0] == pytest.approx(3.5, rel=0.03)  # half medium, half large
    assert cost[0] / came[0, 0] == pytest.approx(1.0, rel=0.01)  # nobody has asked for more


def test_the_best_ratio_above_a_floor_is_that_of_these_very_choices() -> None:
    kinds = {
        "A": (0.5, {"dear": (1.0, 2.0), "cheap": (0.6, 0.3)}),
        "B": (0.5, {"best": (1.0, 1.0), "fair": (0.8, 0.5), "poor": (0.5, 0.22)}),
    }
    reward, cost = per_task(Problem.of(kinds, **SILENT), goal="ratio", floor={"A": 1.0})
    assert reward / cost == pytest.approx(0.72, rel=0.01)  # at the price 2.12 of no floor, B would be poor: 0.676


def test_options_that_fail_keep_a_floor_of_all_tasks() -> None:
    kinds = {"task": (1.0, {"shaky": (1.0, 1.0), "sure": (0.9, 4.0)})}
    rate = {"failure_rate": np.array([[0.5, 0.0]]), "failure_cost": np.array([[1.0, 4.0]])}
    problem = Problem.of(kinds, **SILENT)
    problem = Problem(problem.name, problem.kinds, problem.options, problem.arrival, problem.reward, problem.cost,
                      problem.reward_noise, problem.cost_noise, **rate)  # fmt: skip
    reward, cost = per_task(problem, floor=0.7)
    assert reward == pytest.approx(0.7, rel=0.02)
    assert cost == pytest.approx(2.5, rel=0.05)  # every other task: 0.5 · 0.5 + 0.5 · 0.9


FAILING = Problem(
    "failing", MODELS.kinds, MODELS.options, MODELS.arrival, MODELS.reward, MODELS.cost, Noise(sd=0.2),
    Noise("lognormal", cv=0.3), failure_rate=np.where(MODELS.offered, 0.2, np.nan),
    failure_cost=np.where(MODELS.offered, 0.5, np.nan),
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("goal", [{"floor": 0.5}, {"goal": "ratio", "floor": {"hard": 0.5}, "budget": 2.0}])
def test_machine_code_does_the_same_to_the_bit(goal: dict[str, Any]) -> None:
    """With late reports out of order, and with failures."""
    settings = {"tasks": 700, "runs": 2, "seed": 5, "delay": (0, 9), "marks": range(50, 701, 50), "progress": False}
    interpreted, compiled = (simulate(FAILING, engine=engine, **settings, **goal) for engine in ("python", "compiled"))
    assert np.array_equal(interpreted.curves, compiled.curves, equal_nan=True)


def test_a_state_that_has_grown_decides_as_one_that_was_large_from_the_start() -> None:
    policy = towards(RatioImed(), goal_of(floor={"hard": 0.5}), {"hard": 1})
    small, large = policy.init(1, 2), policy.init(2, 3)
    for state in (small, large):
        for task in range(20):
            policy.learn(state, 0, Decision(task % 2, 0.5, 1.0), 0.1 * (task % 7), 1.0 + task % 3, RNG)
            policy.book(state, 0, Running(1.0, 0.1 * (task % 7), 1.0 + task % 3), Running(1.0, 0.5, 1.0))
    assert same(grow(policy, small, 2, 3), large)
    assert grow(policy, small, 2, 3).floor.tolist() == [NO_FLOOR, 0.5]


GOALS = [
    Goal("cost", 0.8),
    Goal("reward", None, 0.05),
    Goal("ratio", 0.8, 0.05),
    Goal("cost", {"easy": 0.9, "hard": -0.5}),
    Goal("reward", {"hard": 0.0}, 3.0),
]


@pytest.mark.parametrize("goal", GOALS)
def test_a_goal_can_be_read_off_the_policy_and_taken_off_again(goal: Goal) -> None:
    default = RatioImed(half_life=200.0, caution=0.5)
    policy = towards(default, goal, KINDS)
    checked(policy)
    assert goal_in(policy, list(KINDS)) == goal
    assert (policy.half_life, policy.caution) == (200.0, 0.5)
    assert without_goal(policy) == default


def test_without_a_constraint_the_default_stays_what_it_is() -> None:
    default = RatioImed()
    assert towards(default, goal_of(), {}) is default
    assert without_goal(default) is default
    assert goal_in(default, []) == Goal()


def test_no_other_policy_keeps_a_floor() -> None:
    with pytest.raises(BadParameter, match=r"DolRm keeps no floor and no budget, .* use the default policy, or drop"):
        towards(DolRm(1000, 1.0, 0.1, 0.0, 1.0), goal_of(floor=0.8), {})


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"goal": 3}, "it is 0 for the best ratio"),
        ({"goal": COST}, "the least cost needs one"),
        ({"goal": COST, "budget": 1.0}, "the least cost needs one"),
        ({"goal": REWARD}, "the most reward needs one"),
        ({"goal": REWARD, "floor": 1.0}, "the most reward needs one"),
        ({"goal": REWARD, "budget": 0.0}, "it must be above 0"),
        ({"floor_kinds": np.array([0.0])}, "there must be one for each"),
        ({"caution": 0.0}, "caution"),
        ({"half_life": 0.5}, "at least 1"),
    ],
)
def test_a_goal_that_makes_no_sense_is_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(BadParameter, match=words):
        checked(GoalImed(**settings))


def test_what_was_not_said_constrains_nothing() -> None:
    assert (GoalImed().floor, GoalImed().budget) == (NO_FLOOR, NO_BUDGET)
