"""Other libraries' bandits that look at features, told what only somebody who knew everything could tell them.

They maximise a reward, not a ratio. So they are told reward − θ*·cost, with the θ* of the best fixed option, brought to
0 … 1 over the whole table as both like it best, and features that are standardised over the whole table.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any, NamedTuple, Protocol

import numpy as np

from feature_worlds import replayed, values_of
from worthwhile import Environment, solve
from worthwhile.state import Floats

VOWPAL, LINUCB = "vowpalwabbit SquareCB", "paretobandit LinUCB"
COMPONENTS = 25  # of paretobandit's own features: whitened principal components
SETTINGS: dict[str, tuple[tuple[Any, ...], ...]] = {  # the best first
    VOWPAL: tuple((f"--squarecb --gamma_scale {scale}",) for scale in (10_000, 10, 100_000)),  # 10 is its default
    LINUCB: ((0.01, COMPONENTS), (0.01, 0), (0.1, COMPONENTS)),  # α: its own, and what it calls safe; 0: all features
}


class Portfolio(NamedTuple):
    """A scenario of one kind as tables: what a task of every item brings and costs with every option."""

    reward: Floats  # (items, options)
    cost: Floats
    told: Floats  # reward − θ*·cost, from 0 to 1
    known: Floats  # (items, features), standardised, 0 where missing


class Rival(Protocol):
    """Somebody else's bandit."""

    def choose(self, item: int) -> int: ...

    def learn(self, item: int, option: int, told: float) -> None: ...


def portfolio(environment: Environment) -> Portfolio:
    """The tables of a scenario."""
    world, options = replayed(environment), np.arange(len(environment.problem.options))
    reward, cost = (values_of(world, 0, options, each).T for each in (world.reward, world.cost))
    worth = reward - solve(environment.problem).ratio * cost
    return Portfolio(reward, cost, (worth - worth.min()) / np.ptp(worth), standardised(world.known))


def standardised(known: Floats) -> Floats:
    """Columns with mean 0 and deviation 1; those that never vary or are always missing are left out."""
    with np.errstate(invalid="ignore"):
        there = np.isfinite(known).any(axis=0)
    columns = known[:, there]
    columns = columns - np.nanmean(columns, axis=0)
    spread = np.nanstd(columns, axis=0)
    return np.nan_to_num(columns[:, spread > 0.0] / spread[spread > 0.0])


def components(known: Floats, count: int) -> Floats:
    """The first principal components, whitened."""
    left, values, _ = np.linalg.svd(known, full_matrices=False)
    return left[:, : min(count, int((values > 1e-9 * values[0]).sum()))] * np.sqrt(len(known))


class SquareCb:
    """Vowpal Wabbit: one linear model for every option, by interactions of its name with the features."""

    def __init__(self, portfolio: Portfolio, seed: int, exploration: str) -> None:
        import vowpalwabbit

        arguments = f"--cb_explore_adf {exploration} -q sa --quiet --random_seed {seed + 1}"
        self.learner, self.generator = vowpalwabbit.Workspace(arguments), np.random.default_rng(seed)
        self.shared = ["shared |s " + " ".join(f"{n}:{x:.5g}" for n, x in enumerate(row)) for row in portfolio.known]
        self.actions = [f"|a o{option}" for option in range(portfolio.cost.shape[1])]
        self.chances = np.zeros(len(self.actions))

    def choose(self, item: int) -> int:
        chances = np.array(self.learner.predict([self.shared[item], *self.actions]))
        self.chances = chances / chances.sum()
        return int(self.generator.choice(len(chances), p=self.chances))

    def learn(self, item: int, option: int, told: float) -> None:
        actions = self.actions.copy()
        actions[option] = f"0:{1.0 - told:.6g}:{self.chances[option]:.6g} {actions[option]}"
        self.learner.learn([self.shared[item], *actions])


class LinUcb:
    """ParetoBandit's policy: a ridge regression for every option."""

    def __init__(self, portfolio: Portfolio, seed: int, alpha: float, count: int) -> None:
        from pareto_bandit import DisjointLinUCBPolicy

        known = components(portfolio.known, count) if count else portfolio.known
        self.known = np.hstack([known, np.ones((len(known), 1))])
        self.options = [str(option) for option in range(portfolio.cost.shape[1])]
        self.policy = DisjointLinUCBPolicy(self.options, self.known.shape[1], alpha, seed=seed)

    def choose(self, item: int) -> int:
        return int(self.policy.select_arm(self.known[item])[0])

    def learn(self, item: int, option: int, told: float) -> None:
        self.policy.update(self.options[option], self.known[item], told)


RIVALS = {VOWPAL: SquareCb, LINUCB: LinUcb}


def items_of_run(environment: Environment, tasks: int, seed: int, run: int) -> list[int]:
    """The items that `simulate` has in this run, in their order."""
    world, stream = replayed(environment), np.random.SeedSequence(seed, spawn_key=(run,)).spawn(3)[0]
    _, latent = world.draw(np.random.Generator(np.random.SFC64(stream)), tasks)
    items: list[int] = (latent[:, 0] * world.items[0]).astype(int).tolist()
    return items


class Match(NamedTuple):
    """One run of one rival in one scenario."""

    environment: Environment
    tasks: int
    seed: int
    run: int
    rival: str
    setting: tuple[Any, ...]


def play(match: Match) -> float:
    """What it earned per cost."""
    tables = portfolio(match.environment)
    rival: Rival = RIVALS[match.rival](tables, match.seed + match.run, *match.setting)
    reward = cost = 0.0
    for item in items_of_run(match.environment, match.tasks, match.seed, match.run):
        option = rival.choose(item)
        reward, cost = reward + tables.reward[item, option], cost + tables.cost[item, option]
        rival.learn(item, option, float(tables.told[item, option]))
    return float(reward / cost)


def play_all(matches: Sequence[Match], processes: int) -> list[float]:
    """Every match, the long ones first."""
    order = sorted(range(len(matches)), key=lambda place: -matches[place].tasks)
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of these processes: their matrices are small, and they share the cores
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        earned = dict(zip(order, pool.map(play, [matches[place] for place in order]), strict=True))
    return [earned[place] for place in range(len(matches))]
