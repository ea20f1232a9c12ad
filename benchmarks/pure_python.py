"""The rivals that run in the interpreter: DOL-RM in plain lists and floats, and river's UCB on the same tasks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from river.bandit import UCB

from worthwhile.policies.dol_rm import DolRm


class Table(NamedTuple):
    """A problem as nested lists: the options of every kind, and what is true of each option."""

    options: list[list[int]]
    reward: list[list[float]]
    cost: list[list[float]]
    gaps: list[list[float]]


class Tasks(NamedTuple):
    """Pre-drawn tasks as lists: kinds and the two noises."""

    kinds: list[int]
    reward_noise: list[float]
    cost_noise: list[float]


def dol_rm(policy: DolRm, table: Table, blocks: Sequence[Tasks]) -> Iterator[tuple[list[float], float]]:
    """DOL-RM with the simulator's accounting: the totals and the ratio after each block."""
    reward_max, cost_min = policy.reward_max, policy.cost_min
    price_min, price_max = policy.price_min, policy.price_max
    log_horizon, sqrt = math.log(policy.horizon), math.sqrt
    fixed_step = 1.0 / (cost_min * sqrt(policy.horizon))
    pulls, mean_reward, mean_cost = ([[0.0] * len(row) for row in table.reward] for _ in range(3))
    ratio, count = price_min, 0.0
    totals = [0.0] * 7
    for block in blocks:
        reward_sum = cost_sum = expected_reward = expected_cost = regret = estimated_reward = estimated_cost = 0.0
        for kind, reward_noise, cost_noise in zip(*block, strict=True):
            n, rewards, costs = pulls[kind], mean_reward[kind], mean_cost[kind]
            best, best_score, best_reward, best_cost = -1, -math.inf, 0.0, 0.0
            for option in table.options[kind]:
                if n[option] == 0.0:
                    high, low = reward_max, cost_min
                else:
                    width = sqrt(log_horizon / n[option])
                    high = min(reward_max, rewards[option] + width)
                    low = max(cost_min, costs[option] - width)
                score = high - ratio * low
                if score > best_score:
                    best, best_score, best_reward, best_cost = option, score, high, low
            reward = table.reward[kind][best] + reward_noise
            cost = table.cost[kind][best] + cost_noise
            count += 1.0
            step = 1.0 / (cost_min * (count + 1.0)) if policy.anytime else fixed_step
            ratio = min(price_max, max(price_min, ratio + step * (best_reward - ratio * best_cost)))
            before = n[best]
            n[best] = after = before + 1.0
            rewards[best] = (rewards[best] * before + reward) / after
            costs[best] = (costs[best] * before + cost) / after
            reward_sum += reward
            cost_sum += cost
            expected_reward += table.reward[kind][best]
            expected_cost += table.cost[kind][best]
            regret += table.gaps[kind][best]
            estimated_reward += best_reward
            estimated_cost += best_cost
        sums = (reward_sum, cost_sum, expected_reward, expected_cost, regret, estimated_reward, estimated_cost)
        totals = [total + part for total, part in zip(totals, sums, strict=True)]
        yield totals, ratio


def river_ucb(table: Table, blocks: Sequence[Tasks], seed: int) -> Iterator[float]:
    """River's UCB, one policy per kind, on the same tasks: the reward it has earned after each block."""
    policies = [UCB(delta=1.0, seed=seed + kind) for kind in range(len(table.options))]
    earned = 0.0
    for block in blocks:
        for kind, reward_noise in zip(block.kinds, block.reward_noise, strict=True):
            option = policies[kind].pull(table.options[kind])
            reward = table.reward[kind][option] + reward_noise
            policies[kind].update(option, reward)
            earned += reward
        yield earned
