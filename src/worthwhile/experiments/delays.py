"""Delays: feedback that comes 10 to 1 000 tasks late, all by the same number of tasks or at random, out of order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from worthwhile.experiments.base import OURS, Claim, Outcome, Scale, plus_minus
from worthwhile.experiments.comparison import Setting, chosen, default_claim, draw_losses, losses_on, settings_table
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Problem, seven_kinds
from worthwhile.random_problems import random_problem

TASKS, QUICK_TASKS = 100_000, 10_000
RUNS, QUICK_RUNS = 30, 8  # on seven kinds
PROBLEMS, QUICK_PROBLEMS = 30, 4  # of the train family
DELAYS = (0, 10, 100, 1_000)
FIXED, RANDOM = "fixed", "random order"
POLICIES = ("dol-rm", "dol-rm-anytime", "ratio-ts", DEFAULT)
WORLDS = ("train family", "seven-kinds")


def run(scale: Scale) -> Outcome:
    """Every delay in every world, fixed and random."""
    tasks, runs = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_RUNS, RUNS)
    numbers = range(scale.seed, scale.seed + scale.pick(QUICK_PROBLEMS, PROBLEMS))
    train = [shuffled(random_problem("train", number), number) for number in numbers]
    settings = []
    for world, problems in zip(WORLDS, (train, [seven_kinds()]), strict=True):
        for delay in DELAYS:
            for order, late in ((FIXED, delay), (RANDOM, (0, 2 * delay))):
                if delay or order == FIXED:
                    losses = losses_on(scale, problems, POLICIES, tasks, runs, late)
                    settings.append(Setting({"world": world, "order": order, "delay": delay}, POLICIES, losses))
    return Outcome(
        words=words(tasks, runs, len(train)),
        data={"delays": settings_table(settings)},
        figures={"delays": draw(settings)},
        claims=[*(delay_claim(settings, world) for world in WORLDS), default_claim(settings, "Late feedback")],
    )


def shuffled(problem: Problem, seed: int) -> Problem:
    """The same problem with its options in another order: trained longer and longer, the first is often the best."""
    order = np.random.default_rng(seed).permutation(len(problem.options))
    names = tuple(problem.options[option] for option in order)
    return replace(problem, options=names, reward=problem.reward[:, order], cost=problem.cost[:, order])


def of_order(settings: Sequence[Setting], world: str, order: str) -> list[Setting]:
    """The settings of one panel, by delay; the one without a delay belongs to both orders."""
    here = chosen(settings, world=world)
    return [setting for setting in here if setting.names["order"] == order or setting.names["delay"] == 0]


def draw(settings: Sequence[Setting]) -> Any:
    """A row of panels per world, a column per order; no delay is drawn at 1, because a logarithmic axis has no 0."""
    cells = [(world, order) for world in WORLDS for order in (FIXED, RANDOM)]
    drawn = {
        f"{world}: {order}": [
            setting._replace(names={**setting.names, "delay": max(1, setting.names["delay"])})
            for setting in of_order(settings, world, order)
        ]
        for world, order in cells
    }
    names = {FIXED: "feedback late by … tasks", RANDOM: "feedback late by … tasks on average"}
    figure = draw_losses(drawn, "delay", [names[order] for _, order in cells], POLICIES)
    for axes in figure.axes:
        axes.set_xticks([max(1, delay) for delay in DELAYS], [f"{delay:,}" for delay in DELAYS])
    return figure


def delay_claim(settings: Sequence[Setting], world: str) -> Claim:
    """What the longest fixed delay adds to everybody's loss."""
    here = of_order(settings, world, FIXED)
    changes = [
        f"{policy} from {plus_minus(*here[0].mean(policy))} to {plus_minus(*here[-1].mean(policy))} %"
        for policy in POLICIES
    ]
    return Claim(f"{world}: loss without delay and {DELAYS[-1]:,} tasks late", OURS, "; ".join(changes))


def words(tasks: int, runs: int, problems: int) -> str:
    """How late, where."""
    return (
        f"{tasks:,} tasks; {problems} random problems of the train family, their options shuffled, and seven kinds "
        f"({runs} runs). Every task reports D tasks later, or after 0 to 2D tasks at random, so that reports overtake "
        "each other. Policies are shown how many tasks are under way; the default counts those as pulls. Until the "
        "first report nobody knows anything: that part of the loss nobody can avoid."
    )
