"""How far a scheduler's goal is kept: the means that it limits, the prices that keep them, and what is out of reach."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from worthwhile.formatting import shown
from worthwhile.goals.frontier import Means, plan_of
from worthwhile.goals.goal import Goal
from worthwhile.learning import Sums
from worthwhile.live.log_statistics import score_errors
from worthwhile.live.replica import Replica
from worthwhile.live.summary import GoalSummary, Kept
from worthwhile.live.totals import Totals
from worthwhile.live.validation import Option
from worthwhile.policies.goal_imed import NO_FLOOR, GoalImed, GoalState, has_budget, is_priceless, unit_of
from worthwhile.policies.pursuit import Pursuit, at_its_end

Known = Mapping[tuple[int, int], Sums]  # by kind and option
ENOUGH_REPORTS = 100  # before anything is said to be out of reach
SURE = 2.0  # standard errors
UNKNOWN_ERROR, LEAST = 1e9, 1e-3  # of a reward seen once where nothing else is; the least share of a cost


def goal_summary(replica: Replica) -> GoalSummary | None:
    """What the scheduler aims at and how far that is kept; None if the best ratio is all it is after."""
    policy, goal = replica.fold.policy, replica.goal
    if not isinstance(policy, GoalImed) or not goal.constrained:
        return None
    kept = list(all_kept(policy, replica.fold.state.learned, replica.kinds.texts))
    return GoalSummary(goal.goal, goal.floors or goal.total_floor, goal.budget, goal.words(), kept)


def judged_by_cost(replica: Replica, price: float | None) -> bool:
    """Whether cost alone decides at a price, because a floor is kept whatever is chosen, or a budget cannot be."""
    policy, state = replica.fold.policy, replica.fold.state.learned
    return isinstance(policy, GoalImed) and price is not None and bool(is_priceless(state, price))


def all_kept(policy: GoalImed, state: GoalState, kinds: Sequence[str]) -> Iterator[Kept]:
    """Every mean that is to be kept."""
    unit = unit_of(state)
    for number in map(int, policy.floor_kinds):
        yield one_kept("floor", kinds[number], float(state.floor[number]), state.for_floor, number, unit)
    if policy.floor > NO_FLOOR:
        yield one_kept("floor", None, policy.floor, state.for_floor, 0, unit)
    if has_budget(policy):
        yield one_kept("budget", None, policy.budget, state.for_budget, 0, unit)


def one_kept(limit: str, kind: str | None, wanted: float, pursuit: Pursuit, at: int, unit: float) -> Kept:
    """The mean that a floor or a budget is about, of the tasks that have reported since it was set."""
    tasks = int(pursuit.tasks[at])
    mean, recent = (float(pursuit.came[at]) / tasks, float(pursuit.recent[at])) if tasks else (None, None)
    slack = tasks > 0 and at_its_end(pursuit, at, unit) == (1 if limit == "floor" else -1)
    return Kept(limit, kind, float(wanted), mean, recent, tasks, float(pursuit.price[at]), slack)


def out_of_reach(
    goal: Goal, kinds: Sequence[str], options: Sequence[Option], totals: Totals, moments: Known
) -> list[str]:
    """What no choice can keep, as far as that is certain; in words, with what can be reached."""
    known = goal_among(goal, [kinds[kind] for kind in sorted({kind for kind, _ in moments})])
    if known is None or totals.pulls.sum() < ENOUGH_REPORTS:
        return []
    likely, at_best = (means_so_far(kinds, options, totals, moments, errors) for errors in (0.0, SURE))
    return list(plan_of(likely, known).infeasible) if plan_of(at_best, known).infeasible else []


def never_seen(goal: Goal, kinds: Sequence[str], totals: Totals) -> list[str]:
    """Kinds that have a floor and no task, once others have many: perhaps misspelt."""
    attempts = dict(zip(kinds, totals.pulls.sum(axis=1).tolist(), strict=True))
    return [kind for kind in goal.floors if not attempts.get(kind) and sum(attempts.values()) >= ENOUGH_REPORTS]


def best_mixes(
    goal: Goal, kinds: Sequence[str], options: Sequence[Option], totals: Totals, moments: Known
) -> dict[str, dict[str, float]]:
    """By kind, the options that are best to take under a goal, and how often each: at a kink, two of them in turn."""
    known = goal_among(goal, [kinds[kind] for kind in sorted({kind for kind, _ in moments})])
    if known is None:
        return {}
    means = means_so_far(kinds, options, totals, moments)
    shares = plan_of(means, known).shares
    return {
        kind: {option: float(share) for option, share in zip(means.options, row, strict=True) if share > 0.0}
        for kind, row in zip(means.kinds, shares, strict=True)
    }


def goal_among(goal: Goal, kinds: Sequence[str]) -> Goal | None:
    """The goal as far as it concerns these kinds; None if it does not."""
    floor = {kind: floor for kind, floor in goal.floors.items() if kind in kinds} if goal.floors else goal.floor
    floor = None if floor == {} else floor  # a floor of 0 is one
    if not kinds or (floor is None and (goal.budget is None or goal.goal == "cost")):
        return None
    return Goal(goal.goal, floor, goal.budget)


def means_so_far(
    kinds: Sequence[str], options: Sequence[Option], totals: Totals, moments: Known, errors: float = 0.0
) -> Means:
    """What options bring and cost a task that may fail: the means so far, or better by so many standard errors."""
    seen, tried = sorted({kind for kind, _ in moments}), sorted({option for _, option in moments})
    reward, cost = np.full((2, len(seen), len(tried)), np.nan)
    for row, kind in enumerate(seen):
        arms = [(kind, option) for option in tried if (kind, option) in moments]
        reward_errors = score_errors([moments[arm] for arm in arms], 0.0)
        for arm, error in zip(arms, reward_errors, strict=True):
            results, mean_reward, mean_cost, _, cost_squares, _ = moments[arm]
            share = results / (results + float(totals.failed[arm]))
            cost_error = math.sqrt(cost_squares / max(results - 1.0, 0.1) / results)
            paid = mean_cost + float(totals.failed_cost[arm]) / results
            cell = row, tried.index(arm[1])
            reward[cell] = share * mean_reward + errors * (error if math.isfinite(error) else UNKNOWN_ERROR)
            cost[cell] = share * max(paid - errors * cost_error, LEAST * paid)
    shares = totals.pulls.sum(axis=1)[seen]
    names = tuple(kinds[kind] for kind in seen), tuple(shown(options[option]) for option in tried)
    return Means(*names, shares / max(shares.sum(), 1.0), reward, cost)
