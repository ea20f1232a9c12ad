"""θ solved exactly after every task, and the best reward − cost: against formulas written out by hand."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import numpy as np
import pytest

from worthwhile.decision import Decision
from worthwhile.errors import BadParameter
from worthwhile.policies.gap_ucb import GapUcb
from worthwhile.policies.registry import make
from worthwhile.policies.solved_dol import SolvedDol
from worthwhile.rng import Rng

OFFERS = {0: [0, 1, 2], 1: [1, 3], 2: [0]}
MEANS = {
    (0, 0): (3.0, 1.0), (0, 1): (2.0, 2.0), (0, 2): (4.0, 1.5),
    (1, 1): (1.0, 1.0), (1, 3): (3.0, 2.0), (2, 0): (2.0, 1.0),
}  # fmt: skip
NOTHING_PENDING = np.zeros(4, np.uint32)


def played(policy: Any, tasks: int, seed: int) -> tuple[Any, list[tuple[int, int]]]:
    """The state after some tasks with noisy feedback, and what was taken."""
    state, draw, taken = policy.init(3, 4), random.Random(seed), []
    for number in range(tasks):
        kind = draw.choices((0, 1, 2), (0.5, 0.3, 0.2))[0]
        made = policy.choose(state, kind, np.array(OFFERS[kind], np.uint32), NOTHING_PENDING, Rng(0, number + 1))
        reward, cost = MEANS[kind, int(made.option)]
        taken.append((kind, int(made.option)))
        policy.learn(state, kind, made, reward + draw.gauss(0, 0.5), cost + draw.gauss(0, 0.2), Rng(0, number + 1))
    return state, taken


def root_by_hand(policy: SolvedDol, state: Any) -> float:
    """The best ratio over all choices of one tried option per kind that has arrived, of optimistic sums."""
    kinds = [kind for kind in range(3) if state.arrivals[kind] > 0]
    choices = [[option for option in OFFERS[kind] if state.arms.pulls[kind, option] > 0] for kind in kinds]
    best = -math.inf
    for choice in itertools.product(*choices):
        reward = cost = 0.0
        for kind, option in zip(kinds, choice, strict=True):
            width = policy.noise * math.sqrt(math.log(policy.horizon) / state.arms.pulls[kind, option])
            reward += state.arrivals[kind] * min(policy.reward_max, state.arms.mean_reward[kind, option] + width)
            cost += state.arrivals[kind] * max(policy.cost_min, state.arms.mean_cost[kind, option] - width)
        best = max(best, reward / cost)
    return best


@pytest.mark.parametrize("tasks", [1, 2, 5, 20, 100])
@pytest.mark.parametrize("seed", range(5))
def test_the_price_is_the_best_ratio_of_the_problem_as_optimism_sees_it(tasks: int, seed: int) -> None:
    policy = SolvedDol(horizon=100, reward_max=4.0, cost_min=0.5, noise=0.4)
    state, _ = played(policy, tasks, seed)
    assert state.price[0] == pytest.approx(root_by_hand(policy, state), rel=1e-12)


def test_every_option_of_a_kind_comes_first() -> None:
    _, taken = played(SolvedDol(horizon=100, reward_max=4.0, cost_min=0.5), 60, seed=3)
    for kind, options in OFFERS.items():
        mine = [option for its_kind, option in taken if its_kind == kind]
        assert mine[: len(options)] == options


def test_a_side_observation_moves_means_but_not_arrivals() -> None:
    policy = SolvedDol(horizon=100, reward_max=4.0, cost_min=0.5)
    state, _ = played(policy, 30, seed=1)
    arrivals, pulls = state.arrivals.copy(), state.arms.pulls[0, 1]
    policy.observe(state, 0, 1, 2.0, 2.0, Rng(0, 1))
    assert (state.arms.pulls[0, 1], state.arrivals.tolist()) == (pulls + 1, arrivals.tolist())


def test_the_largest_reward_minus_cost_at_the_price_that_was_told() -> None:
    options = np.array([0, 1], np.uint32)
    for price, wanted in ((1.0, 0), (3.0, 1)):  # 3 − 2 beside 1 − 1; 3 − 6 beside 1 − 3
        policy = GapUcb(horizon=1000, reward_max=3.0, cost_min=1.0, price=price)
        state = policy.init(1, 2)
        state.arms.pulls[0, :] = 100_000.0
        state.arms.mean_reward[0, :], state.arms.mean_cost[0, :] = (3.0, 1.0), (2.0, 1.0)
        made: Decision = policy.choose(state, 0, options, NOTHING_PENDING, Rng(0, 1))
        assert made.option == wanted


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("solved-dol,horizon=10,reward_max=1,cost_min=0", "SolvedDol: cost_min = 0.0; it must be above 0"),
        ("gap-ucb,horizon=10,reward_max=1,cost_min=1,price=-1", "GapUcb: price = -1.0; it must be 0 or more"),
        ("gap-ucb,horizon=10,reward_max=1,cost_min=1,price=nan", "price = nan; it must be a finite number"),
    ],
)
def test_what_makes_no_sense_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(BadParameter, match=complaint):
        make(text)
