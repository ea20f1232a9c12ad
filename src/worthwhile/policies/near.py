"""Tasks with features: explore by what is known overall, choose by what is known near the task.

docs/policies.md derives it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from worthwhile.decision import Decision
from worthwhile.learning import Moments
from worthwhile.policies.failures import Failures
from worthwhile.policies.forest import (
    SHRINKAGE,
    TREES,
    Forest,
    Leaves,
    Local,
    Rows,
    gate,
    is_looked_at,
    leaves_of,
    local_of,
    score_forecast,
    success,
    take_in_recent,
    take_in_report,
)
from worthwhile.policies.growing import PRIOR_VARIANCE, grow_trees
from worthwhile.rng import Rng, uniform
from worthwhile.state import Floats, Indices

PENALTY = 0.4  # standard errors of what is known nearby, by which an option is judged lower
FEW = 3.0  # reports with which an option is tried wherever that is due
LOCAL_TRIES = 0.01  # share of what is earned that tries at random places may cost, at most …
IN_FULL = 5000.0  # … after so many reports; much less before, and ever less after them
LEAST_BEHIND = 0.1  # of what a task is worth: an option that seems closer to the best is tried no more often
MOST_LIKELY = 0.5  # chance of such a try
PLACE_DRAW, WAITING_DRAW = 1 << 15, (1 << 15) + 1  # numbers of the random draws for it, and for tries that may wait
WAITING = 0.5  # chance that a try is made though the place looks bad: a better one may never come
POOLED = 0.1  # of the variance of all options, in that of one
MOSTLY = 0.5  # an option that fails more often may work at places where it was hardly tried
PLACE_TRIES = 0.03  # share of the tasks with which such an option has been tried, at most, and how often
MOST_PLACE_TRIES = 128
HARDLY = 6  # tries at tasks that have something in common
LOOKED_AT = 8  # features of a task, for that
LATEST, COMMON = 64, 3  # of so many of the latest reports, so many have what many tasks have


def worth_squares(arms: Moments, kind: int, option: int, price: float) -> float:
    """Σ (beyond the mean)² of R − θC."""
    arm = kind, option
    squares = arms.reward_squares[arm] + price * price * arms.cost_squares[arm] - 2.0 * price * arms.products[arm]
    return max(0.0, float(squares))


def pooled_variance(arms: Moments, kind: int, options: Iterable[int], price: float, weight: float) -> float:
    """The variance of R − θC that the options of a kind have in common."""
    squares, freedom = 0.0, weight
    for option in options:
        more = arms.pulls[kind, option] - weight
        if more > 0.0:
            freedom += more
            squares += worth_squares(arms, kind, option, price)
    return squares / freedom


def can_lead(arms: Moments, failures: Failures, kind: int, option: int) -> bool:
    """Whether an option has reported, and is not benched."""
    return bool(arms.pulls[kind, option] > 0.0 and failures.next_try[kind, option] == 0.0)


def overall_worth(arms: Moments, failures: Failures, kind: int, option: int, price: float) -> float:
    """R̄ − θC̄, failures paid."""
    arm = kind, option
    cost = arms.mean_cost[arm] + failures.unpaid[arm] / arms.pulls[arm]
    return float(arms.mean_reward[arm] - price * cost)


def leader(arms: Moments, failures: Failures, kind: int, options: Iterable[int], price: float) -> int:
    """The option that is best overall; −1 if none has reported."""
    lead, top = -1, -math.inf
    for option in options:
        if can_lead(arms, failures, kind, option):
            worth = overall_worth(arms, failures, kind, option, price)
            if worth > top:
                lead, top = int(option), worth
    return lead


def ahead(near: Local, price: float) -> float:
    """R − θC that trees foretell beyond the mean."""
    return near.reward - price * near.cost


def worth_here(
    arms: Moments, failures: Failures, forest: Forest, near: Local, trusted: float, price: float, kind: int, option: int
) -> float:
    """R − θC that is expected of a completed task: what attempts like it bring, over the chance of one to succeed."""
    usual = success(forest.gates, kind, option, 0.0) * overall_worth(arms, failures, kind, option, price)
    return (usual + trusted * ahead(near, price)) / success(forest.gates, kind, option, trusted * near.failed)


def may_be_best(
    arms: Moments, failures: Failures, forest: Forest, near: Local, trusted: float, kind: int, option: int
) -> bool:
    """Whether an option has reported and is not benched, or is foretold to succeed here, rather than fail."""
    if arms.pulls[kind, option] > 0.0 and failures.next_try[kind, option] > 0.0:
        return success(forest.gates, kind, option, trusted * near.failed) > 0.5
    return can_lead(arms, failures, kind, option)


def choose_near(
    arms: Moments, failures: Failures, forest: Forest, price: float, weight: float,
    kind: int, features: Floats, options: Indices, pending: Indices, made: Decision, rng: Rng,
) -> Decision:  # fmt: skip
    """The option that is best for tasks like this one, if `made` is best overall. If `made` is a try, it is made here,
    unless the option seems further behind here than elsewhere: then it may wait for a better place, with chance ½.
    If it seems to fail here, it waits."""
    lead = leader(arms, failures, kind, options, price)
    if lead < 0 or arms.pulls[kind, made.option] < FEW * weight:
        return made
    leaves = leaves_of(forest, kind, features)
    of_lead = ahead(local_of(forest, leaves, lead, weight), price)
    if made.option != lead:
        near = local_of(forest, leaves, int(made.option), weight)
        beyond = gate(forest.gates, kind, int(made.option), weight) * near.failed
        fails = beyond > 0.0 and beyond >= MOSTLY * (1.0 - forest.gates.failed[kind, made.option])  # 0 if not looked at
        if not fails and (ahead(near, price) >= of_lead or uniform(rng, WAITING_DRAW) < WAITING):
            return made
    hopeful = may_work_here(forest, leaves, weight, kind, features, options, pending)
    if hopeful >= 0:
        option = options[hopeful]
        return Decision(option, arms.mean_reward[kind, option], arms.mean_cost[kind, option])
    best = best_here(arms, failures, forest, leaves, price, weight, kind, options, -1)
    usual = overall_worth(arms, failures, kind, lead, price) + of_lead
    tried = try_here(arms, failures, forest, leaves, price, weight, kind, options, int(best.option), usual, rng)
    return best if tried < 0 else best_here(arms, failures, forest, leaves, price, weight, kind, options, tried)


def may_work_here(
    forest: Forest, leaves: Leaves, weight: float, kind: int, features: Floats, options: Indices, pending: Indices
) -> int:
    """The position of an option that mostly fails, at a task like those at which it worked, or unlike any it was tried
    at; −1 as a rule."""
    gates, rows = forest.gates, forest.rows
    most = min(MOST_PLACE_TRIES, PLACE_TRIES * rows.seen[0])
    for at, option in enumerate(options):
        if not is_looked_at(gates, int(option)):
            continue
        if gates.failed[kind, option] > MOSTLY and pending[option] == 0 and rows.number[option] < most:
            if gates.failed[kind, option] + local_of(forest, leaves, int(option), weight).failed < MOSTLY:
                return at
            for step in range(min(rows.known[0], LOOKED_AT)):  # not the same ones at every task
                feature = (LOOKED_AT * rows.seen[0] + step) % rows.known[0]
                if is_new_to(rows, kind, int(option), feature, features[feature]):
                    return at
    return -1


def is_new_to(rows: Rows, kind: int, option: int, feature: int, number: float) -> bool:
    """Whether many tasks have this number, category or gap, and the option was hardly tried at them."""
    common, tries, used, row = 0, 0, int(rows.used[0]), int(rows.oldest[option])
    for latest in range(max(0, used - LATEST), used):
        common += rows.kind[latest] == kind and is_same(rows.features[latest, feature], number)
    if common < COMMON:
        return False
    for _ in range(rows.number[option]):
        tries += rows.kind[row] == kind and is_same(rows.features[row, feature], number)
        row = int(rows.following[row])
    return bool(tries < HARDLY)


def is_same(number: float, other: float) -> bool:
    """Whether two features are equal, or both missing."""
    return bool(number == other or (math.isnan(number) and math.isnan(other)))


def try_here(
    arms: Moments, failures: Failures, forest: Forest, leaves: Leaves, price: float, weight: float,
    kind: int, options: Indices, best: int, top: float, rng: Rng,
) -> int:  # fmt: skip
    """The option to try at this task, because it may be best at places where nobody has looked; −1 as a rule.

    The further behind it is foretold to be, the less likely: what tries cost is a small share of what is earned.
    """
    seen, worth = float(forest.rows.seen[0]), abs(float(arms.mean_reward[kind, best]))
    early = min(1.0, seen / IN_FULL)
    share = LOCAL_TRIES * early * early * math.sqrt(IN_FULL / (seen + IN_FULL)) / (len(options) - 1.0)
    left = uniform(rng, PLACE_DRAW)
    if worth == 0.0 or left >= MOST_LIKELY * (len(options) - 1.0) or left >= share / LEAST_BEHIND * len(options):
        return -1  # as most often: nothing below could come to more
    for option in options:
        if option != best and can_lead(arms, failures, kind, option):
            here = overall_worth(arms, failures, kind, option, price)
            here += ahead(local_of(forest, leaves, int(option), weight), price)
            left -= min(MOST_LIKELY, share / max((top - here) / worth, LEAST_BEHIND))
            if left < 0.0:
                return int(option)
    return -1


def best_here(
    arms: Moments, failures: Failures, forest: Forest, leaves: Leaves, price: float, weight: float,
    kind: int, options: Indices, tried: int,
) -> Decision:  # fmt: skip
    """The option `tried`, or if that is −1 the best one near the task, by forecasts as far as they proved true."""
    pooled, prior = pooled_variance(arms, kind, options, price, weight), PRIOR_VARIANCE * weight
    best, best_score = Decision(options[0], 0.0, 0.0), -math.inf
    for option in options:
        arm, trusted = (kind, option), gate(forest.gates, kind, int(option), weight)
        near = local_of(forest, leaves, int(option), weight)
        if may_be_best(arms, failures, forest, near, trusted, kind, option) and (tried < 0 or option == tried):
            variance = (worth_squares(arms, kind, option, price) + prior * pooled) / (arms.pulls[arm] + prior)
            doubt = PENALTY * math.sqrt(variance / (near.reports + SHRINKAGE))
            score = worth_here(arms, failures, forest, near, trusted, price, kind, option) - trusted * doubt
            if score > best_score:
                reward, cost = arms.mean_reward[arm] + trusted * near.reward, arms.mean_cost[arm] + trusted * near.cost
                best, best_score = Decision(option, reward, max(0.0, cost)), score
    return best


def learn_near(
    arms: Moments, failures: Failures, forest: Forest, price: float, weight: float,
    kind: int, features: Floats, option: int, reward: float, cost: float, rng: Rng,
) -> None:  # fmt: skip
    """What came of a task with features: judge what trees foretold of it, add it to them, and let the next one grow."""
    every, near, trusted, failed = range(arms.pulls.shape[1]), Local(0.0, 0.0, 0.0, 0.0), 0.0, math.isnan(reward)
    reward = 0.0 if failed else reward
    if is_looked_at(forest.gates, option) and arms.pulls[kind, option] > 0.0 and forest.making.made[0] >= TREES:
        near = local_of(forest, leaves_of(forest, kind, features), option, weight)
        trusted = gate(forest.gates, kind, option, weight)
        pooled = pooled_variance(arms, kind, every, price, weight)
        variance = worth_squares(arms, kind, option, price) / arms.pulls[kind, option] + POOLED * pooled
        score_forecast(forest.gates, near, kind, option, reward, cost, price, variance, weight)
    if forest.making.made[0] >= TREES:
        take_in_recent(forest.gates, kind, reward, cost, failed)
    if not is_looked_at(forest.gates, option):
        return
    believed = 0.0 if option == leader(arms, failures, kind, every, price) else trusted
    take_in_report(forest, near, believed, kind, features, option, reward, cost, 1.0 if failed else 0.0, weight)
    if failed:  # a failure is no result: nothing is taken off it
        forest.ahead_reward[0], forest.ahead_cost[0] = 0.0, 1.0
    grow_trees(forest, price, rng.seed_key)
