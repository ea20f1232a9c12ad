"""Worlds of the arena that no problem file can describe: coins, tails without variance, options that start slowly."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from worthwhile import Environment, Problem
from worthwhile.problem import Noise
from worthwhile.simulation.environments.base import cumulative, draw_kinds
from worthwhile.simulation.environments.synthetic import GaussianWorld, quantile, synthetic
from worthwhile.state import Floats, Indices

SILENT = Noise(sd=0.0)  # of problems whose world, not they themselves, knows the noise
REWARD_TAIL, COST_TAIL = 2.2, 2.1  # degrees of freedom of Student's t, and Pareto's α: a variance, but hardly


class Coin(NamedTuple):
    """A result that is `high` with some chance, else `low`; a sure one is a coin with one face."""

    low: float
    high: float
    chance: float

    @property
    def mean(self) -> float:
        return self.low + self.chance * (self.high - self.low)


def sure(value: float) -> Coin:
    return Coin(value, value, 0.5)


class CoinWorld(NamedTuple):
    """Rewards and costs that are this or that, costs with log-normal noise on top if there is any."""

    shares: Floats
    reward: Floats  # (kinds, options, 3): low, high, and the normal score above which it is high
    cost: Floats
    spread: float  # of the logarithm of the cost

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        return draw_kinds(self.shares, generator, count), generator.standard_normal((count, 3))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        reward, cost = self.reward[kind, option], self.cost[kind, option]
        noise = math.exp(self.spread * (latent[2] - 0.5 * self.spread))
        return (
            reward[1] if latent[0] > reward[2] else reward[0],
            (cost[1] if latent[1] > cost[2] else cost[0]) * noise,
        )


def coins(name: str, options: Mapping[str, tuple[Coin, Coin]], cost_cv: float = 0.0) -> Environment:
    """One kind, whose options have a coin for the reward and one for the cost."""
    means = {option: (reward.mean, cost.mean) for option, (reward, cost) in options.items()}
    problem = Problem.of({"task": (1.0, means)}, name=name, reward_noise=SILENT, cost_noise=SILENT)
    reward, cost = (
        np.array([[(coin.low, coin.high, -quantile(coin.chance)) for coin in column]])
        for column in zip(*options.values(), strict=True)
    )
    return Environment(problem, CoinWorld(np.ones(1), reward, cost, math.sqrt(math.log1p(cost_cv**2))))


class HeavyWorld(NamedTuple):
    """Rewards with Student's t and costs with Pareto's noise: a single one can outweigh hundreds."""

    shares: Floats
    reward: Floats  # (kinds, options, 2): mean and what the noise is multiplied by
    cost: Floats

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        kinds, least = draw_kinds(self.shares, generator, count), (COST_TAIL - 1.0) / COST_TAIL  # of a mean of 1
        tails = generator.standard_t(REWARD_TAIL, count), least * (1.0 + generator.pareto(COST_TAIL, count)) - 1.0
        return kinds, np.stack(tails, axis=1)

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        reward, cost = self.reward[kind, option], self.cost[kind, option]
        return reward[0] + reward[1] * latent[0], cost[0] + cost[1] * latent[1]


def heavy_tails(problem: Problem, reward_spread: float) -> Environment:
    """A problem's means with heavy tails; no cost is below half its mean."""
    there = problem.offered
    reward, cost = np.where(there, problem.reward, 0.0), np.where(there, problem.cost, 0.0)
    reward, cost = np.stack([reward, np.where(there, reward_spread, 0.0)], -1), np.stack([cost, cost], -1)
    silent = replace(problem, reward_noise=SILENT, cost_noise=SILENT)
    return Environment(silent, HeavyWorld(cumulative(problem.arrival), reward, cost))


def own_noise(problem: Problem, spread: Floats) -> Environment:
    """A problem's means with Gaussian noise of another size for every option, of reward and cost alike."""
    world = synthetic(problem).world
    assert isinstance(world, GaussianWorld)
    spread = np.where(problem.offered, spread, 0.0)
    reward, cost = (np.stack([means[..., 0], spread], -1) for means in (world.reward, world.cost))
    return Environment(problem, world._replace(reward=reward, cost=cost))


class SlowStartWorld(NamedTuple):
    """The first task of an option costs more: it is imported, compiled, loaded. Later ones have log-normal costs."""

    shares: Floats
    reward: Floats  # (kinds, options, 2): mean and standard deviation
    cost: Floats  # (kinds, options)
    spread: float  # of the logarithm of the cost
    first_call: Floats  # (options,): what the first task costs on top
    used: Floats  # (options,): 1 where that is paid

    def fresh(self) -> SlowStartWorld:
        return self._replace(used=np.zeros(len(self.used)))

    def draw(self, generator: np.random.Generator, count: int) -> tuple[Indices, Floats]:
        return draw_kinds(self.shares, generator, count), generator.standard_normal((count, 2))

    def feedback(self, kind: int, option: int, latent: Floats) -> tuple[float, float]:
        cost = self.cost[kind, option] * math.exp(self.spread * (latent[1] - 0.5 * self.spread))
        cost += self.first_call[option] * (1.0 - self.used[option])
        self.used[option] = 1.0
        return self.reward[kind, option, 0] + self.reward[kind, option, 1] * latent[0], cost


def slow_start(name: str, options: Mapping[str, tuple[float, float, float]], noise: float) -> Environment:
    """One kind, options of {name: (reward, cost, more for the first task)}; noise relative to the means."""
    means = {option: (reward, cost) for option, (reward, cost, _) in options.items()}
    problem = Problem.of({"task": (1.0, means)}, name=name, reward_noise=SILENT, cost_noise=SILENT)
    reward, spread = np.stack([problem.reward, noise * problem.reward], -1), math.sqrt(math.log1p(noise**2))
    first_call = np.array([more for _, _, more in options.values()])
    world = SlowStartWorld(np.ones(1), reward, problem.cost, spread, first_call, np.zeros(len(options)))
    return Environment(problem, world)
