"""Sizes: 10 to 1 000 options of one kind, and 10 to 1 000 kinds with five options each."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from worthwhile.experiments.base import OURS, Claim, Outcome, Scale, plus_minus
from worthwhile.experiments.comparison import Setting, chosen, default_claim, draw_losses, losses_on, settings_table
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Noise, Problem

TASKS, QUICK_TASKS = 100_000, 10_000
SIZES = (10, 100, 1_000)
PROBLEMS, QUICK_PROBLEMS = (20, 10, 4), (4, 4, 2)  # for each size
LEAST, MOST, NOISE = 0.1, 1.0, 0.3  # means from … to, standard deviation, as in the unit family
OPTIONS_OF_A_KIND = 5
POLICIES = ("dol-rm-anytime", "omega-ucb", "oracle", DEFAULT)
GROWING = ("options", "kinds")


def run(scale: Scale) -> Outcome:
    """Random problems of every size."""
    tasks = scale.pick(QUICK_TASKS, TASKS)
    settings = []
    for growing in GROWING:
        for size, count in zip(SIZES, scale.pick(QUICK_PROBLEMS, PROBLEMS), strict=True):
            problems = [problem_of(growing, size, scale.seed + number) for number in range(count)]
            losses = losses_on(scale, problems, POLICIES, tasks, 1)
            settings.append(Setting({"growing": growing, "size": size}, POLICIES, losses))
    return Outcome(
        words=words(tasks),
        data={"sizes": settings_table(settings)},
        figures={"sizes": draw(settings)},
        claims=[growth(settings), default_claim(settings, "Sizes")],
    )


def problem_of(growing: str, size: int, seed: int) -> Problem:
    """One kind with many options, or many kinds, all as frequent, with five options; uniform random means."""
    rng = np.random.default_rng([seed, size, GROWING.index(growing)])
    kinds, options = (1, size) if growing == "options" else (size, OPTIONS_OF_A_KIND)
    reward, cost = rng.uniform(LEAST, MOST, (2, kinds, options))
    kind_names = tuple(f"s{number}" for number in range(1, kinds + 1))
    option_names = tuple(f"a{number}" for number in range(1, options + 1))
    name, arrival, noise = f"{size}-{growing}-{seed}", np.full(kinds, 1.0 / kinds), Noise(sd=NOISE)
    return Problem(name, kind_names, option_names, arrival, reward, cost, noise, noise)


def draw(settings: Sequence[Setting]) -> Any:
    """Loss over size, a panel for options and one for kinds."""
    shown = {
        "one kind": chosen(settings, growing="options"),
        f"{OPTIONS_OF_A_KIND} options for each kind": chosen(settings, growing="kinds"),
    }
    return draw_losses(shown, "size", ("options", "kinds"), POLICIES)


def growth(settings: Sequence[Setting]) -> Claim:
    """The default's loss at every size."""
    losses = [
        f"{setting.names['size']:,} {setting.names['growing']} {plus_minus(*setting.mean(DEFAULT))} %"
        for setting in settings
    ]
    return Claim("How the default's loss grows with the problem", OURS, "; ".join(losses))


def words(tasks: int) -> str:
    """What the problems look like."""
    return (
        f"{tasks:,} tasks; random problems with mean rewards and costs from {LEAST:g} to {MOST:g} and N(0, {NOISE:g}²) "
        f"noise: one kind with many options, or many equally frequent kinds with {OPTIONS_OF_A_KIND} options each. An "
        f"option of {SIZES[-1]:,} kinds can be tried {tasks / SIZES[-1] / OPTIONS_OF_A_KIND:.0f} times on average, "
        f"one of {SIZES[-1]:,} options {tasks / SIZES[-1]:.0f} times."
    )
