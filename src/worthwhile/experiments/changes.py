"""Changes: arrivals that shift, means that change at once or drift slowly; how much is lost, and who recovers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from worthwhile.experiments.base import OURS, Claim, Columns, Outcome, Scale, by_column, plus_minus
from worthwhile.experiments.comparison import (
    LOST,
    Setting,
    default_claim,
    last_losses,
    mean_and_error,
    plain_log,
    settings_table,
    simulate_each,
)
from worthwhile.experiments.figures import add_legend, curve, panels, reference
from worthwhile.optimum import loss
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem, two_kinds
from worthwhile.random_problems import random_problem
from worthwhile.simulation.environments.base import Drift
from worthwhile.simulation.environments.synthetic import drifting
from worthwhile.simulation.results import Results
from worthwhile.state import Floats

TASKS, QUICK_TASKS = 40_000, 10_000
RUNS, QUICK_RUNS = 40, 10  # of the shift
PROBLEMS, QUICK_PROBLEMS = 20, 4  # of the unit family
BEFORE, AFTER = 0.8, 0.2  # the first kind's share
SLOW_STEPS = 10
LINEAR_BELOW = 0.1  # %, in the figure
WINDOWS = 40  # of a run, for the rolling loss
RECOVERED = 1.0  # % of the optimum above the loss before the change
POLICIES = ("dol-rm", "dol-rm-anytime", "omega-ucb", "ratio-ts", DEFAULT)
SHIFT, AT_ONCE, SLOWLY = "shares shift half-way", "means change half-way", "means drift all the time"


def run(scale: Scale) -> Outcome:
    """Three kinds of change, each with its rolling loss."""
    tasks = scale.pick(QUICK_TASKS, TASKS)
    simulated = simulate_changes(scale, tasks)
    settings = [Setting({"change": change}, POLICIES, last_losses(results)) for change, results in simulated.items()]
    rolling = {change: rolling_losses(results) for change, results in simulated.items()}
    ends = np.arange(1, WINDOWS + 1) * tasks // WINDOWS
    return Outcome(
        words=words(scale, tasks),
        data={"changes": settings_table(settings), "changes-rolling": rolling_table(rolling, ends)},
        figures={"changes": draw(rolling, ends)},
        claims=[recovery(rolling, SHIFT, tasks), recovery(rolling, AT_ONCE, tasks), default_claim(settings, "Changes")],
    )


def simulate_changes(scale: Scale, tasks: int) -> dict[str, list[Results]]:
    """The shift on the paper's two kinds, the rest on random problems whose options change places."""
    numbers = range(scale.seed, scale.seed + scale.pick(QUICK_PROBLEMS, PROBLEMS))
    pairs = [(problem, turned(problem)) for problem in (random_problem("unit", number) for number in numbers)]
    half, marks = tasks // 2, (np.arange(1, WINDOWS + 1) * tasks // WINDOWS).tolist()
    shift = drifting([(0, two_kinds(BEFORE)), (half, two_kinds(AFTER))])
    at_once = [drifting([(0, old), (half, new)]) for old, new in pairs]
    slowly: list[Drift] = [drifting([(0, old), (tasks, new)], SLOW_STEPS) for old, new in pairs]
    runs = scale.pick(QUICK_RUNS, RUNS)
    return {
        SHIFT: [scale.simulate(shift, POLICIES, tasks, runs, marks=marks)],
        AT_ONCE: simulate_each(scale, at_once, POLICIES, tasks, marks=marks),
        SLOWLY: simulate_each(scale, slowly, POLICIES, tasks, marks=marks),
    }


def turned(problem: Problem) -> Problem:
    """Every kind's options in reverse order: the same means, and so the same bounds, for other options."""
    reward, cost = problem.reward.copy(), problem.cost.copy()
    for kind, offered in enumerate(problem.offered):
        reward[kind, offered], cost[kind, offered] = reward[kind, offered][::-1], cost[kind, offered][::-1]
    return replace(problem, reward=reward, cost=cost)


def rolling_losses(results: Sequence[Results]) -> Floats:
    """(samples, policies, windows): what was lost within each window, in % of the optimum there."""
    losses = []
    for result in results:
        regret, cost = (np.diff(result.measure(name), prepend=0.0) for name in ("regret", "expected_cost"))
        reward_best, cost_best = np.diff(result.optimum, axis=0, prepend=0.0).T
        best = reward_best / cost_best
        losses.append(loss(best, best - regret / cost))
    return 100.0 * np.concatenate(losses)


def rolling_table(rolling: Mapping[str, Floats], ends: Any) -> Columns:
    """One row per change, policy and window."""
    rows = [
        (change, policy, int(end), len(losses), *mean_and_error(losses[:, column, window]))
        for change, losses in rolling.items()
        for column, policy in enumerate(POLICIES)
        for window, end in enumerate(ends)
    ]
    names = ("change", "policy", "tasks", "samples", "loss_percent", "loss_error")
    return by_column(names, rows)


def draw(rolling: Mapping[str, Floats], ends: Any) -> Any:
    """The loss of every window, on an axis that reaches 0 if some windows lose nothing; a dashed line at the change."""
    figure, axes = panels(list(rolling), "tasks", LOST, 1, (7.0, 2.6))
    for panel, (change, losses) in zip(axes, rolling.items(), strict=True):
        for policy, mean in zip(POLICIES, losses.mean(axis=0), strict=True):
            curve(panel, ends, mean, policy)
        if losses.mean(axis=0).min() > LINEAR_BELOW:
            plain_log(panel, "y")
        else:
            panel.set_yscale("symlog", linthresh=LINEAR_BELOW)
            panel.yaxis.set_major_formatter("{x:g}")
        if change != SLOWLY:
            reference(panel, [ends[-1] / 2] * 2, panel.get_ylim(), "the change")
        panel.xaxis.set_major_formatter("{x:,.0f}")
    add_legend(figure)
    return figure


def recovery(rolling: Mapping[str, Floats], change: str, tasks: int) -> Claim:
    """Tasks after the change until a window loses hardly more than the last one before it."""
    half, evidence = WINDOWS // 2, []
    for column, policy in enumerate(POLICIES):
        losses = rolling[change][:, column]
        low = losses[:, half:].mean(axis=0) <= losses[:, half - 1].mean() + RECOVERED
        again = [window for window in range(half) if low[window:].all()]
        when = f"after {(again[0] + 1) * tasks // WINDOWS:,} tasks" if again else f"not within {tasks // 2:,} tasks"
        before, last = mean_and_error(losses[:, half - 1]), mean_and_error(losses[:, -1])
        shown = f"{plus_minus(*before)} % before the change, {plus_minus(*last)} % at the end"
        evidence.append(f"{policy} {when} ({shown})")
    return Claim(f"{change}: recovered to within {RECOVERED:g} % of the loss before", OURS, "; ".join(evidence))


def words(scale: Scale, tasks: int) -> str:
    """What changes, and that nobody forgets."""
    return (
        f"{tasks:,} tasks. Arrivals: two kinds whose first one's share goes from {BEFORE:g} to {AFTER:g} half-way "
        f"({scale.pick(QUICK_RUNS, RUNS)} runs). Means: {scale.pick(QUICK_PROBLEMS, PROBLEMS)} random problems of the "
        f"unit family whose options change places, half-way or in {SLOW_STEPS} steps from the first task to the last. "
        "Regret counts against the optimum of the moment. No policy here forgets: all average over everything they "
        "have seen, the default over all arrivals and all feedback, so a late change is unlearned slowly. The bounds "
        "that DOL-RM and ω-UCB are told stay true throughout."
    )
