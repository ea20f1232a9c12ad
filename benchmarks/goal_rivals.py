"""Rivals that are to keep a floor or a budget: by confidence bounds, at one price for ever, and ParetoBandit."""

from __future__ import annotations

import logging
import math
import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from typing import NamedTuple

import numpy as np

from worthwhile import Environment, Problem
from worthwhile.decision import NOTHING, Decision
from worthwhile.learning import Moments, new_moments, record_moments
from worthwhile.policies.failures import count_report
from worthwhile.policies.goal_imed import terms_at
from worthwhile.policies.imed import RatioImed, State, choose_overall, expected, record_arrival, record_result
from worthwhile.policies.omega_ucb import omega, spread
from worthwhile.rng import Rng
from worthwhile.simulation.runs import BLOCK
from worthwhile.state import Floats, Indices

# of ParetoBandit: exploration α and forgetting γ, those that it calls best for a cold start first
SETTINGS = ((0.05, 0.997), (0.05, 1.0), (1.0, 0.997), (1.0, 1.0))


class BoundsState(NamedTuple):
    """Arms with second moments, the tasks of every kind, and of all: how many, their reward and their cost."""

    arms: Moments
    arrivals: Floats
    totals: Floats


class GoalByBounds(NamedTuple):
    """ω*-UCB's bounds under a constraint: who may keep it is judged by its bound, and so is who is best of these.

    A floor: the smallest lower bound of cost among the options whose reward's upper bound reaches it; if there are
    none, the largest upper bound of reward. A budget: the largest upper bound of reward among the options whose cost's
    lower bound is within it; if there are none, the smallest lower bound of cost. Paced, what a task must bring or may
    cost is all that was wanted so far less all that has come.
    """

    wanted: float  # per task
    is_floor: bool
    paced: bool
    reward_max: float
    cost_low: float
    cost_max: float
    reward_low: float = 0.0
    rho: float = 0.25

    def init(self, kinds: int, options: int) -> BoundsState:
        return BoundsState(new_moments(kinds, options), np.zeros(kinds), np.zeros(3))

    def choose(self, state: BoundsState, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        arms, totals, base = state.arms, state.totals, 2.0 * self.rho * math.log(state.arrivals[kind] + 1.0)
        limit, best, best_score, best_within = self.wanted, NOTHING, -math.inf, False
        if self.paced:
            limit = self.wanted * (totals[0] + 1.0) - (totals[1] if self.is_floor else totals[2])
        for option in options:
            n, r, c = arms.pulls[kind, option], arms.mean_reward[kind, option], arms.mean_cost[kind, option]
            if n == 0.0:
                return Decision(option, r, c)
            s_r, s_c = arms.reward_squares[kind, option], arms.cost_squares[kind, option]
            eta_r = spread(n, r, s_r, self.reward_low, self.reward_max, True)
            eta_c = spread(n, c, s_c, self.cost_low, self.cost_max, True)
            _, reward = omega(r, n, eta_r * base, self.reward_low, self.reward_max)
            cost, _ = omega(c, n, eta_c * base, self.cost_low, self.cost_max)
            within = reward >= limit if self.is_floor else cost <= limit
            score = -cost if within == self.is_floor else reward
            if (within and not best_within) or (within == best_within and score > best_score):
                best, best_score, best_within = Decision(option, reward, cost), score, within
        return best

    def judge(self, state: BoundsState, kind: int, option: int) -> Decision:
        return Decision(option, state.arms.mean_reward[kind, option], state.arms.mean_cost[kind, option])

    def learn(self, state: BoundsState, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        state.arrivals[kind] += 1.0
        state.totals[0] += 1.0
        state.totals[1] += reward
        state.totals[2] += cost
        record_moments(state.arms, kind, made.option, reward, cost)

    def observe(self, state: BoundsState, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_moments(state.arms, kind, option, reward, cost)


class FixedPrice(NamedTuple):
    """The default's index for reward − price·cost, at a price that somebody has set once and for all."""

    price: float
    goal: int  # COST or REWARD
    half_life: float = 0.0
    caution: float = 1.0

    def init(self, kinds: int, options: int) -> State:
        return RatioImed().init(kinds, options)

    def choose(self, state: State, kind: int, options: Indices, pending: Indices, rng: Rng) -> Decision:
        return choose_overall(self, state, terms_at(self, self.price), kind, options, pending, rng)

    def judge(self, state: State, kind: int, option: int) -> Decision:
        return expected(state, kind, option)

    def learn(self, state: State, kind: int, made: Decision, reward: float, cost: float, rng: Rng) -> None:
        count_report(state.failures, kind)
        record_result(state, kind, made.option, reward, cost)
        record_arrival(state, kind, self.half_life)

    def observe(self, state: State, kind: int, option: int, reward: float, cost: float, rng: Rng) -> None:
        record_result(state, kind, option, reward, cost)


def prices_of(problem: Problem) -> dict[int, float]:
    """The true mean cost of every option that is on offer, over the kinds that it is offered to."""
    paid, tasks = problem.arrival @ np.nan_to_num(problem.cost), problem.arrival @ problem.offered
    return {int(option): float(paid[option] / tasks[option]) for option in np.flatnonzero(tasks)}


class ParetoBandit:
    """ParetoBandit's LinUCB and budget pacer, put together as its router does, which cannot offer options by kind.

    It is told the kind as a one-hot context, and the true mean cost of every option, where the router has list prices;
    these are also the anchors of its cost scale. There is no fixed penalty beside the pacer, as in its demo.
    """

    def __init__(self, environment: Environment, budget: float, seed: int, alpha: float, forgetting: float) -> None:
        from pareto_bandit import DisjointLinUCBPolicy
        from pareto_bandit.budget_pacer import BudgetPacer
        from pareto_bandit.costs import log_normalize_cost

        logging.getLogger("pareto_bandit").setLevel(logging.ERROR)
        problem = environment.problem
        self.offers = [[str(option) for option in np.flatnonzero(row)] for row in problem.offered]
        self.prices = {str(option): price for option, price in prices_of(problem).items()}
        least, self.dearest = min(self.prices.values()), max(self.prices.values())
        self.penalties = {name: log_normalize_cost(price, least, self.dearest) for name, price in self.prices.items()}
        self.contexts, self.pacer = np.eye(len(problem.kinds)), BudgetPacer(budget)
        self.policy = DisjointLinUCBPolicy([*self.prices], len(problem.kinds), alpha, 1.0, forgetting, seed)

    def choose(self, kind: int) -> int:
        ceiling, offer = self.pacer.get_cost_ceiling_per_1k(self.dearest), self.offers[kind]
        allowed = [name for name in offer if ceiling is None or self.prices[name] <= ceiling] or offer
        penalties = self.pacer.get_extra_cost_penalties({name: self.penalties[name] for name in allowed})
        chosen, _ = self.policy.select_arm(self.contexts[kind], allowed, penalties)
        self.policy.mark_selected(chosen)
        return int(chosen)

    def learn(self, kind: int, option: int, reward: float, cost: float) -> None:
        self.policy.update(str(option), self.contexts[kind], reward, advance_time=False)
        self.pacer.observe(cost)


class Match(NamedTuple):
    """One run of ParetoBandit."""

    environment: Environment
    budget: float
    marks: tuple[int, ...]
    seed: int
    run: int
    setting: tuple[float, float]


def tasks_of_run(environment: Environment, tasks: int, seed: int, run: int) -> tuple[Indices, Floats]:
    """The tasks that `simulate` has in this run, in their order: it draws them in blocks."""
    stream = np.random.SeedSequence(seed, spawn_key=(run,)).spawn(3)[0]
    generator = np.random.Generator(np.random.SFC64(stream))
    blocks = [environment.world.draw(generator, min(BLOCK, tasks - start)) for start in range(0, tasks, BLOCK)]
    return np.concatenate([kinds for kinds, _ in blocks]), np.concatenate([latents for _, latents in blocks])


def play(match: Match) -> Floats:
    """(marks, 2): reward and cost so far."""
    rival = ParetoBandit(match.environment, match.budget, match.seed + match.run, *match.setting)
    kinds, latents = tasks_of_run(match.environment, match.marks[-1], match.seed, match.run)
    came = np.empty((len(kinds), 2))
    for task, (kind, latent) in enumerate(zip(kinds.tolist(), latents, strict=True)):
        option = rival.choose(kind)
        came[task] = match.environment.world.feedback(kind, option, latent)
        rival.learn(kind, option, *came[task].tolist())
    return came.cumsum(axis=0)[np.array(match.marks) - 1]


def play_all(matches: Sequence[Match]) -> list[Floats]:
    """Every match, on all cores."""
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # of these processes: their matrices are small, and they share the cores
    with ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        return list(pool.map(play, matches))
