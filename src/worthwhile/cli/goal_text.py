"""What `worthwhile solve` says of a floor or a budget: the mix that is best, its prices, and what else there is."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from worthwhile.cli.text import Facts, earned_text, first_kinds
from worthwhile.formatting import amount, digits, table, titled
from worthwhile.goals.frontier import ROUNDING, frontier_of, plan_of
from worthwhile.goals.goal import Goal
from worthwhile.optimum import Optimum
from worthwhile.simulation.results import Results

KEPT = 0.005  # of a limit: closer than that is chance


def goal_facts(facts: Facts, best: Optimum) -> Facts:
    """The facts of a problem, where there is a floor or a budget: of every kind its mix, and other rules to compare."""
    kinds = [{**kind, **mix_facts(best, row)} for row, kind in enumerate(facts["kinds"])]
    return {**facts, "kinds": kinds, "rules": alternatives(best), "bound": None}


def mix_facts(best: Optimum, row: int) -> Facts:
    """What one kind brings and costs under the goal, and the floor that it has of its own."""
    shares, means = best.shares[row], best.means
    taken = np.flatnonzero(shares)
    reward, cost = (float(shares[taken] @ values[row, taken]) for values in (means.reward, means.cost))
    return {"reward_per_task": reward, "cost_per_task": cost, "floor": best.goal.floors.get(means.kinds[row])}


def alternatives(best: Optimum) -> dict[str, Facts]:
    """What one would do without floor and budget: reward, cost and ratio of each."""
    ratio, ends = plan_of(best.means, Goal()), frontier_of(best.means)
    pairs = {
        "best ratio": (ratio.reward, ratio.cost),
        "cheapest option": (float(ends.reward[0]), float(ends.cost[0])),
        "most reward": (float(ends.reward[-1]), float(ends.cost[-1])),
    }
    return {
        name: {"reward_per_task": reward, "cost_per_task": cost, "ratio": reward / cost}
        for name, (reward, cost) in pairs.items()
    }


def goal_text(facts: Facts) -> str:
    """The answer to `worthwhile solve` with a floor or a budget."""
    unit, kinds = facts["units"], facts["kinds"]
    parts = [
        f"{facts['problem']}: {facts['goal_in_words']}\n{earned_text(facts)}, a ratio of "
        f"{amount(facts['ratio'], unit['ratio'])}",
        first_kinds(mixes_table, kinds, unit),
        price_text([kind["price"] for kind in kinds], unit["ratio"]),
        alternatives_table(facts),
        *slack_text(facts),
        *(f"Advice: {words}" for words in facts["advice"]),
    ]
    return "\n\n".join(parts)


def mixes_table(kinds: Sequence[Facts], unit: Facts) -> str:
    """One row per kind: what to take, and what that brings; floors and prices where kinds have their own."""
    columns = {
        "kind": [kind["kind"] for kind in kinds],
        "take": [mix_text(kind["shares"]) for kind in kinds],
        "arrival": [f"{100 * kind['arrival']:.4g} %" for kind in kinds],
        titled("reward", unit["reward"]): [digits(kind["reward_per_task"]) for kind in kinds],
        titled("cost", unit["cost"]): [digits(kind["cost_per_task"]) for kind in kinds],
    }
    if any(kind["floor"] is not None for kind in kinds):
        columns["floor"] = ["–" if kind["floor"] is None else f"{kind['floor']:g}" for kind in kinds]
    if len({kind["price"] for kind in kinds}) > 1:
        columns["price"] = ["∞" if math.isinf(kind["price"]) else digits(kind["price"]) for kind in kinds]
    return table([*columns], list(zip(*columns.values(), strict=True)), left=(0, 1))


def mix_text(shares: dict[str, float]) -> str:
    """The option, or two of them with their shares, the more frequent one first."""
    if len(shares) == 1:
        return next(iter(shares))
    ordered = sorted(shares.items(), key=lambda item: -item[1])
    return ", ".join(f"{100 * share:.3g} % {option}" for option, share in ordered)


def price_text(prices: list[float], unit: str) -> str:
    """What the price means."""
    judged = "Options are judged by reward − price·cost"
    if len(set(prices)) > 1:
        return f"{judged}, each kind at its own price{'; ∞: by the cost alone' * (math.inf in prices)}."
    if math.isinf(prices[0]) or prices[0] == 0.0:
        size, what = ("0", "reward") if prices[0] == 0.0 else ("infinite", "cost")
        return f"{judged}; the price is {size} here: by the {what} alone."
    return f"{judged}; the price is {amount(prices[0], unit)}."


def alternatives_table(facts: Facts) -> str:
    """The goal beside what one would do without floor and budget."""
    unit = facts["units"]
    rows = [
        [name, digits(rule["reward_per_task"]), digits(rule["cost_per_task"]), digits(rule["ratio"])]
        for name, rule in {"this goal": facts, **facts["rules"]}.items()
    ]
    return table(["rule", *(titled(name, unit[name]) for name in ("reward", "cost", "ratio"))], rows)


def slack_text(facts: Facts) -> Iterator[str]:
    """Limits that are kept without being asked for."""
    floor, budget = facts["goal"]["floor"], facts["goal"]["budget"]
    if isinstance(floor, float) and facts["reward_per_task"] > floor + ROUNDING * abs(floor):
        yield "The floor makes no difference: what is best without it stays above it."
    if budget is not None and facts["cost_per_task"] < budget * (1.0 - ROUNDING):
        yield "The budget makes no difference: what is best without it costs less."


def results_facts(facts: Facts, results: Results, best: Optimum) -> Facts:
    """What every policy brought and cost, beside the best that keeps the goal; those that keep it first."""
    tasks, last = int(results.marks[-1]), (slice(None), slice(None), -1)
    rewards, costs = (results.measure(name)[last] / tasks for name in ("reward", "cost"))
    policies: list[Facts] = []
    for column, policy in enumerate(results.policies):
        reward, cost = float(rewards[:, column].mean()), float(costs[:, column].mean())
        policies.append({"policy": policy, "reward_per_task": reward, "cost_per_task": cost, "ratio": reward / cost})
        policies[-1]["missed_by"] = missed_by(best.goal, reward, cost)
    policies.sort(key=lambda policy: (max(policy["missed_by"] or 0.0, KEPT), by_goal(best.goal, policy)))
    goal = {"goal": best.goal.to_json(), "goal_in_words": best.goal.words(), "advice": best.advice}
    earned = {"reward_per_task": best.reward, "cost_per_task": best.cost, "ratio": best.ratio}
    return {**facts, **goal, "best": earned, "policies": policies}


def missed_by(goal: Goal, reward: float, cost: float) -> float | None:
    """How far a floor or a budget of all tasks is missed, as a share of it; None if floors are of single kinds."""
    if goal.floors:
        return None
    short = 0.0 if not goal.total_floor else (goal.total_floor - reward) / abs(goal.total_floor)
    over = 0.0 if goal.budget is None else cost / goal.budget - 1.0
    return max(0.0, short, over)


def by_goal(goal: Goal, policy: Facts) -> float:
    """Less is better."""
    aims = {"cost": policy["cost_per_task"], "reward": -policy["reward_per_task"], "ratio": -policy["ratio"]}
    value: float = aims[goal.goal]
    return value


def results_text(facts: Facts) -> str:
    """The answer to `worthwhile simulate` and `worthwhile replay` with a floor or a budget."""
    unit, columns = facts["units"], ("reward_per_task", "cost_per_task", "ratio")
    rows = [
        [policy["policy"], *(digits(policy[name]) for name in columns), miss_text(policy["missed_by"])]
        for policy in facts["policies"]
    ]
    rows.append(["optimum", *(digits(facts["best"][name]) for name in columns), ""])
    head = ["policy", *(titled(name, unit[name]) for name in ("reward", "cost", "ratio")), "goal"]
    said = f"{facts['problem']}: {facts['goal_in_words']}; {facts['tasks']:,} tasks × {facts['runs']:,} runs\n"
    legend = "\nreward, cost: per task, on average over the runs. Only the default knows of the goal."
    return "\n".join([said, table(head, rows), legend, *(f"Advice: {words}" for words in facts["advice"])])


def miss_text(missed: float | None) -> str:
    return "by kind" if missed is None else "kept" if missed <= KEPT else f"missed by {missed:.1%}"
