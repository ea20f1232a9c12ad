"""Figure 4 a, b, c: cumulative reward-to-cost ratio over tasks on two and on seven kinds of tasks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from worthwhile.experiments.base import (
    AHEAD,
    Claim,
    Outcome,
    Scale,
    outperforms,
    plus_minus,
    tidy_each,
    together,
    verdict,
)
from worthwhile.experiments.figures import add_legend, chanceless_curves, panels, ratio_curves
from worthwhile.goals.frontier import Choice
from worthwhile.optimum import ratio_of, solve
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem
from worthwhile.simulation.results import Results

TASKS, QUICK_TASKS = (10_000, 30_000, 100_000), (3_000, 10_000)  # the paper does not say how many its figures show
RUNS, QUICK_RUNS = 100, 20
FIRST = 100  # the figure begins here
PAPER = "dol-rm-anytime"
RIVALS = ("reward-ucb", "ratio-ucb", "reward-ts", "ratio-ts", "omega-ucb")
GAP = "gap-ucb"  # the goal of cost-aware cascading bandits, of which the paper speaks
BANDED = (PAPER,)  # all policies have the same tasks, and so bands of much the same width
POLICIES = (PAPER, *RIVALS, GAP, "oracle", DEFAULT)
MEASURES = ("ratio", "expected_ratio", "loss", "regret")


def run(scale: Scale, problem: Problem, letter: str) -> Outcome:
    """Simulate every T for itself, because policies are told T; draw the longest, judge the claims at all of them."""
    lengths, runs = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_RUNS, RUNS)
    simulations = [scale.simulate(problem, POLICIES, tasks, runs) for tasks in lengths]
    by_length = {str(results.marks[-1]): results for results in simulations}
    return Outcome(
        words=words(simulations[-1]),
        data={f"figure-4{letter}": tidy_each("T", by_length, MEASURES)},
        figures={f"figure-4{letter}": draw(simulations[-1])},
        claims=[baselines(simulations), reward_minus_cost(simulations)],
    )


def draw(results: Results) -> object:
    """Realised ratio with its spread, and the same without chance."""
    titles = ("realised, as in the paper", "without chance: θ* − pseudo-regret / cost")
    figure, axes = panels(titles, "tasks", "cumulative reward / cost")
    ratio_curves(axes[0], results, FIRST, BANDED)
    chanceless_curves(axes[1], results, FIRST)
    means = np.concatenate([line.get_ydata() for line in axes[0].lines])
    margin = 0.05 * np.ptp(means)
    axes[0].set_ylim(means.min() - margin, means.max() + margin)  # the band, which is wide at first, may be cut off
    add_legend(figure)
    return figure


def baselines(simulations: Sequence[Results]) -> Claim:
    """DOL-RM outperforms the learning baselines: by ΣR/ΣC, the paper's measure, for every T."""
    verdicts = [judged(results, "ratio") for results in simulations]
    parts = [
        f"T = {results.marks[-1]:,}: {AHEAD[word]}, ΣR/ΣC {figures(results)} (by pseudo-regret "
        f"{AHEAD[judged(results, 'regret')]})"
        for results, word in zip(simulations, verdicts, strict=True)
    ]
    name, runs = simulations[0].problem.name, len(simulations[0].runs)
    return Claim(
        f"{name}: DOL-RM outperforms the learning baselines in ΣR/ΣC",
        together(verdicts),
        f"{'; '.join(parts)}; {runs} runs, and the paper does not state T",
    )


def judged(results: Results, measure: str, rivals: Sequence[str] = RIVALS) -> str:
    """Against all baselines at the last task, by the ratio, or by pseudo-regret, of which less is better."""
    sign = -1.0 if measure == "regret" else 1.0
    return outperforms(sign * results.measure(measure)[:, :, -1], results.policies, PAPER, rivals)


def figures(results: Results) -> str:
    """DOL-RM's ratio, that of its best rival and of the default."""
    mean, error = results.mean("ratio"), results.error("ratio")
    best = max(RIVALS, key=mean.__getitem__)
    shown = {policy: plus_minus(mean[policy], error[policy], 4) for policy in (PAPER, best, DEFAULT)}
    return f"{shown[PAPER]}, best baseline {best} {shown[best]}, default {shown[DEFAULT]}, θ* {results.best.ratio:.4g}"


def reward_minus_cost(simulations: Sequence[Results]) -> Claim:
    """The best reward − cost of every kind is not the best ratio: exactly, and learned."""
    problem, last = simulations[-1].problem, simulations[-1]
    mean, error = last.mean("ratio"), last.error("ratio")
    learned = " and ".join(f"{policy} {plus_minus(mean[policy], error[policy], 4)}" for policy in (GAP, PAPER))
    reached, best = ratio_of(problem, best_gap(problem)), solve(problem).ratio
    return Claim(
        f"{problem.name}: the largest reward − cost does not yield the best ratio",
        verdict(reached < best * (1.0 - 1e-9)),
        f"with all means known it reaches {reached:.6g} of θ* = {best:.6g}; learned, ΣR/ΣC is {learned} at T = "
        f"{last.marks[-1]:,} ({len(last.runs)} runs)",
    )


def best_gap(problem: Problem) -> Choice:
    """The option with the largest r − c of every kind."""
    gaps: Choice = np.nanargmax(problem.reward - problem.cost, axis=1)
    return gaps


def words(results: Results) -> str:
    """What there is to win here."""
    best = results.best
    headroom = 100.0 * (1.0 - best.greedy_ratio / best.ratio)
    return (
        f"The optimum is θ* = {best.ratio:.6g}; always taking the best ratio of each kind reaches "
        f"{best.greedy_ratio:.6g}, so the whole headroom is {headroom:.2g} %. The paper's measure, ΣR/ΣC, is judged "
        "first; it has the chance of outcomes and of arrivals in it, so that a policy may end above θ*. On the right "
        "θ* − pseudo-regret / cost, which has neither. The paper does not say what its UCB and TS maximise: both "
        f"readings, reward and ratio, are shown. {GAP} takes the largest reward − cost. The band: ± one standard "
        f"deviation over runs, of {PAPER}."
    )
