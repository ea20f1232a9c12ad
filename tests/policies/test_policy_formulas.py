"""Every policy's index and steps on small numbers, worked out by hand; the default has a file of its own.

Nothing here is made anew when the code changes: if a number differs, the policy is no longer the one of its source.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

from worthwhile.decision import NOTHING, Decision
from worthwhile.policies.base import known, looks_at_features
from worthwhile.policies.bts import Bts
from worthwhile.policies.dol_rm import DolRm
from worthwhile.policies.fixed import FixedOption, RandomOption
from worthwhile.policies.forest import NODES, ROWS, TREES
from worthwhile.policies.greedy import BGreedy, KindGreedy
from worthwhile.policies.imed import RatioImed
from worthwhile.policies.m_ucb import MUcb
from worthwhile.policies.omega_ucb import OmegaUcb, omega, spread
from worthwhile.policies.oracle import Optimum, Oracle
from worthwhile.policies.plug_in_dol import PlugInDol
from worthwhile.policies.plug_ts import PlugTs, pooled_variance, squares
from worthwhile.policies.registry import LIST, make
from worthwhile.policies.running_ratio import RunningRatio
from worthwhile.policies.sample_rm import SampleRm
from worthwhile.policies.thompson import RatioThompson, RewardThompson
from worthwhile.policies.ucb import RatioUcb, RewardUcb
from worthwhile.problem import Problem
from worthwhile.rng import Rng, beta, bits, normals, uniform
from worthwhile.state import arrays

ROOT_LOG_100 = 2.14596602628934724  # √(ln 100)
KIND, OTHER, RNG = 1, 0, Rng(11, 5)
NONE_RUNNING = np.zeros(4, np.uint32)
MEANS = {0: (4, 1.0, 2.0), 2: (16, 1.5, 2.5), 3: (9, 1.25, 1.0)}  # option: pulls, R̄, C̄


def indices(*numbers: int) -> Any:
    return np.array(numbers, np.uint32)


def state_with(policy: Any, rows: dict[int, tuple[float, ...]], **values: float) -> Any:
    """A state of two kinds and four options; KIND has these arms, and single numbers are set by name."""
    state = policy.init(2, 4)
    for option, row in rows.items():
        for array, number in zip(state.arms, row, strict=False):
            array[KIND, option] = number
    for name, number in values.items():
        getattr(state, name)[...] = number
    return state


def choose(policy: Any, state: Any, *options: int, rng: Rng = RNG, pending: Any = NONE_RUNNING) -> Decision:
    made: Decision = policy.choose(state, KIND, indices(*options), pending, rng)
    return made


def is_about(option: int, reward: float, cost: float) -> Any:
    return pytest.approx((option, reward, cost), rel=1e-13)


PLAIN = {
    "reward-ucb": RewardUcb(100),
    "reward-ts": RewardThompson(),
    "ratio-ts": RatioThompson(0.1),
    "omega-ucb": OmegaUcb(9.0, 9.0),
    "m-ucb": MUcb(9.0, 9.0),
    "kind-greedy": KindGreedy(),
    "b-greedy": BGreedy(),
    "plug-ts": PlugTs(),
}
OPTIMISTIC = {
    "dol-rm": DolRm(100, 5.0, 0.25, 0.0, 9.0, noise=0.5),
    "sample-rm": SampleRm(100, 5.0, 0.25, 0.0, 9.0, noise=0.5),
    "running-ratio-dol": RunningRatio(100, 5.0, 0.25, noise=0.5),
    "plug-in-dol": PlugInDol(100, 5.0, 0.25, noise=0.5),
    "ratio-ucb": RatioUcb(100, 5.0, 0.25, noise=0.5),
}


@pytest.mark.parametrize("name", list(LIST))
def test_a_state_has_one_number_or_one_per_kind_option_or_both(name: str) -> None:
    problem = Problem.of({"x": (1.0, {"a": (1.0, 1.0)})})
    policy = make(name, known(problem, 10))
    for field, array in arrays(policy.init(3, 4)):
        empty = looks_at_features(policy) and array.size == 0  # what features would need
        assert array.shape in ((1,), (3,), (4,), (3, 4)) or empty, field


def test_with_room_for_features_a_state_has_tables_of_a_fixed_length_too() -> None:
    sides = {1, 3, 4, 8, ROWS, NODES, (TREES + 1) * NODES}
    for field, array in arrays(RatioImed().init(3, 4, 8)):
        assert set(array.shape) <= sides, field
        assert array.size > 0, field


@pytest.mark.parametrize("name", list(PLAIN))
def test_what_is_judged_by_its_means(name: str) -> None:
    policy: Any = PLAIN[name]
    assert policy.judge(state_with(policy, MEANS), KIND, 2) == (2, 1.5, 2.5)


@pytest.mark.parametrize("name", list(OPTIMISTIC))
def test_what_is_judged_by_optimistic_bounds(name: str) -> None:
    policy: Any = OPTIMISTIC[name]
    width = 0.5 * ROOT_LOG_100 / 4
    assert policy.judge(state_with(policy, MEANS), KIND, 2) == is_about(2, 1.5 + width, 2.5 - width)
    assert policy.judge(state_with(policy, MEANS), KIND, 1) == (1, 5.0, 0.25)


@pytest.mark.parametrize("name", [*PLAIN, *OPTIMISTIC])
def test_a_report_and_a_side_observation_move_the_means_alike(name: str) -> None:
    policy: Any = (PLAIN | OPTIMISTIC)[name]
    for learn in (True, False):
        state = state_with(policy, MEANS)
        if learn:
            policy.learn(state, KIND, Decision(0, 0.5, 0.5), 6.0, 7.0, RNG)
        else:
            policy.observe(state, KIND, 0, 6.0, 7.0, RNG)
        assert [array[KIND, 0] for array in state.arms[:3]] == [5.0, 2.0, 3.0]  # (4·1 + 6)/5, (4·2 + 7)/5
        assert not any(array[OTHER].any() for array in state.arms)


@pytest.mark.parametrize("name", [*PLAIN, *OPTIMISTIC])
def test_a_side_observation_is_no_task(name: str) -> None:
    policy: Any = (PLAIN | OPTIMISTIC)[name]
    state, fresh = state_with(policy, MEANS), policy.init(2, 4)
    policy.observe(state, KIND, 0, 6.0, 7.0, RNG)
    for (field, now), (_, before) in zip(arrays(state), arrays(fresh), strict=True):
        assert field.startswith("arms.") or np.array_equal(now, before), field


def test_reward_ucb_adds_the_width_to_the_reward() -> None:
    policy = RewardUcb(100, noise=0.5)
    state = state_with(policy, MEANS)
    half = 0.5 * ROOT_LOG_100  # scores 1 + half/2 = 1.536, 1.5 + half/4 = 1.768, 1.25 + half/3 = 1.608
    assert choose(policy, state, 0, 2, 3) == is_about(2, 1.5 + half / 4, 2.5)
    assert choose(policy, state, 0, 3) == is_about(3, 1.25 + half / 3, 1.0)
    assert choose(RewardUcb(100, noise=4.0), state, 0, 2, 3) == is_about(0, 1.0 + 4 * half, 2.0)
    assert choose(policy, state, 0, 1, 2) == (1, 0.0, 0.0)  # never tried
    assert choose(policy, state_with(policy, {}), 2, 1) == (2, 0.0, 0.0)
    assert choose(policy, state) == NOTHING


def test_ratio_ucb_divides_the_optimistic_reward_by_the_optimistic_cost() -> None:
    policy = RatioUcb(100, reward_max=5.0, cost_min=0.25, noise=0.5)
    state = state_with(policy, MEANS)
    half = 0.5 * ROOT_LOG_100  # 1.536/1.464, 1.768/2.232, 1.608/0.642
    assert choose(policy, state, 0, 2, 3) == is_about(3, 1.25 + half / 3, 1.0 - half / 3)
    assert choose(policy, state, 2, 0) == is_about(0, 1.0 + half / 2, 2.0 - half / 2)
    assert choose(policy, state, 3, 1, 0) == (1, 5.0, 0.25)
    assert choose(policy, state_with(policy, {}), 2, 1) == (2, 5.0, 0.25)  # the first of equals


def test_reward_thompson_draws_with_a_width_of_one_over_root_n() -> None:
    policy = RewardThompson(noise=2.0)
    state = state_with(policy, {0: (4, 1.0, 2.0), 2: (16, 0.5, 2.5), 3: (9, 1.25, 1.0)})
    first, second, third = (normals(RNG, draw)[0] for draw in range(3))
    drawn = [(0, 1.0 + first * 2 / 2, 2.0), (2, 0.5 + second * 2 / 4, 2.5), (3, 1.25 + third * 2 / 3, 1.0)]
    assert choose(policy, state, 0, 2, 3) == is_about(*max(drawn, key=lambda row: row[1]))
    assert choose(policy, state, 2) == is_about(2, 0.5 + first * 2 / 4, 2.5)
    assert choose(policy, state, 2, 1, 0) == (1, 0.0, 0.0)
    assert choose(policy, state_with(policy, {}), 3, 1) == (3, 0.0, 0.0)


def test_ratio_thompson_draws_reward_and_cost_with_a_width_of_one_over_root_n() -> None:
    policy = RatioThompson(cost_min=0.5, noise=0.5)
    state = state_with(policy, MEANS)
    drawn = []
    for draw, (option, (pulls, reward, cost)) in enumerate(MEANS.items()):
        one, other = normals(RNG, draw)
        width = 0.5 / {4: 2, 16: 4, 9: 3}[pulls]
        drawn.append((option, reward + width * one, max(0.5, cost + width * other)))
    assert choose(policy, state, *MEANS) == is_about(*max(drawn, key=lambda row: row[1] / row[2]))
    for option, (pulls, reward, cost) in MEANS.items():
        one, other = normals(RNG, 0)
        width = 0.5 / math.isqrt(int(pulls))
        assert choose(policy, state, option) == is_about(option, reward + width * one, cost + width * other)
    assert choose(policy._replace(cost_min=2.75), state, 2).cost_estimate == 2.75
    assert choose(policy, state, 2, 1, 0) == (1, 0.0, 0.5)
    assert choose(policy, state_with(policy, {}), 3, 1) == (3, 0.0, 0.5)


@pytest.mark.parametrize(
    ("mean", "pulls", "weight", "low", "high", "bounds"),
    [
        (0.5, 4.0, 1.0, 0.0, 1.0, ((5 - math.sqrt(5)) / 10, (5 + math.sqrt(5)) / 10)),  # 5ω² − 5ω + 1 = 0
        (2.0, 4.0, 1.0, 0.0, 4.0, ((5 - math.sqrt(5)) / 2.5, (5 + math.sqrt(5)) / 2.5)),  # four times as wide
        (12.0, 4.0, 1.0, 10.0, 14.0, (10 + (5 - math.sqrt(5)) / 2.5, 10 + (5 + math.sqrt(5)) / 2.5)),
        (0.25, 1.0, 2.0, 0.0, 1.0, ((5 - math.sqrt(22)) / 12, (5 + math.sqrt(22)) / 12)),  # 3ω² − 2½ω + 1/16 = 0
        (0.0, 3.0, 1.0, 0.0, 1.0, (0.0, 0.25)),  # 4ω² − ω = 0
        (0.7, 5.0, 0.0, 0.0, 1.0, (0.7, 0.7)),
        (0.0, 0.0, 2.0, -1.0, 3.0, (-1.0, 3.0)),
        (0.0, 0.0, 0.0, -1.0, 3.0, (-1.0, -1.0)),  # no pulls and no width: no number is divided by 0
    ],
)
def test_omega_bounds_are_the_roots_of_a_quadratic(
    mean: float, pulls: float, weight: float, low: float, high: float, bounds: tuple[float, float]
) -> None:
    """n (x̄ − ω)² = η z² (M − ω)(ω − m)."""
    assert omega(mean, pulls, weight, low, high) == pytest.approx(bounds, rel=1e-7, abs=1e-7)
    if weight > 0.0 and pulls > 0.0:
        assert omega(mean, pulls, weight, low, high) == pytest.approx(bounds, rel=1e-14, abs=1e-15)


def test_omega_star_scales_by_the_share_of_the_largest_variance() -> None:
    assert spread(30.0, 1.5, 15.0, 1.0, 3.0, adaptive=True) == 15.0 / (30.0 * 1.5 * 0.5)  # (3 − 1.5)(1.5 − 1)
    assert spread(30.0, 1.5, 99.0, 1.0, 3.0, adaptive=True) == 1.0  # never more than all of it
    assert spread(29.999, 1.5, 15.0, 1.0, 3.0, adaptive=True) == 1.0
    assert spread(30.0, 1.5, 15.0, 1.0, 3.0, adaptive=False) == 1.0
    assert spread(30.0, 1.0, 15.0, 1.0, 3.0, adaptive=True) == 1.0  # at the edge no variance is possible
    assert spread(30.0, 0.9, 15.0, 1.0, 3.0, adaptive=True) == 1.0


def test_omega_ucb_widens_with_the_log_of_the_tasks_of_a_kind() -> None:
    """With ρ = ¼ and ln(t + 1) = 2, z² = 2·¼·2 = 1; pulls of 4 at a mean of ½ give (5 ± √5)/10."""
    policy = OmegaUcb(reward_max=1.0, cost_max=2.0)
    assert policy.rho == 0.25
    state = state_with(policy, {0: (4, 0.5, 1.0), 2: (9, 0.5, 1.0)}, arrivals=math.expm1(2.0))
    few = (0, (5 + math.sqrt(5)) / 10, (5 - math.sqrt(5)) / 5)
    many = (2, (10 + math.sqrt(10)) / 20, (10 - math.sqrt(10)) / 10)  # 10ω² − 10ω + 9/4 = 0
    assert choose(policy, state, 0, 2) == is_about(*few)
    assert choose(policy, state, 2) == is_about(*many)
    wider = policy._replace(rho=1.0)  # z² = 4: 8ω² − 8ω + 1 = 0
    assert choose(wider, state, 0) == is_about(0, (4 + math.sqrt(8)) / 8, (4 - math.sqrt(8)) / 4)
    shifted = OmegaUcb(reward_max=2.0, cost_max=3.0, reward_low=-1.0, cost_low=-1.0)  # of 3 and 4, counted from −1
    assert choose(shifted, state, 0) == is_about(0, -1 + (5 + math.sqrt(5)) * 0.3, -1 + (5 - math.sqrt(5)) * 0.4)


def test_omega_star_ucb_narrows_by_the_sample_variances() -> None:
    """Shares of the largest variance: reward 9/(36·¼) = 1 of it, cost ¼; so z² = 4 and 1."""
    policy = OmegaUcb(reward_max=1.0, cost_max=1.0, rho=1.0, adaptive=True)
    state = state_with(policy, {0: (36, 0.5, 0.5, 9.0, 2.25, 0.0)}, arrivals=math.expm1(2.0))
    reward = (20 + math.sqrt(40)) / 40  # 40ω² − 40ω + 9 = 0
    cost = (37 - math.sqrt(37)) / 74  # 37ω² − 37ω + 9 = 0
    assert choose(policy, state, 0) == is_about(0, reward, cost)


def test_omega_ucb_tries_what_it_has_not_tried_and_tosses_a_coin_between_equals() -> None:
    policy = OmegaUcb(reward_max=1.0, cost_max=2.0)
    state = state_with(policy, {0: (4, 0.5, 1.0)}, arrivals=9.0)
    assert choose(policy, state, 0, 1).option == 1
    free = state_with(policy, {0: (4, 0.5, 1.0), 2: (4, 0.1, 0.0)}, arrivals=9.0)
    assert choose(policy, free, 0, 2).option == 2  # a cost that may be 0
    above = OmegaUcb(reward_max=1.0, cost_max=2.0, cost_low=0.5)
    observed = state_with(
        above, {0: (4, 0.9, 0.6)}, arrivals=0.0
    )  # on the side: before the first task there is no width
    assert choose(above, observed, 0, 1).option == 1
    below = OmegaUcb(reward_max=1.0, cost_max=2.0, cost_low=-1.0)
    assert choose(below, state_with(below, {0: (4, 0.5, -0.5)}, arrivals=9.0), 0).cost_estimate == 0.0
    equal = state_with(policy, dict.fromkeys(range(4), (4, 0.5, 1.0)), arrivals=9.0)
    for task in range(1, 60):
        rng, expected = Rng(11, task), 3
        for place, option in enumerate((3, 1, 0)):
            if place and uniform(rng, place) * (place + 1) < 1.0:  # the second with chance ½, the third with ⅓
                expected = option
        made = choose(policy, equal, 3, 1, 0, rng=rng)
        assert made.option == expected
        assert made[1:] == choose(policy, equal, 3)[1:]
    behind = state_with(policy, {0: (4, 0.4, 1.0), 2: (4, 0.5, 1.0), 3: (4, 0.5, 1.0)}, arrivals=9.0)
    for task in range(1, 30):  # a new leader starts the count of equals anew
        late = uniform(Rng(11, task), 2) < 0.5
        assert choose(policy, behind, 0, 2, 3, rng=Rng(11, task)).option == (3 if late else 2)


def test_omega_ucb_counts_the_tasks_of_every_kind() -> None:
    policy = OmegaUcb(reward_max=1.0, cost_max=2.0)
    state = policy.init(2, 4)
    policy.learn(state, KIND, Decision(0, 0.0, 0.0), 1.0, 4.0, RNG)
    policy.learn(state, KIND, Decision(0, 0.0, 0.0), 3.0, 2.0, RNG)
    assert state.arrivals.tolist() == [0.0, 2.0]
    assert [array[KIND, 0] for array in state.arms] == [2.0, 2.0, 3.0, 2.0, 2.0, -2.0]


def test_m_ucb_has_a_width_of_a_sixteenth() -> None:
    """ln(arrivals) = 4 and 4 pulls: ε = 1/16 · √(4/4); 16 pulls: half of that."""
    policy = MUcb(reward_max=4.0, cost_max=8.0)
    state = state_with(policy, {0: (4, 1.0, 2.0), 2: (16, 1.0, 2.0), 3: (4, 3.9, 0.4)}, arrivals=math.exp(4.0))
    assert choose(policy, state, 2, 0) == is_about(0, 4 * (0.25 + 1 / 16), 8 * (0.25 - 1 / 16))
    assert choose(policy, state, 2) == is_about(2, 4 * (0.25 + 1 / 32), 8 * (0.25 - 1 / 32))
    assert choose(policy, state, 0, 3) == (3, 4.0, 0.0)  # at most r_max, at least 0: the cost may be nothing
    assert choose(policy._replace(width=0.125), state, 0) == is_about(0, 4 * 0.375, 8 * 0.125)
    assert choose(policy, state, 0, 1) == (1, 4.0, 0.0)  # never tried
    assert choose(policy, state_with(policy, {}), 3, 1) == (3, 4.0, 0.0)


@pytest.mark.parametrize("arrivals", [0.0, 1.0])
def test_m_ucb_has_no_width_at_the_second_task(arrivals: float) -> None:
    """ε = √(ln(t − 1)/n)/16 for task t, and the first has no t − 1."""
    policy = MUcb(reward_max=4.0, cost_max=8.0)
    assert choose(policy, state_with(policy, {0: (4, 1.0, 2.0)}, arrivals=arrivals), 0) == (0, 1.0, 2.0)


def test_m_ucb_and_b_greedy_count_the_tasks_of_a_kind() -> None:
    for policy in (MUcb(4.0, 8.0), BGreedy()):
        state = policy.init(2, 4)
        policy.learn(state, KIND, Decision(0, 0.0, 0.0), 1.0, 4.0, RNG)
        policy.learn(state, KIND, Decision(2, 0.0, 0.0), 1.0, 4.0, RNG)
        assert state.arrivals.tolist() == [0.0, 2.0]


def test_bts_draws_from_beta_posteriors_with_one_win_and_one_failure_before_the_first() -> None:
    policy = Bts(reward_max=2.0, cost_max=4.0)
    state = state_with(policy, {0: (4, 0.25, 0.75), 2: (8, 0.5, 0.125)})
    first = (0, 2 * beta(RNG, 0, 2.0, 4.0), 4 * beta(RNG, 32, 4.0, 2.0))  # 1 win of 4, 3 spends of 4
    second = (2, 2 * beta(RNG, 64, 5.0, 5.0), 4 * beta(RNG, 96, 2.0, 8.0))
    third = (3, 2 * beta(RNG, 128, 1.0, 1.0), 4 * beta(RNG, 160, 1.0, 1.0))
    drawn = [first, second, third]
    assert choose(policy, state, 0, 2, 3) == is_about(*max(drawn, key=lambda row: row[1] / row[2]))
    assert choose(policy, state, 0) == is_about(*first)
    assert choose(policy, state, 3) == is_about(3, 2 * beta(RNG, 0, 1.0, 1.0), 4 * beta(RNG, 32, 1.0, 1.0))
    for task in range(1, 30):
        rng = Rng(3, task)
        scores = {
            0: beta(rng, 0, 2.0, 4.0) / beta(rng, 32, 4.0, 2.0),
            2: beta(rng, 64, 5.0, 5.0) / beta(rng, 96, 2.0, 8.0),
        }
        assert choose(policy, state, 0, 2, rng=rng).option == max(scores, key=scores.__getitem__)
    assert choose(policy, state) == NOTHING
    assert policy.judge(state, KIND, 2) == (2, 1.0, 0.5)


@pytest.mark.parametrize(("learn", "draw"), [(True, 65535), (False, 65535 - 1 - 2)])
def test_bts_turns_feedback_into_coins(learn: bool, draw: int) -> None:
    """A reward of ½ of at most 2 is a win with chance ¼, a cost of 3 of at most 4 a spend with chance ¾."""
    policy, state, wins, spends = Bts(reward_max=2.0, cost_max=4.0), Bts(2.0, 4.0).init(2, 4), 0, 0
    for task in range(1, 41):
        rng = Rng(9, task)
        one, other = bits(rng, draw)
        wins += (one + 0.5) / 2**32 < 0.25
        spends += (other + 0.5) / 2**32 < 0.75
        if learn:
            policy.learn(state, KIND, Decision(2, 0.0, 0.0), 0.5, 3.0, rng)
        else:
            policy.observe(state, KIND, 2, 0.5, 3.0, rng)
    assert 0 < wins < spends < 40
    found = [array[KIND, 2] for array in state.arms]
    assert found == pytest.approx([40.0, wins / 40, spends / 40], rel=1e-12)


def test_a_coin_shows_what_is_strictly_below_the_feedback() -> None:
    policy = Bts(reward_max=1.0, cost_max=1.0)
    one, other = bits(RNG, 65535)
    reward, cost = (one + 0.5) / 2**32, (other + 0.5) / 2**32
    for more, expected in ((0.0, 0.0), (1e-10, 1.0)):  # 2⁻³² is 2.3e-10
        state = policy.init(2, 4)
        policy.learn(state, KIND, Decision(2, 0.0, 0.0), reward + more, cost + more, RNG)
        assert (state.arms.mean_reward[KIND, 2], state.arms.mean_cost[KIND, 2]) == (expected, expected)


def test_kind_greedy_takes_the_best_observed_ratio_once_everything_was_tried() -> None:
    policy = KindGreedy()
    state = state_with(policy, MEANS)  # ½, 3/5, 5/4
    assert choose(policy, state, 0, 2, 3) == (3, 1.25, 1.0)
    assert choose(policy, state, 0, 2) == (2, 1.5, 2.5)
    assert choose(policy, state, 3, 1, 0) == (1, 0.0, 0.0)
    assert choose(policy, state_with(policy, {}), 2, 1, 0) == (2, 0.0, 0.0)  # in the order of the offer
    equal = state_with(policy, {0: (1, 1.0, 2.0), 2: (3, 2.0, 4.0)})
    assert choose(policy, equal, 2, 0).option == 2
    assert choose(policy, equal, 0, 2).option == 0


def test_a_cost_that_is_not_positive_counts_as_next_to_nothing() -> None:
    policy = KindGreedy()
    state = state_with(policy, {0: (1, 1e-9, -2.0), 2: (1, 9.0, 1.0), 3: (1, -1.0, 0.0)})
    assert choose(policy, state, 2, 0) == (0, 1e-9, -2.0)
    assert choose(policy, state, 3, 2).option == 2
    tiny = state_with(policy, {0: (1, 1.0, 1e-299), 2: (1, 1.0, -1.0)})  # 1e299 beside 1/1e-300
    assert choose(policy, tiny, 0, 2).option == 2


def test_b_greedy_explores_with_chance_options_over_tasks() -> None:
    state = state_with(BGreedy(), MEANS)
    chance, which = uniform(RNG, 0), uniform(RNG, 1)
    explored = (0, 2, 3)[int(3 * which)]
    assert explored != 3
    for exploration in (1.0, 2.0):
        policy, edge = BGreedy(exploration), 3 * exploration / chance  # explores while u·(arrivals + 1) < K
        state.arrivals[:] = edge - 1.001
        assert choose(policy, state, 0, 2, 3) == (explored, *MEANS[explored][1:])
        state.arrivals[:] = edge - 0.999
        assert choose(policy, state, 0, 2, 3) == (3, 1.25, 1.0)
    state.arrivals[:] = 1e9
    state.arms.pulls[:] = 0.0
    assert choose(BGreedy(), state, 0, 2, 3) == (explored, *MEANS[explored][1:])  # nothing to be greedy with


def test_b_greedy_is_greedy_among_what_was_tried() -> None:
    state = state_with(BGreedy(), {0: (1, 1.0, 2.0), 2: (1, 1.0, 1.5)}, arrivals=1e9)
    assert choose(BGreedy(), state, 0, 1, 2) == (2, 1.0, 1.5)
    assert choose(BGreedy(0.0), state_with(BGreedy(), {0: (1, 1.0, 2.0)}), 0, 1) == (0, 1.0, 2.0)


def test_two_steps_of_dol_rm() -> None:
    """T = 100 and c_min = ½ give η = 1/(½·10) = 1/5."""
    policy = DolRm(horizon=100, reward_max=3.0, cost_min=0.5, price_min=0.25, price_max=4.0, noise=0.5)
    state = policy.init(2, 4)
    assert (state.step[0], state.price[0]) == (0.2, 0.25)
    made = choose(policy, state, 2, 3)
    assert made == (2, 3.0, 0.5)
    policy.learn(state, KIND, made, 1.0, 2.0, RNG)
    assert state.price[0] == pytest.approx(0.825, rel=1e-15)  # ¼ + (3 − ¼·½)/5
    width = 0.5 * ROOT_LOG_100
    second = choose(policy, state, 2)
    assert second == is_about(2, 1.0 + width, 2.0 - width)
    policy.learn(state, KIND, second, 2.0, 1.0, RNG)
    assert state.price[0] == pytest.approx(0.825 + (1.0 + width - 0.825 * (2.0 - width)) / 5, rel=1e-14)
    assert [array[KIND, 2] for array in state.arms] == [2.0, 1.5, 1.5]
    assert (state.tasks[0], state.step[0]) == (2.0, 0.2)


def test_dol_rm_weighs_the_cost_by_the_price() -> None:
    policy = DolRm(horizon=100, reward_max=5.0, cost_min=0.25, price_min=0.0, price_max=9.0, noise=0.0)
    dear, cheap = state_with(policy, MEANS, price=0.25), state_with(policy, MEANS, price=2.0)
    assert choose(policy, dear, 0, 2) == (2, 1.5, 2.5)  # ½, ⅞
    assert choose(policy, cheap, 2, 0) == (0, 1.0, 2.0)  # −3, −3½
    equal = state_with(policy, MEANS, price=1.0)
    assert choose(policy, equal, 0, 2).option == 0  # −1, −1
    assert choose(policy, equal, 2, 0).option == 2
    assert choose(policy, equal) == NOTHING


def test_dol_rm_explores_first_what_neither_reported_nor_runs() -> None:
    policy = DolRm(100, 5.0, 0.25, 0.0, 9.0, noise=0.0, explore_first=True)
    state = state_with(policy, {0: (1, 1.0, 2.0), 3: (1, 9.0, 1.0)}, price=1e6)
    assert choose(policy, state, 0, 3, 2, 1).option == 2
    assert choose(policy, state, 3, 0).option == 3
    busy = np.array([0, 0, 1, 1], np.uint32)
    assert choose(policy, state, 0, 3, 2, 1, pending=busy).option == 1
    assert choose(policy._replace(explore_first=False), state, 0, 3, 2, 1).option == 2  # (5, ¼) is best anyway
    assert choose(policy._replace(reward_max=0.0, cost_min=2.0), state, 3, 2).option == 2
    assert choose(policy._replace(explore_first=False, cost_min=2.0, reward_max=0.0), state, 3, 2).option == 3


def test_two_steps_of_dol_rm_anytime() -> None:
    """η = 1/(c_min (t + 1)): 1/(½·2) after the first task, 1/(½·3) after the second."""
    policy = DolRm(horizon=100, reward_max=3.0, cost_min=0.5, price_min=0.25, price_max=9.0, anytime=True)
    state = policy.init(1, 1)
    policy.learn(state, 0, Decision(0, 2.0, 1.0), 0.0, 1.0, RNG)
    assert (state.step[0], state.price[0]) == (1.0, 2.0)  # ¼ + (2 − ¼)
    policy.learn(state, 0, Decision(0, 3.0, 0.75), 0.0, 1.0, RNG)
    assert (state.step[0], state.price[0]) == pytest.approx((2 / 3, 3.0), rel=1e-15)  # 2 + ⅔(3 − 2·¾)


@pytest.mark.parametrize("made", [Decision(0, 2.0, 0.5), Decision(0, 99.0, 99.0)])
def test_two_steps_of_sample_rm_which_follows_what_was_observed(made: Decision) -> None:
    policy = SampleRm(horizon=100, reward_max=3.0, cost_min=0.5, price_min=0.5, price_max=9.0)
    state = policy.init(1, 1)
    assert (state.step[0], state.price[0]) == (0.0, 0.5)
    policy.learn(state, 0, made, 2.0, 0.5, RNG)
    assert (state.step[0], state.price[0]) == (1.0, 2.25)  # ½ + (2 − ½·½)
    policy.learn(state, 0, made, 2.0, 0.5, RNG)
    assert (state.tasks[0], state.step[0]) == pytest.approx((2.0, 2 / 3), rel=1e-15)
    assert state.price[0] == pytest.approx(2.25 + 2 / 3 * 0.875, rel=1e-15)  # 2 − 2¼·½ = ⅞
    policy.learn(state, 0, made, -99.0, 1.0, RNG)
    assert state.price[0] == 0.5  # θ_min
    policy.learn(state, 0, made, 999.0, 1.0, RNG)
    assert state.price[0] == 9.0  # θ_max


TRUE_REWARD = np.array([[0.0, 0.0, 0.0, 0.0], [2.0, 1.0, 4.0, 4.0]])
TRUE_COST = np.array([[0.0, 0.0, 0.0, 0.0], [0.5, 1.0, 2.0, 2.0]])


def test_two_steps_of_the_oracle() -> None:
    policy = Oracle(TRUE_REWARD, TRUE_COST, cost_min=0.5, price_min=0.5, price_max=9.0)
    state = policy.init(2, 4)
    made = choose(policy, state, 0, 1)
    assert made == (0, 2.0, 0.5)
    policy.learn(state, KIND, made, 99.0, 99.0, RNG)
    assert state.price[0] == 2.25  # ½ + 1/(½·2) · (2 − ½·½)
    policy.learn(state, KIND, made, 99.0, 99.0, RNG)
    assert state.price[0] == pytest.approx(2.25 + 2 / 3 * 0.875, rel=1e-15)
    assert state.tasks[0] == 2.0
    policy.observe(state, KIND, 0, 99.0, 99.0, RNG)
    assert state.tasks[0] == 2.0
    assert policy.judge(state, KIND, 2) == (2, 4.0, 2.0)


def test_the_oracle_and_the_optimum_choose_by_true_means_under_their_price() -> None:
    oracle = Oracle(TRUE_REWARD, TRUE_COST, cost_min=0.5, price_min=0.5, price_max=9.0)
    state = oracle.init(2, 4)
    assert state.price[0] == 0.5
    for price, option in ((0.5, 2), (1.25, 2), (1.5, 0), (4.0, 0)):  # 2 − θ/2 beside 4 − 2θ: equal at 4/3
        state.price[0] = price
        assert choose(oracle, state, 0, 1, 2, 3).option == option
        optimum = Optimum(TRUE_REWARD, TRUE_COST, best_ratio=price)
        assert choose(optimum, optimum.init(2, 4), 0, 1, 2, 3).option == option
    assert choose(oracle, state, 3, 2).option == 3  # the first of equals
    assert choose(oracle, state) == NOTHING


def test_the_optimum_knows_its_price_and_learns_nothing_but_the_number_of_tasks() -> None:
    policy = Optimum(TRUE_REWARD, TRUE_COST, best_ratio=2.5)
    state = policy.init(2, 4)
    policy.learn(state, KIND, Decision(0, 9.0, 9.0), 9.0, 9.0, RNG)
    policy.observe(state, KIND, 0, 9.0, 9.0, RNG)
    assert (state.tasks[0], state.price[0]) == (1.0, 2.5)
    assert policy.judge(state, KIND, 1) == (1, 1.0, 1.0)


def test_the_running_ratio_is_the_quotient_of_the_totals() -> None:
    policy = RunningRatio(horizon=100, reward_max=5.0, cost_min=0.25)
    state = policy.init(1, 2)
    made = Decision(0, 0.0, 0.0)
    policy.learn(state, 0, made, 3.0, -1.0, RNG)
    assert state.price[0] == 0.0  # no cost to divide by yet
    policy.learn(state, 0, made, 2.0, 1.0, RNG)
    assert state.price[0] == 0.0
    policy.learn(state, 0, made, 0.0, 0.5, RNG)
    assert state.price[0] == 10.0  # 5/½
    policy.learn(state, 0, made, 4.0, 5.5, RNG)
    assert state.price[0] == 1.5  # 9/6
    policy.learn(state, 0, made, -3.0, 2.0, RNG)
    assert (state.total_reward[0], state.total_cost[0], state.price[0]) == (6.0, 8.0, 0.75)


def test_the_plug_in_price_of_optimistic_estimates() -> None:
    policy = PlugInDol(horizon=100, reward_max=5.0, cost_min=0.25, noise=0.0)
    state = policy.init(2, 3)
    for kind, option, reward, cost in ((1, 0, 2.0, 1.0), (1, 2, 3.0, 3.0), (0, 1, 1.0, 2.0)):
        policy.learn(state, kind, Decision(option, 0.0, 0.0), reward, cost, RNG)
    # kind 1 twice, at price 2 first: 2 − 2·1 beside 3 − 2·3, so (2, 1) counts twice; then (1, 2) of kind 0 once
    assert state.plug_in.price[0] == 5.0 / 4.0
    policy.learn(state, 0, Decision(1, 0.0, 0.0), 1.0, 2.0, RNG)
    assert state.plug_in.price[0] == 6.0 / 6.0
    policy.learn(state, 0, Decision(1, 0.0, 0.0), 1.0, 2.0, RNG)  # kind 1 at price 1: 2 − 1 beside 3 − 3
    assert state.plug_in.price[0] == 7.0 / 8.0
    assert policy.choose(state, 1, indices(0, 2), NONE_RUNNING, RNG) == (0, 2.0, 1.0)


def test_a_refresh_takes_the_first_of_equal_options_and_only_those_tried() -> None:
    policy = PlugInDol(horizon=100, reward_max=5.0, cost_min=0.25, noise=0.0)
    state = policy.init(1, 4)
    state.arms.pulls[0], state.arms.mean_reward[0] = [0.0, 1.0, 1.0, 1.0], [9.0, 2.0, 2.0, 1.0]
    state.arms.mean_cost[0] = [1.0, 4.0, 1.0, 0.5]
    policy.learn(state, 0, Decision(3, 0.0, 0.0), 1.0, 0.5, RNG)
    assert state.plug_in.price[0] == 0.5  # at price 0 all that counts is the reward: 2/4 comes first
    policy.learn(state, 0, Decision(3, 0.0, 0.0), 1.0, 0.5, RNG)
    assert state.plug_in.price[0] == 2.0  # at ½: 0, 1½, ¾


def test_plug_in_thompson_draws_reward_minus_price_times_cost() -> None:
    """At price 2: squares of z are SS_R + 4·SS_C − 4·SP; the prior is worth three pulls of the pooled variance."""
    policy = PlugTs()
    rows = {0: (4, 1.0, 2.0, 3.0, 1.0, 0.5), 2: (16, 1.5, 2.5, 8.0, 2.0, -1.0), 3: (9, 1.25, 1.0, 4.0, 0.0, 0.0)}
    state = state_with(policy, rows)
    state.plug_in.price[0] = 2.0
    assert [squares(state.arms, KIND, option, 2.0) for option in rows] == [5.0, 20.0, 4.0]
    pooled = 29.0 / (3 + 15 + 8)
    assert pooled_variance(state.arms, KIND, indices(*rows), 2.0) == pytest.approx(pooled)
    drawn = []
    for draw, (option, (pulls, reward, cost, *_)) in enumerate(rows.items()):
        variance = (squares(state.arms, KIND, option, 2.0) + 3.0 * pooled) / (pulls - 1 + 3)
        drawn.append((reward - 2.0 * cost + math.sqrt(variance / pulls) * normals(RNG, draw)[0], option))
    best = max(drawn)[1]
    assert choose(policy, state, *rows) == (best, *rows[best][1:3])
    assert choose(policy, state, 1, *rows) == (1, 0.0, 0.0)  # never tried


def test_plug_in_thompson_begins_with_two_tries_of_every_option() -> None:
    policy, once = PlugTs(), {0: (1, 1.0, 2.0), 2: (2, 1.5, 2.5)}
    state = state_with(policy, once)
    assert choose(policy, state, 2, 0).option == 0
    assert (
        choose(policy, state, 2, 0, pending=np.array([1, 0, 0, 0], np.uint32)).option == 2
    )  # its second try is running
    assert choose(PlugTs(first_tries=1), state, 0, 2).option == 2  # at price 0, without any variance yet
    assert pooled_variance(state.arms, KIND, indices(0), 1.0) == 0.0
    assert squares(state_with(policy, {0: (4, 1.0, 1.0, 1.0, 1.0, 2.0)}).arms, KIND, 0, 1.0) == 0.0  # not below 0
    policy.learn(state, KIND, Decision(0, 0.0, 0.0), 3.0, 2.0, RNG)
    assert state.plug_in.price[0] == 1.0  # of (2, 2) and (1.5, 2.5), the first at price 0


def test_the_fixed_option_is_taken_or_else_the_first() -> None:
    policy = FixedOption(2)
    state = policy.init(2, 4)
    assert choose(policy, state, 3, 2, 1) == (2, 0.0, 0.0)
    assert choose(policy, state, 3, 1) == (3, 0.0, 0.0)
    assert choose(FixedOption(), state, 3, 0) == (0, 0.0, 0.0)


def test_a_random_option_is_the_one_under_the_draw() -> None:
    policy = RandomOption()
    state = policy.init(2, 4)
    for task in range(1, 20):
        rng = Rng(2, task)
        assert choose(policy, state, 3, 1, 0, rng=rng) == ((3, 1, 0)[int(3 * uniform(rng, 0))], 0.0, 0.0)


@pytest.mark.parametrize("policy", [FixedOption(2), RandomOption()])
def test_who_learns_nothing_counts_tasks(policy: Any) -> None:
    state = policy.init(2, 4)
    policy.learn(state, KIND, Decision(0, 0.0, 0.0), 1.0, 1.0, RNG)
    policy.learn(state, KIND, Decision(0, 0.0, 0.0), 1.0, 1.0, RNG)
    policy.observe(state, KIND, 0, 1.0, 1.0, RNG)
    assert state.tasks.tolist() == [2.0]
    assert policy.judge(state, KIND, 3) == (3, 0.0, 0.0)
