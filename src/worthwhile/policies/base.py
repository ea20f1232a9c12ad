"""What every policy offers, and what a policy may be told about a problem before it starts."""

from __future__ import annotations

import math
from typing import Any, NamedTuple, Protocol

import numpy as np

from worthwhile.decision import Decision
from worthwhile.errors import BadParameter
from worthwhile.optimum import bounds_of, solve
from worthwhile.problem import Problem
from worthwhile.rng import Rng
from worthwhile.state import Floats, Indices


class Policy(Protocol):
    """A NamedTuple of parameters with these methods, in plain scalar Python; see docs/extend.md.

    The state is a NamedTuple of arrays shaped (1,), (kinds,) or (kinds, options); `choose` and `judge` never write.
    """

    def init(self, kinds: int, options: int) -> Any:
        """The state before the first task, with room for so many kinds and options."""

    def choose(self, state: Any, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        """The option to take; pending[option] counts this kind's tasks that are running right now."""

    def judge(self, state: Any, kind: int, option: int) -> Decision:
        """The estimates this policy has for one given option."""

    def learn(self, state: Any, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        """A task has reported."""

    def observe(self, state: Any, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        """A side observation: means move; task count, arrivals and the price's step do not."""


class Known(NamedTuple):
    """The truth about a problem. Policies that must be told some of it have fields of these names."""

    horizon: int
    reward_min: float
    reward_max: float
    cost_min: float
    cost_max: float
    price_min: float
    price_max: float
    best_ratio: float
    mean_reward: Floats
    mean_cost: Floats
    options: tuple[str, ...]


def known(problem: Problem, horizon: int) -> Known:
    """Exact bounds, means and optimum of a problem."""
    bounds = bounds_of(problem)
    reward, cost = np.where(problem.offered, problem.reward, 0.0), np.where(problem.offered, problem.cost, 0.0)
    return Known(horizon, *bounds, solve(problem).ratio, reward, cost, problem.options)


def check_parameters(policy: Any) -> None:
    """Refuse parameters that no policy can work with."""
    name = type(policy).__name__
    for field, value in policy._asdict().items():
        if isinstance(value, int | float) and not math.isfinite(value):
            raise BadParameter(f"{name}: {field} = {value}; it must be a finite number")
        if field in ("horizon", "cost_min", "cost_max", "caution") and value <= 0:
            raise BadParameter(f"{name}: {field} = {value}; it must be above 0")
        if field in ("noise", "rho", "exploration") and value < 0:
            raise BadParameter(f"{name}: {field} = {value}; it must be 0 or more")
        if field == "half_life" and value != 0 and value < 1:
            raise BadParameter(f"{name}: half_life = {value}; give a number of tasks, at least 1, or 0 for no fading")
    if getattr(policy, "price_min", 0) > getattr(policy, "price_max", math.inf):
        raise BadParameter(f"{name}: price_min = {policy.price_min} is above price_max = {policy.price_max}")
