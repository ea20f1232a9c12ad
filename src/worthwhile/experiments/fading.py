"""Fading: what it costs to forget when nothing changes, and how soon a change is learned when something does."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from worthwhile.experiments.base import OURS, Claim, Columns, Outcome, Scale, by_column, lost
from worthwhile.experiments.changes import RECOVERED, rolling_losses, turned
from worthwhile.experiments.comparison import LOST, last_losses, mean_and_error, plain_log, simulate_each
from worthwhile.experiments.figures import panels
from worthwhile.plots import look_of
from worthwhile.policies.registry import DEFAULT
from worthwhile.random_problems import random_problem
from worthwhile.simulation.environments.synthetic import drifting
from worthwhile.state import Floats

TASKS, QUICK_TASKS = 100_000, 20_000
PROBLEMS, QUICK_PROBLEMS = 30, 5
PARTS = (100, 30, 10, 3, 1)  # half-lives, as parts of the run
WINDOWS = 200  # of a run
GROUPS = 20  # of windows after the change, as they are drawn
BEFORE = WINDOWS // 10  # windows before the change, whose loss is the normal one
NEVER = "never"  # fades
WITHIN, AT_LEAST = 3.0, 5.0  # half-lives until the change is learned; times longer without fading


class Faded(NamedTuple):
    """One half-life: what it loses when nothing changes, and around a change half-way."""

    half_life: int  # 0: never
    steady: Floats  # (problems,): loss in % when nothing changes
    rolling: Floats  # (windows,): loss in % within each window, mean over problems
    recovery: float | None  # tasks until a window loses hardly more than those before the change; None: no window does

    @property
    def label(self) -> str:
        return f"{self.half_life:,}" if self.half_life else NEVER


def run(scale: Scale) -> Outcome:
    """The same random problems with and without a change, for half-lives from a hundredth of the run to all of it."""
    tasks, problems = scale.pick(QUICK_TASKS, TASKS), scale.pick(QUICK_PROBLEMS, PROBLEMS)
    measured = measure(scale, tasks, problems)
    return Outcome(
        words=words(tasks, problems),
        data={"fading": trade_off(measured), "fading-rolling": rolling_table(measured, tasks)},
        figures={"fading": draw(measured, tasks)},
        claims=[fading_claim(measured), speed(measured)],
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
        Faded(half_life, steady_loss, rolling_loss, recovery(rolling_loss, tasks))
        for half_life, steady_loss, rolling_loss in zip(half_lives, losses.T, rolling, strict=True)
    ]


def recovery(rolling: Floats, tasks: int) -> float | None:
    """Tasks after the change until a window loses at most 1 % more than those before the change."""
    half = WINDOWS // 2
    again = np.flatnonzero(rolling[half:] <= rolling[half - BEFORE : half].mean() + RECOVERED)
    return float(again[0] + 1) * tasks / WINDOWS if len(again) else None


def trade_off(measured: list[Faded]) -> Columns:
    """One row per half-life."""
    names = ("half_life", "samples", "steady_loss_percent", "steady_loss_error", "recovery_tasks")
    rows = [(faded.half_life, len(faded.steady), *mean_and_error(faded.steady), faded.recovery) for faded in measured]
    return by_column(names, rows)


def rolling_table(measured: list[Faded], tasks: int) -> Columns:
    """One row per half-life and window."""
    rows = [
        (faded.half_life, (window + 1) * tasks // WINDOWS, float(loss))
        for faded in measured
        for window, loss in enumerate(faded.rolling)
    ]
    return by_column(("half_life", "tasks", "loss_percent"), rows)


def draw(measured: list[Faded], tasks: int) -> Any:
    """The trade-off, and the loss after the change."""
    figure, (left, right) = panels(["the trade-off", "after the change"], "", "lost when nothing changes, %")
    for faded, colour in zip(measured, colours(len(measured)), strict=True):
        mean, error = mean_and_error(faded.steady)
        x, mark = (tasks / 2, ">") if faded.recovery is None else (faded.recovery, "o")
        left.errorbar(x, mean, error, fmt=mark, color=colour, capsize=3)
        left.annotate(faded.label, (x, mean), xytext=(6, 5), textcoords="offset points", fontsize=8.5)
        ends, losses = evened_out(faded.rolling[WINDOWS // 2 :])
        right.plot(ends * tasks / WINDOWS, losses, color=colour, linewidth=1.4, label=faded.label)
    left.set_xlabel("tasks until the change is learned (▸ longer)")
    right.set(xlabel="tasks after the change", ylabel=LOST)
    for panel in (left, right):
        plain_log(panel)
        panel.xaxis.set_major_formatter("{x:,.0f}")
    right.legend(title="half-life", frameon=False, fontsize=8.5)
    return figure


def colours(count: int) -> list[Any]:
    """The default's for what never fades, then from dark to light as half-lives grow."""
    from matplotlib import colormaps

    return [look_of(DEFAULT).colour, *colormaps["viridis"](np.linspace(0.0, 0.85, count - 1))]


def evened_out(losses: Floats) -> tuple[Floats, Floats]:
    """Ends and means of ever longer groups of windows, which look equally long on a logarithmic axis."""
    starts = np.unique(np.geomspace(1, len(losses), GROUPS).round().astype(int))[:-1] - 1
    ends = np.append(starts[1:], len(losses))
    return ends.astype(float), np.add.reduceat(losses, starts) / (ends - starts)


def fading_claim(measured: list[Faded]) -> Claim:
    """What forgetting costs when nothing changes."""
    words = [f"half-life {faded.label} {lost(*mean_and_error(faded.steady))}" for faded in measured]
    return Claim("Loss when nothing changes: fading makes it grow in proportion to the tasks", OURS, "; ".join(words))


def speed(measured: list[Faded]) -> Claim:
    """How soon a change half-way is learned."""
    never = measured[0].recovery
    words = [f"never fading: {in_tasks(never)}"]
    for faded in measured[1:]:
        kept = faded.recovery is not None and faded.recovery <= WITHIN * faded.half_life
        longer = never / faded.recovery if never is not None and faded.recovery is not None else 0.0
        faster = f", {longer:.0f} times as fast" if longer >= AT_LEAST else ""
        limit = f"{'within' if kept else 'NOT within'} {WITHIN:g} half-lives"
        words.append(f"half-life {faded.label}: {in_tasks(faded.recovery)}, {limit}{faster}")
    claim = f"A change half-way is learned (within {RECOVERED:g} % of the loss before) in {WITHIN:g} half-lives"
    return Claim(claim, OURS, "; ".join(words))


def in_tasks(recovery: float | None) -> str:
    return "not within the run" if recovery is None else f"{recovery:,.0f} tasks"


def words(tasks: int, problems: int) -> str:
    """What is measured."""
    return (
        f"{tasks:,} tasks, {problems} random problems of the unit family, the default with evidence that counts half "
        "after so many tasks. Once nothing changes, once the options of every kind change places half-way. A policy "
        "that forgets must keep trying, so its loss no longer falls with the number of tasks: the half-life is a "
        "choice between losing a little all the time and losing much for long after a change."
    )
