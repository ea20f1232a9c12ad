"""What simpler rules would have earned with the same tasks: from the means in the log, with how sure that is.

An option's mean is that of tasks which the policy gave it, and it stops giving tasks to what looks bad: after so many
that chance decides. The range of a rule is therefore one that holds whenever one stops, and a rule that rests on fewer
than a handful of results where it matters cannot be told.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from worthwhile.formatting import shown
from worthwhile.learning import UNKNOWN, Sums
from worthwhile.live.advice import listed
from worthwhile.live.completed import failure_cost, failure_error
from worthwhile.live.gain import GainSummary
from worthwhile.live.log_statistics import cautious_errors
from worthwhile.live.summary import Comparison
from worthwhile.live.totals import Totals
from worthwhile.live.validation import Option
from worthwhile.proof.confidence import HANDFUL, sequence
from worthwhile.state import LARGEST, Floats

MATTERS = 0.05  # of the tasks: what a rule may not know without being any less sure
MOST_NAMED = 5  # options in a sentence
TOO_FEW = "too few tries to tell"

Known = Mapping[tuple[int, int], Sums]


class Means(NamedTuple):
    """What is known of every kind and option, NaN where nothing has succeeded; costs are of completed tasks."""

    share: Floats  # (kinds,): of the tasks
    results: Floats
    reward: Floats
    cost: Floats
    moments: Known
    totals: Totals

    @property
    def tried(self) -> npt.NDArray[np.bool_]:
        return np.isfinite(self.reward)

    @property
    def told(self) -> npt.NDArray[np.bool_]:
        """Where there are enough results to tell."""
        return self.tried & (self.results >= HANDFUL)


class Rule(NamedTuple):
    """How often it takes every option of every kind; None if that cannot be told."""

    name: str
    says: str
    weights: Floats | None


def means_of(totals: Totals, moments: Known) -> Means | None:
    """What is known so far; None if that is nothing, or beyond all numbers."""
    reward, cost, results = np.full((3, *totals.pulls.shape), np.nan)
    for arm, (count, mean_reward, mean_cost, *_) in moments.items():
        results[arm], reward[arm] = count, mean_reward
        cost[arm] = mean_cost + failure_cost(float(totals.failed_cost[arm]), count)
    pulls = np.where(np.isfinite(reward).any(axis=1), totals.pulls.sum(axis=1), 0.0)
    tried = np.isfinite(reward)
    if not pulls.any() or cost[tried].max(initial=0.0) > LARGEST:
        return None
    return Means(pulls / pulls.sum(), np.nan_to_num(results), reward, cost, moments, totals)


def comparisons(
    means: Means | None, options: Sequence[Option], benched: Mapping[int, Sequence[str]], achieved: float | None
) -> list[Comparison]:
    """The rules, each with what it would have earned; `benched` has, by option, for which kinds it is."""
    if means is None:
        return []
    rules = best_single(means, options, benched), greedy(means, options), at_random(means, options)
    return [compared(rule, means, achieved) for rule in rules]


def best_single(means: Means, options: Sequence[Option], benched: Mapping[int, Sequence[str]]) -> Rule:
    """Always the same option; a kind of which only one was tried keeps it."""
    choice = means.tried.sum(axis=1) > 1
    everywhere = np.flatnonzero((means.tried | ~choice[:, None]).all(axis=0) & means.tried.any(axis=0)).tolist()
    if not everywhere:
        return Rule("best single option", "no option was tried with every kind that has a choice", None)
    untold_shares, reward, cost = (everywhere_alike(means, choice, cells) for cells in cells_of(means))
    known = [option for option in everywhere if untold_shares[option] <= MATTERS]
    unsure = [option for option in everywhere if option not in known]
    if not known:
        return Rule("best single option", few(options, unsure), None)
    best = max(known, key=lambda option: float(reward[option] / cost[option]))
    kinds = f", benched for {listed(benched[best])} by now" if best in benched else ""
    says = f"always {shown(options[best])}{kinds}{besides(options, unsure)}"
    return Rule("best single option", says, always(means, choice, best))


def cells_of(means: Means) -> tuple[Floats, Floats, Floats]:
    """By kind and option: 1 where there are too few results, mean reward, mean cost; 0 where nothing was tried."""
    untold = np.where(means.tried & ~means.told, 1.0, 0.0)
    return untold, np.where(means.tried, means.reward, 0.0), np.where(means.tried, means.cost, 0.0)


def everywhere_alike(means: Means, choice: npt.NDArray[np.bool_], cells: Floats) -> Floats:
    """What `cells` come to for a task if one option is always taken, for every option at once.

    One array of weights for each option would be kinds × options × options numbers: too many for a large scheduler.
    """
    without = float(means.share[~choice] @ cells[~choice].sum(axis=1))
    return np.asarray((means.share * choice) @ cells + without)


def always(means: Means, choice: npt.NDArray[np.bool_], option: int) -> Floats:
    """The weights of a single option."""
    weights = np.zeros_like(means.reward)
    weights[:, option] = np.where(means.tried[:, option], 1.0, 0.0)
    only = ~choice & means.tried.any(axis=1)
    weights[only] = np.where(means.tried[only], 1.0, 0.0)
    return weights


def greedy(means: Means, options: Sequence[Option]) -> Rule:
    """For each kind alone, its best reward per cost, of what was tried often enough."""
    told, weights = means.told, np.zeros_like(means.reward)
    unsure = np.flatnonzero((means.tried & ~told)[means.share > MATTERS].any(axis=0)).tolist()
    with np.errstate(invalid="ignore"):
        best = np.argmax(np.where(told, means.reward / means.cost, -math.inf), axis=1)
    known = told.any(axis=1)
    weights[known, best[known]] = 1.0
    if means.share[~known].sum() > MATTERS:
        return Rule("per-kind greedy", few(options, unsure), None)
    return Rule("per-kind greedy", f"for each kind alone, its best reward per cost{besides(options, unsure)}", weights)


def at_random(means: Means, options: Sequence[Option]) -> Rule:
    """Any option that has succeeded, equally often."""
    weights = means.tried / np.maximum(means.tried.sum(axis=1, keepdims=True), 1)
    if untold(means, weights) > MATTERS:
        unsure = np.flatnonzero((means.tried & ~means.told)[means.share > 0.0].any(axis=0)).tolist()
        return Rule("random", few(options, unsure), None)
    return Rule("random", "any option that has succeeded, equally often", weights)


def few(options: Sequence[Option], unsure: Sequence[int]) -> str:
    return f"{TOO_FEW} of {named(options, unsure)}" if unsure else TOO_FEW


def besides(options: Sequence[Option], unsure: Sequence[int]) -> str:
    return f"; {few(options, unsure)}" if unsure else ""


def named(options: Sequence[Option], numbers: Sequence[int]) -> str:
    names = [shown(options[number]) for number in numbers[:MOST_NAMED]]
    more = len(numbers) - len(names)
    return listed([*names, f"{more} more"] if more else names)


def untold(means: Means, weights: Floats) -> float:
    """The share of the tasks for which a rule rests on too few results."""
    return float(means.share @ np.where(means.told, 0.0, weights).sum(axis=1))


def earned(means: Means, weights: Floats) -> tuple[float, float]:
    """Reward and cost of a task."""
    reward, cost = (
        float(means.share @ (weights * np.where(means.tried, each, 0.0)).sum(axis=1))
        for each in (means.reward, means.cost)
    )
    return reward, cost


def compared(rule: Rule, means: Means, achieved: float | None) -> Comparison:
    """What the rule would have earned, from … to …"""
    if rule.weights is None:
        return Comparison(rule.name, rule.says, None, None)
    reward, cost = earned(means, rule.weights)
    ratio, half = reward / cost, half_width(means, rule.weights, reward / cost) / cost
    if not math.isfinite(half):
        return Comparison(rule.name, TOO_FEW, None, None)
    return Comparison(rule.name, rule.says, ratio, advantage(achieved, ratio), ratio - half, ratio + half)


def half_width(means: Means, weights: Floats, ratio: float) -> float:
    """Of R − ratio·C of a task, by the errors of all the means that the rule rests on."""
    variance = 0.0
    for kind in np.flatnonzero(weights.any(axis=1)).tolist():
        options = np.flatnonzero(means.tried[kind]).tolist()
        errors = cautious_errors([means.moments.get((kind, option), UNKNOWN) for option in options], ratio)
        for option, error in zip(options, errors, strict=True):
            weight = float(means.share[kind] * weights[kind, option])
            if weight > 0.0:
                variance += (weight * cell_width(means, kind, option, error, ratio)) ** 2
    return math.sqrt(variance)


def cell_width(means: Means, kind: int, option: int, error: float, ratio: float) -> float:
    """How far the mean of an option may be off, whenever its tasks stopped coming."""
    arm = kind, option
    failed, failed_cost = float(means.totals.failed[arm]), float(means.totals.failed_cost[arm])
    results = float(means.results[arm])
    whole = math.hypot(error, failure_error(failed, failed_cost, results) * ratio)
    return 0.0 if whole == 0.0 else sequence(max(results, HANDFUL)) * whole


def advantage(achieved: float | None, ratio: float | None) -> float | None:
    return achieved / ratio - 1.0 if achieved is not None and ratio is not None and ratio > 0.0 else None


def against_baseline(gain: GainSummary | None) -> list[Comparison]:
    """The baseline as one of the rules; its range is that of the gain, seen from the scheduler's ratio."""
    if (
        gain is None
        or gain.measure != "ratio"
        or gain.gain is None
        or gain.ratio is None
        or gain.baseline_ratio is None
    ):
        return []
    low, high = (gain.ratio / (1.0 + end) for end in (gain.gain.high, gain.gain.low))
    says = f"{gain.baseline}, from {gain.held_out:,} held-out tasks; the scheduler's own earned {gain.ratio:.4g}"
    return [Comparison("baseline", says, gain.baseline_ratio, gain.gain.value, low, high)]
