"""DECISION MODULE: the option with the best reward − price·cost, and two ways to learn the price θ; Eq. (7)-(8)."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.learning import Arms, Bounds, optimistic
from worthwhile.state import Floats, Indices


class Decision(NamedTuple):
    """The option chosen and the estimates it was chosen for; they travel with the task to `learn`."""

    option: int
    reward_estimate: float
    cost_estimate: float


# No option yet. Of the type that options have, or numba would not let `best` begin with it and hold an option later.
NOTHING = Decision(np.uint32(0xFFFFFFFF), 0.0, 0.0)  # type: ignore[arg-type]


def most_promising(
    bounds: Bounds, arms: Arms, price: float, kind: int, options: Indices, pending: Indices, explore_first: bool = False
) -> Decision:
    """The option with the largest r̂ − θ·č; the first of equals. `explore_first` takes what was never tried at once."""
    best, best_score = NOTHING, -math.inf
    for option in options:
        reward, cost = optimistic(bounds, arms, kind, option)  # r̂ and č, Eq. (2)-(3)
        score = reward - price * cost  # Eq. (7)
        if explore_first and arms.pulls[kind, option] + pending[option] == 0.0:
            score = math.inf  # here, because a search before the loop makes it half as slow again, wanted or not
        if score > best_score:
            best, best_score = Decision(option, reward, cost), score
    return best


def robbins_monro(price: float, step: float, reward: float, cost: float, low: float, high: float) -> float:
    """One step towards the root of E[reward − price·cost], kept in [low, high]; Eq. (8)."""
    return min(high, max(low, price + step * (reward - price * cost)))


class PlugIn(NamedTuple):
    """The price as a fixed point over all kinds, kept up to date in O(options) per task.

    Each kind contributes (arrivals · reward, arrivals · cost) of its best option under the current price. A task
    refreshes its own kind and one other in turn; the price is the quotient of the totals (Dinkelbach, step by step).
    """

    price: Floats  # (1,)
    total_reward: Floats  # (1,)
    total_cost: Floats  # (1,)
    arrivals: Floats  # (kinds,)
    reward: Floats  # (kinds,)
    cost: Floats  # (kinds,)
    known: Indices  # (kinds,) kinds in the order of their first arrival
    known_kinds: npt.NDArray[np.int64]  # (1,)
    turn: npt.NDArray[np.int64]  # (1,)


def new_plug_in(kinds: int) -> PlugIn:
    """No arrivals yet; the price is 0."""
    price, total_reward, total_cost = np.zeros((3, 1))
    arrivals, reward, cost = np.zeros((3, kinds))
    known_kinds, turn = np.zeros((2, 1), np.int64)
    known = np.zeros(kinds, np.uint32)
    return PlugIn(price, total_reward, total_cost, arrivals, reward, cost, known, known_kinds, turn)


def arrive(plug_in: PlugIn, kind: int, weight: float = 1.0) -> int:
    """Count an arrival, as `weight` of them; returns the other kind whose turn it is to be refreshed."""
    if plug_in.arrivals[kind] == 0.0:
        plug_in.known[plug_in.known_kinds[0]] = kind
        plug_in.known_kinds[0] += 1
    plug_in.arrivals[kind] += weight
    plug_in.turn[0] += 1
    if plug_in.turn[0] >= plug_in.known_kinds[0]:
        plug_in.turn[0] = 0
        sum_up(plug_in)
    return plug_in.known[plug_in.turn[0]]  # type: ignore[no-any-return]


def sum_up(plug_in: PlugIn) -> None:
    """Add the totals up anew, once per full turn: running differences lose digits."""
    reward, cost = 0.0, 0.0
    for position in range(plug_in.known_kinds[0]):
        kind = plug_in.known[position]
        reward += plug_in.reward[kind]
        cost += plug_in.cost[kind]
    plug_in.total_reward[0] = reward
    plug_in.total_cost[0] = cost


def contribute(plug_in: PlugIn, kind: int, reward: float, cost: float) -> None:
    """Replace what this kind's best option brings and costs."""
    reward *= plug_in.arrivals[kind]
    cost *= plug_in.arrivals[kind]
    plug_in.total_reward[0] += reward - plug_in.reward[kind]
    plug_in.total_cost[0] += cost - plug_in.cost[kind]
    plug_in.reward[kind] = reward
    plug_in.cost[kind] = cost


def settle(plug_in: PlugIn) -> None:
    """The price is the quotient of the totals; kept as it was while the total cost is not positive."""
    if plug_in.total_cost[0] > 0.0:
        plug_in.price[0] = plug_in.total_reward[0] / plug_in.total_cost[0]


def scale_plug_in(plug_in: PlugIn, scale: float, least: float) -> None:
    """Every arrival weighs `scale` times as much, but a kind that ever arrived weighs at least `least`."""
    for kind in range(len(plug_in.arrivals)):
        if plug_in.arrivals[kind] > 0.0:
            plug_in.arrivals[kind] = max(plug_in.arrivals[kind] * scale, least)
        plug_in.reward[kind] *= scale
        plug_in.cost[kind] *= scale
    plug_in.total_reward[0] *= scale
    plug_in.total_cost[0] *= scale
