"""When to stop: whether the next steps of a run are worth what they cost, by the runs of its kind before.

With r the reward so far, d what the last step brought, θ the price, and what a step adds to reward and cost as r' − r
and c' − c, going on from step t is worth

    Q_t(r, d) = E[ r' − r − θ (c' − c) + max(0, Q_{t+1}(r', d')) | r, d ]

a linear regression on the runs that have made the step t + 1, from the last step backwards (Longstaff and Schwartz,
2001): it needs no run to the end. The slopes are shrunk to 0 unless they explain more than chance would (James and
Stein): where curves tell nothing, what is left is the mean. A run has a plan, the length that the policy has chosen.
It leaves the plan only if Q says so by more than its standard error, and never before enough runs have been as far as
the plan goes: those are tries. The policy alone would try too little beyond: the runs that come far are the good ones,
so the length where they stop looks better than it is. So a run also makes a step that few have made before, if that has
paid on average, and one run in four does if the step costs little beside what the run has earned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

ENOUGH = 5  # runs that have made a step, to say anything of it
ONE_IN, CHEAP = 4, 0.3  # of the runs that come to a step, one tries the next at this share of what it has earned
SURE = 1.0  # standard errors
BY_CHANCE = 1.0  # what a slope explains by chance, in variances of what is left, and that is taken off
TINY = 1e-12

RunCurve = dict[int, tuple[float, float]]  # reward and cost after a step, by its index
Numbers = NDArray[np.float64]


class Worth(NamedTuple):
    """What going on from a step is worth, as a function of where the run stands."""

    mean: float
    error: float  # of the mean
    centre: Numbers  # of reward and last gain
    slopes: Numbers

    def of(self, states: Numbers) -> Numbers:
        """For many runs: reward and last gain in two columns."""
        values: Numbers = self.mean + (states - self.centre) @ self.slopes
        return values


class Outlook(NamedTuple):
    """What is known of the steps when a run begins: for every one but the last, whether to go on from it."""

    plan: int  # the last step, as the policy has chosen
    worths: list[Worth | None]  # None where too few runs have made the next one
    tries: list[float]  # where few runs have made the next one: what it costs to try that, in rewards

    def goes_on(self, step: int, reward: float, gain: float) -> bool:
        """Whether a run makes another step after this one; all are counted from 0."""
        if step >= len(self.worths):
            return False
        planned, here = step < self.plan, self.worths[step]
        if here is None or (planned and None in self.worths[step : self.plan]):
            return planned or self.tries[step] <= CHEAP * reward
        value = float(here.of(np.array([reward, gain])))
        return value > (-SURE if planned else SURE) * here.error


def as_planned(plan: int) -> Outlook:
    """Where a run may not stop elsewhere."""
    return Outlook(plan, [None] * plan, [math.inf] * plan)


def outlook(plan: int, curves: Sequence[RunCurve], steps: int, price: float) -> Outlook:
    """By the runs so far."""
    rewards, costs = np.full((len(curves), steps), np.nan), np.full((len(curves), steps), np.nan)
    for run, curve in enumerate(curves):
        for step, (reward, cost) in curve.items():
            rewards[run, step], costs[run, step] = reward, cost
    worths: list[Worth | None] = [None] * (steps - 1)
    tries = [math.inf] * (steps - 1)
    for step in range(steps - 2, -1, -1):
        gains = rewards[:, step + 1] - rewards[:, step] - price * (costs[:, step + 1] - costs[:, step])
        made = np.isfinite(gains)
        if made.any() and gains[made].mean() > 0.0:
            tries[step] = -math.inf
        elif made.any() and ONE_IN * (made.sum() + 1) <= np.isfinite(rewards[:, step]).sum():
            tries[step] = price * float((costs[:, step + 1] - costs[:, step])[made].mean())
        if made.sum() >= ENOUGH:
            onward = worths[step + 1] if step + 1 < len(worths) else None
            value = gains[made]
            if onward is not None:
                value = value + np.maximum(onward.of(states(rewards, step + 1)[made]), 0.0)
            worths[step] = regression(states(rewards, step)[made], value)
    return Outlook(plan, worths, tries)


def states(rewards: Numbers, step: int) -> Numbers:
    """Reward and last gain of all runs."""
    last = rewards[:, step] - rewards[:, step - 1] if step else np.zeros(len(rewards))
    return np.column_stack((rewards[:, step], np.nan_to_num(last)))


def regression(given: Numbers, value: Numbers) -> Worth:
    """Least squares, with slopes no steeper than chance leaves them."""
    runs, centre, mean = len(value), given.mean(axis=0), float(value.mean())
    around, rest = given - centre, value - mean
    total, free = float(rest @ rest), runs - 1 - given.shape[1]
    slopes = np.zeros(given.shape[1])
    if free > 0 and total > TINY:
        spread = around.T @ around
        scale = float(np.trace(spread)) + TINY
        slopes = np.linalg.solve(spread + 1e-6 * scale * np.eye(len(spread)), around.T @ rest)
        fitted = around @ slopes
        explained, left = float(fitted @ fitted), float(((rest - fitted) ** 2).sum()) / free
        slopes = slopes * max(0.0, 1.0 - BY_CHANCE * len(slopes) * left / max(explained, TINY))
    return Worth(mean, math.sqrt(total / max(runs - 1, 1) / runs), centre, slopes)
