"""Figure 4 a, b, c: cumulative reward-to-cost ratio over tasks on two and on seven kinds of tasks."""

from __future__ import annotations

import numpy as np

from worthwhile.experiments.base import Claim, Outcome, Scale, outperforms, plus_minus, tidy
from worthwhile.experiments.comparison import mean_and_error
from worthwhile.experiments.figures import add_legend, panels, ratio_curves
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem
from worthwhile.simulation.results import Results
from worthwhile.simulation.simulator import marks_of

TASKS, QUICK_TASKS = 100_000, 10_000
RUNS, QUICK_RUNS = 100, 20
FIRST = 100  # the figure begins here
JUDGED = (10_000, 30_000, 100_000)  # the paper does not say how many tasks its figures show
PAPER = "dol-rm-anytime"
RIVALS = ("reward-ucb", "ratio-ucb", "reward-ts", "ratio-ts", "omega-ucb")
BANDED = (PAPER, "reward-ucb", DEFAULT)  # more bands would hide each other
POLICIES = (PAPER, *RIVALS, "oracle", DEFAULT)


def run(scale: Scale, problem: Problem, letter: str) -> Outcome:
    """Simulate, draw the realised ratio as in the paper and the expected one beside it, judge the claim."""
    tasks, runs = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_RUNS, RUNS)
    judged = [count for count in JUDGED if count <= tasks]
    results = scale.simulate(problem, POLICIES, tasks, runs, marks=[*marks_of(None, tasks).tolist(), *judged])
    return Outcome(
        words=words(results),
        data={f"figure-4{letter}": tidy(results, ("ratio", "expected_ratio", "loss", "regret"))},
        figures={f"figure-4{letter}": draw(results)},
        claims=[claim(results, count) for count in judged],
    )


def draw(results: Results) -> object:
    """Realised ratio with its spread, and expected ratio."""
    titles = ("realised, as in the paper", "expected: the same without the noise")
    figure, axes = panels(titles, "tasks", "cumulative reward / cost")
    ratio_curves(axes[0], results, "ratio", FIRST, BANDED)
    ratio_curves(axes[1], results, "expected_ratio", FIRST)
    low, high = axes[1].get_ylim()
    axes[0].set_ylim(low - 0.5 * (high - low), high + 0.5 * (high - low))
    add_legend(figure)
    return figure


def claim(results: Results, tasks: int) -> Claim:
    """DOL-RM outperforms the learning baselines: by its loss against the best of both readings of UCB and TS."""
    mark = int(np.searchsorted(results.marks, tasks))
    losses = 100.0 * results.measure("loss")[:, :, mark]
    lost = {policy: mean_and_error(column) for policy, column in zip(results.policies, losses.T, strict=True)}
    best = min(RIVALS, key=lambda rival: lost[rival][0])
    return Claim(
        f"{results.problem.name}, {results.marks[mark]:,} tasks: DOL-RM outperforms the learning baselines",
        outperforms(losses, results.policies, PAPER, RIVALS),
        f"loses {plus_minus(*lost[PAPER])} % of the optimum; the best baseline, {best}, {plus_minus(*lost[best])} %; "
        f"the default {plus_minus(*lost[DEFAULT])} %",
    )


def words(results: Results) -> str:
    """What there is to win here."""
    best = results.best
    headroom = 100.0 * (1.0 - best.greedy_ratio / best.ratio)
    return (
        f"The optimum is θ* = {best.ratio:.6g}; always taking the best ratio of each kind reaches "
        f"{best.greedy_ratio:.6g}, so the whole headroom is {headroom:.2g} %. The paper does not say what its UCB and "
        "TS maximise: both readings, reward and ratio, are shown. Bands: ± one standard deviation over runs."
    )
