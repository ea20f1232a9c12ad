"""LEARNING MODULE: what is known of every (kind, option), and how far it can be trusted; Eq. (2)-(6)."""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from worthwhile.state import Floats


class Arms(NamedTuple):
    """Pulls N and running means R̄, C̄ of every (kind, option)."""

    pulls: Floats
    mean_reward: Floats
    mean_cost: Floats


class Moments(NamedTuple):
    """Arms with their centred second moments: Σ(R−R̄)², Σ(C−C̄)², Σ(R−R̄)(C−C̄)."""

    pulls: Floats
    mean_reward: Floats
    mean_cost: Floats
    reward_squares: Floats
    cost_squares: Floats
    products: Floats


Sums = tuple[float, float, float, float, float, float]  # the Moments of one option, in their order
UNKNOWN: Sums = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)


class Bounds(Protocol):
    """What optimism must be told; every policy of the DOL family has these fields."""

    @property
    def horizon(self) -> int: ...
    @property
    def reward_max(self) -> float: ...
    @property
    def cost_min(self) -> float: ...
    @property
    def noise(self) -> float: ...


def new_arms(kinds: int, options: int) -> Arms:
    """No pulls yet."""
    return Arms(*(np.zeros((kinds, options)) for _ in Arms._fields))


def new_moments(kinds: int, options: int) -> Moments:
    """No pulls yet."""
    return Moments(*(np.zeros((kinds, options)) for _ in Moments._fields))


def record(arms: Arms, kind: int, option: int, reward: float, cost: float) -> None:
    """One more pull, in plain running means."""
    before = arms.pulls[kind, option]
    pulls = before + 1.0
    arms.pulls[kind, option] = pulls  # Eq. (4)
    arms.mean_reward[kind, option] = (arms.mean_reward[kind, option] * before + reward) / pulls  # Eq. (5)
    arms.mean_cost[kind, option] = (arms.mean_cost[kind, option] * before + cost) / pulls  # Eq. (6)


def record_moments(arms: Moments, kind: int, option: int, reward: float, cost: float, weight: float = 1.0) -> None:
    """One more pull, with second moments."""
    pulls, mean_reward, mean_cost, reward_squares, cost_squares, products = arms
    arm = kind, option
    before = pulls[arm], mean_reward[arm], mean_cost[arm], reward_squares[arm], cost_squares[arm], products[arm]
    after = one_more(before, reward, cost, weight)
    pulls[arm], mean_reward[arm], mean_cost[arm], reward_squares[arm], cost_squares[arm], products[arm] = after


def one_more(moments: Sums, reward: float, cost: float, weight: float) -> Sums:
    """The moments of one option after one more pull (Welford; West, 1979, where pulls have weights)."""
    pulls, mean_reward, mean_cost, reward_squares, cost_squares, products = moments
    pulls += weight
    share = weight / pulls
    reward_before = reward - mean_reward
    cost_before = cost - mean_cost
    mean_reward += reward_before * share
    mean_cost += cost_before * share
    reward_after = weight * (reward - mean_reward)
    cost_after = weight * (cost - mean_cost)
    reward_squares += reward_before * reward_after
    cost_squares += cost_before * cost_after
    products += reward_before * cost_after
    return pulls, mean_reward, mean_cost, reward_squares, cost_squares, products


def forget(arms: Moments, kind: int, option: int) -> None:
    """As if the option had never been pulled."""
    pulls, mean_reward, mean_cost, reward_squares, cost_squares, products = arms
    arm = kind, option
    pulls[arm] = mean_reward[arm] = mean_cost[arm] = reward_squares[arm] = cost_squares[arm] = products[arm] = 0.0


def scale_moments(arms: Moments, scale: float, least: float) -> None:
    """Every pull weighs `scale` times as much, but an option that was ever pulled weighs at least `least`."""
    pulls, _, _, reward_squares, cost_squares, products = arms
    for kind in range(pulls.shape[0]):
        for option in range(pulls.shape[1]):
            if pulls[kind, option] > 0.0:
                pulls[kind, option] = max(pulls[kind, option] * scale, least)
            reward_squares[kind, option] *= scale
            cost_squares[kind, option] *= scale
            products[kind, option] *= scale


def confidence_width(pulls: float, horizon: int) -> float:
    """√(log T / N)."""
    return math.sqrt(math.log(horizon) / pulls)


def optimistic(bounds: Bounds, arms: Arms, kind: int, option: int) -> tuple[float, float]:
    """The reward's upper and the cost's lower confidence bound; the best possible before the first pull."""
    pulls = arms.pulls[kind, option]
    if pulls == 0.0:
        return bounds.reward_max, bounds.cost_min
    width = bounds.noise * confidence_width(pulls, bounds.horizon)
    reward = min(bounds.reward_max, arms.mean_reward[kind, option] + width)  # r̂, Eq. (2)
    cost = max(bounds.cost_min, arms.mean_cost[kind, option] - width)  # č, Eq. (3)
    return reward, cost
