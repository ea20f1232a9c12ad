"""Plug-in DOL: θ is the optimum of the problem as it looks now, from optimistic estimates and arrival counts."""

from __future__ import annotations

import math
from typing import NamedTuple

from worthwhile.decision import Decision, PlugIn, arrive, contribute, most_promising, new_plug_in, settle
from worthwhile.learning import Arms, Bounds, new_arms, optimistic, record
from worthwhile.policies.base import not_negative, positive
from worthwhile.rng import Rng
from worthwhile.state import Indices


class State(NamedTuple):
    """Arms and the plug-in price."""

    arms: Arms
    plug_in: PlugIn


def best_tried(bounds: Bounds, arms: Arms, price: float, kind: int) -> tuple[float, float]:
    """Optimistic reward and cost of the kind's tried option with the largest r̂ − θ·č; zeros if none was tried."""
    best_reward, best_cost, best_score = 0.0, 0.0, -math.inf
    for option in range(arms.pulls.shape[1]):
        if arms.pulls[kind, option] > 0.0:
            reward, cost = optimistic(bounds, arms, kind, option)
            if reward - price * cost > best_score:
                best_reward, best_cost, best_score = reward, cost, reward - price * cost
    return best_reward, best_cost


def refresh(policy: PlugInDol, state: State, kind: int) -> None:
    """Let the kind contribute its best tried option under the current price."""
    reward, cost = best_tried(policy, state.arms, state.plug_in.price[0], kind)
    contribute(state.plug_in, kind, reward, cost)


class PlugInDol(NamedTuple):
    """DOL with θ solved from the optimistic estimates and the arrivals so far.

    Take it where arrivals are steady and no bounds on θ are known; it must be told the horizon, the largest reward and
    the least cost, and explores for long where noise is small, as DOL-RM does.
    """

    horizon: int
    reward_max: float
    cost_min: float
    noise: float = 1.0

    def check(self) -> None:
        positive(self, "horizon", "cost_min")
        not_negative(self, "noise")

    def init(self, kinds: int, options: int) -> State:
        return State(new_arms(kinds, options), new_plug_in(kinds))

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return most_promising(self, state.arms, state.plug_in.price[0], kind, options, pending)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        reward, cost = optimistic(self, state.arms, kind, option)
        return Decision(option, reward, cost)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, made.option, reward, cost)
        other = arrive(state.plug_in, kind)
        refresh(self, state, kind)
        refresh(self, state, other)
        settle(state.plug_in)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record(state.arms, kind, option, reward, cost)
