"""Fading: what it costs to forget when nothing changes, and how soon a change is learned when something does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from worthwhile.experiments.base import OURS, Claim, Columns, Outcome, Scale, plus_minus
from worthwhile.experiments.changes import RECOVERED, rolling_losses, turned
from worthwhile.experiments.comparing import last_losses, mean_and_error, plain_log, simulate_each
from worthwhile.experiments.figures import panels
from worthwhile.policies.registry import DEFAULT
from worthwhile.random_problems import random_problem
from worthwhile.simulation.environments.synthetic import drifting
from worthwhile.state import Floats

TASKS, QUICK_TASKS = 100_000, 20_000
PROBLEMS, QUICK_PROBLEMS = 30, 5
PARTS = (100, 30, 10, 3, 1)  # half-lives, as parts of the run
WINDOWS = 200  # of a run
BEFORE = WINDOWS // 10  # windows before the change that tell what is normal
NEVER = "never"  # fades
WITHIN, AT_LEAST = 3.0, 5.0  # half-lives until the change is learned; times longer without fading


class Faded(NamedTuple):
    """One half-life: what it loses when nothing changes, and around a change half-way."""

    half_life: int  # 0: never
    steady: Floats  # (problems,): loss in % when nothing changes
    rolling: Floats  # (windows,): loss in % within each window, mean over problems
    recovery: float  # tasks until a window loses hardly more than those before the change; inf if none does

    @property
    def label(self) -> str:
        return f"{self.half_life:,}" if self.half_life else NEVER


def run(scale: Scale) -> Outcome:
    """The same random problems with and without a change, for half-lives from a hundredth of the run to all of it."""
    tasks, problems = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_PROBLEMS, PROBLEMS)
    found = measure(scale, tasks, problems)
    return Outcome(
        words=words(tasks, problems),
        data={"fading": trade_off(found), "fading-rolling": rolling_table(found, tasks)},
        figures={"fading": draw(found, tasks)},
        claims=[fading_claim(found), speed(found)],
    )


def measure(scale: Scale, tasks: int, problems: int) -> list[Faded]:
    """Every half-life on every problem, steady and changed half-way."""
    half_lives = [0, *(tasks // part for part in PARTS)]
    policies = {str(half_life): f"{DEFAULT},half_life={half_life}" for half_life in half_lives}
    steady = [random_problem("unit", scale.seed + number) for number in range(problems)]
    changed = [drifting([(0, problem), (tasks // 2, turned(problem))]) for problem in steady]
    marks = (np.arange(1, WINDOWS + 1) * tasks // WINDOWS).tolist()
    losses = last_losses(simulate_each(scale, steady, policies, tasks, marks=[]))
    rolling = rolling_losses(simulate_each(scale, changed, policies, tasks, marks=marks)).mean(axis=0)
    return [
        Faded(half_life, losses[:, place], rolling[place], recovery(rolling[place], tasks))
        for place, half_life in enumerate(half_lives)
    ]


def recovery(rolling: Floats, tasks: int) -> float:
    """Tasks after the change until a window loses at most 1 % more than those before the change."""
    half = WINDOWS // 2
    again = np.flatnonzero(rolling[half:] <= rolling[half - BEFORE : half].mean() + RECOVERED)
    return float(again[0] + 1) * tasks / WINDOWS if len(again) else np.inf


def trade_off(found: list[Faded]) -> Columns:
    """One row per half-life."""
    losses = [mean_and_error(one.steady) for one in found]
    return {
        "half_life": [one.half_life for one in found],
        "samples": [len(one.steady) for one in found],
        "steady_loss_percent": [mean for mean, _ in losses],
        "steady_loss_error": [error for _, error in losses],
        "recovery_tasks": [one.recovery for one in found],
    }


def rolling_table(found: list[Faded], tasks: int) -> Columns:
    """One row per half-life and window."""
    rows = [
        (one.half_life, (window + 1) * tasks // WINDOWS, float(loss))
        for one in found
        for window, loss in enumerate(one.rolling)
    ]
    return dict(zip(("half_life", "tasks", "loss_percent"), map(list, zip(*rows, strict=True)), strict=True))


def draw(found: list[Faded], tasks: int) -> Any:
    """The trade-off, and the loss after the change."""
    figure, (left, right) = panels(["the trade-off", "after the change"], "", "lost when nothing changes, %")
    colours = {one.label: f"C{place}" for place, one in enumerate(found)}
    for one in found:
        mean, error = mean_and_error(one.steady)
        place = one.recovery if np.isfinite(one.recovery) else tasks / 2
        left.errorbar(place, mean, error, fmt="o", color=colours[one.label], capsize=3)
        left.annotate(one.label, (place, mean), xytext=(6, 5), textcoords="offset points", fontsize=8.5)
        ends = np.arange(1, WINDOWS // 2 + 1) * tasks / WINDOWS
        right.plot(ends, one.rolling[WINDOWS // 2 :], color=colours[one.label], linewidth=1.4, label=one.label)
    left.set_xlabel("tasks until the change is learned")
    right.set_xlabel("tasks after the change")
    right.set_ylabel("lost, % of the optimum")
    for axes, which in ((left, "x"), (left, "y"), (right, "x"), (right, "y")):
        plain_log(axes, which)
    for axes in (left, right):
        axes.xaxis.set_major_formatter("{x:,.0f}")
    right.legend(title="half-life", frameon=False, fontsize=8.5)
    return figure


def fading_claim(found: list[Faded]) -> Claim:
    """What forgetting costs when nothing changes."""
    words = [f"half-life {one.label} {plus_minus(*mean_and_error(one.steady))} %" for one in found]
    return Claim("Loss when nothing changes: fading makes it grow in proportion to the tasks", OURS, "; ".join(words))


def speed(found: list[Faded]) -> Claim:
    """How soon a change half-way is learned."""
    never = found[0].recovery
    words = [f"never fading: {in_tasks(never)}"]
    for one in found[1:]:
        kept = one.recovery <= WITHIN * one.half_life
        longer = never / one.recovery if np.isfinite(never) else np.inf
        faster = f", {longer:.0f} times as fast" if longer >= AT_LEAST else ""
        limit = f"{'within' if kept else 'NOT within'} {WITHIN:g} half-lives"
        words.append(f"half-life {one.label}: {in_tasks(one.recovery)}, {limit}{faster}")
    claim = f"A change half-way is learned (within {RECOVERED:g} % of the loss before) in {WITHIN:g} half-lives"
    return Claim(claim, OURS, "; ".join(words))


def in_tasks(recovery: float) -> str:
    return f"{recovery:,.0f} tasks" if np.isfinite(recovery) else "not within the run"


def words(tasks: int, problems: int) -> str:
    """What is measured."""
    return (
        f"{tasks:,} tasks, {problems} random problems of the unit family, the default with evidence that counts half "
        "after so many tasks. Once nothing changes, once the options of every kind change places half-way. A policy "
        "that forgets must keep trying, so its loss no longer falls with the number of tasks: the half-life is a "
        "choice between losing a little all the time and losing much for long after a change."
    )
