"""The benchmark that ω-UCB comes with: one kind, K options, rewards and costs from 0 to 1 (Heyden et al., 2024)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from worthwhile.experiments.base import OURS, Claim, Columns, Outcome, Scale, by_column, plus_minus
from worthwhile.experiments.comparison import (
    LOST,
    Setting,
    default_claim,
    draw_learning,
    last_losses,
    losses_of,
    mean_and_error,
    plain_log,
    settings_table,
    simulate_each,
)
from worthwhile.experiments.figures import panels
from worthwhile.plots import look_of
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Noise, Problem
from worthwhile.simulation.environments.base import Environment
from worthwhile.simulation.environments.synthetic import BETA, Scatter, SyntheticWorld, synthetic, tabulate
from worthwhile.simulation.results import Results
from worthwhile.state import Floats

TASKS, QUICK_TASKS = 100_000, 10_000
PROBLEMS, QUICK_PROBLEMS = 20, 3
OPTIONS = (10, 50)
NOISES = ("bernoulli", "generalised-bernoulli", "beta")
LEAST_COST = 0.01  # mean costs U(0.01, 1), mean rewards U(0, 1)
FIRST = 100  # the curves begin here
RANGE = "reward_max=1,cost_max=1"  # for policies that must know it: observations lie between 0 and 1
POLICIES = {
    "dol-rm": "dol-rm",
    "dol-rm-anytime": "dol-rm-anytime",
    "ratio-ucb": "ratio-ucb",
    "ratio-ts": "ratio-ts",
    "omega-ucb": f"omega-ucb,{RANGE}",
    "omega-star-ucb": f"omega-star-ucb,{RANGE}",
    "m-ucb": f"m-ucb,{RANGE}",
    "bts": f"bts,{RANGE}",
    "b-greedy": "b-greedy",
    DEFAULT: DEFAULT,
}
Simulated = dict[tuple[str, int], Sequence[Results]]  # by family and number of options, a result per problem


def run(scale: Scale) -> Outcome:
    """Random problems of every family and size."""
    tasks, problems = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_PROBLEMS, PROBLEMS)
    simulated: Simulated = {}
    for noise in NOISES:
        for options in OPTIONS:
            worlds = [world(noise, options, scale.seed + number) for number in range(problems)]
            simulated[noise, options] = simulate_each(scale, worlds, POLICIES, tasks)
    settings = [
        Setting({"family": noise, "options": options}, tuple(POLICIES), last_losses(simulations))
        for (noise, options), simulations in simulated.items()
    ]
    learning = {f"{noise}, K = {options}": simulations for (noise, options), simulations in simulated.items()}
    return Outcome(
        words=words(tasks, problems),
        data={"omega-benchmark": settings_table(settings), "omega-benchmark-curves": curves(simulated)},
        figures={
            "omega-benchmark": draw_ends(settings),
            "omega-benchmark-curves": draw_learning(learning, FIRST, len(OPTIONS)),
        },
        claims=[*(order(setting) for setting in settings), default_claim(settings, "ω-UCB's benchmark")],
    )


def world(noise: str, options: int, seed: int) -> Environment:
    """One kind; the means of a seed are the same for every family."""
    rng = np.random.default_rng([seed, options])
    reward, cost = rng.uniform(0.0, 1.0, (1, options)), rng.uniform(LEAST_COST, 1.0, (1, options))
    names = tuple(f"a{number}" for number in range(1, options + 1))
    drawn = Noise("bernoulli" if noise == "beta" else noise)
    problem = Problem(f"{noise}-{options}-{seed}", ("task",), names, np.ones(1), reward, cost, drawn, drawn)
    return beta_world(problem) if noise == "beta" else synthetic(problem)


def beta_world(problem: Problem) -> Environment:
    """Beta observations with standard deviation mean·(1 − mean), which every mean from 0 to 1 can have."""
    base = synthetic(problem).world
    assert isinstance(base, SyntheticWorld)
    shaped = base._replace(reward=beta_scatter(problem.reward), cost=beta_scatter(problem.cost))
    silent = Noise(sd=0.0)  # the world, not the problem, knows the noise
    return Environment(replace(problem, reward_noise=silent, cost_noise=silent), shaped)


def beta_scatter(means: Floats) -> Scatter:
    """A quantile table for every mean: sd / mean = 1 − mean."""
    quantiles = np.stack([tabulate(BETA, 1.0 - mean, mean) for mean in means.ravel().tolist()])
    return Scatter(BETA, means, means * (1.0 - means), np.arange(means.size).reshape(means.shape), quantiles)


def curves(simulated: Simulated) -> Columns:
    """Loss over tasks: one row per family, size, policy and mark."""
    rows = [
        (noise, options, policy, int(tasks), len(simulations), *mean_and_error(losses[:, column, mark]))
        for (noise, options), simulations in simulated.items()
        for losses in [losses_of(simulations)]
        for column, policy in enumerate(POLICIES)
        for mark, tasks in enumerate(simulations[0].marks)
    ]
    names = ("family", "options", "policy", "tasks", "samples", "loss_percent", "loss_error")
    return by_column(names, rows)


def draw_ends(settings: Sequence[Setting]) -> Any:
    """Loss at the end with its standard error, a row of dots per policy."""
    titles = [f"{setting.names['family']}, K = {setting.names['options']}" for setting in settings]
    figure, axes = panels(titles, LOST, "", len(OPTIONS))
    for panel, setting in zip(axes, settings, strict=True):
        for row, policy in enumerate(reversed(POLICIES)):
            mean, error = setting.mean(policy)
            panel.errorbar(mean, row, xerr=error, color=look_of(policy).colour, marker="o", markersize=5, capsize=3)
        panel.set_yticks(range(len(POLICIES)), list(reversed(POLICIES)), fontsize=8.5)
        plain_log(panel, "x")
    return figure


def order(setting: Setting) -> Claim:
    """Who loses least, from the best on."""
    ranked = sorted(POLICIES, key=lambda policy: setting.mean(policy)[0])
    words = [f"{policy} {plus_minus(*setting.mean(policy))}" for policy in ranked]
    return Claim(f"{setting.names['family']}, K = {setting.names['options']}: loss in %", OURS, "; ".join(words))


def words(tasks: int, problems: int) -> str:
    """What the benchmark is."""
    return (
        "One kind of tasks, so that the best ratio of the kind is the optimum and ratio policies are at home; "
        f"{problems} random problems each, {tasks:,} tasks, mean rewards U(0, 1), mean costs U({LEAST_COST:g}, 1), "
        "independent. Observations: Bernoulli; generalised Bernoulli (0, ¼, ½, ¾, 1); Beta with standard deviation "
        "mean·(1 − mean). "
        "ω-UCB, ω*-UCB, m-UCB and BTS are told that observations lie between 0 and 1; DOL-RM and ratio-UCB the exact "
        "bounds of the means; the default and b-greedy nothing. Errors: standard errors over problems."
    )
