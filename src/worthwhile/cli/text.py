"""What the commands say: facts as plain dictionaries, ready for JSON, and the same facts as tables for people."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from worthwhile.errors import BadParameter
from worthwhile.formatting import amount, digits, lost, number, printable, rounded, shown, table, titled
from worthwhile.live.by_features import ByFeatures
from worthwhile.live.explain import Explanation, Judgement, TaskLine
from worthwhile.live.settings import plain
from worthwhile.optimum import Optimum, bounds_of, gap, loss
from worthwhile.policies.base import Known
from worthwhile.policies.features import NOTHING
from worthwhile.policies.registry import DEFAULT, LIST, Listed
from worthwhile.problem import Problem
from worthwhile.simulation.results import Results
from worthwhile.tables import provenance
from worthwhile.theory import sub_gaussian, theorem_bound

Facts = dict[str, Any]
MOST_KINDS = 40  # more rows than this are for --json
NUMBERS = ("task", "reward", "cost", "attempts")  # columns of tasks
SELDOM = ("reason", "attempts", "features")  # shown if a task has any
MOST_SHOWN = 60  # characters of features; `worthwhile explain` has them all
LEGEND = """\
expected ratio: by the true means of the options chosen; it still depends on which kinds happened to arrive
ratio: as drawn, noise included
lost %: the share of θ* that is missing, with the luck of arrivals taken out
±: standard error of the column before it"""


def problem_facts(problem: Problem, best: Optimum, tasks: int) -> Facts:
    """θ*, the best option of every kind, what the obvious rules lose, and what the theorem promises."""
    return {
        "problem": problem.name,
        "units": units(problem),
        "goal": best.goal.to_json(),
        "goal_in_words": best.goal.words(problem.reward_unit, problem.cost_unit),
        "best_ratio": best.best_ratio,
        "ratio": best.ratio,
        "reward_per_task": best.reward,
        "cost_per_task": best.cost,
        "kinds": [kind_facts(problem, best, row) for row in range(len(problem.kinds))],
        "rules": rules(problem, best),
        "degenerate": best.degenerate,
        "suggestions": [suggestion._asdict() for suggestion in best.suggestions],
        "infeasible": list(best.infeasible),
        "advice": best.advice,
        "bound": bound_facts(problem, tasks),
        "provenance": provenance({}),
    }


def bound_facts(problem: Problem, tasks: int) -> Facts | None:
    """What the theorem promises DOL-RM with widths that fit the noise; None where its proof does not hold."""
    try:
        noise = max(1.0, 2.0 * sub_gaussian(problem))
    except BadParameter:
        return None
    if bounds_of(problem).reward_min < 0.0:
        return None
    bound = theorem_bound(problem, tasks, noise)
    return {"tasks": tasks, "noise": noise, "gap": bound.gap, "regret": bound.regret}


def units(problem: Problem) -> Facts:
    """The units that a problem gives its numbers."""
    return {"reward": problem.reward_unit, "cost": problem.cost_unit, "ratio": problem.ratio_unit}


def kind_facts(problem: Problem, best: Optimum, row: int) -> Facts:
    """One kind: how often it arrives, what to take, and what every option of it brings, costs and loses."""
    offered, taken = (np.flatnonzero(marked[row]).tolist() for marked in (problem.offered, best.shares))
    return {
        "kind": problem.kinds[row],
        "arrival": float(problem.arrival[row]),
        "best_option": problem.options[best.best[row]],
        "shares": {problem.options[column]: float(best.shares[row, column]) for column in taken},
        "price": float(best.prices[row]),
        "greedy_option": problem.options[best.greedy[row]],
        "options": {
            problem.options[column]: {
                "reward": float(problem.reward[row, column]),
                "cost": float(problem.cost[row, column]),
                **failure_facts(problem, row, column),
                "regret": float(best.gaps[row, column]),
            }
            for column in offered
        },
    }


def failure_facts(problem: Problem, row: int, column: int) -> Facts:
    """How often an option fails and what that costs, where anything fails."""
    if problem.failure_rate is None or problem.failure_cost is None:
        return {}
    per_task = float(problem.cost_per_completion[row, column])
    return {
        "failure_rate": float(problem.failure_rate[row, column]),
        "failure_cost": float(problem.failure_cost[row, column]),
        "cost_per_completed_task": per_task if math.isfinite(per_task) else None,
    }


def rules(problem: Problem, best: Optimum) -> dict[str, Facts]:
    """What one would do without learning a price: its long-run reward per cost, and the share of θ* that it loses."""
    ratios = {"per-kind greedy": best.greedy_ratio, "cheapest option": best.cheapest_ratio}
    if best.single_ratio is not None:
        ratios["best single option"] = best.single_ratio
    facts: dict[str, Facts] = {
        name: {"ratio": ratio, "loss": loss(best.ratio, ratio) if best.ratio else math.nan}
        for name, ratio in ratios.items()
    }
    if best.single is not None:
        facts["best single option"]["option"] = problem.options[best.single]
    return facts


def bound_text(bound: Facts | None) -> str:
    """What the paper's theorem says of DOL-RM here."""
    if bound is None:
        return "The theorem's proof needs rewards of 0 or more and sub-Gaussian noise; it says nothing here."
    return (
        f"After {bound['tasks']:,} tasks the theorem promises DOL-RM with noise={bound['noise']:g} a ratio at most "
        f"{bound['gap']:.4g} below θ*\n(regret R(T) at most {bound['regret']:,.0f})."
    )


def problem_text(facts: Facts) -> str:
    """The answer to `worthwhile solve`."""
    unit = facts["units"]
    parts = [
        f"{facts['problem']}: at best θ* = {amount(facts['best_ratio'], unit['ratio'])} ({earned_text(facts)})",
        first_kinds(kinds_table, facts["kinds"], unit),
        rules_table(facts),
        bound_text(facts["bound"]),
        *(f"Advice: {words}" for words in facts["advice"]),
    ]
    return "\n\n".join(parts)


def earned_text(facts: Facts) -> str:
    """Reward and cost per task."""
    unit = facts["units"]
    reward = amount(facts["reward_per_task"], unit["reward"] or "reward")
    return f"{reward} for {amount(facts['cost_per_task'], unit['cost'] or 'cost')} a task"


def first_kinds(tabled: Callable[[Sequence[Facts], Facts], str], kinds: Sequence[Facts], unit: Facts) -> str:
    """A table of as many kinds as people read."""
    more = f"\n… and {len(kinds) - MOST_KINDS} more kinds; --json lists them all" if len(kinds) > MOST_KINDS else ""
    return tabled(kinds[:MOST_KINDS], unit) + more


def kinds_table(kinds: Sequence[Facts], unit: Facts) -> str:
    """One row per kind: the best option, and the greedy one where it differs."""
    rows = []
    for kind in kinds:
        best = kind["options"][kind["best_option"]]
        same = kind["greedy_option"] == kind["best_option"]
        reward, cost = best["reward"], best.get("cost_per_completed_task", best["cost"])
        shown = [f"{100 * kind['arrival']:.4g} %", digits(reward), digits(cost), digits(reward / cost)]
        rows.append([kind["kind"], kind["best_option"], *shown, "same" if same else kind["greedy_option"]])
    head = ["arrival", titled("reward", unit["reward"]), titled("cost", unit["cost"]), titled("ratio", unit["ratio"])]
    return table(["kind", "best option", *head, "greedy would take"], rows, left=(0, 1, 6))


def rules_table(facts: Facts) -> str:
    """The optimum beside the obvious rules, best first."""
    rows = [["optimum θ*", digits(facts["best_ratio"]), "–"]]
    for name, rule in sorted(facts["rules"].items(), key=lambda item: -item[1]["ratio"]):
        label = f"{name} ({rule['option']})" if "option" in rule else name
        rows.append([label, digits(rule["ratio"]), lost(rule["loss"])])
    return table(["rule", titled("ratio", facts["units"]["ratio"]), "loses"], rows)


def results_facts(results: Results) -> Facts:
    """What every policy achieved by the last task, best first."""
    names = ("expected_ratio", "ratio", "loss", "regret")
    means, errors = ({name: read(name) for name in names} for read in (results.mean, results.error))
    sums = (results.measure(name)[:, :, -1] for name in ("expected_reward", "expected_cost"))
    gaps = dict(zip(results.policies, gap(results.best.ratio, *sums).tolist(), strict=True))
    by = "loss" if results.problem.can_fail else "regret"  # who fails cheaply all the time has next to no regret
    best_first = sorted(results.policies, key=means[by].__getitem__)
    return {
        "problem": results.problem.name,
        "units": units(results.problem),
        "tasks": int(results.marks[-1]),
        "runs": len(results.runs),
        "interrupted": results.interrupted,
        "best_ratio": results.best.ratio,
        "rules": rules(results.problem, results.best),
        "advice": results.best.advice,
        "policies": [
            {"policy": policy}
            | {name: means[name][policy] for name in names}
            | {f"{name}_error": errors[name][policy] for name in names}
            | {"gap": gaps[policy]}
            for policy in best_first
        ],
        "provenance": results.provenance,
    }


def results_text(facts: Facts) -> str:
    """The answer to `worthwhile simulate` and `worthwhile replay`."""
    unit, rules = facts["units"], facts["rules"]
    rows = []
    for policy in facts["policies"]:
        ratios = [digits(policy[name]) for name in ("expected_ratio", "ratio")]
        missing = rounded(100 * policy["loss"], 100 * policy["loss_error"]) if policy["loss"] <= 1.0 else ("> 100", "–")
        rows.append([policy["policy"], *ratios, *missing, *rounded(policy["regret"], policy["regret_error"])])
    head = [titled("expected ratio", unit["ratio"]), "ratio", "lost %", "±", titled("regret", unit["reward"]), "±"]
    greedy = rules["per-kind greedy"]
    return "\n".join(
        [
            f"{facts['problem']}: {facts['tasks']:,} tasks × {facts['runs']:,} runs\n",
            table(["policy", *head], rows),
            f"\noptimum θ* = {amount(facts['best_ratio'], unit['ratio'])}; "
            f"per-kind greedy {digits(greedy['ratio'])} (loses {lost(greedy['loss'])})",
            LEGEND,
            *(f"Advice: {words}" for words in facts["advice"]),
        ]
    )


def policies_facts() -> Facts:
    """Every policy on the list: what it does, what simulations tell it, what can be set."""
    listed = [
        {"policy": name, "summary": policy.summary, "default": name == DEFAULT}
        | {"told": told(policy), "parameters": knobs(policy)}
        for name, policy in LIST.items()
    ]
    return {"policies": listed, "provenance": provenance({})}


def told(listed: Listed) -> list[str]:
    """The parameters that simulations fill in with the truth."""
    fields, defaults = listed.type._fields, listed.type._field_defaults
    return [name for name in fields if name in Known._fields and name not in defaults]


def knobs(listed: Listed) -> Facts:
    """The parameters that have a default, with it."""
    given = {name: plain(value) for name, value in listed.type._field_defaults.items()}
    return given | dict(listed.preset)


def policies_text(facts: Facts) -> str:
    """The answer to `worthwhile policies`."""
    width = max(len(policy["policy"]) for policy in facts["policies"])
    lines = []
    for policy in facts["policies"]:
        lines.append(f"{policy['policy']:<{width}}  {policy['summary']}")
        if policy["told"]:
            lines.append(f"{'':<{width}}    told: {', '.join(policy['told'])}")
        if policy["parameters"]:
            defaults = (f"{name}={setting(name, value)}" for name, value in policy["parameters"].items())
            lines.append(f"{'':<{width}}    may be set: {', '.join(defaults)}")
    return "\n".join(
        [*lines, "", "told: simulations fill these in with the truth about the problem, unless you set them too."]
    )


def setting(name: str, value: Any) -> str:
    """A default as one would write it."""
    return "<the first>" if name == "option" else str(value).lower()


def tasks_text(lines: list[TaskLine]) -> str:
    """The answer to `worthwhile tasks`."""
    if not lines:
        return "no tasks yet"
    columns = {
        "task": [line.task for line in lines],
        "kind": [line.kind for line in lines],
        "option": [shown(line.option) for line in lines],
        "state": [line.state for line in lines],
        "reward": [number(line.reward) for line in lines],
        "cost": [number(line.total_cost) for line in lines],
        "decided (UTC)": [time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(line.decided)) for line in lines],
        "key": [line.key or "" for line in lines],
        "reason": [line.reason or "" for line in lines],
        "attempts": [f"{line.attempts}" if line.attempts > 1 else "" for line in lines],
        "features": [shortened(features_text(line.features)) for line in lines],
    }
    used = [name for name, cells in columns.items() if name not in SELDOM or any(cells)]
    left = [place for place, name in enumerate(used) if name not in NUMBERS]
    return table(used, list(zip(*(columns[name] for name in used), strict=True)), left)


def features_text(features: Mapping[str, Any] | None) -> str:
    """What is known of a task beside its kind; one that is missing is null."""
    return ", ".join(f"{printable(name)}={shown(value)}" for name, value in (features or {}).items())


def shortened(text: str) -> str:
    """As much as a table has room for."""
    return text if len(text) <= MOST_SHOWN else f"{text[: MOST_SHOWN - 1]}…"


def explain_text(why: Explanation) -> str:
    """The answer to `worthwhile explain`."""
    feedback = f", reward {number(why.reward)}, cost {number(why.cost)}" if why.state == "reported" else ""
    if why.state == "failed":
        feedback = f", cost {number(why.cost)}"
    if why.attempts:
        total = number(why.total_cost)
        feedback += f" ({total} with the attempts before)" if feedback else f", {total} spent on the attempts before"
    feedback += f": {printable(why.reason)}" if why.reason else ""
    head = [
        f"task {why.task} of kind {why.kind!r} got option {shown(why.option)}: {why.why}",
        f"policy {why.policy}, price θ = {number(why.price)}, after {why.seen:,} reports; now {why.state}{feedback}",
    ]
    if why.features:
        head.append(f"features: {features_text(why.features)}")
    if why.by_features and why.by_features.effect != NOTHING:
        head.append(by_features_text(why.by_features))
    rows = [
        ["→" * option.chosen, shown(option.option), str(option.pulls), str(option.running), *estimates(option)]
        for option in why.options
    ]
    columns = ["", "option", "attempts", "running", "reward estimate", "cost estimate", "reward − θ·cost"]
    parts = ["\n".join(head)] + ([table(columns, rows, left=(0, 1))] if rows else [])
    if why.attempts:
        earlier = [
            [shown(each.option), each.state, number(each.cost), printable(each.reason or "")] for each in why.attempts
        ]
        parts.append(table(["tried before", "state", "cost", "reason"], earlier, left=(0, 1, 3)))
    if why.repeated is False:
        parts.append("the policy does not decide the same again: was its code changed?")
    return "\n\n".join(parts)


def by_features_text(by: ByFeatures) -> str:
    """What was expected for the features of a task."""
    usual = f"the usual {shown(by.usual)}"
    beyond = f"worth {number(by.gain)} more than {usual}" if by.gain > 0.0 else f"about as good as {usual}, and surer"
    beyond = f"a try of what may be better here than {usual}" if by.effect == "try" else beyond
    return f"by features: {beyond}, in reward − θ·cost; forecasts were trusted to {by.believed:.0%}"


def estimates(option: Judgement) -> list[str]:
    """Reward, cost and score; nothing where a policy has no estimate, which is a cost of 0."""
    if option.cost_estimate == 0.0:
        return [number(None)] * 3
    return [number(option.reward_estimate), number(option.cost_estimate), number(option.score)]
