"""Sensitivity: DOL-RM with wrong bounds or a wrong horizon, noise and costs of other scales; the default beside it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

from worthwhile.experiments.base import OURS, Claim, Outcome, Scale, lost
from worthwhile.experiments.comparison import Setting, chosen, default_claim, draw_losses, losses_on, settings_table
from worthwhile.optimum import bounds_of
from worthwhile.policies.registry import DEFAULT
from worthwhile.problem import Noise, Problem, seven_kinds
from worthwhile.random_problems import random_problem

TASKS, QUICK_TASKS = 100_000, 10_000
RUNS, QUICK_RUNS = 30, 10  # on seven kinds
PROBLEMS, QUICK_PROBLEMS = 20, 4  # of the unit family
PAPER = "dol-rm-anytime"
WRONG = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)  # what it believes / the truth
BELIEFS = {"c_min": WRONG, "r_max": WRONG, "horizon": (0.01, 0.1, 1.0, 10.0, 100.0)}
SCALES = (1e-3, 1e-2, 1e-1, 1.0, 1e1, 1e2, 1e3)
SCALED = ("noise", "costs")
WORLDS = ("seven-kinds", "unit family")


def run(scale: Scale) -> Outcome:
    """Wrong beliefs first, then problems of other scales."""
    tasks, runs = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_RUNS, RUNS)
    problems = scale.pick(QUICK_PROBLEMS, PROBLEMS)
    unit = [random_problem("unit", scale.seed + number) for number in range(problems)]
    worlds = dict(zip(WORLDS, ([seven_kinds()], unit), strict=True))
    believed = [setting for world in WORLDS for setting in believing(scale, world, worlds[world], tasks, runs)]
    scaled = [setting for world in WORLDS for setting in scaling(scale, world, worlds[world], tasks, runs)]
    return Outcome(
        words=words(tasks, runs, problems),
        data={"sensitivity-told": settings_table(believed), "sensitivity-scales": settings_table(scaled)},
        figures={
            "sensitivity-told": draw(believed, BELIEFS, "{} as told / true {}"),
            "sensitivity-scales": draw(scaled, SCALED, "all {} multiplied by"),
        },
        claims=[
            *(worst(believed, belief) for belief in BELIEFS),
            invariance(scaled),
            default_claim(believed, "Wrong beliefs"),
            default_claim(scaled, "Other scales"),
        ],
    )


def believing(scale: Scale, world: str, problems: Sequence[Problem], tasks: int, runs: int) -> Iterator[Setting]:
    """DOL-RM with every wrong belief, all on the same tasks; the default has no beliefs."""
    wrong = [(belief, factor) for belief, factors in BELIEFS.items() for factor in factors]

    def policies(problem: Problem) -> dict[str, str]:
        believers = {f"{belief} × {factor:g}": misled(problem, tasks, belief, factor) for belief, factor in wrong}
        return {DEFAULT: DEFAULT, **believers}

    losses = losses_on(scale, problems, policies, tasks, runs)
    for column, (belief, factor) in enumerate(wrong, 1):
        names = {"world": world, "changed": belief, "factor": factor}
        yield Setting(names, (DEFAULT, PAPER), losses[:, [0, column]])


def misled(problem: Problem, tasks: int, belief: str, factor: float) -> str:
    """DOL-RM with one wrong belief; the interval of θ follows from the bounds that it believes."""
    truth = bounds_of(problem)
    reward_max = truth.reward_max * (factor if belief == "r_max" else 1.0)
    cost_min = truth.cost_min * (factor if belief == "c_min" else 1.0)
    horizon = round(tasks * (factor if belief == "horizon" else 1.0))
    price_max = reward_max / cost_min
    given = {"horizon": horizon, "reward_max": reward_max, "cost_min": cost_min}
    given |= {"price_min": min(truth.price_min, price_max), "price_max": price_max}
    return ",".join([PAPER, *(f"{name}={value!r}" for name, value in given.items())])


def scaling(scale: Scale, world: str, problems: Sequence[Problem], tasks: int, runs: int) -> Iterator[Setting]:
    """The problem with its noise or all its costs multiplied; DOL-RM is told the true bounds of what results."""
    for changed in SCALED:
        for factor in SCALES:
            changing = [scaled(problem, changed, factor) for problem in problems]
            losses = losses_on(scale, changing, (DEFAULT, PAPER), tasks, runs)
            yield Setting({"world": world, "changed": changed, "factor": factor}, (DEFAULT, PAPER), losses)


def scaled(problem: Problem, changed: str, factor: float) -> Problem:
    """The problem with all noise, or with costs and their noise, times the factor."""
    reward_noise, cost_noise = (
        Noise(sd=factor * (1.0 if noise.sd is None else noise.sd))
        for noise in (problem.reward_noise, problem.cost_noise)
    )
    if changed == "noise":
        return replace(problem, reward_noise=reward_noise, cost_noise=cost_noise)
    return replace(problem, cost=problem.cost * factor, cost_noise=cost_noise)


def draw(settings: Sequence[Setting], changes: Iterable[str], x: str) -> Any:
    """A row of panels per change, a column per world."""
    rows = [(changed, world) for changed in changes for world in WORLDS]
    shown = {f"{world}: {changed}": chosen(settings, world=world, changed=changed) for changed, world in rows}
    return draw_losses(shown, "factor", [x.format(changed, changed) for changed, _ in rows], (PAPER, DEFAULT))


def worst(settings: Sequence[Setting], belief: str) -> Claim:
    """What the worst value of one belief costs DOL-RM in every world."""
    evidence = []
    for world in WORLDS:
        here = chosen(settings, world=world, changed=belief)
        most = max(here, key=lambda setting: setting.mean(PAPER)[0])
        [right] = chosen(here, factor=1.0)
        evidence.append(
            f"{world}: loses {lost(*right.mean(PAPER))} told the truth, at worst "
            f"{lost(*most.mean(PAPER))} (told {most.names['factor']:g} times the truth); "
            f"the default {lost(*right.mean(DEFAULT))}"
        )
    return Claim(f"What a wrong {belief} costs DOL-RM", OURS, ". ".join(evidence))


def invariance(settings: Sequence[Setting]) -> Claim:
    """How far apart the losses over all scales of costs are."""
    ranges = []
    for world in WORLDS:
        for policy in (DEFAULT, PAPER):
            losses = [setting.mean(policy)[0] for setting in chosen(settings, world=world, changed="costs")]
            ranges.append(f"{world}, {policy}: {min(losses):.3g} to {max(losses):.3g} %")
    return Claim("The unit of costs (10⁻³ to 10³) should not matter; loss from least to most", OURS, "; ".join(ranges))


def words(tasks: int, runs: int, problems: int) -> str:
    """What was changed."""
    return (
        f"{tasks:,} tasks on seven kinds ({runs} runs) and on {problems} random problems of the unit family. First "
        "DOL-RM (anytime step) is told c_min, r_max or T times a factor, and the interval of θ that follows from them; "
        "then all that it is told is true, but all noise or all costs are multiplied. The default is told nothing."
    )
